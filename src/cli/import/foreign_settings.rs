//! Settings of another assistant, translated into karyi's.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::approval::{Rule, RuleKind};
use crate::cli::config::{self, is_credential};
use crate::cli::secret_lints::is_token;
use karyi_vault::redact::shortest_password;

/// Owner of a file with settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Origin {
    /// The user.
    #[default]
    User,
    /// The project, which may come from anyone: it can narrow what runs, and never widen it.
    Project,
}

/// Settings that were found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ForeignSettings {
    /// Files that were read.
    pub(super) files: Vec<PathBuf>,
    /// Rules with their lists.
    pub(super) rules: Vec<(RuleKind, String)>,
    /// Model as `PROVIDER:NAME`.
    pub(super) model: Option<String>,
    /// Names of MCP servers.
    pub(super) servers: Vec<String>,
    /// Settings that cannot be imported, in the words of the other assistant, with the reason.
    pub(super) skipped: Vec<String>,
    /// Owner of the file that is read.
    pub(super) origin: Origin,
}

impl ForeignSettings {
    /// Returns the rules of a list, each once.
    pub(super) fn list(&self, list: RuleKind) -> Vec<&str> {
        let mut rules: Vec<&str> = Vec::new();
        for (of, rule) in &self.rules {
            if *of == list && !rules.contains(&rule.as_str()) {
                rules.push(rule);
            }
        }
        rules
    }

    /// Adds rules, or tells why they cannot be taken over.
    pub(super) fn add(&mut self, list: RuleKind, source: &str, rules: Result<Vec<String>, &str>) {
        let rules = match self.origin {
            Origin::Project if list == RuleKind::Allow => Err("a project cannot allow anything"),
            _ => rules,
        };
        let rules = rules.and_then(|rules| {
            let broken = rules.iter().any(|rule| Rule::parse(rule).is_err());
            match (may_hold_key(source), broken) {
                (true, _) => Err("store the key with `karyi var set`, and do without it in a rule"),
                (_, true) => Err("karyi cannot read it as one command without expansions"),
                _ => Ok(rules),
            }
        });
        match rules {
            Ok(rules) => self
                .rules
                .extend(rules.into_iter().map(|rule| (list, rule))),
            Err(why) => self.skip(list.as_str(), source, why),
        }
    }

    /// Takes the model over, when it is the user's own and karyi knows its provider.
    pub(super) fn set_model(&mut self, source: &str, model: Option<String>) {
        match (model, self.origin) {
            (Some(model), Origin::User) => self.model = Some(model),
            (_, Origin::Project) => self.skip("model", source, "the user alone chooses the model"),
            (None, _) => self.skip("model", source, "karyi does not know its provider"),
        }
    }

    /// Tells of something that cannot be taken over. A key is not shown.
    pub(super) fn skip(&mut self, name: &str, source: &str, why: &str) {
        let project = match self.origin {
            Origin::User => "",
            Origin::Project => ", in the project",
        };
        let source = match may_hold_key(source) {
            true => "what may hold a key and is not shown",
            false => source,
        };
        self.skipped
            .push(format!("{name}: {source}{project}: {why}"));
    }

    /// Adds the names of the servers in a table.
    pub(super) fn add_servers(&mut self, table: Option<&Value>) {
        let table = table.and_then(Value::as_object);
        let names = table.into_iter().flat_map(|table| table.keys());
        self.servers.extend(names.cloned());
    }

    /// Reads a file; nothing when it does not exist.
    ///
    /// # Errors
    /// It cannot be read, or is too large.
    pub(super) fn read(&mut self, path: &Path) -> anyhow::Result<Option<String>> {
        let text = config::read_file(path)?;
        if text.is_some() {
            self.files.push(path.to_owned());
        }
        Ok(text)
    }

    /// Reads a file of JSON, which may have comments and trailing commas; nothing when it does not exist.
    ///
    /// # Errors
    /// It cannot be read, or is no JSON.
    pub(super) fn read_json(&mut self, path: &Path) -> anyhow::Result<Option<Value>> {
        let Some(text) = self.read(path)? else {
            return Ok(None);
        };
        // The parser's message has no text of the file.
        let value = serde_json::from_str(&plain_json(&text));
        value
            .map(Some)
            .map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))
    }
}

/// Returns the rule of a command pattern with `*` at its end only.
///
/// # Errors
/// It matches everything or has a wildcard elsewhere.
pub(super) fn command_rule(pattern: &str) -> Result<Vec<String>, &'static str> {
    let pattern = pattern.trim();
    let (words, is_start) = match pattern.strip_suffix(":*").or(pattern.strip_suffix(" *")) {
        Some(words) => (words.trim(), true),
        None => (pattern, false),
    };
    if words.is_empty() || matches!(words, "*") {
        return Err("it fits every command, which is what `approval.mode` is for");
    }
    if words.contains(['*', '?', '\n']) {
        return Err("a rule of karyi has a wildcard as its last word only");
    }
    Ok(vec![match is_start {
        true => format!("{words} *"),
        false => words.to_owned(),
    }])
}

/// Returns true for a text that may hold a key: as the value of a name that says so, in a URL, or as a word that looks
/// random.
fn may_hold_key(text: &str) -> bool {
    let quotes = ['"', '\'', '(', ')', ',', '[', ']'];
    let is_value = |text: &str| !text.is_empty() && !text.starts_with(['$', '*', '-', '<']);
    let is_random = |piece: &str| {
        let is_hash = piece
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        is_token(piece) && !is_hash
    };
    let mut follows_name = false;
    text.split_whitespace().any(|word| {
        let word = word.trim_matches(quotes);
        let (name, value) = word.split_once(['=', ':']).unwrap_or((word, ""));
        let (name, value) = (name.trim_matches(quotes), value.trim_matches(quotes));
        let is_name = name.starts_with('-') || word.contains(['=', ':']);
        let is_credential = is_name && is_credential(name.trim_start_matches('-'))
            || ["bearer", "basic"]
                .iter()
                .any(|kind| name.eq_ignore_ascii_case(kind));
        let follows = std::mem::replace(&mut follows_name, is_credential && value.is_empty());
        let is_piece = |c: char| !(c.is_ascii_alphanumeric() || "_-+".contains(c));
        follows && is_value(word)
            || is_credential && is_value(value)
            || shortest_password(word).is_some()
            || word.split(is_piece).any(is_random)
    })
}

/// Returns JSON without comments and trailing commas.
fn plain_json(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut signs = text.chars().peekable();
    let mut is_text = false;
    while let Some(sign) = signs.next() {
        match (is_text, sign) {
            (true, '\\') => {
                plain.push(sign);
                plain.extend(signs.next());
                continue;
            }
            (_, '"') => is_text = !is_text,
            (false, '/') if signs.peek() == Some(&'/') => {
                while signs.next_if(|sign| *sign != '\n').is_some() {}
                continue;
            }
            (false, '/') if signs.peek() == Some(&'*') => {
                signs.next();
                let mut last = ' ';
                for sign in signs.by_ref() {
                    if (last, sign) == ('*', '/') {
                        break;
                    }
                    last = sign;
                }
                continue;
            }
            (false, '}' | ']') => {
                let kept = plain.trim_end().len();
                if plain.get(..kept).is_some_and(|kept| kept.ends_with(',')) {
                    plain.truncate(kept - 1);
                }
            }
            _ => {}
        }
        plain.push(sign);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_with_comments_is_read() {
        let check = |text: &str, expected: &str| assert_eq!(plain_json(text), expected);
        check("{\"a\": 1, // b\n}", "{\"a\": 1}");
        check("[1, /* , */ 2,\n]", "[1,  2]");
        check("{\"//\": \"/* \\\" */ ,}\"}", "{\"//\": \"/* \\\" */ ,}\"}");
        check("/* open", "");
        check("// é", "");
    }

    #[test]
    fn patterns_become_rules_or_are_left() {
        let check = |pattern: &str, rule: Option<&str>| {
            let found = command_rule(pattern).ok().map(|rules| rules.concat());
            assert_eq!(found.as_deref(), rule, "{pattern}");
        };
        check("git status", Some("git status"));
        check("npm run test:*", Some("npm run test *"));
        check("git push *", Some("git push *"));
        for wide in [
            "*",
            "",
            ":*",
            " *",
            "git * main",
            "npm run test*",
            "a?",
            "a\nb",
        ] {
            check(wide, None);
        }
    }

    #[test]
    fn keys_are_known_and_ordinary_rules_are_none() {
        for (text, expected) in [
            ("Bash(curl -H \"Authorization: Bearer abcdef\" *)", true),
            ("Bash(API_KEY=abcdef make)", true),
            ("Bash(login --password hunter2)", true),
            ("Bash(login --token=hunter2)", true),
            ("Bash(psql postgres://me:Zk7qPw2L@db/x)", true),
            ("Bash(x sk-ant-api03-4k2jh34k5jh23k4jh5)", true),
            ("Bash(API_KEY=$API_KEY make)", false),
            ("Bash(kubectl get secret web)", false),
            ("Bash(login --password *)", false),
            ("Bash(npm run test:*)", false),
            (
                "Bash(git show 3f2a9c0d1e4b5a6978c0d1e2f3a4b5c6d7e8f901)",
                false,
            ),
            ("Edit(src/**/*.rs)", false),
            (
                "prefix_rule(pattern=[\"git\", \"push\"], decision=\"prompt\")",
                false,
            ),
        ] {
            assert_eq!(may_hold_key(text), expected, "{text}");
        }
    }
}
