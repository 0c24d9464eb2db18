//! Rules of Codex: calls of `prefix_rule` with a list of words and a decision. Other code in them is passed over.

use crate::approval::RuleKind;
use crate::cli::import::foreign_settings::ForeignSettings;
use karyi_core::shell_word::word;

/// Adds the rules of a file.
pub(super) fn add(text: &str, found: &mut ForeignSettings) {
    let code: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .collect();
    let code = code.join("\n");
    for call in code.split("prefix_rule(").skip(1) {
        let words = list(call, "pattern");
        let source = call.split('\n').next().unwrap_or_default().trim();
        let Some(list) = decision(call) else {
            let why = "its decision is not plainly allow, prompt or forbidden";
            found.skip("rule", &format!("prefix_rule({source}"), why);
            continue;
        };
        let rule = words.filter(|words| !words.is_empty()).map(|words| {
            let words: Vec<String> = words.into_iter().map(|text| word(text.as_ref())).collect();
            vec![format!("{} *", words.join(" "))]
        });
        let rule = rule.ok_or("its words are no plain list of texts");
        found.add(list, &format!("prefix_rule({source}"), rule);
    }
}

/// Returns the list that the decision of a rule belongs to: `allow` without one; nothing when it is not certain.
fn decision(call: &str) -> Option<RuleKind> {
    let mut decisions = arguments(call, "decision");
    let Some(first) = decisions.next() else {
        return Some(RuleKind::Allow);
    };
    let (text, _) = text_of(first).filter(|_| decisions.next().is_none())?;
    match text {
        "allow" => Some(RuleKind::Allow),
        "prompt" => Some(RuleKind::Ask),
        "forbidden" => Some(RuleKind::Deny),
        _ => None,
    }
}

/// Returns what follows the name of an argument, wherever it stands.
fn arguments<'a>(call: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    call.match_indices(name).filter_map(move |(at, name)| {
        let rest = call.get(at + name.len()..)?.trim_start();
        Some(rest.strip_prefix('=')?.trim_start())
    })
}

/// Returns the words of an argument that is a list of texts; nothing when something else is in it.
fn list<'a>(call: &'a str, name: &'a str) -> Option<Vec<&'a str>> {
    let first = arguments(call, name).next()?;
    let mut rest = first.strip_prefix('[')?.trim_start();
    let mut words = Vec::new();
    while !rest.starts_with(']') {
        let (word, after) = text_of(rest)?;
        words.push(word);
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(after) => after.trim_start(),
            None if after.starts_with(']') => after,
            None => return None,
        };
    }
    Some(words)
}

/// Returns a text in quotes, and what follows; nothing for one with escapes.
fn text_of(text: &str) -> Option<(&str, &str)> {
    let quote = text
        .chars()
        .next()
        .filter(|sign| matches!(sign, '"' | '\''))?;
    let rest = text.get(1..)?;
    let (word, after) = rest.split_at(rest.find(quote)?);
    let after = after.get(1..)?;
    (!word.contains('\\') && !word.contains('\n')).then_some((word, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_are_plain_are_taken_and_others_told() {
        let text = "prefix_rule(pattern=[\"a\", 'b c',], decision=\"prompt\")\n\
            prefix_rule(pattern=[\"a\", [\"b\", \"c\"]])\n\
            # prefix_rule(pattern=[\"x\"])\n\
            prefix_rule(pattern=[], decision=\"allow\")\n\
            prefix_rule(pattern=[\"y\"], decision=maybe)\n\
            prefix_rule(pattern=[\"z\"], decision=\"else\")\n\
            prefix_rule(pattern=[\"decision\"], decision=\"forbidden\")\n\
            prefix_rule(pattern=['decision=\"allow\"'], decision=\"forbidden\")\n\
            prefix_rule(";
        let mut found = ForeignSettings::default();
        add(text, &mut found);
        let expected = [
            (RuleKind::Ask, "a 'b c' *".to_owned()),
            (RuleKind::Deny, "decision *".to_owned()),
        ];
        assert_eq!(found.rules, expected);
        assert_eq!(found.skipped.len(), 6, "{:?}", found.skipped);
    }
}
