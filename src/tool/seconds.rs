//! Time limits in calls.

use std::borrow::Cow;
use std::time::Duration;

use karyi_core::error::{ErrorCode, ToolError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

/// Maximum time limit in seconds: a year.
const MAX_SECONDS: f64 = 31_536_000.0;

/// A time limit in seconds: a decimal number from 0 to a year.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Seconds(f64);

impl Seconds {
    /// Returns a limit when the number is in range.
    #[must_use]
    pub fn new(seconds: f64) -> Option<Self> {
        (0.0..=MAX_SECONDS)
            .contains(&seconds)
            .then_some(Self(seconds))
    }

    /// Checks a limit of a call that needs some time.
    ///
    /// # Errors
    /// `bad_arguments` for 0.
    pub fn check_positive(self) -> Result<(), ToolError> {
        if self.0 > 0.0 {
            return Ok(());
        }
        let message = "expected a time limit of more than 0 seconds, found 0";
        let error = ToolError::new(ErrorCode::BadArguments, message);
        Err(error.with_hint("leave it out for the usual limit"))
    }

    /// Returns the limit as a duration.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::from_secs_f64(self.0)
    }
}

/// Returns the error of a tool whose time is up.
#[must_use]
pub fn timed_out(tool: &str, limit: Duration) -> ToolError {
    let seconds = (limit.as_secs_f64() * 10.0).round() / 10.0;
    let message = format!("{tool} timed out after {seconds}s");
    ToolError::new(ErrorCode::Timeout, message)
}

impl std::str::FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.parse().ok().and_then(Self::new);
        number.ok_or_else(|| "expected seconds between 0 and 31536000".into())
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = f64::deserialize(deserializer)?;
        Self::new(number).ok_or_else(|| {
            serde::de::Error::custom(format!(
                "expected seconds between 0 and {MAX_SECONDS}, found {number}"
            ))
        })
    }
}

impl JsonSchema for Seconds {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Seconds".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0, "maximum": 31_536_000 })
    }
}
