//! Lines of prose that start like calls or like results.

use super::chars::{is_name_byte, is_space};
use super::drafts::Match;
use super::event::Mode;
use super::table::Table;

/// Longest start of a line that is examined, in bytes.
const MAX_NAME: usize = 64;

/// Names of tags by which other dialects call tools.
const DIALECTS: &[&str] = &[
    "function",
    "function_call",
    "function_calls",
    "invoke",
    "bash",
    "shell",
    "execute_command",
];

/// Tells whether `rest` starts with the tag of results.
pub(super) fn is_results(rest: &[u8], is_last: bool) -> Match {
    let word = b"<results";
    let near = rest.get(..word.len()).unwrap_or(rest);
    match rest.get(word.len()) {
        _ if !word.starts_with(near) => Match::No,
        Some(next) if is_space(*next) || matches!(next, b'>' | b'/') => Match::Yes(word.len()),
        Some(_) => Match::No,
        None if is_last => Match::No,
        None => Match::Cut,
    }
}

/// Tells whether `rest` starts like a call: a tool's tag, the tag of another dialect, or an escaped `<tools`.
pub(super) fn call_like(rest: &[u8], table: &Table, is_last: bool) -> Match {
    let mut is_cut = false;
    for word in [&b"&lt;tools"[..], b"[TOOL_CALLS]"] {
        let near = rest.get(..word.len()).unwrap_or(rest);
        if near == word {
            return Match::Yes(word.len());
        }
        is_cut |= !is_last && word.starts_with(near);
    }
    let Some(name) = rest.strip_prefix(b"<") else {
        return if is_cut { Match::Cut } else { Match::No };
    };
    let near = name.get(..MAX_NAME).unwrap_or(name);
    let length = near
        .iter()
        .take_while(|b| is_name_byte(**b) || **b == b'|')
        .count();
    let next = near.get(length);
    if next.is_none() && !is_last && near.len() < MAX_NAME {
        return Match::Cut;
    }
    let is_tag = next.is_some_and(|b| is_space(*b) || matches!(b, b'>' | b'/' | b'='));
    let name = str::from_utf8(near.get(..length).unwrap_or_default()).unwrap_or_default();
    match is_tag && is_call_name(name.trim_matches('|'), table) {
        true => Match::Yes(1 + length),
        false => Match::No,
    }
}

/// Tells whether a tag of this name is that of a call. Aliases of one word are words of documents, too.
fn is_call_name(name: &str, table: &Table) -> bool {
    let name = name.to_ascii_lowercase();
    let local = name
        .rsplit_once(':')
        .map_or(name.as_str(), |(_, local)| local);
    let is_word = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_rest = |rest: &str| is_word(rest) || rest.starts_with('s') || rest.starts_with("call");
    let tool = table.tool(&name, Mode::Repair);
    tool.is_some_and(|rule| table.is_listed(&rule.name))
        || name.strip_prefix("tool").is_some_and(is_rest)
        || local.strip_prefix("tool").is_some_and(is_rest)
        || local.ends_with("tools")
        || DIALECTS.contains(&local)
        || (local.contains('_') && table.is_alias(local))
}
