//! Values that the script itself moves on: through its variables and its files.

use super::{check_outcomes, outcome};

const HOSTILE: &str = "a[$(touch pwned)] '\"";

const MOVED: &[&str] = &[
    "x=VALUE; eval \"$x\"",
    "x=VALUE; echo $(( \"$x\" + 1 ))",
    "x=VALUE; echo $(( x + 1 ))",
    "x=VALUE; [[ \"$x\" -gt 3 ]] && echo y",
    "x=VALUE; y=\"a $x\"; bash -c \"echo '$y'\"",
    "export X=VALUE; ssh h \"echo $X\"",
    "f() { eval \"$1\"; }; f VALUE",
    "f() { ssh h \"$@\"; }; f VALUE",
    "set -- VALUE; eval \"$1\"",
    "for x in VALUE; do eval \"echo $x\"; done",
    "read -r x <<< VALUE; eval \"$x\"",
    "read -r x <<EOF\nVALUE\nEOF\neval \"$x\"",
    "a=(VALUE); eval \"${a[0]}\"",
    "x=VALUE; echo \"${x@P}\"",
    "x=VALUE; echo \"${!x}\"",
    "x=VALUE; echo \"echo $x\" | bash",
    "x=VALUE; bash <<< \"echo $x\"",
    "x=VALUE; bash <<EOF\necho '$x'\nEOF",
    "while :; do eval \"$x\"; x=VALUE; done",
    "x=$(echo VALUE); eval \"$x\"",
    ": ${x:=VALUE}; eval \"$x\"",
    "printf -v x '%s' VALUE; eval \"$x\"",
    "x=VALUE; python3 -c \"print('$x')\"",
    "x=VALUE; trap \"echo $x\" EXIT",
    "x=VALUE; unset \"$x\"",
    "x=VALUE; declare -i n=$x",
    "x=VALUE; a[x]=1",
    "x=VALUE; echo >&$x",
    "echo \"$x\" > f.sh; x=VALUE; echo \"$x\" > f.sh; bash f.sh",
];

const UNMOVED: &[&str] = &[
    "x=VALUE; curl -H \"A: $x\" h",
    "x=VALUE; [ ${#x} -gt 3 ] && echo y",
    "x=VALUE; [ \"${x:+1}\" = 1 ]; echo \"${#x}\"",
    "x=$(curl -H \"A: VALUE\" h); [ \"$x\" -eq 200 ]",
    "export T=VALUE; bash -c 'curl -H \"$T\" h'; docker run -e T img",
    "f() { curl -H \"$1\" h; }; f VALUE",
    "T=VALUE; trap 'rm f' EXIT; for i in 1 2; do curl \"$T\"; n=$((i + 1)); done",
    "x=VALUE python3 app.py",
    "a=(-H \"A: VALUE\"); curl \"${a[@]}\" h",
    "read -r u p <<< \"u VALUE\"; curl -u \"$u:$p\" h",
];

const FILES: &[&str] = &[
    "mkfifo p; bash < p & echo VALUE > p; wait",
    "mkfifo p; echo VALUE > p & bash < ./p",
    "mkfifo \"$d/p\"; bash < $d/p & cat > \"${d}/p\" <<EOF\nVALUE\nEOF",
    "echo VALUE > s.sh; bash s.sh",
    "cat > s.sh <<EOF\nVALUE\nEOF\nchmod +x s.sh; ./s.sh",
    "echo VALUE > f; cat f | bash",
    "echo VALUE > f; eval \"$(cat f)\"",
    "echo VALUE | tee f; source ./f",
    "echo VALUE > f; while read -r l; do bash; done < f",
    "echo VALUE > x.sql; psql -f x.sql",
];

/// The value is what is refused, where or why does not matter.
fn is_refused(script: &&&str) -> bool {
    outcome(HOSTILE, script).starts_with("unsafe_")
}

#[test]
fn a_variable_stands_for_what_it_was_given() {
    let accepted: Vec<_> = MOVED.iter().filter(|script| !is_refused(script)).collect();
    assert_eq!(accepted, [&""; 0]);
    check_outcomes(HOSTILE, UNMOVED, "accepted");
}

#[test]
fn what_is_written_to_a_file_is_not_run() {
    check_outcomes(HOSTILE, FILES, "unsafe_nested_parse");
}
