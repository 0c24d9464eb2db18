//! `get_prompt_active`: the prompt that makes a model play a character.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::tool::site::not_found;
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Service, Tool, Use};
use karyi_core::error::ToolError;
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_store::site::{Profile, Prompt};

/// The tool.
pub struct GetPromptActive;

/// Arguments of `get_prompt_active`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Identifier of the character.
    #[schemars(length(min = 1, max = 100))]
    pub npc_id: String,
    /// Purpose of the text; `system` by default.
    pub prompt_type: Option<PromptType>,
}

/// Purpose of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PromptType {
    /// System prompt of the character.
    System,
    /// First message.
    Greeting,
    /// Message when there is no answer.
    Fallback,
}

impl PromptType {
    fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Greeting => "greeting",
            Self::Fallback => "fallback",
        }
    }
}

/// The active prompt.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Identifier of the character.
    pub npc_id: String,
    /// Purpose of the text.
    pub prompt_type: PromptType,
    /// The text.
    pub prompt_text: String,
    /// Version of the prompt, or of the profile it was made from.
    pub version: u32,
    /// Origin of the prompt: `source` is `prompt_registry` or `npc_profile`.
    pub metadata: Map<String, Value>,
}

impl Tool for GetPromptActive {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "get_prompt_active",
        summary: "Get the prompt of a character",
        details: "A prompt that was written for the character comes first; without one it is made from the profile.",
        also_called: &[],
        heading: "get_prompt_active",
        starts_job: false,
        family: Family::Site,
        form: Form::Parameters,
        examples: &[
            Example {
                title: "What a model is told",
                before: "",
                xml: "<get_prompt_active npc_id=\"ancestor_yan\"/>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "Nobody of that name",
                before: "",
                xml: "<get_prompt_active npc_id=\"unknown_npc\"/>",
                status: Status::Error,
                code: Some("not_found"),
            },
        ],
    };
    const SERVICE: Service = Service::reading("prompt");

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn effect(_: &Args) -> Effect {
        Effect::Alone
    }

    fn title(args: &Args) -> String {
        args.npc_id.clone()
    }

    fn templates(_: &mut Args, _: &mut dyn FnMut(Use, &mut Template)) {}

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        let site = context.site()?;
        let kind = args.prompt_type.unwrap_or(PromptType::System);
        let profile = site.store.profile(&site.scope, &args.npc_id, None).await?;
        let written = site
            .store
            .prompt(&site.scope, &args.npc_id, kind.as_str())
            .await?;
        match (written, profile) {
            (Some(prompt), profile) => Ok(Answer::ok(of_registry(prompt, profile, kind))),
            (None, Some(profile)) => Ok(Answer::ok(of_profile(&profile, kind))),
            (None, None) => Err(not_found("NPC profile", &args.npc_id)),
        }
    }
}

fn of_registry(prompt: Prompt, profile: Option<Profile>, kind: PromptType) -> Output {
    let mut metadata = profile
        .map(|profile| metadata(&profile))
        .unwrap_or_default();
    metadata.extend(prompt.metadata);
    metadata.insert("source".into(), "prompt_registry".into());
    Output {
        npc_id: prompt.npc_id,
        prompt_type: kind,
        prompt_text: prompt.content,
        version: prompt.version,
        metadata,
    }
}

fn of_profile(profile: &Profile, kind: PromptType) -> Output {
    let first = |texts: &[String]| texts.first().cloned();
    let text = match kind {
        PromptType::System => system(profile),
        PromptType::Greeting => first(&profile.greeting_templates)
            .unwrap_or_else(|| format!("你好，我是{}。", profile.name)),
        PromptType::Fallback => first(&profile.fallback_responses)
            .unwrap_or_else(|| "这件事我不清楚，请问问别的吧。".into()),
    };
    let mut metadata = metadata(profile);
    metadata.insert("source".into(), "npc_profile".into());
    Output {
        npc_id: profile.npc_id.clone(),
        prompt_type: kind,
        prompt_text: text,
        version: profile.version,
        metadata,
    }
}

fn metadata(profile: &Profile) -> Map<String, Value> {
    Map::from_iter([
        ("name".to_owned(), json!(profile.name)),
        (
            "knowledge_domains".to_owned(),
            json!(profile.knowledge_domains),
        ),
    ])
}

/// Composes the system prompt from the profile; missing facts are left out.
fn system(profile: &Profile) -> String {
    let persona = &profile.persona;
    let word = |path: [&str; 2]| {
        persona
            .get(path[0])?
            .get(path[1])?
            .as_str()
            .map(str::to_owned)
    };
    let words = |path: [&str; 2]| {
        let list = persona.get(path[0])?.get(path[1])?.as_array()?;
        let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
        (!words.is_empty()).then(|| words.join("、"))
    };
    let domains =
        (!profile.knowledge_domains.is_empty()).then(|| profile.knowledge_domains.join("、"));
    let told = [
        ("所处时代", word(["identity", "era"])),
        ("身份", word(["identity", "role"])),
        ("背景", word(["identity", "background"])),
        ("性格", words(["personality", "traits"])),
        ("说话风格", word(["personality", "speaking_style"])),
        ("语气", word(["personality", "tone"])),
        ("熟悉的领域", domains),
        ("不谈论", words(["constraints", "forbidden_topics"])),
    ];
    let mut text = format!("你是{}。\n", profile.name);
    for (label, value) in told {
        if let Some(value) = value {
            text.push_str(&format!("{label}：{value}。\n"));
        }
    }
    if profile.must_cite_sources {
        text.push_str("回答史实时必须说明出处。\n");
    }
    text.push_str(&format!(
        "每次回答不超过{}字。",
        profile.max_response_length
    ));
    text
}
