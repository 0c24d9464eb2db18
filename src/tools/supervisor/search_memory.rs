//! `<search_memory>`: searches memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::service::Hints;
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Service, Tool, Use};
use crate::tools::supervisor::role_check::as_role;
use karyi_core::error::ToolError;
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_tasks::argument::read_time;
use karyi_tasks::memory;

/// The tool.
pub struct SearchMemory;

/// Arguments of `search_memory`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Words to look for.
    pub query: Template,
    /// Start with its zone: older passages are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// End with its zone: newer passages are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Most hits, 5 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
}

/// Result of `search_memory`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Passages, the best one first.
    pub hits: Vec<Hit>,
}

/// Passage of memory.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Hit {
    /// File in the state directory.
    pub source: String,
    /// At most 300 characters around the best match.
    pub content: String,
    /// BM25 score.
    pub score: f64,
}

impl Tool for SearchMemory {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "search_memory",
        summary: "Search memory",
        details: "Passages are ranked by the words they share with the query.",
        also_called: &[],
        heading: "search memory",
        starts_job: false,
        family: Family::Supervisor,
        form: Form::Parameters,
        examples: &[
            Example {
                title: "Look for two words",
                before: "",
                xml: "<search_memory><query>pnpm timeout</query></search_memory>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "No words",
                before: "",
                xml: "<search_memory><query> </query></search_memory>",
                status: Status::Error,
                code: Some("bad_arguments"),
            },
        ],
    };
    const SERVICE: Service = Service::LOCAL.with_hints(Hints::READ_ONLY);

    fn effect(_: &Args) -> Effect {
        Effect::Outside {
            is_write: false,
            files: Vec::new(),
        }
    }

    fn title(args: &Args) -> String {
        args.query.source().to_owned()
    }

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn templates(args: &mut Args, visit: &mut dyn FnMut(Use, &mut Template)) {
        visit(Use::Shared, &mut args.query);
    }

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        as_role(context, Self::SPEC.name, move |session| {
            let time = |field: &str, text: Option<String>| {
                text.map(|text| read_time(field, &text)).transpose()
            };
            let after = time("after", args.after)?;
            let before = time("before", args.before)?;
            let query = args.query.text();
            let hits = memory::search(session.state(), query, after, before, args.limit)?;
            let hits = hits.into_iter().map(|hit| Hit {
                source: hit.source,
                content: hit.content,
                score: hit.score,
            });
            Ok(Answer::ok(Output {
                hits: hits.collect(),
            }))
        })
        .await
    }
}
