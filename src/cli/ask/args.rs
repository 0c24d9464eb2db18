//! Arguments of `karyi ask` and `karyi model`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use crate::cli::session_args::SessionArgs;
use crate::tool::Seconds;

/// Examples, variables and exit status, for the help of `karyi ask`.
const ASK_HELP: &str = "\
Environment:
  KARYI_MODEL      model to ask, unless --model names one
  KARYI_SHELL      shell of the session, unless --shell names one

Examples:
  karyi ask \"why does the build fail?\"
  karyi ask --approve full \"make the tests pass\"
  git diff | karyi ask \"write a commit message\"
  karyi ask --json --file src/lib.rs \"what is public here?\" | jq -r .answer

Exit status:
  0    the model was done
  1    it was stopped by a limit, or because it did not get on
  2    wrong usage or a missing file
  3    it was done, and its last calls needed an approval that nobody gave
  4    the model could not be used
  130  interrupted
  255  a bug in karyi";

/// Arguments of `karyi ask`.
#[derive(Debug, Args)]
#[command(after_help = ASK_HELP)]
pub(in crate::cli) struct AskArgs {
    /// The request; without it standard input is the request, else standard input is context for it
    #[arg(value_name = "TEXT")]
    pub(in crate::cli) text: Vec<String>,
    /// Add this file to the request, as <read> shows it
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(in crate::cli) file: Vec<PathBuf>,
    /// Model: a name of [models] in config.toml, or PROVIDER:MODEL [default: $KARYI_MODEL, else
    /// `model` in config.toml]
    #[arg(long, value_name = "MODEL")]
    pub(in crate::cli) model: Option<String>,
    /// Calls that run without asking anybody
    #[arg(long, value_enum, value_name = "CALLS", default_value_t)]
    pub(in crate::cli) approve: ApproveMode,
    /// Most requests to the model
    #[arg(long, value_name = "COUNT", default_value_t = 50)]
    pub(in crate::cli) max_steps: u64,
    /// Most tokens of all requests and answers together
    #[arg(long, value_name = "COUNT")]
    pub(in crate::cli) max_tokens: Option<u64>,
    /// Longest time for everything, in seconds
    #[arg(long, value_name = "SECONDS")]
    pub(in crate::cli) max_time: Option<Seconds>,
    /// Add the text of this file to the system prompt
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(in crate::cli) system_file: Option<PathBuf>,
    /// Print one JSON object at the end
    #[arg(long)]
    pub(in crate::cli) json: bool,
    /// Print one JSON object per event and line
    #[arg(long, conflicts_with = "json")]
    pub(in crate::cli) jsonl: bool,
    /// Print the answer only, and no line for each call
    #[arg(long, short)]
    pub(in crate::cli) quiet: bool,
    #[command(flatten)]
    pub(in crate::cli) session: SessionArgs,
    /// Never ask for values on the terminal
    #[arg(long)]
    pub(in crate::cli) no_interactive: bool,
}

/// Arguments of `karyi model`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ModelArgs {
    #[command(subcommand)]
    pub(in crate::cli) topic: ModelTopic,
}

/// A topic of `karyi model`.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum ModelTopic {
    /// List the models of config.toml; `*` marks the one in use
    List {
        /// As a JSON list
        #[arg(long)]
        json: bool,
    },
    /// Ask a model for one word, and tell how long it took
    Test {
        /// The model [default: the one in use]
        #[arg(value_name = "MODEL")]
        name: Option<String>,
        /// As one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// Calls that run without asking anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(in crate::cli) enum ApproveMode {
    /// None: the model only talks
    None,
    /// Those that only read, and those that a rule allows (see `karyi policy`)
    #[default]
    Read,
    /// All but those that a rule denies or asks about
    Full,
}
