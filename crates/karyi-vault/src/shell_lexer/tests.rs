//! Contexts and commands of scripts. `@` is a placeholder.

use super::*;
use crate::interpreters::CodeWords;

/// Returns a script with placeholders for each `@`, and their ranges.
fn with_placeholders(text: &str) -> (String, Vec<Span>) {
    const PLACEHOLDER: &str = "$KARYI{K}";
    let (mut script, mut spans) = (String::new(), Vec::new());
    for (at, part) in text.split('@').enumerate() {
        if at > 0 {
            spans.push(script.len()..script.len() + PLACEHOLDER.len());
            script.push_str(PLACEHOLDER);
        }
        script.push_str(part);
    }
    (script, spans)
}

/// One letter for each kind of quoting, followed by `#` where the shell evaluates a number, and `!` where no value is
/// permitted.
fn shown(place: &Placement) -> String {
    let letter = match place.quoting {
        Quoting::Bare => "b",
        Quoting::Double => "d",
        Quoting::Single => "s",
        Quoting::Dollar => "D",
        Quoting::Text => "t",
        Quoting::Literal => "l",
        Quoting::Comment => "c",
    };
    let number = if place.is_number { "#" } else { "" };
    let refusal = if place.refusal.is_some() { "!" } else { "" };
    format!("{letter}{number}{refusal}")
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let (script, spans) = with_placeholders(text);
    let found = match read(&script, &spans) {
        Ok(read) => read
            .placements
            .iter()
            .map(shown)
            .collect::<Vec<_>>()
            .join(" "),
        Err(error) => error.why.to_owned(),
    };
    assert_eq!(found, expected, "{text}");
}

#[test]
fn quotes_are_recognised() {
    check("", "");
    check("r @ \"@\" '@' x@y $'\\t@' $\"@\"", "b d s b D d");
    check("r \"it's @\" 'a \"@\"' \"\\\"@\" a\\'@", "d s d b");
    check("r {a,@} a#@ # @ it's\nr @", "b b c b");
    check("r ${(j:@:)x} @ \"${(s.@.)x}\"", "b! b d!");
    check(
        "v=@; v+='@'; export V=\"@\"; a=(1 @ # @\n'@'); X=@ r",
        "b s d b c s b",
    );
    check(
        "[[ @ == \"@\" && x =~ ^(@|b) ]] && r @ || r '@'",
        "b d b b s",
    );
    check(
        "case @ in (y|'@') r no;; @) r \"@\";; esac; r @",
        "b s b d b",
    );
    check(
        "x=$(case a in a) r @;; b) r '@';; esac); r \"$x@\"",
        "b s d",
    );
    check("f() { r \"@\"; }; function g { r @; }; trap - INT", "d b");
    check(
        "for x in @ b; do r \"@\"; done; if r @; then :; fi",
        "b d b",
    );
    check("r <<< @; r < <(p @) > \"@\" 2>&1", "b b d");
    check(
        "r @(a|b)@; [[ x == (#i)@ || x =~ (;|#) ]] && r @",
        "b b b b",
    );
    check("(cat <<E) | r @\n@\nE\nr '@'", "b t s");
}

#[test]
fn placeholders_in_backslashes_and_names_are_refused() {
    for text in ["r \\@", "r \"\\@\"", "cat <<E\n\\@\nE"] {
        check(text, AFTER_BACKSLASH);
    }
    check("r \\\\@ '\\@'", "b s");
    for text in ["r ${@}", "r ${x@}", "r ${!@}"] {
        check(
            text,
            "a placeholder stands in the place of a variable's name",
        );
    }
}

#[test]
fn expansions_keep_the_quotes_around_them() {
    check("r \"$(p \"@\" '@' @)\" `p @` \"`p '@'`\"", "d s b b s");
    check("r \"${x:-@}\" ${x:-@} \"${x:-\"@\"}\" ${x-'@'}", "d b d s");
    // In a pattern quotes quote, even inside double quotes.
    check("r \"${x#@}\" \"${x%'@'}\" \"${x/a/@}\"", "b s b");
    check("r ${x/a/@} ${x:=@}; y=${x/a/@}", "b! b! b");
    check("r $x@ \"$x.@\" $1@ $$ @", "b d b b");
}

#[test]
fn arithmetic_takes_numbers() {
    check(
        "r $((@ + 1)) $[@] ${a[@]} ${x:@:1} \"$((1+@))\"",
        "t# t# t# t# t#",
    );
    check(
        "((x = @)); for ((i = @; i < 3; i++)); do r @; done",
        "t# t# b",
    );
    check("a[@]=1; a=([@]=1 @)", "t# t# b");
    check("r $(( $(p @) + ${x:-@} ))", "b t#");
    // A subshell in a substitution, or in another subshell.
    check("r $((p @); p '@') x; ((r @); r \"@\")", "b s b d");
}

#[test]
fn here_documents_end_at_their_lines() {
    check("cat <<E | r\na @ \"@\" '@'\nE\nr @", "t t t b");
    check("cat <<'E' | r '@'\n@ \"it's\nE\nr @", "s l b");
    check("cat <<-\\E\n\t@\n\tE\nr '@'", "l s");
    check(
        "r <<A; r <<B\n@\nA\n$(p '@') `p @` ${x:-@}\nB\nr \"@\"",
        "t s b t d",
    );
    check("cat <<E\na\\\nE\n@\nE\nr '@'", "t s");
    check("x=$(cat <<E\n@\nE\n); r '@'", "t s");
    check(
        "cat <<@\n@\n",
        "a placeholder stands in the delimiter of a here-document",
    );
}

#[test]
fn code_of_this_shell_is_read_as_such() {
    check(
        "trap 'r \"@\" @' EXIT; alias x='r @' y='r \"@\"'; eval 'r \"@\"'",
        "d b b d d",
    );
    check(
        "eval 'r \"@\"' x; trap \"r @\" INT; trap 'r '\"'@'\" INT",
        "s d d",
    );
    check(
        "f() { trap 'case x in x) r \"@\";; esac' EXIT; }; r @",
        "d b",
    );
    // Not a complete script.
    check("alias x='r \"@'", "s");
}

#[test]
fn unreadable_scripts_are_refused() {
    for (text, why) in [
        ("r '@", "a single quote is not closed"),
        ("r \"@", "a double quote is not closed"),
        ("r `@", "a backtick is not closed"),
        ("r $(@", "a parenthesis is not closed"),
        ("r ${x:-@", "a brace is not closed"),
        ("r $((@", "a parenthesis is not closed"),
        ("r @)", "a parenthesis is closed that was not opened"),
        (
            "r x(@)",
            "a placeholder stands in the parentheses of a pattern of files",
        ),
        (
            "exec {a[@]}<x",
            "a placeholder stands in the place of a variable's name",
        ),
    ] {
        let (script, spans) = with_placeholders(text);
        let found = read(&script, &spans).err().map_or("", |error| error.why);
        assert_eq!(found, why, "{text}");
    }
    let deep = format!("r {}@{}", "$(r ".repeat(200), ")".repeat(200));
    check(&deep, "quotes and substitutions are nested too deeply");
    check(
        &"((".repeat(10_000),
        "quotes and substitutions are nested too deeply",
    );
}

/// A script cut at any byte is parsed or refused, without a panic.
#[test]
fn every_start_of_a_script_is_read() {
    let (script, spans) = with_placeholders(
        "a=(1 @); f() { trap 'r \"@\"' 0; }; case @ in a|@) x=${y/@/'@'};; esac; cat <<'E' $((1 + @)) `p @`\né@\nE\n[[ @ =~ @ ]] && r <<<\"$(p @)\" # @\n",
    );
    for end in (0..=script.len()).filter(|end| script.is_char_boundary(*end)) {
        let spans: Vec<Span> = spans
            .iter()
            .filter(|span| span.end <= end)
            .cloned()
            .collect();
        if let Ok(read) = read(&script[..end], &spans) {
            assert_eq!(read.placements.len(), spans.len(), "{}", &script[..end]);
        }
    }
    assert!(read(&script, &spans).is_ok());
}

/// Returns the simple commands: depth, assignments, words, redirections; `?` after those that are not final.
fn commands(script: &str) -> Vec<String> {
    let read = read(script, &[]).unwrap();
    let shown = read.simple_commands().map(|command| {
        let assigned = command
            .assignments
            .iter()
            .map(|a| format!("{}={}", a.name, a.value));
        let words = command.words.iter().map(|word| word.text.clone());
        let redirected = command.redirections.iter().map(|r| {
            let descriptor = r.descriptor.as_deref().unwrap_or_default();
            format!("{descriptor}{}{}", r.operator, r.target.text)
        });
        let parts: Vec<String> = assigned.chain(words).chain(redirected).collect();
        let doubt = if command.is_certain() { "" } else { " ?" };
        format!("{} {}{doubt}", command.depth, parts.join("|"))
    });
    shown.collect()
}

/// Scripts with their simple commands.
const COMMANDS: &[(&str, &[&str])] = &[
    ("ls -l 'a b' \"c d\" e\\ f", &["0 ls|-l|a b|c d|e f"]),
    (
        "A=1 B='x y' make -j4 >out 2>&1 <in",
        &["0 A=1|B=x y|make|-j4|>out|2>&1|<in"],
    ),
    ("rm -rf $DIR *.o ~/x", &["0 rm|-rf|$DIR|*.o|~/x ?"]),
    (
        "if test -f a; then cat a | sort; else false; fi && ! x &",
        &["0 test|-f|a", "0 cat|a", "0 sort", "0 false", "0 x"],
    ),
    (
        "for f in a b; do rm \"$f\"; done; while read -r l; do :; done <x",
        &["0 rm|$f ?", "0 read|-r|l", "0 :", "0 <x"],
    ),
    (
        "x=$(git log | head); (cd a; ls) `pwd`",
        &[
            "0 x=$(git log | head) ?",
            "1 git|log",
            "1 head",
            "1 cd|a",
            "1 ls",
            "0 `pwd` ?",
            "1 pwd",
        ],
    ),
    (
        "f() { ls; }; function g { pwd; }; f",
        &["0 ls", "0 pwd", "0 f"],
    ),
    (
        "case $x in a|b) one;; *) two ;; esac; three",
        &["0 one", "0 two", "0 three"],
    ),
    ("[[ -f x && $y == z ]] || ((n > 1)); echo", &["0 echo"]),
    (
        "cat <<'E' | wc -l\nrm -rf /\nE\nls",
        &["0 cat|<<E", "0 wc|-l", "0 ls"],
    ),
    (
        "trap 'rm -f t' EXIT; eval 'ls a'",
        &["0 trap|rm -f t|EXIT", "0 eval|ls a", "1 rm|-f|t", "1 ls|a"],
    ),
    (
        "time -p sleep 1; echo a{b,c}; $cmd x",
        &["0 sleep|1", "0 echo|a{b,c} ?", "0 $cmd|x ?"],
    ),
    ("a=(1 2); echo ok # no", &["0 a=( ?", "0 echo|ok"]),
    ("x= [[ a >b; >c if y", &["0 x=|[[|a|>b", "0 if|y|>c"]),
    (
        "a[1]=x b; [ -f a ]; ls a['x'] [\"y\"] a{",
        &["0 a[1]=x|b ?", "0 [|-f|a|]", "0 ls|a[x]|[y]|a{ ?"],
    ),
    (
        "a >>&b; a >&|b; a >&!b; a >>&|b; a >>&!b; a &>>b; a &>|b",
        &[
            "0 a|>>&b",
            "0 a|>&|b",
            "0 a|>&!b",
            "0 a|>>&|b",
            "0 a|>>&!b",
            "0 a|>>b",
            "0 a|>|b",
        ],
    ),
    (
        "a > ; b >&2 >|c\nd <",
        &["0 a|> ?", "0 b|>&2|>|c", "0 d|< ?"],
    ),
    (
        "=a b; a =b ='c' c=d \"\"=e; [ a = b ] == c",
        &["0 =a|b ?", "0 a|=b|=c|c=d|=e ?", "0 [|a|=|b|]|==|c"],
    ),
    (
        "diff <(sort a) <(sort b) &>/dev/null",
        &[
            "0 diff|<(sort a)|<(sort b)|>/dev/null ?",
            "1 sort|a",
            "1 sort|b",
        ],
    ),
];

#[test]
fn simple_commands_are_listed() {
    for (script, expected) in COMMANDS {
        assert_eq!(&commands(script), expected, "{script}");
    }
}

/// Returns the names of the interpreters whose code contains the placeholders.
fn readers(text: &str) -> String {
    let (script, spans) = with_placeholders(text);
    let read = read(&script, &spans).unwrap();
    let found = read.placements.iter().map(|place| {
        let reader = match place.site {
            Site::Word(command, word) => CodeWords::of(&read.commands[command]).reader_of(word),
            Site::Input(command) => CodeWords::of(&read.commands[command]).input,
            Site::Other => None,
        };
        reader.map_or("-", |reader| reader.name).to_owned()
    });
    found.collect::<Vec<_>>().join(" ")
}

#[test]
fn code_is_recognised_by_position() {
    for (text, expected) in [
        (
            "curl -H \"A: @\" h; X=@ sh -c 'r \"$X\"'; sh -c 'r' _ @",
            "- - -",
        ),
        (
            "bash -c 'r @' @; sudo -u x /bin/sh -lc \"r @\"; docker exec c sh -c '@'",
            "bash - /bin/sh sh",
        ),
        (
            "timeout 5 bash -euc @; find . -exec sh -c '@' \\;; xargs -0 sh -c @",
            "bash sh sh",
        ),
        ("bash script.sh @; sh @; bash -x @", "- - -"),
        (
            "python3 -c 'x=\"@\"'; python3.11 x.py @; perl -ne '@' @; node --eval=@ -e @",
            "python3 - perl - node node",
        ),
        (
            "psql -h db -c \"@\" -U @; mysql -p@ -e '@'; psql --command=@",
            "psql - - mysql psql",
        ),
        (
            "sqlite3 @ 'select @'; awk -v x=@ '@' @; sed -i 's/x/@/' @; sed -e @ @; sed -i '' s/@/x/ f",
            "- sqlite3 awk awk - sed - sed - sed",
        ),
        (
            "jq -r '.x = @' @; jq --arg x @ '.y = @'; printf '@' @; printf -v x @ @",
            "jq - - jq printf - printf -",
        ),
        (
            "ssh -i @ -p 22 h 'x @'; sshpass -p @ ssh h @; make X=@; eval \"x @\"",
            "- ssh - ssh make eval",
        ),
        (
            "bash <<E\n@\nE\nbash x.sh <<E\n@\nE\npython3 - <<'E'\n@\nE\npython3 x.py <<<@",
            "bash - python3 -",
        ),
        (
            "ssh h <<E\n@\nE\nssh h 'cat > f' <<E\n@\nE\nssh h bash -s <<E\n@\nE\nssh h 'python3 -' <<<@",
            "ssh - bash python3",
        ),
        (
            "docker exec -i c psql -U x <<E\n@\nE\ncat <<E | bash\n@\nE",
            "psql -",
        ),
        (
            "docker run --name node -e X=@ i; git commit -m jq @; echo @ printf @",
            "- - - -",
        ),
        (
            "trap \"r @\" INT; eval 'r \"@\"'; alias x=\"r @\"; crontab - <<< \"* @\"",
            "trap - alias crontab",
        ),
    ] {
        assert_eq!(readers(text), expected, "{text}");
    }
}

#[test]
fn expansions_that_may_run_unlisted_code_are_doubted() {
    let check = |script: &str, expected: &[&str]| {
        let read = read(script, &[]).unwrap();
        let found = read.doubts.iter().map(|span| &script[span.clone()]);
        assert_eq!(found.collect::<Vec<_>>(), expected, "{script}");
    };
    check(
        "r $x ${x} ${#x} ${x:-a} ${x%a} ${x/a/b} \"${x[@]}\" ${x[1]} ${x:1:2}",
        &[],
    );
    check("r $((1 + 2)) '$((x))' $? ${!}", &[]);
    check("r $((x + 1)); ((y++)); a[i]=1", &["x + 1)", "y++)", "i]"]);
    check(
        "r ${!x} ${x@P} ${x:=y} ${x=y} ${(e)x} $x[1]",
        &["!", "@", ":", "=", "(e)", "["],
    );
    check(
        "r ${x::=y} \"$~x\" $=x $^1 $+x $~ '$~x' \"$\" a$ $\"x\"",
        &[":", "$~", "$=", "$^", "$+"],
    );
    check("r `p` `p \\`q\\`` \"$(p $[x])\"", &["`p \\`q\\``", "x]"]);
    check("cat <<E\n$((x))\nE\ncat <<'E'\n$((y))\nE", &["x)"]);
}
