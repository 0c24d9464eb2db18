//! `search_content`: searches the texts of a site.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::tool::site::ContentVisibility;
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Service, Tool, Use};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_store::site::{Content, Query};
use karyi_vault::redact::Redactor;

/// The tool.
pub struct SearchContent;

/// Arguments of `search_content`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Words to search for.
    #[schemars(length(min = 1, max = 200))]
    pub query: String,
    /// Only this kind of content.
    #[schemars(length(min = 1, max = 50))]
    pub content_type: Option<String>,
    /// Only content with one of these tags.
    #[schemars(length(max = 20), inner(length(min = 1, max = 50)))]
    pub tags: Option<Vec<String>>,
    /// Only content with this status; `published` by default.
    pub status: Option<ContentStatus>,
    /// Maximum number of results; 10 by default.
    #[schemars(range(min = 1, max = 50))]
    pub limit: Option<u32>,
}

/// Publication status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContentStatus {
    /// In preparation.
    Draft,
    /// In review.
    Review,
    /// Visible to visitors.
    Published,
    /// Withdrawn.
    Offline,
}

impl ContentStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Review => "review",
            Self::Published => "published",
            Self::Offline => "offline",
        }
    }
}

/// Search results, best first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The results.
    #[schemars(with = "Vec<Item<'static>>")]
    pub items: Items,
    /// Total number of matches.
    pub total: u64,
    /// The query as sent.
    pub query: String,
}

/// Contents, serialized as [`Item`]s.
#[derive(Debug)]
pub struct Items(Vec<Content>);

impl Items {
    /// Cuts the texts of contents; the start of a secret at the cut is masked.
    fn of(mut contents: Vec<Content>, redactor: &Redactor) -> Self {
        for content in &mut contents {
            let end = content.body.char_indices().nth(limits::SEARCH_BODY_CHARS);
            if let Some((end, _)) = end {
                content.body.truncate(end);
                if !redactor.is_idle() {
                    content.body = redactor.redact_cut_again(&content.body).into_string();
                }
            }
        }
        Self(contents)
    }
}

impl Serialize for Items {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Item::from))
    }
}

/// One content.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Item<'a> {
    /// Identifier of the content.
    pub id: &'a str,
    /// Kind of content.
    pub content_type: &'a str,
    /// Title.
    pub title: &'a str,
    /// Short summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<&'a str>,
    /// The first 500 characters of the text.
    pub body: &'a str,
    /// Tags.
    pub tags: &'a [String],
    /// Knowledge domains.
    pub domains: &'a [String],
    /// Credibility.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub credibility_score: f64,
    /// True when it was verified.
    pub verified: bool,
}

impl<'a> From<&'a Content> for Item<'a> {
    fn from(content: &'a Content) -> Self {
        Self {
            id: &content.id,
            content_type: &content.content_type,
            title: &content.title,
            summary: content.summary.as_deref(),
            body: &content.body,
            tags: &content.tags,
            domains: &content.domains,
            credibility_score: content.credibility_score,
            verified: content.verified,
        }
    }
}

impl Tool for SearchContent {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "search_content",
        summary: "Search the texts of the site",
        details: "Any word of the query may match; what holds the query to the letter comes first. Only published texts are found, unless the caller may see drafts and asks for them.",
        also_called: &[],
        heading: "search_content",
        starts_job: false,
        family: Family::Site,
        form: Form::Parameters,
        examples: &[
            Example {
                title: "Texts about the rules of a family",
                before: "",
                xml: "<search_content query=\"严氏家训\" limit=\"5\"/>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "Drafts are not for everybody",
                before: "",
                xml: "<search_content query=\"古井\" status=\"draft\"/>",
                status: Status::Error,
                code: Some("permission_denied"),
            },
        ],
    };
    const SERVICE: Service = Service::reading("content");

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn effect(_: &Args) -> Effect {
        Effect::Alone
    }

    fn title(args: &Args) -> String {
        args.query.clone()
    }

    fn templates(_: &mut Args, _: &mut dyn FnMut(Use, &mut Template)) {}

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        let site = context.site()?;
        if args.query.trim().is_empty() {
            let error = ToolError::new(ErrorCode::BadArguments, "the query is blank");
            return Err(error.with_hint("say what to look for, in the words of the texts"));
        }
        let status = args.status.unwrap_or(ContentStatus::Published);
        if status != ContentStatus::Published && site.visibility != ContentVisibility::Drafts {
            let message = format!(
                "contents with the status {} need the scope content:draft:read",
                status.as_str()
            );
            return Err(
                ToolError::new(ErrorCode::PermissionDenied, message).with_hint("leave status out")
            );
        }
        let query = Query {
            text: args.query.clone(),
            content_type: args.content_type,
            tags: args.tags.unwrap_or_default(),
            status: status.as_str().into(),
            limit: args.limit.unwrap_or(limits::SEARCH_CONTENT_ITEMS),
        };
        let found = site.store.search(&site.scope, query).await?;
        Ok(Answer::ok(Output {
            total: found.total,
            items: Items::of(found.items, &context.redactor),
            query: args.query,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use karyi_vault::session::Secrets;
    use serde_json::json;

    #[test]
    fn an_item_has_the_first_characters_of_its_text() {
        let content = |id: &str, body: &str| -> Content {
            let content =
                json!({"id": id, "content_type": "story", "title": "a \"b\"\n", "body": body});
            serde_json::from_value(content).unwrap()
        };
        let most = "井".repeat(limits::SEARCH_BODY_CHARS);
        let contents = vec![content("a", "x"), content("b", &format!("{most}水"))];
        let items = Items::of(contents, &Redactor::new(&Secrets::default()));
        let shown = |id: &str, body: &str| {
            json!({
                "id": id, "content_type": "story", "title": "a \"b\"\n", "body": body, "tags": [], "domains": [],
                "credibility_score": 1.0, "verified": false
            })
        };
        let expected = json!([shown("a", "x"), shown("b", &most)]);
        assert_eq!(serde_json::to_value(items).unwrap(), expected);
    }
}
