//! Arguments of the command line.

#[cfg(feature = "serve")]
use std::net::IpAddr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

use crate::cli::ask::args::{AskArgs, ModelArgs};
use crate::cli::assistant::args::{ChatArgs, StartArgs};
use crate::cli::chats::ChatsArgs;
use crate::cli::config::ConfigArgs;
use crate::cli::import::ImportArgs;
use crate::cli::policy::PolicyArgs;
pub(super) use crate::cli::session_args::{DiffMode, OfferArgs, SessionArgs};
use crate::cli::supervise::args::SuperviseArgs;
use crate::cli::supervisor_args::{RoleName, StateDirArgs};
use crate::cli::tasks::TasksArgs;
use crate::cli::tell::{AnswerArgs, TellArgs};
use crate::cli::var::args::VarArgs;
use crate::cli::vault::VaultFlags;
use crate::reference::grammar::Notation;
use crate::render::Format;
#[cfg(feature = "serve")]
use crate::tool::Seconds;

/// A safe pair of hands for any language model: ToolsXML in, exact results out.
///
/// With no command the same as `karyi chat` on a terminal, and as `karyi run -` with a script on standard input.
#[derive(Debug, Parser)]
#[command(name = "karyi", version, after_help = OVERVIEW)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    #[command(flatten)]
    pub(super) start: StartArgs,
    /// Add to this file, with the time: messages, the result of each call, and the log of a server in place of
    /// standard error
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) log: Option<PathBuf>,
}

macro_rules! exit_status {
    () => {
        "\
Exit status:
  0    all calls succeeded
  1    a call failed, or its command was still running at the end
  2    wrong usage, a missing file, or refused input
  3    a value or an answer is needed and no user is available
  4    the language model cannot be used
  130  interrupted
  255  a bug in karyi"
    };
}

/// Variables, examples and exit status, for the help of the whole program.
const OVERVIEW: &str = concat!(
    "\
Environment:
  KARYI_SHELL      shell of the session
  KARYI_HOME       directory of karyi's files [default: the XDG directories]
  KARYI_VARS_MODE  interactive or warn: what happens when a script asks for a secret
  NO_COLOR         no colours

Examples:
  karyi run answer.txt              run the <tools> blocks of a saved answer
  model-cli | karyi run --stream -  run them while the model still writes
  karyi run -c '<tools><command>ls</command></tools>'
  karyi tools prompt                print the text that teaches a model the tools
  karyi var set GITHUB_TOKEN        store a secret that scripts use as $KARYI{GITHUB_TOKEN}
  karyi config list                 show the settings, and where each is from
  karyi undo                        undo the last change of files

",
    exit_status!()
);

/// A command.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Run the <tools> blocks of scripts or of a model's answer
    Run(Box<RunArgs>),
    /// Talk with a model on the terminal: it runs commands and edits files
    Chat(Box<ChatArgs>),
    /// Ask a model, run what it writes, and give it the results until it is done
    Ask(Box<AskArgs>),
    /// Work on tasks while nobody watches, with models as Teller, Planner and Workers
    Supervise(Box<SuperviseArgs>),
    /// List, show, export or remove the chats that were kept
    Chats(ChatsArgs),
    /// Leave a message for a supervisor's Teller
    Tell(TellArgs),
    /// Answer the open question of a supervisor
    Answer(AnswerArgs),
    /// List, show, cancel or stop the tasks of a supervisor
    Tasks(TasksArgs),
    /// Take over what the settings of another assistant permit
    Import(ImportArgs),
    /// List the language models of config.toml, or try one
    Model(ModelArgs),
    /// Show the calls of a script or of a model's answer, or what is wrong with it; run nothing
    Parse(ParseArgs),
    /// List the tools, explain one, or print the text for a model's system prompt
    Tools(ToolsArgs),
    /// Manage secrets that scripts use and no model sees
    Var(Box<VarArgs>),
    /// Show and change the settings in config.toml
    Config(ConfigArgs),
    /// Show which commands and edits of a model run without a question, and explain why
    Policy(PolicyArgs),
    /// List the changes of files that karyi made, newest first, or show one
    History(HistoryArgs),
    /// Undo changes of files
    Undo(UndoArgs),
    /// Check what works on this machine and suggest fixes
    Doctor(DoctorArgs),
    /// Serve the tools of sites over HTTP
    #[cfg(feature = "serve")]
    Serve(Box<ServeArgs>),
    /// Import sites into the database of the server
    #[cfg(feature = "serve")]
    Site(SiteArgs),
    /// Show, check or export the ledger of the server
    #[cfg(feature = "serve")]
    Ledger(LedgerArgs),
    /// Call a tool of a server
    #[cfg(feature = "serve")]
    Call(Box<CallArgs>),
    /// Serve the tools to an MCP client over standard input and output
    Mcp(Box<McpArgs>),
    /// Print the manual page of karyi, or of one command
    Man {
        /// The command
        #[arg(value_name = "COMMAND")]
        name: Option<String>,
    },
    /// Print a completion script
    Completions {
        /// Shell to complete for
        shell: clap_complete::Shell,
    },
}

/// Variables, examples and exit status, for the help of `karyi run`.
const RUN_HELP: &str = concat!(
    "\
Environment:
  KARYI_SHELL      shell of the session, unless --shell names one
  KARYI_VARS_MODE  interactive or warn, unless --vars-mode says
  NO_COLOR         no colours

Examples:
  karyi run answer.txt               run the <tools> blocks of a saved answer
  karyi run --dry-run answer.txt     show what they would run and change
  model-cli | karyi run --stream -   run them while the model still writes
  karyi run --json --timeout 30 -c '<tools><command>make</command></tools>'

",
    exit_status!()
);

/// Arguments of `karyi run`.
#[derive(Debug, Args, Default)]
#[command(after_help = RUN_HELP)]
pub(super) struct RunArgs {
    /// Scripts to run one after another in one session, one report each; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "code")]
    pub(super) files: Vec<PathBuf>,
    /// Run this text
    #[arg(short = 'c', value_name = "XML")]
    pub(super) code: Option<String>,
    /// Format of the report [default: text on a terminal, else xml]
    #[arg(long, value_enum)]
    pub(super) format: Option<FormatName>,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    pub(super) json: bool,
    /// Show in the text report what was read, and all of each output
    #[arg(long, short)]
    pub(super) verbose: bool,
    /// Show in the text report only what failed or waits
    #[arg(long, short, conflicts_with = "verbose")]
    pub(super) quiet: bool,
    /// Colours of the text report
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    pub(super) color: ColorMode,
    /// Accept only well-formed XML and repair nothing
    #[arg(long)]
    pub(super) strict: bool,
    /// Start each call as soon as it is complete: with --strict at its end tag, else when the
    /// next tag is read
    #[arg(long)]
    pub(super) stream: bool,
    /// Check the script, list its calls and show what its edits would change; run nothing
    #[arg(long, conflicts_with = "stream")]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) session: SessionArgs,
    /// Play a role of a supervisor: its tools, on the tasks of a state directory. What a Planner delegates is real
    /// once the run ends with status 0
    #[arg(long, value_enum, value_name = "ROLE", conflicts_with_all = ["tools", "dry_run"])]
    pub(super) role: Option<RoleName>,
    #[command(flatten)]
    pub(super) state_dir: StateDirArgs,
    /// Never ask for values on the terminal, and leave commands that wait unanswered
    #[arg(long)]
    pub(super) no_interactive: bool,
    /// Behaviour when a value is asked for [default: $KARYI_VARS_MODE, else interactive]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(super) vars_mode: Option<VarsMode>,
}

/// When the text report is in colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum ColorMode {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Behaviour when a value is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum VarsMode {
    /// The user is asked on the terminal
    Interactive,
    /// The user is not asked; a line on standard error names the missing value
    Warn,
}

impl RunArgs {
    /// Returns the arguments of a script on standard input.
    pub(super) fn from_stdin() -> Self {
        Self {
            files: vec!["-".into()],
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
    #[command(flatten)]
    pub(super) offer: OfferArgs,
    /// Accept only well-formed XML and repair nothing
    #[arg(long)]
    pub(super) strict: bool,
    /// As JSON: a list of calls, or an object with the error
    #[arg(long)]
    pub(super) json: bool,
    /// Feed the parser this many bytes at a time; the calls are the same for every size
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) chunk: Option<u64>,
}

const PARSE_STATUS: &str = "\
Warnings and repairs go to standard error.

Exit status:
  0    the text was read to its end; an ignored block is only a warning
  2    wrong usage, a missing file, or the text is refused";

const HISTORY_EXAMPLES: &str = "\
Examples:
  karyi history --last 5      the five latest changes
  karyi history --file src    changes of files below src
  karyi history show 12       what change 12 did";

/// Arguments of `karyi history`.
#[derive(Debug, Args)]
#[command(after_help = HISTORY_EXAMPLES)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(super) struct HistoryArgs {
    #[command(subcommand)]
    pub(super) topic: Option<HistoryTopic>,
    /// A stray word, for a hint that suggests `show` or `--file`
    #[arg(hide = true)]
    pub(super) meant: Option<String>,
    /// Only changes of this run of karyi
    #[arg(long, value_name = "SESSION")]
    pub(super) session: Option<String>,
    /// Only changes of this file, or of files in this directory
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(super) file: Option<PathBuf>,
    /// Only this many of the latest changes
    #[arg(long, value_name = "K")]
    pub(super) last: Option<usize>,
    /// As a JSON list
    #[arg(long)]
    pub(super) json: bool,
}

/// Further output of `karyi history`.
#[derive(Debug, Subcommand)]
pub(super) enum HistoryTopic {
    /// Show what one change did to its files
    Show {
        /// Its number
        number: u64,
        /// As one JSON object
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        vault: VaultFlags,
    },
}

/// Arguments of `karyi undo`.
#[derive(Debug, Args)]
#[command(after_help = UNDO_STATUS)]
pub(super) struct UndoArgs {
    /// The change to undo, by its number in `karyi history` [default: the last]
    #[arg(value_name = "N", conflicts_with_all = ["last", "session"])]
    pub(super) number: Option<u64>,
    /// Undo this many of the last changes
    #[arg(long, value_name = "K", conflicts_with = "session", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) last: Option<u64>,
    /// Undo all changes of this run of karyi
    #[arg(long, value_name = "SESSION")]
    pub(super) session: Option<String>,
    /// Show what would be done; change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// As one JSON object
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) vault: VaultFlags,
}

const UNDO_STATUS: &str = "\
Undo restores only what karyi wrote, all of it or nothing. What else changed in a file since is kept; where \
both changed the same lines, nothing is undone, and the conflict shows what karyi wrote, what is there now and \
what undo would restore. An undo can be undone. The last change may be in any directory; `karyi history --file \
PATH` lists those of one.

Examples:
  karyi undo --dry-run   show what would be undone
  karyi undo 12          undo the change with this number
  karyi undo --last 3    undo the last three changes

Exit status:
  0    done
  1    a file changed since, or cannot be restored; nothing was changed
  2    wrong usage, or there is no such change
  3    the change is encrypted, and the vault with its key cannot be opened";

/// Arguments of `karyi doctor`.
#[derive(Debug, Args)]
#[command(after_help = DOCTOR_STATUS)]
pub(super) struct DoctorArgs {
    /// As one JSON object
    #[arg(long)]
    pub(super) json: bool,
    /// Shell of the session to try [default: that of `karyi run`, then that of `karyi mcp`]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    pub(super) shell: Option<PathBuf>,
}

const DOCTOR_STATUS: &str = "\
Each line is ok, limited (a session works without it) or missing (a session needs it).

Exit status:
  0    a session works
  1    something is missing that a session needs
  2    wrong usage";

/// Arguments of `karyi serve`.
#[derive(Debug, Args)]
#[cfg(feature = "serve")]
pub(super) struct ServeArgs {
    /// Directory with a site in YAML or JSON files; imported when they changed
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) data: Option<PathBuf>,
    /// Database; the ledger is `ledger.db` beside it [default: site.db in the user's data directory]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) db: Option<PathBuf>,
    /// Port; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 8000)]
    pub(super) port: u16,
    /// Address to listen on [default: 127.0.0.1 and ::1]
    #[arg(long, value_name = "IP")]
    pub(super) bind: Vec<IpAddr>,
    /// Further host name under which clients reach the server, besides the loopback names
    #[arg(long, value_name = "NAME")]
    pub(super) host: Vec<String>,
    /// Origin whose pages may call the server
    #[arg(long, value_name = "ORIGIN")]
    pub(super) origin: Vec<String>,
    /// Certificate chain, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key", value_hint = ValueHint::FilePath)]
    pub(super) tls_cert: Option<PathBuf>,
    /// Key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", value_hint = ValueHint::FilePath)]
    pub(super) tls_key: Option<PathBuf>,
    /// A proxy in front of the server terminates TLS
    #[arg(long)]
    pub(super) behind_proxy: bool,
    /// File with the key for X-Internal-API-Key, or JSON with several
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) key_file: Option<PathBuf>,
    /// JWKS file with the keys of tokens; read again when it changes
    #[arg(long, value_name = "FILE", requires_all = ["jwt_issuer", "jwt_audience"], value_hint = ValueHint::FilePath)]
    pub(super) jwks: Option<PathBuf>,
    /// Issuer that tokens must name
    #[arg(long, value_name = "NAME", requires = "jwks")]
    pub(super) jwt_issuer: Option<String>,
    /// Audience that tokens must name
    #[arg(long, value_name = "NAME", requires = "jwks")]
    pub(super) jwt_audience: Option<String>,
    /// Tools of this machine to offer too, to authenticated callers
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(super) tools: Vec<String>,
    /// Secrets that callers of those tools may use; every other placeholder stays literal text
    #[arg(
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        requires = "tools"
    )]
    pub(super) vars: Vec<String>,
    #[command(flatten)]
    pub(super) vault: VaultFlags,
    /// Tenant of requests to /mcp that name none
    #[arg(long, value_name = "ID", requires = "site")]
    pub(super) tenant: Option<String>,
    /// Site of requests to /mcp that name none
    #[arg(long, value_name = "ID", requires = "tenant")]
    pub(super) site: Option<String>,
    /// Keep edit and read of those tools inside this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) root: Option<PathBuf>,
    /// Calls per second of one principal to one tool for one tenant, and burst; or off
    #[arg(long, value_name = "RATE[:BURST]", default_value = "100:200")]
    pub(super) tool_rate: String,
    /// Calls per second for one tenant, and burst; or off
    #[arg(long, value_name = "RATE[:BURST]", default_value = "500:1000")]
    pub(super) tenant_rate: String,
    /// Store the inputs of calls in the ledger, not only their hashes
    #[arg(long)]
    pub(super) ledger_input: bool,
    /// Collector to send a span of every call to, OTLP as JSON; for example http://localhost:4318
    #[arg(long, value_name = "URL")]
    pub(super) otlp_endpoint: Option<String>,
    /// Write no log
    #[arg(long)]
    pub(super) quiet: bool,
}

/// Arguments of `karyi mcp`.
#[derive(Debug, Args)]
#[command(after_help = MCP_HELP)]
pub(super) struct McpArgs {
    #[command(flatten)]
    pub(super) session: SessionArgs,
    /// Calls that run without a question
    #[arg(long, value_enum, value_name = "CALLS", default_value_t)]
    pub(super) approve: McpApprove,
    #[cfg(feature = "serve")]
    #[command(flatten)]
    pub(super) site: SiteFlags,
}

/// Calls of an MCP client that run without a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum McpApprove {
    /// All: the client asks
    #[default]
    Full,
    /// As `approval` in config.toml says (see `karyi policy`); the client shows a form for others
    Ask,
}

/// The site whose tools `karyi mcp` offers.
#[cfg(feature = "serve")]
#[derive(Debug, Args)]
pub(super) struct SiteFlags {
    /// Offer the tools of this tenant's site too
    #[arg(long, value_name = "ID", requires = "site")]
    pub(super) tenant: Option<String>,
    /// The site
    #[arg(long, value_name = "ID", requires = "tenant")]
    pub(super) site: Option<String>,
    /// Directory with that site in YAML or JSON files; imported when they changed
    #[arg(long, value_name = "DIR", requires = "site", value_hint = ValueHint::DirPath)]
    pub(super) data: Option<PathBuf>,
    /// Database of sites; the ledger is `ledger.db` beside it [default: site.db in the user's data directory]
    #[arg(long, value_name = "FILE", requires = "site", value_hint = ValueHint::FilePath)]
    pub(super) db: Option<PathBuf>,
}

const MCP_HELP: &str = "\
A client starts this program and speaks JSON-RPC with it, one message per line; revisions 2024-11-05 to \
2026-07-28 of the protocol. All calls of a connection share one shell session and behave as if run one after \
another. A command that exceeds its timeout, 120 seconds by default, goes on as a job. Secrets are entered on a \
local page that the client opens; if the client cannot, get_value fails with an explanation.

Set-up, for example for Claude Code:
  claude mcp add karyi -- karyi mcp
  claude mcp add karyi -- karyi mcp --root .

The end of standard input and SIGTERM end everything: running calls, jobs, shells.";

/// Arguments of `karyi site`.
#[derive(Debug, Args)]
#[cfg(feature = "serve")]
pub(super) struct SiteArgs {
    #[command(subcommand)]
    pub(super) command: SiteCommand,
}

/// Commands of `karyi site`.
#[derive(Debug, Subcommand)]
#[cfg(feature = "serve")]
pub(super) enum SiteCommand {
    /// Import a site, or every site in a directory, from YAML or JSON files
    Import {
        /// The directory
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        directory: PathBuf,
        /// Database [default: site.db in the user's data directory]
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        db: Option<PathBuf>,
    },
}

/// Arguments of `karyi ledger`.
#[derive(Debug, Args)]
#[cfg(feature = "serve")]
pub(super) struct LedgerArgs {
    #[command(subcommand)]
    pub(super) command: LedgerCommand,
    /// Database of the server; its ledger is beside it
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) db: Option<PathBuf>,
    /// As JSON: a list of records, or one object for verify; export always prints JSON lines
    #[arg(long, global = true)]
    pub(super) json: bool,
}

/// Commands of `karyi ledger`.
#[derive(Debug, Subcommand)]
#[cfg(feature = "serve")]
pub(super) enum LedgerCommand {
    /// Show the last calls, one line each
    Tail {
        /// Number of calls
        #[arg(short = 'n', value_name = "COUNT", default_value_t = 20)]
        count: usize,
    },
    /// Show the calls of a trace, or one call
    Show {
        /// Identifier of the trace or the call
        id: String,
    },
    /// Check that no record was changed or removed
    Verify {
        /// An earlier hash, to detect records missing at the end
        #[arg(long, value_name = "HASH")]
        anchor: Option<String>,
    },
    /// Print every record as a line of JSON
    Export,
}

/// Arguments of `karyi call`.
#[derive(Debug, Args)]
#[command(after_help = CALL_STATUS)]
#[cfg(feature = "serve")]
pub(super) struct CallArgs {
    /// The server, for example http://127.0.0.1:8000
    pub(super) url: String,
    /// The tool
    pub(super) tool: String,
    /// Its input as JSON [default: {}]
    #[arg(value_name = "JSON")]
    pub(super) input: Option<String>,
    /// The tenant
    #[arg(long, value_name = "ID")]
    pub(super) tenant: String,
    /// The site
    #[arg(long, value_name = "ID")]
    pub(super) site: String,
    /// The trace [default: a new one]
    #[arg(long, value_name = "ID")]
    pub(super) trace: Option<String>,
    /// The internal key: '$KARYI{NAME}', a secret stored with `karyi var set NAME`
    #[arg(long, value_name = "SECRET", group = "proof")]
    pub(super) key: Option<String>,
    /// File with the internal key
    #[arg(long, value_name = "FILE", group = "proof", value_hint = ValueHint::FilePath)]
    pub(super) key_file: Option<PathBuf>,
    /// The token: '$KARYI{NAME}', a secret
    #[arg(long, value_name = "SECRET", group = "proof")]
    pub(super) token: Option<String>,
    /// File with the token
    #[arg(long, value_name = "FILE", group = "proof", value_hint = ValueHint::FilePath)]
    pub(super) token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) vault: VaultFlags,
    /// Idempotency key: a call sent again with it is not repeated
    #[arg(long, value_name = "KEY")]
    pub(super) idempotency_key: Option<String>,
    /// Certificate authority to trust, PEM [default: those of this machine]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) ca: Option<PathBuf>,
    /// Time limit of all attempts together, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "30")]
    pub(super) timeout: Seconds,
}

#[cfg(feature = "serve")]
const CALL_STATUS: &str = "\
A call is sent again, at most twice, when no answer came, when its time was up, and after 429, 502, \
503 and 504; only if the tool changes nothing or --idempotency-key is given.

Exit status:
  0    the tool did what was asked
  1    it did not
  2    wrong usage, or no answer";

/// Names of the report formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum FormatName {
    /// Text for people
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
    #[command(flatten)]
    pub(super) offer: OfferArgs,
    /// A tool to explain, or `prompt` for the text of a model's system prompt
    pub(super) name: Option<String>,
    /// As JSON, with the JSON Schema of the arguments
    #[arg(long)]
    pub(super) json: bool,
    /// Family of tools in the list and the prompt
    #[arg(
        long,
        value_name = "FAMILY",
        default_value = "core",
        conflicts_with = "tools"
    )]
    pub(super) family: String,
    /// Leave the names of secrets out of the prompt
    #[arg(long)]
    pub(super) no_var_names: bool,
}

/// Further output of `karyi tools`.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(super) enum ToolsTopic {
    /// Print the grammar of the <tools> blocks, or the JSON Schema of the calls
    Grammar {
        /// Notation
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
