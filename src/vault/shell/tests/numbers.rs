//! Places where the shell calculates, and what substitutions print there.

use super::check_outcomes;

const HOSTILE: &str = "a[$(touch pwned)] '\"";

const CALCULATED: &[&str] = &[
    "[ $(echo VALUE) -eq 1 ]",
    "[[ $(cat <<< VALUE) -eq 1 ]]",
    "echo $(( $(cat <<EOF\nVALUE\nEOF\n) ))",
    "echo $(( $( (echo VALUE) ) ))",
    "echo $(( $( { echo VALUE; } ) ))",
    "echo $(( $(f() { cat; }; f <<< VALUE) ))",
    "declare -i n=$(echo VALUE | cat)",
    "[ 1 -eq 1 -a VALUE -eq 1 ]",
    "[[ a == b && VALUE -eq 1 ]]",
    "[[ ( VALUE -eq 1 ) || x ]]",
    "[[ 1 -eq (1|VALUE) ]]",
    "echo $(( $(sudo cat <<< VALUE) ))",
    "echo $(( $(bash -c 'echo \"$1\"' _ VALUE) ))",
    "echo $(( $(x=VALUE; echo $x) ))",
    "echo $(( $(echo $(echo VALUE)) ))",
    "echo $(( `echo VALUE` ))",
];

const TOLD: &[&str] = &[
    "echo $(( $(echo \"$(curl $(echo VALUE))\" | wc -l) ))",
    "[ \"$(curl -s -o /dev/null -w '%{http_code}' -H \"Authorization: Bearer VALUE\" https://a)\" -eq 200 ] && echo ok",
    "if [[ $(curl -s -H \"A: VALUE\" h | wc -l) -gt 0 ]]; then echo y; fi",
    "n=$(( $(curl -s -H \"A: VALUE\" h | wc -l) + 1 ))",
    "declare -i n=$(curl -H \"A: VALUE\" h | wc -l)",
    "[[ -n \"VALUE\" && $# -eq 0 ]] && echo y",
    "[ \"VALUE\" != \"\" -a 1 -eq 1 ]",
    "[ $(printf %s \"VALUE\" | wc -c) -gt 0 ]",
    "[ \"$(psql \"postgres://u:VALUE@h\" -tAc 'select 1')\" -eq 1 ]",
    "while [ \"$(gh api -H \"A: VALUE\" x | jq length)\" -gt 0 ]; do :; done",
    "for i in $(seq 1 $(curl -H \"A: VALUE\" h)); do :; done",
    "sleep $((2 * $(curl -H \"A: VALUE\" h)))",
    "code=$(curl -w '%{http_code}' -H \"A: VALUE\" h); [ \"$code\" -eq 200 ]",
    "if (( $(curl -H VALUE h | jq .n) > 3 )); then :; fi",
    "test \"$(curl -H VALUE h)\" -gt 3",
    "[ `curl -H VALUE h` -eq 1 ]",
];

#[test]
fn what_a_substitution_prints_is_calculated_with() {
    check_outcomes(HOSTILE, CALCULATED, "unsafe_context");
}

#[test]
fn what_a_program_is_told_is_not() {
    check_outcomes(HOSTILE, TOLD, "accepted");
}

#[test]
fn what_echo_and_printf_read_is_no_backslash() {
    let scripts = [
        "printf '%b\\n' VALUE",
        "printf '%s %b' x VALUE",
        "shopt -s xpg_echo; echo VALUE",
    ];
    check_outcomes("a\\tb", &scripts, "unsafe_nested_parse");
    check_outcomes("-neEneEn", &["echo VALUE"], "unsafe_nested_parse");
    check_outcomes("-nope", &["echo VALUE"], "accepted");
}
