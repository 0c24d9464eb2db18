//! Finds interpreters in a command line and the words that are their code, also behind wrappers such as `sudo` and
//! `env`.
//!
//! A value inside the code of a second interpreter is not a literal, so only harmless characters are allowed there.
//! The check uses positions alone. To support another interpreter, add a row to [`INTERPRETERS`]; a test runs its safe
//! command.

use std::collections::BTreeMap;

use super::shell_lexer::{SimpleCommand, is_declaration, is_modifier};
use CodePosition::{All, First, Own, Query, Script, Second};

/// Position of the code among the words of a command. Options are `-c CODE`; a letter also counts among others
/// (`-lc`), or before its value (`-eCODE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodePosition {
    /// After these options, else in the file of the first operand, else in the input.
    Script(&'static str),
    /// After these options, else in the input.
    Query(&'static str),
    /// After these options, else the first operand.
    First(&'static str),
    /// From the second operand on, else in the input.
    Second,
    /// In every word, or in the input.
    All,
    /// In every word, read by the current shell.
    Own,
}

/// Program that reads code.
#[derive(Debug)]
pub(crate) struct Interpreter {
    /// Names; a version may follow.
    pub(crate) names: &'static str,
    /// True when the code is shell code.
    is_shell: bool,
    code: CodePosition,
    /// Letters of options whose value is the next word, which is then no operand.
    valued: &'static str,
    /// Command that passes any value safely, with `NAME` for the secret.
    safe_command: &'static str,
}

/// Known interpreters, each with a safe command.
#[rustfmt::skip]
pub(in crate) const INTERPRETERS: &[Interpreter] = &[
    Interpreter { names: "sh bash zsh dash ksh mksh ash", is_shell: true, code: Script("-c"), valued: "oO",
        safe_command: r#"X="$KARYI{NAME}" sh -c 'printf %s "$X"'"# },
    Interpreter { names: "su runuser", is_shell: true, code: Query("-c --command --session-command"), valued: "",
        safe_command: r#"printf %s "$KARYI{NAME}" | su USER -c 'X=$(cat); printf %s "$X"'"# },
    Interpreter { names: "eval", is_shell: true, code: Own, valued: "",
        safe_command: r#"eval 'printf %s "$KARYI{NAME}"'"# },
    Interpreter { names: "trap", is_shell: true, code: Own, valued: "",
        safe_command: r#"trap 'printf %s "$KARYI{NAME}"' EXIT"# },
    Interpreter { names: "alias", is_shell: true, code: Own, valued: "",
        safe_command: r#"alias x='printf %s "$KARYI{NAME}"'"# },
    Interpreter { names: "ssh", is_shell: true, code: Second, valued: "BbcDEeFIiJLlmOoPpQRSWw",
        safe_command: SSH_INPUT },
    Interpreter { names: "crontab", is_shell: true, code: All, valued: "u",
        safe_command: r#"install -m 600 "$KARYI{NAME|file}" FILE; (crontab -l; echo '0 5 * * * X=$(cat FILE); printf \%s "$X"') | crontab -"# },
    Interpreter { names: "make gmake", is_shell: true, code: All, valued: "",
        safe_command: r#"X="$KARYI{NAME}" make --eval='all: ; @printf %s "$$X"' all"# },
    Interpreter { names: "python", is_shell: false, code: Script("-c"), valued: "WX",
        safe_command: r#"X="$KARYI{NAME}" python3 -c 'import os; print(os.environ["X"])'"# },
    Interpreter { names: "perl", is_shell: false, code: Script("-e -E"), valued: "",
        safe_command: r#"X="$KARYI{NAME}" perl -e 'print $ENV{X}'"# },
    Interpreter { names: "ruby", is_shell: false, code: Script("-e"), valued: "rI",
        safe_command: r#"X="$KARYI{NAME}" ruby -e 'print ENV["X"]'"# },
    Interpreter { names: "node nodejs", is_shell: false, code: Script("-e -p --eval --print"), valued: "r",
        safe_command: r#"X="$KARYI{NAME}" node -e 'process.stdout.write(process.env.X)'"# },
    Interpreter { names: "php", is_shell: false, code: Script("-r"), valued: "dc",
        safe_command: r#"X="$KARYI{NAME}" php -r 'echo getenv("X");'"# },
    Interpreter { names: "psql", is_shell: false, code: Query("-c --command"), valued: "",
        safe_command: r#"psql -v x="$KARYI{NAME}" <<< "SELECT :'x'""# },
    Interpreter { names: "mysql mariadb", is_shell: false, code: Query("-e --execute"), valued: "",
        safe_command: r#"mysql -e "SELECT UNHEX('$(printf %s "$KARYI{NAME}" | od -An -v -tx1 | tr -d ' \n')')""# },
    Interpreter { names: "sqlite3", is_shell: false, code: Second, valued: "",
        safe_command: r#"sqlite3 FILE "SELECT CAST(x'$(printf %s "$KARYI{NAME}" | od -An -v -tx1 | tr -d ' \n')' AS TEXT)""# },
    Interpreter { names: "mongosh mongo", is_shell: false, code: Query("--eval"), valued: "",
        safe_command: r#"X="$KARYI{NAME}" mongosh --eval 'print(process.env.X)'"# },
    Interpreter { names: "awk gawk mawk", is_shell: false, code: First("-v -e --source --assign"), valued: "Ff",
        safe_command: r#"X="$KARYI{NAME}" awk 'BEGIN { printf "%s", ENVIRON["X"] }'"# },
    Interpreter { names: "sed gsed", is_shell: false, code: First("-e --expression"), valued: "fl",
        safe_command: r#"X="$KARYI{NAME}" perl -pe 's/__X__/$ENV{X}/' FILE"# },
    Interpreter { names: "jq", is_shell: false, code: First(""), valued: "fL",
        safe_command: r#"jq --arg x "$KARYI{NAME}" '.x = $x' FILE"# },
    Interpreter { names: "printf", is_shell: false, code: First(""), valued: "v",
        safe_command: r#"printf '%s' "$KARYI{NAME}""# },
];

/// Programs that run the command after their options.
const WRAPPERS: &str = "builtin chroot command doas docker env exec find ionice kubectl nerdctl nice nohup noglob \
                        podman setsid ssh sshpass stdbuf sudo time timeout watch xargs";

const SSH: &str = "ssh HOST";
const SSH_INPUT: &str = r#"printf %s "$KARYI{NAME}" | ssh HOST 'X=$(cat); printf %s "$X"'"#;

/// Wrappers that do not pass their environment to their command, with a command that does.
const ENVIRONMENT_BARRIERS: &[(&str, &str)] = &[
    ("docker podman nerdctl", "docker exec -i CONTAINER"),
    ("kubectl", "kubectl exec -i POD --"),
    ("ssh", SSH),
    ("sudo", "sudo"),
    ("doas", "doas"),
];

/// Options that name the program of `awk`, `sed` or `jq`, which is then no operand.
const PROGRAMS: &str = "-e --expression --source -f --file --from-file";

/// Interpreter found in a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodeReader<'a> {
    /// Its name in the script.
    pub(crate) name: &'a str,
    interpreter: &'static Interpreter,
    /// Command prefix that reaches its environment, when that of the shell does not pass.
    barrier: Option<&'static str>,
}

impl CodeReader<'_> {
    /// Returns true when the value is harmless in its code.
    pub(crate) fn accepts(&self, value: &str) -> bool {
        let is_shell = self.interpreter.is_shell;
        let signs: &[u8] = if is_shell { b"_./:@%+,=-" } else { b"_.:+,=-" };
        let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || signs.contains(&byte);
        value.bytes().all(is_harmless)
    }

    /// Returns a command that passes any value to its code safely.
    pub(crate) fn safe_command(&self, name: &str) -> String {
        let own = self.interpreter.safe_command;
        let code = own.strip_prefix("X=\"$KARYI{NAME}\" ");
        let safe_command = match (self.barrier, code) {
            (Some(SSH), _) => SSH_INPUT.to_owned(),
            (Some(barrier), Some(code)) => format!(
                "printf %s \"$KARYI{{NAME}}\" | {barrier} sh -c 'export X=\"$(cat)\"; \"$@\"' _ {code}"
            ),
            _ => own.to_owned(),
        };
        safe_command.replace("NAME", name)
    }
}

/// Words of a command, with the interpreters of its words and its input.
#[derive(Debug, Default)]
pub(crate) struct CodeWords<'a> {
    words: Vec<&'a str>,
    /// Index of the program's name.
    start: usize,
    code: BTreeMap<usize, CodeReader<'a>>,
    /// True when the words after `ssh` were split into those of its command.
    is_remote: bool,
    /// Interpreter that reads a here-document.
    pub(crate) input: Option<CodeReader<'a>>,
    /// True when an option declares numbers or names of variables.
    declares_numbers: bool,
}

impl<'a> CodeWords<'a> {
    /// Reads a command.
    pub(crate) fn of(command: &'a SimpleCommand) -> Self {
        let words = command.words.iter().map(|word| word.text.as_str());
        let words: Vec<&str> = words.collect();
        let start = words.iter().take_while(|word| is_modifier(word)).count();
        let options = words.iter().skip(start + 1);
        let mut options = options.take_while(|word| word.starts_with(['-', '+']));
        let declares_numbers = options.any(|option| option.contains(['i', 'E', 'F', 'n']));
        let mut reading = Self {
            words,
            start,
            declares_numbers,
            ..Self::default()
        };
        let (mut at, mut barrier) = (0, None);
        while let Some(word) = reading.words.get(at) {
            let own = ENVIRONMENT_BARRIERS
                .iter()
                .find(|(names, _)| has(names, base(word)));
            barrier = own.map(|(_, way)| *way).or(barrier);
            at = match reading.reader(at, barrier) {
                Some(reader) => reading.read(reader, at + 1),
                None => at + 1,
            };
        }
        reading
    }

    /// Returns the interpreter named by the word at `at`: a command's first word, one after a wrapper, or a shell
    /// anywhere.
    fn reader(&self, at: usize, barrier: Option<&'static str>) -> Option<CodeReader<'a>> {
        let name = *self.words.get(at)?;
        let plain = base(name).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let is_named = |row: &&Interpreter| has(row.names, base(name)) || has(row.names, plain);
        let interpreter = INTERPRETERS.iter().find(is_named)?;
        let is_reader = match interpreter.code {
            Own => at == self.start,
            Script(_) | Query(_) if interpreter.is_shell => true,
            _ => at == 0 || has(WRAPPERS, base(self.words[0])),
        };
        let is_value =
            at > 0 && self.words[at - 1].len() > 2 && self.words[at - 1].starts_with("--");
        (is_reader && !is_value).then_some(CodeReader {
            name,
            interpreter,
            barrier,
        })
    }

    /// Marks the words after the name of an interpreter that are its code, and its input if it reads code there.
    /// Returns the index of the next word to check.
    fn read(&mut self, reader: CodeReader<'a>, start: usize) -> usize {
        let Interpreter { code, is_shell, .. } = *reader.interpreter;
        let (Script(options) | Query(options) | First(options)) = code else {
            return self.read_operands(reader, start);
        };
        if is_shell && matches!(code, Script(_)) {
            return self.read_shell(reader, start);
        }
        let words = self.words.get(start..).unwrap_or_default();
        let is_first =
            matches!(code, First(_)) && !words.iter().any(|word| is_option(PROGRAMS, word));
        let (mut at, mut operands, mut has_code) = (start, 0, matches!(code, First(_)));
        while let Some(word) = self.words.get(at).copied() {
            at += 1;
            if !word.starts_with(['-', '+']) || word == "-" {
                // An empty word is the suffix of `sed -i ''` on macOS.
                operands += usize::from(!word.is_empty());
                if matches!(code, Script(_)) {
                    self.input = self
                        .input
                        .or((!has_code && is_input(word)).then_some(reader));
                    return at - 1;
                }
                if is_first && operands == 1 && !word.is_empty() {
                    self.mark_code(at - 1, reader);
                }
            } else if is_option(options, word) {
                has_code = true;
                self.mark_code(at, reader);
                at += 1;
            } else if is_attached(options, word) {
                has_code = true;
                self.mark_code(at - 1, reader);
            } else {
                let is_program = is_option(PROGRAMS, word);
                let program = self.words.get(at).filter(|_| is_program);
                if program.is_some_and(|word| is_input(word)) {
                    self.input.get_or_insert(reader);
                }
                at += values(reader.interpreter, word);
            }
        }
        if !has_code {
            self.input.get_or_insert(reader);
        }
        at
    }

    /// Handles a shell: with `c` among its options the word after them is code.
    fn read_shell(&mut self, reader: CodeReader<'a>, start: usize) -> usize {
        let (mut at, mut options) = (start, String::new());
        while let Some(word) = self.words.get(at).copied() {
            if !word.starts_with(['-', '+']) {
                break;
            }
            at += 1;
            match word {
                "--" | "-" => break,
                "--rcfile" | "--init-file" => at += 1,
                _ if word.starts_with("--") => {}
                _ => {
                    options.push_str(word);
                    at += word.matches(['o', 'O']).count();
                }
            }
        }
        let operand = self.words.get(at).copied();
        match options.contains('c') {
            true => self.mark_code(at, reader),
            false if options.contains('s') || operand.is_none_or(is_input) => {
                self.input.get_or_insert(reader);
            }
            false => {}
        }
        at + 1
    }

    /// Handles a program whose operands are code.
    fn read_operands(&mut self, reader: CodeReader<'a>, start: usize) -> usize {
        let mut at = start;
        while let Some(word) = self
            .words
            .get(at)
            .filter(|word| word.len() > 1 && word.starts_with('-'))
        {
            at += 1 + values(reader.interpreter, word);
        }
        let end = self.words.len();
        let is_all = reader.interpreter.code != Second;
        let code = if is_all { start } else { end.min(at + 1) };
        (code..end).for_each(|index| self.mark_code(index, reader));
        let reads_input = match is_all {
            true => self.words.get(at).is_none_or(|word| is_input(word)),
            false => code == end,
        };
        self.input = self.input.or(reads_input.then_some(reader));
        if reader.interpreter.names != "ssh" || std::mem::replace(&mut self.is_remote, true) {
            return end;
        }
        // The operands are a command, which may read the input.
        let command = self.words.split_off(code).into_iter();
        let words = command.flat_map(str::split_ascii_whitespace);
        self.words.extend(words);
        code
    }

    fn mark_code(&mut self, word: usize, reader: CodeReader<'a>) {
        self.code.entry(word).or_insert(reader);
    }

    /// Returns the interpreter whose code contains the word at `at`.
    pub(crate) fn reader_of(&self, at: usize) -> Option<CodeReader<'a>> {
        self.code.get(&at).copied()
    }

    /// Returns true when the command evaluates the word at `at` as arithmetic, or as the name of a variable, whose
    /// index it would evaluate.
    pub(crate) fn calculates(&self, at: usize) -> bool {
        let text = |at: usize| self.words.get(at).copied().unwrap_or_default();
        let before = at.checked_sub(1).map_or("", text);
        match text(self.start).trim_start_matches('{') {
            "let" | "exit" | "return" | "shift" | "break" | "continue" | "repeat" | "integer"
            | "float" => true,
            name if is_declaration(name) => {
                let name = text(at).split('=').next().unwrap_or_default();
                self.declares_numbers || name.contains("$KARYI")
            }
            "unset" | "read" | "getopts" | "mapfile" | "readarray" | "getln" => {
                !text(at).starts_with('-')
            }
            "printf" | "print" | "set" | "wait" => matches!(before, "-v" | "-A" | "-p"),
            "[[" | "[" | "test" => {
                has(NUMBER_TESTS, before) || has(NUMBER_TESTS, text(at + 1)) || before == "-v"
            }
            _ => false,
        }
    }
}

/// Operators of `test` that compare numbers.
const NUMBER_TESTS: &str = "-eq -ne -lt -le -gt -ge -t";

/// Returns true when a list divided by spaces contains a word.
fn has(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split(' ').any(|one| one == word)
}

/// Returns the name of a program without its directory. In zsh no space is needed after a brace.
fn base(program: &str) -> &str {
    match program.rsplit(['/', '{']).next() {
        None | Some("") => program,
        Some(name) => name,
    }
}

fn is_input(word: &str) -> bool {
    let is_descriptor = |start: &str| word.starts_with(start);
    matches!(word, "-" | "/dev/stdin")
        || is_descriptor("/dev/fd/")
        || is_descriptor("/proc/self/fd/")
}

/// Returns true when a word is one of these options, possibly with other letters before it.
fn is_option(options: &str, word: &str) -> bool {
    let letters = word.get(1..).unwrap_or_default();
    let are_letters = letters.bytes().all(|byte| byte.is_ascii_alphabetic());
    let is_last = |option: &str| {
        option.len() == 2 && option.ends_with(letters.get(letters.len() - 1..).unwrap_or("?"))
    };
    has(options, word) || are_letters && !letters.is_empty() && options.split(' ').any(is_last)
}

/// Returns true when one of these options has its value in the same word.
fn is_attached(options: &str, word: &str) -> bool {
    options
        .split(' ')
        .any(|option| match word.strip_prefix(option) {
            Some(value) if option.starts_with("--") => value.starts_with('='),
            Some(value) => !option.is_empty() && !value.is_empty(),
            None => false,
        })
}

/// Returns the number of values of an option.
fn values(interpreter: &Interpreter, option: &str) -> usize {
    let letter = option.get(1..).filter(|letter| letter.len() == 1);
    match option {
        "--arg" | "--argjson" | "--slurpfile" | "--rawfile" => 2,
        "--indent" => 1,
        _ => usize::from(letter.is_some_and(|letter| interpreter.valued.contains(letter))),
    }
}
