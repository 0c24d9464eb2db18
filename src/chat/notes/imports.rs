//! Finds `@path` in notes: the names of other files that belong to them.

/// Returns the paths that a text imports, in order. Code is passed over.
pub(super) fn imports(text: &str) -> Vec<&str> {
    let mut paths = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let marker = fence_marker(line.trim_start());
        match (fence, marker) {
            (None, Some(marker)) => fence = Some(marker),
            (Some(open), Some(marker)) if closes(open, marker, line) => fence = None,
            (Some(_), _) => {}
            (None, None) => line_imports(line, &mut paths),
        }
    }
    paths
}

/// Returns the run of signs that opens or closes a code block.
fn fence_marker(line: &str) -> Option<&str> {
    let sign = line
        .chars()
        .next()
        .filter(|sign| matches!(sign, '`' | '~'))?;
    let rest = line.trim_start_matches(sign);
    let marker = line.get(..line.len() - rest.len())?;
    (marker.len() >= 3).then_some(marker)
}

fn closes(open: &str, marker: &str, line: &str) -> bool {
    marker.len() >= open.len() && marker.starts_with(open) && line.trim() == marker
}

/// Adds the paths in a line of text.
fn line_imports<'a>(line: &'a str, paths: &mut Vec<&'a str>) {
    let mut is_code = false;
    let mut before = ' ';
    for (at, sign) in line.char_indices() {
        if sign == '`' {
            is_code = !is_code;
        }
        if sign == '@' && !is_code && (before.is_whitespace() || before == '(') {
            let rest = line.get(at + 1..).unwrap_or_default();
            let end = rest.find(|sign: char| sign.is_whitespace() || sign == '`');
            let path = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
            let path = path.trim_end_matches([')', '.', ',', ';', ':', '!', '?', '"', '\'']);
            if !path.is_empty() {
                paths.push(path);
            }
        }
        before = sign;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(imports(text), expected, "{text}");
    }

    #[test]
    fn paths_stand_in_text_and_not_in_code() {
        check("@a.md", &["a.md"]);
        check("See @docs/a.md, (@b) and @c.", &["docs/a.md", "b", "c"]);
        check("me@example.org and `@a` and a`b @c`", &[]);
        check("`code` @a", &["a"]);
        check("```\n@a\n```\n@b", &["b"]);
        check("````\n@a\n```\n@b\n````\n@c", &["c"]);
        check("~~~ sh\n@a\n```\n~~~\n@b", &["b"]);
        check("```\n@never", &[]);
        check("@ a @@", &["@"]);
        check("- @日本.md", &["日本.md"]);
    }
}
