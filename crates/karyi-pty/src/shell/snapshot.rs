//! Snapshots of a shell's state, kept in memory for a restart.
//!
//! A snapshot may hold everything the user exported, including secrets, so it travels through FIFOs and never touches
//! a disk.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use zeroize::Zeroizing;

use karyi_core::limits;

use crate::shell::Dialect;
use crate::sys;
use crate::terminal::live_shell::read_some;
use crate::terminal::spawn::make_fifo;

/// A complete snapshot.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    /// The shell's directory.
    pub(crate) cwd: PathBuf,
    /// Commands that restore everything else.
    pub(crate) commands: Arc<Vec<u8>>,
    pub(crate) taken: Instant,
}

/// One part of a snapshot.
pub(crate) struct SnapshotSection<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) text: &'a [u8],
    /// The heading line.
    pub(crate) heading: &'a [u8],
}

/// Variables that every shell sets itself.
pub(crate) const OWN_VARIABLES: [&[u8]; 5] = [b"PWD", b"OLDPWD", b"SHLVL", b"_", b"KARYI_LAST"];

impl Snapshot {
    /// Returns the commands that restore the state in a shell of this dialect; `inherited` are the names in its
    /// initial environment.
    pub(crate) fn restore_commands(&self, dialect: &dyn Dialect, inherited: &[String]) -> Vec<u8> {
        let mut text = dialect.clear_definitions().as_bytes().to_vec();
        let mut last = Vec::new();
        for section in self.sections() {
            match section.name {
                b"+options" => write_options(section.text, &mut text, &mut last),
                b"+functions" | b"+aliases" => write_quoted(section.text, &mut text),
                b"=aliases" => write_aliases(section.text, &mut text),
                b"environment" => {
                    for name in inherited.iter().filter(|name| !section.names(name)) {
                        text.extend(dialect.unset_line(name).into_bytes());
                    }
                    text.extend_from_slice(section.text);
                }
                _ => text.extend_from_slice(section.text),
            }
        }
        text.extend(last);
        text.extend_from_slice(dialect.end_restore().as_bytes());
        text
    }

    /// Returns the snapshot with only environment and directory.
    pub(crate) fn environment_only(&self) -> Self {
        let sections = self.sections().into_iter();
        let environment = sections.filter(|section| section.name == b"environment");
        let commands = environment.flat_map(|section| [section.heading, section.text].concat());
        Self {
            cwd: self.cwd.clone(),
            commands: Arc::new(commands.collect()),
            taken: self.taken,
        }
    }

    /// Returns the parts that are equal in another snapshot.
    pub(crate) fn unchanged_parts<'a>(&self, names: &[&'a str], other: &Self) -> Vec<&'a str> {
        let is_there = |name: &&&str| self.part(name) == other.part(name);
        names.iter().filter(is_there).copied().collect()
    }

    /// Returns the exported variables that are neither in another snapshot nor in some commands.
    pub(crate) fn exports_beyond(&self, other: &Self, commands: &[u8]) -> Vec<String> {
        let known: HashSet<&str> = (other.exports().into_iter())
            .chain(exported_names(commands))
            .collect();
        let mut names: Vec<&str> = self.exports().into_iter().collect();
        names.retain(|name| !known.contains(name) && !OWN_VARIABLES.contains(&name.as_bytes()));
        names.sort_unstable();
        names.into_iter().map(str::to_owned).collect()
    }

    fn exports(&self) -> HashSet<&str> {
        let sections = self.sections().into_iter();
        let environment = sections.filter(|section| section.name == b"environment");
        environment
            .flat_map(|section| exported_names(section.text))
            .collect()
    }

    /// Returns the lines of a part, without those that differ from shell to shell.
    fn part(&self, name: &str) -> HashSet<&[u8]> {
        let is_part = |section: &SnapshotSection<'_>| {
            let prefix = section.name.strip_suffix(name.as_bytes());
            prefix.is_some_and(|prefix| prefix.len() < 2)
        };
        let sections = self.sections().into_iter().filter(is_part);
        let lines = sections.flat_map(|section| section.text.split(|byte| *byte == b'\n'));
        lines
            .filter(|line| {
                !is_transient(line) && !is_own_variable(line) && !is_autoload_comment(line)
            })
            .collect()
    }

    /// Splits the text at its headings, each `#NAME NONCE`; the first line is one.
    pub(crate) fn sections(&self) -> Vec<SnapshotSection<'_>> {
        let mut found: Vec<SnapshotSection<'_>> = Vec::new();
        let first = self.commands.split(|byte| *byte == b'\n').next();
        let Some(at) = first.and_then(|line| memchr::memchr(b' ', line)) else {
            return found;
        };
        let nonce = first.and_then(|line| line.get(at..)).unwrap_or_default();
        let ending = [nonce, b"\n"].concat();
        let mut rest = self.commands.as_slice();
        while let Some(heading) = find_heading(rest, &ending) {
            let (text, after) = rest.split_at(heading.start);
            if let Some(section) = found.last_mut() {
                section.text = text;
            }
            let name = after.get(1..heading.name_length + 1).unwrap_or_default();
            let body = after.get(heading.length..).unwrap_or_default();
            found.push(SnapshotSection {
                name,
                text: body,
                heading: after.get(..heading.length).unwrap_or_default(),
            });
            rest = body;
        }
        found
    }
}

impl SnapshotSection<'_> {
    /// Returns true if the lines seem to declare this variable; a value may look like that, too.
    fn names(&self, name: &str) -> bool {
        let mut found = memchr::memmem::find_iter(self.text, name.as_bytes());
        found.any(|at| {
            let before = at.checked_sub(1).and_then(|at| self.text.get(at));
            let after = self.text.get(at + name.len());
            before == Some(&b' ') && matches!(after, Some(b'=' | b'\n'))
        })
    }
}

/// Returns the names of the variables that some lines export. A line of a value may look like one.
fn exported_names(text: &[u8]) -> impl Iterator<Item = &str> {
    let is_export = |word: &&str| {
        let word = word.trim_start_matches('\\');
        ["export", "declare", "typeset"].contains(&word)
    };
    let lines = text.split(|byte| *byte == b'\n');
    lines.filter_map(move |line| {
        let end = memchr::memchr(b'=', line).unwrap_or(line.len());
        let mut words = std::str::from_utf8(line.get(..end)?).ok()?.split(' ');
        words.next().filter(is_export)?;
        let name = words.find(|word| !word.starts_with('-'))?;
        karyi_core::secret::SecretName::parse(name).map(|_| name)
    })
}

struct Heading {
    start: usize,
    name_length: usize,
    length: usize,
}

/// Finds the first line `#NAME` with this ending.
fn find_heading(text: &[u8], ending: &[u8]) -> Option<Heading> {
    for end in memchr::memmem::find_iter(text, ending) {
        let before = text.get(..end)?;
        let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        let name = before.get(start..)?.strip_prefix(b"#");
        if let Some(name) = name.filter(|name| !name.contains(&b' ')) {
            return Some(Heading {
                start,
                name_length: name.len(),
                length: end + ending.len() - start,
            });
        }
    }
    None
}

/// Returns true if a line must not, or need not, be restored.
fn is_transient(line: &[u8]) -> bool {
    let is_of = |option: &&str| line.ends_with(option.as_bytes());
    line.starts_with(b"set ") && [" errexit", " onecmd", " noexec"].iter().any(is_of)
}

/// Returns true for the comment with which zsh marks a function to be loaded when it is called. The comment is gone
/// once the function was read back.
fn is_autoload_comment(line: &[u8]) -> bool {
    line.trim_ascii() == b"# undefined"
}

fn is_own_variable(line: &[u8]) -> bool {
    let is_of = |name: &&[u8]| {
        let mut words = line.split(|byte| *byte == b' ').take(3);
        let rest = words.find_map(|word| word.strip_prefix(*name));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"="))
    };
    OWN_VARIABLES.iter().any(is_of)
}

/// Writes lines so that no alias changes them; the option that enables aliases comes last.
fn write_options(text: &[u8], commands: &mut Vec<u8>, last: &mut Vec<u8>) {
    for line in text.split(|byte| *byte == b'\n') {
        if is_transient(line) {
            continue;
        }
        let target = if line.ends_with(b"aliases") {
            &mut *last
        } else {
            &mut *commands
        };
        write_quoted(line, target);
    }
}

fn write_quoted(text: &[u8], commands: &mut Vec<u8>) {
    let lines = text.split(|byte| *byte == b'\n');
    for line in lines.filter(|line| !line.is_empty()) {
        commands.push(b'\\');
        commands.extend_from_slice(line);
        commands.push(b'\n');
    }
}

/// Writes `name='value'` lines, whose values may hold line breaks, as definitions.
fn write_aliases(text: &[u8], commands: &mut Vec<u8>) {
    let mut quote = None;
    let mut is_start = true;
    for byte in text {
        if is_start && *byte != b'\n' {
            commands.extend_from_slice(br"\alias ");
        }
        quote = match quote {
            Some(open) if open == *byte => None,
            Some(open) => Some(open),
            None => Some(*byte).filter(|byte| matches!(byte, b'\'' | b'"')),
        };
        is_start = quote.is_none() && *byte == b'\n';
        commands.push(*byte);
    }
}

/// Assembles snapshots from the bytes of a FIFO.
#[derive(Debug)]
pub(crate) struct SnapshotCollector {
    begin: Vec<u8>,
    state: Vec<u8>,
    end: Vec<u8>,
    buffer: Vec<u8>,
    /// Number of snapshots received from the running shell.
    pub(crate) received: u64,
    /// The last complete snapshot.
    pub(crate) last: Option<Snapshot>,
    /// The time the last command ended, if no snapshot was taken since.
    unsaved_since: Option<Instant>,
}

impl SnapshotCollector {
    /// Creates a collector for one session.
    pub(crate) fn new(nonce: &str) -> Self {
        Self {
            begin: format!("#begin {nonce}\n").into_bytes(),
            state: format!("\n#state {nonce}\n").into_bytes(),
            end: format!("#end {nonce}\n").into_bytes(),
            buffer: Vec::new(),
            received: 0,
            last: None,
            unsaved_since: None,
        }
    }

    /// Records that a command has ended.
    pub(crate) fn command_ended(&mut self) {
        self.unsaved_since = Some(Instant::now());
    }

    /// Returns the time at which an idle shell is to take a snapshot.
    pub(crate) fn due_at(&self) -> Option<Instant> {
        self.unsaved_since
            .map(|since| since + limits::SNAPSHOT_IDLE)
    }

    /// Returns true, once, if that time has come.
    pub(crate) fn take_due(&mut self) -> bool {
        let is_due = self.due_at().is_some_and(|at| Instant::now() >= at);
        is_due && self.unsaved_since.take().is_some()
    }

    /// Reads all available bytes.
    pub(crate) fn read(&mut self, state: &OwnedFd) {
        let mut chunk = [0; 16 << 10];
        loop {
            let count = read_some(state, &mut chunk);
            let bytes = chunk.get(..count).unwrap_or_default();
            if bytes.is_empty() {
                return;
            }
            self.push(bytes);
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let seen = self.buffer.len().saturating_sub(self.end.len());
        self.buffer.extend_from_slice(bytes);
        let fresh = self.buffer.get(seen..).unwrap_or_default();
        self.received += memchr::memmem::find_iter(fresh, &self.end).count() as u64;
        if let Some(at) = memchr::memmem::rfind(fresh, &self.end) {
            let rest = self.buffer.split_off(seen + at + self.end.len());
            self.last = self.parse().or(self.last.take());
            self.buffer = rest;
        } else if self.buffer.len() > limits::MAX_SNAPSHOT_BYTES {
            self.buffer.clear();
        }
    }

    fn parse(&self) -> Option<Snapshot> {
        use std::os::unix::ffi::OsStrExt;
        let start = memchr::memmem::rfind(&self.buffer, &self.begin)?;
        let body = self.buffer.get(start + self.begin.len()..)?;
        let middle = memchr::memmem::find(body, &self.state)?;
        let (cwd, rest) = body.split_at(middle);
        let commands = rest
            .strip_prefix(self.state.as_slice())?
            .strip_suffix(self.end.as_slice())?;
        Some(Snapshot {
            cwd: Path::new(std::ffi::OsStr::from_bytes(cwd)).to_owned(),
            commands: Arc::new(commands.to_vec()),
            taken: Instant::now(),
        })
    }

    /// Drops the beginning of a snapshot whose shell is gone.
    pub(crate) fn forget_partial(&mut self) {
        self.buffer.clear();
    }
}

/// Writes a snapshot to a shell through a FIFO.
#[derive(Debug)]
pub(crate) struct SnapshotFeeder {
    fifo: Option<OwnedFd>,
    commands: Zeroizing<Vec<u8>>,
    written: usize,
}

impl SnapshotFeeder {
    /// Creates the FIFO.
    pub(crate) fn new(path: &Path, commands: Vec<u8>) -> std::io::Result<Self> {
        Ok(Self {
            fifo: Some(make_fifo(path)?),
            commands: Zeroizing::new(commands),
            written: 0,
        })
    }

    /// Writes as much as fits; closes the FIFO once the shell has begun to read the last part.
    pub(crate) fn step(&mut self) {
        let Some(fifo) = &self.fifo else {
            return;
        };
        let rest = self.commands.get(self.written..).unwrap_or_default();
        if !rest.is_empty() {
            self.written += nix::unistd::write(fifo, rest).unwrap_or(0);
        }
        let waiting = sys::bytes_waiting(fifo).unwrap_or(0);
        if self.written == self.commands.len() && waiting < self.written {
            self.fifo = None;
        }
    }

    /// Returns true until the shell has everything.
    pub(crate) fn is_open(&self) -> bool {
        self.fifo.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&str], expected: Option<(&str, &str)>) {
        let mut collector = SnapshotCollector::new("n");
        for piece in pieces {
            collector.push(piece.as_bytes());
        }
        let found = collector.last.map(|snapshot| {
            let commands = String::from_utf8(snapshot.commands.to_vec()).unwrap();
            (snapshot.cwd.to_str().unwrap().to_owned(), commands)
        });
        assert_eq!(
            found,
            expected.map(|(cwd, text)| (cwd.to_owned(), text.to_owned()))
        );
    }

    #[test]
    fn only_whole_snapshots_count() {
        let whole = "#begin n\n/a\n#state n\nexport A=1\n#end n\n";
        check(&[whole], Some(("/a", "export A=1\n")));
        let (first, second) = whole.split_at(20);
        check(&[first, second], Some(("/a", "export A=1\n")));
        check(&["#begin n\n/b\n#st", whole], Some(("/a", "export A=1\n")));
        check(&[whole, "#begin n\n/b"], Some(("/a", "export A=1\n")));
        check(&[whole, "trap output\n"], Some(("/a", "export A=1\n")));
        check(
            &[&format!("x\n{whole}y\n"), whole],
            Some(("/a", "export A=1\n")),
        );
        check(&["#begin x\n/b\n#state x\n#end x\n"], None);
        check(&["/b\n#state n\n#end n\n"], None);
        let single: Vec<&str> = whole.split_inclusive(|_: char| true).collect();
        check(&single, Some(("/a", "export A=1\n")));
    }

    fn snapshot(text: &str) -> Snapshot {
        Snapshot {
            cwd: "/".into(),
            commands: Arc::new(text.into()),
            taken: Instant::now(),
        }
    }

    #[test]
    fn aliases_do_not_change_restored_commands() {
        let text = "#+options n\nshopt -s expand_aliases\nshopt -s extglob\n\
                    #environment n\nexport A='1\n#+x m\n2'\nexport B\n\
                    #=aliases n\na='x\ny'\nb='it'\"'\"'s'\n\
                    #functions n\nf () \n{ \n    : #x n\n}\n\
                    #+options n\nset -o errexit\nset -o noclobber\n";
        let inherited = ["A", "B", "C", "E"].map(str::to_owned);
        let commands = snapshot(text).restore_commands(&crate::shell::posix::Posix, &inherited);
        let expected = "\\command unalias -a\n\\shopt -s extglob\n\
                        \\command unset -v C\n\\command unset -v E\n\
                        export A='1\n#+x m\n2'\nexport B\n\
                        \\alias a='x\ny'\n\\alias b='it'\"'\"'s'\n\
                        f () \n{ \n    : #x n\n}\n\\set -o noclobber\n\
                        \\shopt -s expand_aliases\n\\command set +e\n";
        assert_eq!(String::from_utf8(commands).unwrap(), expected);
        assert_eq!(
            snapshot("").restore_commands(&crate::shell::posix::Posix, &[]),
            b"\\command unalias -a\n\\command set +e\n"
        );
    }

    #[test]
    fn equal_parts_are_restored() {
        let one = "#environment n\nexport A=1\nexport PWD=/a\n#functions n\nf\n\
                   #+functions n\ndeclare -fx f\n#+options n\nset -o errexit\nset +o x\n";
        let check = |change: (&str, &str), expected: &[&str]| {
            let names = ["environment", "functions", "options"];
            let other = snapshot(&one.replace(change.0, change.1));
            assert_eq!(
                snapshot(one).unchanged_parts(&names, &other),
                expected,
                "{change:?}"
            );
        };
        check(("", ""), &["environment", "functions", "options"]);
        check(
            ("PWD=/a", "PWD=/b"),
            &["environment", "functions", "options"],
        );
        check(
            ("-o err", "+o err"),
            &["environment", "functions", "options"],
        );
        check(("A=1", "A=2"), &["functions", "options"]);
        check(
            ("export A=1", "export A=1\nexport B=2"),
            &["functions", "options"],
        );
        check(("-fx f", "-fx g"), &["environment", "options"]);
        check(("+o x", "-o x"), &["environment", "functions"]);
        let note = ("functions n\nf\n", "functions n\nf\n\t# undefined\n");
        check(note, &["environment", "functions", "options"]);
    }

    #[test]
    fn extra_exports_are_found() {
        let old = snapshot("#environment n\ndeclare -x A=\"1\nexport V=1\"\n");
        let new = snapshot(
            "#environment n\ndeclare -x A=\"1\nexport V=1\"\nexport -i B=2\nexport C\nexport PWD=/\n\
             typeset -x D=x=y\nother E=1\nexport F G\n#functions n\nexport H=1\n",
        );
        let names = new.exports_beyond(&old, b"\\export C='1'\n");
        assert_eq!(names, ["B", "D", "F"]);
        assert_eq!(old.exports_beyond(&new, b""), [""; 0]);
    }
}
