//! Dumps of values that are not ASCII: their lines have few characters, and many bytes.

use super::*;

const EMOJI: &str = "🔑🗝️🔐🔏🔒🔓🛡️⚔️🗡️";
const HEBREW: &str = "מפתח-סודי-12345";

/// Checks a dump in which `«form»` precedes masked text and `‹` follows it.
#[track_caller]
fn dumped(value: &str, marked: &str) {
    let (mut text, mut expected) = (String::new(), String::new());
    let mut rest = marked;
    while let Some((before, after)) = rest.split_once('«') {
        let (form, after) = after.split_once('»').unwrap();
        let (masked, after) = after.split_once('‹').unwrap();
        text.extend([before, masked]);
        expected.extend([before, "[KARYI:K:", form, "]"]);
        rest = after;
    }
    text.push_str(rest);
    expected.push_str(rest);
    check(&[("K", value)], &text, &expected);
}

#[test]
fn lines_of_a_dump_in_hexadecimal_are_masked() {
    // xxd
    dumped(
        EMOJI,
        "00000000: «hex»f09f 9491 f09f 979d efb8 8ff0 9f94 90f0‹  ................\n\
         00000010: «hex»9f94 8ff0 9f94 92f0 9f94 93f0 9f9b a1ef‹  ................\n\
         00000020: «hex»b88f e29a 94ef b88f f09f 97a1 efb8 8f‹    ...............\n",
    );
    // hexdump -C; the last digit of an offset may continue the value.
    dumped(
        EMOJI,
        "00000000  «hex»f0 9f 94 91 f0 9f 97 9d  ef b8 8f f0 9f 94 90 f0‹  |................|\n\
         0000001«hex»0  9f 94 8f f0 9f 94 92 f0  9f 94 93 f0 9f 9b a1 ef‹  |................|\n\
         00000020  «hex»b8 8f e2 9a 94 ef b8 8f  f0 9f 97 a1 ef b8 8f‹     |...............|\n\
         0000002f\n",
    );
    // xxd
    dumped(
        HEBREW,
        "00000000: «hex»d79e d7a4 d7aa d797 2dd7 a1d7 95d7 93d7‹  ........-.......\n\
         00000010: «hex»992d 3132 3334 35‹                        .-12345\n",
    );
    // hexdump -C
    dumped(
        HEBREW,
        "00000000  «hex»d7 9e d7 a4 d7 aa d7 97  2d d7 a1 d7 95 d7 93 d7‹  |........-.......|\n\
         00000010  «hex»99 2d 31 32 33 34 35‹                              |.-12345|\n\
         00000017\n",
    );
}

#[test]
fn a_dump_without_text_and_one_of_short_lines_are_masked() {
    // od -tx1
    dumped(
        EMOJI,
        "0000000 «hex»f0 9f 94 91 f0 9f 97 9d ef b8 8f f0 9f 94 90 f0‹\n\
         000002«hex»0 9f 94 8f f0 9f 94 92 f0 9f 94 93 f0 9f 9b a1 ef‹\n\
         0000040 «hex»b8 8f e2 9a 94 ef b8 8f f0 9f 97 a1 ef b8 8f‹\n\
         0000057\n",
    );
    // xxd -c12; the last line has less than a run.
    dumped(
        EMOJI,
        "00000000: «hex»f09f 9491 f09f 979d efb8 8ff0‹  ............\n\
         0000000c: «hex»9f94 90f0 9f94 8ff0 9f94 92f0‹  ............\n\
         00000018: «hex»9f94 93f0 9f9b a1ef b88f e29a‹  ............\n\
         00000024: 94ef b88f f09f 97a1 efb8 8f    ...........\n",
    );
    // od -tx1
    dumped(
        HEBREW,
        "0000000 «hex»d7 9e d7 a4 d7 aa d7 97 2d d7 a1 d7 95 d7 93 d7‹\n\
         0000020 «hex»99 2d 31 32 33 34 35‹\n\
         0000027\n",
    );
}

/// As `xxd -p` prints it, without line ends.
fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// A repeated byte has no weight, so other bytes may be far apart; the text before it is not retained for as long.
#[test]
fn a_dump_of_letters_with_a_long_row_between_them_is_masked() {
    // Around the length at which the order of the bytes is ignored, and far beyond it.
    for (blank, row) in [
        ("=", 40),
        (" ", 53),
        ("=", 54),
        ("=", 55),
        (" ", 300),
        ("=", 1000),
    ] {
        let value = format!("вгд{}жз", blank.repeat(row));
        let redactor = Redactor::new(&secrets(&[("K", &value)]));
        let (before, dump) = ("q".repeat(1500), hex(&value));
        let text = format!("{before}\n{dump}\n");
        let expected = format!("{before}\n[KARYI:K:hex]\n");
        assert!(redactor.redact_str(&text) == expected, "{row} of {blank:?}");
        for size in [1, 100, 1024] {
            let pieces: Vec<&str> = text.as_bytes().chunks(size).map(ascii).collect();
            let left = in_pieces(&redactor, &pieces);
            assert!(left == expected, "{row} of {blank:?} by {size}");
        }
        for at in (0..dump.len()).step_by(dump.len() / 20 + 1) {
            let (first, second) = text.split_at(1501 + at);
            let left = in_pieces(&redactor, &[first, second]);
            assert!(left == expected, "{row} of {blank:?} cut at {at}");
        }
    }
}

fn ascii(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
