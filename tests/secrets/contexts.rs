//! Places of a script where a placeholder may stand, and what a program receives from there.

/// What must come of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Every value arrives.
    All,
    /// Some values arrive, and those that could be code are refused.
    Some,
    /// Every value but a number is refused.
    Number,
    /// Every value is refused.
    None,
}

/// A place: a script with `VALUE`, and the words that `recv` gets, each ended by `|`.
pub struct Place {
    pub script: &'static str,
    pub received: &'static str,
    pub rule: Rule,
}

const fn place(script: &'static str, received: &'static str, rule: Rule) -> Place {
    Place {
        script,
        received,
        rule,
    }
}

/// Places that bash and zsh have.
pub const COMMON: &[Place] = &[
    place("recv VALUE", "VALUE|", Rule::All),
    place("recv \"VALUE\"", "VALUE|", Rule::All),
    place("recv 'VALUE'", "VALUE|", Rule::All),
    place("recv preVALUEpost", "preVALUEpost|", Rule::All),
    place(
        "recv VALUEVALUE x 'VALUE'VALUE\"VALUE\"",
        "VALUEVALUE|x|VALUEVALUEVALUE|",
        Rule::All,
    ),
    place("recv $'x\\tVALUE\\''", "x\tVALUE'|", Rule::All),
    place(
        "recv \"it's VALUE\" 'a \"VALUE\"'",
        "it's VALUE|a \"VALUE\"|",
        Rule::All,
    ),
    place("recv a\\\nVALUE \\\n VALUE", "aVALUE|VALUE|", Rule::All),
    place("recv {a,VALUE}", "a|VALUE|", Rule::All),
    place("recv a#VALUE", "a#VALUE|", Rule::All),
    place("recv ok # VALUE it's", "ok|", Rule::All),
    place("recv ok;# VALUE\"\nrecv VALUE", "ok|VALUE|", Rule::All),
    place("v=VALUE; recv \"$v\"", "VALUE|", Rule::All),
    place(
        "v=a; v+=VALUE'VALUE'; recv \"$v\"",
        "aVALUEVALUE|",
        Rule::All,
    ),
    place("export V=VALUE; recv \"$V\"", "VALUE|", Rule::All),
    place(
        "a=(1 VALUE 'VALUE'); recv \"${a[@]}\"",
        "1|VALUE|VALUE|",
        Rule::All,
    ),
    place(
        "a=(); a+=(\"VALUE\" # VALUE)\n); recv \"${a[@]}\"",
        "VALUE|",
        Rule::All,
    ),
    place(
        "typeset -A m; m[k]=VALUE; recv \"${m[k]}\"",
        "VALUE|",
        Rule::All,
    ),
    place("X=VALUE sh -c 'recv \"$X\"'", "VALUE|", Rule::All),
    place("sh -c 'recv \"$1\"' _ VALUE", "VALUE|", Rule::All),
    place("env X=VALUE sh -c 'recv \"$X\"'", "VALUE|", Rule::Some),
    place("set -- VALUE; recv \"$1\"", "VALUE|", Rule::All),
    place(
        "case VALUE in VALUE) recv VALUE;; *) recv no;; esac",
        "VALUE|",
        Rule::All,
    ),
    place(
        "case x in (y|'VALUE') recv no;;\n*) recv \"VALUE\";; esac",
        "VALUE|",
        Rule::All,
    ),
    place(
        "[[ VALUE == VALUE && \"VALUE\" = 'VALUE' ]] && recv VALUE",
        "VALUE|",
        Rule::All,
    ),
    place("[[ x =~ ^VALUE ]] || recv VALUE", "VALUE|", Rule::Some),
    place("[ VALUE = VALUE ] && recv VALUE", "VALUE|", Rule::All),
    place("test -n VALUE && recv VALUE", "VALUE|", Rule::All),
    place(
        "if true; then recv VALUE; else recv no; fi",
        "VALUE|",
        Rule::All,
    ),
    place(
        "for x in VALUE b; do recv \"$x\"; done",
        "VALUE|b|",
        Rule::All,
    ),
    place(
        "for ((i=0; i<1; i++)); do recv VALUE; done",
        "VALUE|",
        Rule::All,
    ),
    place(
        "i=0; while [ $i -lt 1 ]; do recv VALUE; i=1; done",
        "VALUE|",
        Rule::All,
    ),
    place(
        "{ recv VALUE; }; (recv VALUE); ! recv VALUE",
        "VALUE|VALUE|VALUE|",
        Rule::All,
    ),
    place("true && recv VALUE || recv no", "VALUE|", Rule::All),
    place("recv \"$(printf %s. \"VALUE\")\"", "VALUE.|", Rule::All),
    place("recv \"$(printf %s. 'VALUE')\"", "VALUE.|", Rule::All),
    place(
        "recv \"$(printf %s. \"$(printf %s. \"VALUE\")\")\"",
        "VALUE..|",
        Rule::All,
    ),
    place("recv \"`printf %s. VALUE`\"", "VALUE.|", Rule::All),
    place("x=`printf %s. 'VALUE'`; recv \"$x\"", "VALUE.|", Rule::All),
    place(
        "x=$(case a in a) printf %s. VALUE;; esac); recv \"$x\"",
        "VALUE.|",
        Rule::All,
    ),
    place(
        "cat <<EOF | recv -\na VALUE b\nEOF",
        "a VALUE b\n|",
        Rule::All,
    ),
    place(
        "recv - <<EOF\n'VALUE' \"VALUE\" \\$x ${unset:-VALUE}\nEOF",
        "'VALUE' \"VALUE\" $x VALUE\n|",
        Rule::All,
    ),
    place("recv - <<-EOF\n\tVALUE\n\tEOF", "VALUE\n|", Rule::All),
    place(
        "recv - <<A; recv - <<B\n1VALUE\nA\n2VALUE\nB",
        "1VALUE\n|2VALUE\n|",
        Rule::All,
    ),
    place(
        "recv - <<EOF\n$(printf %s. 'VALUE') `printf %s. VALUE`\nEOF",
        "VALUE. VALUE.\n|",
        Rule::All,
    ),
    place(
        "recv - <<EOF\na\\\nEOF\nVALUE\nEOF",
        "aEOF\nVALUE\n|",
        Rule::All,
    ),
    place(
        "recv - <<'X' >/dev/null\nit's \"\nX\nrecv VALUE",
        "it's \"\n|VALUE|",
        Rule::All,
    ),
    place(
        "x=$(cat <<EOF\nVALUE.\nEOF\n); recv \"$x\"",
        "VALUE.|",
        Rule::All,
    ),
    place("recv - <<< VALUE", "VALUE\n|", Rule::All),
    place("recv - <<<\"a VALUE\"'VALUE'", "a VALUEVALUE\n|", Rule::All),
    place("recv - < <(printf %s VALUE)", "VALUE|", Rule::All),
    place(
        "recv - <<< \"$(<<<VALUE cat; printf .)\"",
        "VALUE\n.\n|",
        Rule::All,
    ),
    place("printf %s VALUE | cat | recv -", "VALUE|", Rule::All),
    place(
        "recv \"${unset:-VALUE}\" ${unset:-VALUE}",
        "VALUE|VALUE|",
        Rule::All,
    ),
    place(
        "recv \"${unset-a VALUE}\" \"a${unset:+x}VALUE\"",
        "a VALUE|aVALUE|",
        Rule::All,
    ),
    place("recv \"${unset:-\"VALUE\"}\"", "VALUE|", Rule::All),
    place(
        "recv \"${unset:-$(printf %s. 'VALUE')}\"",
        "VALUE.|",
        Rule::All,
    ),
    place(
        "x=aVALUEb; recv \"${x#aVALUE}\" \"${x%VALUEb}\"",
        "b|a|",
        Rule::All,
    ),
    place(
        "x=1-2; recv \"${x/-/VALUE}\" ${x:0:1}VALUE",
        "1VALUE2|1VALUE|",
        Rule::All,
    ),
    place("x=VALUE; recv \"${x//VALUE/y}\"", "y|", Rule::All),
    place(
        "recv $((1+1))VALUE \"$((2))VALUE\"",
        "2VALUE|2VALUE|",
        Rule::All,
    ),
    place("f() { recv \"$1\"; }; f VALUE", "VALUE|", Rule::All),
    place(
        "exec 7<<<VALUE; recv - <&7; exec 7<&-",
        "VALUE\n|",
        Rule::Some,
    ),
    place("2>/dev/null recv VALUE </dev/null", "VALUE|", Rule::All),
    place("time recv VALUE", "VALUE|", Rule::All),
    place("eval \"recv VALUE\"", "VALUE|", Rule::Some),
    place("bash -c 'recv \"VALUE\"'", "VALUE|", Rule::Some),
    place("sh -c \"recv 'VALUE'\"", "VALUE|", Rule::Some),
    place("bash <<EOF\nrecv VALUE\nEOF", "VALUE|", Rule::Some),
    place("bash <<< 'recv VALUE'", "VALUE|", Rule::Some),
    place("printf 'recv %s' VALUE | bash", "VALUE|", Rule::Some),
    place("bash < <(printf 'recv %s' VALUE)", "VALUE|", Rule::Some),
    place(
        "printf 'recv %s' VALUE > >(bash; echo 1 >done); until [ -s done ]; do :; done; rm done",
        "VALUE|",
        Rule::Some,
    ),
    place(
        "printf 'recv %s' VALUE | tee >(bash; echo 1 >done) >/dev/null; until [ -s done ]; do :; done; rm done",
        "VALUE|",
        Rule::Some,
    ),
    place(
        "printf 'recv %s' VALUE | (cd .; bash)",
        "VALUE|",
        Rule::Some,
    ),
    place("printf 'recv %s' VALUE | { bash; }", "VALUE|", Rule::Some),
    place(
        "printf 'recv %s' VALUE | if true; then bash; fi",
        "VALUE|",
        Rule::Some,
    ),
    place(
        "{ printf 'recv %s' VALUE; } | while true; do bash; break; done",
        "VALUE|",
        Rule::Some,
    ),
    place("(bash) <<< 'recv VALUE'", "VALUE|", Rule::Some),
    place("{ bash; } <<EOF\nrecv VALUE\nEOF", "VALUE|", Rule::Some),
    place(
        "if true; then bash; fi <<< 'recv VALUE'",
        "VALUE|",
        Rule::Some,
    ),
    place(
        "exec 7<<<'recv VALUE'; bash <&7; exec 7<&-",
        "VALUE|",
        Rule::Some,
    ),
    place("bash /dev/stdin <<< 'recv VALUE'", "VALUE|", Rule::Some),
    place("bash <(printf 'recv %s' VALUE)", "VALUE|", Rule::Some),
    place("source <(printf 'recv %s' VALUE)", "VALUE|", Rule::Some),
    place(". /dev/stdin <<< 'recv VALUE'", "VALUE|", Rule::Some),
    place("eval \"$(printf 'recv %s' VALUE)\"", "VALUE|", Rule::Some),
    place("$(printf 'eval recv') VALUE", "VALUE|", Rule::Some),
    place(
        "find . -maxdepth 0 -exec sh -c 'recv VALUE' \\;",
        "VALUE|",
        Rule::Some,
    ),
    place(
        "echo x | xargs -I{} sh -c 'recv VALUE'",
        "VALUE|",
        Rule::Some,
    ),
    place("env -S 'recv VALUE'", "VALUE|", Rule::Some),
    place("env --split-string='recv VALUE'", "VALUE|", Rule::Some),
    place("git -c alias.x='!recv VALUE' x", "VALUE|", Rule::Some),
    place(
        "printf 'all:\\n\\t@recv $(X)\\n' > mk; make -s -f mk X=VALUE",
        "VALUE|",
        Rule::Some,
    ),
    place(
        "X=$(awk -v x=VALUE 'BEGIN { printf \"%s.\", x }'); recv \"$X\"",
        "VALUE.|",
        Rule::Some,
    ),
    place(
        "recv \"$(echo x | sed 's/x/VALUE/')\"",
        "VALUE|",
        Rule::Some,
    ),
    place(
        "tar cf t.tar --files-from=/dev/null --checkpoint=1 --checkpoint-action=exec='recv VALUE'; recv VALUE",
        "VALUE|VALUE|",
        Rule::Some,
    ),
    place("timeout 5 bash -c 'recv VALUE'", "VALUE|", Rule::Some),
    place("'ba'\"sh\" -c \"recv VALUE\"", "VALUE|", Rule::Some),
    place("b=bash; $b -c 'recv VALUE'", "VALUE|", Rule::Some),
    place("b=eval; $b recv VALUE", "VALUE|", Rule::Some),
    place("recv $((VALUE))", "VALUE|", Rule::Number),
    place("((x = VALUE)); recv $x", "VALUE|", Rule::Number),
    place("let x=VALUE; recv $x", "VALUE|", Rule::Number),
    place("let \"x = VALUE\"; recv $x", "VALUE|", Rule::Number),
    place(
        "typeset -i n=VALUE; recv $n; unset n",
        "VALUE|",
        Rule::Number,
    ),
    place(
        "typeset -i n; n=VALUE; recv $n; unset n",
        "VALUE|",
        Rule::Number,
    ),
    place(
        "typeset -i n; n+=VALUE; recv $n; unset n",
        "VALUE|",
        Rule::Number,
    ),
    place(
        "[[ VALUE -eq VALUE ]] && recv VALUE",
        "VALUE|",
        Rule::Number,
    ),
    place("[[ 1 -lt $(echo VALUE) ]]; recv", "", Rule::Number),
    place("x=abc; recv \"${x:VALUE}\"", "|", Rule::Number),
    place("recv x 2>/dev/null >&VALUE", "", Rule::Number),
    place("recv x 2>/dev/null >& \"VALUE\"", "", Rule::Number),
    place("recv x 2>/dev/null 1>&'VALUE'", "", Rule::Number),
    place("recv x 2>/dev/null >&${unset:-VALUE}", "", Rule::Number),
    place("recv x 2>/dev/null <&VALUE", "", Rule::Number),
    place("recv {1..VALUE}", "", Rule::None),
    place("cat <<'EOF'\nVALUE\nEOF", "", Rule::None),
    place("cat <<\\EOF\nVALUE\nEOF", "", Rule::None),
    place("f() { recv VALUE; }; f", "", Rule::None),
    place("f() if true; then recv VALUE; fi; f", "", Rule::None),
    place("function f { recv VALUE; }; f", "", Rule::None),
    place("trap 'recv VALUE' USR1; kill -USR1 $$", "", Rule::None),
    place("alias zz='recv VALUE'; zz", "", Rule::None),
    place("PS4='VALUE'; set -x; recv x; set +x", "", Rule::None),
    place("unset \"a[VALUE]\"", "", Rule::None),
    place("read \"a[VALUE]\" <<< x", "", Rule::None),
    place("a=(); test -v \"a[VALUE]\"", "", Rule::None),
    place("a=(); [ -v \"a[VALUE]\" ]", "", Rule::None),
    place("export \"a[VALUE]=1\"", "", Rule::None),
    place("recv \"`echo \\`echo VALUE\\``\"", "", Rule::None),
    place("recv \\VALUE", "", Rule::None),
    place("recv \"VALUE", "", Rule::None),
    place("recv $(VALUE", "", Rule::None),
    place("VALUE=1", "", Rule::None),
    place(
        "GIT_SSH_COMMAND=VALUE git ls-remote ssh://127.0.0.1:1/x",
        "",
        Rule::None,
    ),
    place("typeset -n r=VALUE; r=x", "", Rule::None),
];

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
];
