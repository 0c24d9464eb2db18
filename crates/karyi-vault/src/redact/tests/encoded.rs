//! Values in all known encodings and escapes.

use super::*;

/// A whole value in another form becomes the name of the form.
fn named(value: &str, shown: &str, form: &str) {
    let expected = format!("<[KARYI:K:{form}]>");
    check(&[("K", value)], &format!("<{shown}>"), &expected);
}

/// Base64 output of programs: the characters at the edges contain bits of other bytes.
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

/// Encoded output of programs.
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
    named("abc/def?ghi", "abc%2Fdef%3Fghi", "percent");
    named("abc/def?ghi", "abc%2fdef%3fghi", "percent");
    named("a b&c=d é", "a+b%26c%3Dd+%C3%A9", "percent");
    named("say \"hi\" now", r#"say \"hi\" now"#, "json");
    named("say \"hi\" now", r#"say \\\"hi\\\" now"#, "escaped");
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
    named(Q, r#"it\'s\ \"a\"\ \$HOME\ \`id\`\ \\"#, "escaped");
    named(Q, r#"it's \"a\" \$HOME \`id\` \\"#, "escaped");
    named("it's\tfine", r"it\'s\tfine", "escaped");
    named("hunter2x", r"\x68\x75\x6e\x74\x65\x72\x32\x78", "escaped");
    named(
        "hunter2x",
        "%u0068%u0075%u006e%u0074%u0065%u0072%u0032%u0078",
        "percent",
    );
    named("密码-1234", r"\xe5\xaf\x86\xe7\xa0\x81-1234", "escaped");
    check(
        &[("K", "hunter2x")],
        "h\0u\0n\0t\0e\0r\x002\0x\0",
        "[KARYI:K:part]\0",
    );
}

#[test]
fn json_strings_and_keys_are_masked() {
    let redactor = Redactor::new(&secrets(&[("K", "se\"cret-1")]));
    let mut value = serde_json::json!({"se\"cret-1": [1, "a se\"cret-1 b"], "ok": {"x": null}});
    redactor.redact_json_again(&mut value);
    let expected = serde_json::json!({"$KARYI{K}": [1, "a $KARYI{K} b"], "ok": {"x": null}});
    assert_eq!(value, expected);
}

#[test]
fn json_numbers_are_masked() {
    let redactor = Redactor::new(&secrets(&[
        ("PIN", "83920174"),
        ("CARD", "4929384756102938475610"),
    ]));
    let mut value: Value = serde_json::from_str(
        r#"{"a": [83920174, -83920174, 83920174.0, 8392017], "b": 4929384756102938475610, "c": 1.5}"#,
    )
    .unwrap();
    redactor.redact_json_again(&mut value);
    let expected = serde_json::json!({
        "a": ["$KARYI{PIN}", "-$KARYI{PIN}", "$KARYI{PIN}.0", 8392017],
        "b": "4.[KARYI:CARD:part]e+21",
        "c": 1.5,
    });
    assert_eq!(value, expected);
}

#[test]
fn a_result_is_masked_except_what_is_redacted() {
    #[derive(serde::Serialize)]
    struct Part {
        echo: Redacted,
        text: &'static str,
    }
    let redactor = Redactor::new(&secrets(&[("K", T)]));
    let part = |echo: &str, text| Part {
        echo: redactor.redact_whole_again(echo),
        text,
    };
    let result = redactor.redact_result(&[part("$KARYI{K} $$KARYI{X}", "$KARYI{K}"), part(T, T)]);
    let expected = serde_json::json!([
        {"echo": "$KARYI{K} $$KARYI{X}", "text": "$$KARYI{K}"},
        {"echo": "$KARYI{K}", "text": "$KARYI{K}"},
    ]);
    assert_eq!(result.unwrap().into_inner(), expected);
}

#[test]
fn a_value_that_comes_up_only_when_text_is_escaped_is_masked() {
    let redactor = Redactor::new(&secrets(&[
        ("K", "a&lt;b&gt;c-1234"),
        ("L", "tab\\tquote\\\""),
    ]));
    assert_eq!(redactor.redact_str("x a<b>c-1234"), "x [KARYI:K:part]");
    assert_eq!(redactor.redact_str("tab\tquote\""), "[KARYI:L:part]");
    assert_eq!(redactor.redact_str("tab\tquote"), "tab\tquote");
}

#[test]
fn text_that_was_redacted_stays_as_it_is() {
    let redactor = Redactor::new(&secrets(&[("K", T)]));
    let once = redactor.redact(&format!("$KARYI{{X}} {T} {}", &T[..20]));
    assert_eq!(once.as_str(), "$$KARYI{X} $KARYI{K} [KARYI:K:part]");
    assert_eq!(redactor.redact_whole_again(once.as_str()), once);
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
fn decoded_passwords_of_urls_are_masked() {
    let url = "postgres://admin:p%40ss%2Fw0rd%21x@db.example.com:5432/prod";
    check(&[("K", url)], "pw p@ss/w0rd!x.", "pw [KARYI:K:part].");
    check(&[("K", url)], url, "$KARYI{K}");
    // Parts of it are masked from 12 bytes on, as of any value.
    let long = "postgres://admin:p%40ss%2Fw0rd%21xyzzy@db.example.com:5432/prod";
    check(&[("K", long)], "part ss/w0rd! end", "part ss/w0rd! end");
    check(&[("K", long)], "p@ss/w0rd!xy", "[KARYI:K:part]");
    let short = "postgres://admin:p%40s!x@db.example.com:5432/prod";
    check(&[("K", short)], "pw p@s!x end", "pw [KARYI:K:part] end");
}

/// Names of the escapes of a text.
fn kind_of(shown: &str) -> &'static str {
    match shown {
        shown if shown.contains('\\') => "escaped",
        shown if shown.contains('&') && shown.contains(';') => "xml",
        _ => "percent",
    }
}

/// Encoders differ in what they escape; the redactor assumes no list.
#[test]
fn values_with_any_escaped_characters_are_masked() {
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
        named(value, shown, kind_of(shown));
    }
    // Coloured, wrapped, and with an escaped space.
    named(
        "p#Ss w0rd!~x#2(a)~k",
        "p#Ss\\ w0rd\\\r\n!~x\u{1b}[1m#2\\\u{1b}[0m(a\\)~k",
        "escaped",
    );
    named(
        "J9XO#qn_!6)n7s~U",
        "J9XO%\n23qn%5\u{1b}[KF%216%29n7s%7E\u{1b}[KU",
        "percent",
    );
    named(
        "a nb c\\d*e*f*g*h",
        "a\\ nb\\ c\\\\d\\*e\\*f*g*h",
        "escaped",
    );
    // Far from any escape and near many others.
    let text = format!("\\n%41 {T} \\t &amp; {}", "C:\\dir\\%d 100% a&b;");
    check(&[("K", T)], &text, &text.replace(T, "$KARYI{K}"));
    let wide = "x".repeat(100);
    let text = format!("\\({wide} 2o2Ks\\*\\){wide}");
    check(&[("K", "2o2Ks*)cD#fCjgpY")], &text, &text);
}

/// Named references of HTML, and numbers of Perl.
#[test]
fn rarer_escapes_are_read() {
    let k = "Tk9-wQ7/rX+2bZ=mLp4Vn";
    named(k, "Tk9&hyphen;wQ7&sol;rX&plus;2bZ&equals;mLp4Vn", "xml");
    let u = "Ünï漢字-pass🎉word";
    let perl: String = u
        .chars()
        .map(|c| match c.is_ascii() {
            true => c.to_string(),
            false => format!("\\x{{{:x}}}", u32::from(c)),
        })
        .collect();
    named(u, &perl, "escaped");
}

/// An incomplete escape hides no text before it and holds nothing back.
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

/// Forms share n-grams with each other and with other values.
#[test]
fn every_piece_of_every_form_is_in_the_tables() {
    let values = [("A", T), ("B", &T[3..]), ("C", Q), ("D", "n7k9-wQ7")];
    let tables = search_tables::SearchTables::build(&secrets(&values));
    for (_, value) in values {
        encoded_forms::for_each_form(value, |form, encoded| {
            let visible = &encoded.bytes;
            for at in 0..visible.len() {
                let piece = &visible[at..visible.len().min(at + ngram_table::WINDOW)];
                let is_whole = piece.len() == ngram_table::WINDOW;
                let ngram = is_whole
                    .then(|| tables.ngram(ngram_table::number(piece, 0)))
                    .flatten();
                assert_eq!(ngram.is_some(), is_whole, "{form:?} of {value:?} at {at}");
                // Any end of a text is held back entirely.
                let ends: Vec<usize> = (1..ngram_table::WINDOW.min(piece.len() + 1)).collect();
                let held: Vec<usize> = ends
                    .iter()
                    .map(|end| tables.open_end(&piece[..*end]))
                    .collect();
                assert_eq!(held, ends, "{form:?} of {value:?} at {at}");
            }
        });
    }
}

/// A value is found after repeated escaped signs or escapes of white space, at every cut.
#[test]
fn a_row_of_escapes_before_a_value_hides_nothing() {
    const VALUE: &str = "n7k9-wQ7rX2b";
    const SHOWN: &str = "n7k9-wQ7\\x72X2b";
    for (escape, counts) in [("\\\\", 0..30), ("\\n", 1..8), ("%0a\\n", 1..8)] {
        for count in counts {
            let row = escape.repeat(count);
            check(
                &[("K", VALUE)],
                &format!("{row}{SHOWN}"),
                &format!("{row}[KARYI:K:escaped]"),
            );
        }
    }
}

/// A match has the same number of characters on either side of an escape in every script.
#[test]
fn one_escape_hides_no_value_of_any_script() {
    for (value, shown) in [
        ("我的数据库密码\"1234", "我的数据库密码&#34;1234"),
        (
            "我的数据库密码\"这是一个秘密",
            "我的数据库密码&#34;这是一个秘密",
        ),
        ("ПарольБаза-7", "ПарольБаза\\-7"),
        ("Пароль-ДляБазы", "Пароль\\-ДляБазы"),
        ("Пароль\"ДляБазы", "Пароль&#x22;ДляБазы"),
        ("Пароль+ДляБазы", "Пароль%2BДляБазы"),
        ("🔑🔐🔏🔒🔓🗝-🛡⚔🗡🔩🔨⛏", "🔑🔐🔏🔒🔓🗝\\-🛡⚔🗡🔩🔨⛏"),
        ("🔑🔐🔏🔒🔓🗝&🛡⚔🗡🔩🔨⛏", "🔑🔐🔏🔒🔓🗝&#38;🛡⚔🗡🔩🔨⛏"),
    ] {
        named(value, shown, kind_of(shown));
    }
}

/// A UTF-16 surrogate pair is one character.
#[test]
fn two_numbers_of_one_character_hide_no_value() {
    for (value, shown) in [
        (
            "Grün<rot🔑Größe>9",
            "Gr\\u00fcn\\u003crot\\ud83d\\udd11Gr\\u00f6\\u00dfe\\u003e9",
        ),
        (
            "pä<ss🔑wör<t漢x&y🔑z>1",
            "p\\u00e4\\u003css\\ud83d\\udd11w\\u00f6r\\u003ct\\u6f22x\\u0026y\\ud83d\\udd11z\\u003e1",
        ),
        (
            "漢字😀漢😀字geheim秘密🔑の値テスト",
            "漢\\u5b57😀漢\\ud83d\\ude00\\u5b57\\u0067e\\u0068ei\\u006d秘\\u5bc6\\ud83d\\udd11の値テス\\u30c8",
        ),
        (
            "Schlüssel/Größe🔑für/Müll9",
            "Schl%u00FCssel/Gr%u00F6%u00DFe%uD83D%uDD11f%u00FCr%2FM%u00FCll9",
        ),
    ] {
        named(value, shown, kind_of(shown));
    }
}

/// A form with too few visible bytes for a sample is skipped without a panic.
#[test]
fn a_value_with_escapes_of_terminals_is_masked() {
    for sign in ['X', 'P', '_', '^', ']', '['] {
        for value in [
            format!("hunter2hunter2{sign}\x1b[0m"),
            format!("a{sign}\x1b[0m-hunter2-hunter2"),
        ] {
            let shown = redacted(&value, &format!("<{value}> and <{value}>"));
            assert!(!shown.contains("hunter2"), "{value:?}: {shown:?}");
        }
    }
}
