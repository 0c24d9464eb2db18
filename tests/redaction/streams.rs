//! Streams with values planted in them, and what must be true of what is left.

use karyi::secret::{SecretName, SecretValue};
use karyi::vault::redact::{Redacted, Redactor, is_guessable};
use karyi::vault::session::Secrets;

use super::reference;

/// Characters of a stretch that must never be seen.
const RUN: usize = 12;

/// Where choices come from: the bytes of a fuzzer first, then a row of random numbers.
pub struct Dice<'a> {
    given: &'a [u8],
    state: u64,
}

impl<'a> Dice<'a> {
    /// Makes random choices.
    pub fn random(seed: u64) -> Self {
        let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        Self { given: &[], state }
    }

    /// Makes the choices that bytes say.
    #[allow(dead_code, reason = "the fuzz target uses it")]
    pub fn given(given: &'a [u8]) -> Self {
        // A row that starts at a small number repeats itself at first, and so would value and text.
        let hash = |state: u64, byte: &u8| (state ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
        let state = given.iter().fold(0xCBF2_9CE4_8422_2325, hash) | 1;
        Self { given, state }
    }

    fn below(&mut self, limit: usize) -> usize {
        if let [first, rest @ ..] = self.given {
            self.given = rest;
            return usize::from(*first) % limit;
        }
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 16) as usize % limit
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

const HOSTILE: &[char] = &[
    'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'm', 'n', 'p', 'q', 'r', 's', 't', 'u',
    'v', 'w', 'x', 'y', 'z', 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', '0', '1', '2', '3', '4', '5',
    '6', '7', '8', '9', '-', '_', '.', '~', '/', '+', '=', '%', '&', '<', '>', '"', '\'', '\\',
    '$', '`', '!', '#', ' ', '*', '(', ')', '{', '}', '[', ']', '^', '|', ';', ':', ',', '?', '@',
    'é', '密',
];

const WORDS: &[&str] = &[
    "the",
    "quick",
    "warning:",
    "src/main.rs:12",
    "0x7ffd",
    "error[E0308]",
    "=>",
    "fn",
    "let",
    "100%",
    "https://example.com/a?b=c",
    "\"quoted\"",
    "{\"k\":1}",
    "ab12",
    "……",
    "日本語",
    "ok",
    "[INFO]",
    "$HOME",
    "\\n",
    "&amp;",
    "c29tZQ==",
    "deadbeef",
];

fn value(dice: &mut Dice<'_>) -> String {
    let length = if dice.below(5) == 0 {
        8 + dice.below(4)
    } else {
        12 + dice.below(60)
    };
    let mut value: String = (0..length).map(|_| dice.pick(HOSTILE)).collect();
    // White space at the ends is no part of what is compared.
    value = value.trim().to_owned();
    // One that is easy to guess is masked as a whole word only.
    while visible(&value).chars().count() < 8 || is_guessable(&value) {
        value.push(dice.pick(&HOSTILE[..40]));
    }
    // Of a URL or of JSON only parts are secret.
    let mut value = value.replace("://", ":_/");
    if serde_json::from_str::<serde_json::Value>(&value).is_ok_and(|json| !json.is_number()) {
        value.insert(0, 'a');
    }
    value
}

fn benign(dice: &mut Dice<'_>, out: &mut String) {
    for _ in 0..dice.below(30) {
        out.push_str(dice.pick(WORDS));
        out.push(dice.pick(&[' ', ' ', ' ', '\n', '\t']));
    }
}

/// What stands between the characters of a value, as programs and terminals put it there.
fn disguised(text: &str, dice: &mut Dice<'_>) -> String {
    let (every, between) = dice.pick(&[
        (usize::MAX, ""),
        (20, "\r\n"),
        (80, " \r"),
        (1, "\x1b[31m"),
        (1, "\x1b[38;5;200m\x1b[1m"),
        (7, "\x1b]0;title of it\x07"),
        (5, "\x1b]8;;https://example.com/\x1b\\"),
        (3, "\x1b[K\x1b[1C"),
        (7, "\n"),
        (4, "\x1bP1$r0m\x1b\\"),
        (6, "\x1b7\x1b(B"),
        (9, "\0\x08"),
    ]);
    let mut out = String::new();
    for (index, character) in text.chars().enumerate() {
        if index > 0 && index % every == 0 {
            out.push_str(between);
        }
        out.push(character);
    }
    out
}

/// Returns what a reader sees who leaves out escape sequences, control characters and white space.
pub fn visible(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        if character != '\x1b' {
            if character > ' ' && character != '\x7f' {
                out.push(character);
            }
            continue;
        }
        match rest.next() {
            Some('[') => while rest.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
            Some(']') => {
                while let Some(c) = rest.next() {
                    if c == '\x07' || (c == '\x1b' && rest.next().is_some()) {
                        break;
                    }
                }
            }
            Some('P') => {
                while rest
                    .next()
                    .is_some_and(|c| c != '\x1b' || rest.next().is_none())
                {}
            }
            Some('(') => {
                rest.next();
            }
            _ => {}
        }
    }
    out
}

fn redactor(values: &[String]) -> Redactor {
    let secrets = Secrets::default();
    for (number, value) in values.iter().enumerate() {
        let name = SecretName::parse(&format!("KEY_{number}")).unwrap();
        let value = SecretValue::new(value.clone());
        secrets.insert(name, value).unwrap();
    }
    Redactor::new(&secrets)
}

fn redact(redactor: &Redactor, text: &str, dice: &mut Dice<'_>) -> Redacted {
    let longest = dice.pick(&[1, 5, 700]);
    let (mut stream, mut out) = (redactor.stream(), Redacted::default());
    let mut rest = text;
    while !rest.is_empty() {
        let length = (1 + dice.below(longest)).min(rest.len());
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(length));
        stream.push(piece, &mut out);
        rest = after;
    }
    stream.finish(&mut out);
    out
}

/// Checks one stream with values in it; returns how many there were.
pub fn check(dice: &mut Dice<'_>) -> Result<u64, String> {
    let values: Vec<String> = (0..1 + dice.below(3)).map(|_| value(dice)).collect();
    let redactor = redactor(&values);
    let mut text = String::new();
    let mut forms = Vec::new();
    for _ in 0..1 + dice.below(3) {
        benign(dice, &mut text);
        let value = &values[dice.below(values.len())];
        let before = dice.pick(&["", "x", "ab", "abc", "user"]);
        let own = reference::encodings(value, before);
        let form = own[dice.below(own.len())].clone();
        text.push_str(&disguised(&form, dice));
        text.push(' ');
        forms.push(strip_before(&form, before, value));
    }
    benign(dice, &mut text);
    let out = redact(&redactor, &text, dice);
    let left = visible(&unmarked(out.as_str()));
    let planted = forms.len() as u64;
    for form in &forms {
        let form: Vec<char> = visible(form).chars().collect();
        for run in form.windows(RUN.min(form.len())) {
            let run: String = run.iter().collect();
            if left.contains(&run) {
                return Err(format!(
                    "{run:?} of {values:?} is seen in {out:?}\nof {text:?}"
                ));
            }
        }
    }
    Ok(planted)
}

/// Leaves out the digits that are not those of the value alone.
fn strip_before(form: &str, before: &str, value: &str) -> String {
    let is_digits = !before.is_empty()
        && reference::encodings(value, before)[1..3]
            .iter()
            .any(|own| own == form);
    let skipped = if is_digits {
        before.len() * 8 / 6 + 1
    } else {
        0
    };
    form.chars().skip(skipped).collect()
}

/// Puts a character that no value holds in place of every marker.
fn unmarked(text: &str) -> String {
    let mut out = text.to_owned();
    for number in 0..3 {
        out = out.replace(&format!("$KARYI{{KEY_{number}}}"), "\u{FFFC}");
        let start = format!("[KARYI:KEY_{number}:");
        while let Some(at) = out.find(&start) {
            let end = out[at..].find(']').map_or(out.len(), |end| at + end + 1);
            out.replace_range(at..end, "\u{FFFC}");
        }
    }
    out
}

/// Whether a text holds a run of some form of a value.
fn holds_run(text: &str, value: &str) -> bool {
    let text = visible(text);
    let mut forms = reference::encodings(value, "");
    forms.push(value.replace(' ', "+"));
    forms.iter().any(|form| {
        // The redactor counts bytes.
        let form = visible(form).into_bytes();
        let mut runs = form.windows(RUN.min(form.len()).max(1));
        runs.any(|run| text.as_bytes().windows(run.len()).any(|part| part == run))
    })
}

/// Checks one stream without any value in it.
pub fn check_benign(dice: &mut Dice<'_>) -> Result<(), String> {
    let values: Vec<String> = (0..1 + dice.below(3)).map(|_| value(dice)).collect();
    let redactor = redactor(&values);
    // A fuzzer repeats itself: made of its bytes, too, this would hold parts of the values.
    let mut noise = Dice::random(dice.state);
    let mut text = String::new();
    for _ in 0..1 + dice.below(4) {
        let mut part = String::new();
        benign(dice, &mut part);
        text.push_str(&disguised(&part, dice));
        (0..dice.below(200)).for_each(|_| text.push(noise.pick(HOSTILE)));
    }
    let out = redact(&redactor, &text, dice);
    // A fuzzer may make a value of the very words.
    if out.as_str() == text || values.iter().any(|value| holds_run(&text, value)) {
        Ok(())
    } else {
        Err(format!("{text:?} with {values:?} became {out:?}"))
    }
}
