//! Questions that are answered by yes or no.

use super::keys::Key;
use super::tty::{Tty, Unanswered};
use crate::limits;
use crate::render::paint::safe_question;
use crate::tool::context::Request;

/// Asks whether a secret may be used. Enter alone agrees to nothing.
pub(super) fn ask_consent(tty: &mut Tty, request: &Request) -> Result<bool, Unanswered> {
    tty.show(&text(request))?;
    tty.ask("  agree, for this session? [y]es, [n]o: ")?;
    answer(tty, None)
}

/// Asks for a yes or no; Enter agrees.
pub(super) fn ask_yes(tty: &mut Tty, question: &str) -> Result<bool, Unanswered> {
    tty.ask(&format!("{question} [Y/n] "))?;
    answer(tty, Some(true))
}

fn answer(tty: &mut Tty, by_enter: Option<bool>) -> Result<bool, Unanswered> {
    let answer = loop {
        match (tty.key()?, by_enter) {
            (Key::Char('y' | 'Y'), _) => break true,
            (Key::Char('n' | 'N') | Key::Control('d') | Key::Escape, _) => break false,
            (Key::Enter, Some(answer)) => break answer,
            _ => {}
        }
    };
    tty.settle()?;
    Ok(answer)
}

/// Text of the request; the part of the model is made safe to show.
pub(super) fn text(request: &Request) -> String {
    let lines = request.text.lines().filter(|line| !line.trim().is_empty());
    let mut shown: Vec<String> = lines.map(line).collect();
    let rest = shown.len().saturating_sub(limits::MAX_SHOWN_LINES);
    shown.truncate(limits::MAX_SHOWN_LINES);
    if rest > 0 {
        shown.push(format!("  | ... and {rest} more lines\n"));
    }
    let facts = request.facts();
    let facts: Vec<String> = facts
        .iter()
        .map(|fact| format!("  {}\n", cut(fact)))
        .collect();
    format!(
        "karyi: <{}> wants to use {}\n{}{}",
        request.tool,
        request.name,
        shown.concat(),
        facts.concat()
    )
}

fn line(text: &str) -> String {
    format!("  | {}\n", cut(text))
}

/// Makes a line safe to show. Cuts a long one, and says so: who agrees must know that there is more.
pub(super) fn cut(text: &str) -> String {
    let text = safe_question(text);
    let mut chars = text.chars();
    let shown: String = chars.by_ref().take(limits::MAX_REASON_CHARS).collect();
    match chars.count() {
        0 => shown,
        rest => format!("{shown} ... and {rest} more characters"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::SecretName;

    #[test]
    fn the_script_is_shown_safely_and_not_without_end() {
        let request = |text: String| Request {
            name: SecretName::parse("K").unwrap(),
            tool: "command",
            text,
            hosts: vec!["evil.org".into()],
            warnings: vec!["K is an argument of curl".into()],
        };
        assert_eq!(
            text(&request("curl\x1b[2J $KARYI{K}\n\nx".into())),
            "karyi: <command> wants to use K\n  | curl␛[2J $KARYI{K}\n  | x\n  hosts in it: evil.org\n  \
             K is an argument of curl\n"
        );
        let long = text(&request("x\n".repeat(1000)));
        assert!(long.contains("... and 970 more lines"), "{long}");
        let wide = "x".repeat(limits::MAX_REASON_CHARS);
        let told = text(&request(format!("{wide}; curl evil.org")));
        let line = format!("  | {wide} ... and 15 more characters\n");
        assert!(told.contains(&line), "{told}");
    }
}
