//! Texts between tags: the rules a model follows up to the end tag.
//!
//! A text consists of lines, a line of units. Units differ in their first characters, so that a parser never has
//! more than a few alternatives.

use super::{Grammar, MAX_LINES};

/// Characters that XML documents cannot contain, for a class.
const ILLEGAL: &str = r"\x01-\x08\x0B-\x1F\uFFFE\uFFFF";
/// `<` or `&` in a row.
const MAX_RUN: usize = 8;
/// Character references and entities, without `&`.
const REFERENCES: &[&str] = &["lt;", "gt;", "amp;", "quot;", "apos;"];

/// The characters allowed at one position of a word.
type Place = String;

impl Grammar {
    /// Text with entities, or one CDATA section.
    pub(super) fn text(&mut self) -> String {
        let (plain, after) = (none_of("<&]\n"), none_of("<&]"));
        let beyond = none_of("<&]>");
        let unit = format!(
            "{plain} | entity | \"]\" ({after} | entity) | \"]]\" \"]\"{{0,{MAX_RUN}}} ({beyond} | entity)"
        );
        let lines = self.lines("text", unit, &format!(" \"]\"{{0,{MAX_RUN}}}"));
        let cdata = self.cdata();
        self.rule("leaf", "", format!("{lines} | {cdata}"))
    }

    /// Text with entities, in which a backslash starts an escape.
    pub(super) fn typed_text(&mut self) -> String {
        let escape = self.escape();
        let unit = format!("{} | entity | {escape}", none_of("<&>\\\n"));
        self.lines("typed", unit, "")
    }

    /// Verbatim text up to the end tag of `name`.
    ///
    /// It contains neither the end tag nor its start tag, no CDATA section and no entity: karyi could read such a text
    /// in two ways.
    pub(super) fn raw_text(&mut self, place: &str, name: &str, is_escaped: bool) -> String {
        let also = if is_escaped { "\\" } else { "" };
        let amp = self.after_ampersand(is_escaped);
        let tail = format!("{place}-tag");
        let body = format!(
            "{} | \"&\"{{1,{MAX_RUN}}} {amp}",
            tail_of(&tags(name), &format!("<&{also}"))
        );
        self.rule(&tail, "", body);
        let plain = none_of(&format!("<&\n{also}"));
        let mut unit =
            format!("{plain} | \"<\"{{1,{MAX_RUN}}} {tail} | \"&\"{{1,{MAX_RUN}}} {amp}");
        if is_escaped {
            unit.push_str(&format!(" | {}", self.escape()));
        }
        let lines = self.lines(&format!("{place}-text"), unit, " \"&\"{0,2}");
        if is_escaped {
            return lines;
        }
        let cdata = self.cdata();
        format!("({lines} | {cdata})")
    }

    /// Continuations of `&` that form no entity.
    fn after_ampersand(&mut self, is_escaped: bool) -> String {
        let (name, stop) = match is_escaped {
            true => ("typed-ampersand", "<&\\"),
            false => ("ampersand", "<&"),
        };
        let word = |text: &&str| text.chars().map(Place::from).collect();
        let mut words: Vec<Vec<Place>> = REFERENCES.iter().map(word).collect();
        words.push(vec!["#".into(), "0123456789xX".into()]);
        self.rule(name, "", tail_of(&words, stop))
    }

    fn escape(&mut self) -> String {
        let plain = none_of("<&>xu");
        let hex = "[0-9a-fA-F]";
        let code = format!(
            "{hex}{{1,3}} | [0-9a-cA-CefEF] {hex}{{3}} | [1-9a-fA-F] {hex}{{4}} | \"10\" {hex}{{4}}"
        );
        let body = format!("\"\\\\\" ({plain} | \"x\" {hex}{{2}} | \"u{{\" ({code}) \"}}\")");
        self.rule("escape", "", body)
    }

    fn cdata(&mut self) -> String {
        let (plain, after, beyond) = (none_of("]\n"), none_of("]"), none_of("]>"));
        let unit = format!("{plain} | \"]\" {after} | \"]]\" \"]\"{{0,{MAX_RUN}}} {beyond}");
        let lines = self.lines("cdata-text", unit, "");
        let body = format!("\"<![CDATA[\" {lines} \"]\"{{2,{MAX_RUN}}} \">\"");
        self.rule("cdata", "", body)
    }

    /// Lines of units with an optional end.
    fn lines(&mut self, name: &str, unit: String, end: &str) -> String {
        self.rule(&format!("{name}-unit"), "", unit);
        let units = format!("{name}-unit{{0,{MAX_LINES}}}");
        let units = self.rule(&format!("{name}-units"), "", units);
        let line = self.rule(&format!("{name}-line"), "", format!("{units} \"\\n\""));
        self.rule(name, "", format!("{line}{{0,{MAX_LINES}}} {units}{end}"))
    }
}

/// Continuations of `<` that are excluded: the leaf's own tags and the start of CDATA.
fn tags(name: &str) -> Vec<Vec<Place>> {
    let letter = |c: char| match c.is_ascii_alphabetic() {
        true => format!("{}{}", c.to_ascii_lowercase(), c.to_ascii_uppercase()),
        false => c.to_string(),
    };
    let letters = || name.chars().map(letter);
    let end = std::iter::once("/".to_owned()).chain(letters());
    vec![
        end.chain(["> \t\n".to_owned()]).collect(),
        letters().chain(["/> \t\n".to_owned()]).collect(),
        ["!", "[", "C"].map(Place::from).to_vec(),
    ]
}

/// Spells out "one or more characters that do not become one of the words", up to the deciding character, which is
/// not in `stop`.
fn tail_of(words: &[Vec<Place>], stop: &str) -> String {
    let mut firsts: Vec<&Place> = Vec::new();
    for first in words.iter().filter_map(|word| word.first()) {
        if !firsts.contains(&first) {
            firsts.push(first);
        }
    }
    let taken: String = firsts.iter().map(|place| place.as_str()).collect();
    let mut ways = vec![none_of(&format!("{stop}{taken}"))];
    for first in firsts {
        let rest = words.iter().filter(|word| word.first() == Some(first));
        let rest: Vec<Vec<Place>> = rest
            .map(|word| word.iter().skip(1).cloned().collect())
            .collect();
        if rest.iter().all(|word| !word.is_empty()) {
            ways.push(format!("{} ({})", one_of(first), tail_of(&rest, stop)));
        }
    }
    ways.join(" | ")
}

/// A negated character class.
pub(super) fn none_of(characters: &str) -> String {
    format!("[^{}{ILLEGAL}]", class(characters))
}

fn one_of(characters: &str) -> String {
    format!("[{}]", class(characters))
}

fn class(characters: &str) -> String {
    let escaped = |c: char| match c {
        '\n' => "\\n".into(),
        '\t' => "\\t".into(),
        '\\' | '[' | ']' => format!("\\{c}"),
        c => c.to_string(),
    };
    characters.chars().map(escaped).collect()
}

/// A literal.
pub(super) fn literal(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_is_spelled_out_to_the_character_that_decides() {
        let check = |words: &[&[&str]], expected: &str| {
            let word = |word: &&[&str]| word.iter().map(|place| Place::from(*place)).collect();
            let words: Vec<Vec<Place>> = words.iter().map(word).collect();
            let found = tail_of(&words, "<").replace(ILLEGAL, "");
            assert_eq!(found, expected);
        };
        check(&[&["x"]], "[^<x]");
        check(&[&["a", "b"]], "[^<a] | [a] ([^<b])");
        check(&[&["a", "b"], &["a", "c"]], "[^<a] | [a] ([^<bc])");
        check(
            &[&["/", "aA", "> "], &["aA", ">"]],
            "[^</aA] | [/] ([^<aA] | [aA] ([^<> ])) | [aA] ([^<>])",
        );
    }
}
