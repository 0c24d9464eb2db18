//! Ways of a value from where it stands to where it is read as code, calculated with, or taken for an option.

use super::{check_outcomes, outcome};

const HOSTILE: &str = "a[$(touch pwned)] '\"";

#[track_caller]
pub(super) fn check_unsafe(value: &str, scripts: &[&str]) {
    let others: Vec<_> = scripts
        .iter()
        .map(|script| (outcome(value, script), *script))
        .filter(|(found, _)| !found.starts_with("unsafe_"))
        .collect();
    assert_eq!(others, []);
}

/// The same where only zsh would do it.
#[track_caller]
pub(super) fn check_not_in_zsh(value: &str, scripts: &[&str]) {
    let others: Vec<_> = scripts
        .iter()
        .map(|script| (outcome(value, script), *script))
        .filter(|(found, _)| !found.starts_with("unsafe_") && *found != "not in zsh")
        .collect();
    assert_eq!(others, []);
}

const CALCULATED: &[&str] = &[
    "SRANDOM=VALUE",
    "x=VALUE; [[ x -eq 0 ]]",
    "x=VALUE; y=x; echo $((y))",
    "x=VALUE; [[ ( x -gt 1 ) ]]",
    "x=VALUE; [[ ! x -lt 1 ]]",
    "x=VALUE; [[ 1 == 1 && 1 -ne x ]]",
    "x=VALUE; [[ \"x\" -eq 1 ]]",
    "x=VALUE; [[ x+1 -eq 1 ]]",
    "x=VALUE; read 'b[x]' <<< 1",
    "x=VALUE; printf -v b[x] 1",
    "x=VALUE; [[ -v b[x] ]]",
    "x=VALUE; test -v 'b[x]'",
    "x=VALUE; [ -v b[x] ]",
    "x=VALUE; declare -a 'b=([x]=1)'",
    "x=VALUE; y='x'; echo $((y+1))",
    "x=VALUE; z=${x}; y=z; (( y ))",
    "f(){ local n=$1; [[ n -gt 1 ]]; }; f VALUE",
    "x=VALUE; let y=x",
    "f(){ local -n r=$1; echo $r; }; f VALUE",
    "o=-v; printf $o VALUE text",
    "x=VALUE; declare -i y; y=x",
    "x=VALUE; declare -i y=x",
    "x=VALUE; typeset -i y; read y <<< x",
    "while read -r n; do ((n)); done <<< VALUE",
    "echo VALUE > f; read x < f; ((x))",
    "echo VALUE > f; (( $(cat f) ))",
    "while read -r a n; do (( n > 0 )); done <<< \"x VALUE\"",
    "while read -r n; do ((n)); done < <(echo VALUE)",
    "while read -r n; do ((n)); done <<E\nVALUE\nE",
    "echo VALUE | { read n; ((n)); }",
    "{ read -r n; ((n)); } <<< VALUE",
    "(read -r n; ((n))) <<< VALUE",
    "if read -r n; then ((n)); fi <<< VALUE",
    "f(){ read -r n; ((n)); }; f <<< VALUE",
    "f(){ read -r n; ((n)); }; echo VALUE | f",
    "select x in a; do ((REPLY)); break; done <<< VALUE",
    "while read -r n; do y=$n; ((y)); done <<< VALUE",
    "while IFS== read -r k v; do declare \"$k=$v\"; done <<< VALUE",
    "f(){ read \"$1\" <<< x; }; f VALUE",
    "f(){ printf -v \"$1\" x; }; f VALUE",
    "f(){ [[ -v $1 ]]; }; f VALUE",
    "a=VALUE b=a; echo $((b))",
    "v=VALUE; w=v; [[ $w -eq 0 ]]",
    "v=VALUE; for n in v; do ((n)); done",
    "[[ VALUE =~ (.*) ]]; (( BASH_REMATCH ))",
    ": VALUE; (( $_ ))",
    "f(){ export \"$@\"; }; f VALUE",
    "coproc echo VALUE; read -u ${COPROC[0]} n; ((n))",
    "o=-v; [ $o VALUE ]",
];

#[test]
fn a_name_may_stand_for_a_value_in_arithmetic() {
    check_unsafe(HOSTILE, CALCULATED);
    check_outcomes(
        HOSTILE,
        &[
            "x=VALUE; [[ $n -eq 0 ]] && hx \"$x\"",
            "while read -r l; do hx \"$l\"; done <<< VALUE",
            "x=VALUE; for i in 1 2; do ((n++)); done; hx \"$x\"",
            "x=VALUE; echo \"x is there\"; n=$((n + 1))",
            "for k in \"${!a[@]}\"; do ((n++)); done; x=VALUE; hx \"$x\"",
        ],
        "accepted",
    );
}

const EVALUATED: &[&str] = &[
    "f(){ for a; do eval \"$a\"; done; }; f VALUE",
    "set -- VALUE; for a; do eval \"$a\"; done",
    "f(){ eval \"${!#}\"; }; f VALUE",
    "x=VALUE; declare -n r=x; eval \"$r\"",
    "x=VALUE; y=x; eval \"${!y}\"",
    "f(){ printf -v \"$2\" %s \"$1\"; }; f VALUE x; eval \"$x\"",
    "f(){ local -n o=$2; o=$1; }; f VALUE x; eval \"$x\"",
    "x=VALUE; eval 'eval \"$x\"'",
    "x=VALUE; eval 'y=$x'; eval \"$y\"",
    "x=VALUE; source /dev/stdin <<'E'\neval \"$x\"\nE",
    "x=VALUE; . <(echo 'eval \"$x\"')",
    "x=VALUE; PROMPT_COMMAND='eval \"$x\"'",
    "x=VALUE; PS1='$(eval \"$x\")'",
    "x=VALUE; PS1='${x@P}'",
    "x=VALUE; alias q='eval \"$x\"'; eval q",
    "x=VALUE; mapfile -c1 -C 'eval \"$x\";:' z <<< 1",
    "x=VALUE; compgen -W '${x@P}'",
    "bash -c 'eval \"$1\"' _ VALUE",
    "bash -c '$1' _ VALUE",
    ": VALUE; eval \"$_\"",
    "source ./env; x=VALUE; hx \"$x\"",
    "eval \"$(ssh-agent -s)\"; echo VALUE > f",
    "getopts a: o -a VALUE; eval \"$OPTARG\"",
    "[[ VALUE =~ (.*) ]]; eval \"${BASH_REMATCH[1]}\"",
];

const PROGRAMS: &[&str] = &[
    "x=VALUE; $x",
    "f(){ $1; }; f VALUE",
    "$(echo VALUE)",
    "`echo VALUE`",
    "x=$(echo VALUE); $x",
    "x=VALUE; set -- \"$x\"; $1",
    "a=(VALUE); ${a[0]}",
    "x=VALUE; ${x:-ls}",
    "x=VALUE; $x arg",
    "x=VALUE; FOO=1 $x",
    "x=VALUE; >/dev/null $x",
    "x=VALUE; ! $x",
    "x=VALUE; time $x",
    "x=VALUE; if $x; then :; fi",
    "x=VALUE; sudo $x",
    "x=VALUE; nohup $x",
    "x=VALUE; timeout 5 $x",
    "x=VALUE; command $x",
    "x=VALUE; exec $x",
    "x=VALUE; xargs $x",
    "x=VALUE; find . -exec $x \\;",
    "x=VALUE; env $x",
    "x=VALUE; f(){ \"$@\"; }; f $x",
    "x=VALUE; set -- $x; \"$@\"",
    "x=VALUE; a=($x); \"${a[@]}\"",
    "echo VALUE > f; x=$(<f); $x",
    "echo VALUE > f; $(cat f)",
    "echo VALUE > f; x=`cat f`; $x",
];

#[test]
fn a_variable_may_be_code_by_another_name() {
    check_unsafe("touch pwned;: xyz", EVALUATED);
    check_unsafe("touch pwned", PROGRAMS);
    check_outcomes(
        "touch pwned;: xyz",
        &[
            "trap 'rm -f \"$f\"' EXIT; x=VALUE; hx \"$x\"",
            "bash -c 'hx \"$1\"' _ VALUE",
            "x=VALUE; sudo hx \"$x\"",
            "x=VALUE; timeout 5 hx $x",
            "x=$(hx VALUE); echo \"$x\"",
        ],
        "accepted",
    );
}

/// What people write every day: each takes every value.
const ORDINARY: &[&str] = &[
    "curl -u \"user:VALUE\" https://h/",
    "curl -H \"Authorization: Bearer VALUE\" https://h/",
    "curl -d 'VALUE' https://h/",
    "curl -d '{\"token\": \"VALUE\"}' https://h/",
    "curl --data-binary @- https://h/ <<EOF\n{\"a\": \"VALUE\"}\nEOF",
    "export PGPASSWORD=VALUE; psql -h h -U u -c 'select 1' db",
    "PGPASSWORD=VALUE psql -h h -c 'select 1'",
    "MYSQL_PWD=VALUE mysql -e 'select 1'",
    "mysql -uroot -pVALUE -e 'select 1'",
    "printf %s VALUE | docker login -u u --password-stdin reg",
    "echo VALUE | docker login -u u --password-stdin reg",
    "git clone https://user:VALUE@h/r.git",
    "git -C dir push https://user:VALUE@h/r.git main",
    "GITHUB_TOKEN=VALUE gh pr list",
    "export GH_TOKEN=VALUE; for i in 1 2 3; do gh api x && break; done",
    "aws configure set aws_secret_access_key VALUE",
    "AWS_SECRET_ACCESS_KEY=VALUE aws s3 ls",
    "printf '%s\\n' VALUE | gpg --batch --passphrase-fd 0 -d f.gpg",
    "printf '%s' VALUE | sha256sum",
    "echo \"TOKEN=VALUE\" > .env",
    "cat > config.json <<EOF\n{\"key\": \"VALUE\"}\nEOF",
    "ssh -i $KARYI{V0|file} user@host uptime",
    "scp -i $KARYI{V0|file} f host:",
    "token=VALUE; curl -H \"X: $token\" https://h/",
    "token=VALUE; curl -H \"X: ${token}\" https://h/ | jq .id",
    "openssl enc -aes-256-cbc -pass pass:VALUE -in a -out b",
    "openssl rsa -in $KARYI{V0|file} -check",
    "npm config set //registry/:_authToken VALUE",
    "kubectl create secret generic s --from-literal=k=VALUE",
    "docker run -e TOKEN=VALUE image cmd",
    "TOKEN=VALUE python3 app.py",
    "TOKEN=VALUE make deploy",
    "[ -n VALUE ] && echo set",
    "if curl -sf -u \"u:VALUE\" h; then echo ok; fi",
    "status=$(curl -s -o /dev/null -w '%{http_code}' -H \"A: VALUE\" h); [ \"$status\" -eq 200 ]",
    "jq -n --arg t VALUE '{token: $t}'",
    "twine upload -u __token__ -p VALUE dist/x",
    "sshpass -p VALUE ssh host",
    "sudo -S true <<< VALUE",
];

#[test]
fn ordinary_uses_take_every_value() {
    for value in [
        "touch pwned;: xyz",
        HOSTILE,
        "multi\nline $(x) `y` %s",
        "pa$$w0rd!&*(){}",
    ] {
        check_outcomes(value, ORDINARY, "accepted");
    }
}

const BY_FILE: &[&str] = &[
    "eval \"$(cat FILE)\"",
    "eval \"$(<FILE)\"",
    "x=$(cat FILE); eval \"$x\"",
    "read -r x < FILE; eval \"$x\"",
    "mapfile a < FILE; eval \"${a[0]}\"",
    "cat FILE | bash",
    "head -1 FILE|sh",
    "bash < FILE",
    "bash -s < FILE",
    "bash <<< \"$(cat FILE)\"",
    "sh -c \"$(cat FILE)\"",
    "bash FILE",
    ". FILE",
    "x=FILE; . $x",
    "source <(cat FILE)",
    "xargs -a FILE -I{} sh -c {}",
    "cat FILE > f; sh f",
    "cp FILE f; bash f",
    "bash --rcfile FILE -i -c :",
    "env -S\"$(cat FILE)\"",
    "f(){ eval \"$(cat \"$1\")\"; }; f FILE",
    "for s in FILE; do . \"$s\"; done",
    "python3 FILE",
    "node FILE",
    "perl FILE",
    "awk -f FILE",
    "sed -nf FILE x",
    "make -f FILE",
    "gdb -batch -x FILE",
    "vim -es -S FILE",
    "expect FILE",
    "ssh -F FILE h",
    "tmux -f FILE",
    "chmod +x FILE; FILE",
    "exec 3<FILE; . /dev/fd/3",
    "find FILE -exec sh {} \\;",
    "sh -c \". FILE\"",
    "sh -c \"sh FILE\"",
    "eval \". FILE\"",
    "python3 -c \"exec(open('FILE').read())\"",
];

#[test]
fn what_a_file_of_karyi_holds_is_followed() {
    let file = |scripts: &[&str]| -> Vec<String> {
        let named = scripts.iter();
        named
            .map(|script| script.replace("FILE", "$KARYI{V0|file}"))
            .collect()
    };
    let scripts = file(BY_FILE);
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    check_unsafe("touch pwned;: xyz", &scripts);
    let data = file(&[
        "curl -H @FILE h",
        "ssh -i FILE host",
        "GIT_SSH_COMMAND='ssh -i FILE' git fetch",
        "x=$(cat FILE); curl -H \"$x\" h",
        "cat FILE | docker login --password-stdin",
        "docker login --password-stdin < FILE",
        "bash -c 'curl -K \"$1\"' _ FILE",
        "mysql --defaults-extra-file=FILE -e 'select 1'",
        "psql \"sslkey=FILE\"",
        "cp FILE key.pem; openssl rsa -in key.pem",
    ]);
    let data: Vec<&str> = data.iter().map(String::as_str).collect();
    check_outcomes("touch pwned;: xyz", &data, "accepted");
}

const WRITTEN: &[&str] = &[
    "echo VALUE > f; bash -c \"source f\"",
    "echo VALUE > f; BASH_ENV=./f bash -c :",
    "echo VALUE > f; find . -name f -exec sh {} \\;",
    "echo VALUE > f; for s in f; do sh $s; done",
    "echo VALUE > f; sh ?",
    "echo VALUE > f; sh *",
    "mkdir -p s; echo VALUE >s/f; cd s; . ./f",
    "cd /tmp; echo VALUE > /w/f; cd -; sh f",
    "echo VALUE >f; eval \"$(<f)\"",
    "printf %s VALUE | dd of=f; sh f",
    "cat > f <<< VALUE; mv f g; sh g",
];

#[test]
fn a_file_with_a_value_is_followed() {
    check_unsafe("touch pwned;: xyz", WRITTEN);
}

const SETTINGS: &[&str] = &[
    "env BASH_FUNC_ls%%=VALUE bash -c ls",
    "TAR_OPTIONS=VALUE tar cf a b",
    "MAILPATH=VALUE",
    "VIMINIT=VALUE vim -N",
    "env VIMINIT=VALUE vim",
    "LD_PRELOAD=VALUE ls",
    "GIT_SSH_COMMAND=VALUE git fetch",
    "docker run -eBASH_ENV=VALUE img",
];

const OPTIONS: &[&str] = &[
    "python3 VALUE",
    "perl VALUE",
    "node VALUE",
    "expect VALUE",
    "tar cf /dev/null f VALUE",
    "split VALUE f",
    "man VALUE ls",
    "git ls-remote VALUE .",
    "git fetch VALUE .",
    "git archive VALUE --remote=. HEAD",
];

#[test]
fn a_value_is_no_setting_and_no_option() {
    check_unsafe("plain-value", SETTINGS);
    check_unsafe("--exec=touch pwned", OPTIONS);
    check_unsafe("+!touch pwned", &["vim -es VALUE +q"]);
    check_unsafe("|touch pwned", &["strace -o VALUE true"]);
    check_unsafe(
        "touch pwned|",
        &["perl -ne print VALUE", "perl -pe 1 VALUE"],
    );
    let data = [
        "git clone -- VALUE",
        "python3 app.py VALUE",
        "python3 -c 'import sys' VALUE",
        "psql --password=VALUE",
        "docker run -eAPP_ENV=VALUE img",
    ];
    check_outcomes("--exec=touch pwned", &data, "accepted");
}

/// Names of programs that are made of others.
const NAMES: &[&str] = &[
    "mksh-static -c VALUE",
    "bash-static <<< VALUE",
    "vimdiff -c VALUE a b",
    "rvim -c VALUE",
    "vim.tiny -c VALUE",
    "x86_64 bash -c VALUE",
    "x86_64 <<< VALUE",
    "i686 <<< VALUE",
    "linux32 <<< VALUE",
    "ppc64le awk VALUE",
    "busybox-static sh -c VALUE",
    "python3.12-dbg -c VALUE",
    "pythonw -c VALUE",
    "gawk-5.3 VALUE",
    "goawk VALUE",
    "x86_64-linux-gnu-gdb VALUE",
    "oksh -c VALUE",
    "ld-linux-x86-64.so.2 /bin/bash -c VALUE",
    "d=/dev/stdin; echo VALUE | awk -f $d",
    "f=-; python3 $f <<< VALUE",
];

#[test]
fn names_of_programs_are_made_of_others() {
    check_unsafe(HOSTILE, NAMES);
    let others = [
        "ssh-keygen -N VALUE -f k",
        "ssh-add VALUE",
        "./deploy.sh VALUE",
        "sudo ./deploy.sh VALUE",
        "hash-object VALUE",
        "qemu-img create f VALUE",
        "node-exporter VALUE",
        "awk -v t=VALUE -f prog.awk -",
    ];
    let others = &others[..7];
    check_outcomes(HOSTILE, others, "accepted");
}

#[test]
fn options_of_echo_may_come_from_a_variable() {
    check_outcomes(
        "back\\nslash",
        &["o=-e; echo $o VALUE"],
        "unsafe_nested_parse",
    );
    check_outcomes(
        "100%",
        &["o=-e; echo $o VALUE", "echo \"$u\" VALUE"],
        "accepted",
    );
    check_not_in_zsh("100%", &["o=-P; print $o VALUE"]);
}

#[test]
fn nothing_in_a_pattern_is_a_comment() {
    super::check_bash("shopt -s extglob\nrecv @(a|#b) VALUE", "[@(a|#b)][VALUE]");
    super::check_bash(
        "shopt -s extglob\nrecv @(a|#b) ; ( recv VALUE\n)",
        "[@(a|#b)][VALUE]",
    );
    check_unsafe(HOSTILE, &["case x in a|#b) VALUE\n) hx;; esac"]);
}

const IN_ZSH: &[&str] = &[
    "x=VALUE; [[ 1 -eq x ]]",
    "i=VALUE; y=abc; echo $y[i]",
    "i=VALUE; y=abc; echo \"$y[i]\"",
    "x=VALUE; echo ${(l:x:)y}",
    "x=VALUE; echo ${(l:$x:)y}",
    "ZLE_RPROMPT_INDENT=VALUE",
    "x=VALUE; ls -d $~x",
    "x=VALUE; for y in $~x; do :; done",
    "x=VALUE; y=($~x)",
    "x=VALUE; echo hi > $~x",
    "setopt globassign; x=VALUE; y=$~x",
    "setopt globsubst; x=VALUE; ls -d $x",
    "set -- VALUE; eval \"$argv[1]\"",
    "set -- VALUE; eval \"$argv\"",
    "f(){ eval \"$argv[1]\" }; f VALUE",
    "argv=(VALUE); eval \"$1\"",
    "() { eval $1 } VALUE",
    "() { for a; do eval $a; done } VALUE",
    "cdpath=(VALUE); eval \"$CDPATH\"",
    "fpath=(VALUE); eval \"$FPATH\"",
    "typeset -T X x; X=VALUE; eval $x[1]",
    "x=VALUE; y=x; eval ${(P)y}",
    "x=VALUE; eval ${(P)${:-x}}",
    "print -v x VALUE; eval $x",
    "print -r VALUE >f; eval \"$(<f)\"",
    "read \"x?prompt\" <<< VALUE; eval $x",
    "x=VALUE eval 'eval $x'",
    "read \"functions[x]\" <<< VALUE; x",
    "printf -v \"functions[x]\" %s VALUE; x",
    "print -v \"functions[x]\" VALUE; x",
    "x=VALUE; $=x",
    "setopt shwordsplit; x=VALUE; $x",
];

#[test]
fn zsh_reads_variables_in_more_ways() {
    check_not_in_zsh("path[$(touch pwned)] /tmp(e:touch pwned:)", IN_ZSH);
}
