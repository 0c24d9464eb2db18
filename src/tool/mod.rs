//! Tools: a declaration, an argument type and a function each.
//!
//! A tool is one file that implements [`Tool`]. The XML it accepts, its JSON Schema, its help and its
//! text in a model's prompt are derived from that file; rendering, secrets and permissions are separate
//! stages.

pub mod context;
pub mod decode;
pub mod effect;
pub mod fields;
pub mod generic;
pub mod json_text;
pub mod lenient;
pub mod mismatch;
pub mod model_access;
pub mod normalise;
pub mod own_directories;
pub mod plan_board;
pub mod registry;
pub mod scalar;
pub mod schema;
pub mod seconds;
pub mod service;
pub mod sessions;
pub mod settings;
#[cfg(feature = "serve")]
pub mod site;
#[cfg(not(feature = "serve"))]
#[path = "no_site.rs"]
pub mod site;
pub mod spec;
pub mod supervision;
pub mod validate;
pub mod web_settings;

use std::fmt::Debug;
use std::future::Future;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use karyi_core::call::RawElement;
use karyi_core::error::ToolError;
use karyi_core::head_tail::Cap;
use karyi_core::outcome::Status;
use karyi_core::secret::{SecretName, Template};

pub use context::Context;
pub use effect::Effect;
pub use fields::{FieldText, Fields};
pub use registry::Registry;
pub use schema::ArgumentSchema;
pub use seconds::Seconds;
pub use service::Service;
pub use settings::ToolSettings;
pub use site::SiteAccess;
pub use spec::{CountedKind, CountedTexts, Example, Form, Spec};

/// Treatment of placeholders in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Placeholders are replaced by the exact values.
    Literal,
    /// As `Literal`, in text that is written to a file.
    Written,
    /// Secrets are refused: the text is a search pattern.
    Pattern,
    /// Secrets are refused: the text goes into a file or to a model as it is.
    Shared,
    /// As `Literal`, in a header that goes to the destination of the call.
    Header,
    /// As `Literal`, with backslashes of the values doubled: escapes in the text are decoded later.
    Typed,
    /// The text is a shell script: it refers to values and never contains them.
    Script,
}

/// Result of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer<T> {
    /// Final status.
    pub status: Status,
    /// The tool's own fields.
    pub output: T,
    /// The part that failed, when the rest succeeded.
    pub problem: Option<ToolError>,
}

impl<T> Answer<T> {
    /// Returns the answer of a tool that succeeded.
    pub fn ok(output: T) -> Self {
        Self {
            status: Status::Ok,
            output,
            problem: None,
        }
    }
}

/// A capability that models can call.
pub trait Tool {
    /// Arguments. Doc comments document the parameters; the JSON Schema defines the input of XML, MCP and HTTP.
    type Args: DeserializeOwned + JsonSchema + Clone + Debug + PartialEq + Send + Sync + 'static;
    /// Result.
    type Output: Serialize + Send;
    /// Declaration.
    const SPEC: Spec;
    /// Name for people, when the wire name with spaces is not good enough.
    const TITLE: Option<&'static str> = None;
    /// Name of the tool for which policies of secrets allow it.
    const POLICY_NAME: &'static str = Self::SPEC.name;
    /// Texts of the result that a report may shorten.
    const COUNTED: &'static [CountedTexts] = &[];
    /// Properties for callers of a server.
    const SERVICE: Service = Service::LOCAL;

    /// Records the source form of texts, for a tool that needs it besides their meaning.
    fn note_sources(_: &mut Self::Args, _: &RawElement) {}

    /// Returns the resources the call may touch.
    fn effect(args: &Self::Args) -> Effect;

    /// Returns a title of the call for people.
    fn title(args: &Self::Args) -> String;

    /// Returns the name of the secret that a successful call provides to later blocks.
    fn provides(_: &Self::Args) -> Option<SecretName> {
        None
    }

    /// Returns the id of the job that the call names.
    fn job(_: &Self::Args) -> Option<&str> {
        None
    }

    /// Returns the time limit that the call sets.
    fn timeout(_: &Self::Args) -> Option<Seconds> {
        None
    }

    /// Returns the limit of the output that a call prints beside its result; `None` when it prints none, or a session
    /// collects it.
    fn output_cap(_: &ToolSettings) -> Option<Cap> {
        None
    }

    /// Returns true when the call ends its job, in the foreground or background.
    fn ends_job(_: &Self::Args) -> bool {
        false
    }

    /// Checks for errors that can be found before any call of the block runs.
    ///
    /// # Errors
    /// The call can never run.
    fn check(_: &Self::Args) -> Result<(), ToolError> {
        Ok(())
    }

    /// Returns the schema of its result, when callers may rely on it.
    fn output_schema() -> Option<ArgumentSchema> {
        None
    }

    /// Visits every text argument that may contain a placeholder.
    fn templates(args: &mut Self::Args, visit: &mut dyn FnMut(Use, &mut Template));

    /// Runs the call.
    ///
    /// # Errors
    /// The call failed; then nothing was changed.
    fn run(
        args: Self::Args,
        context: &Context,
    ) -> impl Future<Output = Result<Answer<Self::Output>, ToolError>> + Send;
}
