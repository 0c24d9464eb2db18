//! Memory of the Teller: long-term entries in `memory.md`, notes of a day in `memory/`.

use std::sync::PoisonError;

use jiff::Timestamp;
use karyi_core::error::ToolError;
use karyi_core::limits;

use crate::argument::{check_text, misfit, whole};
use crate::memory_index::{LONG_TERM, MemoryHit, MemoryQuery, NOTES};
use crate::passages::{read_stamp, stamped};
use crate::state_directory::StateDirectory;
use crate::state_folder::ReadFailure;
use crate::task_id::TaskId;

/// Kind of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryKind {
    /// Entry of `memory.md`.
    LongTerm,
    /// File of its own in `memory/`.
    Note,
}

/// Shortest name of a note that says something.
const MIN_SLUG_CHARS: usize = 4;

/// Remembers a text and returns the path of its file in the state directory.
///
/// # Errors
/// `bad_arguments` naming `content`, or the system fails.
pub fn remember(
    state: &StateDirectory,
    content: &str,
    kind: MemoryKind,
    now: Timestamp,
) -> Result<String, ToolError> {
    check_text("content", content)?;
    if let Some(line) = content.lines().position(|line| read_stamp(line).is_some()) {
        let found = format!("one in line {}", line + 1);
        return Err(misfit(
            "content",
            "no line that begins with a time in brackets, as entries do",
            found,
        ));
    }
    let entry = stamped(content.trim(), now);
    match kind {
        MemoryKind::LongTerm => add_entry(state, &entry),
        MemoryKind::Note => add_note(state, content, &entry, now),
    }
}

fn add_entry(state: &StateDirectory, entry: &str) -> Result<String, ToolError> {
    let _lock = state.lock()?;
    let mut bytes = match state.root.read(LONG_TERM, limits::MAX_MEMORY_FILE_BYTES) {
        Ok((bytes, _)) => bytes,
        Err(ReadFailure::Missing) => Vec::new(),
        Err(failure) => return Err(state.root.failure(LONG_TERM, failure)),
    };
    // A person may have left the last line without an end.
    if !bytes.is_empty() {
        let line_end = bytes.ends_with(b"\n");
        bytes.extend_from_slice(if line_end { b"\n" } else { b"\n\n" });
    }
    bytes.extend_from_slice(entry.as_bytes());
    state.root.write(LONG_TERM, &bytes)?;
    Ok(LONG_TERM.to_owned())
}

fn add_note(
    state: &StateDirectory,
    content: &str,
    entry: &str,
    now: Timestamp,
) -> Result<String, ToolError> {
    let day = now.strftime("%Y-%m-%d");
    let text = format!("# {day}\n\n{entry}");
    let slug = match slug(content) {
        Some(slug) => slug,
        None => {
            let random = TaskId::random()?;
            format!("mem-{}", random.as_str().get(..8).unwrap_or_default())
        }
    };
    let mut name = format!("{day}-{slug}.md");
    let mut number = 0;
    while !state.notes.write_new(&name, text.as_bytes())? {
        number += 1;
        name = format!("{day}-{slug}-{number}.md");
    }
    Ok(format!("{NOTES}/{name}"))
}

/// Returns words of a text as the name of a file, if they are enough to say something.
fn slug(text: &str) -> Option<String> {
    let words = text.split(|sign: char| !sign.is_ascii_alphanumeric());
    let mut slug = String::new();
    for word in words.filter(|word| !word.is_empty()) {
        let length = slug.len() + usize::from(!slug.is_empty()) + word.len();
        if length > limits::MAX_NOTE_SLUG_CHARS {
            break;
        }
        if !slug.is_empty() {
            slug.push('-');
        }
        slug.push_str(&word.to_ascii_lowercase());
    }
    Some(slug).filter(|slug| slug.len() >= MIN_SLUG_CHARS)
}

/// Searches memory; `limit` is 5 when it is not given.
///
/// # Errors
/// `bad_arguments` naming the argument, or the system fails.
pub fn search(
    state: &StateDirectory,
    query: &str,
    after: Option<Timestamp>,
    before: Option<Timestamp>,
    limit: Option<i64>,
) -> Result<Vec<MemoryHit>, ToolError> {
    check_text("query", query)?;
    let limit = whole("limit", limit.unwrap_or(5), 1, limits::MAX_MEMORY_HITS)?;
    if let (Some(after), Some(before)) = (after, before)
        && after > before
    {
        return Err(misfit("after", &format!("a time up to {before}"), after));
    }
    let query = MemoryQuery {
        text: query.to_owned(),
        after,
        before,
        limit,
    };
    let mut index = state
        .memory_index
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    index.refresh(&state.root, &state.notes)?;
    Ok(index.search(&query))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_words_of_the_text() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(slug(text).as_deref(), expected, "{text}");
        };
        check("Hello, World! — deploy", Some("hello-world-deploy"));
        check("部署", None);
        check("a b", None);
        check(
            "a very long sentence that goes past the limit",
            Some("a-very-long-sentence-that-goes"),
        );
        check(&"x".repeat(200), None);
    }
}
