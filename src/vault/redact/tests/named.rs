//! Texts that name the shell variables that stood for secrets.

use super::*;
use crate::secret::Holds;

const A: &str = "__karyi_0123456789abcdef0123456789abcdef";
const B: &str = "__karyi_fedcba9876543210fedcba9876543210";

fn noted() -> Redactor {
    let secrets = secrets(&[("T", T)]);
    for (variable, holds) in [(A, Holds::Value), (B, Holds::Path)] {
        secrets.note_variable(variable, &SecretName::parse("T").unwrap(), holds);
    }
    Redactor::new(&secrets)
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let redactor = noted();
    assert_eq!(redactor.redact_str(text), expected, "{text:?}");
    for (at, _) in text.char_indices() {
        let pieces = in_pieces(&redactor, &[&text[..at], &text[at..]]);
        assert_eq!(pieces, expected, "{text:?} cut at {at}");
    }
    let letters: Vec<&str> = text.split_inclusive(|_| true).collect();
    assert_eq!(in_pieces(&redactor, &letters), expected, "{text:?}");
    assert_eq!(redactor.redact_again(expected), expected);
}

#[test]
fn a_variable_shows_as_the_text_of_its_placeholder() {
    check(
        &format!("[1]+  Done   sleep 5 \"${{{A}}}\" é\n"),
        "[1]+  Done   sleep 5 \"$$KARYI{T}\" é\n",
    );
    check(
        &format!("cat \"${{{B}}}\" '\"${{{A}}}\"'\n"),
        "cat \"$$KARYI{T|file}\" '\"$$KARYI{T}\"'\n",
    );
    check(&format!("{A} {B}"), "$$KARYI{T} $$KARYI{T|file}");
    check(&format!("{A}{A}"), "$$KARYI{T}$$KARYI{T}");
    check(&format!("__k{A}_"), "__k$$KARYI{T}_");
    check(&format!("__karyi_{A}"), "__karyi_$$KARYI{T}");
    check(&format!("__karyi{A}"), "__karyi$$KARYI{T}");
    check(
        &format!("${{{A}-x}} ${{#{A}}}"),
        "${$$KARYI{T}-x} ${#$$KARYI{T}}",
    );
    check(
        &format!("declare -- {A}=\"{T}\" $KARYI{{T}}"),
        "declare -- $$KARYI{T}=\"$KARYI{T}\" $$KARYI{T}",
    );
}

#[test]
fn a_variable_whose_name_a_shell_has_cut_is_one() {
    for digits in [8, 20, 31] {
        let cut = &A[..8 + digits];
        check(&format!("sleep \"${{{cut}..."), "sleep \"$$KARYI{T}...");
        check(&format!("sleep \"${{{cut}"), "sleep \"$$KARYI{T}");
        check(cut, "$$KARYI{T}");
    }
}

#[test]
fn what_is_no_variable_of_a_secret_stays() {
    for text in [
        "__karyi_",
        "String::from(\"__karyi_\") __karyi_x ${__karyi_} ${__karyi_0",
        "__karyi_0123456 __karyi_0123456789abcdee ${__karyi_00000000000000000000000000000000}",
        "$ ${ ${_ _ __ __k __karyi",
        "$_${__",
    ] {
        check(text, text);
    }
    let redactor = Redactor::new(&secrets(&[("T", T)]));
    assert_eq!(redactor.redact_str(A), A);
}

/// What is no variable is given out as soon as its digits tell, but for the last one, which may begin a value; of the name
/// of one all is held back.
#[test]
fn little_is_held_back_of_what_is_no_variable() {
    let redactor = noted();
    let held_of = |text: &str| -> usize {
        let (mut out, mut stream) = (Redacted::default(), redactor.stream());
        let letters = text.split_inclusive(|_| true).map(|letter| {
            stream.push(letter, &mut out);
            stream.held_back().len()
        });
        letters.max().unwrap_or_default()
    };
    let other = A.replace('f', "e");
    assert_eq!(
        held_of(&format!("${{{other}}} ")),
        "${__karyi_0123456789abcdee".len()
    );
    assert_eq!(
        held_of("${__karyi_ffffffffffffffffffffffffffffffff} "),
        "${__karyi_ffffffff".len()
    );
    assert_eq!(held_of(&format!("${{{A}}} ")), "${}".len() + A.len() - 1);
}
