//! The argument `condition`, as its JSON Schema shows it to models.

use std::borrow::Cow;

use karyi_core::error::ToolError;
use karyi_tasks::condition::Condition;
use karyi_vault::redact::Redactor;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Condition as JSON; it is checked when the call runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConditionArgument(pub Value);

impl ConditionArgument {
    /// Reads the condition; values in its texts are masked, since they are stored and told to a model.
    ///
    /// # Errors
    /// `bad_arguments`, with the part that is wrong.
    pub fn read(mut self, redactor: &Redactor) -> Result<Condition, ToolError> {
        redactor.redact_values_again(&mut self.0);
        Condition::parse(&self.0)
    }
}

impl JsonSchema for ConditionArgument {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Condition".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "properties": {"type": {"type": "string"}},
            "additionalProperties": true,
        })
    }
}
