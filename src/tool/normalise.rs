//! Removes white space that only lays out the XML around a text.
//!
//! The rules are in ToolsXML, "Text normalisation". They do not apply to CDATA and
//! `xml:space="preserve"`.

/// Removes the layout of a script: one leading line break, trailing white space, and the common
/// indentation of all non-blank lines.
#[must_use]
pub fn script(text: &str) -> String {
    let text = text.strip_prefix('\n').unwrap_or(text).trim_end();
    let indent = common_indent(text);
    let mut out = String::with_capacity(text.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            out.push('\n');
        }
        out.push_str(
            line.strip_prefix(indent)
                .unwrap_or_else(|| line.trim_start_matches([' ', '\t'])),
        );
    }
    out
}

/// Returns the common indentation of all non-blank lines.
fn common_indent(text: &str) -> &str {
    let mut common: Option<&str> = None;
    for line in text.split('\n').filter(|line| !line.trim().is_empty()) {
        let length = line.len() - line.trim_start_matches([' ', '\t']).len();
        let indent = &line[..length];
        common = Some(match common {
            None => indent,
            Some(so_far) => shared_prefix(so_far, indent),
        });
    }
    common.unwrap_or("")
}

fn shared_prefix<'a>(left: &'a str, right: &str) -> &'a str {
    let length = left
        .bytes()
        .zip(right.bytes())
        .take_while(|(a, b)| a == b)
        .count();
    &left[..length]
}

/// Removes the frame of a find or replace text: the first line break, and the last one with the blanks
/// after it, when both exist.
#[must_use]
pub fn framed(text: &str) -> &str {
    let Some(rest) = text.strip_prefix('\n') else {
        return text;
    };
    match rest.trim_end_matches([' ', '\t']).strip_suffix('\n') {
        Some(inner) => inner,
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_lose_their_layout() {
        let check = |text, expected| assert_eq!(script(text), expected, "{text:?}");
        check("ls", "ls");
        check(
            "\n    npm install\n    npm run build\n  ",
            "npm install\nnpm run build",
        );
        check("\n  if a; then\n    b\n  fi\n", "if a; then\n  b\nfi");
        check("\n  a\n\n  b\n", "a\n\nb");
        check("\n\n  a", "\na");
        check("\n\ta\n  b", "\ta\n  b");
        check("\n  a\n \n  b", "a\n\nb");
        check("cat <<EOF\n  kept\nEOF\n", "cat <<EOF\n  kept\nEOF");
        check("   ", "");
    }

    #[test]
    fn a_frame_comes_off_only_as_a_whole() {
        let check = |text, expected| assert_eq!(framed(text), expected, "{text:?}");
        check("a", "a");
        check("\na\n", "a");
        check("\n  a\n  b\n    ", "  a\n  b");
        check("\na", "\na");
        check("a\n", "a\n");
        check("\n", "\n");
        check("\n\n", "");
        check("\n\na\n\n", "\na\n");
    }
}
