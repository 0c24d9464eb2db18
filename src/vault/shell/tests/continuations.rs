//! Line continuations neither hide nor end anything.

use super::refused::{SECOND_PARSES, UNSAFE_CONTEXTS};
use super::{FREE_PLACES, check, continued, secrets, substitute_script};

#[test]
fn line_continuations_are_nothing() {
    let accepted = |script: &String| {
        let script = script.replace("VALUE", "$KARYI{V0}");
        substitute_script(&script, &secrets(&["a[$(touch pwned)]"])).is_ok()
    };
    let rows = SECOND_PARSES.iter().chain(UNSAFE_CONTEXTS);
    let found: Vec<String> = rows
        // There it ends a comment.
        .filter(|script| !script.contains("# "))
        .map(|script| continued(script))
        .filter(accepted)
        .collect();
    assert_eq!(found, [""; 0]);
    let refused: Vec<String> = FREE_PLACES
        .iter()
        .map(|script| continued(script))
        .filter(|script| !accepted(script))
        .collect();
    assert_eq!(refused, [""; 0]);
}

#[test]
fn line_continuations_hide_nothing_inside_of_words() {
    let secrets = secrets(&["a[$(touch pwned)]"]);
    let mut found = Vec::new();
    let step = match std::env::var_os("KARYI_FULL") {
        Some(_) => 1,
        // The small count takes every row, at other offsets for each.
        None => 4,
    };
    for (row, script) in SECOND_PARSES.iter().chain(UNSAFE_CONTEXTS).enumerate() {
        for at in (row % step..script.len()).step_by(step) {
            let (before, after) = script.split_at(at);
            let is_literal = before.matches('\'').count() % 2 == 1
                || before.ends_with('\\')
                || [" #", "(#"].iter().any(|comment| before.contains(comment))
                || ["VALU", "VAL", "VA", "V"]
                    .iter()
                    .any(|part| before.ends_with(part));
            if is_literal {
                continue;
            }
            let whole = format!("{before}\\\n{after}");
            let text = whole.replace("VALUE", "$KARYI{V0}");
            if substitute_script(&text, &secrets).is_ok() {
                found.push(whole);
            }
        }
    }
    assert_eq!(found, [""; 0]);
}

#[test]
fn line_continuations_end_no_here_document() {
    for script in [
        "cat <<EOF\na\nEO\\\nF\nbash -c 'VALUE'\nEOF",
        "cat <<E\\\nOF\na\nEOF\nbash -c 'VALUE'\nEOF",
        "cat <<\\\n-EOF\na\n\tEOF\nbash -c 'VALUE'\nEOF",
        "f(\\\n) { echo VALUE; }",
        "f ( \\\n ) { echo VALUE; }",
        "a\\\n[VALUE]=1",
        "[\\\n[ VALUE -eq 1 ]]",
        "{ sh; } 0\\\n<<< VALUE",
        "{ sh; } al\\\nways { :; } <<< VALUE",
        "exec 3>\\\n&1 4> >(sh); echo VALUE >&4",
    ] {
        let text = script.replace("VALUE", "$KARYI{V0}");
        let result = substitute_script(&text, &secrets(&["a[$(touch pwned)]"]));
        assert!(result.is_err(), "{script}");
    }
    check("cat <<E\\\nOF\na VALUE\nEOF", "a VALUE\n");
    check("cat <<- \\\n EOF \\\n | cat\n\ta VALUE\n\tEOF", "a VALUE\n");
    check(
        "recv \"a\\\n\"VALUE \\\n \\\n 'b'; x=\\\nVALUE; recv \"$x\"",
        "[aVALUE][b][VALUE]",
    );
    check("cat \\\n  <<< \\\n  VALUE", "VALUE\n");
}
