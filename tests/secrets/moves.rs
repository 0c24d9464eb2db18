//! More places: what the script itself moves on, what substitutions print, and what a shell reads
//! that is not known to the tables.

use super::contexts::{Place, Rule, place};

/// Places that bash and zsh have.
pub const COMMON: &[Place] = &[
    place(
        "[ \"$(recv VALUE)\" -eq 1 ] 2>/dev/null; :",
        "VALUE|",
        Rule::All,
    ),
    place(
        "if [[ $(recv VALUE | wc -l) -gt 5 ]]; then :; fi",
        "VALUE|",
        Rule::All,
    ),
    place("n=$(( $(recv VALUE | wc -l) + 1 ))", "VALUE|", Rule::All),
    place(
        "typeset -i n=$(recv VALUE | wc -l); unset n",
        "VALUE|",
        Rule::All,
    ),
    place(
        "[[ -n VALUE && $# -eq 1 ]] && recv VALUE",
        "VALUE|",
        Rule::All,
    ),
    place(
        "[ VALUE != \"\" -a 1 -eq 1 ] && recv VALUE",
        "VALUE|",
        Rule::All,
    ),
    place(
        "[ 1 -eq 1 -a VALUE -eq 1 ] 2>/dev/null; recv",
        "",
        Rule::Number,
    ),
    place("[[ a == b || VALUE -eq 1 ]]; recv", "", Rule::Number),
    place(
        "echo $(( $(cat <<< VALUE) )) >/dev/null; recv",
        "",
        Rule::Number,
    ),
    place(
        "echo $(( $(printf %s VALUE | head -n 1) )) >/dev/null; recv",
        "",
        Rule::Number,
    ),
    place(
        "printf '%s %d\\n' VALUE 3 | recv -",
        "VALUE 3\n|",
        Rule::All,
    ),
    place("((true); recv 'VALUE')", "VALUE|", Rule::All),
    place("{ recv 'VALUE'; \\\n}", "VALUE|", Rule::All),
    place("f() \\\n{ :; }; recv VALUE", "VALUE|", Rule::All),
    place("T=5; timeout $T recv VALUE", "VALUE|", Rule::All),
    place("env -i PATH=$PATH OUT=$OUT recv VALUE", "VALUE|", Rule::All),
    place("d=$PWD; $d/recv VALUE", "VALUE|", Rule::All),
    place(
        "d=.; find $d -maxdepth 0 -exec recv VALUE \\;",
        "VALUE|",
        Rule::All,
    ),
    place(
        "b=bash; f() { \"$@\"; }; o=-c; f $b $o 'recv VALUE'",
        "VALUE|",
        Rule::Some,
    ),
    place("x=VALUE; eval \"recv $x\"", "VALUE|", Rule::Some),
    place(
        "x=VALUE; y=\"recv $x\"; bash -c \"$y\"",
        "VALUE|",
        Rule::Some,
    ),
    place("f() { eval \"recv $1\"; }; f VALUE", "VALUE|", Rule::Some),
    place(
        "read -r x <<< VALUE; eval \"recv $x\"",
        "VALUE|",
        Rule::Some,
    ),
    place(
        "x=VALUE; echo $((x)) $(($x)) >/dev/null; recv",
        "",
        Rule::Number,
    ),
    place("x=VALUE; [[ $x -eq 1 ]]; recv", "", Rule::Number),
    place(
        "mkfifo p; bash < p & printf 'recv %s' VALUE > p; wait; rm p",
        "VALUE|",
        Rule::Some,
    ),
    place(
        "printf 'recv %s' VALUE > s.sh; bash s.sh; rm s.sh",
        "VALUE|",
        Rule::Some,
    ),
    place(
        "printf 'recv %s' VALUE > s.sh; . ./s.sh; rm s.sh",
        "VALUE|",
        Rule::Some,
    ),
    place(
        "printf %s VALUE > f.txt; recv - < f.txt; rm f.txt",
        "VALUE|",
        Rule::All,
    ),
    place(
        "printf %s VALUE | cat > f.txt; cat f.txt | recv -; rm f.txt",
        "VALUE|",
        Rule::All,
    ),
];

/// Places that only bash has.
pub const BASH: &[Place] = &[
    place("shopt VALUE 2>/dev/null; recv", "", Rule::Some),
    place("enable -f VALUE x 2>/dev/null; recv", "", Rule::Some),
    place("jobs -x recv VALUE; :", "VALUE|", Rule::Some),
    place("printf %d VALUE >/dev/null 2>&1; recv", "", Rule::Some),
    place("x=VALUE; recv \"${x@P}\"", "VALUE|", Rule::Some),
    place("x=VALUE; recv \"${!x}\"", "|", Rule::Some),
];

/// Places that only zsh has.
pub const ZSH: &[Place] = &[
    place(
        "print -r -- \"${$(echo x)[VALUE]}\" >/dev/null; recv",
        "",
        Rule::Number,
    ),
    place("echo ${${:-abc}[VALUE]} >/dev/null; recv", "", Rule::Number),
    place("echo ${+m[VALUE]} >/dev/null; recv", "", Rule::Number),
    place(
        "echo $?[VALUE] $#[VALUE] $-[VALUE] $![VALUE] >/dev/null; recv",
        "",
        Rule::Number,
    ),
    place(
        "print -r -- \"${$(recv VALUE)[1]}\" >/dev/null",
        "VALUE|",
        Rule::All,
    ),
    place("getln VALUE; recv", "", Rule::Some),
    place(
        "autoload -Uz zmv; zmv -n -p recv \"x(*)\" VALUE 2>/dev/null; recv",
        "",
        Rule::Some,
    ),
    place("case x { x) sh ;; } <<< \"recv VALUE\"", "", Rule::None),
    place("aliases[q]=\"recv VALUE\"; recv", "", Rule::Some),
    place(
        "functions[q]=\"recv VALUE\"; recv; unfunction q",
        "",
        Rule::Some,
    ),
    place(
        "{ recv VALUE }; f() { recv \"$1\" }; f VALUE",
        "VALUE|VALUE|",
        Rule::All,
    ),
    place(
        "{ recv VALUE} always { recv 'VALUE' }",
        "VALUE|VALUE|",
        Rule::All,
    ),
    place(
        "setopt extendedglob\nfor f in *(#qN); do :; done; unsetopt extendedglob; recv VALUE",
        "VALUE|",
        Rule::All,
    ),
    place("x=foo; recv \"$x:s/foo/VALUE/\"", "", Rule::None),
    place("{eval \"recv VALUE\"}", "", Rule::None),
    place("set -A VALUE x 2>/dev/null; recv", "", Rule::Some),
    place("print -v VALUE x 2>/dev/null; recv", "", Rule::Some),
    place("PERIOD=VALUE; recv; unset PERIOD", "", Rule::Number),
    place("private -i q=VALUE; recv", "", Rule::Number),
];
