//! What a read says beside a text: what is counted, and what to do about one that looks wrong.

use serde_json::{Value, json};

use crate::harness::Karyi;

use super::read;

const CONVERT: &str = "convert it to UTF-8 first with the command `iconv -f gb18030 -t utf-8 OLD > NEW`, with its real \
                       encoding for gb18030";

#[test]
fn what_is_counted_is_what_is_shown() {
    // 配置\n in GB18030 and UTF-16, then a longer line.
    let chinese = b"\xC5\xE4\xD6\xC3\n\xD5\xE2\xCA\xC7\xD2\xBB\xB8\xF6\xBC\xF2\xB5\xA5\xB5\xC4\xB2\xE2\xCA\xD4\xCE\xC4\xBC\xFE\n";
    let text = "\u{914D}\u{7F6E}\n\u{8FD9}\u{662F}\u{4E00}\u{4E2A}\u{7B80}\u{5355}\u{7684}\u{6D4B}\u{8BD5}\u{6587}\u{4EF6}\n";
    let wide: Vec<u8> = std::iter::once(0xFEFF)
        .chain(text.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    for (bytes, encoding) in [
        (&chinese[..], json!("gb18030")),
        (&wide, json!("utf-16le")),
        (text.as_bytes(), Value::Null),
    ] {
        for (most, shown, lines) in [
            (100, 41, 0),
            (41, 41, 0),
            (40, 7, 1),
            (20, 7, 1),
            (7, 7, 1),
            (5, 3, 1),
            (2, 0, 2),
        ] {
            let xml = format!("<file src=\"a\" max_bytes=\"{most}\"/>");
            let result = read(Karyi::new().file("a", bytes), &xml, 0);
            let file = &result["files"][0];
            assert_eq!(file["encoding"], encoding, "{most}: {file}");
            assert_eq!(file["output"], json!(text[..shown]), "{encoding} {most}");
            let omitted = |count: usize| match count {
                0 => Value::Null,
                count => json!(count),
            };
            assert_eq!(
                file["omitted_bytes"],
                omitted(41 - shown),
                "{encoding} {most}"
            );
            assert_eq!(file["omitted_lines"], omitted(lines), "{encoding} {most}");
            assert_eq!(file["bytes"], json!(bytes.len()), "{encoding} {most}");
        }
    }
}

#[test]
fn a_text_of_which_the_encoding_is_a_guess_says_how_to_convert_it() {
    for (bytes, hint) in [
        // Shift_JIS: settei; too short to tell.
        (
            &b"\x90\xDD\x92\xE8\n"[..],
            "invalid bytes were replaced by U+FFFD; if the file is in another encoding, ",
        ),
        (
            b"\xC5\xE4\xD6\xC3\n",
            "is a guess; if the text makes no sense, ",
        ),
        (
            b"\xC3\xA9\xC3\xA9\xC3\xA9 \xFF\n",
            "invalid bytes were replaced by U+FFFD; if the file is in another encoding, ",
        ),
    ] {
        let karyi = || Karyi::new().file("a", bytes);
        let found = read(karyi(), "<file src=\"a\"/>", 0);
        let told = found["files"][0]["hint"].as_str().unwrap_or_default();
        assert!(told.ends_with(&format!("{hint}{CONVERT}")), "{found}");
        // So does an edit that does not find what the reader knows is there.
        let script = "<tools><edit><file src=\"a\"><find>\u{8A2D}\u{5B9A}</find><replace>x</replace></file></edit></tools>";
        let ran = karyi().arg("--json").stdin(script).run().exit(1).json();
        let told = ran["results"][0]["hint"].as_str().unwrap_or_default();
        assert!(told.contains(CONVERT), "{ran}");
    }
    // What leaves no doubt needs no hint.
    let karyi = Karyi::new().file("a", b"tr\xE8s bien, caf\xE9 cr\xE8me\n");
    let found = read(karyi, "<file src=\"a\"/>", 0);
    assert_eq!(found["files"][0]["hint"], Value::Null, "{found}");
}

#[test]
fn hints_name_the_tool() {
    let hint = json!("see `karyi tools read` for the arguments");
    let result = read(
        Karyi::new().file("a", "x"),
        "<file src=\"a\" lines=\"x\"/>",
        1,
    );
    assert_eq!(result["hint"], hint, "{result}");
    let both = "<file src=\"a\" lines=\"x\"/><file src=\"a\"/>";
    let result = read(Karyi::new().file("a", "x"), both, 1);
    assert_eq!(result["files"][0]["hint"], hint, "{result}");
}
