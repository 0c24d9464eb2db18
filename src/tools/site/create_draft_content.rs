//! `create_draft_content`: drafts a text for review and publication.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Service, Tool, Use};
use karyi_core::error::ToolError;
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_store::site::{Content, Draft};

/// The tool.
pub struct CreateDraftContent;

/// Arguments of `create_draft_content`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Kind of content.
    pub content_type: ContentType,
    /// Title.
    #[schemars(length(min = 1, max = 500))]
    pub title: String,
    /// The text.
    #[schemars(length(min = 1, max = 100_000))]
    pub body: String,
    /// Short summary.
    #[schemars(length(max = 2000))]
    pub summary: Option<String>,
    /// Tags.
    #[schemars(length(max = 20), inner(length(min = 1, max = 50)))]
    pub tags: Option<Vec<String>>,
    /// Knowledge domains.
    #[schemars(length(max = 20), inner(length(min = 1, max = 50)))]
    pub domains: Option<Vec<String>>,
    /// Source of the text.
    #[schemars(length(max = 1000))]
    pub source: Option<String>,
}

/// Kind of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContentType {
    /// Knowledge.
    Knowledge,
    /// A story.
    Story,
    /// A guide.
    Guide,
    /// An announcement.
    Announcement,
    /// A question with its answer.
    Faq,
    /// A point of interest.
    Poi,
    /// A route.
    Route,
}

impl ContentType {
    fn as_str(self) -> &'static str {
        match self {
            Self::Knowledge => "knowledge",
            Self::Story => "story",
            Self::Guide => "guide",
            Self::Announcement => "announcement",
            Self::Faq => "faq",
            Self::Poi => "poi",
            Self::Route => "route",
        }
    }
}

/// The new draft.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Identifier of the content.
    pub content_id: String,
    /// Always `draft`.
    pub status: &'static str,
    /// Time of creation.
    pub created_at: String,
}

impl Tool for CreateDraftContent {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "create_draft_content",
        summary: "Write a draft of a text for the site",
        details: "Nobody finds a draft before a person has published it. Every call makes another draft: send an Idempotency-Key to be able to repeat it.",
        also_called: &[],
        heading: "create_draft_content",
        starts_job: false,
        family: Family::Site,
        form: Form::Parameters,
        examples: &[
            Example {
                title: "A legend",
                before: "",
                xml: "<create_draft_content content_type=\"knowledge\" title=\"严田村古井传说\" body=\"村中心的古井相传有千年历史\"/>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "A text without a title",
                before: "",
                xml: "<create_draft_content content_type=\"story\" title=\"\" body=\"b\"/>",
                status: Status::Error,
                code: Some("invalid_input"),
            },
        ],
    };
    const SERVICE: Service = Service::writing("content").with_scopes(&["content:draft:write"]);

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn effect(_: &Args) -> Effect {
        Effect::Alone
    }

    fn title(args: &Args) -> String {
        args.title.clone()
    }

    fn templates(_: &mut Args, _: &mut dyn FnMut(Use, &mut Template)) {}

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        let site = context.site()?;
        let content = Content {
            id: String::new(),
            content_type: args.content_type.as_str().into(),
            title: args.title,
            summary: args.summary,
            body: args.body,
            category: None,
            tags: args.tags.unwrap_or_default(),
            domains: args.domains.unwrap_or_default(),
            source: args.source,
            credibility_score: 1.0,
            verified: false,
            status: "draft".into(),
            metadata: Map::new(),
        };
        let author = site.user_id.clone().unwrap_or_else(|| "system".into());
        let written = site
            .store
            .add_draft(&site.scope, Draft { content, author })
            .await?;
        Ok(Answer::ok(Output {
            content_id: written.id,
            status: "draft",
            created_at: written.at,
        }))
    }
}
