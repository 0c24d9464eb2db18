//! Tables of texts and their masked form, each cut in two at every place and letter by letter.

mod dumps;
mod encoded;
mod lines;
mod streams;

use super::*;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::{SecretName, SecretValue};

const T: &str = "S3cr3t-T0ken/Val+ue_AbCdEf0123456789xyz";
const M: &str =
    "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----\n";
const URL: &str = "postgres://admin:Zk7qPw2LmX9v@db.example.com:5432/prod";
const Q: &str = "it's \"a\" $HOME `id` \\";

fn secrets(values: &[(&str, &str)]) -> Secrets {
    let secrets = Secrets::default();
    for (name, value) in values {
        insert(&secrets, name, value);
    }
    secrets
}

fn insert(secrets: &Secrets, name: &str, value: &str) {
    let name = SecretName::parse(name).unwrap();
    let value = SecretValue::new(value.into());
    secrets.insert(name, value).unwrap();
}

/// Checks a text as a whole, cut in two at every place, and letter by letter.
#[track_caller]
fn check(values: &[(&str, &str)], text: &str, expected: &str) {
    let redactor = Redactor::new(&secrets(values));
    assert_eq!(redactor.redact_str(text), expected, "{text:?}");
    for (cut, _) in text.char_indices() {
        let pieces = in_pieces(&redactor, &[&text[..cut], &text[cut..]]);
        assert_eq!(pieces, expected, "{text:?} cut at {cut}");
    }
    let letters: Vec<&str> = text.split_inclusive(|_| true).collect();
    let pieces = in_pieces(&redactor, &letters);
    assert_eq!(pieces, expected, "{text:?} letter by letter");
}

fn in_pieces(redactor: &Redactor, pieces: &[&str]) -> String {
    let (mut out, mut stream) = (Redacted::default(), redactor.stream());
    // Settled text is removed at once.
    let mut shown = String::new();
    for piece in pieces {
        stream.push(piece, &mut out);
        shown.push_str(out.as_str());
        out.clear();
    }
    stream.finish(&mut out);
    shown + out.as_str()
}

fn cut(redactor: &Redactor, text: &str) -> String {
    let (mut out, mut stream) = (Redacted::default(), redactor.stream());
    stream.push(text, &mut out);
    stream.finish_cut(&mut out);
    out.into_string()
}

#[test]
fn a_value_shows_as_its_placeholder() {
    check(&[("K", T)], "", "");
    check(&[("K", T)], "nothing here", "nothing here");
    check(&[("K", T)], T, "$KARYI{K}");
    let twice = format!("a{T}b{T}{T}");
    check(&[("K", T)], &twice, "a$KARYI{K}b$KARYI{K}$KARYI{K}");
    check(
        &[("U", "密码🔑pass-1234")],
        "密密码🔑pass-1234密码🔑pas",
        "密$KARYI{U}密码🔑pas",
    );
    check(
        &[("S", "hunter2x")],
        "hunter2 hunter2x",
        "hunter2 $KARYI{S}",
    );
    check(&[("S", "ten-letter")], "ten-letter!", "$KARYI{S}!");
    check(&[("S", "ten-letter")], "ten-lette!", "ten-lette!");
    check(&[("W", "two  spaces * ~")], "two  spaces * ~", "$KARYI{W}");
}

#[test]
fn a_part_of_twelve_bytes_is_masked() {
    check(&[("K", T)], &T[..38], "[KARYI:K:part]");
    check(&[("K", T)], &format!("<{}>", &T[5..17]), "<[KARYI:K:part]>");
    let eleven = format!("<{}>", &T[5..16]);
    check(&[("K", T)], &eleven, &eleven);
}

#[test]
fn seeing_a_value_makes_no_shorter_part_a_match() {
    let text = format!("{0} {T} {0} {1}", &T[10..16], &T[10..21]);
    let expected = format!("{0} $KARYI{{K}} {0} {1}", &T[10..16], &T[10..21]);
    check(&[("K", T)], &text, &expected);
}

#[test]
fn escapes_wraps_and_white_space_hide_nothing() {
    let shown = |text: &str, expected: &str| check(&[("K", T)], text, expected);
    let coloured: String = T.chars().map(|c| format!("\x1b[3{}m{c}", 1)).collect();
    shown(&format!("{coloured}\x1b[0m."), "\x1b[31m$KARYI{K}\x1b[0m.");
    let wrapped = format!("{} \r{}", &T[..20], &T[20..]);
    shown(&wrapped, "[KARYI:K:part]");
    let returned = format!("{}\r\n{}", &T[..20], &T[20..]);
    shown(&returned, "[KARYI:K:part]");
    let spaced: Vec<String> = T.chars().map(String::from).collect();
    shown(
        &format!("0000000   {}\n", spaced.join("   ")),
        "0000000   [KARYI:K:part]\n",
    );
    let titled = format!("{}\x1b]0;title\x07{}", &T[..20], &T[20..]);
    shown(&titled, "$KARYI{K}");
    shown(&format!("\x1b]0;{T}\x07."), "\x1b]0;$KARYI{K}\x07.");
    shown(
        &format!("\x1b]8;;http://x/{T}\x1b\\link\x1b]8;;\x1b\\"),
        "\x1b]8;;http://x/$KARYI{K}\x1b\\link\x1b]8;;\x1b\\",
    );
    shown(&format!("\x1bP{T}\x1b\\"), "\x1bP$KARYI{K}\x1b\\");
    shown(&format!("\x1b(B{T}\x1b=\x1b["), "\x1b(B$KARYI{K}\x1b=\x1b[");
    shown(
        &format!("\x1b]0;never closed\n{T}"),
        "\x1b]0;never closed\n$KARYI{K}",
    );
}

#[test]
fn dumps_show_no_more_than_a_few_bytes() {
    let redactor = Redactor::new(&secrets(&[("K", T)]));
    let text = "00000000  53 33 63 72 33 74 2d 54  30 6b 65 6e 2f 56 61 6c  |S3cr3t-T0ken/Val|\n\
        00000010  2b 75 65 5f 41 62 43 64  45 66 30 31 32 33 34 35  |+ue_AbCdEf012345|\n\
        00000020  36 37 38 39 78 79 7a                              |6789xyz|\n00000027\n";
    assert_eq!(
        redactor.redact_str(text),
        "00000000  [KARYI:K:hex]  |[KARYI:K:part]|\n\
         00000010  [KARYI:K:hex]  |[KARYI:K:part]|\n\
         00000020  [KARYI:K:hex]                              |6789xyz|\n00000027\n"
    );
}

#[test]
fn lines_of_a_value_are_masked_on_their_own() {
    check(&[("M", M)], M, "$KARYI{M}");
    check(&[("M", M)], &format!("{M}\nx"), "$KARYI{M}\nx");
    check(&[("M", M)], &M.replace('\n', "\r\n"), "$KARYI{M}");
    check(&[("M", M)], M.trim_end(), "[KARYI:M:part]");
    check(&[("M", M)], &M.replace('\n', " "), "[KARYI:M:part] ");
    check(
        &[("M", M)],
        "-----BEGIN KEY-----\n> MIIEvQIBADANBgkqhkiG9w0B <\n",
        "-----BEGIN KEY-----\n> [KARYI:M:part] <\n",
    );
}

#[test]
fn only_the_secret_parts_of_a_structure_are_masked_alone() {
    check(&[("C", URL)], URL, "$KARYI{C}");
    check(&[("C", URL)], "pw Zk7qPw2LmX9v.", "pw [KARYI:C:part].");
    let host = "at db.example.com:5432/prod as admin";
    check(&[("C", URL)], host, host);
    check(
        &[("C", URL)],
        "postgres://admin:x@db.example.com:5432/prod",
        "postgres://admin:x@db.example.com:5432/prod",
    );
    let json = r#"{"type":"service_account","private_key":"MIIEvQIBADANBgkqhkiG9w0BAQ","id":1}"#;
    check(&[("J", json)], json, "$KARYI{J}");
    let benign = r#"{"type":"service_account","private_key":"other","id":1}"#;
    check(&[("J", json)], benign, benign);
    check(
        &[("J", json)],
        "MIIEvQIBADANBgkqhkiG9w0BAQ",
        "[KARYI:J:part]",
    );
    let frame = "-----BEGIN KEY-----\nother\n-----END KEY-----\n";
    check(&[("M", M)], frame, frame);
}

#[test]
fn short_values_are_masked_as_words() {
    check(&[("P", "pw1!z")], "pw1!z", "$KARYI{P}");
    check(
        &[("P", "pw1!z")],
        "x=pw1!z; (pw1!z)",
        "x=$KARYI{P}; ($KARYI{P})",
    );
    check(
        &[("P", "pw1!z")],
        "apw1!zb pw1!zb apw1!z",
        "apw1!zb pw1!zb apw1!z",
    );
    // Base64, and coloured text; a strong value is found in the first.
    check(
        &[("P", "hunter2")],
        "aHVudGVyMg== xhunter2",
        "aHVudGVyMg== xhunter2",
    );
    check(
        &[("P", "hunter2")],
        "\u{1b}[01;31m\u{1b}[Khunter2\u{1b}[m",
        "\u{1b}[01;31m\u{1b}[K$KARYI{P}\u{1b}[m",
    );
    check(
        &[("P", "postgres")],
        "postgresql postgres://postgres@h",
        "postgresql $KARYI{P}://$KARYI{P}@h",
    );
    let url = "postgres://admin:password@db/x";
    check(
        &[("P", url)],
        &format!("passwords password {url} passwords"),
        "passwords [KARYI:P:part] $KARYI{P} passwords",
    );
    // Its encoded forms are hard to guess.
    check(
        &[("P", url)],
        "cG9zdGdyZXM6Ly9hZG1pbjpwYXNzd29yZEBkYi94 cGFzc3dvcmQ=",
        "[KARYI:P:base64] cGFzc3dvcmQ=",
    );
    let json = "{\"secret\":\"internationally\",\"port\":5432}";
    check(
        &[("P", json)],
        &format!("xinternationally internationally. {json} xinternationally"),
        "xinternationally [KARYI:P:part]. $KARYI{P} xinternationally",
    );
    check(
        &[("P", "a b c d e")],
        "a b c d e, a b c d ef",
        "$KARYI{P}, a b c d ef",
    );
    check(&[("P", "!ab!")], "x!ab!y", "x$KARYI{P}y");
}

/// A word ends with its letters; in scripts without spaces any position may end one.
#[test]
fn short_values_of_any_script_are_masked_as_words() {
    for (value, text, expected) in [
        (
            "кот",
            "который кот, скот и кот_1",
            "который $KARYI{P}, скот и кот_1",
        ),
        ("кот", "кот", "$KARYI{P}"),
        (
            "кот",
            "(кот)ё кот\u{2026}",
            "($KARYI{P})ё $KARYI{P}\u{2026}",
        ),
        ("été", "répété été.", "répété $KARYI{P}."),
        ("pw1!z", "épw1!z pw1!zя pw1!z", "épw1!z pw1!zя $KARYI{P}"),
        ("!ab!", "я!ab!я", "я$KARYI{P}я"),
        ("密码", "我的密码是", "我的$KARYI{P}是"),
        ("ไท", "ภาษาไทย", "ภาษา$KARYI{P}ย"),
        ("🔑", "a🔑b", "a$KARYI{P}b"),
    ] {
        check(&[("P", value)], text, expected);
    }
}

#[test]
fn literal_placeholders_are_escaped() {
    check(&[], "plain $KARYI and $K", "plain $KARYI and $K");
    check(
        &[],
        "$KARYI{A} $$KARYI<B> $KARYI",
        "$$KARYI{A} $$$KARYI<B> $KARYI",
    );
    check(
        &[("K", "a$KARYI{K}b")],
        "$KARYI{K} a$KARYI{K}b",
        "$$KARYI{K} $KARYI{K}",
    );
    for text in ["$KARYI{A}", "$$KARYI<$KARYI{", "none"] {
        check(&[], text, &karyi_core::secret::escape(text));
        check(&[("K", T)], text, &karyi_core::secret::escape(text));
    }
    // `$$KARYI{K}` would be read as the literal.
    check(&[("K", T)], &format!("${T}"), "$[KARYI:K:part]");
}

#[test]
fn a_hint_shows_what_is_to_be_written() {
    let redactor = Redactor::new(&secrets(&[]));
    for code in ErrorCode::ALL {
        let error = redactor
            .redact_error(ToolError::new(*code, ""))
            .into_inner();
        assert_eq!(error.hint, code.hint());
    }
    let quoting = ToolError::new(ErrorCode::FindNotFound, "").with_quoting_hint("a $KARYI{A}");
    assert_eq!(
        redactor.redact_error(quoting).into_inner().hint,
        "a $$KARYI{A}"
    );
}

#[test]
fn overlapping_values_leave_nothing_between_them() {
    check(
        &[("A", "ab1defghijkl"), ("B", "ghijklmn0pqrs")],
        "<ab1defghijklmn0pqrs>",
        "<[KARYI:B:part]>",
    );
    check(
        &[("A", "abcdefgh"), ("B", "abcdefghij")],
        "abcdefgh abcdefghij",
        "$KARYI{A} $KARYI{B}",
    );
    check(
        &[("B", "same-value"), ("A", "same-value")],
        "same-value",
        "$KARYI{A}",
    );
}

#[test]
fn short_passwords_of_urls_are_masked_as_words() {
    let url = "postgres://admin:Zk7qP@db.example.com:5432/prod";
    check(&[("K", url)], "pw Zk7qP.", "pw [KARYI:K:part].");
    check(
        &[("K", url)],
        "pw Zk7qPs db.example.com",
        "pw Zk7qPs db.example.com",
    );
    check(&[("K", url)], url, "$KARYI{K}");
    let json = "{\"dsn\":\"postgres://admin:Zk7qP@db.example.com/prod\",\"port\":1}";
    check(&[("K", json)], "pw Zk7qP.", "pw [KARYI:K:part].");
    let json = "{\"dsn\":\"postgres://admin:Zk7qPw2LmX9v@db.example.com/prod\",\"port\":1}";
    check(&[("K", json)], "pw Zk7qPw2LmX9v.", "pw [KARYI:K:part].");
}

#[test]
fn markers_stay_whole_when_a_value_holds_its_own_name() {
    let value = "my-db_password-2024!";
    let redactor = Redactor::new(&secrets(&[("db_password", value)]));
    let encoded = "bXktZGJfcGFzc3dvcmQtMjAyNCE=";
    let once = redactor
        .redact_str(&format!("{value} {encoded} my-db_password"))
        .into_owned();
    assert_eq!(
        once,
        "$KARYI{db_password} [KARYI:db_password:base64]E= [KARYI:db_password:part]"
    );
    assert_eq!(redactor.redact_again(&once), once);
    let other = "[KARYI:db_password:other] $KARYI{db_passwort} my-db_password-20";
    assert_eq!(
        redactor.redact_again(&format!("{value} {other}")),
        "$KARYI{db_password} [KARYI:db_password:other] $KARYI{db_passwort} [KARYI:db_password:part]"
    );
}

/// An escape that spans lines may be none: a value may begin after its sign.
#[test]
fn a_sign_at_the_end_of_a_line_hides_nothing_of_a_value() {
    let cases = [
        (
            "BC}8Aw7é+",
            "100%\nBC%7\u{1b}P1$r0m\u{1b}\\d8Aw7é+ ",
            "100%\n[KARYI:K:percent] ",
        ),
        (
            "BC}8Aw7é+",
            "100%\r\nBC%7d8Aw7é+",
            "100%\r\n[KARYI:K:percent]",
        ),
        ("BC}8Aw7é+", "100% BC%7d8Aw7é+", "100% [KARYI:K:percent]"),
        ("u00e9b-cd", "\\\nu00e9b\\x2dcd", "\\\n[KARYI:K:escaped]"),
        (
            "a-bw.7.9.F; aCek",
            "a\\-bw.7.9.F\\;\\\n aCek",
            "[KARYI:K:escaped]",
        ),
        (
            "86 (!>d>>C8@",
            "100%\n86%20%28%\n21>d>>C8@",
            "100%\n[KARYI:K:percent]",
        ),
        (
            "h\\,5v ~-<~rn&G",
            "h\\\\\\,5v\\  \r\\~-\\<\\~rn\\&G",
            "[KARYI:K:escaped]",
        ),
        ("x41!!bcde", "\\ x41\\!\\!bcde", "\\ [KARYI:K:escaped]"),
        (
            "ab-cd/efg-hij-klm",
            "%\nab%2dcd/ef%67%2dhij%2dklm.",
            "%\n[KARYI:K:percent].",
        ),
    ];
    for (value, text, expected) in cases {
        check(&[("K", value)], text, expected);
    }
}

/// The rest of the value stays masked.
#[test]
fn white_space_and_rows_of_one_byte_are_no_part_of_a_value() {
    let yaml =
        "apiVersion: v1\nusers:\n- name: admin\n  user:\n        token: Zk7qPw2LmX9v\n\n\n\n\n";
    let plain = [
        "00000000: 6465 6620 6628 293a 0a20 2020 2069 6620  def f():.    if ",
        "64656620 28293a0a202020202020202020202020202020202020202020202020206966",
        "ICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICBpZg==",
        "def%20f()%3A%0A%20%20%20%20%20%20%20%20if",
        "\\x20\\x20\\x20\\x20\\x20\\x20",
        "&#32;&#32;&#32;&#32;&#32;&#32;",
        "\\n\\n\\n\\n\\n\\n\\n",
    ];
    for text in plain {
        check(&[("K", yaml)], text, text);
    }
    let hex: String = yaml.bytes().map(|byte| format!("{byte:02x}")).collect();
    check(&[("K", yaml)], &hex, "[KARYI:K:hex]");
    check(&[("K", yaml)], yaml, "$KARYI{K}");
    check(&[("K", yaml)], "token: Zk7qPw2", "[KARYI:K:part]");
    // A repeated byte, and a value with little else.
    let row = "key-00000000000000-end";
    for text in [
        "0000000000000000",
        "0x0000000000000000",
        "30303030303030303030",
        "----key-0000",
    ] {
        check(&[("K", row)], text, text);
    }
    check(&[("K", row)], row, "$KARYI{K}");
    check(
        &[("K", row)],
        "6b65792d30303030303030303030303030302d656e64",
        "[KARYI:K:hex]",
    );
    for value in [
        "aaaaaaaaaaaaaaaa",
        "ab              cd",
        "=======-=",
        "a        b        c        d",
    ] {
        check(&[("K", value)], value, "$KARYI{K}");
        let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
        let percent: String = value.replace(' ', "%20").replace('=', "%3D");
        if visible::visible_bytes(value) >= ngram_table::WINDOW {
            check(&[("K", value)], &hex, "[KARYI:K:hex]");
            assert!(redacted(value, &percent).contains("KARYI"), "{percent}");
        }
    }
}

fn redacted(value: &str, text: &str) -> String {
    let redactor = Redactor::new(&secrets(&[("K", value)]));
    redactor.redact_str(text).into_owned()
}

/// A character counts once, however many bytes it takes.
#[test]
fn characters_count_and_not_their_bytes() {
    for (value, part) in [
        ("我的密码是1234567890", "我的密码"),
        ("Пароль-мой-секретный", "Пароль"),
        ("密码是什么pass-1234", "密码"),
    ] {
        let json = |text: &str| -> String {
            let units = text.encode_utf16();
            units.map(|unit| format!("\\u{unit:04x}")).collect()
        };
        let forms = |text: &str| [text.to_owned(), json(text), bytes(text, "%")];
        for shown in forms(part) {
            stays(value, &format!("<{shown}>"));
        }
        for shown in forms(value) {
            goes(value, &shown);
        }
    }
    let value = "Пароль-мой-секретный";
    check(&[("K", value)], "<роль-мой-се>", "<роль-мой-се>");
    check(&[("K", value)], "<роль-мой-сек>", "<[KARYI:K:part]>");
}

fn bytes(text: &str, before: &str) -> String {
    let bytes = text.bytes();
    bytes.map(|byte| format!("{before}{byte:02x}")).collect()
}

#[track_caller]
fn stays(value: &str, text: &str) {
    check(&[("K", value)], text, text);
}

/// Checks that something is masked as a whole.
#[track_caller]
fn goes(value: &str, shown: &str) {
    let text = redacted(value, &format!("<{shown}>"));
    assert!(
        text.starts_with("<[KARYI:K:") || text == "<$KARYI{K}>",
        "{shown} {text}"
    );
    assert_eq!(text.matches("KARYI").count(), 1, "{shown} {text}");
}

/// In a dump bytes count, and twelve are a run; after escape signs characters count.
#[test]
fn bytes_in_dumps_count() {
    for (value, few, enough) in [
        ("我的密码是1234567890", "我的密", "我的密码"),
        ("Пароль-мой-секретный", "Парол", "Пароль"),
        ("🔑🔐🔏🔒🔓-1", "🔑🔐", "🔑🔐🔏"),
    ] {
        stays(value, &format!("<{}>", bytes(few, "")));
        goes(value, &bytes(enough, ""));
        goes(value, &bytes(value, ""));
        stays(value, &bytes(enough, "\\x"));
        goes(value, &bytes(value, "\\x"));
    }
}

/// Other words of the script share their start and letters.
#[test]
fn other_words_of_a_script_stay() {
    let octal = |text: &str| -> String {
        let bytes = text.bytes();
        bytes.map(|byte| format!("\\{byte:03o}")).collect()
    };
    for (value, other) in [
        ("🔑🔓🔏🔒-abc1234", "🔑🔗🔓"),
        ("我的密码是1234567890", "我的寇"),
        ("Ключ-базовый-99", "базар лазо"),
        ("инный-секрет", "ерний д"),
        ("пароль от базы данных", "пар базар дал"),
    ] {
        stays(value, &bytes(other, ""));
        stays(value, &bytes(other, "\\x"));
        stays(value, &octal(other));
    }
}

/// Two keys of one kind share their header.
#[test]
fn heads_of_keys_and_tokens_are_no_secret() {
    let rsa = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\nMzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvu\n-----END PRIVATE KEY-----\n";
    let other = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDdq1mPz0uXlBn2\n";
    check(&[("K", rsa)], other, other);
    check(&[("K", rsa)], rsa, "$KARYI{K}");
    check(&[("K", rsa)], "C7VJTUt9Us8cKj", "[KARYI:K:part]");
    let jwt = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U";
    let others = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJvdGhlci0xMjM0In0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c";
    check(&[("K", jwt)], others, others);
    check(&[("K", jwt)], jwt, "$KARYI{K}");
    check(&[("K", jwt)], "sig dozjgNryP4J3jVm", "sig [KARYI:K:part]");
    let ssh = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\nQyNTUxOQAAACCk3Wq0Zr7mVx2LbN8yT1uJ5oHcE9aPsXfGdQwBvRkMIg\n-----END OPENSSH PRIVATE KEY-----\n";
    let text = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABx";
    check(&[("K", ssh)], text, text);
    check(&[("K", ssh)], "k3Wq0Zr7mVx2LbN8", "[KARYI:K:part]");
    let account = "{\"type\":\"service_account\",\"project_id\":\"my-project-123456\",\"private_key_id\":\"0a1b2c3d4e5f6a7b\",\"private_key\":\"-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\\n-----END PRIVATE KEY-----\\n\",\"client_email\":\"deploy@my-project-123456.iam.gserviceaccount.com\",\"token_uri\":\"https://oauth2.googleapis.com/token\"}";
    let text = "https://oauth2.googleapis.com/token deploy@my-project-123456.iam.gserviceaccount.com project my-project-123456";
    check(&[("K", account)], text, text);
    check(
        &[("K", account)],
        "id 0a1b2c3d4e5f6a7b",
        "id [KARYI:K:part]",
    );
    check(&[("K", account)], account, "$KARYI{K}");
    let jdbc = "jdbc:postgresql://db.example.com:5432/prod?user=admin&password=Zk7qPw2LmX9v";
    let text = "at jdbc:postgresql://db.example.com:5432/prod now";
    check(&[("K", jdbc)], text, text);
    check(&[("K", jdbc)], "pw Zk7qPw2LmX9v", "pw [KARYI:K:part]");
}
