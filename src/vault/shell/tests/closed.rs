//! Ways by which a value and what reads it as code come together in two steps: each is closed as a class.

use super::check_outcomes;
use super::ways::{check_not_in_zsh, check_unsafe};

const CODE: &str = "touch pwned;: xyz";

/// A file that is named in code within quotes.
const NAMED: &[&str] = &[
    "sh -c \"cat $KARYI{V0|file} | bash\"",
    "bash -c \"bash < $KARYI{V0|file}\"",
    "bash -c \"eval \\\"\\$(cat $KARYI{V0|file})\\\"\"",
    "bash -c \"x=\\$(cat $KARYI{V0|file}); eval \\\"\\$x\\\"\"",
    "bash -c \"source <(cat $KARYI{V0|file})\"",
    "bash -c \"sh <(cat $KARYI{V0|file})\"",
    "bash -c \"sh <<< \\\"\\$(<$KARYI{V0|file})\\\"\"",
    "bash -c \"cp $KARYI{V0|file} g; sh g\"",
    "sudo sh -c \"cat $KARYI{V0|file} | sh\"",
    "timeout 3 sh -c \"cat $KARYI{V0|file} | sh\"",
    "find . -maxdepth 0 -exec sh -c \"cat $KARYI{V0|file} | sh\" \\;",
    "echo x | xargs sh -c \"cat $KARYI{V0|file} | sh\"",
    "f=$KARYI{V0|file}; sh -c \"cat $f | sh\"",
    "sh -c 'cat $KARYI{V0|file} | sh'",
    "eval \"cat $KARYI{V0|file} | sh\"",
    "eval \"x=\\$(cat $KARYI{V0|file})\"; sh -c \"$x\"",
    "eval \"read -r x < $KARYI{V0|file}\"; sh -c \"$x\"",
    "sh -c \"cat $KARYI{V0|file} > g\"; sh g",
    "sh -c \"cp $KARYI{V0|file} g\"; sh g",
    "f=$KARYI{V0|file}; eval \"cat $f | sh\"",
    "x=\"cat $KARYI{V0|file} | sh\"; sh -c \"$x\"",
    "su -c \"cat $KARYI{V0|file} | sh\"",
    "git -c alias.x=\"!cat $KARYI{V0|file} | sh\" x",
    "tar --to-command=\"cat $KARYI{V0|file} | sh\" -xf t",
    "watch \"cat $KARYI{V0|file} | sh\"",
    "sh <<E\ncat $KARYI{V0|file} | sh\nE",
];

/// Arguments of code that a shell gets by its input or from a file of the script.
const ARGUMENTS: &[&str] = &[
    "bash -s VALUE <<< 'eval \"$1\"'",
    "bash -s -- VALUE <<'E'\neval \"$1\"\nE",
    "echo 'eval \"$1\"' | bash -s VALUE",
    "echo 'eval \"$1\"' > g; sh g VALUE",
    "cat > g <<'E'\neval \"$1\"\nE\nbash g VALUE",
    "printf %s 'eval \"$1\"' > g; bash ./g VALUE",
    "printf %s 'eval \"$1\"' > g; chmod +x g; ./g VALUE",
    "bash -s a VALUE <<< 'shift; eval \"$1\"'",
    "bash -s VALUE < <(echo 'eval \"$1\"')",
    "bash /dev/stdin VALUE <<< 'eval \"$1\"'",
    "bash /dev/fd/3 VALUE 3<<< 'eval \"$1\"'",
    "bash -s VALUE <<'E'\nx=$1; bash -c \"$x\"\nE",
    "sudo bash -s VALUE <<< 'eval \"$1\"'",
    "env bash -s VALUE <<< 'eval \"$1\"'",
    "sh g VALUE; echo 'eval \"$1\"' > g",
    "zsh -fs VALUE <<< 'eval \"$1\"'",
    "print -r 'eval \"$1\"' > g; sh g VALUE",
    "{ echo 'eval \"$1\"'; } > g; sh g VALUE",
    "{ echo 'eval \"$1\"'; } | bash -s VALUE",
    "echo 'eval \"$1\"' | { bash -s VALUE; }",
    "bash -s $KARYI{V0|file} <<< '. \"$1\"'",
    "echo '. \"$1\"' > g; sh g $KARYI{V0|file}",
];

/// Lists of words that are a command.
const LISTS: &[&str] = &[
    "sh -c '\"$@\"' _ sh -c VALUE",
    "bash -c '\"$@\"' _ eval VALUE",
    "bash -c 'exec \"$@\"' _ sh -c VALUE",
    "bash -c 'command \"$@\"' _ eval VALUE",
    "bash -c 'env \"$@\"' _ sh -c VALUE",
    "bash -c 'sudo \"$@\"' _ sh -c VALUE",
    "bash -c 'timeout 3 \"$@\"' _ sh -c VALUE",
    "bash -c 'f(){ \"$@\"; }; f \"$@\"' _ eval VALUE",
    "bash -c '\"${@:1}\"' _ eval VALUE",
    "bash -c '\"${@}\"' _ eval VALUE",
    "find . -maxdepth 0 -exec bash -c '\"$@\"' _ eval VALUE \\;",
    "sudo bash -c '\"$@\"' _ eval VALUE",
    "zsh -fc '\"$@\"' _ eval VALUE",
    "exec -a VALUE sh -c 'eval \"$0\"'",
    "FOO=VALUE /proc/self/exe -c 'eval \"$FOO\"'",
    "FOO=VALUE /proc/$$/exe -c 'eval \"$FOO\"'",
    "FOO=VALUE bash -c 'exec 5>g; echo \"$FOO\" >&5; sh g'",
    "a=(eval VALUE); \"${a[@]}\"",
    "set -- eval VALUE; \"$@\"",
    "set -- sh -c VALUE; \"$@\"",
    "a=(sh -c VALUE); \"${a[@]}\"",
    "a=(eval); a+=(VALUE); \"${a[@]}\"",
    "f(){ \"$@\"; }; f eval VALUE",
    "a=(python3 -c VALUE); \"${a[@]}\"",
    "a=(sh -c VALUE); sudo \"${a[@]}\"",
    "bash -c 'a=(\"$@\"); \"${a[@]}\"' _ eval VALUE",
];

/// Functions that stand in text.
const FUNCTIONS: &[&str] = &[
    "eval 'f(){ eval \"$1\"; }'; f VALUE",
    "source <(echo 'f(){ eval \"$1\"; }'); f VALUE",
    "source /dev/stdin <<< 'f(){ eval \"$1\"; }'; f VALUE",
    "cat > g <<'E'\nf(){ eval \"$1\"; }\nE\n. ./g; f VALUE",
    "eval \"f () { sh -c \\\"\\$1\\\"; }\"; f VALUE",
    "eval 'function f { eval \"$1\"; }'; f VALUE",
    "n=f; eval \"$n(){ eval \\\"\\$1\\\"; }\"; f VALUE",
    "eval 'f(){ sh; }'; echo VALUE | f",
    "eval 'f(){ . \"$1\"; }'; f $KARYI{V0|file}",
];

/// Settings whose names are not written out.
const SETTINGS: &[&str] = &[
    "a=PAGER; env \"$a=VALUE\" man ls",
    "a=PAGER; env $a=VALUE man ls",
    "x=PAGER=VALUE; env \"$x\" man ls",
    "x=PAGER=VALUE; sudo \"$x\" man ls",
    "f(){ env \"$1\" man ls; }; f PAGER=VALUE",
    "a=PAGER; x=VALUE; env \"$a=$x\" man ls",
    "set -- PAGER=VALUE; env \"$@\" man ls",
    "a=(PAGER=VALUE); env \"${a[@]}\" man ls",
    "env \"$(echo PAGER=VALUE)\" man ls",
];

/// Files that are written otherwise than by a redirection of one command with its name.
const FILES: &[&str] = &[
    "export X=VALUE; { echo 'eval \"$X\"'; } > g; bash g",
    "export X=VALUE; f(){ echo 'eval \"$X\"'; }; f > g; bash g",
    "export X=VALUE; if true; then echo 'eval \"$X\"'; fi > g; bash g",
    "export X=VALUE; exec 5>g; echo 'eval \"$X\"' >&5; bash g",
    "export X=VALUE; sh -c \"echo 'eval \\\"\\$X\\\"' > g\"; bash g",
    "export X=VALUE; echo 'eval \"$X\"' > g; xargs sh <<< g",
    "f=g; echo VALUE > \"$f\"; sh g",
    "f=g; echo VALUE > \"./$f\"; sh g",
    "d=g; f=$d; echo VALUE > \"$f\"; sh g",
    "echo VALUE > g; f=g; sh \"./$f\"",
    "X=VALUE sh -c 'echo \"$X\" > g'; sh g",
    "export X=VALUE; sh -c 'echo \"$X\" > g'; sh g",
    "X=VALUE sh -c 'exec 5>g; echo \"$X\" >&5'; sh g",
    "sh -c 'echo \"$1\" > g' _ VALUE; sh g",
    "nohup echo VALUE; sh nohup.out",
    "X=VALUE script -qc 'echo \"$X\"' g; sh g",
    "echo VALUE | split; sh xaa",
    "split $KARYI{V0|file}; sh xaa",
    "echo VALUE | csplit -s - 1; sh xx01",
    "curl -so g file://$KARYI{V0|file}; sh g",
    "echo VALUE > g; chmod +x g; env ./g",
    "echo VALUE > g; export BASH_ENV=g; bash -c :",
    "echo VALUE > g; env BASH_ENV=g bash -c :",
    "printf \"a:\\n\\t%s\\n\" VALUE > Makefile; make",
    "echo VALUE | { cat > g; }; . ./g",
    "echo VALUE | (cat > g); . ./g",
    "f(){ cat > g; }; echo VALUE | f; . ./g",
    "f(){ cat > g; }; f <<< VALUE; . ./g",
    "f(){ echo \"$2\" > $1; }; f g VALUE; sh g",
    "f(){ echo \"$1\" > g; }; f VALUE; sh g",
    "echo VALUE | sh -c \"cat > g\"; . ./g",
    "sh -c \"cat > g\" <<< VALUE; . ./g",
    "sh -c \"cat > g\" <<E\nVALUE\nE\n. ./g",
    "X=VALUE bash <<< 'echo \"$X\" > g'; sh g",
    "X=VALUE bash <<'E'\necho \"$X\" > g\nE\nsh g",
    "X=VALUE bash -c 'echo \"$X\" > g'; x=$(<g); sh -c \"$x\"",
    "sudo X=VALUE sh -c 'echo \"$X\" > g'; sh g",
    "while read -r l; do echo \"$l\"; done <<< VALUE > g; sh g",
    "while read -r l; do echo \"$l\" > g; done <<< VALUE; sh g",
    "{ cat > g; } <<< VALUE; sh g",
    "{ cat > g; } < $KARYI{V0|file}; sh g",
    "{ echo VALUE; } > g; sh g",
    "if true; then echo VALUE; fi > g; sh g",
    "sh -c 'echo \"$1\" > \"$2\"' _ VALUE g; sh g",
    "sh -c 'echo \"$1\" > g' _ VALUE; bash -c '. ./g'",
    "sh -c 'echo \"$1\" > g' _ VALUE; f=g; bash -c '. \"./$1\"' _ g",
    "echo 'echo \"$X\" > h' > g; X=VALUE sh g; sh h",
];

/// What stands behind a dash, wherever that comes from.
const BEHIND: &[&str] = &[
    "x=VALUE; d=-; python3 \"$d$x\"",
    "o=-VALUE; python3 \"$o\"",
    "printf -v o -- \"-%s\" VALUE; python3 \"$o\"",
    "x=VALUE; o=-$x; python3 \"$o\"",
    "x=VALUE; d=-; o=$d$x; python3 \"$o\"",
    "x=VALUE; d=-; e=$d; o=\"$e$x\"; python3 \"$o\"",
    "f(){ python3 \"$1\"; }; f -VALUE",
    "set -- -VALUE; python3 \"$1\"",
    "for o in -VALUE; do python3 \"$o\"; done",
    "read -r o <<< -VALUE; python3 \"$o\"",
    ": ${o:=-VALUE}; python3 \"$o\"",
    "a=(-VALUE); python3 \"${a[0]}\"",
    "o=-; o+=VALUE; python3 \"$o\"",
    "declare o=-VALUE; python3 \"$o\"",
];

/// What else prints a file, declares a number, or runs a file.
const SHOWN: &[&str] = &[
    "x=$(cat $KARYI{V0|file}); man -P \"$x\" ls",
    "x=$(openssl base64 -in $KARYI{V0|file} | openssl base64 -d); bash -c \"echo $x\"",
    "x=$(echo VALUE | openssl base64 | openssl base64 -d); bash -c \"echo $x\"",
    "x=$(openssl enc -none -in $KARYI{V0|file}); bash -c \"echo $x\"",
    "x=$(curl -s file://$KARYI{V0|file}); bash -c \"echo $x\"",
    "x=$(tar cO $KARYI{V0|file}); bash -c \"echo $x\"",
    "x=$(split --filter=cat $KARYI{V0|file}); bash -c \"echo $x\"",
    "shopt -s expand_aliases; alias d=\"declare -i\"\nd y\ny=VALUE",
    "X=VALUE mksh -c 'PPID=X'",
    "sh -c 'cat \"$1\" > g' _ $KARYI{V0|file}; . ./g",
    "cat $KARYI{V0|file} | sh -c \"cat > g\"; . ./g",
];

const IN_ZSH: &[&str] = &[
    "i=VALUE; n=${(#):-105}; ((n))",
    "X=VALUE; print -r -- *(e:'eval $X':)",
    "export X=VALUE; zsh -f <<'E'\nprint -r -- *(e:'eval $X':)\nE",
    "X=VALUE zsh -fc 'print -r -- *(e:eval\\ \\$X:)'",
    "a=(-v VALUE); [ \"$a[@]\" ]",
    "a=(-v VALUE); test \"$a[@]\"",
    "i=VALUE; for n (i) ((n))",
    "i=VALUE; select n (i) { ((n)); break } <<< 1",
    "i=VALUE; ((${(#):-105}))",
    "i=VALUE; echo ${path[${(#):-105}]}",
    "i=VALUE; n=$(( [##36] 18 )); ((${n:l}))",
    "i=VALUE; n=$(([##36]18)); n=${n:l}; ((n))",
    "i=VALUE; getopts a \"a[i]\" -a",
    "i=VALUE; zparseopts -a \"a[i]\" a",
    "n=NULL; typeset ${n}CMD=sh; <<< VALUE",
    "export N${:-ULLCMD}=sh; <<< VALUE",
    "x=VALUE; print *(e:\"eval \\$x\":)",
    "x=VALUE; print *(oe:'eval $x':)",
    "x=VALUE; a=(*(e:'eval $x':))",
    "x=VALUE; for i in *(e:'eval $x':); do :; done",
    "x=VALUE; ls **/*(e:'eval $x':)",
    "x=VALUE; ls ./*(.e:'eval $x':)",
    "zmodload zsh/parameter; x=VALUE; functions[q]='eval $x'; q",
];

#[test]
fn a_file_named_in_code_is_followed() {
    check_unsafe(CODE, NAMED);
    let others = [
        "sh -c \"curl -K $KARYI{V0|file} h\"",
        "sh -c \"ssh -i ${KARYI_NONE}$KARYI{V0|file} h uptime\"",
        "f=$KARYI{V0|file}; sh -c \"cd app && ssh -i $f h\"",
        "git -c core.sshCommand=\"ssh -i $KARYI{V0|file}\" fetch",
        "eval \"$(ssh-agent -s)\"; ssh-add $KARYI{V0|file}",
        "find . -name a -exec sh -c \"scp -i $KARYI{V0|file} a h:\" \\;",
    ];
    check_outcomes(CODE, &others, "accepted");
}

#[test]
fn arguments_of_code_that_is_not_after_an_option_are_followed() {
    check_unsafe(CODE, ARGUMENTS);
    let others = [
        "curl -fsSL https://h/i.sh | bash -s -- --token VALUE",
        "curl -fsSL https://h/i.sh > i.sh; bash i.sh --token VALUE",
        "cat i.sh | bash -s -- VALUE",
        "bash -s VALUE <<'E'\ncurl -H \"A: $1\" h\nE",
        "cat > g <<'E'\ncurl -H \"A: $1\" h\nE\nbash g VALUE",
        "echo 'curl -H \"A: $1\" h' | bash -s VALUE",
        "{ bash install.sh --token VALUE; }",
        "cd app && { ./deploy.sh VALUE || exit 1; }",
    ];
    check_outcomes(CODE, &others, "accepted");
}

#[test]
fn a_list_may_be_a_command() {
    check_unsafe(CODE, LISTS);
    let others = [
        "set -- curl -H \"A: VALUE\" h; \"$@\"",
        "X=VALUE bash -c 'retry() { \"$@\" || \"$@\"; }; retry curl -H \"$X\" h'",
        "a=(-H \"A: VALUE\"); curl \"${a[@]}\" h",
    ];
    check_outcomes(CODE, &others, "accepted");
}

#[test]
fn functions_in_text_are_functions() {
    check_unsafe(CODE, FUNCTIONS);
    let others = [
        "f() { curl -H \"A: $1\" h; }; f VALUE",
        "cat > g.py <<'E'\ndef f():\n    g()\nE\npython3 g.py VALUE",
        "TOKEN=VALUE bash -c 'f() { curl -H \"$TOKEN\" h; }; f'",
    ];
    check_outcomes(CODE, &others, "accepted");
}

#[test]
fn a_setting_without_a_known_name_may_be_any() {
    check_unsafe(CODE, SETTINGS);
    let others = [
        "env TOKEN=VALUE ./deploy.sh",
        "sudo curl \"$base?token=VALUE\"",
        "timeout 5 curl \"$base=VALUE\"",
        "docker run -e \"URL=https://$h/?k=VALUE\" img",
        "sudo -u \"$USER\" env T=VALUE true",
    ];
    check_outcomes(CODE, &others, "accepted");
}

#[test]
fn a_file_may_be_written_in_many_ways() {
    check_unsafe(CODE, FILES);
    let others = [
        "tmp=$(mktemp); echo VALUE > \"$tmp\"; ./deploy.sh \"$tmp\"",
        "cfg=conf.json; echo VALUE > \"$cfg\"; bash deploy.sh \"$cfg\"",
        "save() { echo \"$2\" > \"$1\"; }; save conf.json VALUE; ./run.sh",
        "echo \"T=VALUE\" >> \"$GITHUB_ENV\"; bash build.sh",
        "{ echo A=1; echo T=VALUE; } > .env; docker compose up -d",
        "printf %s VALUE | { cat > token; }; chmod 600 token; ./run.sh",
        "sudo sh -c 'cat > /etc/app.conf' <<E\ntoken=VALUE\nE\nsudo ./install.sh",
        "T=VALUE bash -c 'curl -H \"$T\" h > out.json'; python3 app.py out.json",
        "bash -c 'cat > f' <<< VALUE",
    ];
    check_outcomes(CODE, &others, "accepted");
}

#[test]
fn a_value_behind_a_dash_names_an_option() {
    check_unsafe("cimport os;os.system('touch pwned')", BEHIND);
    let others = [
        "proto=https; git clone \"$proto://u:VALUE@h/r\"",
        "T=VALUE; url=\"https://u:$T@h/r\"; git clone \"$url\"",
        "T=VALUE; h=db; url=\"$h:$T\"; psql \"$url\"",
        "python3 app.py \"--token=VALUE\"",
        "o=-VALUE; curl \"$o\"",
    ];
    check_outcomes("cimport os;os.system('touch pwned')", &others, "accepted");
}

#[test]
fn what_is_left_is_closed_where_it_is_cheap() {
    check_unsafe("$(touch pwned);: xyz", SHOWN);
    check_not_in_zsh("path[$(touch pwned)];: xyz", IN_ZSH);
}
