//! Scripts with hostile values, in real shells through the whole session: a program receives exactly the value, or
//! the call is refused.

use super::support::{Bench, code};
use super::values::HOSTILE;
use std::fs;

/// Notes what it gets, word by word; `-` is what its input holds.
const RECEIVER: &str = "#!/bin/sh\nfor a in \"$@\"; do\n  if [ \"$a\" = - ]; then cat; else printf %s \"$a\"; fi\n  printf '\\001'\ndone >> \"$OUT\"\n";

#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    pub right: usize,
    pub refused: usize,
    pub wrong: usize,
    pub injected: usize,
}

pub struct Matrix {
    bench: Bench,
    tally: Tally,
    problems: Vec<String>,
}

impl Matrix {
    pub fn new(shell: &str) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let mut bench = Bench::with_shell(shell).given("OTHER", "other-value");
        for (column, value) in HOSTILE.iter().enumerate() {
            bench = bench.given(&format!("K{column}"), value);
        }
        let receiver = bench.work().join("recv");
        fs::write(&receiver, RECEIVER).unwrap();
        fs::set_permissions(&receiver, fs::Permissions::from_mode(0o755)).unwrap();
        let (work, out) = (bench.work().display().to_string(), bench.work().join("out"));
        let prepared = bench.command(&format!(
            "export OUT='{}' PATH=\"{work}:$PATH\"; set -- one; unset unset; setopt ksharrays 2>/dev/null; :",
            out.display()
        ));
        assert_eq!(code(&prepared), "ok", "{prepared:?}");
        Self {
            bench,
            tally: Tally::default(),
            problems: Vec::new(),
        }
    }

    /// Runs a script with one value in place of `VALUE`.
    pub fn check_script(
        &mut self,
        text: &str,
        received: &str,
        must_be_refused: Option<bool>,
        column: usize,
    ) {
        let value = HOSTILE[column];
        let expected = received.replace('|', "\x01").replace("VALUE", value);
        let out = self.bench.work().join("out");
        let _ = fs::remove_file(&out);
        let script = text.replace("VALUE", &format!("$KARYI{{K{column}}}"));
        let script = format!("set -- one; {script}");
        let outcome = self.bench.command(&script);
        let received = fs::read(&out).unwrap_or_default();
        let received = String::from_utf8_lossy(&received);
        let canary = self.bench.work().join("pwned");
        let is_refused = matches!(code(&outcome), "unsafe_context" | "unsafe_nested_parse");
        let mut problem = |kind: &str| {
            self.problems.push(format!(
                "{kind}: {text:?} with {value:?}: {received:?}, {outcome:?}"
            ));
        };
        if canary.exists() {
            fs::remove_file(canary).unwrap();
            self.tally.injected += 1;
            problem("injected");
        } else if is_refused && received.is_empty() {
            self.tally.refused += 1;
            if must_be_refused == Some(false) {
                problem("refused");
            }
        } else if received == expected && must_be_refused != Some(true) {
            self.tally.right += 1;
        } else {
            self.tally.wrong += 1;
            problem("wrong");
        }
    }

    /// Tells what came of all checks and fails when one of them found something.
    #[track_caller]
    pub fn finish(self, what: &str) -> Tally {
        let Tally {
            right,
            refused,
            wrong,
            injected,
        } = self.tally;
        println!("{what}: {right} right, {refused} refused, {wrong} wrong, {injected} injected");
        let shown: Vec<String> = self.problems.iter().take(40).cloned().collect();
        assert!(
            shown.is_empty(),
            "{} problems:\n{}",
            self.problems.len(),
            shown.join("\n")
        );
        self.tally
    }
}
