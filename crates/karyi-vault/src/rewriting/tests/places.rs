//! Contexts in a script with hostile values: the program receives exactly the value from a real shell, or the script
//! is refused.
//!
//! The later use of a value by the script is not tested, so no row passes one to another interpreter.

use std::path::Path;
use std::process::{Command, Stdio};

use super::*;

/// Hostile values, which whole sessions are tested with as well.
mod values;

/// Rule for the values of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Every value arrives.
    All,
    /// The context is code of another interpreter: harmless values arrive, others are refused.
    Code,
    /// The shell calculates: decimal numbers arrive, other values are refused.
    Number,
    /// Every value is refused.
    None,
}

use Rule::{All, Code, None, Number};

/// Expected result of a script with `VALUE`, and the words that `recv` gets, each ended by `|`.
type Row = (Rule, &'static str, &'static str);

/// Contexts of bash and zsh.
#[rustfmt::skip]
const COMMON: &[Row] = &[
    (All, "recv VALUE", "VALUE|"),
    (All, "recv \"VALUE\"", "VALUE|"),
    (All, "recv 'VALUE'", "VALUE|"),
    (All, "recv preVALUEpost", "preVALUEpost|"),
    (All, "recv VALUEVALUE x 'VALUE'VALUE\"VALUE\"", "VALUEVALUE|x|VALUEVALUEVALUE|"),
    (All, "recv $'x\\tVALUE\\''", "x\tVALUE'|"),
    (All, "recv \"it's VALUE\" 'a \"VALUE\"'", "it's VALUE|a \"VALUE\"|"),
    (All, "recv a\\\nVALUE \\\n VALUE", "aVALUE|VALUE|"),
    (All, "recv {a,VALUE}", "a|VALUE|"),
    (All, "recv a#VALUE", "a#VALUE|"),
    (All, "recv ok # VALUE it's", "ok|"),
    (All, "recv ok;# VALUE\"\nrecv VALUE", "ok|VALUE|"),
    (All, "v=VALUE; recv \"$v\"", "VALUE|"),
    (All, "v=a; v+=VALUE'VALUE'; recv \"$v\"", "aVALUEVALUE|"),
    (All, "export V=VALUE; recv \"$V\"", "VALUE|"),
    (All, "a=(1 VALUE 'VALUE'); recv \"${a[@]}\"", "1|VALUE|VALUE|"),
    (All, "a=(); a+=(\"VALUE\" # VALUE)\n); recv \"${a[@]}\"", "VALUE|"),
    (All, "typeset -A m; m[k]=VALUE; recv \"${m[k]}\"", "VALUE|"),
    (All, "X=VALUE sh -c 'recv \"$X\"'", "VALUE|"),
    (All, "sh -c 'recv \"$1\"' _ VALUE", "VALUE|"),
    (All, "env X=VALUE sh -c 'recv \"$X\"'", "VALUE|"),
    (All, "set -- VALUE; recv \"$1\"", "VALUE|"),
    (All, "case VALUE in VALUE) recv VALUE;; *) recv no;; esac", "VALUE|"),
    (All, "case x in (y|'VALUE') recv no;;\n*) recv \"VALUE\";; esac", "VALUE|"),
    (All, "[[ VALUE == VALUE && \"VALUE\" = 'VALUE' ]] && recv VALUE", "VALUE|"),
    (All, "[ VALUE = VALUE ] && recv VALUE", "VALUE|"),
    (All, "test -n VALUE && recv VALUE", "VALUE|"),
    (All, "if true; then recv VALUE; else recv no; fi", "VALUE|"),
    (All, "for x in VALUE b; do recv \"$x\"; done", "VALUE|b|"),
    (All, "for ((i=0; i<1; i++)); do recv VALUE; done", "VALUE|"),
    (All, "i=0; while [ $i -lt 1 ]; do recv VALUE; i=1; done", "VALUE|"),
    (All, "{ recv VALUE; }; (recv VALUE); ! recv VALUE", "VALUE|VALUE|VALUE|"),
    (All, "true && recv VALUE || recv no", "VALUE|"),
    (All, "recv \"$(printf %s. \"VALUE\")\"", "VALUE.|"),
    (All, "recv \"$(printf %s. 'VALUE')\"", "VALUE.|"),
    (All, "recv \"$(printf %s. \"$(printf %s. \"VALUE\")\")\"", "VALUE..|"),
    (All, "recv \"`printf %s. VALUE`\"", "VALUE.|"),
    (All, "x=`printf %s. 'VALUE'`; recv \"$x\"", "VALUE.|"),
    (All, "x=$(case a in a) printf %s. VALUE;; esac); recv \"$x\"", "VALUE.|"),
    (All, "cat <<EOF | recv -\na VALUE b\nEOF", "a VALUE b\n|"),
    (All, "recv - <<EOF\n'VALUE' \"VALUE\" \\$x ${unset:-VALUE}\nEOF", "'VALUE' \"VALUE\" $x VALUE\n|"),
    (All, "recv - <<-EOF\n\tVALUE\n\tEOF", "VALUE\n|"),
    (All, "recv - <<A; recv - <<B\n1VALUE\nA\n2VALUE\nB", "1VALUE\n|2VALUE\n|"),
    (All, "recv - <<EOF\n$(printf %s. 'VALUE') `printf %s. VALUE`\nEOF", "VALUE. VALUE.\n|"),
    (All, "recv - <<EOF\na\\\nEOF\nVALUE\nEOF", "aEOF\nVALUE\n|"),
    (All, "recv - <<'X' >/dev/null\nit's \"\nX\nrecv VALUE", "it's \"\n|VALUE|"),
    (All, "x=$(cat <<EOF\nVALUE.\nEOF\n); recv \"$x\"", "VALUE.|"),
    (All, "recv - <<< VALUE", "VALUE\n|"),
    (All, "recv - <<<\"a VALUE\"'VALUE'", "a VALUEVALUE\n|"),
    (All, "recv - < <(printf %s VALUE)", "VALUE|"),
    (All, "recv - <<< \"$(<<<VALUE cat; printf .)\"", "VALUE\n.\n|"),
    (All, "printf %s VALUE | cat | recv -", "VALUE|"),
    (All, "printf '%s;' VALUE \"$unset\" VALUE | recv -", "VALUE;;VALUE;|"),
    (Code, "printf -- \"a VALUE.\" | recv -", "a VALUE.|"),
    (All, "recv \"${unset:-VALUE}\" ${unset:-VALUE}", "VALUE|VALUE|"),
    (All, "recv \"${unset-a VALUE}\" \"a${unset:+x}VALUE\"", "a VALUE|aVALUE|"),
    (All, "recv \"${unset:-\"VALUE\"}\"", "VALUE|"),
    (All, "recv \"${unset:-$(printf %s. 'VALUE')}\"", "VALUE.|"),
    (All, "x=aVALUEb; recv \"${x#aVALUE}\" \"${x%VALUEb}\"", "b|a|"),
    (All, "x=1-2; recv \"${x/-/VALUE}\" ${x:0:1}VALUE", "1VALUE2|1VALUE|"),
    (All, "x=VALUE; recv \"${x//VALUE/y}\"", "y|"),
    (All, "recv $((1+1))VALUE \"$((2))VALUE\"", "2VALUE|2VALUE|"),
    (All, "f() { recv \"$1\"; }; f VALUE", "VALUE|"),
    (All, "exec 7<<<VALUE; recv - <&7; exec 7<&-", "VALUE\n|"),
    (All, "2>/dev/null recv VALUE </dev/null", "VALUE|"),
    (All, "time recv VALUE", "VALUE|"),
    (Code, "eval \"recv VALUE\"", "VALUE|"),
    (Code, "bash -c 'recv \"VALUE\"'", "VALUE|"),
    (Code, "sh -c \"recv 'VALUE'\"", "VALUE|"),
    (Code, "bash <<EOF\nrecv VALUE\nEOF", "VALUE|"),
    (Code, "bash <<< 'recv VALUE'", "VALUE|"),
    (Code, "bash /dev/stdin <<< 'recv VALUE'", "VALUE|"),
    (Code, "find . -maxdepth 0 -exec sh -c 'recv VALUE' \\;", "VALUE|"),
    (Code, "echo x | xargs -I{} sh -c 'recv VALUE'", "VALUE|"),
    (Code, "printf 'all:\\n\\t@recv $(X)\\n' > mk; make -s -f mk X=VALUE", "VALUE|"),
    (Code, "X=$(awk -v x=VALUE 'BEGIN { printf \"%s.\", x }'); recv \"$X\"", "VALUE.|"),
    (Code, "recv \"$(echo x | sed 's/x/VALUE/')\"", "VALUE|"),
    (Code, "timeout 5 bash -c 'recv VALUE'", "VALUE|"),
    (Code, "'ba'\"sh\" -c \"recv VALUE\"", "VALUE|"),
    (All, "d=$PWD; \"$d/recv\" VALUE", "VALUE|"),
    (All, "d=$PWD; timeout 5 \"$d/recv\" VALUE", "VALUE|"),
    (Code, "nice env bash -c 'recv VALUE'", "VALUE|"),
    (Code, "env X=/bin/node bash -c 'recv VALUE'", "VALUE|"),
    (Code, "find /dev/null -exec bash -c 'recv VALUE' \\;", "VALUE|"),
    (Code, "again() { \"$@\"; }; again bash -c 'recv VALUE'", "VALUE|"),
    (All, "again() { \"$@\"; }; again recv VALUE", "VALUE|"),
    (All, "{ cat <<EOF; } | recv -\nkey='VALUE'\nEOF", "key='VALUE'\n|"),
    (All, "(cat <<EOF) | recv -\nVALUE\nEOF", "VALUE\n|"),
    (All, "echo -E VALUE | recv -", "VALUE\n|"),
    (Code, "bash -c 'recv -' <<< VALUE", "VALUE\n|"),
    (Code, "recv \"$(python3 - x <<< 'print(\"VALUE.\")')\"", "VALUE.|"),
    (All, "a=(one 'e' VALUE); recv \"${a[@]}\"", "one|e|VALUE|"),
    (All, "typeset v=VALUE; recv \"$v\"; unset v", "VALUE|"),
    (All, "e=(1); typeset e=VALUE; unset e; recv", ""),
    (All, "readonly -a zz1=VALUE; recv", ""),
    (Number, "[ -t VALUE ]; [[ -t VALUE ]]; recv", ""),
    (Code, "printf '%*s' VALUE x >/dev/null; recv", ""),
    (Number, "recv $((VALUE))", "VALUE|"),
    (Number, "((x = VALUE)); recv $x", "VALUE|"),
    (Number, "let x=VALUE; recv $x", "VALUE|"),
    (Number, "let \"x = VALUE\"; recv $x", "VALUE|"),
    (Number, "typeset -i n=VALUE; recv $n; unset n", "VALUE|"),
    (Number, "[[ VALUE -eq VALUE ]] && recv VALUE", "VALUE|"),
    (Number, "x=abc; recv \"${x:VALUE}\"", "|"),
    (Number, "recv x 2>/dev/null >&VALUE", ""),
    (Number, "recv x 2>/dev/null >& \"VALUE\"", ""),
    (Number, "recv x 2>/dev/null 1>&'VALUE'", ""),
    (Number, "recv x 2>/dev/null >&${unset:-VALUE}", ""),
    (Number, "recv x 2>/dev/null <&VALUE", ""),
    (All, "printf %s VALUE | xargs -0 recv", "VALUE|"),
    (None, "x=abc; recv ${x//b/VALUE}", ""),
    (None, "x=abc; recv ${x/b/\"VALUE\"}z", ""),
    (All, "x=abc; y=${x//b/VALUE}; recv \"$y\"", "aVALUEc|"),
    (None, "unset y; recv ${y:=VALUE}", ""),
    (All, "unset y; : ${y:=VALUE}; recv \"$y\"", "VALUE|"),
    (Code, "prlimit bash -c 'recv VALUE'", "VALUE|"),
    (All, "cat <<'EOF' | recv -\nVALUE\nEOF", "VALUE\n|"),
    (All, "cat <<\\EOF | recv -\n$x VALUE\nEOF", "$x VALUE\n|"),
    (All, "f() { recv VALUE; }; f", "VALUE|"),
    (All, "f() if true; then recv VALUE; fi; f", "VALUE|"),
    (All, "function f { recv VALUE; }; f", "VALUE|"),
    (All, "trap 'recv VALUE' EXIT", "VALUE|"),
    (Number, "unset \"a[VALUE]\"", ""),
    (Number, "read \"a[VALUE]\" <<< x", ""),
    (Number, "a=(); test -v \"a[VALUE]\"", ""),
    (Number, "a=(); [ -v \"a[VALUE]\" ]", ""),
    (Number, "export \"a[VALUE]=1\"", ""),
    (None, "recv \"`echo \\`echo VALUE\\``\"", ""),
    (None, "recv \\VALUE", ""),
    (None, "recv \"VALUE", ""),
    (None, "recv $(VALUE", ""),
    (Number, "typeset -n r=VALUE; r=x", ""),
    (All, "[ \"$(recv VALUE)\" -eq 1 ] 2>/dev/null; :", "VALUE|"),
    (All, "if [[ $(recv VALUE | wc -l) -gt 5 ]]; then :; fi", "VALUE|"),
    (All, "n=$(( $(recv VALUE | wc -l) + 1 ))", "VALUE|"),
    (All, "typeset -i n=$(recv VALUE | wc -l); unset n", "VALUE|"),
    (All, "[[ -n VALUE && $# -eq 1 ]] && recv VALUE", "VALUE|"),
    (All, "[ VALUE != \"\" -a 1 -eq 1 ] && recv VALUE", "VALUE|"),
    (Number, "[ 1 -eq 1 -a VALUE -eq 1 ] 2>/dev/null; recv", ""),
    (Number, "[[ a == b || VALUE -eq 1 ]]; recv", ""),
    (All, "printf '%s %d\\n' VALUE 3 | recv -", "VALUE 3\n|"),
    (All, "((true); recv 'VALUE')", "VALUE|"),
    (All, "{ recv 'VALUE'; \\\n}", "VALUE|"),
    (All, "f() \\\n{ :; }; recv VALUE", "VALUE|"),
    (All, "T=5; timeout $T recv VALUE", "VALUE|"),
    (All, "env -i PATH=$PATH OUT=$OUT recv VALUE", "VALUE|"),
    (All, "d=$PWD; $d/recv VALUE", "VALUE|"),
    (All, "d=.; find $d -maxdepth 0 -exec recv VALUE \\;", "VALUE|"),
    (All, "printf %s VALUE > f.txt; recv - < f.txt; rm f.txt", "VALUE|"),
    (All, "printf %s VALUE | cat > f.txt; cat f.txt | recv -; rm f.txt", "VALUE|"),
    (All, "recv VALUE \"VALUE\" 'VALUE' preVALUEpost VALUEVALUE x'VALUE'VALUE\"VALUE\"", "VALUE|VALUE|VALUE|preVALUEpost|VALUEVALUE|xVALUEVALUEVALUE|"),
    (All, "recv $'x\\tVALUE\\'' \"it's VALUE\" 'a \"VALUE\"' a\\\nVALUE {a,VALUE} a#VALUE", "x\tVALUE'|it's VALUE|a \"VALUE\"|aVALUE|a|VALUE|a#VALUE|"),
    (All, "recv ok # VALUE it's\nrecv ok;# VALUE\"\nrecv VALUE", "ok|ok|VALUE|"),
    (All, "v=VALUE; v+='VALUE'; recv \"$v\"; export V=\"VALUE\"; recv \"$V\"", "VALUEVALUE|VALUE|"),
    (All, "a=(1 VALUE 'VALUE' # VALUE)\n\"VALUE\"); recv \"${a[@]}\"", "1|VALUE|VALUE|VALUE|"),
    (All, "typeset -A m; m[k]=VALUE; recv \"${m[k]}\"; set -- VALUE; recv \"$1\"", "VALUE|VALUE|"),
    (All, "X=VALUE sh -c 'recv \"$X\"'; sh -c 'recv \"$1\"' _ VALUE; env X=VALUE sh -c 'recv \"$X\"'", "VALUE|VALUE|VALUE|"),
    (All, "case VALUE in VALUE) recv VALUE;; *) recv no;; esac; case x in (y|'VALUE') recv no;;\n*) recv \"VALUE\";; esac", "VALUE|VALUE|"),
    (All, "[[ VALUE == \"VALUE\" && 'VALUE' = VALUE ]] && recv VALUE; [ VALUE = 'VALUE' ] && recv y", "VALUE|y|"),
    (All, "if true; then recv VALUE; fi; for x in VALUE b; do recv \"$x\"; done", "VALUE|VALUE|b|"),
    (All, "{ recv VALUE; }; (recv VALUE); ! recv 'VALUE'; true && recv \"VALUE\" || recv no", "VALUE|VALUE|VALUE|VALUE|"),
    (All, "recv \"$(printf %s. \"VALUE\" 'VALUE' VALUE)\" \"`printf %s. VALUE`\" \"$(printf %s. \"$(printf %s. 'VALUE')\")\"", "VALUE.VALUE.VALUE.|VALUE.|VALUE..|"),
    (All, "cat <<EOF | recv -\na VALUE 'VALUE' \"VALUE\" \\$x ${unset:-VALUE} $(printf %s. 'VALUE')\nEOF", "a VALUE 'VALUE' \"VALUE\" $x VALUE VALUE.\n|"),
    (All, "cat <<'EOF' | recv -\nVALUE $HOME `x` \\n \\\\ \"it's\" $$KARYI{A}\nKARYI_EOF\nEOF\nrecv 'VALUE'", "VALUE $HOME `x` \\n \\\\ \"it's\" $KARYI{A}\nKARYI_EOF\n|VALUE|"),
    (All, "recv - <<-'E F'\n\ta VALUE\n\tE F\nrecv - <<A; recv - <<\"B\"\n1VALUE\nA\n2VALUE$x\nB", "a VALUE\n|1VALUE\n|2VALUE$x\n|"),
    (All, "recv - <<< VALUE; recv - <<<\"a VALUE\"'VALUE'; recv - < <(printf %s VALUE)", "VALUE\n|a VALUEVALUE\n|VALUE|"),
    (All, "printf %s VALUE | cat | recv -; printf '%s;' \"VALUE\" 'VALUE' | recv -", "VALUE|VALUE;VALUE;|"),
    (All, "recv \"${unset:-VALUE}\" ${unset:-VALUE} \"${unset:-\"VALUE\"}\" \"${unset-a VALUE}\"", "VALUE|VALUE|VALUE|a VALUE|"),
    (All, "x=aVALUEb; recv \"${x#aVALUE}\" \"${x%VALUEb}\" \"${x//VALUE/y}\"; y=1-2; recv \"${y/-/VALUE}\"", "b|a|ayb|1VALUE2|"),
    (All, "recv $((1+1))VALUE ${#HOME}VALUE; f() { recv \"$1\" VALUE 'VALUE'; }; f VALUE", "2VALUE|5VALUE|VALUE|VALUE|VALUE|"),
    (All, "trap 'recv \"VALUE\" VALUE aVALUE' EXIT; eval 'recv \"VALUE\"'; eval 'for i in VALUE; do recv \"$i\"; done'", "VALUE|VALUE|VALUE|VALUE|aVALUE|"),
    (All, "recv =VALUE ~VALUE x=VALUE a:~VALUE", "=VALUE|~VALUE|x=VALUE|a:~VALUE|"),
    (All, "recv $$KARYI{A} \"$$KARYI<B>\" '$$KARYI{C}' \"`printf %s $$KARYI{D}`\"; eval 'recv $$KARYI{E}'", "$KARYI{A}|$KARYI<B>|$KARYI{C}|$KARYI{D}|$KARYI{E}|"),
];

/// Contexts of bash only, or where zsh differs.
#[rustfmt::skip]
const BASH: &[Row] = &[
    (All, "[[ x =~ ^VALUE ]] || recv VALUE", "VALUE|"),
    (All, "recv ~VALUE", "~VALUE|"),
    (Code, "command eval \"recv VALUE\"", "VALUE|"),
    (All, "cat <<A - <<B | recv -\n1VALUE\nA\n2VALUE\nB", "2VALUE\n|"),
    (All, "recv $\"VALUE\" \"$#VALUE\"", "VALUE|1VALUE|"),
    (All, "recv \"${unset:-'VALUE'}\"", "'VALUE'|"),
    (All, "recv - <<EOF\n${unset:-'VALUE'}\nEOF", "'VALUE'\n|"),
    (All, "declare -A m=([k]=VALUE); recv \"${m[k]}\"", "VALUE|"),
    (All, "a=([1]=VALUE); a[2]=VALUE; recv \"${a[@]}\"", "VALUE|VALUE|"),
    (Code, "printf -v out %s VALUE; recv \"$out\"", "VALUE|"),
    (All, "IFS= read -r -d '' v < <(printf '%s\\0' VALUE); recv \"$v\"", "VALUE|"),
    (All, "shopt -s extglob\ncase x in @(VALUE|x)) recv VALUE;; esac", "VALUE|"),
    (All, "coproc { recv VALUE; }; wait \"$COPROC_PID\"", "VALUE|"),
    (All, "recv \"${unset@Q}VALUE\"", "VALUE|"),
    (All, "x=a; recv \"${x^^VALUE}\"", "a|"),
    (All, "exec {fd}<<<VALUE; recv - <&$fd; exec {fd}<&-", "VALUE\n|"),
    (Number, "echo $[VALUE]; recv", ""),
    (Number, "a[VALUE]=1; recv", ""),
    (Number, "a=(); recv ${a[VALUE]}", ""),
    (Number, "printf -v \"a[VALUE]\" x", ""),
    (Number, "mapfile -C 'recv VALUE' -c 1 m <<< x", "VALUE|0|x\n|"),
    (Number, "sleep 0 & wait -p \"a[VALUE]\" -n", ""),
    (None, "exec {a[VALUE]}</dev/null", ""),
    (Number, "declare \"a[VALUE]=1\"", ""),
    (Code, "for ((i=0;i<1;i++)) do bash -c \"recv VALUE\"; done", "VALUE|"),
    (All, "for ((i=0;i<1;i++)) do recv VALUE; done", "VALUE|"),
    (Code, "for ((i=0;i<1;i++)) { bash -c \"recv VALUE\"; }", "VALUE|"),
    (All, "for ((i=0;i<1;i++)) { recv VALUE; }", "VALUE|"),
    (Code, "if [[ a == a ]] then bash -c \"recv VALUE\"; fi", "VALUE|"),
    (All, "if [[ a == a ]] then recv VALUE; fi", "VALUE|"),
    (Code, "if ((1)) then bash -c \"recv VALUE\"; fi", "VALUE|"),
    (All, "if ((1)) then recv VALUE; fi", "VALUE|"),
    (Code, "if (true) then bash -c \"recv VALUE\"; fi", "VALUE|"),
    (All, "if (true) then recv VALUE; fi", "VALUE|"),
    (Code, "if { true; } then bash -c \"recv VALUE\"; fi", "VALUE|"),
    (All, "if { true; } then recv VALUE; fi", "VALUE|"),
    (Code, "if for x in 1; do :; done then bash -c \"recv VALUE\"; fi", "VALUE|"),
    (All, "if for x in 1; do :; done then recv VALUE; fi", "VALUE|"),
    (Code, "if case x in x) ;; esac then bash -c \"recv VALUE\"; fi", "VALUE|"),
    (All, "if case x in x) ;; esac then recv VALUE; fi", "VALUE|"),
    (Code, "i=0; while ((i++<1)) do bash -c \"recv VALUE\"; done", "VALUE|"),
    (All, "i=0; while ((i++<1)) do recv VALUE; done", "VALUE|"),
    (Code, "for x do bash -c \"recv VALUE\"; done", "VALUE|"),
    (All, "for x do recv VALUE; done", "VALUE|"),
    (Code, "time -p bash -c \"recv VALUE\" 2>/dev/null", "VALUE|"),
    (All, "time -p recv VALUE 2>/dev/null", "VALUE|"),
    (Number, "for ((i=0;i<1;i++)) do let x=VALUE; done; unset x; recv", ""),
    (Number, "for ((i=0;i<1;i++)) do (( x = VALUE )); done; unset x; recv", ""),
    (Number, "for ((i=0;i<1;i++)) do [[ VALUE -eq 1 ]]; done; unset x; recv", ""),
    (Number, "for ((i=0;i<1;i++)) do x[VALUE]=1; done; recv", ""),
    (Number, "for ((i=0;i<1;i++)) do declare -i x=VALUE; done; unset x; recv", ""),
    (Number, "if [[ a == a ]] then let x=VALUE; fi; unset x; recv", ""),
    (Number, "if [[ a == a ]] then (( x = VALUE )); fi; unset x; recv", ""),
    (Number, "if [[ a == a ]] then [[ VALUE -eq 1 ]]; fi; unset x; recv", ""),
    (Number, "if [[ a == a ]] then x[VALUE]=1; fi; recv", ""),
    (Number, "if [[ a == a ]] then declare -i x=VALUE; fi; unset x; recv", ""),
    (Number, "i=0; while ((i++<1)) do let x=VALUE; done; unset x; recv", ""),
    (Number, "i=0; while ((i++<1)) do (( x = VALUE )); done; unset x; recv", ""),
    (Number, "i=0; while ((i++<1)) do [[ VALUE -eq 1 ]]; done; unset x; recv", ""),
    (Number, "i=0; while ((i++<1)) do x[VALUE]=1; done; recv", ""),
    (Number, "i=0; while ((i++<1)) do declare -i x=VALUE; done; unset x; recv", ""),
    (All, "for ((i=0;i<1;i++)) do f() { recv VALUE; }; done; f", "VALUE|"),
    (Number, "f() (( VALUE > 1 )); f", ""),
    (Number, "builtin let x=VALUE; recv", ""),
    (All, "[[ x =~ (;|#) ]] || recv VALUE", "VALUE|"),
    (Code, "shopt VALUE 2>/dev/null; recv", ""),
    (All, "enable -f VALUE x 2>/dev/null; recv", ""),
    (All, "jobs -x recv VALUE; :", "VALUE|"),
    (Code, "printf %d VALUE >/dev/null 2>&1; recv", ""),
];

/// Contexts of zsh only.
#[rustfmt::skip]
const ZSH: &[Row] = &[
    (All, "recv ${unset:-VALUE}", "VALUE|"),
    (None, "recv \"${(e):-VALUE}\"", ""),
    (None, "recv \"${(%):-VALUE}\"", ""),
    (Code, "emulate zsh -c 'recv VALUE'", "VALUE|"),
    (Number, "a=(1 2); echo $a[VALUE] \"$a[VALUE]\" $#a[VALUE]; recv", ""),
    (None, "echo *([VALUE]); recv", ""),
    (All, "print -rn -- VALUE | recv -", "VALUE|"),
    (All, "print -f '%d' VALUE >/dev/null; recv", ""),
    (None, "print -r -- \"${$(echo x)[VALUE]}\" >/dev/null; recv", ""),
    (None, "echo ${${:-abc}[VALUE]} >/dev/null; recv", ""),
    (Number, "echo ${+m[VALUE]} >/dev/null; recv", ""),
    (Number, "echo $?[VALUE] $#[VALUE] $-[VALUE] $![VALUE] >/dev/null; recv", ""),
    (All, "print -r -- \"${$(recv VALUE)[1]}\" >/dev/null", "VALUE|"),
    (Number, "getln VALUE; recv", ""),
    (All, "aliases[q]=\"recv VALUE\"; recv", ""),
    (All, "functions[q]=\"recv VALUE\"; recv; unfunction q", ""),
    (All, "{ recv VALUE }; f() { recv \"$1\" }; f VALUE", "VALUE|VALUE|"),
    (All, "{ recv VALUE} always { recv 'VALUE' }", "VALUE|VALUE|"),
    (All, "setopt extendedglob\nfor f in *(#qN); do :; done; unsetopt extendedglob; recv VALUE", "VALUE|"),
    (All, "x=foo; recv \"$x:s/foo/VALUE/\"", "foo:s/foo/VALUE/|"),
    (Code, "{eval \"recv VALUE\"}", "VALUE|"),
    (Number, "set -A VALUE x 2>/dev/null; recv", ""),
    (Number, "print -v VALUE x 2>/dev/null; recv", ""),
    (None, "echo *(e:VALUE:)", ""),
];

/// Further values.
#[rustfmt::skip]
const OTHERS: &[&str] = &[
    AWKWARD, TOKEN, "=ls ~root (a)", "&\\&/\\1",
];

/// Records its arguments, word by word; `-` is its input.
const RECEIVER: &str = "#!/bin/sh\nfor a; do if [ \"$a\" = - ]; then cat; else printf %s \"$a\"; fi; printf '\\001'; done >> \"$OUT\"\n";

/// Runs a script in a new shell, once for each value in a subshell; returns the received words.
fn received(shell: &str, text: &str, values: &[&str], directory: &Path) -> Vec<String> {
    let quoted = values
        .iter()
        .map(|value| format!("'{}' ", value.replace('\'', "'\\''")));
    let options = if shell.ends_with("zsh") {
        "setopt ksharrays interactivecomments"
    } else {
        "shopt -s expand_aliases"
    };
    let each = format!(
        "{options}\nset -- one\nfor __karyi_K in {}; do (. ./place); printf '\\002' >> \"$OUT\"; done\n",
        quoted.collect::<String>()
    );
    std::fs::write(directory.join("place"), format!("{text}\n")).unwrap();
    std::fs::write(directory.join("each"), each).unwrap();
    let out = directory.join("out");
    let _ = std::fs::remove_file(&out);
    let status = Command::new(shell)
        .args(if shell.ends_with("zsh") {
            ["-f", "each"]
        } else {
            ["--norc", "each"]
        })
        .current_dir(directory)
        .env("OUT", &out)
        .env(
            "PATH",
            format!("{}:/usr/local/bin:/usr/bin:/bin", directory.display()),
        )
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.unwrap();
    let out = String::from_utf8_lossy(&std::fs::read(&out).unwrap_or_default()).into_owned();
    out.split_terminator('\u{2}').map(str::to_owned).collect()
}

/// Returns the problems of a context.
fn problem(shell: &str, row: &Row, values: &[&str], directory: &Path) -> Option<String> {
    let (rule, script, expected) = row;
    let (mut accepted, mut text) = (Vec::new(), String::new());
    for value in values {
        let value_of = |_: &SecretName| Some(SecretValue::new((*value).to_owned()));
        let is_decimal = *value == NUMBER;
        match rewrite(&script.replace("VALUE", "$KARYI{K}"), &value_of) {
            Ok(_) if *rule == None || *rule == Number && !is_decimal => {
                return Some(format!("{script:?} accepts {value:?}"));
            }
            Ok(rewritten) => {
                accepted.push(*value);
                text = rewritten.text;
            }
            Err(error) => {
                let code = error.code.as_str();
                let is_right = match rule {
                    All => false,
                    Code => {
                        code == "unsafe_nested_parse"
                            && value.contains(|c: char| !c.is_ascii_alphanumeric())
                    }
                    Number => code == "unsafe_context" && !is_decimal,
                    None => code == "unsafe_context",
                };
                if !is_right {
                    return Some(format!("{script:?} with {value:?}: {error}"));
                }
            }
        }
    }
    let found = received(shell, &text, &accepted, directory);
    let expected = |value: &str| expected.replace('|', "\u{1}").replace("VALUE", value);
    let is_pwned = std::fs::remove_file(directory.join("pwned")).is_ok();
    let wrong = accepted
        .iter()
        .zip(&found)
        .find(|(value, found)| expected(value) != **found);
    match wrong {
        Some((value, found)) => Some(format!("{script:?} with {value:?}: {found:?} by {text}")),
        _ if is_pwned || accepted.len() != found.len() => {
            Some(format!("{script:?} runs code of a value: {text}"))
        }
        _ => Option::None,
    }
}

#[track_caller]
fn check(shell: &str, own: &[Row]) {
    if !Path::new(shell).exists() {
        println!("skipped: no {shell}");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let receiver = directory.path().join("recv");
    std::fs::write(&receiver, RECEIVER).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&receiver, mode).unwrap();
    let is_full = std::env::var_os("KARYI_FULL").is_some();
    let mut problems = Vec::new();
    for (at, row) in COMMON.iter().chain(own).enumerate() {
        // The small count covers every row and every value, in other pairs for each row.
        let chosen = |column: &usize| is_full || (at + column).is_multiple_of(20);
        let chosen: Vec<&str> = (0..values::HOSTILE.len() + OTHERS.len())
            .filter(chosen)
            .map(|column| {
                let others = || OTHERS[column - values::HOSTILE.len()];
                values::HOSTILE.get(column).copied().unwrap_or_else(others)
            })
            .collect();
        problems.extend(problem(shell, row, &chosen, directory.path()));
    }
    assert!(
        problems.is_empty(),
        "{} problems:\n{}",
        problems.len(),
        problems.join("\n")
    );
}

#[test]
fn every_value_arrives_or_is_refused_in_bash() {
    check("/bin/bash", BASH);
}

#[test]
fn every_value_arrives_or_is_refused_in_zsh() {
    check("/usr/bin/zsh", ZSH);
}
