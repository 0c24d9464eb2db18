//! The shells a session can run, and the lines it sends to them.
//!
//! A new shell is one file with an `impl` of [`Dialect`], one entry in [`DIALECTS`], and its name in
//! `SUPPORTED` of [`choice`]; CONTRIBUTING.md names what follows.

pub(crate) mod bash;
pub(crate) mod choice;
pub(crate) mod command_lines;
pub(crate) mod delivery;
pub(crate) mod description;
mod dialect;
mod ksh;
mod mksh;
mod posix;
mod repair_lines;
pub(crate) mod script_traits;
pub(crate) mod script_words;
pub(crate) mod secret_carriers;
pub(crate) mod secrets;
pub(crate) mod snapshot;
mod snapshot_filter;
mod zsh;

pub(crate) use dialect::{Dialect, SessionPaths, Shell};

/// Every dialect. The first one that recognizes a program is taken, so the most general comes last.
pub(crate) const DIALECTS: [&dyn Dialect; 5] = [
    &bash::Bash,
    &zsh::Zsh,
    &mksh::Mksh,
    &ksh::Ksh,
    &posix::Posix,
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_dialect_answers_every_question() {
        let paths = SessionPaths {
            directory: "/run/it's".into(),
            terminal: "/dev/pts/3".into(),
            nonce: "n0".into(),
        };
        let mut names = BTreeSet::new();
        for dialect in DIALECTS {
            let name = dialect.name();
            assert!(names.insert(name), "{name} twice");
            assert!(dialect.builtin().starts_with('\\'), "{name}");
            assert!(!dialect.rc_files().is_empty(), "{name}");
            let lines = [
                dialect.clear_definitions().to_owned(),
                dialect.unhide_functions().to_owned(),
                dialect.snapshot_guards().0.to_owned(),
                dialect.end_restore(),
                dialect.command_lines(&paths, 7, true),
                dialect.lines_if_delivered(&paths, 7, true),
                dialect.mark_line(&paths, 7),
                dialect.setup_line(&paths),
                dialect.setup_script(&paths),
                dialect.snapshot_script(&paths),
                dialect.idle_lines(&paths),
                dialect.rc_lines(&paths),
            ];
            for line in lines {
                assert!(line.ends_with('\n'), "{name}: {line:?}");
            }
            for attempt in 0..3 {
                let lines = dialect.lost_mark_lines(&paths, 7, attempt).unwrap();
                assert!(lines.ends_with('\n'), "{name}: {lines:?}");
            }
            assert_eq!(dialect.lost_mark_lines(&paths, 7, 3), None, "{name}");
            let sections = dialect.snapshot_sections();
            for part in dialect.restorable() {
                let is_part = |section: &&str| section.trim_start_matches(['+', '=']) == *part;
                assert!(
                    sections.iter().any(|(section, _)| is_part(section)),
                    "{name}: {part}"
                );
            }
            assert_eq!(
                dialect.keeps_terminal(),
                dialect.kept_terminal_lines(&paths, "7").is_some(),
                "{name}"
            );
        }
    }
}
