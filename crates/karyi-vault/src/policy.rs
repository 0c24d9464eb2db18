//! Policies: the permitted uses of a secret.
//!
//! A [`Policy`] is stored with its value. [`PolicyTerms`] are requested changes: the flags of a command or a table of
//! a policy file, with the same names. Terms make a new policy or narrow an existing one. This module decides; a stage
//! of the executor enforces.

mod file;
mod host;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Span, Timestamp, Zoned, civil, tz::TimeZone};
use serde::{Deserialize, Serialize};

use crate::visible::visible_bytes;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::SecretName;

pub use file::PolicyFile;
pub use host::Host;

/// Tools that a policy can name: those whose texts may contain a placeholder.
pub const TOOLS: &[&str] = &["command", "input", "read", "edit", "url_fetch"];

/// Tools that may use a secret whose policy names none.
const DEFAULT_TOOLS: &[&str] = &["command", "input", "url_fetch"];

/// Approval that the user must give before a secret is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Approval {
    /// The user is asked, or names the secret at the start of the run.
    Ask,
    /// Running a script is the approval.
    #[default]
    Session,
    /// No approval, even when no user is present.
    Always,
}

/// Part of the result that is shown of a call that used a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OutputPolicy {
    /// Everything but the value.
    #[default]
    Redact,
    /// The status only.
    Sealed,
}

/// Permitted uses of a secret. The keys are the names of the flags.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// Tools that may use it; all when `None`.
    pub tools: Option<BTreeSet<String>>,
    /// Hosts it may be sent to. `None` means that the value came without a policy: a policy file may name hosts, and
    /// until then it is sent nowhere.
    pub hosts: Option<Vec<Host>>,
    /// Programs it is meant for; any when `None`. A shell script only causes a warning.
    pub commands: Option<BTreeSet<String>>,
    /// Directories in which it may be used; any when `None`.
    pub dirs: Option<Vec<PathBuf>>,
    /// Approval that the user must give.
    #[serde(rename = "use")]
    pub approval: Approval,
    /// Part of results that is shown.
    pub output: OutputPolicy,
    /// True when it may be written to files.
    pub write: bool,
    /// Expiry.
    pub expires: Option<Timestamp>,
    /// True when it may be so short that it is masked as a whole word only.
    pub allow_short: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            tools: Some(DEFAULT_TOOLS.iter().map(|tool| (*tool).into()).collect()),
            hosts: Some(Vec::new()),
            commands: None,
            dirs: None,
            approval: Approval::Session,
            output: OutputPolicy::Redact,
            write: false,
            expires: None,
            allow_short: false,
        }
    }
}

/// Requested changes of a policy; `None` leaves a part unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PolicyTerms {
    /// Names of tools.
    pub tools: Option<Vec<String>>,
    /// Hosts, such as `api.example.com`, `*.example.com` or `localhost:8080`.
    pub hosts: Option<Vec<String>>,
    /// Names of programs.
    pub commands: Option<Vec<String>>,
    /// Absolute directories.
    pub dirs: Option<Vec<PathBuf>>,
    /// `ask`, `session` or `always`.
    #[serde(rename = "use")]
    pub approval: Option<Approval>,
    /// `redact` or `sealed`.
    pub output: Option<OutputPolicy>,
    /// Permission to write the secret to files.
    pub write: Option<bool>,
    /// A date, a moment, a time from now such as `30d`, or `never`.
    pub expires: Option<String>,
    /// Permission for a short value.
    #[serde(alias = "allow_short")]
    pub allow_short: Option<bool>,
    /// True when the restriction to programs is removed. A file, which can only narrow, cannot request it.
    #[serde(skip)]
    pub any_command: bool,
    /// True when the restriction to directories is removed.
    #[serde(skip)]
    pub any_dir: bool,
}

impl PolicyTerms {
    /// Returns true when no change is requested.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Makes the policy of a new secret.
    ///
    /// # Errors
    /// `bad_policy` when a term is invalid or two contradict each other.
    pub fn policy(&self, now: Timestamp) -> Result<Policy, ToolError> {
        self.applied(&Policy::default(), now)
    }

    /// Returns a policy with the requested changes.
    ///
    /// # Errors
    /// `bad_policy` when a term is invalid or two contradict each other.
    pub fn applied(&self, policy: &Policy, now: Timestamp) -> Result<Policy, ToolError> {
        let mut new = policy.clone();
        let write = self.write.unwrap_or(policy.write);
        if let Some(tools) = tools(self)? {
            new.tools = Some(tools);
        } else if self.output == Some(OutputPolicy::Sealed) {
            new.tools = Some(BTreeSet::from(["url_fetch".to_owned()]));
        } else if let (Some(write), Some(tools)) = (self.write, &mut new.tools) {
            if write {
                tools.insert(EDIT.to_owned());
            } else if tools.len() > 1 {
                tools.remove(EDIT);
            }
        }
        new.hosts = hosts(self)?.or(new.hosts);
        new.commands = commands(self)?.or(new.commands.filter(|_| !self.any_command));
        new.dirs = dirs(self)?.or(new.dirs.filter(|_| !self.any_dir));
        new.approval = self.approval.unwrap_or(new.approval);
        new.output = self.output.unwrap_or(new.output);
        new.write = write;
        if let Some(text) = &self.expires {
            new.expires = match text.as_str() {
                NEVER => None,
                text => Some(expiry(text, Some(now))?),
            };
        }
        new.allow_short = self.allow_short.unwrap_or(new.allow_short);
        new.check()?;
        Ok(new)
    }
}

impl Policy {
    /// Returns the policy of a value from `--vars-fd` or the environment: its user supplied it for this run, for every
    /// tool.
    #[must_use]
    pub fn unrestricted() -> Self {
        Self {
            tools: None,
            hosts: None,
            approval: Approval::Always,
            write: true,
            ..Self::default()
        }
    }

    /// Checks that no parts contradict each other.
    ///
    /// # Errors
    /// `bad_policy`, with the contradiction.
    pub fn check(&self) -> Result<(), ToolError> {
        if self.output == OutputPolicy::Redact {
            return Ok(());
        }
        let is_fetched_only =
            (self.tools.as_ref()).is_some_and(|tools| tools.iter().all(|tool| tool == "url_fetch"));
        let has_hosts = self.hosts.as_ref().is_some_and(|hosts| !hosts.is_empty());
        if !is_fetched_only {
            let message =
                "output=sealed goes with tools=url_fetch only: a shell keeps what it was given";
            return Err(bad(message).with_hint("leave out --tools"));
        }
        if !has_hosts {
            return Err(bad("output=sealed needs hosts").with_hint("name them with --hosts"));
        }
        if self.write {
            return Err(bad("output=sealed and write contradict each other"));
        }
        Ok(())
    }

    /// Returns the policy narrowed by terms. The result never permits more than the policy.
    ///
    /// # Errors
    /// `bad_policy` when a term is invalid.
    pub fn narrowed(&self, terms: &PolicyTerms) -> Result<Self, ToolError> {
        let end = terms.expires.as_ref().filter(|text| *text != NEVER);
        Ok(self.within(&Self {
            tools: tools(terms)?,
            hosts: hosts(terms)?,
            commands: commands(terms)?,
            dirs: dirs(terms)?,
            approval: terms.approval.unwrap_or(Approval::Always),
            output: terms.output.unwrap_or(OutputPolicy::Redact),
            write: terms.write.unwrap_or(true),
            expires: end.map(|text| expiry(text, None)).transpose()?,
            allow_short: true,
        }))
    }

    /// Returns what two policies both permit.
    #[must_use]
    pub fn within(&self, other: &Self) -> Self {
        let sealed = [self.output, other.output].contains(&OutputPolicy::Sealed);
        let covers = |outer: &PathBuf, inner: &PathBuf| inner.starts_with(outer);
        Self {
            tools: both(&self.tools, &other.tools, |a, b| a & b),
            hosts: both(&self.hosts, &other.hosts, |a, b| {
                narrower(a, b, Host::covers)
            }),
            commands: both(&self.commands, &other.commands, |a, b| a & b),
            dirs: both(&self.dirs, &other.dirs, |a, b| narrower(a, b, covers)),
            approval: self.approval.min(other.approval),
            output: if sealed {
                OutputPolicy::Sealed
            } else {
                OutputPolicy::Redact
            },
            write: self.write && other.write && !sealed,
            expires: both(&self.expires, &other.expires, |a, b| *a.min(b)),
            allow_short: self.allow_short && other.allow_short,
        }
    }

    /// Checks that a tool may use the secret now, in a session that is in `cwd`.
    ///
    /// # Errors
    /// `secret_expired`, `sealed_in_shell` or `policy_denied`.
    pub fn check_use(
        &self,
        name: &SecretName,
        tool: &str,
        cwd: &Path,
        now: Timestamp,
    ) -> Result<(), ToolError> {
        self.check_end(name, now)?;
        if self.output == OutputPolicy::Sealed && tool != "url_fetch" {
            let message = format!("{name} is sealed, and <{tool}> could show it");
            let change = change(name, &format!("--output redact {}", self.with_tool(tool)));
            let hint = format!(
                "a sealed secret is for <url_fetch>; ask the user to unseal it with {change}, or use another secret"
            );
            return Err(ToolError::new(ErrorCode::SealedInShell, message).with_hint(hint));
        }
        if self
            .tools
            .as_ref()
            .is_some_and(|tools| !tools.contains(tool))
        {
            let what = format!("does not allow <{tool}>");
            return Err(denied(name, &what, &self.with_tool(tool)));
        }
        let is_here = |dirs: &Vec<PathBuf>| dirs.iter().any(|dir| cwd.starts_with(dir));
        if !self.dirs.as_ref().is_none_or(is_here) {
            let what = format!("does not allow the directory {}", cwd.display());
            return Err(denied(name, &what, &self.with_directory(cwd)));
        }
        Ok(())
    }

    /// Returns the flag that adds a tool to the policy; for edits that is the permission to write.
    fn with_tool(&self, tool: &str) -> String {
        match tool == EDIT && !self.write {
            true => WRITE.to_owned(),
            false => with("tools", self.tools.iter().flatten(), tool),
        }
    }

    /// Returns the flag that adds a directory to the policy. A name that a list or a terminal cannot show is left for
    /// the user to fill in.
    fn with_directory(&self, more: &Path) -> String {
        let own = self.dirs.iter().flatten().map(PathBuf::as_path);
        let is_told = |dir: &Path| {
            let text = dir.to_str();
            text.is_some_and(|text| !text.contains(|c: char| c == ',' || c.is_control()))
        };
        match own.clone().chain([more]).all(is_told) {
            true => with("dirs", own.map(Path::display), more.display()),
            false => "--dirs DIRECTORIES".to_owned(),
        }
    }

    /// Checks that the secret has not expired.
    ///
    /// # Errors
    /// `secret_expired`.
    pub fn check_end(&self, name: &SecretName, now: Timestamp) -> Result<(), ToolError> {
        match self.expires.filter(|end| *end <= now) {
            Some(end) => {
                let message = format!("{name} expired on {}", day(end));
                let hint = format!(
                    "ask the user to give it a new value with `karyi var rotate {name} --expires WHEN`, or a later end with {}",
                    change(name, "--expires WHEN")
                );
                Err(ToolError::new(ErrorCode::SecretExpired, message).with_hint(hint))
            }
            None => Ok(()),
        }
    }

    /// Returns true when the secret is meant for a program, by its file name.
    #[must_use]
    pub fn is_meant_for(&self, program: &str) -> bool {
        let known = self.commands.as_ref();
        known.is_none_or(|known| known.contains(program))
    }

    /// Checks that the secret may be written to a file.
    ///
    /// # Errors
    /// `policy_denied`.
    pub fn check_write(&self, name: &SecretName) -> Result<(), ToolError> {
        if self.write {
            return Ok(());
        }
        Err(denied(name, "does not allow writing it to files", WRITE))
    }

    /// Checks that the secret may be sent to a host: over https, or over http on this machine only.
    ///
    /// # Errors
    /// `policy_denied`.
    pub fn check_host(
        &self,
        name: &SecretName,
        scheme: &str,
        host: &str,
        port: Option<u16>,
    ) -> Result<(), ToolError> {
        let hosts = self.hosts.as_deref().unwrap_or_default();
        let wanted = port.map_or(host.to_owned(), |port| format!("{host}:{port}"));
        let flag = with("hosts", hosts, wanted);
        if hosts.is_empty() {
            return Err(denied(name, "names no hosts", &flag));
        }
        if hosts.iter().any(|known| known.permits(scheme, host, port)) {
            return Ok(());
        }
        let what = format!("does not allow {scheme}://{host}");
        Err(denied(name, &what, &flag))
    }

    /// Checks that a value is long enough to be masked anywhere, unless the policy accepts a short one. White space
    /// does not count.
    ///
    /// # Errors
    /// `bad_value`.
    pub fn check_length(&self, name: &SecretName, value: &str) -> Result<(), ToolError> {
        let least = limits::GOOD_SECRET_BYTES;
        if self.allow_short || visible_bytes(value) >= least {
            return Ok(());
        }
        let message =
            format!("the value of {name} has fewer than {least} bytes that are not white space");
        Err(ToolError::new(ErrorCode::BadValue, message)
            .with_hint("--allow-short accepts a short value, which is masked as a whole word only"))
    }
}

/// Returns the error for a use that the policy denies, with the flag that permits it.
fn denied(name: &SecretName, what: &str, flag: &str) -> ToolError {
    let message = format!("the policy of {name} {what}");
    let change = change(name, flag);
    ToolError::new(ErrorCode::PolicyDenied, message).with_hint(format!(
        "ask the user to allow it with {change}, or use another secret"
    ))
}

/// Returns the command that changes the policy of a secret.
fn change(name: &SecretName, flags: &str) -> String {
    format!("`karyi var set {name} --keep-value {flags}`")
}

/// Returns a flag with a whole list and one more item, quoted for a shell: a list flag replaces the former list.
fn with(flag: &str, own: impl IntoIterator<Item: Display>, more: impl Display) -> String {
    let own = own.into_iter().map(|one| one.to_string());
    let all: Vec<String> = own.chain([more.to_string()]).collect();
    let all = all.join(",");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:,".contains(c);
    match all.chars().all(is_plain) {
        true => format!("--{flag} {all}"),
        false => format!("--{flag} '{}'", all.replace('\'', "'\\''")),
    }
}

fn bad(message: impl Into<String>) -> ToolError {
    ToolError::new(ErrorCode::BadPolicy, message)
}

fn tools(terms: &PolicyTerms) -> Result<Option<BTreeSet<String>>, ToolError> {
    let Some(names) = &terms.tools else {
        return Ok(None);
    };
    if names.iter().any(|name| !TOOLS.contains(&name.as_str())) {
        let message = format!(
            "expected tools of {}, found something else",
            TOOLS.join(", ")
        );
        return Err(bad(message));
    }
    Ok(Some(names.iter().cloned().collect()))
}

fn hosts(terms: &PolicyTerms) -> Result<Option<Vec<Host>>, ToolError> {
    let parse = |text: &String| {
        Host::parse(text).ok_or_else(|| {
            let message = "expected a host such as api.example.com, *.example.com or localhost:8080, found something else";
            bad(message.to_owned())
        })
    };
    let hosts = terms.hosts.as_ref();
    hosts
        .map(|hosts| hosts.iter().map(parse).collect())
        .transpose()
}

fn commands(terms: &PolicyTerms) -> Result<Option<BTreeSet<String>>, ToolError> {
    let Some(names) = &terms.commands else {
        return Ok(None);
    };
    let is_bad = |name: &&String| name.is_empty() || name.contains(['/', ' ', '\n']);
    if names.iter().any(|name| is_bad(&name)) {
        let message = "expected the name of a program, found something else";
        return Err(bad(message.to_owned()));
    }
    Ok(Some(names.iter().cloned().collect()))
}

fn dirs(terms: &PolicyTerms) -> Result<Option<Vec<PathBuf>>, ToolError> {
    let Some(dirs) = &terms.dirs else {
        return Ok(None);
    };
    let is_plain =
        |dir: &Path| dir.is_absolute() && !dir.components().any(|part| part.as_os_str() == "..");
    if dirs.iter().any(|dir| !is_plain(dir)) {
        let message = "expected an absolute directory without .. in it, found something else";
        return Err(bad(message).with_hint("write it as `pwd` prints it there"));
    }
    Ok(Some(dirs.clone()))
}

/// Combines two restrictions; a missing one restricts nothing.
fn both<T: Clone>(own: &Option<T>, other: &Option<T>, join: impl Fn(&T, &T) -> T) -> Option<T> {
    match (own, other) {
        (Some(own), Some(other)) => Some(join(own, other)),
        (limit, None) | (None, limit) => limit.clone(),
    }
}

/// Returns the intersection of two lists: of each pair the narrower item.
fn narrower<T: Clone + PartialEq>(own: &[T], wanted: &[T], covers: fn(&T, &T) -> bool) -> Vec<T> {
    let mut both = Vec::new();
    for a in own {
        for b in wanted {
            let found = if covers(a, b) {
                Some(b)
            } else {
                Some(a).filter(|a| covers(b, a))
            };
            both.extend(found.filter(|found| !both.contains(*found)).cloned());
        }
    }
    both
}

/// Tool that writes files.
const EDIT: &str = "edit";

/// Flag that permits writing a secret.
const WRITE: &str = "--write";

/// Word for a secret without expiry.
const NEVER: &str = "never";

/// Parses an expiry: a moment, the last second of a day in UTC, or a time after `now`. A time of day without a zone is
/// refused, and not taken for the whole day.
fn expiry(text: &str, now: Option<Timestamp>) -> Result<Timestamp, ToolError> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment);
    }
    if let Ok(date) = text.parse::<civil::Date>() {
        if !text.chars().all(|c| c.is_ascii_digit() || "+-".contains(c)) {
            return Err(no_zone());
        }
        let end = date.at(23, 59, 59, 0).to_zoned(TimeZone::UTC);
        return end.map(|end| end.timestamp()).map_err(|_| bad_expiry());
    }
    let Some(now) = now else {
        return Err(bad(
            "expected a date such as 2030-12-31, found something else".to_owned(),
        ));
    };
    // Whole seconds keep lists narrow.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let span: Span = text.parse().map_err(|_| bad_expiry())?;
    let start = Zoned::new(now, TimeZone::UTC);
    let end = start
        .checked_add(span)
        .map_err(|_| bad_expiry())?
        .timestamp();
    if end.duration_since(now) <= SignedDuration::ZERO {
        return Err(bad_expiry());
    }
    Ok(end)
}

fn no_zone() -> ToolError {
    bad("expected a date alone, or a time of day with its zone, found a time of day without one")
        .with_hint("add the zone: 2030-12-31T18:00Z or 2030-12-31T18:00+02:00")
}

fn bad_expiry() -> ToolError {
    let message =
        "expected a time such as 30d, a date such as 2030-12-31 or never, found something else";
    bad(message.to_owned())
}

/// Formats an expiry for a message.
fn day(end: Timestamp) -> String {
    end.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests;
