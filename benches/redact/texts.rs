//! Texts without any secret.

const SOURCE: &[&str] = &[
    include_str!("../../src/vault/shell.rs"),
    include_str!("../../src/exec/jobs.rs"),
    include_str!("../../src/limits.rs"),
    include_str!("../../src/cli/run.rs"),
];

/// Source code, over and over.
pub(crate) fn source(bytes: usize) -> String {
    repeated(&SOURCE.concat().replace("$KARYI", "$NAME"), bytes)
}

/// The same in colours, with a link and a title now and then, and with moves of the cursor.
pub(crate) fn escapes(bytes: usize) -> String {
    let mut text = String::new();
    for (number, line) in SOURCE
        .concat()
        .replace("$KARYI", "$NAME")
        .lines()
        .enumerate()
    {
        for (column, word) in line.split(' ').enumerate() {
            text.push_str(&format!("\x1b[{}m{word}\x1b[0m ", 31 + column % 7));
        }
        match number % 8 {
            0 => text.push_str(&format!("\x1b]0;line {number}\x07")),
            1 => text.push_str("\x1b]8;;https://example.com/a\x1b\\here\x1b]8;;\x1b\\"),
            2 => text.push_str("\x1b[K\x1b[3C"),
            _ => {}
        }
        text.push_str("\r\n");
    }
    repeated(&text, bytes)
}

fn repeated(text: &str, bytes: usize) -> String {
    text.repeat(bytes / text.len() + 1)
}
