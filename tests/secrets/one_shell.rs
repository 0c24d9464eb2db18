//! Places that one of the shells has alone.

use super::contexts::{Place, Rule, place};

/// Places that only bash has, or where zsh means something else.
pub const BASH: &[Place] = &[
    // zsh looks for a user of that name, and its `command` for a program.
    place("recv ~VALUE", "~VALUE|", Rule::All),
    place("command eval \"recv VALUE\"", "VALUE|", Rule::Some),
    place(
        "cat <<A - <<B | recv -\n1VALUE\nA\n2VALUE\nB",
        "2VALUE\n|",
        Rule::All,
    ),
    place("recv $\"VALUE\" \"$#VALUE\"", "VALUE|1VALUE|", Rule::All),
    place("recv \"${unset:-'VALUE'}\"", "'VALUE'|", Rule::All),
    place(
        "recv - <<EOF\n${unset:-'VALUE'}\nEOF",
        "'VALUE'\n|",
        Rule::All,
    ),
    place(
        "declare -A m=([k]=VALUE); recv \"${m[k]}\"",
        "VALUE|",
        Rule::All,
    ),
    place(
        "a=([1]=VALUE); a[2]=VALUE; recv \"${a[@]}\"",
        "VALUE|VALUE|",
        Rule::All,
    ),
    place(
        "printf -v out %s VALUE; recv \"$out\"",
        "VALUE|",
        Rule::Some,
    ),
    place(
        "IFS= read -r -d '' v < <(printf '%s\\0' VALUE); recv \"$v\"",
        "VALUE|",
        Rule::All,
    ),
    place(
        "shopt -s extglob\ncase x in @(VALUE|x)) recv VALUE;; esac",
        "VALUE|",
        Rule::All,
    ),
    place(
        "coproc { recv VALUE; }; wait \"$COPROC_PID\"",
        "VALUE|",
        Rule::All,
    ),
    place("recv \"${unset@Q}VALUE\"", "VALUE|", Rule::All),
    place("x=a; recv \"${x^^VALUE}\"", "a|", Rule::Some),
    place(
        "exec {fd}<<<VALUE; recv - <&$fd; exec {fd}<&-",
        "VALUE\n|",
        Rule::Some,
    ),
    place(
        "coproc bash { bash; echo 1 >done; }; echo recv VALUE >&${bash[1]}; exec {bash[1]}>&-; until [ -s done ]; do :; done; rm done",
        "VALUE|",
        Rule::Some,
    ),
    place("echo $[VALUE]; recv", "", Rule::Number),
    place("a[VALUE]=1; recv", "", Rule::Number),
    place("a=(); recv ${a[VALUE]}", "", Rule::Number),
    place("printf -v \"a[VALUE]\" x", "", Rule::None),
    place("mapfile -C 'recv VALUE' -c 1 m <<< x", "", Rule::None),
    place("compgen -W 'VALUE'", "", Rule::None),
    place("PROMPT_COMMAND='recv VALUE'", "", Rule::None),
    place("sleep 0 & wait -p \"a[VALUE]\" -n", "", Rule::None),
    place("exec {a[VALUE]}</dev/null", "", Rule::None),
    place("declare \"a[VALUE]=1\"", "", Rule::None),
    place(
        "for ((i=0;i<1;i++)) do bash -c \"recv VALUE\"; done",
        "VALUE|",
        Rule::Some,
    ),
    place(
        "for ((i=0;i<1;i++)) do recv VALUE; done",
        "VALUE|",
        Rule::All,
    ),
    place(
        "for ((i=0;i<1;i++)) { bash -c \"recv VALUE\"; }",
        "VALUE|",
        Rule::Some,
    ),
    place("for ((i=0;i<1;i++)) { recv VALUE; }", "VALUE|", Rule::All),
    place(
        "if [[ a == a ]] then bash -c \"recv VALUE\"; fi",
        "VALUE|",
        Rule::Some,
    ),
    place("if [[ a == a ]] then recv VALUE; fi", "VALUE|", Rule::All),
    place(
        "if ((1)) then bash -c \"recv VALUE\"; fi",
        "VALUE|",
        Rule::Some,
    ),
    place("if ((1)) then recv VALUE; fi", "VALUE|", Rule::All),
    place(
        "if (true) then bash -c \"recv VALUE\"; fi",
        "VALUE|",
        Rule::Some,
    ),
    place("if (true) then recv VALUE; fi", "VALUE|", Rule::All),
    place(
        "if { true; } then bash -c \"recv VALUE\"; fi",
        "VALUE|",
        Rule::Some,
    ),
    place("if { true; } then recv VALUE; fi", "VALUE|", Rule::All),
    place(
        "if for x in 1; do :; done then bash -c \"recv VALUE\"; fi",
        "VALUE|",
        Rule::Some,
    ),
    place(
        "if for x in 1; do :; done then recv VALUE; fi",
        "VALUE|",
        Rule::All,
    ),
    place(
        "if case x in x) ;; esac then bash -c \"recv VALUE\"; fi",
        "VALUE|",
        Rule::Some,
    ),
    place(
        "if case x in x) ;; esac then recv VALUE; fi",
        "VALUE|",
        Rule::All,
    ),
    place(
        "i=0; while ((i++<1)) do bash -c \"recv VALUE\"; done",
        "VALUE|",
        Rule::Some,
    ),
    place(
        "i=0; while ((i++<1)) do recv VALUE; done",
        "VALUE|",
        Rule::All,
    ),
    place(
        "for x do bash -c \"recv VALUE\"; done",
        "VALUE|",
        Rule::Some,
    ),
    place("for x do recv VALUE; done", "VALUE|", Rule::All),
    place(
        "time -p bash -c \"recv VALUE\" 2>/dev/null",
        "VALUE|",
        Rule::Some,
    ),
    place("time -p recv VALUE 2>/dev/null", "VALUE|", Rule::All),
    place(
        "for ((i=0;i<1;i++)) do let x=VALUE; done; unset x; recv",
        "",
        Rule::Number,
    ),
    place(
        "for ((i=0;i<1;i++)) do (( x = VALUE )); done; unset x; recv",
        "",
        Rule::Number,
    ),
    place(
        "for ((i=0;i<1;i++)) do [[ VALUE -eq 1 ]]; done; unset x; recv",
        "",
        Rule::Number,
    ),
    place(
        "for ((i=0;i<1;i++)) do x[VALUE]=1; done; recv",
        "",
        Rule::Number,
    ),
    place(
        "for ((i=0;i<1;i++)) do declare -i x=VALUE; done; unset x; recv",
        "",
        Rule::Number,
    ),
    place(
        "if [[ a == a ]] then let x=VALUE; fi; unset x; recv",
        "",
        Rule::Number,
    ),
    place(
        "if [[ a == a ]] then (( x = VALUE )); fi; unset x; recv",
        "",
        Rule::Number,
    ),
    place(
        "if [[ a == a ]] then [[ VALUE -eq 1 ]]; fi; unset x; recv",
        "",
        Rule::Number,
    ),
    place(
        "if [[ a == a ]] then x[VALUE]=1; fi; recv",
        "",
        Rule::Number,
    ),
    place(
        "if [[ a == a ]] then declare -i x=VALUE; fi; unset x; recv",
        "",
        Rule::Number,
    ),
    place(
        "i=0; while ((i++<1)) do let x=VALUE; done; unset x; recv",
        "",
        Rule::Number,
    ),
    place(
        "i=0; while ((i++<1)) do (( x = VALUE )); done; unset x; recv",
        "",
        Rule::Number,
    ),
    place(
        "i=0; while ((i++<1)) do [[ VALUE -eq 1 ]]; done; unset x; recv",
        "",
        Rule::Number,
    ),
    place(
        "i=0; while ((i++<1)) do x[VALUE]=1; done; recv",
        "",
        Rule::Number,
    ),
    place(
        "i=0; while ((i++<1)) do declare -i x=VALUE; done; unset x; recv",
        "",
        Rule::Number,
    ),
    place(
        "for ((i=0;i<1;i++)) do f() { recv VALUE; }; done; f",
        "",
        Rule::None,
    ),
    place("f() (( VALUE > 1 )); f", "", Rule::None),
    place("g() { :; } > zzVALUE; g", "", Rule::None),
    place("builtin let x=VALUE; recv", "", Rule::Number),
    place("{bash,-c,\"recv VALUE\"}", "VALUE|", Rule::Some),
    place("/bin/b?sh -c \"recv VALUE\"", "VALUE|", Rule::Some),
    place("o=-i; declare $o r=VALUE; unset r; recv", "", Rule::Number),
    place(
        "declare -i r; read r <<< VALUE; unset r; recv",
        "",
        Rule::Number,
    ),
    place(
        "bash --rcfile <(echo recv VALUE) -i </dev/null 2>/dev/null",
        "VALUE|",
        Rule::Some,
    ),
    place("bash /dev/fd/3 3<<< \"recv VALUE\"", "VALUE|", Rule::Some),
    place("BASH_ENV=<(echo recv VALUE) bash -c :", "", Rule::None),
    place("fc -s VALUE", "", Rule::None),
    place("[[ x =~ (;|#) ]] || recv VALUE", "VALUE|", Rule::All),
];

/// Places that only zsh has.
pub const ZSH: &[Place] = &[
    place("recv ${unset:-VALUE}", "VALUE|", Rule::All),
    place(
        "setopt promptsubst; recv \"$(print -P 'VALUE.')\"",
        "",
        Rule::None,
    ),
    place("recv \"${(e):-VALUE}\"", "", Rule::None),
    place("recv \"${(%):-VALUE}\"", "", Rule::None),
    place("emulate zsh -c 'recv VALUE'", "VALUE|", Rule::Some),
    place(
        "integer n; n=VALUE; recv $n; unset n",
        "VALUE|",
        Rule::Number,
    ),
    place("repeat VALUE recv x", "", Rule::Number),
    place(
        "printf 'recv %s' VALUE | { : } always { sh }",
        "VALUE|",
        Rule::Some,
    ),
    place(
        "a=(1 2); echo $a[VALUE] \"$a[VALUE]\" $#a[VALUE]; recv",
        "",
        Rule::Number,
    ),
    place("echo *([VALUE]); recv", "", Rule::None),
    place("print -n -- VALUE | recv -", "VALUE|", Rule::Some),
    place("print -rn -- VALUE | recv -", "VALUE|", Rule::All),
    place("print -f '%d' VALUE >/dev/null; recv", "", Rule::Some),
    place("alias -s qq=eval\nfoo.qq recv VALUE", "", Rule::Some),
];
