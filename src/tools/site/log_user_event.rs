//! `log_user_event`: records an event of a visitor.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::{Answer, ArgumentSchema, Context, Effect, Service, Tool, Use};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::outcome::Status;
use karyi_core::secret::Template;
use karyi_store::site::Event;

/// The tool.
pub struct LogUserEvent;

/// Arguments of `log_user_event`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// Kind of event, in lower case: `page_view`, `chat.started`.
    #[schemars(regex(pattern = "^[a-z][a-z0-9_.]{0,99}$"))]
    pub event_type: String,
    /// Event data, at most 16 KiB of JSON.
    pub event_data: Option<Map<String, Value>>,
    /// The user; by default that of the request.
    #[schemars(length(min = 1, max = 100))]
    pub user_id: Option<String>,
    /// The user's session; by default that of the request.
    #[schemars(length(min = 1, max = 100))]
    pub session_id: Option<String>,
}

/// The recorded event.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Identifier of the event.
    pub event_id: String,
    /// Time of the record.
    pub logged_at: String,
}

impl Tool for LogUserEvent {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "log_user_event",
        summary: "Keep something a visitor did",
        details: "User and session are those of the request, unless the call names others.",
        also_called: &[],
        heading: "log_user_event",
        starts_job: false,
        family: Family::Site,
        form: Form::Parameters,
        examples: &[
            Example {
                title: "A page was looked at",
                before: "",
                xml: "<log_user_event event_type=\"page_view\"><event_data>{\"page\": \"map\"}</event_data></log_user_event>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "A name that is none",
                before: "",
                xml: "<log_user_event event_type=\"Page View\"/>",
                status: Status::Error,
                code: Some("invalid_input"),
            },
        ],
    };
    const SERVICE: Service = Service::writing("analytics");

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn effect(_: &Args) -> Effect {
        Effect::Alone
    }

    fn title(args: &Args) -> String {
        args.event_type.clone()
    }

    fn templates(_: &mut Args, _: &mut dyn FnMut(Use, &mut Template)) {}

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        let site = context.site()?;
        let data = args.event_data.unwrap_or_default();
        check(&data)?;
        let event = Event {
            event_type: args.event_type,
            data,
            user_id: args.user_id.or_else(|| site.user_id.clone()),
            session_id: args.session_id.or_else(|| site.session_id.clone()),
            trace_id: site.trace_id.clone(),
        };
        let written = site.store.log_event(&site.scope, event).await?;
        Ok(Answer::ok(Output {
            event_id: written.id,
            logged_at: written.at,
        }))
    }
}

/// Refuses event data that is too large or too deep.
fn check(data: &Map<String, Value>) -> Result<(), ToolError> {
    let bytes = serde_json::to_vec(data).map_or(usize::MAX, |text| text.len());
    let depth = 1 + data.values().map(depth).max().unwrap_or(0);
    let problem = if bytes > limits::MAX_EVENT_BYTES {
        format!(
            "event_data has {bytes} bytes; at most {} are kept",
            limits::MAX_EVENT_BYTES
        )
    } else if depth > limits::MAX_EVENT_DEPTH {
        format!(
            "event_data is {depth} deep; at most {} are kept",
            limits::MAX_EVENT_DEPTH
        )
    } else {
        return Ok(());
    };
    Err(ToolError::new(ErrorCode::BadArguments, problem)
        .with_hint("send less, or a reference to it"))
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_are_small_and_flat() {
        let check = |value: Value, fits: bool| {
            assert_eq!(check(value.as_object().unwrap()).is_ok(), fits, "{value}");
        };
        check(json!({}), true);
        check(json!({"a": [[[[[[1]]]]]]}), true);
        check(json!({"a": [[[[[[[[1]]]]]]]]}), false);
        check(json!({"a": "x".repeat(16 << 10)}), false);
    }
}
