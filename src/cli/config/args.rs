//! Arguments of `karyi config`.

use std::ffi::OsString;

use clap::{Args, Subcommand};

/// Arguments of `karyi config`.
#[derive(Debug, Args)]
#[command(after_help = AFTER, disable_help_subcommand = true)]
pub(in crate::cli) struct ConfigArgs {
    #[command(subcommand)]
    pub(super) command: ConfigCommand,
}

const AFTER: &str = "\
`karyi config list` shows every setting. Comments and the order of the file stay as they are.

Examples:
  karyi config set max_output 65536
  karyi config set models.local.provider openai_chat
  karyi config set models.local.base_url http://127.0.0.1:8080/v1
  karyi config set models.local.model qwen2.5-coder-7b
  karyi config set model local
  karyi config set models.claude.key '$KARYI{CLAUDE_KEY}'   the name of a secret

Exit status:
  0    done
  1    the setting has no value
  2    wrong usage, or a mistake in the file";

/// A command of `karyi config`.
#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Print the value of a setting
    Get {
        /// Setting, such as shell or models.local.base_url
        key: String,
    },
    /// Change a setting in the file
    Set {
        /// Setting
        key: String,
        /// Value; lists with commas
        // More words are taken and refused without being repeated: one may be a key.
        #[arg(required = true, allow_hyphen_values = true)]
        value: Vec<OsString>,
    },
    /// Remove a setting or a table such as models.local from the file
    Unset {
        /// Setting
        key: String,
    },
    /// List all settings, their values, and where each value is from
    List {
        /// As a JSON list
        #[arg(long)]
        json: bool,
    },
    /// Edit the file with $VISUAL, else $EDITOR, and check it
    Edit,
    /// Print the path of the file
    Path,
}
