//! Takes the values of secrets out of text that is shown, logged or sent.
//!
//! A value shows as the placeholder that stands for it, so that what was read can be written back;
//! an encoded one or a part of one shows as `[KARYI:NAME:form]`. What looks like a placeholder but
//! is the program's own text gets a second `$`. Text comes in pieces: as much of it is held back as
//! could still become a match, not a byte more. Colour codes and line wraps inside a value hide it
//! from this matcher; that is a documented limit for now.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use aho_corasick::automaton::StateID;
use zeroize::Zeroizing;

use super::needles::{Needle, Tables};
use super::session::Secrets;
use crate::limits;

/// Text that has passed the redactor. Nothing else can make one.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Redacted(String);

impl Redacted {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Takes the text out.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

impl fmt::Debug for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Masks the session's secrets; clones share their tables.
#[derive(Clone)]
pub struct Redactor {
    secrets: Secrets,
    tables: Arc<Mutex<Arc<Tables>>>,
}

impl Redactor {
    /// Makes the redactor of a session. It follows later changes of the secrets by itself.
    #[must_use]
    pub fn new(secrets: &Secrets) -> Self {
        Self {
            secrets: secrets.clone(),
            tables: Arc::new(Mutex::new(Arc::new(Tables::build(secrets)))),
        }
    }

    /// Whether there is nothing to mask so far.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.secrets.is_empty()
    }

    /// Starts on a text that went through a redactor before: its placeholders stay as they are.
    #[must_use]
    pub fn second_stream(&self) -> RedactStream {
        RedactStream {
            keeps_placeholders: true,
            ..self.stream()
        }
    }

    /// Starts on a text that comes in pieces.
    #[must_use]
    pub fn stream(&self) -> RedactStream {
        let tables = self.tables();
        RedactStream {
            redactor: self.clone(),
            state: tables.start,
            tables,
            held: Zeroizing::new(String::new()),
            base: 0,
            given: 0,
            regions: VecDeque::new(),
            keeps_placeholders: false,
        }
    }

    /// Returns the text with every secret masked.
    #[must_use]
    pub fn redact_str<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let tables = self.tables();
        if !tables.has_match(text.as_bytes()) {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut stream = self.stream();
        stream.push(text, &mut out);
        stream.finish(&mut out);
        Cow::Owned(out)
    }

    /// Returns a text that went through a redactor before with every secret masked.
    #[must_use]
    pub fn redact_again(&self, text: &str) -> String {
        let (mut out, mut stream) = (String::new(), self.second_stream());
        stream.push(text, &mut out);
        stream.finish(&mut out);
        out
    }

    /// Masks a whole text.
    #[must_use]
    pub fn redact(&self, text: &str) -> Redacted {
        Redacted(self.redact_str(text).into_owned())
    }

    /// Masks every string and every object key of a JSON value.
    pub fn redact_json(&self, value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) => self.redact_string(text),
            serde_json::Value::Array(items) => {
                items.iter_mut().for_each(|item| self.redact_json(item))
            }
            serde_json::Value::Object(map) => {
                for (mut key, mut value) in std::mem::take(map) {
                    self.redact_string(&mut key);
                    self.redact_json(&mut value);
                    map.insert(key, value);
                }
            }
            serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {
            }
        }
    }

    fn redact_string(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.redact_str(text) {
            *text = masked;
        }
    }

    fn tables(&self) -> Arc<Tables> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if tables.generation != self.secrets.generation() {
            *tables = Arc::new(Tables::build(&self.secrets));
        }
        Arc::clone(&tables)
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Redactor").field(&self.secrets).finish()
    }
}

/// A stretch of the stream that is masked: one match, or several that overlap.
#[derive(Debug, Clone)]
struct Region {
    start: u64,
    end: u64,
    /// The longest match in it.
    needle: Needle,
    needle_len: u64,
}

impl Region {
    fn absorb(&mut self, other: &Self) {
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
        let is_better = (other.needle_len, std::cmp::Reverse(other.needle))
            > (self.needle_len, std::cmp::Reverse(self.needle));
        if is_better {
            self.needle = other.needle;
            self.needle_len = other.needle_len;
        }
    }
}

/// Masks a text that comes in pieces. Offsets count the bytes of the whole stream.
#[derive(Clone)]
pub struct RedactStream {
    redactor: Redactor,
    tables: Arc<Tables>,
    state: StateID,
    /// The end of the text so far; it starts at `base` or earlier than `given`.
    held: Zeroizing<String>,
    /// Where `held` starts.
    base: u64,
    /// Everything before this is settled.
    given: u64,
    /// Masked stretches that end in `held`, in order, apart from each other.
    regions: VecDeque<Region>,
    /// Whether what looks like a placeholder is left alone.
    keeps_placeholders: bool,
}

impl RedactStream {
    /// Takes the next piece and appends to `out` what is settled by now.
    pub fn push(&mut self, text: &str, out: &mut String) {
        if self.tables.generation != self.redactor.secrets.generation() {
            self.change_tables();
        }
        let from = self.held.len();
        self.held.push_str(text);
        self.scan_held(from);
        let open = self.tables.open_bytes(self.state);
        self.settle(self.end() - open as u64, out);
    }

    /// Appends the rest after the text came to its normal end.
    pub fn finish(mut self, out: &mut String) {
        self.settle(self.end(), out);
    }

    /// Appends the rest after the text was cut off: what may be the start of a value is masked.
    pub fn finish_cut(mut self, out: &mut String) {
        self.cut(out);
    }

    /// Appends everything so far, as if the text ended here, and goes on: a value that was begun is
    /// known when it is completed.
    pub fn flush(&mut self, out: &mut String) {
        self.settle(self.end(), out);
    }

    /// Does so, and masks what may be the start of a value.
    pub fn cut(&mut self, out: &mut String) {
        let end = self.end();
        if end > self.given
            && let Some(&(bytes, pattern)) = self.tables.starts.get(&self.state)
            && bytes >= limits::MIN_CUT_SECRET_BYTES
            && let Some(needle @ Needle::Value(..)) = self.tables.needles.get(pattern).copied()
        {
            // A needle length that no region has makes the marker say that it is a part.
            let start = end - bytes as u64;
            let is_complete = self
                .regions
                .back()
                .is_some_and(|r| r.start <= start && r.end == end);
            if !is_complete {
                self.add(Region {
                    start,
                    end,
                    needle,
                    needle_len: 0,
                });
            }
        }
        self.settle(end, out);
    }

    fn end(&self) -> u64 {
        self.base + self.held.len() as u64
    }

    /// Takes what is held through new tables: a secret became known in the middle of the text.
    fn change_tables(&mut self) {
        let old = std::mem::replace(&mut self.tables, self.redactor.tables());
        self.state = self.tables.start;
        let given = self.given;
        self.regions.retain(|region| region.start < given);
        for region in &mut self.regions {
            if let Needle::Value(form, index) = region.needle {
                let name = old.names.get(index);
                let index = self.tables.names.iter().position(|n| Some(n) == name);
                region.needle = Needle::Value(form, index.unwrap_or(usize::MAX));
            }
        }
        self.scan_held(self.index(given));
    }

    fn scan_held(&mut self, from: usize) {
        let tables = Arc::clone(&self.tables);
        let held = std::mem::take(&mut *self.held);
        let offset = self.base + from as u64;
        let bytes = held.as_bytes().get(from..).unwrap_or_default();
        self.state = tables.scan(self.state, bytes, |at, state| {
            let end = offset + at as u64;
            for (needle, len) in tables.matches(state) {
                let needle_len = len as u64;
                let start = end - needle_len;
                self.add(Region {
                    start,
                    end,
                    needle,
                    needle_len,
                });
            }
            true
        });
        *self.held = held;
    }

    /// Adds a match that ends last of all so far; matches that overlap become one region.
    fn add(&mut self, mut region: Region) {
        while let Some(last) = self.regions.pop_back_if(|last| last.end > region.start) {
            region.absorb(&last);
        }
        self.regions.push_back(region);
    }

    /// Gives out everything before `safe`, where the first match that is still open may start.
    fn settle(&mut self, safe: u64, out: &mut String) {
        // What a cut has given out already may belong to a match that is still open.
        let safe = safe.max(self.given);
        let mut at = self.given;
        while let Some(region) = self.regions.pop_front_if(|region| region.end <= safe) {
            self.give(at, region.start, out);
            match region.needle {
                Needle::Marker(_) if self.keeps_placeholders => {
                    self.give(at.max(region.start), region.end, out);
                }
                needle => {
                    let is_whole = region.end - region.start == region.needle_len;
                    out.push_str(&self.tables.marker(needle, is_whole));
                }
            }
            at = at.max(region.end);
        }
        let open = self
            .regions
            .front()
            .map_or(safe, |region| region.start.min(safe));
        self.give(at, open, out);
        self.given = safe;
        self.forget();
    }

    fn give(&self, from: u64, to: u64, out: &mut String) {
        if from < to {
            let range = self.index(from)..self.index(to);
            out.push_str(self.held.get(range).unwrap_or_default());
        }
    }

    fn index(&self, offset: u64) -> usize {
        usize::try_from(offset.saturating_sub(self.base)).unwrap_or(usize::MAX)
    }

    /// Drops settled text once it is the larger part of what is held: moving the rest to the front
    /// each time would cost more than keeping it.
    fn forget(&mut self) {
        let settled = self.index(self.given);
        if settled > self.held.len() / 2 {
            self.held.drain(..settled);
            self.base = self.given;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::{SecretName, SecretValue};

    const T: &str = "S3cr3t-T0ken/Val+ue_AbCdEf0123456789xyz";
    const M: &str = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----\n";

    fn secrets(values: &[(&str, &str)]) -> Secrets {
        let secrets = Secrets::default();
        for (name, value) in values {
            let name = SecretName::parse(name).unwrap();
            secrets
                .insert(name, SecretValue::new((*value).into()))
                .unwrap();
        }
        secrets
    }

    /// Checks a text as a whole and cut in two at every place.
    fn check(values: &[(&str, &str)], text: &str, expected: &str) {
        let redactor = Redactor::new(&secrets(values));
        assert_eq!(redactor.redact_str(text), expected, "{text:?}");
        for (cut, _) in text.char_indices() {
            assert_eq!(
                in_pieces(&redactor, &[&text[..cut], &text[cut..]]),
                expected,
                "{text:?} cut at {cut}"
            );
        }
        let letters: Vec<&str> = text.split_inclusive(|_| true).collect();
        assert_eq!(
            in_pieces(&redactor, &letters),
            expected,
            "{text:?} letter by letter"
        );
    }

    fn in_pieces(redactor: &Redactor, pieces: &[&str]) -> String {
        let (mut out, mut stream) = (String::new(), redactor.stream());
        pieces.iter().for_each(|piece| stream.push(piece, &mut out));
        stream.finish(&mut out);
        out
    }

    #[test]
    fn a_value_cut_in_pieces_is_never_whole() {
        let redactor = Redactor::new(&secrets(&[("K", T)]));
        let text = format!("a {T} b {} c", &T[..20]);
        for first in 0..text.len() {
            for second in first..text.len() {
                let (mut out, mut stream) = (String::new(), redactor.stream());
                let pieces = [&text[..first], &text[first..second], &text[second..]];
                for piece in pieces {
                    stream.push(piece, &mut out);
                    stream.cut(&mut out);
                }
                for window in T.as_bytes().windows(limits::MIN_CUT_SECRET_BYTES + 4) {
                    let window = std::str::from_utf8(window).unwrap();
                    let is_start = T[..20].contains(window);
                    assert!(is_start || !out.contains(window), "{first} {second} {out}");
                }
                assert!(out.contains("$KARYI{K} b "), "{first} {second} {out}");
                assert!(out.ends_with(" c"), "{first} {second} {out}");
            }
        }
    }

    #[test]
    fn a_value_shows_as_its_placeholder() {
        check(&[("K", T)], "", "");
        check(&[("K", T)], "nothing here", "nothing here");
        check(&[("K", T)], T, "$KARYI{K}");
        check(
            &[("K", T)],
            &format!("a{T}b{T}{T}"),
            "a$KARYI{K}b$KARYI{K}$KARYI{K}",
        );
        check(
            &[("K", T)],
            &format!("a{}", &T[..38]),
            &format!("a{}", &T[..38]),
        );
        check(
            &[("U", "密码🔑pass-1234")],
            "密密码🔑pass-1234密码🔑pass-12",
            "密$KARYI{U}密码🔑pass-12",
        );
        check(
            &[("S", "hunter2x")],
            "hunter2 hunter2x",
            "hunter2 $KARYI{S}",
        );
    }

    #[test]
    fn encoded_values_are_named_as_such() {
        check(
            &[("K", T)],
            "x UzNjcjN0LVQwa2VuL1ZhbCt1ZV9BYkNkRWYwMTIzNDU2Nzg5eHl6Cg==",
            "x [KARYI:K:base64]Cg==",
        );
        check(
            &[("K", "abc/def?ghi")],
            "q=abc%2Fdef%3Fghi&",
            "q=[KARYI:K:percent]&",
        );
        check(
            &[("K", "say \"hi\" now")],
            r#"{"a":"say \"hi\" now"}"#,
            r#"{"a":"[KARYI:K:json]"}"#,
        );
        check(
            &[("K", "it's mine")],
            r"+ echo 'it'\''s mine'",
            "+ echo '[KARYI:K:shell]'",
        );
        check(
            &[("K", "JKLMNOP")],
            "0x4a4b4c4d4e4f50 4A4B4C4D4E4F50",
            "0x[KARYI:K:hex] [KARYI:K:hex]",
        );
    }

    #[test]
    fn lines_of_a_value_are_masked_on_their_own() {
        check(&[("M", M)], M, "$KARYI{M}");
        check(&[("M", M)], &M.replace('\n', "\r\n"), "$KARYI{M}");
        check(&[("M", M)], M.trim_end(), "[KARYI:M:part]");
        check(
            &[("M", M)],
            "-----BEGIN KEY-----\n> MIIEvQIBADANBgkqhkiG9w0B <\n",
            "-----BEGIN KEY-----\n> [KARYI:M:part] <\n",
        );
    }

    #[test]
    fn what_looks_like_a_placeholder_is_escaped() {
        check(&[], "plain $KARYI and $K", "plain $KARYI and $K");
        check(
            &[],
            "$KARYI{A} $$KARYI<B> $KARYI",
            "$$KARYI{A} $$$KARYI<B> $KARYI",
        );
        check(
            &[("K", "a$KARYI{K}b")],
            "a$KARYI{K}b $KARYI{K}",
            "$KARYI{K} $$KARYI{K}",
        );
        for text in ["$KARYI{A}", "$$KARYI<$KARYI{", "none"] {
            check(&[], text, &crate::secret::escape(text));
        }
    }

    #[test]
    fn overlapping_values_leave_nothing_between_them() {
        check(
            &[("A", "abcdef"), ("B", "defghi")],
            "xabcdefghix",
            "x[KARYI:A:part]x",
        );
        check(
            &[("A", "abcd"), ("B", "abcdefgh")],
            "abcd abcdefgh",
            "$KARYI{A} $KARYI{B}",
        );
        check(
            &[("A", "bcde"), ("B", "abcdefgh")],
            "abcdefgx abcdefgh",
            "a$KARYI{A}fgx $KARYI{B}",
        );
        check(
            &[("B", "same-value"), ("A", "same-value")],
            "same-value",
            "$KARYI{A}",
        );
        check(&[("A", "aaaa")], "aaaaaaaaab", "[KARYI:A:part]b");
    }

    #[test]
    fn a_cut_stream_masks_the_start_of_a_value() {
        let check = |text: &str, expected: &str| {
            let redactor = Redactor::new(&secrets(&[("K", T)]));
            let (mut out, mut stream) = (String::new(), redactor.stream());
            stream.push(text, &mut out);
            stream.finish_cut(&mut out);
            assert_eq!(out, expected, "{text:?}");
        };
        check("x S3c", "x S3c");
        check("x S3cr", "x [KARYI:K:part]");
        check(&format!("x {}", &T[..38]), "x [KARYI:K:part]");
        check(T, "$KARYI{K}");
        check(&format!("{T}{}", &T[..5]), "$KARYI{K}[KARYI:K:part]");
        check("$KARYI", "$KARYI");
    }

    #[test]
    fn nothing_is_held_back_without_reason() {
        let redactor = Redactor::new(&secrets(&[("K", T)]));
        let (mut out, mut stream) = (String::new(), redactor.stream());
        stream.push("password: S3cr3t", &mut out);
        assert_eq!(out, "password: ");
        stream.push("-no\n", &mut out);
        assert_eq!(out, "password: S3cr3t-no\n");
    }

    #[test]
    fn held_text_stays_small_on_endless_overlaps() {
        let redactor = Redactor::new(&secrets(&[("K", &"a".repeat(1000))]));
        let (mut out, mut stream) = (String::new(), redactor.stream());
        for _ in 0..20 {
            stream.push(&"a".repeat(1000), &mut out);
            assert!(stream.held.len() <= 4000 && stream.regions.len() <= 1);
        }
        stream.push("b", &mut out);
        stream.finish(&mut out);
        assert_eq!(out, "[KARYI:K:part]b");
    }

    #[test]
    fn a_secret_learnt_in_the_middle_is_masked_from_there() {
        let secrets = secrets(&[("A", "value-of-a")]);
        let redactor = Redactor::new(&secrets);
        let (mut out, mut stream) = (String::new(), redactor.clone().stream());
        stream.push("value-of-b value-of", &mut out);
        secrets
            .insert(
                SecretName::parse("B").unwrap(),
                SecretValue::new("value-of-b".into()),
            )
            .unwrap();
        stream.push("-b value-of-a", &mut out);
        stream.finish(&mut out);
        assert_eq!(out, "value-of-b $KARYI{B} $KARYI{A}");
        assert_eq!(redactor.redact("value-of-b").as_str(), "$KARYI{B}");
    }

    #[test]
    fn json_strings_and_keys_are_masked() {
        let redactor = Redactor::new(&secrets(&[("K", "se\"cret")]));
        let mut value = serde_json::json!({"se\"cret": [1, "a se\"cret b"], "ok": {"x": null}});
        redactor.redact_json(&mut value);
        assert_eq!(
            value,
            serde_json::json!({"$KARYI{K}": [1, "a $KARYI{K} b"], "ok": {"x": null}})
        );
    }

    #[test]
    fn large_values_are_masked_too() {
        let large: String = (0..6000_u32)
            .map(|i| char::from(b'a' + (i * i % 26) as u8))
            .collect();
        let redactor = Redactor::new(&secrets(&[("L", &large), ("K", T)]));
        assert_eq!(
            redactor.redact_str(&format!("{T}:{large}:{}", &large[..5000])),
            format!("$KARYI{{K}}:$KARYI{{L}}:{}", &large[..5000])
        );
    }
}
