//! Which words of a command name files that it reads as code.

use super::runs::runs;
use super::table::Reads;
use super::without_prefixes;
use crate::vault::words::{Demands, Word};

/// Returns the words that may name a script, and what is demanded of what it holds.
pub(in crate::vault) fn code_files(words: &[Word]) -> Vec<(&Word, Demands)> {
    let mut found = Vec::new();
    for (reads, arguments) in runs(words) {
        let demands = match reads {
            Reads::Shell | Reads::ShellAll | Reads::ShellAfter(_) => Demands::SHELL,
            Reads::Unknown => Demands::ANY_CODE,
            Reads::ShellInOption(_) | Reads::Git => continue,
            _ => Demands::PROGRAM,
        };
        found.extend(scripts(arguments).map(|word| (word, demands)));
    }
    // `./script`
    let named = without_prefixes(words).first();
    found.extend(named.map(|word| (word, Demands::ANY_CODE)));
    found
}

/// Returns the first operand, and what follows options that name a file.
fn scripts(arguments: &[Word]) -> impl Iterator<Item = &Word> {
    const OPTIONS: &[&str] = &["-f", "--file", "--rcfile", "--init-file"];
    let is_operand = |word: &&Word| !word.text.starts_with(['-', '+']);
    let named = arguments.windows(2).filter_map(|pair| match pair {
        [option, word] if OPTIONS.contains(&option.text()) => Some(word),
        _ => None,
    });
    arguments.iter().find(is_operand).into_iter().chain(named)
}
