//! Texts in every supported encoding, and bytes that are not text.

use super::*;

/// Bytes, the name of their encoding, and their text, which encodes to the same bytes.
fn check(bytes: &[u8], name: Option<&str>, text: &str) {
    let (encoding, read) = Encoding::read(bytes).unwrap();
    assert_eq!((encoding.name(), &*read), (name, text), "{bytes:?}");
    assert_eq!(encoding.write(read.into_owned()).unwrap(), bytes);
}

fn utf16(text: &str, spell: fn(u16) -> [u8; 2]) -> Vec<u8> {
    write_utf16(b"", text, spell)
}

#[test]
fn encodings_are_detected_and_preserved() {
    check(b"", None, "");
    check("h\u{e9}llo".as_bytes(), None, "h\u{e9}llo");
    check(b"\xEF\xBB\xBFa\r\n", None, "a\r\n");
    check(b"\xFF\xFEa\0\n\0", Some("utf-16le"), "a\n");
    check(b"\xFE\xFF\0a\0\n", Some("utf-16be"), "a\n");
    check(b"h\0i\0", Some("utf-16le"), "hi");
    check(b"\0h\0i\0\n", Some("utf-16be"), "hi\n");
    let text = "plain words, \u{4E2D}\u{6587} \u{1F600}\n";
    check(&utf16(text, u16::to_le_bytes), Some("utf-16le"), text);
    check(&utf16(text, u16::to_be_bytes), Some("utf-16be"), text);
    check(
        b"tr\xE8s bien, caf\xE9\n",
        Some("latin-1"),
        "tr\u{e8}s bien, caf\u{e9}\n",
    );
    let chinese = "\u{8FD9}\u{662F}\u{4E00}\u{4E2A}\u{7B80}\u{5355}\u{7684}\u{6D4B}\u{8BD5}\u{6587}\u{4EF6}\u{3002}\n";
    let (bytes, ..) = GB18030.encode(chinese);
    check(&bytes, Some("gb18030"), chinese);
}

#[test]
fn a_guess_from_a_part_that_ends_within_a_character_holds() {
    let texts = [
        (
            GB18030,
            "\u{8FD9}\u{662F}\u{4E00}\u{4E2A}\u{7B80}\u{5355}\u{7684}\u{6D4B}\u{8BD5}\u{6587}\u{4EF6}\u{3002}\n",
        ),
        (
            encoding_rs::SHIFT_JIS,
            "\u{3053}\u{308C}\u{306F}\u{65E5}\u{672C}\u{8A9E}\u{306E}\u{6587}\u{7AE0}\u{3067}\u{3059}\u{3002}\n",
        ),
        (
            encoding_rs::EUC_KR,
            "\u{C774}\u{AC83}\u{C740} \u{D55C}\u{AD6D}\u{C5B4} \u{BB38}\u{C7A5}\u{C785}\u{B2C8}\u{B2E4}.\n",
        ),
    ];
    for (encoding, line) in texts {
        let (line, ..) = encoding.encode(line);
        let text = line.repeat(GUESSED_BYTES / line.len() + 10);
        for before in ["", "a", "aa", "aaa"] {
            let bytes = [before.as_bytes(), &text].concat();
            let found = Encoding::read(&bytes).map(|(found, _)| found.decoder());
            assert_eq!(found, Ok(encoding), "{before}");
        }
    }
}

#[test]
fn short_texts_are_gb18030_or_latin_1_with_doubt() {
    let check = |bytes: &[u8], expected: (Option<&str>, bool)| {
        let (encoding, _) = Encoding::read(bytes).unwrap();
        let found = (encoding.name(), encoding.is_doubtful());
        assert_eq!(found, expected, "{bytes:?}");
    };
    check(
        b"port = 80\n\xb6\xcb\xbf\xda end\n",
        (Some("gb18030"), true),
    );
    let encoded =
        |encoding: &'static encoding_rs::Encoding, text: &str| encoding.encode(text).0.into_owned();
    let chinese =
        "\u{8BBE}\u{7F6E} = \u{6587}\u{4EF6} \u{540D}\u{79F0} \u{7AEF}\u{53E3} \u{53F7}\u{7801}\n";
    check(&encoded(GB18030, chinese), (Some("gb18030"), false));
    // These could be Chinese as well, so no new characters are written into them.
    for (encoding, text) in [
        (encoding_rs::EUC_KR, "\u{D55C}\u{AE00}"),
        (
            encoding_rs::EUC_KR,
            "\u{C124}\u{C815} = \u{D30C}\u{C77C} \u{C774}\u{B984} \u{D3EC}\u{D2B8} \u{BC88}\u{D638}",
        ),
        (encoding_rs::EUC_JP, "\u{65E5}\u{672C}\u{8A9E}"),
        (
            encoding_rs::EUC_JP,
            "\u{8A2D}\u{5B9A} = \u{65E5}\u{672C}\u{8A9E} \u{756A}\u{53F7}",
        ),
        (encoding_rs::WINDOWS_1250, "\u{159}\u{ED}"),
    ] {
        let bytes = encoded(encoding, text);
        let is_sure = |(found, _): (Encoding, _)| !found.is_doubtful();
        assert!(!Encoding::read(&bytes).is_ok_and(is_sure), "{text}");
    }
    for word in [
        &b"caf\xe9"[..],
        b"\xfcber",
        b"stra\xdfe",
        b"ma\xf1ana",
        b"\xa9 2024",
        b"gar\xe7on",
        b"\xe5ngstr\xf6m",
        b"20 \xb0C",
        b"A\xd1O 80",
    ] {
        check(word, (Some("latin-1"), false));
        check(&[word, b"\n"].concat(), (Some("latin-1"), false));
    }
    let hebrew = encoding_rs::WINDOWS_1255
        .encode("\u{5E9}\u{5DC}\u{5D5}\u{5DD} \u{5E2}\u{5D5}\u{5DC}\u{5DD}\n")
        .0;
    let (encoding, _) = Encoding::read(&hebrew).unwrap();
    assert!(encoding.is_doubtful(), "{:?}", encoding.name());
    // Japanese, long enough to be recognised and never certain.
    let japanese = "\u{3053}\u{308C}\u{306F}\u{65E5}\u{672C}\u{8A9E}\u{306E}\u{6587}\u{7AE0}\u{3067}\u{3059}\u{3002}\n".repeat(8);
    for encoding in [encoding_rs::SHIFT_JIS, encoding_rs::EUC_JP] {
        let bytes = encoding.encode(&japanese).0;
        check(&bytes, (Some(encoding.name()), true));
    }
}

#[test]
fn two_versions_are_read_alike() {
    let check = |old: &[u8], new: &[u8], expected: (&str, &str)| {
        let (old, new) = Encoding::read_both(old, new).unwrap();
        assert_eq!((&*old, &*new), expected);
    };
    // On its own the new version is UTF-8.
    check(
        b"\xe9 \xc3 \xa9\n",
        b"\xc3\xa9\n",
        ("\u{e9} \u{c3} \u{a9}\n", "\u{c3}\u{a9}\n"),
    );
    check(b"", b"caf\xe9\n", ("", "caf\u{e9}\n"));
    check(b"caf\xe9\n", b"", ("caf\u{e9}\n", ""));
    check(b"a\n", b"\xFF\xFEa\0", ("a\n", "a"));
    assert!(Encoding::read_both(b"a", b"\0").is_none());
}

#[test]
fn binary_files_are_refused() {
    let check = |bytes: &[u8], expected| {
        assert_eq!(Encoding::read(bytes).unwrap_err(), expected, "{bytes:?}");
    };
    check(b"1\0", TextError::Binary(1));
    check(b"\xEF\xBB\xBF1\0", TextError::Binary(4));
    check(b"\x89PNG\r\n\x1A\n", TextError::Binary(6));
    check(
        "caf\u{e9} \u{e9}t\u{e9} \u{e9}"
            .as_bytes()
            .iter()
            .copied()
            .chain([0xFF])
            .collect::<Vec<_>>()
            .as_slice(),
        TextError::BrokenUtf8(14),
    );
    check(b"caf\xc3\xa9\n\xff\n", TextError::BrokenUtf8(6));
    check(b"\xe9 caf\xc3\xa9 \xe9\n", TextError::BrokenUtf8(0));
    check(b"\xFF\xFEa\0\x00\xD8", TextError::Unknown(4));
    check(b"\xFF\xFEa", TextError::Unknown(2));
    check(b"\xEF\xBB\xBF\xFF", TextError::BrokenUtf8(3));
}

#[test]
fn a_character_that_the_encoding_lacks_is_named() {
    let (encoding, _) = Encoding::read(b"caf\xE9").unwrap();
    assert_eq!(encoding.write("\u{4E2D}".into()), Err('\u{4E2D}'));
    assert_eq!(encoding.write("\u{20AC}".into()), Ok(vec![0x80]));
}

#[test]
fn encoders_substitute_no_character() {
    // Shift_JIS has a backslash where its encoder writes a yen sign.
    let encoding = legacy(encoding_rs::SHIFT_JIS, false);
    assert_eq!(encoding.write("plain\u{a5}value".into()), Err('\u{a5}'));
    assert_eq!(encoding.write("a\u{203e}".into()), Err('\u{203e}'));
    let bytes = encoding.write("\u{65e5}\u{672c}".into());
    assert_eq!(bytes, Ok(b"\x93\xfa\x96\x7b".to_vec()));
}
