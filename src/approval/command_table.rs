//! The table of commands that only read, each with the options that are known to be harmless.
//!
//! An option that is not in the table asks: some options of harmless commands write files or run programs, such as
//! `sort -o`, `rg --pre` and `find -exec`. To add a command, add a row, and read its manual page for such options.

mod format;

use crate::approval::command_words::CommandWord;
use Operands::{Any, AtMost, Format, Lines, Variables};
use Options::{Every, Letters, Words};

/// Options of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Options {
    /// Every option is harmless.
    Every,
    /// These are; single letters may stand together (`-la`). `=` at the end of one says that it has a value, in the
    /// same word or the next one, and `?` that it may have one in the same word. `-#` stands for a number, and `+` for
    /// words that begin with that sign.
    Letters(&'static str),
    /// The same, of a command whose long options begin with one dash.
    Words(&'static str),
}

/// Operands of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operands {
    /// Any number.
    Any,
    /// At most this many.
    AtMost(usize),
    /// A format of printf, and the words for its conversions, which are no options.
    Format,
    /// A script of sed that prints lines, and any number of files.
    Lines,
    /// Names of variables that only scripts use.
    Variables,
}

/// Row of the table.
struct Reader {
    /// First words of the command. Several commands with the same rest are divided by `|`.
    names: &'static str,
    options: Options,
    operands: Operands,
}

const fn row(names: &'static str, options: Options, operands: Operands) -> Reader {
    Reader {
        names,
        options,
        operands,
    }
}

/// Options of the commands of git that show commits or changes.
const GIT_SHOWN: &str = "-# -p -u -n= -i -s -w -b -z -M? -C? -R -E -F -P -S= -G= -L= -U= --oneline --stat? --graph --all \
    --decorate? --no-decorate --author= --since= --until= --after= --before= --grep= --follow --name-only --name-status \
    --abbrev-commit --pretty? --format= --date= --reverse --merges --no-merges --first-parent --max-count= --skip= \
    --shortstat --numstat --patch --no-patch --branches? --tags? --remotes? --diff-filter= --color? --no-color \
    --no-ext-diff --no-textconv --topo-order --date-order --invert-grep --summary --full-history --word-diff? \
    --unified= --cached --staged --check --exit-code --quiet --merge-base --ignore-all-space --ignore-space-change \
    --no-renames --find-renames? --relative? --raw --minimal --patience --histogram --count --objects --left-right \
    --parents --children --ancestry-path";

/// Options of git before its command.
const GIT: &str = "-C= -P --no-pager --no-optional-locks --literal-pathspecs";

/// Every row.
#[rustfmt::skip]
const READERS: &[Reader] = &[
    row(": | true | false | echo | cat | ls | head | tail | wc | grep | egrep | fgrep | cut | nl | tr | stat | basename | \
        dirname | realpath | readlink | which | id | whoami | groups | uname | pwd | cd | df | du | free | uptime | cmp | \
        comm | paste | join | rev | tac | fold | expand | unexpand | od | hexdump | strings | md5sum | sha1sum | \
        sha256sum | sha512sum | cksum | seq | sleep | jq | type | nproc", Every, Any),
    row("command -v | command -V", Every, Any),
    row("[ | test", Every, Any),
    row("printf", Letters(""), Format),
    // zsh calculates the values of `-n` and `-t`.
    row("read", Letters("-r -s -p= -d="), Variables),
    row("break | continue", Letters(""), AtMost(0)),
    row("set -e | set -u | set -eu | set -ue | set -euo pipefail | set -eo pipefail | set -o pipefail", Letters(""), AtMost(0)),
    row("date", Letters("+ -u -R -d= -I? --utc --date= --iso-8601? --rfc-3339="), AtMost(0)),
    row("diff", Letters("-u -r -q -N -w -b -B -i -a -s -y -U= --unified? --brief --recursive --color? --new-file"), Any),
    row("file", Letters("-b -i -L -k --brief --mime --mime-type --mime-encoding --dereference"), Any),
    row("fd | fdfind", Letters("-e= -t= -H -I -d= -g -p -a -L -E= -s -i -u -0 --extension= --type= --hidden --no-ignore \
        --max-depth= --glob --exclude= --full-path --absolute-path --follow"), Any),
    row("find", Words("-name= -iname= -path= -ipath= -wholename= -type= -xtype= -maxdepth= -mindepth= -size= -mtime= -mmin= \
        -ctime= -newer= -perm= -user= -group= -regex= -iregex= -regextype= -printf= -links= -inum= -samefile= -lname= -not \
        -o -or -a -and -print -print0 -ls -empty -prune -quit -true -false -L -H -P -xdev -mount -depth -follow -daystart \
        -readable -writable -executable"), Any),
    row("ps", Letters("-e -f -A -a -x -l -u= -p= -o= -C="), AtMost(0)),
    row("ps aux", Letters(""), AtMost(0)),
    row("rg", Letters("-# -n -N -i -l -c -w -v -F -o -U -S -s -u -L -H -I -P -p -q -x -0 -. -e= -g= -t= -T= -A= -B= -C= -r= \
        -m= -M= -j= -d= --files --hidden --no-ignore --glob= --iglob= --type= --type-not= --line-number --ignore-case \
        --files-with-matches --files-without-match --count --count-matches --json --stats --vimgrep --multiline --context= \
        --after-context= --before-context= --max-count= --max-depth= --sort= --color= --heading --no-heading --no-filename \
        --with-filename --only-matching --word-regexp --fixed-strings --smart-case --case-sensitive --type-list \
        --no-messages --follow --replace= --pcre2 --trim --column --max-columns= --passthru --null --text --invert-match \
        --regexp= --version"), Any),
    row("sed", Letters("-n -E -r"), Lines),
    row("sort", Letters("-n -r -u -f -h -V -b -g -M -s -z -c -d -i -k= -t= --reverse --numeric-sort --unique --key= \
        --field-separator= --human-numeric-sort --version-sort --ignore-case --check"), Any),
    row("tree", Letters("-L= -a -d -f -I= -P= -s -h -p -u -g -D -F -i -C --gitignore --dirsfirst --noreport --prune"), Any),
    row("uniq", Letters("-c -d -u -i -z -f= -s= -w= --count --repeated --unique --ignore-case"), AtMost(1)),
    row("node --version | python3 --version | gcc --version | make --version | git --version", Letters(""), AtMost(0)),
    row("git status", Letters("-s -b -v -z -u? --short --branch --porcelain? --long --untracked-files? --ignored? \
        --show-stash --ahead-behind --no-renames --column?"), Any),
    row("git log | git diff | git show | git stash list | git rev-list", Letters(GIT_SHOWN), Any),
    row("git branch", Letters("-a -r -v --all --remotes --list --show-current --contains? --merged? --no-merged? --sort= \
        --format= --points-at= --column?"), AtMost(0)),
    row("git tag", Letters("-l -n? --list --sort= --format= --contains? --points-at="), AtMost(0)),
    row("git remote", Letters("-v --verbose"), AtMost(0)),
    row("git remote get-url", Letters("--all --push"), AtMost(1)),
    row("git rev-parse | git ls-files | git ls-tree | git describe | git merge-base | git show-ref | git for-each-ref | \
        git name-rev | git check-ignore | git count-objects", Every, Any),
    row("git cat-file", Letters("-t -s -e -p"), Any),
    row("git blame", Letters("-L= -w -M? -C? -s -e -l -t -p --date= --since= --porcelain --line-porcelain"), Any),
    row("git shortlog", Letters("-s -n -e --all --since= --until="), Any),
    row("git reflog", Letters("-# -n= --date="), AtMost(0)),
    row("git worktree list", Letters("-v --porcelain"), AtMost(0)),
    row("git config --get | git config --get-all", Letters("--local --global --system"), AtMost(1)),
    row("git config --list | git config -l", Letters("--local --global --system --show-origin --show-scope --name-only"), AtMost(0)),
    row("git grep", Letters("-n -i -l -c -w -v -F -E -P -h -H -o -r -p -W -I -e= -A= -B= -C= --count --files-with-matches \
        --line-number --ignore-case --cached --untracked"), Any),
];

/// Reason why a command is not known to only read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doubt {
    /// The table does not have it.
    Unknown,
    /// One of its words is not known to be harmless.
    Word(String),
}

/// Checks that a command only reads. The first word is the name that was found for it. bash does not calculate the
/// numbers of `[` and `printf`.
///
/// # Errors
/// The first doubt.
pub fn check_reads(words: &[CommandWord<'_>], is_bash: bool) -> Result<(), Doubt> {
    let words = without_git_options(words)?;
    let named = words.as_slice();
    let found = READERS.iter().flat_map(|row| {
        let names = row.names.split('|').map(str::trim);
        names.filter_map(move |name| Some((row, starts_with(named, name)?)))
    });
    let (row, length) = found
        .max_by_key(|(_, length)| *length)
        .ok_or(Doubt::Unknown)?;
    let rest = words.get(length..).unwrap_or_default();
    check_test(&words, is_bash)?;
    check_words(row, rest, is_bash)
}

/// Returns the number of words of a name, if a command begins with them.
fn starts_with(words: &[CommandWord<'_>], name: &str) -> Option<usize> {
    let mut count = 0;
    for part in name.split(' ') {
        let word = words.get(count)?;
        if !word.is_certain || word.text != part {
            return None;
        }
        count += 1;
    }
    Some(count)
}

/// Returns the words of git without harmless options before its command.
fn without_git_options<'a>(words: &[CommandWord<'a>]) -> Result<Vec<CommandWord<'a>>, Doubt> {
    let mut left = words.to_vec();
    if words.first().is_none_or(|name| name.text != "git") {
        return Ok(left);
    }
    while let Some(word) = left.get(1).filter(|word| word.text.starts_with('-')) {
        let is_name = |row: &&Reader| row.names.contains(&format!("git {}", word.text));
        if READERS.iter().any(|row| is_name(&row)) {
            break;
        }
        let count = option_length(GIT, false, left.get(1..).unwrap_or_default())
            .ok_or_else(|| Doubt::Word(word.text.to_owned()))?;
        left.drain(1..=count);
    }
    Ok(left)
}

/// Checks a test: zsh calculates the sides of a comparison of numbers, and `-v` calculates an index.
fn check_test(words: &[CommandWord<'_>], is_bash: bool) -> Result<(), Doubt> {
    let Some(name) = words
        .first()
        .filter(|name| matches!(name.text, "[" | "test"))
    else {
        return Ok(());
    };
    let calculating = if is_bash { INDICES } else { CALCULATING };
    check_numbers(words, calculating)
        .and_then(|()| check_operands(words.get(1..).unwrap_or_default()))
        .map_err(|word| Doubt::Word(format!("{word}` of `{}", name.text)))
}

/// Operators of a test beside those of one letter.
const TEST_OPERATORS: &str = "= == != < > ! ( ) ] -nt -ot -ef -eq -ne -lt -le -gt -ge";

/// Checks that no word of a test which is expanded may be an operator: it stands between operators.
fn check_operands<'a>(words: &[CommandWord<'a>]) -> Result<(), &'a str> {
    let is_operator = |word: &CommandWord<'_>| {
        let is_letter = word.text.len() == 2 && word.text.starts_with('-');
        let is_listed = TEST_OPERATORS.split(' ').any(|one| one == word.text);
        word.is_certain && (is_letter || is_listed)
    };
    let count = words.iter().filter(|word| word.text != "]").count();
    for (at, word) in words
        .iter()
        .enumerate()
        .filter(|(_, word)| !word.is_certain)
    {
        let is_middle = count == 3 && at == 1;
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        let mut sides = before.into_iter().chain(words.get(at + 1));
        if word.is_split || is_middle || !sides.all(is_operator) {
            return Err(word.text);
        }
    }
    Ok(())
}

/// Operators of a test that calculate an index in what follows them.
const INDICES: &[&str] = &["-v", "-R"];

/// The same, with those that calculate what stands at them in zsh and in `[[`.
const CALCULATING: &[&str] = &["-v", "-R", "-t", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

/// Checks the words of `[[`.
///
/// # Errors
/// An operator that may run code in a value.
pub fn check_comparisons<'a>(words: &[CommandWord<'a>]) -> Result<(), &'a str> {
    check_numbers(words, CALCULATING)
}

/// Checks that only numbers stand at operators that calculate.
fn check_numbers<'a>(words: &[CommandWord<'a>], calculating: &[&str]) -> Result<(), &'a str> {
    let is_number = |at: Option<usize>| {
        let word = at.and_then(|at| words.get(at));
        word.is_some_and(|word| {
            let digits = word.text.strip_prefix('-').unwrap_or(word.text);
            matches!(word.text, "$#" | "$?" | "\"$#\"" | "\"$?\"")
                || !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    for (at, word) in words.iter().enumerate() {
        let is_wrong = match word.text {
            operator if !calculating.contains(&operator) => false,
            "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" => {
                !is_number(at.checked_sub(1)) || !is_number(Some(at + 1))
            }
            "-v" | "-R" | "-t" => !is_number(Some(at + 1)),
            _ => false,
        };
        if is_wrong {
            return Err(word.text);
        }
    }
    Ok(())
}

fn check_words(row: &Reader, words: &[CommandWord<'_>], is_bash: bool) -> Result<(), Doubt> {
    let (list, is_whole) = match row.options {
        Every => return Ok(()),
        Letters(list) => (list, false),
        Words(list) => (list, true),
    };
    let (mut at, mut operands, mut has_ended) = (0, 0, false);
    while let Some(word) = words.get(at) {
        let doubt = || Doubt::Word(word.text.to_owned());
        has_ended |= row.operands == Format && operands > 0;
        let is_option = !has_ended && word.may_be_option();
        at += match is_option {
            false => {
                check_operand(row.operands, operands, *word)?;
                operands += 1;
                1
            }
            true if !word.is_certain => return Err(doubt()),
            true if word.text == "--" && !is_whole => {
                has_ended = true;
                1
            }
            true => {
                let rest = words.get(at..).unwrap_or_default();
                option_length(list, is_whole, rest).ok_or_else(doubt)?
            }
        };
    }
    match row.operands {
        Lines if operands == 0 => Err(Doubt::Unknown),
        Format if is_bash => format::check_in_bash(words),
        Format => format::check(words),
        Variables => match words.iter().find(|word| !is_prompt(**word)) {
            Some(word) => Err(Doubt::Word(word.text.to_owned())),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Returns true for a prompt that zsh, where `read -p` has none, does not take for a variable that matters.
fn is_prompt(word: CommandWord<'_>) -> bool {
    let name = word.text.split('?').next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    word.is_certain
        && !name.contains('[')
        && (name.is_empty() || !name.chars().all(is_name) || is_script_variable(name))
}

fn check_operand(operands: Operands, number: usize, word: CommandWord<'_>) -> Result<(), Doubt> {
    let is_fine = match operands {
        Any | Format => true,
        AtMost(most) => number < most && word.is_certain,
        Lines => number > 0 || word.is_certain && prints_lines(word.text),
        Variables => word.is_certain && is_script_variable(word.text),
    };
    match is_fine {
        true => Ok(()),
        false => Err(Doubt::Word(word.text.to_owned())),
    }
}

/// Returns true for a script of sed such as `10,20p` or `s/a/b/g`.
fn prints_lines(script: &str) -> bool {
    if let Some(rest) = script.strip_prefix('s') {
        return substitutes(rest);
    }
    let lines = script.strip_suffix('p').unwrap_or_default();
    let mut ends = lines.splitn(2, ',');
    let is_line =
        |end: &str| end == "$" || !end.is_empty() && end.bytes().all(|b| b.is_ascii_digit());
    ends.all(is_line)
}

/// Returns true for what follows the `s` of one substitution without the flags that write a file or run a command.
fn substitutes(rest: &str) -> bool {
    let Some(sign) = rest.chars().next().filter(|sign| "/|,#@:".contains(*sign)) else {
        return false;
    };
    let mut parts = vec![String::new()];
    let mut signs = rest.chars().skip(1);
    while let Some(next) = signs.next() {
        match (next, parts.last_mut()) {
            ('\n', _) => return false,
            (found, _) if found == sign => parts.push(String::new()),
            ('\\', Some(part)) => part.extend(signs.next()),
            (other, Some(part)) => part.push(other),
            (_, None) => return false,
        }
    }
    matches!(parts.as_slice(), [_, _, flags] if flags.chars().all(|flag| "gpiI0123456789".contains(flag)))
}

/// Variables of zsh in lower case that change how commands are found, or run code.
const SPECIAL_VARIABLES: &[&str] = &[
    "path",
    "fpath",
    "cdpath",
    "manpath",
    "mailpath",
    "module_path",
    "mapfile",
    "prompt",
    "histchars",
    "aliases",
    "galiases",
    "saliases",
    "functions",
    "commands",
    "options",
    "nameddirs",
];

/// Returns true for a variable that programs do not read by custom: its name is in lower case.
#[must_use]
pub fn is_script_variable(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    !name.is_empty()
        && name.bytes().all(is_letter)
        && !name.starts_with("dis_")
        && !name.ends_with("_proxy")
        && !name.ends_with("_functions")
        && !SPECIAL_VARIABLES.contains(&name)
}

/// Returns the number of words of the harmless option that the words begin with; `None` when it is not one.
#[must_use]
pub(super) fn option_length(
    list: &str,
    is_whole: bool,
    words: &[CommandWord<'_>],
) -> Option<usize> {
    let option = words.first().filter(|word| word.is_certain)?.text;
    let next = words.get(1).filter(|word| {
        let is_number = word
            .text
            .strip_prefix('-')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()) && word.is_certain);
        is_number || !word.may_be_option() && !word.is_split
    });
    let listed = |option: &str, end: &str| {
        let mut all = list.split_ascii_whitespace();
        all.any(|one| {
            one.strip_suffix(end) == Some(option) && (!end.is_empty() || !one.ends_with(['=', '?']))
        })
    };
    if option.starts_with('+') {
        return listed("+", "").then_some(1);
    }
    if let Some((name, _)) = option.split_once('=').filter(|_| option.starts_with("--")) {
        return (listed(name, "=") || listed(name, "?")).then_some(1);
    }
    if listed(option, "") || listed(option, "?") {
        return Some(1);
    }
    if listed(option, "=") {
        return next.map(|_| 2);
    }
    let letters = option.strip_prefix('-').filter(|_| !is_whole)?;
    if letters.starts_with('-') {
        return None;
    }
    if letters.bytes().all(|byte| byte.is_ascii_digit()) {
        return listed("-#", "").then_some(1);
    }
    for (at, letter) in letters.char_indices() {
        let one = format!("-{letter}");
        let is_last = at + letter.len_utf8() == letters.len();
        if listed(&one, "?") {
            return Some(1);
        }
        if listed(&one, "=") {
            return if is_last { next.map(|_| 2) } else { Some(1) };
        }
        if !listed(&one, "") {
            return None;
        }
    }
    Some(1)
}
