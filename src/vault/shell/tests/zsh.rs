//! What only zsh makes of a value, and what the reader does not know.

use super::{check_outcomes, outcome};

const HOSTILE: &str = "a[$(touch pwned)] '\"";

const IN_ZSH: &[&str] = &[
    "getln VALUE",
    "zmv -p bash x \"VALUE\"",
    "zmodload zsh/zpty; zpty q \"echo VALUE\"",
    "aliases[q]=VALUE",
    "galiases[q]=VALUE",
    "commands[q]=VALUE",
    "functions[q]=VALUE",
    "print -v VALUE foo",
    "set -A VALUE x",
    "zparseopts -a VALUE q",
    "dis_aliases[q2]=\"echo 'VALUE'\"",
    "printf %d VALUE",
    "printf '%*s' VALUE x",
    "printf '%.*s' VALUE x",
    "printf \"$format\" VALUE",
    "print -f '%d' VALUE",
    "functions=(f VALUE)",
    "stat VALUE",
    "printf '%ld\\n' VALUE",
    "printf '%1$s %2$d\\n' a VALUE",
    "printf \"$f\\n\" VALUE",
    "printf \"%$f\\n\" VALUE",
    "_any VALUE",
    "zsystem VALUE",
];

const UNKNOWN: &[&str] = &[
    "print \"${$(echo x)[VALUE]}\"",
    "print ${${:-abc}[VALUE]}",
    "echo ${+m[VALUE]}",
    "echo $?[VALUE]",
    "echo $#[VALUE] x",
    "echo $-[VALUE]",
    "echo $![VALUE]",
    "echo $$[VALUE]",
    "echo ${?[VALUE]} ",
    "echo ${#[VALUE]}",
    "echo ${^a[VALUE]}",
    "echo \"${\"$(echo x)\"[VALUE]}\"",
    "case x { x) bash ;; } <<< \"echo VALUE\"",
    "BASH_CMDS[q]=VALUE",
    "BASH_ALIASES[q]=VALUE",
    "enable -f VALUE x",
    "jobs -x VALUE",
    "caller VALUE",
    "git config --global credential.helper \"!f() { echo VALUE; }; f\"",
    "git -C /tmp config --global alias.pw \"!echo VALUE\"",
    "git clone -u \"echo 'VALUE'\" /some/repo t",
    "git -c alias.x='!sh -c' x 'VALUE'",
    "f $SHELL $opts VALUE",
    "f() { \"$@\"; }; f $SHELL $opts VALUE",
    "f() { \"$@\"; }; f $SHELL VALUE",
    "sudo $x VALUE",
    "env $x VALUE",
    "unknown $SHELL -c VALUE",
    "{eval \"echo 'VALUE'\"}",
    "{bash} <<< \"echo 'VALUE'\"",
    "repeat 1 {eval \"echo 'VALUE'\"}",
    "sleep 0 &!eval \"echo 'VALUE'\"",
    "[[ -e <(eval \"echo 'VALUE'\") ]]",
    "[[ -e =(eval \"echo 'VALUE'\") ]]",
    "PERIOD=VALUE",
    "private -i q=VALUE",
];

const KNOWN: &[&str] = &[
    "printf '%s %d\\n' VALUE 3",
    "git clone -c core.autocrlf=false https://u:VALUE@h/r",
    "((true); hx 'VALUE')",
    "{ hx 'VALUE'; \\\n}",
    "f() \\\n{ :; }; cmd VALUE",
    "docker run -d --name $N -e T=\"VALUE\" img",
    "kubectl create secret generic s -n $NS --from-literal=a=\"VALUE\"",
    "kubectl exec $POD -- app --token \"VALUE\"",
    "docker exec $CID redis-cli -a \"VALUE\" ping",
    "find $HOME -maxdepth 0 -name \"VALUE\"",
    "timeout $T curl -H \"A: VALUE\" h",
    "sudo -u $USER env T=VALUE true",
    "env -i PATH=$PATH T=VALUE true",
    "$HOME/bin/app --token \"VALUE\"",
    "curl -sfL file:///dev/null | sh -s -- --token \"VALUE\"",
    "mysql -uuser -p\"VALUE\" -e 'select 1'",
    "mysql -hdb.example.com -uservice -pVALUE",
    "psql -hlocalhost \"VALUE\"",
    "mysql -h $H -u $U -pVALUE db",
    "docker run --rm -p $PORT:80 -v $PWD:/w -w /w img tool VALUE",
    "docker run --name=$N -e A=VALUE $IMG",
    "xargs -n $N curl -H VALUE",
    "echo \"$(date +%s)\" VALUE",
    "kubectl -n $NS exec $POD -c $C -- app VALUE",
    "f \"$a\" \"$b\" VALUE",
    "cat > $D/x.env <<EOF\nT=VALUE\nEOF\ndocker run --env-file $D/x.env img",
    "echo VALUE > f; cat f | curl -d @- h",
    "echo VALUE > f; python3 app.py f",
    "git push -u https://x:VALUE@h/r main",
    "git clone https://u:VALUE@h/r \"$dir\"",
    "printf '%s\\n' \"x\" \"VALUE\"",
];

#[test]
fn zsh_takes_no_value_that_it_may_read_as_code() {
    check_outcomes(HOSTILE, IN_ZSH, "not in zsh");
    check_outcomes("plain-value", IN_ZSH, "accepted");
    // Qualifiers are code whatever their characters are.
    let qualifiers = ["echo *(+VALUE)", "x=VALUE; ls *($x)", "ls *(VALUE)"];
    check_outcomes("e:touch:", &qualifiers, "not in zsh");
}

#[test]
fn what_is_not_known_is_refused() {
    let others: Vec<_> = UNKNOWN
        .iter()
        .filter(|script| !outcome(HOSTILE, script).starts_with("unsafe_"))
        .collect();
    assert_eq!(others, [&""; 0]);
}

#[test]
fn an_expansion_before_a_value_is_mostly_one_word() {
    check_outcomes(HOSTILE, KNOWN, "accepted");
}

/// What a brace closes only in zsh, and what no shell reads so.
#[test]
fn braces_of_zsh_close_anywhere() {
    let scripts = [
        "{ echo VALUE }",
        "{ echo a}; hx VALUE",
        "f() { curl -H \"A: $1\" h }; f VALUE",
        "x=VALUE; f() { echo a }; f",
        "foreach v (VALUE) { hx $v }; end",
        "{ hx VALUE } always { rm -f t }",
    ];
    check_outcomes(HOSTILE, &scripts, "in zsh");
    let code = [
        "{ bash -c 'VALUE' }",
        "{ cat; bash } <<< VALUE",
        "f() { bash }; f <<< VALUE",
        "echo VALUE | { bash }",
    ];
    check_outcomes(HOSTILE, &code, "unsafe_nested_parse");
    // Groups of zsh that are words of a command elsewhere.
    let differing = ["{ cat } always { bash; } <<< VALUE"];
    check_outcomes(HOSTILE, &differing, "not in zsh");
    let accepted = [
        "{ hx VALUE } always { rm -f t; }; hx {a,b} VALUE",
        "for f in *(#qN); do hx VALUE; done",
    ];
    check_outcomes(HOSTILE, &accepted, "accepted");
    let refused = [
        "bash < =(echo VALUE)",
        "< =(echo VALUE) bash",
        "echo VALUE >>(bash)",
        "f() { echo VALUE }",
        "print \"$x:s/foo/VALUE/\"",
        "{ echo VALUE",
    ];
    check_outcomes(HOSTILE, &refused, "unsafe_context");
    check_outcomes("424242", &["print \"$x:gs/foo/VALUE/\""], "unsafe_context");
}
