//! What a program is by its name: rows of the tables, and names that are made of theirs.
//!
//! `mksh-static`, `vim.tiny`, `python3.12-dbg`, `gawk-5.3` and `x86_64-linux-gnu-gdb` are in no list, and what
//! they are is plain. A part of a name counts only for what reads its code after an option, in a script or on
//! its input; `ssh-keygen` is no `ssh`.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::table::{PROGRAMS, Reads, WRAPPERS};
use crate::vault::words::Word;

/// Architectures: a program of that name runs another one, as `setarch` does.
const ARCHITECTURES: &[&str] = &[
    "linux32",
    "linux64",
    "i386",
    "i486",
    "i586",
    "i686",
    "x86_64",
    "ppc",
    "ppc32",
    "ppc64",
    "ppcle",
    "ppc64le",
    "s390",
    "s390x",
    "sparc",
    "sparc32",
    "sparc64",
    "sparc32bash",
    "mips",
    "mips32",
    "mips64",
    "parisc",
    "parisc32",
    "parisc64",
    "hppa",
    "ia64",
    "arm",
    "armh",
    "armv7l",
    "aarch64",
    "riscv32",
    "riscv64",
    "loongarch64",
    "m68k",
    "uname26",
];

/// How the names of programs start that run the one they are given.
const WRAPPER_PREFIXES: &[&str] = &[
    "ld-linux", "ld-musl", "ld.so", "ld64.so", "lxc-", "s6-", "qemu-",
];

/// Programs whose names start so, and that run none.
const NO_WRAPPERS: &[&str] = &["qemu-img", "qemu-nbd", "qemu-io", "qemu-system"];

/// Wrappers that come under longer names: `busybox-static`, `sudo.ws`.
const VARIANTS: &[&str] = &["busybox", "toybox", "sudo", "doas", "setarch"];

/// How the names of programs end that are one kind, and what that is.
const ENDINGS: &[(&str, &str)] = &[
    ("bash", "bash"),
    ("zsh", "zsh"),
    ("ksh", "ksh"),
    ("csh", "csh"),
    ("awk", "awk"),
    ("python", "python"),
    ("perl", "perl"),
    ("ruby", "ruby"),
    ("lua", "lua"),
    ("php", "php"),
    ("tclsh", "tclsh"),
    ("wish", "wish"),
    ("psql", "psql"),
    ("mysql", "mysql"),
    ("sqlite", "sqlite3"),
];

/// The same for how they start.
const STARTS: &[(&str, &str)] = &[
    ("python", "python"),
    ("sqlite", "sqlite3"),
    ("tclsh", "tclsh"),
    ("pwsh", "pwsh"),
];

/// Whether a program of that name only runs another one.
pub(super) fn is_architecture(name: &str) -> bool {
    ARCHITECTURES.contains(&name)
}

/// Whether a program of that name runs another one, which is named among its arguments.
pub(super) fn wraps(name: &str) -> bool {
    let is_variant = || {
        let first = name.split(['-', '.', '_']).next().unwrap_or_default();
        VARIANTS.contains(&first)
    };
    let has_start = |list: &[&str]| list.iter().any(|start| name.starts_with(start));
    WRAPPERS.contains(&name)
        || is_architecture(name)
        || has_start(WRAPPER_PREFIXES) && !has_start(NO_WRAPPERS)
        || is_variant()
}

/// A row of the table: the name of a program, and how it reads code.
type Row = (&'static str, Reads);

/// Returns how a program reads code, if it does.
pub(super) fn look_up(word: &Word) -> Option<Reads> {
    row_of(word).map(|(_, reads)| reads)
}

/// Returns what the program is called in the table that has these arguments, which are some of the words of a command.
pub(super) fn name_of(words: &[Word], arguments: &[Word]) -> Option<&'static str> {
    let end = match arguments.first() {
        Some(first) => words.iter().position(|word| std::ptr::eq(word, first))?,
        None => words.len(),
    };
    row_of(words.get(end.checked_sub(1)?)?).map(|(name, _)| name)
}

fn row_of(word: &Word) -> Option<Row> {
    if word.names_shell && word.text.is_empty() {
        return Some(("$SHELL", Reads::Shell));
    }
    let name = word.program();
    if name == "exe" && word.text.starts_with("/proc/") {
        // The shell itself.
        return Some(("/proc/*/exe", Reads::Shell));
    }
    // `--entrypoint=sh`, and `bash:5` as an image.
    let name = match name.rsplit_once('=') {
        Some((_, value)) if word.text.starts_with('-') => value,
        _ => name,
    };
    let name = name.split([':', '@']).next().unwrap_or(name);
    let found = row(name).or_else(|| row(version_less(name)));
    found.or_else(|| by_part(name)).or_else(|| by_ends(name))
}

/// The rows by their names in small letters; of equal ones the first counts. Every word of a script is looked up, and some many
/// times.
static ROWS: LazyLock<HashMap<String, Row>> = LazyLock::new(|| {
    let mut rows = HashMap::new();
    for row in PROGRAMS {
        rows.entry(row.0.to_ascii_lowercase()).or_insert(*row);
    }
    rows
});

fn row(name: &str) -> Option<Row> {
    ROWS.get(name.to_ascii_lowercase().as_str()).copied()
}

/// Returns what the first or the last part of a name says.
fn by_part(name: &str) -> Option<Row> {
    if name.starts_with('-') {
        return None;
    }
    let (first, _) = name.split_once(['-', '.', '_'])?;
    let whole = |part: &str, least: usize| {
        let plain = version_less(part);
        let found = row(part).or_else(|| row(plain))?;
        (part.len() >= least).then_some(found)
    };
    let is_language = |(_, reads): &Row| {
        matches!(
            reads,
            Reads::Shell | Reads::Python | Reads::CodeAfter(..) | Reads::CodeEverywhere
        )
    };
    let starts = |row: &Row| {
        let others = matches!(
            row.1,
            Reads::Client(..) | Reads::Editor(..) | Reads::CodeAll | Reads::Filter
        );
        is_language(row) || others
    };
    // `vi.tiny`, and not `R-devel` or `dc-tool`.
    let by_first = whole(first, SHORTEST).filter(starts);
    let is_short_tool =
        first.len() <= SHORTEST && matches!(by_first, Some((_, Reads::CodeEverywhere)));
    let by_first = by_first.filter(|_| !is_short_tool);
    // The ending of a file says what it holds, and not what it is called with.
    let by_last = || {
        let (_, last) = name.rsplit_once(['-', '_'])?;
        let least = if last == "sh" { SHORTEST } else { SHORTEST + 1 };
        whole(last, least).filter(is_language)
    };
    by_first.or_else(by_last)
}

/// Shortest part of a name that says something.
const SHORTEST: usize = 2;

/// Returns what the beginning or the end of a name says: `rvim`, `pythonw`, `oksh`.
fn by_ends(name: &str) -> Option<Row> {
    let name = version_less(name).to_ascii_lowercase();
    if name.starts_with('-') || name.contains('.') {
        return None;
    }
    if name.contains("vim") {
        return row("vim");
    }
    let ends = ENDINGS.iter().find(|(end, _)| name.ends_with(end));
    let starts = || STARTS.iter().find(|(start, _)| name.starts_with(start));
    let (_, kind) = ends.or_else(starts)?;
    row(kind)
}

/// Returns `python` for `python3.11`.
fn version_less(program: &str) -> &str {
    let is_version = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-');
    match program.trim_end_matches(is_version) {
        "" => program,
        name => name,
    }
}
