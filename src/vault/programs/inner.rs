//! Shells inside of a script: the code they are given, and the variables that stand among words.

use super::input::{code_word, option_code, reads_input};
use super::known::wraps;
use super::runs::{Run, runs};
use super::table::Reads;
use crate::vault::script;
use crate::vault::words::{Demands, Word, is_name};

/// Programs of this machine that take all their words for code of a shell.
const LOCAL: &[&str] = &["watch", "parallel", "sem", "hyperfine", "watchexec"];

/// Returns the code that a command gives to shells, each with the words before and behind it.
pub(in crate::vault) fn inner_code(words: &[Word]) -> Vec<(Word, &[Word])> {
    let mut found = Vec::new();
    for (reads, arguments) in runs(words) {
        // Whichever of the words is code.
        let is_any = match reads {
            Reads::Unknown | Reads::Git | Reads::ShellInOption(_) => true,
            Reads::ShellAll => !is_remote(words),
            _ => false,
        };
        if is_any {
            let codes = arguments.iter().flat_map(codes_in);
            found.extend(codes.map(|code| (code, arguments)));
        }
        let code = match reads {
            Reads::Shell => code_word(arguments).cloned(),
            Reads::ShellAfter(letter) => option_code(arguments, letter),
            _ => None,
        };
        found.extend(code.map(|code| (code, arguments)));
    }
    let is_local = words
        .first()
        .is_some_and(|word| LOCAL.contains(&word.program()));
    found.extend(
        words
            .iter()
            .skip(1)
            .filter(|_| is_local)
            .map(|word| (word.clone(), &[] as &[Word])),
    );
    found
}

/// Returns the words of a command that may be code of a shell of this machine, though no option says so for sure, and
/// in which an expansion stands: it may be the path of a file.
pub(in crate::vault) fn codes_in_options(words: &[Word]) -> Vec<Word> {
    let mut found = Vec::new();
    for (reads, arguments) in runs(words) {
        let may_be_code = match reads {
            Reads::Unknown | Reads::Git | Reads::ShellInOption(_) => true,
            Reads::ShellAll => !is_remote(words),
            _ => false,
        };
        // A path alone is none.
        let is_code = |word: &&Word| word.is_dynamic && word.text.contains(char::is_whitespace);
        let codes = arguments.iter().filter(is_code).filter(|_| may_be_code);
        found.extend(codes.map(behind_name));
    }
    found
}

/// Returns what stands behind `--option=` or `NAME=!` in a word, with its expansions.
fn behind_name(word: &Word) -> Word {
    let mut code = word.clone();
    let blank = code.text.find(char::is_whitespace);
    let before = code.text.get(..blank.unwrap_or(0)).unwrap_or_default();
    let Some(end) = before.rfind(['=', '!']).map(|at| at + 1) else {
        return code;
    };
    code.expansions.retain(|at| *at >= end);
    code.expansions.iter_mut().for_each(|at| *at -= end);
    code.text = code.text.split_off(end);
    code.is_dynamic = !code.expansions.is_empty();
    code
}

/// Returns the texts in a word that may be code of a shell: `alias.x=!code`, `--filter=code`.
fn codes_in(word: &Word) -> Vec<Word> {
    if !word.text.contains(['$', '`']) {
        return Vec::new();
    }
    if word.is_dynamic {
        return vec![word.clone()];
    }
    let text = word.text();
    let behind = |sign: char| text.split_once(sign).map(|(_, code)| code.to_owned());
    let texts = [Some(text.to_owned()), behind('='), behind('!')];
    let of_text = |text| Word {
        text,
        ..word.clone()
    };
    texts.into_iter().flatten().map(of_text).collect()
}

/// Whether the code that a command is given runs on another machine, or is read elsewhere.
fn is_remote(words: &[Word]) -> bool {
    const REMOTE: &[&str] = &[
        "ssh", "mosh", "autossh", "pssh", "pdsh", "clush", "make", "gmake", "just", "eval",
        "source", ".",
    ];
    words.iter().any(|word| REMOTE.contains(&word.program()))
}

/// Whether options of a shell, before its code, may make it read values otherwise.
pub(in crate::vault) fn changes_inner(arguments: &[Word]) -> bool {
    const PLAIN: &[&str] = &[
        "pipefail",
        "errexit",
        "nounset",
        "xtrace",
        "verbose",
        "noglob",
        "noclobber",
        "allexport",
        "posix",
        "extglob",
        "globstar",
        "nullglob",
        "lastpipe",
        "inherit_errexit",
    ];
    let options = arguments
        .iter()
        .take_while(|word| !word.text.contains(|c: char| c.is_whitespace() || c == ';'));
    let mut takes = false;
    options.into_iter().any(|word| {
        let is_name = std::mem::replace(
            &mut takes,
            word.text.starts_with(['-', '+'])
                && !word.text.starts_with("--")
                && word.text.contains(['o', 'O']),
        );
        let reads = word.text.to_ascii_lowercase().replace(['_', '-'], "");
        is_name && !PLAIN.contains(&word.text()) || reads.contains("globsubst")
    })
}

/// Whether a shell among the programs of a command reads its script from a file it is given next.
pub(in crate::vault) fn reads_script_file(words: &[Word]) -> bool {
    let reads = |(reads, arguments): Run<'_>| match reads {
        Reads::Shell => code_word(arguments).is_none(),
        Reads::Unknown => true,
        _ => false,
    };
    runs(words).into_iter().any(reads)
}

/// Whether a shell among the programs of a command has no script but its input.
pub(in crate::vault) fn reads_script_only(words: &[Word]) -> bool {
    let is_option = |word: &Word| word.text.starts_with(['-', '+']);
    let reads = |(reads, arguments): Run<'_>| {
        let is_open = reads_input(arguments) || arguments.iter().all(is_option);
        reads == Reads::Shell && code_word(arguments).is_none() && is_open
    };
    runs(words).into_iter().any(reads)
}

/// Whether a shell among the programs of a command reads its script from its input.
pub(in crate::vault) fn reads_script(words: &[Word]) -> bool {
    let reads = |(reads, arguments): Run<'_>| {
        let is_whole = matches!(reads, Reads::ShellAll) && !is_remote(words);
        is_whole || matches!(reads, Reads::Shell | Reads::Unknown) && code_word(arguments).is_none()
    };
    runs(words).into_iter().any(reads)
}

/// Returns where the first argument of the shells among the programs of a command stands that read a script.
pub(in crate::vault) fn first_argument_place(words: &[Word]) -> Option<usize> {
    let places = |(reads, arguments): Run<'_>| {
        let is_shell = matches!(reads, Reads::Shell | Reads::Unknown | Reads::ShellAll);
        arguments
            .first()
            .filter(|_| is_shell)
            .map(|word| word.first_place)
    };
    runs(words).into_iter().filter_map(places).min()
}

/// Returns the variables that a command sets for the program it runs: `env NAME=`, `docker run -e NAME=`.
pub(in crate::vault) fn settings(words: &[Word]) -> Vec<(&str, &Word)> {
    let is_wrapper = words.first().is_some_and(|word| wraps(word.program()));
    let mut found = Vec::new();
    for word in words.iter().skip(1).filter(|_| is_wrapper) {
        let Some((before, _)) = word.text().rsplit_once('=') else {
            continue;
        };
        for name in before.split('=') {
            // `-eNAME=`
            let glued = name.strip_prefix('-').and_then(|name| name.get(1..));
            let names = [Some(name), glued].into_iter().flatten();
            found.extend(names.filter(|name| is_name(name)).map(|name| (name, word)));
        }
    }
    found
}

/// Returns what shells among the programs of a command demand of files that are named by a further word.
pub(in crate::vault) fn argument_content(words: &[Word]) -> Demands {
    let mut demands = Demands::NONE;
    for (code, arguments) in inner_code(words) {
        if arguments.is_empty() {
            continue;
        }
        let read = script::argument_demands(code.text());
        let own = match read {
            Some((_, content)) if !code.is_cut => content,
            _ => Demands::ANY_CODE,
        };
        demands = demands.and(own);
    }
    demands
}
