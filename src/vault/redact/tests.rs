//! Tables of texts and what is left of them, each cut in two at every place and letter by letter.

use super::*;
use crate::limits;
use crate::secret::{SecretName, SecretValue};

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
    pieces.iter().for_each(|piece| stream.push(piece, &mut out));
    stream.finish(&mut out);
    out.into_string()
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
        "密$KARYI{U}[KARYI:U:part]",
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
fn shorter_parts_are_masked_once_the_value_was_seen() {
    let text = format!("{0} {T} {0} {1}", &T[10..16], &T[10..15]);
    let expected = format!("{} $KARYI{{K}} [KARYI:K:part] {}", &T[10..16], &T[10..15]);
    check(&[("K", T)], &text, &expected);
    let other = format!("{T} {}", &M[21..29]);
    check(
        &[("K", T), ("M", M)],
        &other,
        &format!("$KARYI{{K}} {}", &M[21..29]),
    );
}

/// A whole value in another form is shown as the name of the form.
fn named(value: &str, shown: &str, form: &str) {
    let expected = format!("<[KARYI:K:{form}]>");
    check(&[("K", value)], &format!("<{shown}>"), &expected);
}

/// What programs make of a value, in base64: the characters at the edge hold bits of others.
#[test]
fn values_in_base64_are_named_as_such() {
    check(
        &[("K", T)],
        "x UzNjcjN0LVQwa2VuL1ZhbCt1ZV9BYkNkRWYwMTIzNDU2Nzg5eHl6Cg==",
        "x [KARYI:K:base64]Cg==",
    );
    check(
        &[("K", T)],
        "UzNjcjN0LVQwa2VuL1Zh\nbCt1ZV9BYkNkRWYwMTIz\nNDU2Nzg5eHl6",
        "[KARYI:K:base64]",
    );
    check(
        &[("K", T)],
        "dXNlcjpTM2NyM3QtVDBrZW4vVmFsK3VlX0FiQ2RFZjAxMjM0NTY3ODl4eXo=",
        "dXNlcjp[KARYI:K:base64]o=",
    );
    check(
        &[("K", "??>>??>>~~")],
        "Pz8-Pj8_Pj5-fg==",
        "[KARYI:K:base64]g==",
    );
}

/// What programs make of a value.
#[test]
fn encoded_values_are_named_as_such() {
    named(
        T,
        "5333637233742d54306b656e2f56616c2b75655f4162436445663031323334353637383978797a",
        "hex",
    );
    named(
        T,
        "5333637233742D54306B656E2F56616C2B75655F4162436445663031323334353637383978797A",
        "hex",
    );
    named("abcdefgh", "6261 6463 6665 6867", "hex");
    named("abc/def?ghi", "abc%2Fdef%3Fghi", "percent");
    named("abc/def?ghi", "abc%2fdef%3fghi", "percent");
    named("a b&c=d é", "a+b%26c%3Dd+%C3%A9", "percent");
    named("say \"hi\" now", r#"say \"hi\" now"#, "json");
    named("say \"hi\" now", r#"say \\\"hi\\\" now"#, "json");
    named("密码🔑pass", r"\u5bc6\u7801\ud83d\udd11pass", "json");
    named("a<b&c'd\"e", "a&lt;b&amp;c&#x27;d&quot;e", "xml");
    named(
        "hunter2x",
        "&#104;&#117;&#110;&#116;&#101;&#114;&#50;&#120;",
        "xml",
    );
    named(
        "hunter2x",
        "&#x68;&#x75;&#x6e;&#x74;&#x65;&#x72;&#x32;&#x78;",
        "xml",
    );
    named("it's mine", r"it'\''s mine", "shell");
    named("it's mine", r#"it'"'"'s mine"#, "shell");
    named(Q, r#"it\'s\ \"a\"\ \$HOME\ \`id\`\ \\"#, "shell");
    named(Q, r#"it's \"a\" \$HOME \`id\` \\"#, "shell");
    named("it's\ta\nb", r"it\'s\ta\nb", "shell");
    named(T, "zyx9876543210fEdCbA_eu+laV/nek0T-t3rc3S", "reversed");
    check(&[("K", "hunter2x")], "NB2W45DFOIZHQ", "[KARYI:K:base32]Q");
    named("hunter2x", r"\x68\x75\x6e\x74\x65\x72\x32\x78", "escaped");
    named(
        "hunter2x",
        "%u0068%u0075%u006e%u0074%u0065%u0072%u0032%u0078",
        "escaped",
    );
    named("密码-1234", r"\xe5\xaf\x86\xe7\xa0\x81-1234", "escaped");
    check(
        &[("K", "hunter2x")],
        "h\0u\0n\0t\0e\0r\x002\0x\0",
        "[KARYI:K:part]\0",
    );
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
         00000020  [KARYI:K:hex]                              |[KARYI:K:part]|\n00000027\n"
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
    check(&[("P", "pw1!z")], "7077 3121 7a", "[KARYI:P:hex]");
    check(
        &[("P", "a b c d e")],
        "a b c d e, a b c d ef",
        "$KARYI{P}, a b c d ef",
    );
    check(&[("P", "!ab!")], "x!ab!y", "x$KARYI{P}y");
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
        "$KARYI{K} a$KARYI{K}b",
        "$$KARYI{K} $KARYI{K}",
    );
    for text in ["$KARYI{A}", "$$KARYI<$KARYI{", "none"] {
        check(&[], text, &crate::secret::escape(text));
        check(&[("K", T)], text, &crate::secret::escape(text));
    }
    // `$$KARYI{K}` would be read as the literal.
    check(&[("K", T)], &format!("${T}"), "$[KARYI:K:part]");
}

#[test]
fn overlapping_values_leave_nothing_between_them() {
    check(
        &[("A", "abcdefghijkl"), ("B", "ghijklmnopqrs")],
        "<abcdefghijklmnopqrs>",
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
    check(&[("A", "aaaaaaaa")], "aaaaaaaaaaaab", "[KARYI:A:part]b");
}

#[test]
fn a_cut_stream_masks_the_start_of_a_value() {
    let check = |text: &str, expected: &str| {
        let redactor = Redactor::new(&secrets(&[("K", T)]));
        assert_eq!(cut(&redactor, text), expected, "{text:?}");
    };
    check("x S3c", "x S3c");
    check("x S3cr", "x [KARYI:K:part]");
    check(&format!("x {}", &T[..11]), "x [KARYI:K:part]");
    check(&format!("x {}", &T[20..30]), "x [KARYI:K:part]");
    check(&format!("x {}", &T[..38]), "x [KARYI:K:part]");
    check(T, "$KARYI{K}");
    check(&format!("{T}{}", &T[..5]), "$KARYI{K}[KARYI:K:part]");
    check("$KARYI", "$KARYI");
}

#[test]
fn a_value_cut_in_pieces_is_never_whole() {
    let redactor = Redactor::new(&secrets(&[("K", T)]));
    let text = format!("a {T} b");
    for first in 0..text.len() {
        for second in first..text.len() {
            let (mut out, mut stream) = (Redacted::default(), redactor.stream());
            for piece in [&text[..first], &text[first..second], &text[second..]] {
                stream.push(piece, &mut out);
                stream.cut(&mut out);
            }
            let visible = out.as_str().replace(' ', "");
            for window in T.as_bytes().windows(limits::MIN_CUT_SECRET_BYTES) {
                let window = std::str::from_utf8(window).unwrap();
                assert!(!visible.contains(window), "{first} {second} {out}");
            }
            assert!(out.as_str().ends_with(" b"), "{first} {second} {out}");
        }
    }
}

#[test]
fn little_is_held_back() {
    let redactor = Redactor::new(&secrets(&[("K", T), ("M", M), ("C", URL)]));
    let text = format!("password: S3cr3t-T0ke, {} and {URL}", &M[21..32]).repeat(20);
    let (mut out, mut stream) = (Redacted::default(), redactor.stream());
    for letter in text.split_inclusive(|_| true) {
        stream.push(letter, &mut out);
        let held = stream.held_back();
        let visible = held.bytes().filter(|byte| *byte > b' ').count();
        // The start of a connection string is shown with the rest of it.
        let is_run = held.contains("postgres://");
        assert!(visible < limits::REDACTED_RUN_BYTES || is_run, "{held}");
    }
    let (mut out, mut stream) = (Redacted::default(), redactor.stream());
    stream.push("ready?~", &mut out);
    assert_eq!(out.as_str(), "ready?~");
}

/// A shell says `Killed` right behind what the program could still print.
#[test]
fn what_a_signal_cut_off_is_masked() {
    let redactor = Redactor::new(&secrets(&[("K", T)]));
    for (text, expected) in [
        ("a S3cr3t-TKilled\nb", "a [KARYI:K:part]Killed\nb"),
        ("S3crTerminated S3c", "[KARYI:K:part]Terminated S3c"),
        ("S3c\x1b[0mr3tAborted\n", "[KARYI:K:part]Aborted\n"),
        ("S3cKilled KilledKilled\n", "S3cKilled KilledKilled\n"),
        ("S3cr3t-TKille\n", "S3cr3t-TKille\n"),
        ("S3cr3t-T Killed\n", "[KARYI:K:part] Killed\n"),
    ] {
        for at in 0..=text.len() {
            let (mut out, mut stream) = (Redacted::default(), redactor.stream());
            stream.push(&text[..at], &mut out);
            stream.push(&text[at..], &mut out);
            stream.finish(&mut out);
            assert_eq!(out.as_str(), expected, "{at} {text:?}");
        }
    }
}

#[test]
fn held_text_stays_small() {
    let redactor = Redactor::new(&secrets(&[("K", &"a".repeat(1000)), ("T", T)]));
    let (mut out, mut stream) = (Redacted::default(), redactor.stream());
    for _ in 0..200 {
        stream.push(&"a".repeat(1000), &mut out);
        assert!(stream.held_back().len() <= limits::MAX_HELD_REDACTION_BYTES);
    }
    stream.push("b", &mut out);
    stream.finish(&mut out);
    let markers = out.as_str().matches("[KARYI:K:part]").count();
    assert_eq!(out.as_str().replace("[KARYI:K:part]", ""), "b");
    assert!(markers < 5, "{markers}");
    // A title that never ends.
    let (mut out, mut stream) = (Redacted::default(), redactor.stream());
    stream.push(&format!("{}\x1bP", &T[..11]), &mut out);
    for _ in 0..100 {
        stream.push(&"-".repeat(1000), &mut out);
        assert!(stream.held_back().len() <= limits::MAX_HELD_REDACTION_BYTES);
    }
    stream.push(&format!("\x1b\\{}", &T[11..]), &mut out);
    stream.finish(&mut out);
    assert!(
        !out.as_str().contains(&T[..6]) && !out.as_str().contains(&T[11..20]),
        "{out}"
    );
}

#[test]
fn a_secret_learnt_in_the_middle_is_masked_from_there() {
    let secrets = secrets(&[("A", "value-of-a")]);
    let redactor = Redactor::new(&secrets);
    let (mut out, mut stream) = (Redacted::default(), redactor.stream());
    stream.push("value-of-b value-of", &mut out);
    insert(&secrets, "B", "value-of-b");
    stream.push("-b value-of-a", &mut out);
    stream.finish(&mut out);
    assert_eq!(out.as_str(), "value-of-b $KARYI{B} $KARYI{A}");
    assert_eq!(redactor.redact("value-of-b").as_str(), "$KARYI{B}");
}

#[test]
fn json_strings_and_keys_are_masked() {
    let redactor = Redactor::new(&secrets(&[("K", "se\"cret-1")]));
    let mut value = serde_json::json!({"se\"cret-1": [1, "a se\"cret-1 b"], "ok": {"x": null}});
    redactor.redact_json(&mut value);
    let expected = serde_json::json!({"$KARYI{K}": [1, "a $KARYI{K} b"], "ok": {"x": null}});
    assert_eq!(value, expected);
}

#[test]
fn a_value_that_comes_up_only_when_text_is_escaped_is_masked() {
    let redactor = Redactor::new(&secrets(&[
        ("K", "a&lt;b&gt;c-1234"),
        ("L", "tab\\tquote\\\""),
    ]));
    assert_eq!(redactor.redact_str("x a<b>c-1234"), "x $KARYI{K}");
    assert_eq!(redactor.redact_str("tab\tquote\""), "$KARYI{L}");
    assert_eq!(redactor.redact_str("tab\tquote"), "tab\tquote");
}

#[test]
fn text_that_was_redacted_stays_as_it_is() {
    let redactor = Redactor::new(&secrets(&[("K", T)]));
    let once = redactor.redact(&format!("$KARYI{{X}} {T} {}", &T[..20]));
    assert_eq!(once.as_str(), "$$KARYI{X} $KARYI{K} [KARYI:K:part]");
    assert_eq!(redactor.redact_kept(once.as_str()), once);
}

#[test]
fn large_values_are_masked_too() {
    let large: String = (0..6000_u32)
        .map(|i| char::from(b'a' + (i * i / 7 % 26) as u8))
        .collect();
    let redactor = Redactor::new(&secrets(&[("L", &large), ("K", T)]));
    assert_eq!(
        redactor.redact_str(&format!("{T}:{large}:{}", &large[..5000])),
        "$KARYI{K}:$KARYI{L}:[KARYI:L:part]"
    );
}

#[test]
fn random_tokens_change_no_prose() {
    let redactor = Redactor::new(&secrets(&[
        ("A", T),
        ("B", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
        ("C", "0f8fad5b-d9cb-469f-a165-70867728950e"),
        ("D", "d41d8cd98f00b204e9800998ecf8427e"),
    ]));
    for text in [
        include_str!("tables.rs"),
        include_str!("../../limits.rs"),
        include_str!("../../limits/session.rs"),
        include_str!("../../limits/serve.rs"),
    ] {
        assert_eq!(
            redactor.redact_str(text),
            text.replace("$KARYI{", "$$KARYI{")
        );
    }
}

#[test]
fn a_hundred_secrets_take_four_megabytes() {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_/+=.";
    let secrets = Secrets::default();
    for index in 0..100 {
        let length = 20 + next() % 40;
        let value: String = (0..length)
            .map(|_| char::from(letters[next() % letters.len()]))
            .collect();
        insert(&secrets, &format!("S{index}"), &value);
    }
    let bytes = Redactor::new(&secrets).table_bytes();
    assert!(bytes <= 4 << 20, "{bytes} bytes");
}

#[test]
fn what_comes_up_only_when_written_is_masked_in_its_place() {
    let redactor = Redactor::new(&secrets(&[("T", "Zq8!vR2#mK5$wP9&xL3")]));
    let text = |leak: &str| format!("if (a < b && c) {{ {leak} }}\nsecond & \"line\" \\n\n");
    assert_eq!(
        redactor.redact_str(&text("$wP9&xL3")),
        text("[KARYI:T:xml]")
    );
    assert_eq!(redactor.redact_str(&text("nothing")), text("nothing"));
}

#[test]
fn octal_escapes_of_bash_are_masked() {
    let value = "пароль-密码-it's";
    let escaped: String = value.bytes().map(|byte| format!("\\{byte:03o}")).collect();
    named(value, &escaped, "escaped");
    let traced: String = value
        .bytes()
        .map(|byte| match byte {
            b'\'' => "\\'".to_owned(),
            0x20..=0x7e => char::from(byte).to_string(),
            _ => format!("\\{byte:03o}"),
        })
        .collect();
    check(
        &[("K", value)],
        &format!("+ v=$'{traced}'"),
        "+ v=$'[KARYI:K:escaped]'",
    );
    let ascii: String = T.bytes().map(|byte| format!("\\{byte:03o}")).collect();
    named(T, &ascii, "escaped");
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
        "$KARYI{db_password} [KARYI:[KARYI:db_password:part]:other] $KARYI{[KARYI:db_password:part]t} [KARYI:db_password:part]"
    );
}

#[test]
fn decoded_passwords_of_urls_are_masked() {
    let url = "postgres://admin:p%40ss%2Fw0rd%21x@db.example.com:5432/prod";
    check(&[("K", url)], "pw p@ss/w0rd!x.", "pw [KARYI:K:part].");
    check(&[("K", url)], url, "$KARYI{K}");
    // Parts of it as of any value: from 12 bytes on, from 6 once it was seen.
    let long = "postgres://admin:p%40ss%2Fw0rd%21xyzzy@db.example.com:5432/prod";
    check(&[("K", long)], "part ss/w0rd! end", "part ss/w0rd! end");
    check(&[("K", long)], "p@ss/w0rd!xy", "[KARYI:K:part]");
    check(
        &[("K", long)],
        "pw p@ss/w0rd!xyzzy then ss/w0rd! end",
        "pw [KARYI:K:part] then [KARYI:K:part] end",
    );
    let short = "postgres://admin:p%40s!x@db.example.com:5432/prod";
    check(&[("K", short)], "pw p@s!x end", "pw [KARYI:K:part] end");
}

/// Encoders differ in what they escape; none of their lists is known here.
#[test]
fn values_are_known_whichever_of_their_characters_are_escaped() {
    let cases = [
        // bash's %q puts no backslash before # and ~ inside of a word.
        ("2o2Ks*)cD#fCjgpY", "2o2Ks\\*\\)cD#fCjgpY"),
        ("p#Ss~w0rd!~x#2(a)~k", "p#Ss~w0rd\\!~x#2\\(a\\)~k"),
        ("J9XO#qn_!6)n7s~U", "J9XO%23qn%5F%216%29n7s%7EU"),
        ("AF8zX=u`Z:QdV41o", "AF8zX=u%60Z:QdV41o"),
        ("a b/c d&e f=g h~i j~", "a+b/c+d%26e+f=g+h~i+j%7e"),
        (
            "x\"y'z\"1'2\"3'4\"5'6",
            "x&#34;y&#39;z&#34;1&#39;2&#34;3&#39;4&#34;5&#39;6",
        ),
        (
            "a/b=c/d=e/f=g/h=",
            "a&#x2F;b&#x3D;c&#x2F;d&#x3D;e&#x2F;f&#x3D;g&#x2F;h&#x3D;",
        ),
        ("db-pass:word+12345", "db\\x2dpass:word\\x2b12345"),
        ("LhSéJbé!LKMIgoJR", "LhS\\xe9Jb\\xe9!LKMIgoJR"),
        ("LhSéJbé!LKMIgoJR", "LhS\\u{e9}Jb\\u{e9}!LKMIgoJR"),
        ("a!b@c#d$e%f^g&h*i", "a\\041b\\0100c#d\\44e%f^g&h*i"),
        (
            "q\\w\\e\\r\\t\\y\\u\\i\\o",
            "q\\x5Cw\\x5Ce\\x5Cr\\x5Ct\\x5Cy\\x5Cu\\x5Ci\\x5Co",
        ),
    ];
    for (value, shown) in cases {
        named(value, shown, "escaped");
    }
    // Coloured, wrapped, and with an escaped blank.
    named(
        "p#Ss w0rd!~x#2(a)~k",
        "p#Ss\\ w0rd\\\r\n!~x\u{1b}[1m#2\\\u{1b}[0m(a\\)~k",
        "escaped",
    );
    named(
        "J9XO#qn_!6)n7s~U",
        "J9XO%\n23qn%5\u{1b}[KF%216%29n7s%7E\u{1b}[KU",
        "escaped",
    );
    named("a nb c\\d*e*f*g*h", "a\\ nb\\ c\\\\d\\*e\\*f*g*h", "shell");
    named(
        "2,iq{@/6bwy-;\"ef",
        "2 , i q { @ / 6 b w y \\ x 2 d ; \\ x 2 2 e f",
        "escaped",
    );
    // Far from any escape and near many others.
    let text = format!("\\n%41 {T} \\t &amp; {}", "C:\\dir\\%d 100% a&b;");
    check(&[("K", T)], &text, &text.replace(T, "$KARYI{K}"));
    let wide = "x".repeat(100);
    let text = format!("\\({wide} 2o2Ks\\*\\){wide}");
    check(&[("K", "2o2Ks*)cD#fCjgpY")], &text, &text);
}

/// A sign that stands for itself takes nothing from the value behind it, whatever stands between them.
#[test]
fn a_sign_before_a_value_hides_nothing_of_it() {
    let cases = [
        (
            "BC}8Aw7é+",
            "100%\nBC%7\u{1b}P1$r0m\u{1b}\\d8Aw7é+ ",
            "100%\n[KARYI:K:escaped] ",
        ),
        (
            "bfdpr78\\/^",
            "100%\nb\nf\nd\np\nr\n7\n8\n\\\n/\n%\n5\ne x",
            "100%\n[KARYI:K:escaped] x",
        ),
        (
            "\\BCC!H.<n",
            "7 \\   \\   B   C   C   \\   !   H   .   <   n &",
            "7 [KARYI:K:escaped] &",
        ),
        ("BC}8Aw7é+", "100%BC%7d8Aw7é+", "100%[KARYI:K:escaped]"),
        ("amp;a<b>1", "a & amp;a&lt;b&gt;1", "a & [KARYI:K:xml]"),
        ("x41!!bcde", "\\ x41\\!\\!bcde", "\\ [KARYI:K:shell]"),
        ("u00e9b-cd", "\\ u00e9b\\x2dcd", "\\ [KARYI:K:escaped]"),
        (
            "n-o-p-q-r",
            "C:\\n\\x2do\\x2dp\\x2dq-r",
            "C:\\[KARYI:K:escaped]",
        ),
        // Two signs are one that is quoted, or one before an escape.
        ("!\"ab-cd/e", "\\\\x21\\x22ab-cd/e", "\\[KARYI:K:escaped]"),
        ("\\!ab-cd/e", "x\\\\\\\\\\x21ab-cd/e", "x[KARYI:K:escaped]"),
        (
            "ab-cd/efg-hij-klm",
            "%\nab%2dcd/ef%67%2dhij%2dklm.",
            "%\n[KARYI:K:escaped].",
        ),
    ];
    for (value, text, expected) in cases {
        check(&[("K", value)], text, expected);
    }
    let redactor = Redactor::new(&secrets(&[("K", "BCa}8Aw7é+")]));
    assert_eq!(cut(&redactor, "100% BC%61%7d"), "100% [KARYI:K:part]");
    assert_eq!(cut(&redactor, "100% BC%61%7d8A"), "100% [KARYI:K:part]");
    assert_eq!(cut(&redactor, "100% BC%61%7d8x"), "100% BC%61%7d8x");
}

/// Of the rest of a value nothing is lost by that.
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
    // A row of one byte, and what has little else.
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
        if view::visible_bytes(value) >= tables::WINDOW {
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
        let escape = |text: &str, digits: &dyn Fn(u16) -> String| -> String {
            text.encode_utf16().map(digits).collect()
        };
        let json = |text: &str| escape(text, &|unit| format!("\\u{unit:04x}"));
        let bytes = |text: &str, before: &str| -> String {
            text.bytes()
                .map(|byte| format!("{before}{byte:02x}"))
                .collect()
        };
        let forms = |text: &str| {
            [
                text.to_owned(),
                json(text),
                bytes(text, "%"),
                bytes(text, ""),
                bytes(text, "\\x"),
            ]
        };
        for shown in forms(part) {
            let text = format!("<{shown}>");
            check(&[("K", value)], &text, &text);
        }
        for shown in forms(value) {
            let text = redacted(value, &format!("<{shown}>"));
            assert!(
                text.starts_with("<[KARYI:K:") || text == "<$KARYI{K}>",
                "{shown} {text}"
            );
            assert_eq!(text.matches("KARYI").count(), 1, "{shown} {text}");
        }
    }
    let value = "Пароль-мой-секретный";
    check(&[("K", value)], "<роль-мой-се>", "<роль-мой-се>");
    check(&[("K", value)], "<роль-мой-сек>", "<[KARYI:K:part]>");
    let text = format!("{value} <й-сек> <й-секр>");
    check(&[("K", value)], &text, "$KARYI{K} <й-сек> <[KARYI:K:part]>");
}

/// Two keys of one kind begin alike.
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

/// A title that has ended keeps nothing back, whatever it ended with.
#[test]
fn a_closed_title_holds_nothing_back() {
    for start in 1..T.len().min(30) {
        let redactor = Redactor::new(&secrets(&[("K", T)]));
        let (mut out, mut stream) = (Redacted::default(), redactor.stream());
        let title = format!("\u{1b}]0;title {}\u{7}", &T[..start.min(11)]);
        stream.push(&title, &mut out);
        stream.push(&"~^ ".repeat(100), &mut out);
        let held = stream.held_back();
        assert!(held.len() < tables::WINDOW, "{start} {held}");
    }
}

/// An escape that is not whole hides nothing of what stands before it, and keeps nothing back.
#[test]
fn half_an_escape_is_no_escape() {
    let value = "p#Ss~w0rd!~x#2(a)~k";
    for end in ["\\", "%", "%4", "&", "&am", "\\x", "\\u{12", "&#x1F60"] {
        let text = format!("{value}{end}");
        check(&[("K", value)], &text, &format!("$KARYI{{K}}{end}"));
        check(&[("K", value)], &format!("a{end}"), &format!("a{end}"));
        check(
            &[("K", value)],
            &format!("a{end}\u{1b}[1m b"),
            &format!("a{end}\u{1b}[1m b"),
        );
    }
    let redactor = Redactor::new(&secrets(&[("K", value)]));
    assert_eq!(cut(&redactor, "a p#Ss~w0rd\\!~x\\"), "a [KARYI:K:escaped]");
}

/// Forms share stretches with each other and with those of other values.
#[test]
fn every_piece_of_every_form_is_in_the_tables() {
    let values = [("A", T), ("B", &T[3..]), ("C", Q), ("D", "pw1!z")];
    let tables = tables::Tables::build(&secrets(&values));
    for (_, value) in values {
        encodings::for_each_form(value, |form, encoded| {
            let mut visible = encoded.bytes.to_vec();
            visible.retain(|byte| view::is_visible(*byte));
            for at in 0..visible.len() {
                let piece = &visible[at..visible.len().min(at + tables::WINDOW)];
                let is_whole = piece.len() == tables::WINDOW;
                let gram = tables.grams.get(tables::number(piece, 0));
                assert_eq!(gram.is_some(), is_whole, "{form:?} of {value:?} at {at}");
                // Whatever the end of a text is, all of it is held back.
                let ends: Vec<usize> = (1..tables::WINDOW.min(piece.len() + 1)).collect();
                let held: Vec<usize> = ends
                    .iter()
                    .map(|end| tables.open_end(&piece[..*end]))
                    .collect();
                assert_eq!(held, ends, "{form:?} of {value:?} at {at}");
            }
        });
    }
}

/// What a block ends with may be an escape, and what stands before it a part of a value.
#[test]
fn escapes_are_read_across_blocks() {
    let value = "p#Ss~w0rd!~x#2(a)~k";
    let redactor = Redactor::new(&secrets(&[("K", value)]));
    for shown in [
        "p#Ss~w0rd\\u0021~x#2\\(a\\)~k",
        "p%23Ss~w0rd!%7ex#2(a)%7Ek",
        "p#Ss~w0rd&#x21;~x&#35;2(a)~k",
    ] {
        for before in limits::REDACT_BLOCK_BYTES - shown.len()..=limits::REDACT_BLOCK_BYTES {
            let text = format!("{}{shown} end", "-".repeat(before));
            let expected = format!("{}[KARYI:K:escaped] end", "-".repeat(before));
            assert_eq!(redactor.redact_str(&text), expected, "{before} {shown}");
        }
    }
}

/// A reader of escapes that has nothing more to look at keeps nothing back.
#[test]
fn what_follows_an_escape_is_given_out() {
    for number in 0..100 {
        let value = format!("{}ok3n-{number}-V4lue", char::from(b'!' + number % 90));
        let redactor = Redactor::new(&secrets(&[("K", &value)]));
        let (mut out, mut stream) = (Redacted::default(), redactor.stream());
        stream.push("%41 \\n &lt;", &mut out);
        stream.push(&"~^".repeat(100), &mut out);
        let held = stream.held_back();
        assert!(held.len() < tables::WINDOW, "{value} {held}");
    }
}
