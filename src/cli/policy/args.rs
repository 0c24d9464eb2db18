//! Arguments of `karyi policy`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueHint};

use crate::approval::Mode;

/// Arguments of `karyi policy`.
#[derive(Debug, Args)]
#[command(after_help = AFTER, disable_help_subcommand = true)]
pub(in crate::cli) struct PolicyArgs {
    #[command(subcommand)]
    pub(super) command: PolicyCommand,
}

const AFTER: &str = "\
A rule is a command, such as `git push`, `edit:` with a pattern of paths, or `fetch:` with a host. `*` as the last word
of a command stands for any words.

Examples:
  karyi policy explain 'git status > out'
  karyi policy explain edit:src/main.rs
  karyi policy add 'cargo test *'
  karyi policy add --user --deny 'edit:**/.env'
  karyi policy remove 'cargo test *'

Exit status:
  0    done
  1    there is no such stored rule
  2    wrong usage, or a mistake in a file";

/// A command of `karyi policy`.
#[derive(Debug, Subcommand)]
pub(super) enum PolicyCommand {
    /// List the rules for this directory, and where each is from
    List {
        /// As a JSON list
        #[arg(long)]
        json: bool,
    },
    /// Say of a call whether it runs, is asked about, or is denied, and why; run nothing
    Explain {
        /// Script of the shell, `edit:` or `read:` with the path of a file, or `fetch:` with a URL
        #[arg(value_name = "CMD")]
        script: String,
        /// How much runs without a question [default: `approval.mode` in config.toml, else ask]
        #[arg(long, value_name = "MODE", value_parser = mode())]
        mode: Option<Mode>,
        /// As one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Add a rule that allows calls in this project
    Add {
        /// A command, `edit:` with a pattern of paths, or `fetch:` with a host
        rule: String,
        /// Ask about its calls instead
        #[arg(long, conflicts_with = "deny")]
        ask: bool,
        /// Never run its calls
        #[arg(long)]
        deny: bool,
        /// In all projects: the rule goes into config.toml
        #[arg(long)]
        user: bool,
    },
    /// Trust a project: the assistant uses its notes, skills and commands, and its settings may allow calls
    Trust {
        /// A directory of the project [default: this one]
        #[arg(value_hint = ValueHint::DirPath)]
        dir: Option<PathBuf>,
    },
    /// Trust a project no longer
    Untrust {
        /// A directory of the project [default: this one]
        #[arg(value_hint = ValueHint::DirPath)]
        dir: Option<PathBuf>,
    },
    /// Remove a rule that is stored for this project
    Remove {
        /// The rule, as `karyi policy list` shows it
        rule: String,
        /// As one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// Returns the parser of a mode.
fn mode() -> impl TypedValueParser<Value = Mode> {
    let names = Mode::CHOICES.map(Mode::as_str);
    PossibleValuesParser::new(names).map(|name| Mode::parse(&name).unwrap_or_default())
}
