//! Warning of new text that ends in closing tags of the call itself: the model closed the call twice, or took another
//! dialect for the text of the file.

use super::File;

/// Names of elements around calls and their arguments, in the dialects of models.
const ENVELOPES: &[&str] = &[
    "arguments",
    "content",
    "file_text",
    "function",
    "function_call",
    "function_calls",
    "invoke",
    "new_str",
    "new_string",
    "parameter",
    "tool_call",
    "tool_calls",
    "tool_use",
];

/// Warns of new text that ends in closing tags of a call, which nothing in it opened.
pub(super) fn leaked_closers(file: &File) -> Option<String> {
    let pairs = file
        .edits
        .iter()
        .map(|pair| (pair.find.source(), &pair.replace));
    let texts = pairs.chain(file.content.iter().map(|content| ("", content)));
    let mut leaks = texts.filter_map(|(find, text)| {
        let text = text.source().trim_end();
        let mut rest = text;
        while let Some((before, tag)) = rest
            .strip_suffix('>')
            .and_then(|inner| inner.rsplit_once("</"))
        {
            let name = tag.rsplit_once(':').map_or(tag, |(_, name)| name);
            let is_ours = ENVELOPES.contains(&name) && !find.contains(&format!("</{tag}>"));
            if !is_ours || before.contains(&format!("<{tag}")) {
                break;
            }
            rest = before.trim_end();
        }
        let leak = text.get(rest.len()..).unwrap_or_default().trim_start();
        (!leak.is_empty()).then(|| leak.split_whitespace().collect::<String>())
    });
    let leak = leaks.next()?;
    let src = file.src.source();
    Some(format!(
        "{src}: the new text ends in {leak}, which nothing in it opens; remove it if it is not meant"
    ))
}
