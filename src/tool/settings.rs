//! Settings of tools, from the tables `[tools.NAME]` of the user's configuration.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::tool::own_directories::OwnDirectories;
use crate::tool::web_settings::WebSettings;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;

/// Settings of tools.
#[derive(Debug, Clone, Default)]
pub struct ToolSettings {
    /// Tools that are switched off.
    pub disabled: BTreeSet<String>,
    /// The two directories of the family `assistant`.
    pub directories: OwnDirectories,
    /// Settings of `read_file`.
    pub read_file: ReadFileSettings,
    /// Settings of `write_file`.
    pub write_file: WriteFileSettings,
    /// Settings of `bash`.
    pub bash: BashSettings,
    /// Settings of `todo_update`.
    pub todo_update: TodoUpdateSettings,
    /// Settings of the tools that reach the web.
    pub web: WebSettings,
}

/// Settings of `read_file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadFileSettings {
    /// Most bytes of UTF-8 that a result has.
    pub max_bytes: u64,
    /// Names and ends of paths that are not read.
    pub deny_paths: Vec<String>,
}

impl Default for ReadFileSettings {
    fn default() -> Self {
        Self {
            max_bytes: limits::READ_FILE_TOOL_BYTES,
            deny_paths: Vec::new(),
        }
    }
}

/// Settings of `write_file`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteFileSettings {
    /// Most bytes of the content of one call.
    pub max_bytes: u64,
}

impl Default for WriteFileSettings {
    fn default() -> Self {
        Self {
            max_bytes: limits::WRITE_FILE_TOOL_BYTES,
        }
    }
}

/// Settings of `bash`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BashSettings {
    /// Time limit of a call that names none.
    pub timeout: Duration,
    /// Most bytes of output that a result has.
    pub max_output_bytes: usize,
    /// Paths that no script names.
    pub deny_paths: Vec<String>,
    /// Words that no script has.
    pub deny_tokens: Vec<String>,
}

impl Default for BashSettings {
    fn default() -> Self {
        Self {
            timeout: limits::BASH_TOOL_TIMEOUT,
            max_output_bytes: limits::BASH_TOOL_OUTPUT_BYTES,
            deny_paths: Vec::new(),
            deny_tokens: Vec::new(),
        }
    }
}

/// Settings of `todo_update`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TodoUpdateSettings {
    /// True to judge entries by plain rules, without a language model.
    pub without_model: bool,
}

impl ToolSettings {
    /// Checks that a tool is switched on.
    ///
    /// # Errors
    /// `tool_disabled`.
    pub fn check_enabled(&self, tool: &str) -> Result<(), ToolError> {
        if !self.disabled.contains(tool) {
            return Ok(());
        }
        let message =
            format!("{tool} tool is disabled (enable via config: tools.{tool}.enabled=true)");
        Err(ToolError::new(ErrorCode::ToolDisabled, message))
    }
}
