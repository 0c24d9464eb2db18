//! HTML of the page: plain, without scripts, images or styles.

use crate::render::paint::safe_question;
use crate::tool::context::Question;
use karyi_core::limits;

/// Returns the page with the form.
pub(super) fn question(question: &Question, client: &str, csrf: &str) -> String {
    let name = escaped(question.name.as_str());
    let reason = escaped(&question.reason);
    let note = match &question.note {
        Some(note) => format!("<p>Note: {}</p>", escaped(note)),
        None => String::new(),
    };
    let client = match client.trim() {
        "" => "An unnamed MCP client".to_owned(),
        client => format!("The MCP client <b>{}</b>", escaped(client)),
    };
    let save = match (question.store, &question.cannot_save) {
        (Some(store), _) => choice(
            "save",
            &format!("in this session and later ones, stored in {store}"),
        ),
        (None, Some(why)) => format!("It cannot be saved: {}", escaped(why)),
        (None, None) => String::new(),
    };
    let body = format!(
        "<h1>karyi asks for the value {name}</h1>\
         <p>{client} requests it for this reason, which karyi cannot verify:</p>\
         <blockquote>{reason}</blockquote>{note}\
         <p>The value goes to karyi on this machine only. Neither the client nor the model sees it; \
         scripts use it as <code>$KARYI{{{name}}}</code>.</p>\
         <form method=\"post\" autocomplete=\"off\">\
         <input type=\"hidden\" name=\"csrf\" value=\"{csrf}\">\
         <p><label>Value <input type=\"password\" name=\"value\" autocomplete=\"off\" autofocus></label></p>\
         <details><summary>Several lines</summary>\
         <p><textarea name=\"lines\" rows=\"8\" cols=\"70\" autocomplete=\"off\" spellcheck=\"false\"></textarea></p></details>\
         <fieldset><legend>It may be used</legend>{once}{session}{save}</fieldset>\
         <p><button name=\"answer\" value=\"give\">Send the value</button> \
         <button name=\"answer\" value=\"deny\">Do not send it</button></p></form>",
        once = choice("once", "by the next call that uses it, and no other"),
        session = choice("session", "in this session").replacen("<input", "<input checked", 1),
    );
    document(&format!("karyi: {name}"), &body)
}

fn choice(value: &str, words: &str) -> String {
    format!("<label><input type=\"radio\" name=\"lifetime\" value=\"{value}\"> {words}</label><br>")
}

/// Returns a page with one sentence.
pub(super) fn notice(words: &str) -> String {
    document("karyi", &format!("<p>{}</p>", escaped(words)))
}

fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\
         <body>{body}</body></html>\n"
    )
}

/// Escapes untrusted text for HTML: cut to length, without invisible characters.
fn escaped(text: &str) -> String {
    let short: String = safe_question(text)
        .chars()
        .take(limits::MAX_NOTE_CHARS)
        .collect();
    let mut escaped = String::with_capacity(short.len());
    for c in short.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped() {
        assert_eq!(
            escaped("<script>\"a\" & 'b'</script>\u{202E}x"),
            "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;&lt;/script&gt;\u{FFFD}x"
        );
        assert!(escaped(&"x".repeat(10_000)).len() == limits::MAX_NOTE_CHARS);
    }
}
