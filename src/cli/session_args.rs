//! Arguments of the session that a command works in.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, ValueEnum, ValueHint};

use crate::cli::config::Settings;
use crate::cli::vault::{GivenArgs, VaultFlags};
use crate::tool::Seconds;
use crate::tools::offer::Offer;

/// The tools of a surface.
#[derive(Debug, Clone, Args, Default)]
pub(super) struct OfferArgs {
    /// Tools to offer, separated by commas: names and families; -NAME takes away, as in
    /// `--tools core,-get_value` [default: core; for an MCP client without plan]
    #[arg(
        long,
        value_name = "WORD,...",
        value_delimiter = ',',
        allow_hyphen_values = true,
        global = true
    )]
    tools: Vec<String>,
}

impl OfferArgs {
    /// Returns the tools that were chosen.
    ///
    /// # Errors
    /// A word that names no tool that can be offered.
    pub(super) fn offer(&self) -> anyhow::Result<Offer> {
        self.offer_or(Offer::default())
    }

    /// Returns the arguments that mean the same.
    pub(super) fn as_args(&self) -> Vec<OsString> {
        match self.tools.is_empty() {
            true => Vec::new(),
            false => vec![format!("--tools={}", self.tools.join(",")).into()],
        }
    }

    /// As [`Self::offer`], with another default.
    ///
    /// # Errors
    /// As [`Self::offer`].
    pub(super) fn offer_or(&self, default: Offer) -> anyhow::Result<Offer> {
        if self.tools.is_empty() {
            return Ok(default);
        }
        let offer = Offer::parse(self.tools.iter().map(String::as_str)).context("--tools")?;
        let settings = Settings::load()?;
        Ok(offer.disabling(settings.disabled_tools()))
    }
}

/// The session of the calls and the secrets they may use.
#[derive(Debug, Args, Default)]
pub(super) struct SessionArgs {
    #[command(flatten)]
    pub(super) offer: OfferArgs,
    /// Directory to start in [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) cwd: Option<PathBuf>,
    /// Keep edit and read inside this directory
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) root: Option<PathBuf>,
    /// Shell of the session [default: $KARYI_SHELL, else `shell` in config.toml, else bash; for an
    /// MCP client $SHELL when it is bash or zsh]
    #[arg(long, value_name = "PATH", value_hint = ValueHint::ExecutablePath)]
    pub(super) shell: Option<PathBuf>,
    /// Start the shell without the user's start-up files; `karyi run` reads them only for a shell
    /// that was chosen
    #[arg(long)]
    pub(super) no_rc: bool,
    /// Seconds for the user's start-up files; what they have set by then stays [default: 10]
    #[arg(long, value_name = "SECONDS", conflicts_with = "no_rc")]
    pub(super) rc_timeout: Option<Seconds>,
    /// Set an environment variable in the session
    #[arg(long, value_name = "K=V", value_parser = assignment)]
    pub(super) env: Vec<(OsString, OsString)>,
    /// Seconds a command may run before its result is final [default: 120; no limit for `run` on a terminal]
    #[arg(long, value_name = "SECONDS")]
    pub(super) timeout: Option<Seconds>,
    /// Edits whose result shows a diff [default: full for text, else changed]
    #[arg(long, value_enum, value_name = "EDITS")]
    pub(super) diff: Option<DiffMode>,
    /// Maximum bytes of output per result, half from the start and half from the end; config.toml
    /// may set this and the following limits, as max_output [default: 32768]
    #[arg(long, value_name = "BYTES")]
    pub(super) max_output: Option<usize>,
    /// Maximum lines that <read> shows of a file [default: 2000]
    #[arg(long, value_name = "LINES")]
    pub(super) max_lines: Option<usize>,
    /// Maximum bytes that <read> shows of a file or a search [default: 61440]
    #[arg(long, value_name = "BYTES")]
    pub(super) max_read: Option<usize>,
    /// Maximum bytes that <read> shows of one line [default: 2000]
    #[arg(long, value_name = "BYTES")]
    pub(super) max_line: Option<usize>,
    /// Maximum bytes of all texts in a report [default: 102400]
    #[arg(long, value_name = "BYTES")]
    pub(super) max_report: Option<usize>,
    /// Maximum size of a file with the whole output of a call whose result shows only a part
    /// [default: 268435456]
    #[arg(long, value_name = "BYTES")]
    pub(super) max_output_file: Option<u64>,
    /// Keep the output files after the run
    #[arg(long)]
    pub(super) keep: bool,
    #[command(flatten)]
    pub(super) vault: VaultFlags,
    #[command(flatten)]
    pub(super) given: GivenArgs,
    /// Restrict the use of secrets with the tables [secret.NAME] of a TOML file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(super) policy: Option<PathBuf>,
    /// Consent to the use of a secret whose policy says use=ask
    #[arg(long, value_name = "NAME")]
    pub(super) allow: Vec<String>,
}

/// Edits whose result shows a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum DiffMode {
    /// None
    None,
    /// Those that replaced a text other than the one in <find>, such as with other blanks
    Changed,
    /// All, with the texts of new and deleted files
    Full,
}

fn assignment(text: &str) -> Result<(OsString, OsString), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err("expected KEY=VALUE".into()),
    }
}
