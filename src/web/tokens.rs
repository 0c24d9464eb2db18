//! Takes HTML apart into texts and tags, as browsers do, and without a tree.
//!
//! Every byte is looked at a fixed number of times, whatever the markup: a tag of megabytes and an element that never
//! ends take no longer than others. Only the first attributes of a tag are kept.

use std::borrow::Cow;

use memchr::memmem;

use super::references;

/// Most attributes of a tag that are kept: a page that has more at one tag does so to slow its readers down.
const MAX_ATTRIBUTES: usize = 32;

/// Elements whose text has no tags, and ends with their own end tag only.
const RAW_TEXT: &[&str] = &[
    "script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes", "noscript",
];

/// Piece of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token<'p> {
    /// Text as it was written, with its references.
    Text(&'p str),
    /// Start tag.
    Start(StartTag<'p>),
    /// End tag: the name in lower case.
    End(Cow<'p, str>),
}

/// Start tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StartTag<'p> {
    /// Name in lower case.
    pub(super) name: Cow<'p, str>,
    /// True when it ends with `/>`.
    pub(super) is_closed: bool,
    attributes: Vec<(&'p str, &'p str)>,
}

impl<'p> StartTag<'p> {
    /// Returns an attribute with its references decoded; the first one counts.
    pub(super) fn attribute(&self, name: &str) -> Option<Cow<'p, str>> {
        let mut attributes = self.attributes.iter();
        let (_, value) = attributes.find(|(found, _)| found.eq_ignore_ascii_case(name))?;
        Some(references::decode(value))
    }

    /// Returns true when the attribute `class` has a word.
    pub(super) fn has_class(&self, word: &str) -> bool {
        let class = self.attribute("class").unwrap_or_default();
        class.split_ascii_whitespace().any(|found| found == word)
    }
}

/// Pieces of a page, in order.
#[derive(Debug)]
pub(super) struct Tokens<'p> {
    rest: &'p str,
    /// Element whose text has no tags.
    raw: Option<Cow<'p, str>>,
}

impl<'p> Tokens<'p> {
    /// Reads a page.
    pub(super) fn of(page: &'p str) -> Self {
        Self {
            rest: page,
            raw: None,
        }
    }

    /// Takes bytes from the start of the rest.
    fn take(&mut self, length: usize) -> &'p str {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    /// Takes the text before the end tag of an element without tags.
    fn raw_text(&mut self, name: &str) -> Option<Token<'p>> {
        let is_end = |at: &usize| {
            let after = self.rest.as_bytes().get(at + 2..).unwrap_or_default();
            let (found, next) = after.split_at_checked(name.len()).unwrap_or_default();
            found.eq_ignore_ascii_case(name.as_bytes())
                && next
                    .first()
                    .is_none_or(|sign| is_space(*sign) || matches!(sign, b'/' | b'>'))
        };
        let end = memmem::find_iter(self.rest.as_bytes(), "</").find(is_end);
        let text = self.take(end.unwrap_or(self.rest.len()));
        (!text.is_empty()).then_some(Token::Text(text))
    }

    /// Takes what stands at `<`; nothing when it is no text and no tag.
    fn markup(&mut self) -> Option<Token<'p>> {
        let bytes = self.rest.as_bytes();
        match (bytes.get(1), bytes.get(2)) {
            (Some(b'!'), _) if self.rest.starts_with("<!--") => {
                // `<!-->` is one, too.
                let end = memmem::find(bytes.get(2..).unwrap_or_default(), b"-->");
                self.take(end.map_or(self.rest.len(), |end| end + 5));
                None
            }
            (Some(b'/'), Some(sign)) if sign.is_ascii_alphabetic() => {
                self.take(2);
                self.tag().map(|tag| Token::End(tag.name))
            }
            (Some(b'!' | b'?' | b'/'), _) => {
                let end = memchr::memchr(b'>', bytes);
                self.take(end.map_or(self.rest.len(), |end| end + 1));
                None
            }
            (Some(sign), _) if sign.is_ascii_alphabetic() => {
                self.take(1);
                let tag = self.tag()?;
                self.raw = RAW_TEXT.contains(&&*tag.name).then(|| tag.name.clone());
                Some(Token::Start(tag))
            }
            _ => Some(Token::Text(self.take(1))),
        }
    }

    /// Takes a tag from its name on; nothing when it does not end.
    fn tag(&mut self) -> Option<StartTag<'p>> {
        let name = self.take_until(|sign| is_space(sign) || matches!(sign, b'/' | b'>'));
        let mut tag = StartTag {
            name: lower(name),
            is_closed: false,
            attributes: Vec::new(),
        };
        loop {
            let between = self.take_until(|sign| !is_space(sign) && sign != b'/');
            tag.is_closed = between.ends_with('/');
            if self.rest.is_empty() {
                return None;
            }
            if self.rest.starts_with('>') {
                self.take(1);
                return Some(tag);
            }
            let attribute = self.attribute();
            if tag.attributes.len() < MAX_ATTRIBUTES {
                tag.attributes.push(attribute);
            }
        }
    }

    fn attribute(&mut self) -> (&'p str, &'p str) {
        // An `=` at the start belongs to the name.
        let first = self.rest.chars().next().map_or(0, char::len_utf8);
        let more = self.rest.get(first..).unwrap_or_default();
        let length = length_until(more, |sign| {
            is_space(sign) || matches!(sign, b'/' | b'>' | b'=')
        });
        let name = self.take(first + length);
        let spaces = length_until(self.rest, |sign| !is_space(sign));
        if self.rest.as_bytes().get(spaces) != Some(&b'=') {
            return (name, "");
        }
        self.take(spaces + 1);
        self.take_until(|sign| !is_space(sign));
        match self.rest.as_bytes().first() {
            Some(quote @ (b'"' | b'\'')) => {
                self.take(1);
                let value = self.take_until(|sign| sign == *quote);
                self.take(1);
                (name, value)
            }
            _ => (name, self.take_until(|sign| is_space(sign) || sign == b'>')),
        }
    }

    fn take_until(&mut self, is_end: impl Fn(u8) -> bool) -> &'p str {
        self.take(length_until(self.rest, is_end))
    }
}

impl<'p> Iterator for Tokens<'p> {
    type Item = Token<'p>;

    fn next(&mut self) -> Option<Token<'p>> {
        if let Some(name) = self.raw.take()
            && let Some(text) = self.raw_text(&name)
        {
            return Some(text);
        }
        while !self.rest.is_empty() {
            let text =
                self.take(memchr::memchr(b'<', self.rest.as_bytes()).unwrap_or(self.rest.len()));
            if !text.is_empty() {
                return Some(Token::Text(text));
            }
            if let Some(token) = self.markup() {
                return Some(token);
            }
        }
        None
    }
}

/// Returns the bytes before the first one that ends something. The ends are ASCII, so characters stay whole.
fn length_until(text: &str, is_end: impl Fn(u8) -> bool) -> usize {
    text.bytes().position(is_end).unwrap_or(text.len())
}

fn is_space(sign: u8) -> bool {
    matches!(sign, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c')
}

fn lower(name: &str) -> Cow<'_, str> {
    match name.bytes().any(|sign| sign.is_ascii_uppercase()) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes tokens as `name(attribute=value)`, `/name` and `'text'`.
    #[track_caller]
    fn check(page: &str, expected: &str) {
        let written = Tokens::of(page).map(|token| match token {
            Token::Text(text) => format!("'{text}'"),
            Token::End(name) => format!("/{name}"),
            Token::Start(tag) => {
                let attributes = tag.attributes.iter().map(|(name, _)| {
                    format!("({name}={})", tag.attribute(name).unwrap_or_default())
                });
                format!(
                    "{}{}{}",
                    tag.name,
                    attributes.collect::<String>(),
                    if tag.is_closed { "/" } else { "" }
                )
            }
        });
        assert_eq!(written.collect::<Vec<_>>().join(" "), expected, "{page}");
    }

    #[test]
    fn tags_and_texts() {
        check("a<b>c</b>d", "'a' b 'c' /b 'd'");
        check(
            "<P Class=x ID='y z' q=\"1>2\">t</P >",
            "p(Class=x)(ID=y z)(q=1>2) 't' /p",
        );
        check("<br/><br / ><a href=/x/>", "br/ br a(href=/x/)");
        check(
            "<a href = '?a=1&amp;b=2' disabled>",
            "a(href=?a=1&b=2)(disabled=)",
        );
        check("<a =x a=1 a=2 b=>", "a(=x=)(a=1)(a=1)(b=)");
    }

    #[test]
    fn signs_that_are_no_tag_are_text() {
        check("1 < 2 <3 << <", "'1 ' '<' ' 2 ' '<' '3 ' '<' '<' ' ' '<'");
        check("a</>b</ c>d", "'a' 'b' 'd'");
    }

    #[test]
    fn comments_and_declarations_are_left_out() {
        check(
            "<!DOCTYPE html>a<!-- <b> -- > -->b<?php x ?>c<![CDATA[d]]>e",
            "'a' 'b' 'c' 'e'",
        );
        check("a<!-->b<!--->c<!---->d", "'a' 'b' 'c' 'd'");
        check("a<!-- never", "'a'");
    }

    #[test]
    fn scripts_that_look_like_text_are_one_text() {
        check(
            "<script>if (a<b) { '</scripty>' } <!-- </div></SCRIPT\n>c",
            "script 'if (a<b) { '</scripty>' } <!-- </div>' /script 'c'",
        );
        check("<title>a<b></title>", "title 'a<b>' /title");
        check("<style></style>x", "style /style 'x'");
        check("<script>never", "script 'never'");
    }

    #[test]
    fn what_never_ends_is_left_out() {
        check("a<b", "'a'");
        check("a<b c", "'a'");
        check("a<b c=\"d>e", "'a'");
        check("a</b", "'a'");
        check("a<!x", "'a'");
    }
}
