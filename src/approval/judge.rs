//! Decides about calls: whether a call runs, is asked about, or is refused.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use karyi_net::WebUrl;
use karyi_vault::shell_lexer::SimpleCommand;

use crate::approval::command_table::{Doubt, check_reads, is_script_variable};
use crate::approval::command_words::CommandWord;
use crate::approval::mode::Mode;
use crate::approval::request::AskedPart;
use crate::approval::rule::{Rule, Rules};
use crate::approval::script_parts::{self, ScriptParts, Target};
use crate::approval::wrappers::{self, InnerCommand, program, reads_commands, reason_to_ask};
use crate::tool::Effect;
use crate::tool::effect::{Access, PathBase};
use crate::tool::own_directories;
use crate::tools::Call;

/// Decision about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It runs, if these names mean in the live shell what they meant at its start.
    Allow(Vec<String>),
    /// A person decides about these parts.
    Ask(Vec<AskedPart>),
    /// It does not run, because of this rule or mode.
    Deny(String),
}

/// Where a call runs.
#[derive(Debug, Clone)]
pub struct Place {
    /// Directory of the session.
    pub cwd: PathBuf,
    /// Directory of the project, without links in its path.
    pub project: PathBuf,
    /// Home directory of the user, if it is known.
    pub home: Option<PathBuf>,
    /// True when its shell is bash, which does not calculate the numbers of `[` and `printf`, as others do.
    pub is_bash: bool,
    /// Returns a path without links in it.
    pub real: fn(&Path) -> PathBuf,
}

/// Judge of calls.
#[derive(Debug, Clone, Copy)]
pub struct Judge<'a> {
    /// How much runs without a question.
    pub mode: Mode,
    /// Rules of the user.
    pub rules: &'a Rules,
    /// Where the call runs.
    pub place: &'a Place,
}

/// Decision about a part of a call.
enum Finding {
    Fine,
    Asked(AskedPart),
    Denied(String),
}

/// Variables that may stand before a command.
const HARMLESS_VARIABLES: &[&str] = &["LANG", "CI", "NO_COLOR", "TERM"];

const UNKNOWN_FILE: &str = "it writes a file that is not known before it runs";

impl Judge<'_> {
    /// Judges a call. `types_code` says that text which is typed may go to a program that takes commands.
    #[must_use]
    pub fn call(&self, call: &Call, types_code: bool) -> Verdict {
        if self.mode == Mode::Nothing {
            return Verdict::Ask(vec![AskedPart::new(call.title(), "no call is permitted")]);
        }
        match (call, call.effect()) {
            (Call::Command(args), _) => {
                let directory = match &args.cwd {
                    Some(cwd) if cwd.has_placeholder() => None,
                    Some(cwd) => Some(self.place.cwd.join(cwd.source())),
                    None => Some(self.place.cwd.clone()),
                };
                self.script(args.text.source(), directory.as_deref())
            }
            (Call::Bash(args), _) => {
                let cwd = args.cwd.as_ref().map_or(Some("."), |cwd| match cwd {
                    cwd if cwd.has_placeholder() => None,
                    cwd => Some(cwd.source()),
                });
                let directory = cwd.map(|cwd| self.place.cwd.join(cwd));
                self.script(args.cmd.source(), directory.as_deref())
            }
            (Call::UrlFetch(args), effect) => {
                let request = self.request(args.request_line(), args.destination().as_ref());
                let files = effect.files().iter().map(|path| self.file(path));
                self.verdict(std::iter::once(request).chain(files).collect(), Vec::new())
            }
            (Call::WebSearch(args), _) => {
                let what = format!("search for {}", args.q.source());
                self.verdict(vec![self.request(what, args.page.as_ref())], Vec::new())
            }
            (_, Effect::Alone) => Verdict::Allow(Vec::new()),
            (_, effect @ Effect::Outside { is_write: true, .. })
                if !effect.files().iter().any(|path| path.is_write) =>
            {
                let doubt = self.doubt(&call.title(), "what it changes is not known");
                self.verdict(vec![doubt], Vec::new())
            }
            (_, effect @ (Effect::Files(_) | Effect::Outside { .. })) => {
                let written = effect.files().iter().filter(|path| path.is_write);
                let findings = written.map(|path| self.file(path));
                self.verdict(findings.collect(), Vec::new())
            }
            (_, Effect::Session) => self.typing(call, types_code),
        }
    }

    /// Returns true when a call only reads.
    #[must_use]
    pub fn only_reads(&self, call: &Call) -> bool {
        let (mode, rules) = (Mode::ReadOnly, &Rules::default());
        let place = self.place;
        matches!(
            Judge { mode, rules, place }.call(call, true),
            Verdict::Allow(_)
        )
    }

    /// Judges text or a key for a running job. It was approved with the job, unless the job takes commands.
    fn typing(&self, call: &Call, types_code: bool) -> Verdict {
        let ends = call.ends_job()
            || matches!(call, Call::Ctrl(args) if matches!(args.key.as_str(), "c" | "\\"));
        match self.mode {
            Mode::Full => Verdict::Allow(Vec::new()),
            _ if ends => Verdict::Allow(Vec::new()),
            Mode::Nothing | Mode::ReadOnly => Verdict::Deny(mode_name(self.mode)),
            Mode::Ask | Mode::Edits if types_code => {
                let reason = "the program that gets it may take it for a command";
                Verdict::Ask(vec![AskedPart::new(call.title(), reason)])
            }
            Mode::Ask | Mode::Edits => Verdict::Allow(Vec::new()),
        }
    }

    /// Judges a script that starts in a directory, if that is known.
    #[must_use]
    pub fn script(&self, text: &str, directory: Option<&Path>) -> Verdict {
        let parts = match script_parts::read(text) {
            Ok(parts) => parts,
            Err(why) => {
                let doubt = self.doubt(text.trim(), format!("karyi cannot read it: {why}"));
                return self.verdict(vec![doubt], Vec::new());
            }
        };
        let doubts = parts.doubts.iter();
        let mut findings: Vec<Finding> = doubts.map(|(what, why)| self.doubt(what, *why)).collect();
        let moves = parts.commands().any(|command| {
            let words = wrappers::unwrapped(&parts.words(command)).words;
            words
                .first()
                .is_some_and(|name| matches!(name.text, "cd" | "pushd" | "popd"))
        });
        let mut names = Vec::new();
        for command in parts.commands() {
            findings.push(self.command(&parts, command, &mut names));
            for redirection in &command.redirections {
                let directory = directory.filter(|_| !moves);
                let shown = format!("{}{}", redirection.operator, redirection.target.text);
                findings.push(match parts.target(redirection) {
                    Target::Nothing => Finding::Fine,
                    Target::File(file) => self.write(&shown, file, directory),
                    Target::Unknown(file) => self.unknown_file(&shown, file, UNKNOWN_FILE),
                    Target::Network => self.doubt(&shown, "it may open a connection"),
                });
            }
        }
        self.verdict(findings, names)
    }

    /// Returns the verdict of all parts: that of the strictest.
    fn verdict(&self, findings: Vec<Finding>, mut names: Vec<String>) -> Verdict {
        let mut asked: Vec<AskedPart> = Vec::new();
        for finding in findings {
            match finding {
                Finding::Denied(rule) => return Verdict::Deny(rule),
                Finding::Asked(part) if !asked.contains(&part) => asked.push(part),
                Finding::Asked(_) | Finding::Fine => {}
            }
        }
        if !asked.is_empty() {
            return Verdict::Ask(asked);
        }
        names.sort();
        names.dedup();
        Verdict::Allow(names)
    }

    /// Returns the finding about a part that no rule can allow.
    fn doubt(&self, what: &str, reason: impl Into<String>) -> Finding {
        self.asked(AskedPart::new(what, reason))
    }

    /// Returns the finding about a part that is neither denied nor allowed.
    fn asked(&self, part: AskedPart) -> Finding {
        match self.mode {
            Mode::Full => Finding::Fine,
            Mode::ReadOnly => Finding::Denied(mode_name(self.mode)),
            Mode::Nothing | Mode::Ask | Mode::Edits => Finding::Asked(part),
        }
    }

    /// Returns the finding about a part that a rule denies or asks about.
    fn by_rule<'r>(&'r self, shown: &str, is_meant: impl Fn(&&'r Rule) -> bool) -> Option<Finding> {
        if let Some(rule) = self.rules.deny.iter().find(&is_meant) {
            return Some(Finding::Denied(format!("the rule `{rule}`")));
        }
        let rule = self.rules.ask.iter().find(&is_meant)?;
        Some(match self.mode {
            Mode::ReadOnly => Finding::Denied(mode_name(self.mode)),
            _ => Finding::Asked(AskedPart::new(shown, format!("the rule `{rule}` asks"))),
        })
    }

    /// Judges a simple command without its redirections. Adds the names whose meaning counts.
    fn command(
        &self,
        parts: &ScriptParts<'_>,
        command: &SimpleCommand,
        names: &mut Vec<String>,
    ) -> Finding {
        let shown = parts.shown(command);
        let mut words = parts.words(command);
        let Some(name) = words.first_mut() else {
            if parts.is_bare_redirection(command) {
                return self.doubt(&shown, "zsh starts a program for a redirection alone");
            }
            return self.assignments(command, &shown);
        };
        name.text = program(name.text);
        let inner = wrappers::unwrapped(&words);
        if let Some(finding) = self.by_rule(&shown, |rule| is_named(rule, &words, Rule::names)) {
            return finding;
        }
        if self.mode == Mode::Full {
            return Finding::Fine;
        }
        match self.reason(command, &words, &inner) {
            None => {
                let own = words.first().into_iter().chain(inner.words.first());
                let own = own
                    .map(|word| word.text)
                    .chain(inner.wrappers.iter().copied());
                names.extend(own.map(str::to_owned));
                // A function may have the whole path of a program for its name.
                let written = command.words.iter().filter(|word| word.is_certain);
                let written = written.filter(|word| program(&word.text) != word.text);
                names.extend(written.map(|word| word.text.clone()));
                Finding::Fine
            }
            Some((reason, is_storable)) => {
                let is_storable =
                    is_storable && !always_asks(&inner.words) && self.mode != Mode::ReadOnly;
                let rule = Rule::parse(&shown).ok().filter(|_| is_storable);
                let sets = !command.assignments.is_empty();
                self.asked(AskedPart {
                    wider_rule: rule
                        .as_ref()
                        .filter(|_| !sets)
                        .and_then(|_| wider_rule(&words)),
                    rule: rule.map(|rule| rule.to_string()),
                    ..AskedPart::new(shown, reason)
                })
            }
        }
    }

    /// Returns the reason why a command does not run by itself, and whether a rule may allow exactly its words.
    fn reason(
        &self,
        command: &SimpleCommand,
        words: &[CommandWord<'_>],
        inner: &InnerCommand<'_>,
    ) -> Option<(String, bool)> {
        let is_certain =
            |words: &[CommandWord<'_>]| words.first().is_some_and(|name| name.is_certain);
        if !is_certain(words) || !inner.words.is_empty() && !is_certain(&inner.words) {
            return Some(("its name is not known before it runs".to_owned(), false));
        }
        if words.iter().any(|word| word.may_hold_code) {
            return Some(("a pattern of it may run code".to_owned(), false));
        }
        let mut narrow = self.rules.deny.iter().chain(&self.rules.ask);
        if let Some(rule) = narrow.find(|rule| is_named(rule, words, Rule::may_name)) {
            return Some((format!("the rule `{rule}` may hold for it"), false));
        }
        let variables = command
            .assignments
            .iter()
            .map(|one| (one.name.as_str(), one.value.as_str()));
        let variables = variables.chain(inner.variables.iter().copied());
        let variables: Vec<(&str, &str)> = variables
            .filter(|(name, _)| !is_harmless_variable(name))
            .collect();
        let is_allowed = |words: &[CommandWord<'_>]| {
            self.mode != Mode::ReadOnly
                && self
                    .rules
                    .allow
                    .iter()
                    .any(|rule| rule.allows(&variables, words))
        };
        if is_allowed(words) {
            return None;
        }
        if let Some((name, _)) = variables.first() {
            return Some((format!("it sets the variable {name}"), command.is_certain()));
        }
        if let Some(doubt) = &inner.doubt {
            return Some((doubt.clone(), true));
        }
        if is_allowed(&inner.words) {
            return None;
        }
        let doubt = check_reads(&inner.words, self.place.is_bash).err()?;
        let name = inner.words.first().map_or("", |name| name.text);
        Some(match (reason_to_ask(name), doubt) {
            (Some(reason), _) => (reason.to_owned(), false),
            (None, Doubt::Unknown) => ("no rule allows it".to_owned(), true),
            (None, Doubt::Word(word)) => (format!("`{word}` is not known to be harmless"), true),
        })
    }

    /// Judges assignments without a command.
    fn assignments(&self, command: &SimpleCommand, shown: &str) -> Finding {
        let mut names = command.assignments.iter().map(|one| one.name.as_str());
        match names.find(|name| !is_script_variable(name)) {
            None => Finding::Fine,
            Some(name) => self.doubt(shown, format!("{name} may change what later commands do")),
        }
    }

    /// Returns true when a rule allows what a condition describes.
    fn is_allowed(&self, is_meant: impl Fn(&Rule) -> bool) -> bool {
        self.mode != Mode::ReadOnly && self.rules.allow.iter().any(is_meant)
    }

    /// Judges a request to a URL. A call without a valid URL fails by itself.
    fn request(&self, what: String, url: Option<&WebUrl>) -> Finding {
        let Some(host) = url.map(WebUrl::named_host) else {
            return Finding::Fine;
        };
        if let Some(finding) = self.by_rule(&what, |rule| rule.has_host(&host)) {
            return finding;
        }
        if self.is_allowed(|rule| rule.has_host(&host)) {
            return Finding::Fine;
        }
        self.asked(AskedPart {
            rule: Some(Rule::of_host(&host).to_string()),
            ..AskedPart::new(what, format!("it sends a request to {host}"))
        })
    }

    /// Judges a change of a file by a tool. Those in a directory of the assistant are asked about as a kind.
    fn file(&self, access: &Access) -> Finding {
        let (path, text) = (&access.path, access.path.source());
        match (access.base, path.has_placeholder()) {
            (PathBase::Session, true) => self.unknown_file(text, text, UNKNOWN_FILE),
            (PathBase::Session, false) => self.write(text, text, Some(&self.place.cwd)),
            (base, _) => self.own_file(own_directories::word(base), text),
        }
    }

    /// Judges a change of a file in a directory of the assistant, which it cannot leave.
    fn own_file(&self, directory: &str, path: &str) -> Finding {
        let shown = format!("{directory}/{path}");
        let place = without_dots(&Path::new("/").join(directory).join(path));
        let has_path = |rule: &&Rule| rule.has_path(&place, Path::new("/"));
        if let Some(finding) = self.by_rule(&shown, has_path) {
            return finding;
        }
        if self.is_allowed(|rule| has_path(&rule)) || self.mode == Mode::Edits {
            return Finding::Fine;
        }
        let rule = Rule::of_file(&format!("{directory}/**"));
        self.asked(AskedPart {
            rule: Some(rule.to_string()),
            ..AskedPart::new(shown, "it writes a file of the assistant")
        })
    }

    /// Judges a change of a file that is not known before it runs. Rules that deny or ask hold for it as it is written.
    fn unknown_file(&self, shown: &str, file: &str, reason: &str) -> Finding {
        let project = &self.place.project;
        let starts = ["~/", "$HOME/", "${HOME}/"];
        let below_home = starts.iter().find_map(|start| file.strip_prefix(start));
        let path = match (below_home, &self.place.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => project.join(file),
        };
        let path = without_dots(&path);
        let finding = self.by_rule(shown, |rule| rule.has_path(&path, project));
        finding.unwrap_or_else(|| self.doubt(shown, reason))
    }

    /// Judges a change of a file. `directory` is that of a relative path, if it is known.
    fn write(&self, shown: &str, file: &str, directory: Option<&Path>) -> Finding {
        let path = match directory {
            Some(directory) => directory.join(file),
            None if Path::new(file).is_absolute() => file.into(),
            None => {
                let reason = "the directory of the file is not known before it runs";
                return self.unknown_file(shown, file, reason);
            }
        };
        let written = without_dots(&path);
        // These paths lead to different files in different processes.
        if ["/proc", "/dev/fd"]
            .iter()
            .any(|place| written.starts_with(place))
        {
            return self.unknown_file(shown, file, UNKNOWN_FILE);
        }
        let path = without_dots(&(self.place.real)(&path));
        let project = &self.place.project;
        let has_path = |rule: &&Rule| [&path, &written].iter().any(|p| rule.has_path(p, project));
        if let Some(finding) = self.by_rule(shown, has_path) {
            return finding;
        }
        let inside = path.strip_prefix(project).ok();
        let guarded = guarded_name(inside.unwrap_or(&path))
            .or_else(|| guarded_name(written.strip_prefix(project).unwrap_or(&written)));
        let is_meant = |rule: &Rule| {
            rule.has_path(&path, project) && guarded.is_none_or(|name| rule.spells(name))
        };
        let is_allowed = self.is_allowed(is_meant);
        let guarded = guarded.is_some();
        if is_allowed || self.mode == Mode::Edits && inside.is_some() && !guarded {
            return Finding::Fine;
        }
        let reason = match inside {
            None => "it writes a file outside of the project",
            Some(_) if guarded => "it writes a file that other programs take settings from",
            Some(_) => "it writes a file",
        };
        let text = inside.unwrap_or(&path).to_str();
        let text = text.filter(|text| !text.contains(['*', '?']));
        let rule = text.map(|text| Rule::of_file(text).to_string());
        self.asked(AskedPart {
            rule: rule.filter(|rule| Rule::parse(rule).is_ok()),
            wider_rule: inside.filter(|_| !guarded).map(|_| "edit:**".to_owned()),
            ..AskedPart::new(shown, reason)
        })
    }
}

/// Returns true when a script starts a program that may take commands from the terminal, or is not known to start none.
#[must_use]
pub fn takes_commands(script: &str) -> bool {
    let Ok(parts) = script_parts::read(script) else {
        return true;
    };
    !parts.script.functions.is_empty()
        || parts.commands().any(|command| {
            let words = parts.words(command);
            let mut inner = wrappers::unwrapped(&words).words;
            inner.truncate(1);
            inner.iter().any(|name| {
                let is_code = matches!(name.text, "eval" | "source" | ".");
                !name.is_certain || is_code || reads_commands(name.text)
            })
        })
}

fn mode_name(mode: Mode) -> String {
    format!("the mode {}", mode.as_str())
}

fn is_harmless_variable(name: &str) -> bool {
    HARMLESS_VARIABLES.contains(&name) || name.starts_with("LC_")
}

/// Returns true when a rule names a command, or one that it runs.
fn is_named(
    rule: &Rule,
    words: &[CommandWord<'_>],
    names: fn(&Rule, &[CommandWord<'_>]) -> bool,
) -> bool {
    let inner = wrappers::unwrapped(words).words;
    names(rule, words)
        || names(rule, &inner)
        || wrappers::inner_commands(words).any(|words| names(rule, words))
}

/// Returns true for a command that asks without a rule that names it, or that runs such a one.
fn always_asks(words: &[CommandWord<'_>]) -> bool {
    let commands = std::iter::once(words).chain(wrappers::inner_commands(words));
    let mut names = commands.filter_map(|words| words.first());
    names.any(|name| reason_to_ask(program(name.text)).is_some())
}

/// Returns the wider rule that is offered for a command: its first words, with any after them.
fn wider_rule(words: &[CommandWord<'_>]) -> Option<String> {
    let [name, topic, ..] = words else {
        return None;
    };
    let is_letter = |c: char| c.is_ascii_lowercase() || c == '-';
    let is_topic = topic.text.starts_with(|c: char| c.is_ascii_lowercase())
        && topic.text.chars().all(is_letter);
    let rule = format!("{} {} *", name.source, topic.source);
    (is_topic && topic.is_certain && Rule::parse(&rule).is_ok()).then_some(rule)
}

/// Returns the first part of a path whose files may make other programs run code: it is hidden, or of a repository of
/// git without a directory of files.
fn guarded_name(path: &Path) -> Option<&OsStr> {
    path.iter().find(|part| {
        let name = part.to_string_lossy().to_lowercase();
        name.starts_with('.') || name.ends_with(".git") || name == "head"
    })
}

/// Returns a path without `.` and `..`.
fn without_dots(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                found.pop();
            }
            part => found.push(part),
        }
    }
    found
}

#[cfg(test)]
mod tests;
