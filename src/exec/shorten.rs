//! Shortens the texts of a masked result to what a context window takes. Counts are exact, and a hint names the
//! next call to make.

use serde_json::{Map, Value};

use crate::tool::context::ShownTexts;
use crate::tool::{CountedKind, CountedTexts};
use crate::tools::counted_texts;
use karyi_core::head_tail::{Cap, before_marker};
use karyi_core::limits;
use karyi_core::outcome::Outcome;

/// Limits of the shown part of a text.
#[derive(Debug, Clone, Copy)]
struct Part {
    lines: usize,
    bytes: usize,
    line_bytes: usize,
}

/// Shortens what a result shows of each file.
pub fn shorten_files(
    fields: &mut Map<String, Value>,
    counted: &[CountedTexts],
    shown: &ShownTexts,
) {
    let is_of_file = |texts: &&CountedTexts| texts.kind == CountedKind::NumberedLines;
    let Some(texts) = counted.iter().find(is_of_file) else {
        return;
    };
    for file in items(fields, texts.list) {
        let part = match file.shift_remove("max_bytes") {
            // No more than these bytes were read.
            Some(_) => Part {
                lines: usize::MAX,
                bytes: usize::MAX,
                line_bytes: usize::MAX,
            },
            None => Part {
                lines: shown.lines,
                bytes: shown.bytes,
                line_bytes: shown.line_bytes,
            },
        };
        shorten_file(file, texts.text, part);
    }
}

/// Shortens a result to the bytes that a report has left, and takes them from it.
pub fn fit(outcome: &mut Outcome, left: &mut usize) {
    if let Some(output) = &mut outcome.output {
        if output.text.len() > *left {
            let is_new = output.omitted_bytes == 0;
            output.shorten(Cap::total(*left));
            if is_new {
                let hint =
                    "the report is full: write long output to a file, and `read` parts of it";
                add_hint(&mut outcome.fields, hint);
            }
        }
        *left = left.saturating_sub(output.text.len());
    }
    fit_lists(&mut outcome.fields, counted_texts(&outcome.tool), left);
}

fn fit_lists(fields: &mut Map<String, Value>, counted: &[CountedTexts], left: &mut usize) {
    for texts in counted {
        if texts.list.is_empty() {
            fit_item(fields, *texts, left);
        }
        for item in items(fields, texts.list) {
            fit_item(item, *texts, left);
        }
    }
}

/// Shortens the data of a tool to that many bytes of texts: lists lose their last items, long texts their end.
pub fn fit_data(tool: &str, fields: &mut Map<String, Value>, most: usize) {
    let counted = counted_texts(tool);
    let (mut left, mut lost) = (most, OmittedCounts::default());
    for (name, value) in fields.iter_mut() {
        let is_counted = |texts: &CountedTexts| match texts.list {
            "" => texts.text == name,
            list => list == name,
        };
        if !counted.iter().any(is_counted) {
            fit_value(value, &mut left, &mut lost);
        }
    }
    fit_lists(fields, counted, &mut left);
    if lost.items + lost.bytes > 0 {
        add(fields, "omitted_items", lost.items);
        add(fields, "omitted_bytes", lost.bytes);
        let hint = format!("a result has {most} bytes of texts at most: ask for less at once");
        add_hint(fields, &hint);
    }
}

/// Counts of what was left out.
#[derive(Default)]
struct OmittedCounts {
    items: u64,
    bytes: u64,
}

fn fit_value(value: &mut Value, left: &mut usize, lost: &mut OmittedCounts) {
    match value {
        Value::String(text) if text.len() > (*left).max(limits::MAX_TITLE_CHARS) => {
            let end = before_marker(text.as_bytes(), text.floor_char_boundary(*left));
            lost.bytes += (text.len() - end) as u64;
            text.truncate(end);
            *left = 0;
        }
        Value::Array(list) => {
            let is_fitting = |item: &&Value| {
                *left = left.saturating_sub(text_bytes(item));
                *left > 0
            };
            let whole = list.iter().take_while(is_fitting).count();
            lost.items += (list.len() - whole) as u64;
            list.truncate(whole);
        }
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|value| fit_value(value, left, lost)),
        other => *left = left.saturating_sub(text_bytes(other)),
    }
}

/// Returns the bytes of all texts of a value.
fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(text_bytes).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| name.len() + text_bytes(value))
            .sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => size_of::<f64>(),
    }
}

fn fit_item(item: &mut Map<String, Value>, texts: CountedTexts, left: &mut usize) {
    let name = texts.text;
    if text(item, name).is_some_and(|text| text.len() > *left) {
        let part = Part {
            lines: usize::MAX,
            bytes: *left,
            line_bytes: usize::MAX,
        };
        match texts.kind {
            CountedKind::Diff => remove_diff(item, name),
            CountedKind::NumberedLines if item.contains_key("first_line") => {
                shorten_file(item, name, part);
            }
            CountedKind::NumberedLines | CountedKind::Lines => shorten_lines(item, name, part),
        }
    }
    *left = left.saturating_sub(text(item, name).map_or(0, str::len));
}

/// Leaves a diff out, and counts its lines.
fn remove_diff(item: &mut Map<String, Value>, name: &str) {
    let diff = item.shift_remove(name);
    let lines = diff.as_ref().and_then(Value::as_str).unwrap_or_default();
    let is_changed = |line: &&str| line.starts_with(['+', '-']);
    let lines = lines.lines().filter(is_changed).count();
    add(item, &format!("{name}_omitted_lines"), lines as u64);
}

/// End of a hint that names the lines that follow.
const SHOWS_MORE: &str = " shows more";

/// Shortens the text of a file; the hint names the lines that follow.
fn shorten_file(file: &mut Map<String, Value>, name: &str, part: Part) {
    let count = |file: &Map<String, Value>, name| file.get(name).and_then(Value::as_u64);
    let (Some(first), Some(Value::String(text))) = (count(file, "first_line"), file.get(name))
    else {
        return;
    };
    let all = text.lines().count() as u64;
    let omitted = count(file, "omitted_bytes").unwrap_or(0);
    let begun = u64::from(omitted > 0 && !text.ends_with('\n') && !text.is_empty());
    let mut taken = take(text, part);
    let last = first + all + count(file, "omitted_lines").unwrap_or(0);
    // A first line that is cut for want of bytes is shown whole by the next call.
    let is_unfinished = taken.cut_line == Some(0) && part.bytes < part.line_bytes;
    let next = match is_unfinished {
        true => first,
        false => first + taken.lines.min(all.saturating_sub(begun)),
    };
    if is_unfinished {
        taken.cut_line = None;
    }
    if next < last {
        let end = match count(file, "total_lines") {
            Some(total) if last > total => String::new(),
            _ => (last - 1).to_string(),
        };
        remove_hint(file, SHOWS_MORE);
        add_hint(file, &format!("lines=\"{next}-{end}\"{SHOWS_MORE}"));
    }
    if let Some(line) = taken.cut_line {
        let line = first + line;
        let hint = format!(
            "lines over {} bytes are cut: lines=\"{line}\" with max_bytes shows one whole",
            part.line_bytes
        );
        add_hint(file, &hint);
    }
    add(file, "omitted_bytes", taken.omitted_bytes);
    add(file, "omitted_lines", all - taken.lines);
    file.insert(name.into(), taken.text.into());
}

/// Shortens a list of lines: matches or entries.
fn shorten_lines(item: &mut Map<String, Value>, name: &str, part: Part) {
    let taken = text(item, name).map(|text| (take(text, part), text.lines().count() as u64));
    if let Some((taken, all)) = taken {
        add(item, "omitted_lines", all - taken.lines);
        add_hint(item, "the report is full: ask for less at once");
        item.insert(name.into(), taken.text.into());
    }
}

/// The shown part of a text.
struct Taken {
    text: String,
    /// Lines of it.
    lines: u64,
    omitted_bytes: u64,
    /// Index of the first line that was cut.
    cut_line: Option<u64>,
}

/// Takes the first lines of a text; long lines are cut. No marker of a secret is divided.
fn take(text: &str, part: Part) -> Taken {
    let (mut shown, mut lines, mut cut_line, mut kept) = (String::new(), 0, None, 0);
    for line in text.split_inclusive('\n') {
        if lines == part.lines as u64 || part.bytes == 0 {
            break;
        }
        let body = line.strip_suffix('\n').unwrap_or(line);
        let most = match lines {
            0 => part.line_bytes.min(part.bytes),
            _ => part.line_bytes,
        };
        let mut piece = line.to_owned();
        let mut of_line = line.len();
        if body.len() > most {
            let end = before_marker(body.as_bytes(), body.floor_char_boundary(most));
            of_line = end + line.len() - body.len();
            let start = body.get(..end).unwrap_or_default();
            let cut = body.len() - end;
            let ending = line.get(body.len()..).unwrap_or_default();
            piece = format!("{start} [... {cut} bytes omitted ...]{ending}");
        }
        if lines > 0 && shown.len() + piece.len() > part.bytes {
            break;
        }
        if of_line < line.len() {
            cut_line.get_or_insert(lines);
        }
        kept += of_line;
        lines += 1;
        shown.push_str(&piece);
    }
    Taken {
        text: shown,
        lines,
        omitted_bytes: (text.len() - kept) as u64,
        cut_line,
    }
}

fn items<'a>(
    fields: &'a mut Map<String, Value>,
    list: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    let items = fields.get_mut(list).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut)
}

fn text<'a>(item: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    item.get(name).and_then(Value::as_str)
}

/// Adds to a count; a count of nothing is left out.
fn add(item: &mut Map<String, Value>, name: &str, more: u64) {
    if more > 0 {
        let count = item.get(name).and_then(Value::as_u64).unwrap_or(0);
        item.insert(name.into(), (count + more).into());
    }
}

/// Removes the sentences of the hint that end so.
fn remove_hint(item: &mut Map<String, Value>, end: &str) {
    let Some(hint) = text(item, "hint") else {
        return;
    };
    let others = hint.split("; ").filter(|sentence| !sentence.ends_with(end));
    let others = others.collect::<Vec<_>>().join("; ");
    match others.is_empty() {
        true => item.shift_remove("hint"),
        false => item.insert("hint".into(), others.into()),
    };
}

/// Adds a sentence to the hint.
pub(crate) fn add_hint(item: &mut Map<String, Value>, hint: &str) {
    let hint = match text(item, "hint") {
        Some(earlier) if earlier.contains(hint) => return,
        Some(earlier) => format!("{earlier}; {hint}"),
        None => hint.to_owned(),
    };
    item.insert("hint".into(), hint.into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(file: Value, part: (usize, usize, usize), expected: Value) {
        let (lines, bytes, line_bytes) = part;
        let Value::Object(mut file) = file else {
            panic!("{file} is no object");
        };
        let part = Part {
            lines,
            bytes,
            line_bytes,
        };
        shorten_file(&mut file, "output", part);
        assert_eq!(Value::Object(file), expected);
    }

    #[test]
    fn the_rest_is_counted_and_named() {
        let file = json!({"first_line": 5, "total_lines": 8, "output": "a\nb\nc\nd"});
        check(file.clone(), (9, 99, 9), file.clone());
        let hint = "lines=\"7-\" shows more";
        let two = json!({"first_line": 5, "total_lines": 8, "output": "a\nb\n", "hint": hint,
            "omitted_bytes": 3, "omitted_lines": 2});
        check(file.clone(), (2, 99, 9), two.clone());
        check(file, (9, 5, 9), two);
        let part = json!({"first_line": 5, "total_lines": 99, "output": "a\nb\nc\n"});
        let hint = "lines=\"6-7\" shows more";
        let one = json!({"first_line": 5, "total_lines": 99, "output": "a\n", "hint": hint,
            "omitted_bytes": 4, "omitted_lines": 2});
        check(part, (1, 99, 9), one);
    }

    #[test]
    fn a_text_that_was_cut_goes_on_at_its_last_line() {
        let cut = json!({"first_line": 1, "total_lines": 9, "omitted_bytes": 70, "omitted_lines": 7,
            "output": "a\nbb"});
        let mut expected = cut.clone();
        expected["hint"] = json!("lines=\"2-\" shows more");
        check(cut, (9, 99, 9), expected);
    }

    #[test]
    fn a_text_that_is_cut_twice_has_one_next_call() {
        let hint = "lines=\"3-\" shows more; lines over 9 bytes are cut: lines=\"1\" with max_bytes shows one whole";
        let cut = json!({"first_line": 1, "total_lines": 9, "omitted_bytes": 70, "omitted_lines": 7,
            "output": "abc\ndef\n", "hint": hint});
        let most = usize::MAX;
        let hint = "lines over 9 bytes are cut: lines=\"1\" with max_bytes shows one whole; lines=\"2-\" shows more";
        let expected = json!({"first_line": 1, "total_lines": 9, "omitted_bytes": 74, "omitted_lines": 8,
            "output": "abc\n", "hint": hint});
        check(cut.clone(), (most, 5, most), expected);
        let hint = "lines over 9 bytes are cut: lines=\"1\" with max_bytes shows one whole; lines=\"1-\" shows more";
        let expected = json!({"first_line": 1, "total_lines": 9, "omitted_bytes": 76, "omitted_lines": 8,
            "output": "a [... 2 bytes omitted ...]\n", "hint": hint});
        check(cut, (most, 1, most), expected);
    }

    #[test]
    fn a_long_line_is_cut_with_its_count() {
        let file = json!({"first_line": 1, "total_lines": 2, "output": "abcdef\nx\n"});
        let expected = json!({"first_line": 1, "total_lines": 2,
            "output": "abcd [... 2 bytes omitted ...]\nx\n", "omitted_bytes": 2,
            "hint": "lines over 4 bytes are cut: lines=\"1\" with max_bytes shows one whole"});
        check(file, (9, 99, 4), expected);
        let secret = json!({"first_line": 1, "total_lines": 1, "output": "ab$KARYI{NAME}cd"});
        let expected = json!({"first_line": 1, "total_lines": 1,
            "output": "ab [... 14 bytes omitted ...]", "omitted_bytes": 14,
            "hint": "lines over 8 bytes are cut: lines=\"1\" with max_bytes shows one whole"});
        check(secret, (9, 99, 8), expected);
    }

    #[test]
    fn data_of_any_shape_is_cut_with_its_counts() {
        let check = |data: Value, most: usize, expected: Value| {
            let Value::Object(mut data) = data else {
                panic!("{data} is no object");
            };
            fit_data("get_site_map", &mut data, most);
            assert_eq!(Value::Object(data), expected);
        };
        let whole = json!({"name": "n", "items": [{"a": "bb"}, {"a": "cc"}], "total": 2});
        check(whole.clone(), 100, whole.clone());
        let hint = "a result has 6 bytes of texts at most: ask for less at once";
        let cut = json!({"name": "n", "items": [{"a": "bb"}], "total": 2, "omitted_items": 1, "hint": hint});
        check(whole, 6, cut);
        let hint = "a result has 150 bytes of texts at most: ask for less at once";
        let text = "x".repeat(148) + "$KARYI{NAME}";
        let cut = json!({"text": "x".repeat(148), "omitted_bytes": 12, "hint": hint});
        check(json!({"text": text}), 150, cut);
    }

    #[test]
    fn a_report_is_filled_in_order() {
        let mut outcome = Outcome::failed(
            "1".into(),
            "read".into(),
            karyi_core::error::ToolError::new(karyi_core::error::ErrorCode::Io, "x"),
        );
        let files = json!([{"first_line": 1, "total_lines": 3, "output": "a\nb\nc\n"},
            {"first_line": 1, "total_lines": 3, "output": "a\nb\nc\n"}]);
        outcome.fields.insert("files".into(), files);
        let mut left = 9;
        fit(&mut outcome, &mut left);
        let second = json!({"first_line": 1, "total_lines": 3, "output": "a\n", "omitted_bytes": 4,
            "omitted_lines": 2, "hint": "lines=\"2-\" shows more"});
        assert_eq!(outcome.fields["files"][1], second);
        assert_eq!(left, 1);
    }
}
