//! Rules of the user: commands, files and hosts that are allowed, asked about, or denied.
//!
//! A rule is the text of a command, such as `git status`, `edit:` with a pattern of paths, such as `edit:src/**`, or
//! `fetch:` with a host, such as `fetch:example.com`. An allowed command matches exactly its words; ` *` at the end stands for any further words. A rule that asks or denies
//! also matches with other words between and behind its own.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use karyi_vault::shell_lexer::{self, Word};

use crate::approval::command_words::CommandWord;
use crate::approval::wrappers::program;

/// Prefix of rules about files.
const EDIT: &str = "edit:";
/// Prefix of rules about hosts.
const FETCH: &str = "fetch:";

const EXPECTED: &str = "expected one command without expansions, such as `git status`, `edit:` with a pattern of paths, or \
                        `fetch:` with a host";

/// Rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    text: String,
    pattern: Pattern,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    /// Variables that it sets, its words, and whether more words may follow.
    Command(Vec<(String, String)>, Vec<RuleWord>, bool),
    /// Pattern of paths.
    Edit(String),
    /// Host with its port, if it is not the usual one.
    Fetch(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct RuleWord {
    text: String,
    is_certain: bool,
}

impl RuleWord {
    fn is(&self, word: &CommandWord<'_>) -> bool {
        self.text == word.text && self.is_certain == word.is_certain
    }
}

impl Rule {
    /// Parses a rule.
    ///
    /// # Errors
    /// A description of what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let pattern = match (text.strip_prefix(EDIT), text.strip_prefix(FETCH)) {
            (Some(path), _) => Pattern::Edit(path_pattern(path)?),
            (_, Some(host)) => Pattern::Fetch(host_pattern(host)?),
            (None, None) => command(text).ok_or(EXPECTED)?,
        };
        let text = text.to_owned();
        Ok(Self { text, pattern })
    }

    /// Returns the rule for changes of a file.
    #[must_use]
    pub fn of_file(path: &str) -> Self {
        Self {
            text: format!("{EDIT}{path}"),
            pattern: Pattern::Edit(path.to_owned()),
        }
    }

    /// Returns the rule for requests to a host, which may have a port.
    #[must_use]
    pub fn of_host(host: &str) -> Self {
        Self {
            text: format!("{FETCH}{host}"),
            pattern: Pattern::Fetch(host.to_owned()),
        }
    }

    /// Returns true when it names a host, as [`Self::of_host`] got it.
    #[must_use]
    pub fn has_host(&self, host: &str) -> bool {
        matches!(&self.pattern, Pattern::Fetch(own) if own == host)
    }

    /// Returns the text of the rule.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true when it allows a command with these variables set before it.
    #[must_use]
    pub fn allows(&self, variables: &[(&str, &str)], words: &[CommandWord<'_>]) -> bool {
        let Pattern::Command(own, start, has_more) = &self.pattern else {
            return false;
        };
        let is_set =
            |&(name, value): &(&str, &str)| own.iter().any(|o| (&*o.0, &*o.1) == (name, value));
        let Some((first, rest)) = words.split_at_checked(start.len()) else {
            return false;
        };
        variables.iter().all(is_set)
            && start.iter().zip(first).all(|(own, word)| own.is(word))
            && (*has_more || rest.is_empty())
    }

    /// Returns true when it names a command, whatever words are added.
    #[must_use]
    pub fn names(&self, words: &[CommandWord<'_>]) -> bool {
        self.is_found(words, |own, word| own == word.text)
    }

    /// Returns true when it may name a command by words that are not known before it runs.
    #[must_use]
    pub fn may_name(&self, words: &[CommandWord<'_>]) -> bool {
        self.is_found(words, |own, word| own == word.text || !word.is_certain)
    }

    fn is_found(&self, words: &[CommandWord<'_>], is_same: IsSame) -> bool {
        let Pattern::Command(_, start, _) = &self.pattern else {
            return false;
        };
        let (Some((name, rest)), Some(first)) = (start.split_first(), words.first()) else {
            return false;
        };
        let base = |text: &'_ str| text.rsplit('/').next().unwrap_or_default().to_owned();
        let is_named = name.text == first.text || name.text == base(first.text);
        let arguments = words.get(1..).unwrap_or_default();
        // A topic such as `push` stands before all other words but options; what is behind it stands anywhere.
        let (topic, rest) = match rest.split_first() {
            Some((topic, rest)) if !topic.text.starts_with('-') => (Some(topic), rest),
            _ => (None, rest),
        };
        let has = |own: &RuleWord| arguments.iter().any(|word| is_same(&own.text, word));
        is_named
            && topic.is_none_or(|topic| is_topic(&topic.text, arguments, is_same))
            && rest.iter().all(has)
    }

    /// Returns true when a part of its pattern of paths is this name, so that it does not match it by chance.
    #[must_use]
    pub fn spells(&self, name: &OsStr) -> bool {
        let Pattern::Edit(pattern) = &self.pattern else {
            return false;
        };
        let mut parts = pattern.split('/');
        parts.any(|part| name.eq_ignore_ascii_case(part))
    }

    /// Returns true when its pattern has a path: that in the project, or the whole one.
    #[must_use]
    pub fn has_path(&self, path: &Path, project: &Path) -> bool {
        let Pattern::Edit(pattern) = &self.pattern else {
            return false;
        };
        let path = match pattern.starts_with('/') {
            true => path,
            false => match path.strip_prefix(project) {
                Ok(path) => path,
                Err(_) => return false,
            },
        };
        let path = path.to_string_lossy();
        is_match(pattern, &path)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Reads a rule about a command.
fn command(text: &str) -> Option<Pattern> {
    let script = shell_lexer::read(text, &[]).ok()?;
    let [command] = script.commands.as_slice() else {
        return None;
    };
    let is_plain = command.is_simple()
        && command.redirections.is_empty()
        && script.functions.is_empty()
        && command.assignments.iter().all(|one| one.is_certain);
    let is_fixed = |word: &Word| word.is_certain || !word.text.contains(['$', '`', '(']);
    let mut words = command.words.as_slice();
    let has_more = words.len() > 1
        && words
            .last()
            .is_some_and(|last| last.text == "*" && !last.is_certain);
    if has_more {
        words = words.split_last()?.1;
    }
    let name = words.first()?;
    if !is_plain || !name.is_certain || name.text.is_empty() || !words.iter().all(is_fixed) {
        return None;
    }
    let variables = command.assignments.iter();
    let variables = variables.map(|one| (one.name.clone(), one.value.clone()));
    let words = words.iter().enumerate().map(|(at, word)| RuleWord {
        // Commands are compared without a directory of the system.
        text: match at {
            0 => program(&word.text).to_owned(),
            _ => word.text.clone(),
        },
        is_certain: word.is_certain,
    });
    Some(Pattern::Command(
        variables.collect(),
        words.collect(),
        has_more,
    ))
}

/// Compares a word of a rule with one of a command.
type IsSame = fn(&str, &CommandWord<'_>) -> bool;

/// Returns true when a word is the first one that is neither an option nor the value of one.
fn is_topic(topic: &str, words: &[CommandWord<'_>], is_same: IsSame) -> bool {
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if is_same(topic, word) {
            return true;
        }
        if !word.text.starts_with('-') {
            return false;
        }
        // The next word may be its value.
        words.next_if(|next| !is_same(topic, next) && !next.text.starts_with('-'));
    }
    false
}

/// Reads a host: a name or an address, perhaps with a port.
fn host_pattern(text: &str) -> Result<String, String> {
    let is_host = |sign: char| {
        sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.' | ':' | '[' | ']')
    };
    let host = text.to_ascii_lowercase();
    match !host.is_empty() && host.chars().all(is_host) && !host.starts_with([':', '.']) {
        true => Ok(host),
        false => Err(format!(
            "expected a host, such as `{FETCH}example.com` or `{FETCH}localhost:8080`, found {text:?}"
        )),
    }
}

/// Reads a pattern of paths, which are relative to the project, or whole.
fn path_pattern(text: &str) -> Result<String, String> {
    let pattern = text.strip_prefix("./").unwrap_or(text);
    if pattern.is_empty() {
        return Err(format!("expected a pattern of paths after `{EDIT}`"));
    }
    if text.starts_with('~') || pattern.split('/').any(|part| matches!(part, "." | "..")) {
        return Err(format!(
            "expected a path in the project, such as `{EDIT}src/**`, or a whole one, such as `{EDIT}/etc/hosts`, \
             found one with `~`, `.` or `..`: write the path out"
        ));
    }
    Ok(match pattern.ends_with('/') {
        true => format!("{pattern}**"),
        false => pattern.to_owned(),
    })
}

/// Matches a path with a pattern: `?` and `*` stand for characters of a name, `**` also for directories.
fn is_match(pattern: &str, path: &str) -> bool {
    let path: Vec<char> = path.chars().collect();
    let before = |at: usize| at.checked_sub(1).and_then(|at| path.get(at)).copied();
    // True at each place of the path that the pattern, as far as it was read, may end at.
    let mut ends: Vec<bool> = (0..=path.len()).map(|at| at == 0).collect();
    let mut rest = pattern;
    while let Some(sign) = rest.chars().next() {
        let length = ["**/", "**"]
            .into_iter()
            .find(|sign| rest.starts_with(sign));
        let token = rest.get(..length.map_or(sign.len_utf8(), str::len));
        let token = token.unwrap_or_default();
        rest = rest.get(token.len()..).unwrap_or_default();
        let (mut has_any, mut last) = (false, false);
        let next = ends.iter().enumerate().map(|(at, end)| {
            let is_end = match token {
                "**/" => *end || has_any && before(at) == Some('/'),
                "**" => *end || has_any,
                "*" => *end || last && before(at) != Some('/'),
                "?" => last && before(at) != Some('/'),
                _ => last && before(at) == Some(sign),
            };
            has_any |= *end;
            last = if token == "*" { is_end } else { *end };
            is_end
        });
        ends = next.collect();
    }
    ends.last() == Some(&true)
}

/// Effect of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RuleKind {
    /// Its calls run without a question.
    #[default]
    Allow,
    /// They are always asked about.
    Ask,
    /// They never run.
    Deny,
}

impl RuleKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    /// Returns the name of its list in settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// Rules of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Calls that run.
    pub allow: Vec<Rule>,
    /// Calls that are always asked about; stronger than `allow`.
    pub ask: Vec<Rule>,
    /// Calls that never run; stronger than both.
    pub deny: Vec<Rule>,
}

impl Rules {
    /// Adds the rules of a project. Before the user trusts it they can only narrow: those that allow do not count.
    pub fn add_project(&mut self, project: Self, is_trusted: bool) {
        self.ask.extend(project.ask);
        self.deny.extend(project.deny);
        if is_trusted {
            self.allow.extend(project.allow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(script: &str) -> (Vec<(String, String)>, Vec<Word>) {
        let command = shell_lexer::read(script, &[]).unwrap().commands.remove(0);
        let variables = command.assignments.into_iter();
        (
            variables.map(|v| (v.name, v.value)).collect(),
            command.words,
        )
    }

    #[track_caller]
    fn check(rule: &str, script: &str, allows: bool, names: bool) {
        let rule = Rule::parse(rule).unwrap();
        let (variables, words) = words(script);
        let words: Vec<CommandWord<'_>> = words
            .iter()
            .map(|word| CommandWord::of(word, script))
            .collect();
        let variables: Vec<(&str, &str)> = variables.iter().map(|(n, v)| (&**n, &**v)).collect();
        assert_eq!(
            (rule.allows(&variables, &words), rule.names(&words)),
            (allows, names),
            "{rule}: {script}"
        );
    }

    #[test]
    fn commands_match_by_words() {
        check("git status", "git status", true, true);
        check("git status", "'git' \"status\"", true, true);
        check("git status", "git status -s", false, true);
        check("git status *", "git status -s x", true, true);
        check("git status *", "git status", true, true);
        check("git push", "git -C x push -f", false, true);
        check("git push", "git -c a=b --no-pager push", false, true);
        check("git push", "git commit -m push", false, false);
        check(
            "git push --force",
            "git push origin main --force",
            false,
            true,
        );
        check(
            "git push --force",
            "git --no-pager push --force x",
            false,
            true,
        );
        check("git push --force", "git commit --force push", false, false);
        check("git push main", "git push origin main", false, true);
        check("rm -rf", "rm x -rf", false, true);
        check("rm -rf", "rm x", false, false);
        check("/bin/ls *", "ls x", true, true);
        check("/usr/bin/rm", "/bin/rm x", false, true);
        check("/opt/x/ls", "ls", false, false);
        check("git push", "/usr/bin/git push", false, true);
        check("rm", "rmdir x", false, false);
        check("rm *.o", "rm *.o", true, true);
        check("rm *.o", "rm '*.o'", false, true);
        check("A=1 make", "A=1 make", true, true);
        check("make", "A=1 make", false, true);
        check("make", "make", true, true);
        check("edit:src/**", "src/x", false, false);
    }

    #[test]
    fn paths_match_by_pattern() {
        let check = |rule: &str, path: &str, expected: bool| {
            let rule = Rule::parse(rule).unwrap();
            assert_eq!(
                rule.has_path(Path::new(path), Path::new("/p")),
                expected,
                "{rule}: {path}"
            );
        };
        check("edit:src/**", "/p/src/a/b.rs", true);
        check("edit:src/", "/p/src/a", true);
        check("edit:src/*", "/p/src/a/b", false);
        check("edit:src/*.rs", "/p/src/a.rs", true);
        check("edit:**/*.md", "/p/a.md", true);
        check("edit:**/*.md", "/p/x/y/a.md", true);
        check("edit:a?c", "/p/abc", true);
        check("edit:a?c", "/p/a/c", false);
        check("edit:**", "/q/a", false);
        check("edit:/q/**", "/q/a", true);
        check("edit:./src/*", "/p/src/a", true);
        check("edit:a**b", "/p/ax/yb", true);
        check("edit:**/a/**/b", "/p/x/a/b", true);
        check("edit:**/a/**/b", "/p/xa/b", false);
        check("edit:?", "/p/é", true);
        check("edit:a[1].txt", "/p/a[1].txt", true);
        let (pattern, path) = ("*a".repeat(40), "a".repeat(200));
        check(&format!("edit:{pattern}b"), &format!("/p/{path}"), false);
        check("git status", "/p/git status", false);
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in [
            "",
            "edit:",
            "edit:./",
            "edit:~",
            "edit:~/x",
            "edit:../x",
            "edit:a/../x",
            "edit:.",
            "a; b",
            "a > b",
            "$x",
            "a $(b)",
            "f() { a; }",
            "*",
            "a '",
            "A=1",
        ] {
            assert!(Rule::parse(text).is_err(), "{text}");
        }
    }
}
