//! Ways of a value that are closed as a class: what they have in common is refused, whatever the rest says.

use super::ways::{check_not_in_zsh, check_unsafe};
use super::{check_outcomes, outcome};

const CALCULATED: &str = "a[$(touch pwned)]";
const CODE: &str = "touch pwned;: xyz";

/// What is written through a descriptor comes to a file that is run.
const OPENED: &[&str] = &[
    "exec 5>f6; echo VALUE >&5; sh f6",
    "exec 5>>f; echo VALUE >&5; sh < f",
    "exec 5<>f; echo VALUE >&5; sh f",
    "exec 5>f; cat >&5 <<E\nVALUE\nE\nsh f",
    "exec 5>f; echo VALUE >/dev/fd/5; sh f",
    "exec 5>f 6>&5; echo VALUE >&6; sh f",
    "exec 5>&1 >f; echo VALUE; exec >&5; sh f",
    "exec 2>f; echo VALUE >&2; exec 2>/dev/tty; sh f",
    "exec 5>f; f(){ echo \"$1\" >&5; }; f VALUE; sh f",
    "exec 5> >(tee f); echo VALUE >&5; exec 5>&-; sh f",
    "mkfifo q; sh q & exec 6>q; echo VALUE >&6",
    "exec {fd}>f; echo VALUE >&$fd; sh f",
    "exec 5>f; echo VALUE >&5; exec 5>&-; . ./f",
    "exec 5>f; echo VALUE >&5; cp f g; sh g",
    "exec 5>f; echo VALUE >&5; cat f | sh",
    "exec 5>f; echo VALUE >&5; eval \"$(cat f)\"",
    "exec 5>f; echo VALUE >&5; while read -r l; do eval \"$l\"; done < f",
    "exec &>f; echo VALUE; sh f",
    "echo VALUE | sort -o f; sh f",
    "echo VALUE | sponge f; sh f",
    "echo VALUE | sed -n 'w f'; sh f",
    "echo VALUE > >(cat > f); sh f",
    "exec 5>f; echo VALUE >&5; ln -s f g; sh g",
    "exec 5>f; echo VALUE >&5; cat f > g; sh g",
    "exec 5>f; echo VALUE >&5; cat f | tee g; sh g",
    "exec 5>f; echo VALUE >&5; for s in *; do sh $s; done",
    "exec 5>f; echo VALUE >&5; BASH_ENV=f bash -c :",
    "exec 5>.profile; echo VALUE >&5; bash -l",
    "echo VALUE >> ~/.bashrc",
];

#[test]
fn what_goes_to_an_open_file_is_followed() {
    check_unsafe(CODE, OPENED);
    let others = [
        "exec > >(tee log) 2>&1; curl -H \"A: VALUE\" h; bash build.sh",
        "exec 3>&1; curl -H \"A: VALUE\" h >&3; ./deploy.sh",
        "exec >log 2>&1; curl -H \"A: VALUE\" h; make",
        "exec 200>lock; flock 200; curl -u VALUE h; sh install.sh",
        "curl -H \"A: VALUE\" h -o install.sh; sh install.sh",
    ];
    check_outcomes(CODE, &others, "accepted");
}

/// A variable is an integer, or a name of the shell's own is.
const INTEGERS: &[&str] = &[
    "declare -i REPLY; read <<< VALUE",
    "declare -i _; : VALUE",
    "read <<< VALUE; declare -i REPLY",
    "declare -i OPTARG; getopts a: o -a VALUE",
    "x=VALUE; RANDOM=x",
    "x=VALUE; SRANDOM=x",
    "x=VALUE; OPTIND=x",
    "x=VALUE; HISTCMD=x",
    "x=VALUE; RANDOM+=x",
    "x=VALUE; declare SECONDS=x",
    "x=VALUE; export RANDOM=x",
    "x=VALUE; read RANDOM <<< x",
    "x=VALUE; for RANDOM in x; do :; done",
    "f(){ n=$1; }; f VALUE; declare -i n",
];

/// A name that the shell makes of other text.
const MADE: &[&str] = &[
    "x=VALUE; exec {b[x]}>/dev/null",
    "x=VALUE; r=\"b[x]\"; [[ -v $r ]]",
    "x=VALUE; r=\"b[x]\"; test -v $r",
    "x=VALUE; r=\"b[x]\"; declare $r=1",
    "x=VALUE; y=${s:-x}; ((y))",
    "x=VALUE; y=${s+x}; y=${y:-x}; ((y))",
    "x=VALUE; read y < <(echo x); ((y))",
    "X=VALUE; y=x; y=${y^^}; ((y))",
    "x=VALUE; y=X; y=${y,,}; ((y))",
    "x=VALUE; declare -l y=X; ((y))",
    "x=VALUE; y=xx; ((${y%x}))",
    "x=VALUE; y=abx; ((${y:2}))",
    "x=VALUE; y=$'\\x78'; ((y))",
    "x=VALUE; y=$'\\170'; ((y))",
    "x=VALUE; printf -v y \"\\x78\"; ((y))",
    "x=VALUE; printf -v y '\\170'; ((y))",
    "x=VALUE; y=$(printf \"\\170\"); ((y))",
    "x=VALUE; y=$(echo X | tr A-Z a-z); ((y))",
    "x=VALUE; touch x; for y in ?; do ((y)); done",
    "x=VALUE; for y in {w..y}; do ((y)); done",
    "x=VALUE; y=$(echo eA== | base64 -d); ((y))",
    "x=VALUE; echo x > f; y=$(cat f); ((y))",
    "x=VALUE; echo X > f; y=$(tr X x < f); ((y))",
    "x=VALUE; while read -r y; do ((y)); done < <(echo X | tr X x)",
    "x=VALUE; echo X | tr X x | { read y; ((y)); }",
    "x=VALUE; ((\"x\"))",
    "x=VALUE; a[$(echo X | tr X x)]=1",
    "x=VALUE; x(){ n=$FUNCNAME; ((n)); }; x",
    "h=VALUE; n=$-; n=${n:0:1}; ((n))",
    "x=VALUE; cd x; ((${PWD##*/}))",
    "x=VALUE; getopts x n -x; ((n))",
    "x=VALUE; mapfile -t a < <(echo X | tr X x); ((a[0]))",
    ": VALUE; for v in ${!__karyi*}; do ((v)); done",
    ": VALUE; for v in ${!_@}; do eval \"\\$$v\"; done",
    "x=VALUE; y=${z/q/x}; ((y))",
    "x=VALUE; y=aXb; y=${y//[ab]/}; [[ ${y,,} -eq 1 ]]",
    "x=VALUE; let \"y=${s:-x}\"",
    "x=VALUE; y=$(cd x; pwd); ((y))",
    "x=VALUE; touch x; y=$(ls); ((y))",
    "x=VALUE; g(){ echo x; }; y=$(g); ((y))",
    "x=VALUE; unset a[x]",
    "x=VALUE; y=x; unset 'a[y]'",
    "x=VALUE; exec 3<<< x; read -u 3 y; ((y))",
    "x=VALUE; y=$(bash -c 'echo x'); ((y))",
    "x=VALUE; y=$(jq -rn '\"x\"'); ((y))",
    "x=VALUE; case X in X) y=x;; esac; ((y))",
    "x=VALUE; coproc echo x; read -u ${COPROC[0]} y; ((y))",
    "x=VALUE; mapfile -O ${y:1} -t a <<< 1; y=xx",
    "x=VALUE; declare -i n; n=$(echo X | tr X x)",
    "x=VALUE; b=([$(echo X | tr X x)]=1)",
];

const MADE_IN_ZSH: &[&str] = &[
    "i=VALUE; n=I; ((${n:l}))",
    "i=VALUE; n=ii; ((${n#i}))",
    "i=VALUE; n=abi; ((n[3]))",
    "i=VALUE; n=$(print \\\\x69); ((n))",
    "i=VALUE; n=${(L):-I}; ((n))",
    "i=VALUE; n=${:-i}; ((n))",
    "i=VALUE; return i",
    "i=VALUE; f(){ return i }; f",
    "i=VALUE; shift i",
    "i=VALUE; for j in 1; do break i; done",
    "i=VALUE; (exit i)",
    "i=VALUE; bye i",
    "i=VALUE; logout i",
    "i=VALUE; printf \"%*d\" i 3",
    "i=VALUE; printf %d i",
    "i=VALUE; print -f %d i",
    "i=VALUE; repeat i :",
    "i=VALUE; SECONDS=i",
    "i=VALUE; COLUMNS=i",
    "i=VALUE; HISTSIZE=i",
    "i=VALUE; LISTMAX=i",
    "i=VALUE; SAVEHIST=i",
    "i=VALUE; ERRNO=i",
    "i=VALUE; print -l *([i])",
    "i=VALUE; print *([1,i])",
    "integer REPLY; read <<< VALUE",
    "float REPLY; read -r <<< VALUE",
    "integer MATCH; [[ VALUE =~ .* ]]",
    "i=VALUE; [ i -eq 1 ]",
    "i=VALUE; n=I; [ ${n:l} -eq 1 ]",
    "i=VALUE; read -t i x",
    "i=VALUE; ulimit -n i",
];

#[test]
fn no_text_with_letters_is_calculated_beside_a_value() {
    check_unsafe(CALCULATED, INTEGERS);
    check_unsafe(CALCULATED, MADE);
    check_not_in_zsh("path[$(touch pwned)]", MADE_IN_ZSH);
}

/// Numbers beside a secret in a variable, as people calculate with them.
const NUMBERS: &[&str] = &[
    "x=VALUE; i=0; while [ $i -lt 3 ]; do curl -u \"$x\" h; i=$((i+1)); done",
    "x=VALUE; for ((i=0; i<3; i++)); do curl -u \"$x\" h && break; done",
    "x=VALUE; n=$(wc -l < f); ((n > 3)) && curl -u \"$x\" h",
    "x=VALUE; n=$(grep -c a f); (( n += 1 )); curl -u \"$x\" h",
    "x=VALUE; for i in 1 2 3; do curl -u \"$x\" h; ((i == 3)) || sleep $((i * 2)); done",
    "x=VALUE; for i in {1..3}; do ((n += i)); done; curl -u \"$x\" h",
    "x=VALUE; for i in $(seq 1 5); do (( i > 3 )) && curl -u \"$x\" h; done",
    "x=VALUE; start=$(date +%s); curl -u \"$x\" h; echo $(( $(date +%s) - start ))",
    "x=VALUE; n=$(cat count); n=$((n + 1)); echo $n > count; curl -u \"$x\" h",
    "x=VALUE; curl -u \"$x\" h; rc=$?; if (( rc != 0 )); then exit $rc; fi",
    "x=VALUE; n=${RETRIES:-3}; while (( n-- > 0 )); do curl -u \"$x\" h; done",
    "x=VALUE; n=${#x}; echo $((n / 2))",
    "x=VALUE; code=$(curl -s -o /dev/null -w '%{http_code}' -u \"$x\" h); [[ $code -eq 200 ]]",
    "x=VALUE; r=$(curl -u \"$x\" h); code=$(tail -n1 <<< \"$r\"); [[ \"$code\" -ge 400 ]]",
    "x=VALUE; a=(1 2 3); echo ${a[1]} ${#a[@]}; (( ${#a[@]} > 2 )); curl -u \"$x\" h",
    "x=VALUE; v=1.2.3; major=${v%%.*}; (( major > 0 )); curl -u \"$x\" h",
    "x=VALUE; n=$(ps aux | wc -l); [ \"$n\" -gt 3 ] && curl -u \"$x\" h",
    "x=VALUE; n=$(kubectl get pods -o name | wc -l); (( n == 2 )); curl -u \"$x\" h",
    "x=VALUE; n=$(curl -u \"$x\" h | jq .count); (( n > 2 ))",
    "x=VALUE; pct=$(df / | awk 'NR==2{print $5}'); [ \"${pct%?}\" -gt 90 ]; curl -u \"$x\" h",
    "x=VALUE; echo \"${x:0:4}...\"; sleep $((RANDOM % 3))",
    "x=VALUE; [ -v TOKEN ] || curl -u \"$x\" h",
    "x=VALUE; while IFS= read -r l; do n=$((n+1)); curl -u \"$x\" \"$l\"; done < list",
];

#[test]
fn numbers_are_calculated_beside_a_value() {
    check_outcomes(CALCULATED, NUMBERS, "accepted");
}

/// Shells that are given code otherwise than in single quotes after their name.
const INNER: &[&str] = &[
    "FOO=VALUE $SHELL -c 'eval \"$FOO\"'",
    "FOO=VALUE \"$SHELL\" -c 'eval \"$FOO\"'",
    "FOO=VALUE ${sh:-sh} -c 'eval \"$FOO\"'",
    "c='eval \"$FOO\"'; FOO=VALUE sh -c \"$c\"",
    "c='eval \"$FOO\"'; d=$c; FOO=VALUE sh -c \"$d\"",
    "FOO=VALUE sh <(echo 'eval \"$FOO\"')",
    "printf 'eval \"$FOO\"' > g; FOO=VALUE sh g",
    "printf 'ev%s \"$FOO\"' al > g; FOO=VALUE sh g",
    "cat > g <<'E'\neval \"$FOO\"\nE\nFOO=VALUE bash g",
    "cat > g <<'E'\neval \"$FOO\"\nE\ncp g h; FOO=VALUE bash h",
    "cat > g <<'E'\neval \"$FOO\"\nE\nchmod +x g; FOO=VALUE ./g",
    "c=eval; FOO=VALUE sh -c \"$c \\\"\\$FOO\\\"\"",
    "c='printenv FOO | sh'; FOO=VALUE sh -c \"$c\"",
    "echo 'ZXZhbCAiJEZPTyI=' | base64 -d | FOO=VALUE sh",
    "c=$(echo 'ZXZhbCAiJEZPTyI=' | base64 -d); FOO=VALUE sh -c \"$c\"",
    "FOO=VALUE; export FOO; sh <<< \"eval \\\"\\$FOO\\\"\"",
    "c='eval eval $x'; x=VALUE; $c",
    "command_not_found_handler(){ eval $2 }; nosuch VALUE",
    "export x=VALUE; printenv x | sh",
    "export x=VALUE; env | grep ^x= | cut -c3- | sh",
    "export x=VALUE; eval \"$(printenv x)\"",
    ": VALUE; set | grep __karyi | cut -d= -f2- | sh",
    ": VALUE; declare -p | cut -d= -f2- | sh",
    "export x=VALUE; tr '\\0' '\\n' < /proc/self/environ | sh",
    "x=VALUE sh -c 'printenv x | sh'",
    "command_not_found_handle(){ eval \"$2\"; }; nosuch VALUE",
    "command_not_found_handle(){ eval \"$*\"; }; VALUE",
    "x=VALUE; command_not_found_handle(){ eval \"$*\"; }; nosuch \"$x\"",
    "X=VALUE zsh -fc 'NULLCMD=sh; <<< $X'",
    "export X=VALUE; set -- sh -c 'eval \"$X\"'; \"$@\"",
    "export X=VALUE; c=(sh -c 'eval \"$X\"'); \"${c[@]}\"",
    "export X=VALUE; f(){ \"$@\"; }; f sh -c 'eval \"$X\"'",
    "export X=VALUE; bash -c \"$(cat <<'E'\neval \"$X\"\nE\n)\"",
    "export X=VALUE; bash -c \"$(printf 'eval \"$X\"')\"",
    "export X=VALUE; bash --rcfile <(echo 'eval \"$X\"') -i",
    "export X=VALUE; cat > g <<'E'\neval \"$X\"\nE\nBASH_ENV=g bash -c :",
    "export X=VALUE; git -c alias.x='!eval \"$X\"' x",
    "export X=VALUE; GIT_SSH_COMMAND='eval \"$X\"' git fetch",
    "export X=VALUE; PAGER='eval \"$X\"' man ls",
    "export X=VALUE; tar --to-command='eval \"$X\"' -xf t",
    "export X=VALUE; split --filter='eval \"$X\"' f",
    "export X=VALUE; tmux new 'eval \"$X\"'",
    "export X=VALUE; at now <<'E'\neval \"$X\"\nE",
];

/// The same with zsh, or another shell, inside.
const INNER_ZSH: &[&str] = &[
    "X=VALUE zsh -fc 'printf %d \"$X\"'",
    "X=VALUE zsh -fc 'print -f %d \"$X\"'",
    "X=VALUE zsh -fc 'set -A \"$X\" a'",
    "X=VALUE zsh -fc 'print -v \"$X\" 1'",
    "X=VALUE zsh -fc 'ls -d $~X'",
    "X=VALUE zsh -f <<'E'\nls -d $~X\nE",
    "X=VALUE zsh -fc 'autoload -U zargs; zargs 1 -- eval \"$X\"'",
    "X=VALUE zsh -fc 'exit X'",
    "X=VALUE zsh -fc 'repeat X :'",
    "X=VALUE zsh -fc 'SAVEHIST=X'",
    "X=VALUE zsh -fc 'print -l *([X])'",
    "X=VALUE zsh -o globsubst -c 'ls -d $X'",
    "X=VALUE zsh --glob-subst -c 'ls -d $X'",
    "X=VALUE zsh -fc 'options[globsubst]=on; ls -d $X'",
    "X=VALUE mksh -c 'SECONDS=X'",
    "X=VALUE mksh -c 'USER_ID=X'",
    "X=VALUE mksh -c 'shift X'",
    "X=VALUE mksh -c 'ulimit -c X'",
    "X=VALUE mksh -c 'nameref r=X; ((r))'",
    "X=VALUE mksh -c 'f(){ nameref r=$1; ((r)); }; f X'",
    "X=VALUE mksh -c 'nameref r=X; n=$((r+1))'",
    "X=VALUE mksh -c 'set -A n X; ((n[0]))'",
    "X=VALUE mksh -c 'n=${|REPLY=X;}; ((n))'",
    "X=VALUE mksh -c '\\\\builtin eval \"$X\"'",
    "X=VALUE mksh -c '[ $X = y ]'",
    "X=VALUE mksh -c 'test $X'",
];

const READ_OTHERWISE: &[&str] = &[
    "NULLCMD=sh; <<< VALUE",
    "NULLCMD=sh; < <(echo VALUE)",
    "NULLCMD=sh; <<E\nVALUE\nE",
    "READNULLCMD=sh; < $KARYI{V0|file}",
    "echo VALUE > h; READNULLCMD=sh; < h",
    "options[globsubst]=on; x=VALUE; ls -d $x",
    "set +o noglobsubst; x=VALUE; ls -d $x",
];

#[test]
fn inner_shells_are_read_by_the_rules_of_all() {
    check_unsafe(CODE, INNER);
    check_unsafe("path[$(touch pwned)] (e:touch pwned:)", INNER_ZSH);
    check_not_in_zsh(CODE, READ_OTHERWISE);
    let others = [
        "TOKEN=VALUE bash -c 'curl -H \"A: $TOKEN\" h'",
        "TOKEN=VALUE bash -euo pipefail -c 'curl -H \"A: $TOKEN\" h'",
        "TOKEN=VALUE bash -c \"cd $dir && ./run.sh\"",
        "dir=/opt/app; TOKEN=VALUE bash -c \"cd $dir && curl -H \\\"A: \\$TOKEN\\\" h\"",
        "cat > g <<'E'\ncurl -H \"A: $TOKEN\" h\nE\nTOKEN=VALUE bash g",
        "cat > g.sh <<'E'\n#!/bin/bash\nset -e\ncurl -H \"A: $TOKEN\" h\nE\nchmod +x g.sh; TOKEN=VALUE ./g.sh",
        "curl -fsSL https://h/install.sh | TOKEN=VALUE bash",
        "TOKEN=VALUE bash <(curl -fsSL https://h/install.sh)",
        "export TOKEN=VALUE; ./deploy.sh",
        "export TOKEN=VALUE; env | grep -c TOKEN",
        "export TOKEN=VALUE; env | sort",
        "q='select 1; select 2'; PGPASSWORD=VALUE psql -c \"$q\"",
        "c='uptime; df -h'; x=VALUE; ssh h \"$c\"; curl -u \"$x\" h",
        "ssh h <<'E'\ncd app && ./run.sh\nE\ncurl -u VALUE h",
    ];
    check_outcomes(CODE, &others, "accepted");
}

/// A variable without quotes becomes other words than one.
const SPLIT: &[&str] = &[
    "x=VALUE; sudo -u $x true",
    "x=VALUE; timeout $x true",
    "x=VALUE; timeout -s TERM $x true",
    "x=VALUE; nice -n $x true",
    "x=VALUE; find $x",
    "x=VALUE; find . $x",
    "x=VALUE; find . -name $x",
    "x=VALUE; env TOKEN=$x true",
    "x=VALUE; sudo TOKEN=$x true",
    "env T=$(echo VALUE) true",
    "env T=$(cat $KARYI{V0|file}) true",
    "echo VALUE > f; env T=$(cat f) true",
    "f(){ env T=$1 true; }; f VALUE",
    "for x in VALUE; do env T=$x true; done",
    "read -r x <<< VALUE; env T=$x true",
    "a=(VALUE); env T=${a[0]} true",
    "x=VALUE; sudo -E T=$x true",
    "x=VALUE; sudo env T=$x true",
    "x=VALUE; timeout 5 env T=$x true",
    "x=VALUE; find . -exec env T=$x true \\;",
    "X=VALUE sh -c 'env T=$X true'",
    "x=VALUE; env T=${x:-y} true",
    "x=VALUE; stdbuf -o $x true",
    "x=VALUE; /usr/bin/time -f $x true",
    "x=VALUE; strace -o $x true",
    "x=VALUE; xargs -n $x",
    "x=VALUE; prlimit --nofile=$x true",
    "x=VALUE; [ $x = y ]",
    "x=VALUE; [ -n $x ]",
    "x=VALUE; [ $x ]",
    "x=VALUE; test $x",
    "x=VALUE; if [ $x != \"\" ]; then :; fi",
    "x=VALUE; [ \"a\" = $x ]",
    "x=VALUE; [ -f $x ]",
    "x=VALUE; [ ! $x ]",
    "[ -n $(echo VALUE) ]",
    "[ $(cat $KARYI{V0|file}) = y ]",
    "x=VALUE; command declare y=$x",
    "x=VALUE; builtin declare y=$x",
    "x=VALUE; \\declare y=$x",
    "x=VALUE; \"declare\" y=$x",
    "f(){ command local y=$1; }; f VALUE",
    "x=VALUE; declare \"y\"=$x",
    "set -- -v VALUE; [ \"$@\" ]",
    "a=(-v VALUE); [ \"${a[@]}\" ]",
    "f(){ test $*; }; f -v VALUE",
    "x=VALUE; wait $x",
    "x=VALUE; wait -n $x",
    "echo VALUE > .env; xargs -a .env env",
    "echo \"VALUE\" > .e; while IFS== read -r k v; do declare \"$k=$v\"; done < .e",
    "echo \"VALUE\" > .e; while read -r l; do declare \"$l\"; done < .e",
];

/// The same by pieces of a value.
const PIECES: &[&str] = &[
    "x=VALUE; for i in \"$x\"; do [ -e $i ]; done",
    "x=VALUE; while read -r l; do [ $l = a ]; done <<< \"$x\"",
    "x=VALUE; u=$(base64 -d <<< \"$(base64 <<< \"$x\")\"); [ $u = a ]",
    "x=VALUE; u=$(tr a a <<< \"$x\"); [ $u = a ]",
    "echo \"VALUE\" > .e; while IFS== read -r k v; do typeset $k; done < .e",
];

/// A value that starts like an option, by any way to the start of a word.
const OPTION: &[&str] = &[
    "x=VALUE; git ls-remote \"$x\" .",
    "x=VALUE; git ls-remote $x .",
    "x=VALUE; git fetch \"$x\" .",
    "x=VALUE; python3 \"$x\"",
    "x=VALUE; perl \"$x\"",
    "x=VALUE; perl -l $x",
    "x=VALUE; node \"$x\"",
    "x=VALUE; expect \"$x\"",
    "x=VALUE; man \"$x\" ls",
    "x=VALUE; env \"$x\" true",
    "x=VALUE; tar cf /dev/null \"$x\" f",
    "x=VALUE; split \"$x\" f",
    "f(){ git ls-remote \"$1\" .; }; f VALUE",
    "f(){ git ls-remote \"$@\"; }; f VALUE .",
    "a=(VALUE .); git ls-remote \"${a[@]}\"",
    "git ls-remote \"$(echo VALUE)\" .",
    "git ls-remote $(cat $KARYI{V0|file}) .",
    "git ls-remote ${nope:-VALUE} .",
    "git ls-remote {VALUE,.} .",
    "git ls-remote $empty\"VALUE\" .",
    "for x in VALUE b; do git ls-remote $x .; done",
    "x=aVALUE; y=${x#a}; git ls-remote \"$y\" .",
    "read a b <<< \"x VALUE\"; git ls-remote \"$b\" .",
    "python3 -VALUE",
    "env -VALUE true",
    "tar cf /dev/null --VALUE f",
    "git ls-remote --VALUE .",
    "man --VALUE ls",
    "find . -maxdepth 0 -VALUE prog \\;",
];

#[test]
fn a_value_is_one_word_and_no_option_by_any_way() {
    for value in ["root touch pwned", "-v a[$(touch${IFS}pwned)] -o x"] {
        check_unsafe(value, SPLIT);
    }
    check_unsafe("-v a[$(touch${IFS}pwned)] -o x", PIECES);
    check_unsafe("--upload-pack=touch pwned", OPTION);
    check_unsafe("-cimport os;os.system('touch pwned')", OPTION);
    let others = [
        "x=VALUE; sudo -u \"$x\" true",
        "x=VALUE; env T=\"$x\" true",
        "x=VALUE; [ \"$x\" = y ]",
        "x=VALUE; [ -n \"$x\" ] && echo set",
        "x=VALUE; y=$x; export Z=$x; declare w=$x",
        "x=VALUE; [[ $x == y ]]",
        "x=VALUE; echo $x | wc -c",
        "x=VALUE; case $x in y) ;; esac",
        "x=VALUE; git push \"https://u:$x@h/r\"",
        "f(){ local t=$1; curl -u \"$t\" h; }; f VALUE",
        "for x in VALUE; do curl -u \"$x\" h; done",
        "x=VALUE; python3 app.py \"$x\"",
        "x=VALUE; mysql -p\"$x\" db",
        "x=VALUE; cat <<< $x",
    ];
    check_outcomes("root touch pwned", &others, "accepted");
    let whole = [
        "x=VALUE; sudo -u $x true",
        "x=VALUE; [ $x = y ]",
        "x=VALUE; env T=$x true",
    ];
    check_outcomes("pa$$w0rd!&", &whole, "accepted");
}

/// Files whose content programs load.
const LOADED: &[&str] = &[
    "PYTHONSTARTUP=$KARYI{V0|file} python3 -i",
    "GIT_CONFIG_GLOBAL=$KARYI{V0|file} git x",
    "env GIT_CONFIG_GLOBAL=$KARYI{V0|file} git x",
    "perl -e \"do q($KARYI{V0|file})\"",
    "perl -e 'do \"$KARYI{V0|file}\"'",
];

/// What such a file holds, in code that stands in double quotes.
const SHOWN: &[&str] = &[
    "x=$(cat $KARYI{V0|file}); bash -c \"echo $x\"",
    "x=\"$(<$KARYI{V0|file})\"; bash -c \"echo $x\"",
    "read -r x < $KARYI{V0|file}; bash -c \"echo $x\"",
    "p=$KARYI{V0|file}; x=$(cat $p); bash -c \"echo $x\"",
    "f(){ x=$(cat \"$1\"); }; f $KARYI{V0|file}; bash -c \"echo $x\"",
    "x=$(cat $KARYI{V0|file}); sed \"s/a/$x/\" f",
    "x=$(cat $KARYI{V0|file}); python3 -c \"print('$x')\"",
    "x=$(cat $KARYI{V0|file}); find . -exec sh -c \"echo $x\" \\;",
    "x=$(cat $KARYI{V0|file}); env -S \"$x\"",
    "x=$(cat $KARYI{V0|file}); GIT_SSH_COMMAND=\"$x\" git fetch",
    "x=$(cat $KARYI{V0|file}); ssh h \"echo $x\"",
    "x=$(cat $KARYI{V0|file}); psql -c \"select '$x'\"",
    "x=$(cat $KARYI{V0|file}); y=$x; watch \"$y\"",
    "x=$(cat $KARYI{V0|file}); [ $x = y ]",
    "export K2=VALUE; x=$(printenv K2); bash -c \"echo $x\"",
    "export K2=VALUE; x=$(printenv K2); $x",
];

#[test]
fn a_file_that_a_program_loads_is_code() {
    check_unsafe(CODE, LOADED);
    check_unsafe("$(touch pwned); a", SHOWN);
    let others = [
        "x=$(cat $KARYI{V0|file}); curl -H \"A: $x\" h",
        "p=$KARYI{V0|file}; bash -c \"curl -K $p h\"",
        "x=$(<$KARYI{V0|file}); export TOKEN=$x; ./deploy.sh",
    ];
    check_outcomes("$(touch pwned); a", &others, "accepted");
}

#[test]
fn words_that_may_be_safe_are_refused_all_the_same() {
    // What is known to be refused too much; whoever mends one moves it to the others.
    let too_much = [
        "x=VALUE; declare -A m; for k in a b; do curl -u \"$x\" \"${m[$k]}\"; done",
        "x=VALUE; f() { (( $2 > 3 )); }; f name 5; curl -u \"$x\" h",
        "x=VALUE; n=$(date +week%V); (( n > 3 )); curl -u \"$x\" h",
        "cmd='npm run build'; TOKEN=VALUE bash -c \"$cmd\"",
    ];
    let others: Vec<_> = too_much
        .iter()
        .filter(|script| outcome(CALCULATED, script) == "accepted")
        .collect();
    assert_eq!(others, [&""; 0]);
}
