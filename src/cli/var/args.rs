//! Arguments of `karyi var`.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueHint};
use serde::de::DeserializeOwned;

use crate::cli::vault::{LASTING, VaultFlags};
use karyi_vault::policy::{Approval, OutputPolicy, PolicyTerms};
use karyi_vault::store::Kind;

/// Arguments of `karyi var`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(in crate::cli) struct VarArgs {
    #[command(subcommand)]
    pub(super) command: VarCommand,
    #[command(flatten)]
    pub(super) vault: VaultFlags,
}

const AFTER: &str = "\
A script or a model writes $KARYI{NAME} and never sees the value. Values are typed hidden or piped in \
with --stdin, never given as arguments: those are visible in the shell's history and in lists of processes.

Exit status:
  0    done
  1    it failed
  2    wrong usage, or refused
  3    the store needs the user: no keyring, a locked one, a passphrase
  130  interrupted";

const EXEC: &str = "\
The output of the program is not masked. The policy of each secret applies as for a command of a script \
in this directory; starting the program is the consent that --use ask requires.

Exit status:
  that of the program, once started
  126  it cannot be run
  127  it does not exist
  otherwise as for all commands of `karyi var`";

const DOCTOR: &str = "\
Exit status:
  0    all is well
  1    something is missing or limited";

/// A command of `karyi var`.
#[derive(Debug, Subcommand)]
pub(super) enum VarCommand {
    /// Store a value; it is typed hidden
    Set(SetArgs),
    /// Print a value on the terminal
    Get {
        /// Name of the secret
        name: String,
    },
    /// Show the metadata of a secret, without its value
    Show {
        /// Name of the secret
        name: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// List the secrets: names, notes, dates, store, policy; no value is read
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove secrets
    Rm {
        /// Names of the secrets
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
    /// Rename a secret
    Rename {
        /// Current name
        from: String,
        /// New name
        to: String,
    },
    /// Store values of a .env file
    Import(ImportArgs),
    /// Print all values on the terminal, as a .env file
    Export,
    /// Give a secret a new value; note and policy stay
    Rotate(RotateArgs),
    /// Move everything into another store
    Migrate {
        /// The store to move to
        #[arg(long, value_parser = words::<Kind>(LASTING), value_name = "STORE")]
        to: Kind,
    },
    /// Run a program with secrets in its environment
    #[command(after_help = EXEC)]
    Exec {
        /// Names of the secrets
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// The program and its arguments
        #[arg(last = true, required = true, value_name = "CMD")]
        command: Vec<OsString>,
    },
    /// Check the index and the store
    #[command(after_help = DOCTOR)]
    Doctor {
        /// As JSON
        #[arg(long)]
        json: bool,
        /// Rebuild the index from the store
        #[arg(long)]
        repair: bool,
    },
}

/// Arguments of `karyi var set`.
#[derive(Debug, Args)]
pub(super) struct SetArgs {
    /// Name of the secret: letters, digits and _, no digit first
    pub(super) name: String,
    /// Refused: see the end of `karyi var --help`
    #[arg(hide = true, value_name = "VALUE")]
    pub(super) value: Vec<OsString>,
    /// A note: its purpose
    #[arg(long, value_name = "TEXT")]
    pub(super) note: Option<String>,
    #[command(flatten)]
    pub(super) input: InputArgs,
    /// Keep the current value; change only note and policy
    #[arg(long, conflicts_with_all = ["stdin", "session"])]
    pub(super) keep_value: bool,
    /// Send it to the running session, in memory only; --session=PID selects one of several
    #[arg(long, value_name = "PID", num_args = 0..=1, require_equals = true)]
    pub(super) session: Option<Option<u32>>,
    #[command(flatten)]
    pub(super) policy: PolicyArgs,
}

/// Source of a value.
#[derive(Debug, Args)]
pub(super) struct InputArgs {
    /// Read the value from standard input, without one line break at its end
    #[arg(long)]
    pub(super) stdin: bool,
    /// Keep the line break at the end of the input of --stdin
    #[arg(long, requires = "stdin")]
    pub(super) raw: bool,
}

/// Permitted use of a secret.
#[derive(Debug, Args)]
#[command(next_help_heading = "Policy")]
pub(super) struct PolicyArgs {
    /// Tools that may use it: command, input, read, edit, url_fetch
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(super) tools: Option<Vec<String>>,
    /// Hosts url_fetch may send it to, such as api.example.com or *.example.com
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(super) hosts: Option<Vec<String>>,
    /// Programs it is meant for; another one that gets it as an argument gives a warning
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(super) commands: Option<Vec<String>>,
    /// Directories it is bound to; relative ones are resolved here and stored absolute
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_hint = ValueHint::DirPath)]
    pub(super) dirs: Option<Vec<PathBuf>>,
    /// Consent required for its use
    #[arg(long = "use", value_parser = words::<Approval>(APPROVALS), value_name = "WHEN")]
    pub(super) approval: Option<Approval>,
    /// Visible part of results
    #[arg(long, value_parser = words::<OutputPolicy>(OUTPUTS), value_name = "HOW")]
    pub(super) output: Option<OutputPolicy>,
    /// It may be written to files
    #[arg(long)]
    pub(super) write: bool,
    /// Expiry: a date (its last second, in UTC), a time with its zone such as 2030-12-31T18:00+02:00, a duration
    /// from now such as 30d, or never
    #[arg(long, value_name = "WHEN")]
    pub(super) expires: Option<String>,
    /// Accept a value of 4 to 7 bytes, which is masked as a whole word only
    #[arg(long)]
    pub(super) allow_short: bool,
    /// It may be sent to no host
    #[arg(long, conflicts_with = "hosts")]
    no_hosts: bool,
    /// It is meant for any program
    #[arg(long, conflicts_with = "commands")]
    no_commands: bool,
    /// It is bound to no directory
    #[arg(long, conflicts_with = "dirs")]
    no_dirs: bool,
    /// It may not be written to files; --write also added edit to its tools
    #[arg(long, conflicts_with = "write")]
    no_write: bool,
    /// Refuse a value of 4 to 7 bytes again
    #[arg(long, conflicts_with = "allow_short")]
    no_allow_short: bool,
}

const APPROVALS: &[(&str, &str)] = &[
    ("ask", "The user is asked, or --allow NAME is given"),
    ("session", "Running a script is the consent"),
    ("always", "Also without a user"),
];
const OUTPUTS: &[(&str, &str)] = &[
    ("redact", "Everything except the value"),
    ("sealed", "The status of a url_fetch, and nothing else"),
];

/// Parses one of some words, which have the same names in policy files.
fn words<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    words: &'static [(&'static str, &'static str)],
) -> impl TypedValueParser<Value = T> {
    let possible = words.iter();
    let possible = possible.map(|(word, help)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(possible).try_map(|word| serde_json::from_value::<T>(word.into()))
}

impl PolicyArgs {
    /// Returns the given policy terms; directories become absolute.
    pub(super) fn terms(&self) -> PolicyTerms {
        let either = |yes: bool, no: bool| (yes || no).then_some(yes);
        let dirs = self.dirs.as_ref();
        PolicyTerms {
            tools: self.tools.clone(),
            hosts: self.hosts.clone().or(self.no_hosts.then(Vec::new)),
            commands: self.commands.clone(),
            dirs: dirs.map(|dirs| dirs.iter().map(|dir| absolute(dir)).collect()),
            approval: self.approval,
            output: self.output,
            write: either(self.write, self.no_write),
            expires: self.expires.clone(),
            allow_short: either(self.allow_short, self.no_allow_short),
            any_command: self.no_commands,
            any_dir: self.no_dirs,
        }
    }
}

fn absolute(dir: &Path) -> PathBuf {
    let found = match dir.as_os_str().as_encoded_bytes() {
        // Only a shell can expand it; it is refused unchanged.
        [b'~', ..] => return dir.to_owned(),
        // The target depends on links, so the directory must exist.
        _ if dir.components().any(|part| part == Component::ParentDir) => dir.canonicalize(),
        _ => std::path::absolute(dir),
    };
    found.unwrap_or_else(|_| dir.to_owned())
}

/// Arguments of `karyi var import`.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// The file; without an option below, entries that look like secrets are listed and nothing is stored
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) file: PathBuf,
    /// Store entries that look like secrets
    #[arg(long, group = "choice")]
    pub(super) yes: bool,
    /// Store these entries
    #[arg(long, value_name = "NAMES", value_delimiter = ',', group = "choice")]
    pub(super) select: Vec<String>,
    /// Store all entries
    #[arg(long, group = "choice")]
    pub(super) all: bool,
    /// Replace existing secrets, too
    #[arg(long)]
    pub(super) replace: bool,
    #[command(flatten)]
    pub(super) policy: PolicyArgs,
}

/// Arguments of `karyi var rotate`.
#[derive(Debug, Args)]
pub(super) struct RotateArgs {
    /// Name of the secret
    pub(super) name: String,
    #[command(flatten)]
    pub(super) input: InputArgs,
    /// Expiry of the new value, as with set
    #[arg(long, value_name = "WHEN")]
    pub(super) expires: Option<String>,
}
