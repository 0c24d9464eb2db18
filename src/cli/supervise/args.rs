//! Arguments of `karyi supervise`.

use clap::Args;

use crate::cli::config::WorkerPower;
use crate::cli::session_args::SessionArgs;
use crate::cli::supervisor_args::StateDirArgs;

/// Examples and exit status, for the help of `karyi supervise`.
const SUPERVISE_HELP: &str = "\
Workers run what they are told without a question: start it where you would run their commands
yourself, or in a container. Settings are in [supervise] of config.toml.

Examples:
  karyi supervise --worker full           work until Ctrl+C
  karyi supervise --worker read-only --once   do what waits, then end

Exit status:
  0    --once, and there is nothing left to do
  1    --once, and the tokens of the day are used up; or the directory or standard output cannot be used
  2    wrong usage, or another supervisor has the directory
  4    no model could be used
  129, 130, 143  stopped by a signal
  255  a bug in karyi";

/// Arguments of `karyi supervise`.
#[derive(Debug, Args)]
#[command(after_help = SUPERVISE_HELP)]
pub(in crate::cli) struct SuperviseArgs {
    /// What Workers may do [default: `worker` of [supervise] in config.toml]
    #[arg(long, value_enum, value_name = "CALLS")]
    pub(in crate::cli) worker: Option<WorkerPower>,
    #[command(flatten)]
    pub(in crate::cli) state_dir: StateDirArgs,
    /// Work until there is nothing to do, instead of until it is stopped
    #[arg(long)]
    pub(in crate::cli) once: bool,
    /// Model of all roles: a name of [models] in config.toml, or PROVIDER:MODEL [default: those of
    /// [supervise], else $KARYI_MODEL, else `model` in config.toml]
    #[arg(long, value_name = "MODEL")]
    pub(in crate::cli) model: Option<String>,
    /// Print one JSON object per event and line
    #[arg(long)]
    pub(in crate::cli) json: bool,
    #[command(flatten)]
    pub(in crate::cli) session: SessionArgs,
}
