//! Looks for words in a script that tell what it may do to its shell.
//!
//! A script is not parsed: a word inside a string counts as well. A wrong guess costs a few lines more.

/// Returns true if a script may end the shell, or set a trap for its end.
pub(crate) fn may_exit(script: &str) -> bool {
    contains_any(script, &["exit", "trap"])
}

/// Returns true if a script may have changed the directory when it ended the shell.
pub(crate) fn may_move(script: &str) -> bool {
    contains_any(script, &["cd", "pushd", "popd", "eval", "source", ". "])
}

/// Returns true if a script may leave the shell too few descriptors for the lines around the next one.
pub(crate) fn may_limit(script: &str) -> bool {
    contains_word(script, "limit")
}

/// Returns true if a script has a `&` that is not part of `&&` or of a redirection.
pub(crate) fn starts_background(script: &str) -> bool {
    memchr::memchr_iter(b'&', script.as_bytes()).any(|at| puts_in_background(script, at))
}

/// Returns true if such a `&` stands outside of parentheses: with `(x &)` a script gives up control of `x`.
pub(crate) fn starts_job(script: &str) -> bool {
    let mut depth = 0_usize;
    memchr::memchr3_iter(b'&', b'(', b')', script.as_bytes()).any(|at| {
        match script.as_bytes().get(at) {
            Some(b'(') => depth += 1,
            Some(b')') => depth = depth.saturating_sub(1),
            _ => return depth == 0 && puts_in_background(script, at),
        }
        false
    })
}

/// Returns true if the `&` at an index is not part of `&&` or of a redirection.
fn puts_in_background(script: &str, at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|at| script.as_bytes().get(at));
    let after = script.as_bytes().get(at + 1);
    !matches!(before, Some(b'&' | b'>' | b'<')) && !matches!(after, Some(b'&' | b'>'))
}

/// Returns true if a script contains one of some words.
pub(super) fn contains_any(script: &str, words: &[&str]) -> bool {
    words.iter().any(|word| contains_word(script, word))
}

/// Returns true if a script contains a word, also within another one.
pub(super) fn contains_word(script: &str, word: &str) -> bool {
    memchr::memmem::find(script.as_bytes(), word.as_bytes()).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn background_operators_are_detected() {
        for script in ["sleep 1 &", "a & b", "&", "a&b", "coproc |&", "a && b & c"] {
            assert!(starts_background(script), "{script}");
        }
        for script in ["", "a && b", "a 2>&1", "a &>f", "a <&3", "a >& f"] {
            assert!(!starts_background(script), "{script}");
        }
        for script in [
            "x & sleep 1",
            "(a; b) & c",
            "$(a) &",
            "case a in b) c & ;; esac",
        ] {
            assert!(starts_job(script), "{script}");
        }
        for script in ["(x &)", "((x) & y); z", "$(x &); a && b", "a 2>&1"] {
            assert!(!starts_job(script), "{script}");
        }
    }
}
