//! What a tool is: one declaration, one argument type, one function.
//!
//! A tool is one file that implements [`Tool`]. Everything else about it (the XML it accepts, its
//! JSON Schema, help, the text for a model's prompt) is derived from that file; rendering, secrets
//! and permissions are stages around it and never part of it.

pub mod context;
pub mod decode;
pub mod effect;
pub mod fields;
pub mod fit;
pub mod generic;
pub mod json_text;
pub mod misfit;
pub mod normalise;
pub mod registry;
pub mod scalar;
pub mod schema;
pub mod seconds;
pub mod service;
pub mod sessions;
#[cfg(feature = "serve")]
pub mod site;
#[cfg(not(feature = "serve"))]
#[path = "no_site.rs"]
pub mod site;
pub mod spec;

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use karyi_core::call::RawElement;
use karyi_core::error::ToolError;
use karyi_core::outcome::Status;
use karyi_core::secret::{SecretName, Template};

pub use context::Context;
pub use effect::Effect;
pub use fields::{FieldText, Fields, Later};
pub use registry::Registry;
pub use schema::ArgumentSchema;
pub use seconds::Seconds;
pub use service::Service;
pub use site::SiteAccess;
pub use spec::{Example, Form, Spec};

/// How a placeholder in a text becomes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// The value replaces the placeholder to the letter.
    Literal,
    /// As literal, in text that is written to a file.
    Written,
    /// No value may stand in it: it says what to look for.
    Pattern,
    /// As literal, in text whose backslash escapes are read later: those of the value are doubled.
    Typed,
    /// The text is a shell script: it refers to the value and never holds it.
    Script,
}

/// What a tool returns when it came to a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer<T> {
    /// How it ended.
    pub status: Status,
    /// The tool's own fields.
    pub output: T,
    /// What could not be done, beside what could.
    pub problem: Option<ToolError>,
}

impl<T> Answer<T> {
    /// Makes the answer of a tool that did what was asked.
    pub fn ok(output: T) -> Self {
        Self {
            status: Status::Ok,
            output,
            problem: None,
        }
    }
}

/// A capability a model can ask for.
pub trait Tool {
    /// Its arguments. Doc comments are the parameter docs; the JSON Schema is what XML, MCP and
    /// HTTP accept.
    type Args: DeserializeOwned + JsonSchema + Clone + Debug + PartialEq + Send + Sync + 'static;
    /// Its result.
    type Output: Serialize + Send;
    /// Its declaration.
    const SPEC: Spec;
    /// Its name for a person, when the wire name with blanks is not good enough.
    const TITLE: Option<&'static str> = None;
    /// What the callers of a server must know of it, beyond its declaration.
    const SERVICE: Service = Service::LOCAL;

    /// Notes how the texts of a call were written, for a tool to which that matters beside what they
    /// mean.
    fn note_sources(_: &mut Self::Args, _: &RawElement) {}

    /// Returns what the call may touch.
    fn effect(args: &Self::Args) -> Effect;

    /// Says what a call is about, for a person.
    fn title(args: &Self::Args) -> String;

    /// Returns the name of the secret a good call brings, for the blocks after its own.
    fn provides(_: &Self::Args) -> Option<SecretName> {
        None
    }

    /// Returns the id of the job the call is for, when it names one.
    fn job(_: &Self::Args) -> Option<&str> {
        None
    }

    /// Whether the call ends its job, wherever that is.
    fn ends_job(_: &Self::Args) -> bool {
        false
    }

    /// Checks what can be refused before anything of the call's block runs.
    ///
    /// # Errors
    /// The call can never be run as it is.
    fn check(_: &Self::Args) -> Result<(), ToolError> {
        Ok(())
    }

    /// Returns the schema of its result, when that is promised to callers.
    fn output_schema() -> Option<ArgumentSchema> {
        None
    }

    /// Returns what writes a result when its text is wanted, when the tool has something for that.
    fn later(_: &Self::Output) -> Option<Arc<dyn Later>> {
        None
    }

    /// Visits every text of the arguments that may hold a placeholder.
    fn templates(args: &mut Self::Args, visit: &mut dyn FnMut(Use, &mut Template));

    /// Does what was asked.
    ///
    /// # Errors
    /// When it could not; then nothing was changed.
    fn run(
        args: Self::Args,
        context: &Context,
    ) -> impl Future<Output = Result<Answer<Self::Output>, ToolError>> + Send;
}
