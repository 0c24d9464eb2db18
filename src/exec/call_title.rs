//! Title of a call for people.

use crate::tools::Call;
use karyi_core::limits;

/// Returns what a call runs: its whole script, or a summary. A script of many lines is cut, with a count. It shows
/// placeholders, never values.
#[must_use]
pub fn title(call: &Call) -> String {
    let text = call.title();
    let text = text.trim_matches('\n').trim_end();
    let more = text.lines().count().saturating_sub(limits::MAX_TITLE_LINES);
    let cut = |line: &str| match line.char_indices().nth(limits::MAX_TITLE_LINE_CHARS) {
        Some((end, _)) => {
            let more = line.len() - end;
            format!(
                "{} [... {more} more bytes]",
                line.get(..end).unwrap_or(line)
            )
        }
        None => line.to_owned(),
    };
    let mut lines: Vec<String> = text
        .lines()
        .take(limits::MAX_TITLE_LINES)
        .map(cut)
        .collect();
    match more {
        0 => {}
        1 => lines.push("[... 1 more line]".to_owned()),
        _ => lines.push(format!("[... {more} more lines]")),
    }
    lines.join("\n")
}
