//! What can be said on the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

use crate::cli::var::args::VarArgs;
use crate::cli::vault::VaultFlags;
use crate::reference::grammar::Notation;
use crate::render::Format;
use crate::tool::Seconds;

/// A safe pair of hands for any language model: ToolsXML in, exact results out.
///
/// With no command and a script on standard input, the same as `karyi run -`.
#[derive(Debug, Parser)]
#[command(name = "karyi", version, after_help = EXIT_STATUS)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
}

const EXIT_STATUS: &str = "\
Exit status:
  0    every result is good
  1    a call failed, or still ran when its time was up or at the end
  2    wrong usage, a missing file, or something was refused
  3    a value or an answer is needed and nobody can be asked
  130  interrupted
  255  a bug in karyi";

/// A command.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the <tools> blocks of scripts or of a model's answer
    Run(Box<RunArgs>),
    /// Show the calls of a script or of a model's answer, or what is wrong with it; run nothing
    Parse(ParseArgs),
    /// List the tools, explain one, or print the text for a model's system prompt
    Tools(ToolsArgs),
    /// Keep secrets that scripts use and no model sees
    Var(Box<VarArgs>),
    /// Check what works on this machine, and tell what to do about what does not
    Doctor(DoctorArgs),
    /// Print a completion script
    Completions {
        /// The shell it is for
        shell: clap_complete::Shell,
    },
}

/// Arguments of `karyi run`.
#[derive(Debug, Args, Default)]
#[command(after_help = EXIT_STATUS)]
pub(super) struct RunArgs {
    /// Scripts to run one after another in one session, one report each; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "code")]
    pub(super) files: Vec<PathBuf>,
    /// Run this text
    #[arg(short = 'c', value_name = "XML")]
    pub(super) code: Option<String>,
    /// Shape of the report [default: text on a terminal, else xml]
    #[arg(long, value_enum)]
    pub(super) format: Option<FormatName>,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub(super) json: bool,
    /// Accept only well-formed XML and repair nothing
    #[arg(long)]
    pub(super) strict: bool,
    /// Start each call as soon as its end is certain: with --strict at its end tag, else when the
    /// next tag is read
    #[arg(long)]
    pub(super) stream: bool,
    /// Check the script and list its calls; run nothing
    #[arg(long, conflicts_with = "stream")]
    pub(super) dry_run: bool,
    /// Directory to start in [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) cwd: Option<PathBuf>,
    /// Keep edit and read inside this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) root: Option<PathBuf>,
    /// Shell of the session [default: $SHELL when supported, else bash, else sh]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    pub(super) shell: Option<PathBuf>,
    /// Start the shell without the user's start-up files
    #[arg(long)]
    pub(super) no_rc: bool,
    /// Set an environment variable in the session
    #[arg(long, value_name = "K=V", value_parser = assignment)]
    pub(super) env: Vec<(OsString, OsString)>,
    /// Seconds a command may run before its result is final [default: no limit]
    #[arg(long, value_name = "SECONDS")]
    pub(super) timeout: Option<Seconds>,
    /// Most bytes of output kept per result, half from the start and half from the end
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_MAX_OUTPUT)]
    pub(super) max_output: usize,
    /// Most bytes of a file with the whole output of a call whose result shows only a part of it
    #[arg(long, value_name = "BYTES", default_value_t = crate::limits::OUTPUT_FILE_BYTES)]
    pub(super) max_output_file: u64,
    /// Keep the files with whole outputs after the run
    #[arg(long)]
    pub(super) keep: bool,
    /// Never ask for values on the terminal
    #[arg(long)]
    pub(super) no_interactive: bool,
    #[command(flatten)]
    pub(super) vault: VaultFlags,
    /// Run nothing when the store with the secrets cannot be read
    #[arg(long)]
    pub(super) require_vault: bool,
    /// Read secrets for this run from this descriptor: NAME, NUL, VALUE, NUL, and so on
    #[arg(long, value_name = "N")]
    pub(super) vars_fd: Option<std::os::fd::RawFd>,
    /// What happens when a value is asked for [default: $KARYI_VARS_MODE, else interactive]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(super) vars_mode: Option<VarsMode>,
    /// Narrow what secrets may be used for, by the tables [secret.NAME] of a TOML file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) policy: Option<PathBuf>,
    /// Agree to the use of a secret whose policy says use=ask
    #[arg(long, value_name = "NAME")]
    pub(super) allow: Vec<String>,
}

/// What happens when a value is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum VarsMode {
    /// The user is asked on the terminal
    Interactive,
    /// Nobody is asked; a line on standard error says what is missing
    Warn,
}

const DEFAULT_MAX_OUTPUT: usize =
    crate::limits::OUTPUT_HEAD_BYTES + crate::limits::OUTPUT_TAIL_BYTES;

impl RunArgs {
    /// Returns the arguments of a script on standard input.
    pub(super) fn from_stdin() -> Self {
        Self {
            files: vec!["-".into()],
            max_output: DEFAULT_MAX_OUTPUT,
            max_output_file: crate::limits::OUTPUT_FILE_BYTES,
            ..Self::default()
        }
    }
}

/// Arguments of `karyi parse`.
#[derive(Debug, Args)]
#[command(after_help = PARSE_STATUS)]
pub(super) struct ParseArgs {
    /// The text to read; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) file: Option<PathBuf>,
    /// Accept only well-formed XML and repair nothing
    #[arg(long)]
    pub(super) strict: bool,
    /// As JSON: a list of calls, or an object that says what is wrong
    #[arg(long)]
    pub(super) json: bool,
    /// Give the parser so many bytes at a time; the calls are the same for every size
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) chunk: Option<u64>,
}

const PARSE_STATUS: &str = "\
Warnings and repairs are told on standard error.

Exit status:
  0    the text was read to its end; a block that was ignored is only a warning
  2    wrong usage, a missing file, or the text is refused";

/// Arguments of `karyi doctor`.
#[derive(Debug, Args)]
#[command(after_help = DOCTOR_STATUS)]
pub(super) struct DoctorArgs {
    /// As one JSON object
    #[arg(long)]
    pub(super) json: bool,
    /// Shell of the session that is tried [default: $SHELL when supported, else bash, else sh]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    pub(super) shell: Option<PathBuf>,
}

const DOCTOR_STATUS: &str = "\
Each line is ok, limited (a session works without it) or missing (a session needs it).

Exit status:
  0    a session works
  1    something is missing that a session needs
  2    wrong usage";

/// Names of the report formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FormatName {
    /// For a person
    Text,
    /// One XML element
    Xml,
    /// One JSON object on one line
    Json,
    /// One JSON object per event
    Jsonl,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Text => Self::Text,
            FormatName::Xml => Self::Xml,
            FormatName::Json => Self::Json,
            FormatName::Jsonl => Self::Jsonl,
        }
    }
}

/// Arguments of `karyi tools`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(super) struct ToolsArgs {
    #[command(subcommand)]
    pub(super) topic: Option<ToolsTopic>,
    /// A tool to explain, or `prompt` for the text of a model's system prompt
    pub(super) name: Option<String>,
    /// As JSON, with the JSON Schema of the arguments
    #[arg(long)]
    pub(super) json: bool,
    /// The family of tools the prompt is about
    #[arg(long, value_name = "FAMILY", default_value = "core")]
    pub(super) family: String,
    /// Leave the names of secrets out of the prompt
    #[arg(long)]
    pub(super) no_var_names: bool,
}

/// What `karyi tools` prints beside the list.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(super) enum ToolsTopic {
    /// Print the grammar of the <tools> blocks, or the JSON Schema of the calls
    Grammar {
        /// How it is written
        #[arg(value_name = "KIND", value_parser = notation())]
        notation: Notation,
    },
}

fn notation() -> impl TypedValueParser<Value = Notation> {
    let value = |n: Notation| PossibleValue::new(n.as_str()).help(n.summary());
    PossibleValuesParser::new(Notation::ALL.map(value)).try_map(|name| {
        let mut all = Notation::ALL.into_iter();
        all.find(|n| n.as_str() == name).ok_or("no such notation")
    })
}

fn assignment(text: &str) -> Result<(OsString, OsString), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err("expected KEY=VALUE".into()),
    }
}
