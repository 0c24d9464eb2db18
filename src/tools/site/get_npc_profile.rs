//! `get_npc_profile`: the profile of a character.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::tool::site::not_found;
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Service, Tool, Use};
use karyi_core::error::ToolError;
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_store::site::Profile;

/// The tool.
pub struct GetNpcProfile;

/// Arguments of `get_npc_profile`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Identifier of the character.
    #[schemars(length(min = 1, max = 100))]
    pub npc_id: String,
    /// Version of the profile; by default the active one.
    #[schemars(range(min = 1))]
    pub version: Option<u32>,
}

/// Profile of a character.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Identifier of the character.
    pub npc_id: String,
    /// Version of the profile.
    pub version: u32,
    /// True for the active version.
    pub active: bool,
    /// Name of the character.
    pub name: String,
    /// Name as shown to visitors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Kind of character.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npc_type: Option<String>,
    /// Identity, personality and constraints.
    pub persona: Map<String, Value>,
    /// Knowledge domains.
    pub knowledge_domains: Vec<String>,
    /// Templates for greetings.
    pub greeting_templates: Vec<String>,
    /// Responses for unknown topics.
    pub fallback_responses: Vec<String>,
    /// Maximum length of an answer, in characters.
    pub max_response_length: u32,
    /// True when answers must cite their sources.
    pub must_cite_sources: bool,
}

impl From<Profile> for Output {
    fn from(profile: Profile) -> Self {
        Self {
            npc_id: profile.npc_id,
            version: profile.version,
            active: profile.active,
            name: profile.name,
            display_name: profile.display_name,
            npc_type: profile.npc_type,
            persona: profile.persona,
            knowledge_domains: profile.knowledge_domains,
            greeting_templates: profile.greeting_templates,
            fallback_responses: profile.fallback_responses,
            max_response_length: profile.max_response_length,
            must_cite_sources: profile.must_cite_sources,
        }
    }
}

impl Tool for GetNpcProfile {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "get_npc_profile",
        summary: "Get the profile of a character",
        details: "Without `version` it is the profile in use; an older one can be asked for by its number.",
        also_called: &[],
        heading: "get_npc_profile",
        starts_job: false,
        family: Family::Site,
        form: Form::Parameters,
        examples: &[
            Example {
                title: "The profile in use",
                before: "",
                xml: "<get_npc_profile npc_id=\"ancestor_yan\"/>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "Nobody of that name",
                before: "",
                xml: "<get_npc_profile npc_id=\"unknown_npc\"/>",
                status: Status::Error,
                code: Some("not_found"),
            },
        ],
    };
    const TITLE: Option<&'static str> = Some("Get NPC profile");
    const SERVICE: Service = Service::reading("npc");

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
        let found = site
            .store
            .profile(&site.scope, &args.npc_id, args.version)
            .await?;
        let profile = found.ok_or_else(|| not_found("NPC profile", &args.npc_id))?;
        Ok(Answer::ok(profile.into()))
    }
}
