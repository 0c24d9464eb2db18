//! Streams: held-back text, cuts, late secrets and large texts.

use super::*;

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
        // The start of a connection string is displayed with its rest.
        let is_run = held.contains("postgres://");
        assert!(visible < limits::REDACTED_RUN_BYTES || is_run, "{held}");
    }
    let (mut out, mut stream) = (Redacted::default(), redactor.stream());
    stream.push("ready?~", &mut out);
    assert_eq!(out.as_str(), "ready?~");
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
        include_str!("../search_tables.rs"),
        include_str!("../../../../karyi-core/src/limits.rs"),
        include_str!("../../../../karyi-core/src/limits/session.rs"),
        include_str!("../../../../karyi-core/src/limits/serve.rs"),
    ] {
        assert_eq!(
            redactor.redact_str(text),
            text.replace("$KARYI{", "$$KARYI{")
        );
    }
}

/// A title that has ended holds nothing back, whatever its end.
#[test]
fn a_closed_title_holds_nothing_back() {
    for start in 1..T.len().min(30) {
        let redactor = Redactor::new(&secrets(&[("K", T)]));
        let (mut out, mut stream) = (Redacted::default(), redactor.stream());
        let title = format!("\u{1b}]0;title {}\u{7}", &T[..start.min(11)]);
        stream.push(&title, &mut out);
        stream.push(&"~^ ".repeat(100), &mut out);
        let held = stream.held_back();
        assert!(held.len() < ngram_table::WINDOW, "{start} {held}");
    }
}

/// A block may end with an escape, and the text before it may be part of a value.
#[test]
fn escapes_are_read_across_blocks() {
    let value = "p#Ss~w0rd!~x#2(a)~k";
    let redactor = Redactor::new(&secrets(&[("K", value)]));
    for (shown, form) in [
        ("p#Ss~w0rd\\u0021~x#2\\(a\\)~k", "escaped"),
        ("p%23Ss~w0rd!%7ex#2(a)%7Ek", "percent"),
        ("p#Ss~w0rd&#x21;~x&#35;2(a)~k", "xml"),
    ] {
        for before in limits::REDACT_BLOCK_BYTES - shown.len()..=limits::REDACT_BLOCK_BYTES {
            let text = format!("{}{shown} end", "-".repeat(before));
            let expected = format!("{}[KARYI:K:{form}] end", "-".repeat(before));
            assert_eq!(redactor.redact_str(&text), expected, "{before} {shown}");
        }
    }
}

/// An escape decoder without open input holds nothing back.
#[test]
fn text_after_an_escape_is_emitted() {
    for number in 0..100 {
        let value = format!("{}ok3n-{number}-V4lue", char::from(b'!' + number % 90));
        let redactor = Redactor::new(&secrets(&[("K", &value)]));
        let (mut out, mut stream) = (Redacted::default(), redactor.stream());
        stream.push("%41 \\n &lt;", &mut out);
        stream.push(&"~^".repeat(100), &mut out);
        let held = stream.held_back();
        assert!(held.len() < ngram_table::WINDOW, "{value} {held}");
    }
}

/// A value is found at every block boundary, and nothing else is.
#[test]
fn a_value_is_found_wherever_it_stands_in_a_long_text_full_of_escapes() {
    const VALUE: &str = "Zk7qPw2LmX9vTn4c";
    let redactor = Redactor::new(&secrets(&[("K", VALUE)]));
    type Escape = fn(u32) -> String;
    let escapes: [(&str, &str, Escape); 6] = [
        ("%2F%20ab", "percent", |code| format!("%{code:02X}")),
        ("\\n\\x2fab", "escaped", |code| format!("\\x{code:02x}")),
        ("\\\\n\\\" ab", "escaped", |code| format!("\\u{code:04x}")),
        ("\\\\\\\\na", "escaped", |code| format!("\\u{{{code:x}}}")),
        ("&amp;a b&lt;", "xml", |code| format!("&#{code};")),
        ("100%%2F", "percent", |code| format!("%u{code:04X}")),
    ];
    for (around, kind, escape) in escapes {
        // Every other letter is escaped, which no table contains.
        let letters = VALUE.chars().enumerate();
        let form: String = letters
            .map(|(at, letter)| match at % 2 {
                0 => escape(letter.into()),
                _ => letter.into(),
            })
            .collect();
        let after = around.repeat(600);
        for shift in 0..=form.len() {
            let before = ".".repeat(limits::REDACT_BLOCK_BYTES - form.len() + shift);
            for start in [before, around.repeat(600) + &".".repeat(shift)] {
                let text = format!("{start} {form} {after}");
                let expected = format!("{start} [KARYI:K:{kind}] {after}");
                assert!(redactor.redact_str(&text) == expected, "{form} {shift}");
            }
        }
    }
}

/// The output does not depend on the division: halves of escapes, wraps, colours and parts of values.
#[test]
fn every_division_of_a_random_text_shows_the_same() {
    const VALUES: [&str; 6] = [T, M, URL, Q, "a%41b\\n&lt;c-1234", "Пароль-мой-секретный"];
    const BITS: [&str; 24] = [
        "\\",
        "%",
        "&",
        "\n",
        " ",
        "\r\n",
        " \r",
        "\u{1b}[31m",
        "\\\\",
        "%4",
        "&#",
        "&#x41;",
        "\\u00",
        "\\n",
        "x41",
        "\u{1b}]0;",
        "\u{7}",
        "\u{1b}P",
        "\u{1b}\\",
        "$KARYI",
        "{",
        "日",
        "b",
        "0",
    ];
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut below = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as usize % limit
    };
    for _ in 0..100 {
        let value = VALUES[below(VALUES.len())];
        let redactor = Redactor::new(&secrets(&[("A", value), ("B", VALUES[below(6)])]));
        let mut text = String::new();
        for _ in 0..=below(8) {
            text.push_str(BITS[below(BITS.len())]);
            for c in value.chars() {
                match below(9) {
                    0 => text.push_str(&format!("\\u{:04x}", u32::from(c))),
                    1 => text.push_str(&format!("%{:02x}", u32::from(c) & 0xff)),
                    2 => text.push_str(&format!("&#{};", u32::from(c))),
                    3 if below(3) == 0 => text.push_str(BITS[below(BITS.len())]),
                    _ => text.push(c),
                }
            }
        }
        let whole = in_pieces(&redactor, &[&text]);
        let letters: Vec<&str> = text.split_inclusive(|_| true).collect();
        assert_eq!(in_pieces(&redactor, &letters), whole, "{text:?}");
        let pieces: Vec<&str> = text.split_inclusive(|_| below(9) == 0).collect();
        assert_eq!(in_pieces(&redactor, &pieces), whole, "{pieces:?}");
    }
}
