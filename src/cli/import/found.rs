//! Settings of another assistant, translated into karyi's.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::approval::RuleKind;
use karyi_core::limits;

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
pub(super) struct Found {
    /// Files that were read.
    pub(super) files: Vec<PathBuf>,
    /// Rules with their lists.
    pub(super) rules: Vec<(RuleKind, String)>,
    /// Model as `PROVIDER:NAME`.
    pub(super) model: Option<String>,
    /// Names of MCP servers.
    pub(super) servers: Vec<String>,
    /// Settings that cannot be imported, in the words of the other assistant.
    pub(super) skipped: Vec<String>,
    /// Owner of the file that is read.
    pub(super) origin: Origin,
}

impl Found {
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

    /// Adds a rule, or tells that it cannot be taken over.
    pub(super) fn add(&mut self, list: RuleKind, source: &str, rule: Option<String>) {
        let rule = rule.filter(|_| list != RuleKind::Allow || self.origin == Origin::User);
        match rule {
            Some(rule) => self.rules.push((list, rule)),
            None => self.skip(list.as_str(), source),
        }
    }

    /// Takes the model over, when it is the user's own and karyi knows its provider.
    pub(super) fn set_model(&mut self, source: &str, model: Option<String>) {
        match model.filter(|_| self.origin == Origin::User) {
            Some(model) => self.model = Some(model),
            None => self.skip("model", source),
        }
    }

    /// Tells of something that cannot be taken over.
    pub(super) fn skip(&mut self, name: &str, source: &str) {
        let project = match self.origin {
            Origin::User => "",
            Origin::Project => ", in the project",
        };
        self.skipped.push(format!("{name}: {source}{project}"));
    }

    /// Leaves rules out that karyi does not take.
    pub(super) fn drop_broken(&mut self, is_rule: fn(&str) -> bool) {
        let (rules, broken): (Vec<_>, Vec<_>) = std::mem::take(&mut self.rules)
            .into_iter()
            .partition(|(_, rule)| is_rule(rule));
        self.rules = rules;
        let broken = broken.into_iter();
        let broken = broken.map(|(list, rule)| format!("{}: {rule}", list.as_str()));
        self.skipped.extend(broken);
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
        let shown = path.display();
        match std::fs::metadata(path) {
            Ok(found) if !found.is_file() => anyhow::bail!("{shown} is no file"),
            Ok(found) if found.len() > limits::MAX_SETTINGS_BYTES => {
                anyhow::bail!(
                    "{shown} is larger than {} bytes",
                    limits::MAX_SETTINGS_BYTES
                )
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => anyhow::bail!("{shown}: {error}"),
        }
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| anyhow::anyhow!("{shown}: {error}"))?;
        self.files.push(path.to_owned());
        Ok(Some(text))
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

/// Returns the rule of a command pattern with `*` at its end only; nothing for one that matches everything or has a
/// wildcard elsewhere.
pub(super) fn command_rule(pattern: &str) -> Option<String> {
    let pattern = pattern.trim();
    let (words, is_start) = match pattern.strip_suffix(":*").or(pattern.strip_suffix(" *")) {
        Some(words) => (words.trim(), true),
        None => (pattern, false),
    };
    let is_plain = !words.is_empty() && !words.contains(['*', '?', '\n']);
    is_plain.then(|| match is_start {
        true => format!("{words} *"),
        false => words.to_owned(),
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
            assert_eq!(command_rule(pattern).as_deref(), rule, "{pattern}");
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
}
