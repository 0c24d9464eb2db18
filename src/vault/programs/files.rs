//! Which words of a command name files that it reads as code.

use super::input::{code_word, option_code};
use super::known::{look_up, name_of};
use super::runs::{runs, wrapped_program};
use super::table::Reads;
use super::without_prefixes;
use crate::vault::words::{Demands, Word};

/// Returns the words that may name a script, and what is demanded of what it holds.
pub(in crate::vault) fn code_files(words: &[Word]) -> Vec<(&Word, Demands)> {
    let mut found = Vec::new();
    let first = without_prefixes(words).first().map_or("", Word::program);
    for (reads, arguments) in runs(words) {
        let demands = match reads {
            Reads::Shell | Reads::ShellAll | Reads::ShellAfter(_) => Demands::SHELL,
            Reads::Unknown => Demands::ANY_CODE,
            Reads::ShellInOption(_) | Reads::Git => continue,
            _ => Demands::PROGRAM,
        };
        let demands = demands.read_by(name_of(words, arguments));
        let takes_script = match reads {
            Reads::ShellAll => LOADERS.contains(&first),
            Reads::Shell => code_word(arguments).is_none(),
            Reads::ShellAfter(letter) => option_code(arguments, letter).is_none(),
            _ => true,
        };
        let is_code = is_first_code(reads, arguments);
        let named = scripts(arguments, takes_script && !is_code);
        found.extend(named.map(|word| (word, demands)));
    }
    // `./script`, `env ./script`
    let own = without_prefixes(words);
    let named = wrapped_program(own).flatten().and_then(<[Word]>::first);
    found.extend(named.map(|word| (word, Demands::ANY_CODE)));
    found.extend(own.first().map(|word| (word, Demands::ANY_CODE)));
    found
}

/// Returns the files that a command reads as code though no word names them.
pub(in crate::vault) fn files_by_name(words: &[Word]) -> &'static [&'static str] {
    let makes = |word: &Word| matches!(word.program(), "make" | "gmake");
    match words.iter().any(makes) {
        true => &["Makefile", "makefile", "GNUmakefile"],
        false => &[],
    }
}

/// Programs whose operand is a file of code, among those whose arguments are code.
const LOADERS: &[&str] = &[".", "source", "crontab", "at", "batch"];

/// Whether the first operand is code itself, `perl -pe CODE` or `awk CODE`, that loads and runs no file, nor ends in what
/// may be the path of one: signs of expansions are no parts of a name there.
fn is_first_code(reads: Reads, arguments: &[Word]) -> bool {
    const RUNNERS: &[&str] = &[
        "system", "exec", "qx", "open", "spawn", "do", "`", "require", "use", "eval", "import",
        "load", "include", "readpipe", "getline", "|",
    ];
    let is_option = |word: &&Word| word.text.starts_with(['-', '+']);
    let (_, rest) = arguments.split_at(arguments.iter().take_while(is_option).count());
    let option = arguments.len().checked_sub(rest.len() + 1);
    let option = option.and_then(|at| arguments.get(at)?.text.strip_prefix('-'));
    let takes_code = |letters: &str| {
        let last = letters.trim_start_matches(|c| "nplaw".contains(c));
        matches!(last, "e" | "E")
    };
    let is_code = match reads {
        Reads::CodeAfter(letters, _) => letters.contains(&'e') && option.is_some_and(takes_code),
        Reads::CodeAll => rest.len() == arguments.len(),
        _ => false,
    };
    let runs = |text: &str| opens_file(text) || RUNNERS.iter().any(|name| text.contains(name));
    let is_no_path = |word: &Word| !word.is_dynamic && word.program().contains(['$', '[', '(']);
    is_code
        && rest
            .first()
            .is_some_and(|word| is_no_path(word) && !runs(word.text()))
}

/// Returns the first operand, and what follows options that name a file.
fn scripts(arguments: &[Word], has_operand: bool) -> impl Iterator<Item = &Word> {
    const OPTIONS: &[&str] = &[
        "-f",
        "--file",
        "--from-file",
        "--rcfile",
        "--init-file",
        "-x",
        "--command",
        "-S",
        "-u",
        "-s",
        "-F",
    ];
    // `sed -nf FILE`
    let is_bundle = |option: &Word| option.has_option('f') && option.text.ends_with('f');
    let is_operand = |word: &&Word| !word.text.starts_with(['-', '+']);
    let named = arguments.windows(2).filter_map(move |pair| match pair {
        [option, word] if OPTIONS.contains(&option.text()) || is_bundle(option) => Some(word),
        _ => None,
    });
    let operand = arguments.iter().find(is_operand).filter(|_| has_operand);
    operand.into_iter().chain(named)
}

/// Returns the files that code among the words of a command may name: `bash -c "source f"`.
pub(in crate::vault) fn files_in_code(words: &[Word]) -> Vec<String> {
    let is_shell = |(reads, _): &(Reads, &[Word])| {
        matches!(reads, Reads::Shell | Reads::ShellAll | Reads::ShellAfter(_))
    };
    if !runs(words).iter().any(is_shell) {
        return Vec::new();
    }
    let is_end = |c: char| c.is_whitespace() || ";&|()<>\"'`{}$=".contains(c);
    let texts = words.iter().filter(|word| word.text.contains(is_end));
    let names = texts.flat_map(|word| word.text.split(is_end));
    let names = names.filter(|name| !name.is_empty() && !name.starts_with('-'));
    names.take(MAX_FILES).map(str::to_owned).collect()
}

/// Whether code that stands before a path reads what the file holds as code: `sh -c ". FILE"`, `exec(open('FILE`.
pub(in crate::vault) fn opens_file(text: &str) -> bool {
    const OPENERS: &[&str] = &[
        "exec(",
        "eval(",
        "compile(",
        "run_path(",
        "execfile(",
        "load(",
        "require(",
        "require ",
        "do q",
        "do \"",
        "do '",
        "do(",
        "dofile",
        "source(",
        "include",
        "importlib",
        "runpy",
    ];
    let start = text.trim_end_matches(['"', '\'']);
    let last = start
        .trim_end()
        .rsplit([' ', ';', '&', '|', '(', '\n', '\t'])
        .next();
    let word = Word {
        text: last.unwrap_or_default().to_owned(),
        ..Word::default()
    };
    let is_program = matches!(
        look_up(&word),
        Some(Reads::Shell | Reads::Python | Reads::CodeAfter(..))
    );
    let is_named =
        start.ends_with([' ', '\t']) && (is_program || matches!(word.text(), "." | "source"));
    is_named || OPENERS.iter().any(|opener| text.contains(opener))
}

/// Names in the code of one command that are looked at.
const MAX_FILES: usize = 64;
