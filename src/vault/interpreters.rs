//! Programs that read code: where their code stands in a command, and the way out where a value cannot.
//!
//! A value in the code of another reader is no literal piece any more, so that only harmless characters pass
//! there. The check goes by place alone. To list another reader, add a row to [`INTERPRETERS`]; a test runs its
//! way out.

use super::shell_lexer::{SimpleCommand, Site, Word, is_declaration, is_modifier};

/// Language of a reader, which decides the characters that are harmless in its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::vault) enum Language {
    /// The command language of a shell.
    Shell,
    /// Any other one.
    Other,
}

/// Place of the code among the words of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    /// After an option: `-c CODE`. A letter also counts among others (`-lc`), or before its value (`-eCODE`).
    Option(&'static [&'static str]),
    /// After such an option, else the first operand.
    OptionOrFirst(&'static [&'static str]),
    /// In each operand behind the first.
    BehindFirst,
    /// In the first operand.
    First,
    /// In every word.
    All,
}

/// Program that reads code.
#[derive(Debug)]
pub(in crate::vault) struct Interpreter {
    /// Names; a version may follow.
    pub(in crate::vault) names: &'static [&'static str],
    language: Language,
    code: Code,
    /// Letters of options that take the next word, which is then no operand.
    valued: &'static str,
    /// Whether it reads code from its input when no other code is given.
    reads_input: bool,
    /// Way out, with `NAME` for the secret.
    pub(in crate::vault) way_out: &'static str,
}

const fn interpreter(
    names: &'static [&'static str],
    code: Code,
    valued: &'static str,
    reads_input: bool,
    way_out: &'static str,
) -> Interpreter {
    Interpreter {
        names,
        language: Language::Other,
        code,
        valued,
        reads_input,
        way_out,
    }
}

impl Interpreter {
    const fn shell(self) -> Self {
        Self {
            language: Language::Shell,
            ..self
        }
    }

    /// Whether a value may stand in its code.
    pub(in crate::vault) fn is_harmless(&self, value: &str) -> bool {
        let signs: &[u8] = match self.language {
            Language::Shell => b"_./:@%+,=-",
            Language::Other => b"_.:+,=-",
        };
        let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || signs.contains(&byte);
        value.bytes().all(is_harmless)
    }
}

/// The programs, each with its way out.
pub(in crate::vault) const INTERPRETERS: &[Interpreter] = &[
    interpreter(
        &["sh", "bash", "zsh", "dash", "ksh", "mksh", "ash"],
        Code::Option(&["-c"]),
        "oO",
        true,
        "X=\"$KARYI{NAME}\" sh -c 'printf %s \"$X\"'",
    )
    .shell(),
    interpreter(
        &["su", "runuser"],
        Code::Option(&["-c", "--command"]),
        "gGsw",
        true,
        "printf %s \"$KARYI{NAME}\" | su USER -c 'X=$(cat); printf %s \"$X\"'",
    )
    .shell(),
    interpreter(
        &["eval"],
        Code::All,
        "",
        false,
        "eval 'printf %s \"$KARYI{NAME}\"'",
    )
    .shell(),
    interpreter(
        &["trap"],
        Code::All,
        "",
        false,
        "trap 'printf %s \"$KARYI{NAME}\"' EXIT",
    )
    .shell(),
    interpreter(
        &["alias"],
        Code::All,
        "",
        false,
        "alias x='printf %s \"$KARYI{NAME}\"'",
    )
    .shell(),
    interpreter(
        &["ssh"],
        Code::BehindFirst,
        "BbcDEeFIiJLlmOoPpQRSWw",
        true,
        "printf %s \"$KARYI{NAME}\" | ssh HOST 'X=$(cat); printf %s \"$X\"'",
    )
    .shell(),
    interpreter(
        &["crontab"],
        Code::All,
        "u",
        true,
        "install -m 600 \"$KARYI{NAME|file}\" FILE; (crontab -l; echo '0 5 * * * X=$(cat FILE); printf \\%s \"$X\"') | crontab -",
    )
    .shell(),
    interpreter(
        &["make", "gmake"],
        Code::All,
        "",
        false,
        "X=\"$KARYI{NAME}\" make --eval='all: ; @printf %s \"$$X\"' all",
    )
    .shell(),
    interpreter(
        &["source", "."],
        Code::Option(&[]),
        "",
        true,
        "X=\"$KARYI{NAME}\"; . /dev/stdin <<< 'printf %s \"$X\"'",
    )
    .shell(),
    interpreter(
        &["python"],
        Code::Option(&["-c"]),
        "WX",
        true,
        "X=\"$KARYI{NAME}\" python3 -c 'import os; print(os.environ[\"X\"])'",
    ),
    interpreter(
        &["perl"],
        Code::Option(&["-e", "-E"]),
        "",
        true,
        "X=\"$KARYI{NAME}\" perl -e 'print $ENV{X}'",
    ),
    interpreter(
        &["ruby"],
        Code::Option(&["-e"]),
        "rI",
        true,
        "X=\"$KARYI{NAME}\" ruby -e 'print ENV[\"X\"]'",
    ),
    interpreter(
        &["node", "nodejs"],
        Code::Option(&["-e", "-p", "--eval", "--print"]),
        "r",
        true,
        "X=\"$KARYI{NAME}\" node -e 'process.stdout.write(process.env.X)'",
    ),
    interpreter(
        &["php"],
        Code::Option(&["-r"]),
        "dc",
        true,
        "X=\"$KARYI{NAME}\" php -r 'echo getenv(\"X\");'",
    ),
    interpreter(
        &["psql"],
        Code::Option(&["-c", "--command"]),
        "dhpUfvFPRTLo",
        true,
        "psql -v x=\"$KARYI{NAME}\" <<< \"SELECT :'x'\"",
    ),
    interpreter(
        &["mysql", "mariadb"],
        Code::Option(&["-e", "--execute"]),
        "DhuPS",
        true,
        "mysql -e \"SELECT UNHEX('$(printf %s \"$KARYI{NAME}\" | od -An -v -tx1 | tr -d ' \\n')')\"",
    ),
    interpreter(
        &["sqlite3"],
        Code::BehindFirst,
        "",
        true,
        "sqlite3 FILE \"SELECT CAST(x'$(printf %s \"$KARYI{NAME}\" | od -An -v -tx1 | tr -d ' \\n')' AS TEXT)\"",
    ),
    interpreter(
        &["mongosh", "mongo"],
        Code::Option(&["--eval"]),
        "",
        true,
        "X=\"$KARYI{NAME}\" mongosh --eval 'print(process.env.X)'",
    ),
    interpreter(
        &["awk", "gawk", "mawk"],
        Code::OptionOrFirst(&["-v", "-e", "--source", "--assign"]),
        "Ff",
        false,
        "X=\"$KARYI{NAME}\" awk 'BEGIN { printf \"%s\", ENVIRON[\"X\"] }'",
    ),
    interpreter(
        &["sed", "gsed"],
        Code::OptionOrFirst(&["-e", "--expression"]),
        "fl",
        false,
        "X=\"$KARYI{NAME}\" perl -pe 's/__X__/$ENV{X}/' FILE",
    ),
    interpreter(
        &["jq"],
        Code::First,
        "fL",
        false,
        "jq --arg x \"$KARYI{NAME}\" '.x = $x' FILE",
    ),
    interpreter(
        &["printf"],
        Code::First,
        "v",
        false,
        "printf '%s' \"$KARYI{NAME}\"",
    ),
];

/// Programs that run the command behind their options.
const WRAPPERS: &[&str] = &[
    "builtin", "chroot", "command", "doas", "docker", "env", "exec", "find", "ionice", "kubectl",
    "nerdctl", "nice", "nohup", "noglob", "podman", "setsid", "ssh", "sshpass", "stdbuf", "sudo",
    "time", "timeout", "watch", "xargs",
];

/// Wrappers whose command does not get the environment of theirs.
const BARRIERS: &[&str] = &["doas", "docker", "kubectl", "nerdctl", "podman", "sudo"];

/// Reader of code in a command.
#[derive(Debug)]
pub(in crate::vault) struct Reader<'a> {
    /// Program in the table.
    pub(in crate::vault) interpreter: &'static Interpreter,
    /// Its name in the script.
    pub(in crate::vault) name: &'a str,
    /// Command that hands over any value, with `NAME` for the secret.
    way_out: &'static str,
    /// Wrapper before it that hands it no environment.
    barrier: Option<&'a str>,
}

impl Reader<'_> {
    /// Returns a command that hands a value of any characters to its code.
    pub(in crate::vault) fn way_out(&self, name: &str) -> String {
        let own = self.way_out;
        let code = own.strip_prefix("X=\"$KARYI{NAME}\" ");
        let way_out = match (self.barrier, code) {
            (Some(barrier), Some(code)) => on_input(barrier, code),
            _ => own.to_owned(),
        };
        way_out.replace("NAME", name)
    }
}

/// Returns a command that hands the value over on its input, since its environment does not pass.
fn on_input(barrier: &str, code: &str) -> String {
    let barrier = match barrier.rsplit('/').next().unwrap_or_default() {
        "docker" | "podman" | "nerdctl" => "docker exec -i CONTAINER",
        "kubectl" => "kubectl exec -i POD --",
        barrier => barrier,
    };
    format!("printf %s \"$KARYI{{NAME}}\" | {barrier} sh -c 'export X=\"$(cat)\"; \"$@\"' _ {code}")
}

/// Returns the reader in whose code a placeholder stands.
pub(in crate::vault) fn reader_at(commands: &[SimpleCommand], site: Site) -> Option<Reader<'_>> {
    match site {
        Site::Other => None,
        Site::Word(command, word) => {
            let words = &commands.get(command)?.words;
            (0..words.len()).find_map(|at| reads_word(words, at, word))
        }
        Site::Input(command) => {
            let words = &commands.get(command)?.words;
            (0..words.len()).find_map(|at| reads_input(words, at))
        }
    }
}

/// Whether the command in which a placeholder stands calculates with its word, or takes that for a variable's name,
/// whose index it would calculate.
pub(in crate::vault) fn calculates(commands: &[SimpleCommand], site: Site) -> bool {
    let Site::Word(command, at) = site else {
        return false;
    };
    let words = commands
        .get(command)
        .map(|command| command.words.as_slice());
    let words = words.unwrap_or_default();
    let start = words
        .iter()
        .take_while(|word| is_modifier(&word.text))
        .count();
    let text = |at: usize| words.get(at).map_or("", |word| word.text.as_str());
    let has_option = |letters: &[char]| {
        let options = words.iter().skip(start + 1).map(|word| word.text.as_str());
        let mut options = options.take_while(|text| text.starts_with(['-', '+']));
        options.any(|option| option.contains(letters))
    };
    let before = at.checked_sub(1).map_or("", text);
    let is_in_name = || {
        text(at)
            .split('=')
            .next()
            .is_some_and(|name| name.contains("$KARYI"))
    };
    match text(start).trim_start_matches('{') {
        "let" | "exit" | "return" | "shift" | "break" | "continue" | "repeat" => true,
        "integer" | "float" => true,
        name if is_declaration(name) => has_option(&['i', 'E', 'F', 'n']) || is_in_name(),
        "unset" | "read" | "getopts" | "mapfile" | "readarray" | "getln" => {
            !text(at).starts_with('-')
        }
        "printf" | "print" | "set" | "wait" => matches!(before, "-v" | "-A" | "-p"),
        "[[" | "[" | "test" => {
            NUMBER_TESTS.contains(&before) || NUMBER_TESTS.contains(&text(at + 1)) || before == "-v"
        }
        _ => false,
    }
}

/// Operators of `test` that compare numbers.
const NUMBER_TESTS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-t"];

/// Returns the reader whose name is the word at `at`, if it reads code from its input.
fn reads_input(words: &[Word], at: usize) -> Option<Reader<'_>> {
    let reader = reader(words, at)?;
    let arguments = words.get(at + 1..).unwrap_or_default();
    let operands = operands(reader.interpreter, arguments);
    let is_input =
        |word: &str| matches!(word, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0");
    let reads = match reader.interpreter.code {
        _ if !reader.interpreter.reads_input => false,
        Code::BehindFirst if reader.name.ends_with("ssh") => match operands.as_slice() {
            [] => false,
            [_] => true,
            [_, command @ ..] => return remote(arguments, command),
        },
        Code::BehindFirst => operands.len() < 2,
        Code::Option(options) => {
            let has_code = arguments.iter().any(|word| is_option(options, &word.text));
            let is_query = matches!(
                options,
                ["-c", "--command"] | ["-e", "--execute"] | ["--eval"]
            );
            let first = operands.first().map(|at| arguments[*at].text.as_str());
            let reads_all = arguments.iter().any(|word| word.text == "-s");
            !has_code
                && (is_query
                    || reads_all
                    || first.is_none_or(is_input) && !options.is_empty()
                    || options.is_empty() && first.is_some_and(is_input))
        }
        Code::All => operands
            .first()
            .is_none_or(|at| is_input(&arguments[*at].text)),
        Code::OptionOrFirst(_) | Code::First => false,
    };
    reads.then_some(reader)
}

/// Returns the reader of input in the command that `ssh` runs: its operands behind the host.
fn remote<'a>(arguments: &'a [Word], command: &[usize]) -> Option<Reader<'a>> {
    let [first, rest @ ..] = command else {
        return None;
    };
    // One word may be a whole command.
    let mut names = arguments.get(*first)?.text.split_ascii_whitespace();
    let name = names.next()?;
    let interpreter = find(name)?;
    let has_more = names.clone().count() + rest.len();
    let is_input = |text: &str| matches!(text, "-s" | "-");
    let takes_input = names.all(is_input) && rest.iter().all(|at| is_input(&arguments[*at].text));
    (interpreter.reads_input && (has_more == 0 || takes_input)).then_some(Reader {
        interpreter,
        name,
        way_out: find("ssh")?.way_out,
        barrier: None,
    })
}

/// Returns the reader whose name is the word at `at`, and in whose code the word `word` stands.
fn reads_word(words: &[Word], at: usize, word: usize) -> Option<Reader<'_>> {
    let reader = reader(words, at)?;
    let arguments = words.get(at + 1..).unwrap_or_default();
    let index = word.checked_sub(at + 1)?;
    let interpreter = reader.interpreter;
    let operands = || operands(interpreter, arguments);
    let is_code = match interpreter.code {
        Code::All => true,
        Code::First => operands().first() == Some(&index),
        Code::BehindFirst => operands().iter().skip(1).any(|at| *at == index),
        Code::Option(options) => follows_option(interpreter, options, arguments, index),
        Code::OptionOrFirst(options) => {
            let has_code = || {
                let program: &[&str] = &["-e", "--expression", "--source", "-f", "--file"];
                arguments.iter().any(|word| is_option(program, &word.text))
            };
            follows_option(interpreter, options, arguments, index)
                || !has_code() && operands().first() == Some(&index)
        }
    };
    is_code.then_some(reader)
}

/// Whether the argument at `index` is the value of one of these options.
fn follows_option(
    interpreter: &Interpreter,
    options: &[&str],
    arguments: &[Word],
    index: usize,
) -> bool {
    let own = arguments.get(index).map_or("", |word| word.text.as_str());
    let is_attached = |option: &&str| match option.starts_with("--") {
        true => own
            .strip_prefix(option)
            .is_some_and(|rest| rest.starts_with('=')),
        // The letters of a shell's option are letters only.
        false => {
            interpreter.language == Language::Other && own.len() > 2 && own.starts_with(option)
        }
    };
    let before = index.checked_sub(1).and_then(|at| arguments.get(at));
    options.iter().any(is_attached) || before.is_some_and(|word| is_option(options, &word.text))
}

/// Whether a word is one of these options, maybe with other letters before it.
fn is_option(options: &[&str], word: &str) -> bool {
    options.iter().any(|option| {
        let letter = option.strip_prefix('-').filter(|letter| letter.len() == 1);
        let letters = word.strip_prefix('-').filter(|letters| {
            !letters.is_empty() && letters.bytes().all(|byte| byte.is_ascii_alphabetic())
        });
        *option == word
            || letter
                .zip(letters)
                .is_some_and(|(letter, all)| all.ends_with(letter))
    })
}

/// Returns the indices of the arguments that are neither options nor their values.
fn operands(interpreter: &Interpreter, arguments: &[Word]) -> Vec<usize> {
    let (mut operands, mut skips, mut has_ended) = (Vec::new(), 0_usize, false);
    for (index, word) in arguments.iter().enumerate() {
        let text = word.text.as_str();
        if skips > 0 {
            skips -= 1;
        } else if has_ended || text == "-" || !text.starts_with(['-', '+']) {
            operands.push(index);
        } else if text == "--" {
            has_ended = true;
        } else {
            skips = option_values(interpreter, text);
        }
    }
    operands
}

/// Returns the number of words that an option takes.
fn option_values(interpreter: &Interpreter, option: &str) -> usize {
    match option {
        "--arg" | "--argjson" | "--slurpfile" | "--rawfile" => 2,
        "--indent" | "--file" | "--host" | "--user" | "--database" => 1,
        _ => {
            let own: &[&str] = match interpreter.code {
                Code::Option(options) | Code::OptionOrFirst(options) => options,
                Code::All | Code::First | Code::BehindFirst => &[],
            };
            let is_letter = option.len() == 2 && !option.starts_with("--");
            let letter = option.get(1..2).filter(|_| is_letter);
            let is_valued = letter.is_some_and(|letter| interpreter.valued.contains(letter));
            usize::from(is_valued || is_option(own, option))
        }
    }
}

/// Returns the reader whose name is the word at `at`: a command's first word, one behind a wrapper, or a shell
/// anywhere in front of its option `-c`.
fn reader(words: &[Word], at: usize) -> Option<Reader<'_>> {
    let name = words.get(at)?.text.as_str();
    let interpreter = find(name)?;
    let before = words.get(..at).unwrap_or_default();
    let is_value = before
        .last()
        .is_some_and(|word| word.text.starts_with("--") && word.text.len() > 2);
    let base = |word: &Word| word.text.rsplit('/').next().unwrap_or_default().to_owned();
    let is_wrapped = before
        .first()
        .is_none_or(|word| WRAPPERS.contains(&base(word).as_str()));
    let is_shell = matches!(interpreter.code, Code::Option(["-c", ..]));
    let barrier = before.iter().map(|word| word.text.as_str());
    let mut barrier =
        barrier.filter(|text| BARRIERS.contains(&text.rsplit('/').next().unwrap_or_default()));
    ((is_wrapped || is_shell) && !is_value).then(|| Reader {
        interpreter,
        name,
        way_out: interpreter.way_out,
        barrier: barrier.next(),
    })
}

/// Returns the row of a program, with or without its directory and version.
fn find(program: &str) -> Option<&'static Interpreter> {
    // To zsh a brace needs no blank behind it.
    let name = program.rsplit(['/', '{']).next().unwrap_or_default();
    let name = if name.is_empty() { program } else { name };
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let is_named = |row: &&Interpreter| row.names.contains(&name) || row.names.contains(&plain);
    INTERPRETERS.iter().find(is_named)
}
