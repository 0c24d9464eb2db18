//! Code in code: what a shell inside of the script makes of the variables it inherits, and what a changed `IFS`
//! makes of values that are one word otherwise.

use super::check_outcomes;
use super::ways::check_unsafe;

/// Harmless where a value is one word.
const SAFE: &str = "touch,pwned";

const SPLIT: &[&str] = &[
    "IFS=,; x=VALUE; $x",
    "x=VALUE; IFS=, ; $x",
    "read IFS <<< ,; x=VALUE; $x",
    "export IFS=,; x=VALUE; $x",
    "declare IFS=,; x=VALUE; $x",
    "printf -v IFS ,; x=VALUE; $x",
    "for IFS in ,; do $x; done; x=VALUE",
    ": ${IFS:=,}; x=VALUE; $x",
    "f(){ local IFS=,; $1; }; f VALUE",
    "IFS=,; x=VALUE; set -- $x; \"$@\"",
    "IFS=,; x=VALUE; a=($x); \"${a[@]}\"",
    "IFS=,; x=VALUE; y=$x; $y",
    "IFS=,; x=VALUE; eval $x",
    "IFS=,; x=VALUE; eval \"echo\" $x",
    "IFS=,; x=VALUE; bash -c \"$(echo $x)\"",
    "IFS=,; x=VALUE; echo $x | sh",
    "IFS=,; x=VALUE; sh <<< $(echo $x)",
    "IFS=,; $(echo VALUE)",
    "IFS=,; eval $(echo VALUE)",
    "IFS=, read -r a b <<< VALUE; $a $b",
    "IFS=,; x=VALUE; sudo $x",
    "IFS=,; x=VALUE; timeout 5 $x",
    "x=VALUE; ${x/,/ }",
    "x=VALUE; y=${x//,/ }; $y",
    "x=VALUE; eval \"${x/,/ }\"",
    "x=VALUE; bash -c \"${x/,/$' '}\"",
];

#[test]
fn a_value_is_one_word_whatever_ifs_is() {
    check_unsafe(SAFE, SPLIT);
    let data = [
        "x=VALUE; $x",
        "x=VALUE; eval \"echo $x\"",
        "while IFS= read -r l; do hx \"$l\"; done <<< VALUE",
        "IFS=, read -r a b <<< VALUE; hx \"$a\" \"$b\"",
        "IFS=,; x=VALUE; hx $x",
        "IFS=$'\\n'; for l in $(hx VALUE); do echo \"$l\"; done",
        "x=VALUE; hx \"${x//,/ }\"",
    ];
    check_outcomes(SAFE, &data, "accepted");
}

/// `Y` is the code of another shell.
const INNER: &[&str] = &[
    "export X=VALUE; bash -c Y",
    "X=VALUE bash -c Y",
    "X=VALUE; export X; sh -ec Y",
    "env X=VALUE bash -c Y",
    "sudo X=VALUE bash -c Y",
    "docker run -e X=VALUE img sh -c Y",
    "docker run --env=X=VALUE img sh -c Y",
    "export X=VALUE; sudo -E bash -c Y",
    "export X=VALUE; timeout 5 bash -c Y",
    "export X=VALUE; echo a | xargs sh -c Y",
    "export X=VALUE; find . -exec sh -c Y \\;",
    "export X=VALUE; su -c Y",
    "export X=VALUE; flock f -c Y",
    "export X=VALUE; cd \"$d\" && bash -lc Y _ \"$d\"",
    "export X=VALUE; f(){ bash -c Y; }; f",
    "export X=VALUE; bash <<< Y",
    "export X=VALUE; echo Y | bash",
    "export X=VALUE; n=$(bash -c Y)",
];

const INNER_CODE: &[&str] = &[
    "'eval \"$X\"'",
    "'$X'",
    "'eval \"echo $X\"'",
    "'. \"$X\" '",
    "'((X))'",
    "'echo $((X+1))'",
    "'[[ X -eq 1 ]]'",
    "'y=$X; (( y ))'",
    "'let n=X'",
    "'a[X]=1'",
    "'sh -c \"$X\"'",
    "'echo \"$X\" | sh'",
    "'python3 -c \"$X\"'",
    "'bash -c \"eval \\\"\\$X\\\"\"'",
    "\"eval \\\"\\$X\\\"\"",
    "'echo ${X@P}'",
    "'y=X; echo ${!y}'",
    "'eval \"${y[@]}\"'",
    "'f(){ eval \"$1\"; }; f \"$X\"'",
];

const HOSTILE: &str = "a[$(touch pwned)] '\"";

#[test]
fn code_of_an_inner_shell_is_read() {
    let mut scripts = Vec::new();
    for outer in INNER {
        scripts.extend(INNER_CODE.iter().map(|code| outer.replace('Y', code)));
    }
    scripts.push("export X=VALUE; bash <<'E'\neval \"$X\"\nE".into());
    scripts.push("export X=VALUE; bash -s <<E\neval \"\\$X\"\nE".into());
    let long = format!(
        "export X=VALUE; bash -c '{}; eval \"$X\"'",
        "echo abc; ".repeat(200)
    );
    scripts.push(long);
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    check_unsafe(HOSTILE, &scripts);
}

#[test]
fn code_of_an_inner_shell_may_use_a_value_as_data() {
    let long = format!(
        "export X=VALUE; bash -c '{} hx \"$X\"'",
        "echo abc; ".repeat(200)
    );
    let data = [
        "X=VALUE bash -c 'curl -H \"$X\" h'",
        "export X=VALUE; bash -c 'for i in 1 2 3; do curl -H \"$X\" h && break; sleep 1; done'",
        "export X=VALUE; bash -c 'r=$(curl -H \"$X\" h); echo \"$r\"'",
        "export X=VALUE; bash -c 'y=$X; curl -H \"$y\" h'",
        "export X=VALUE; bash -c 'n=0; while [ $n -lt 3 ]; do curl \"$X\"; n=$((n+1)); done'",
        "env X=VALUE sh -c 'hx \"$X\"'",
        "docker run -e X=VALUE img sh -c 'hx \"$X\"'",
        "export X=VALUE; bash <<'E'\nhx \"$X\"\nE",
        "export X=VALUE; bash -c \"cd $d && hx \\\"\\$X\\\"\"",
        "export X=VALUE; ssh h 'eval \"$(foo)\"; bar'",
        "export X=VALUE; ssh h bash -s <<'E'\n. ~/.profile\nbar\nE",
        "export X=VALUE; sudo -E make install",
        "export X=VALUE; find . -name a -exec sh -c 'hx \"$1\" \"$X\"' _ {} \\;",
        "X=VALUE bash -c '[ -n \"$X\" ] && hx'",
        &long,
    ];
    check_outcomes(HOSTILE, &data, "accepted");
}

const CONTENT: &[&str] = &[
    "bash -c '. \"$1\"' _ FILE",
    "bash -c 'source $1' _ FILE",
    "bash -c 'eval \"$(cat \"$1\")\"' _ FILE",
    "bash -c 'sh \"$1\"' _ FILE",
    "bash -c 'cat \"$1\" | sh' _ FILE",
    "bash -c 'bash < \"$1\"' _ FILE",
    "bash -c 'for f; do . \"$f\"; done' _ FILE",
    "bash -c '. \"$@\"' _ FILE",
    "bash -c '. \"$0\"' FILE",
    "sudo bash -c '. \"$1\"' _ FILE",
    "bash -c 'read -r n < \"$1\"; ((n))' _ FILE",
    "bash -c 'python3 \"$1\"' _ FILE",
    "bash -c \"cd $d; . \\\"\\$1\\\"\" _ FILE",
    "x=FILE; bash -c '. \"$1\"' _ \"$x\"",
    "export X=FILE; bash -c '. \"$X\"'",
    "X=FILE bash -c 'sh \"$X\"'",
    "f(){ . \"$1\"; }; f FILE",
    "f(){ sh \"$1\"; }; f FILE",
    "f(){ cat \"$1\" | sh; }; f FILE",
    "set -- FILE; . \"$1\"",
    "bash -s FILE <<'E'\n. \"$1\"\nE",
    "find FILE -exec sh -c '. \"$1\"' _ {} \\;",
    "echo FILE | xargs sh",
    "echo FILE | while read -r f; do . \"$f\"; done",
    "bash -c 'bash -c \". \\\"\\$1\\\"\" _ \"$1\"' _ FILE",
];

fn with_file(scripts: &[&str]) -> Vec<String> {
    let named = scripts.iter();
    named
        .map(|script| script.replace("FILE", "$KARYI{V0|file}"))
        .collect()
}

#[test]
fn what_a_file_holds_is_followed_into_an_inner_shell() {
    let scripts = with_file(CONTENT);
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    check_unsafe("touch pwned;: xyz", &scripts);
    let data = with_file(&[
        "bash -c 'curl -K \"$1\"' _ FILE",
        "bash -c 'x=$(cat \"$1\"); curl -H \"$x\" h' _ FILE",
        "bash -c \"cd $d; curl -K \\\"\\$1\\\"\" _ FILE",
        "sudo sh -c 'install -m 600 \"$1\" /etc/key' _ FILE",
        "X=FILE bash -c 'ssh -i \"$X\" host'",
        "export GOOGLE_APPLICATION_CREDENTIALS=FILE; bash -c 'gcloud auth list'",
    ]);
    let data: Vec<&str> = data.iter().map(String::as_str).collect();
    check_outcomes("touch pwned;: xyz", &data, "accepted");
}

const NAMED: &[&str] = &[
    "x=VALUE; n=$(( $(echo x) ))",
    "v=VALUE; n=$(echo v); (( n ))",
    "v=VALUE; n=`echo v`; (( n ))",
    "v=VALUE; read n <<< v; (( n ))",
    "v=VALUE; echo v | { read n; ((n)); }",
    "v=VALUE; while read n; do ((n)); done <<E\nv\nE",
    "v=VALUE; n=$(cat <<< v); [[ n -eq 1 ]]",
    "v=VALUE; n=$(printf %s v+1); [[ $n -eq 1 ]]",
    "v=VALUE; set -- v; (( $1 ))",
    "f(){ (( $1 > 0 )); }; v=VALUE; f v",
    "v=VALUE; n=\"v+1\"; (( n ))",
    "declare -n r=v; v=VALUE; (( r ))",
    "export N=VALUE; n=$(printenv N); (( n ))",
    "export N=VALUE; (( $(printenv N) ))",
    "v=VALUE; a=(v); (( a[0] ))",
    "v=VALUE; a=(v); (( ${a[0]} ))",
    "v=VALUE; for n in v; do [[ $n -gt 0 ]]; done",
    "v=VALUE; [[ v =~ (.) ]]; (( BASH_REMATCH ))",
    "v=VALUE; mapfile -t a <<< v; (( a ))",
    "v=VALUE; case x in x) n=v;; esac; let n++",
    "v=VALUE; declare n=v; echo ${a[n]}",
    "v=VALUE; : ${n:=v}; (( n ))",
    "v=VALUE; (( ${n:-v} ))",
    "v=VALUE; printf -v n v; (( n ))",
    "v=VALUE; echo $(( $(bash -c 'echo v') ))",
    "v=VALUE; n=$(tr a-z A-Z <<< V); echo v > f; (( $(cat f) ))",
];

#[test]
fn a_name_is_followed_through_what_is_printed() {
    check_unsafe(HOSTILE, NAMED);
    let data = [
        "token=VALUE; n=$(( $(curl -H \"A: $token\" h | jq .n) + 1 ))",
        "token=VALUE; [ \"$(curl -s -w '%{http_code}' -H \"A: $token\" h)\" -eq 200 ] && hx",
        "token=VALUE; n=$(grep token f | wc -l); (( n > 0 )) && hx \"$token\"",
        "token=VALUE; echo \"token is set\"; n=$(date +%s); echo $((n - 1))",
        "x=VALUE; n=$(wc -l < f); echo $((n + 1)); hx \"$x\"",
    ];
    check_outcomes(HOSTILE, &data, "accepted");
}
