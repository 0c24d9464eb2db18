//! Every place of a script with every hostile value, in real shells through the whole session: a
//! program receives exactly the value, or the call is refused.

use super::contexts::{BASH, COMMON, Place, Rule, ZSH};
use super::support::{Bench, code};
use super::values::HOSTILE;
use std::fs;

/// Notes what it gets, word by word; `-` is what its input holds.
const RECEIVER: &str = "#!/bin/sh\nfor a in \"$@\"; do\n  if [ \"$a\" = - ]; then cat; else printf %s \"$a\"; fi\n  printf '\\001'\ndone >> \"$OUT\"\n";

#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    right: usize,
    refused: usize,
    wrong: usize,
    injected: usize,
}

struct Matrix {
    bench: Bench,
    tally: Tally,
    problems: Vec<String>,
}

impl Matrix {
    fn new(shell: &str) -> Self {
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

    fn check(&mut self, place: &Place, column: usize, value: &str) {
        let out = self.bench.work().join("out");
        let _ = fs::remove_file(&out);
        let script = format!(
            "set -- one; {}",
            place
                .script
                .replace("VALUE", &format!("$KARYI{{K{column}}}"))
        );
        let outcome = self.bench.command(&script);
        let received = fs::read(&out).unwrap_or_default();
        let received = String::from_utf8_lossy(&received);
        let expected = place.received.replace('|', "\x01").replace("VALUE", value);
        let canary = self.bench.work().join("pwned");
        let is_refused = matches!(code(&outcome), "unsafe_context" | "unsafe_nested_parse");
        let must_be_refused = match place.rule {
            Rule::All => Some(false),
            Rule::Some => None,
            Rule::Number if value == "424242424242" => Some(false),
            Rule::Number | Rule::None => Some(true),
        };
        let mut problem = |kind: &str| {
            self.problems.push(format!(
                "{kind}: {:?} with {value:?}: {received:?}, {outcome:?}",
                place.script
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
}

fn run(shell: &str, places: &[&Place]) {
    let is_full = std::env::var_os("KARYI_FULL").is_some();
    let mut matrix = Matrix::new(shell);
    for (row, place) in places.iter().enumerate() {
        for (column, value) in HOSTILE.iter().enumerate() {
            // The small count takes every row and every column, in other pairs for each row.
            if is_full || (row + column) % 16 == 0 {
                matrix.check(place, column, value);
            }
        }
    }
    let Tally {
        right,
        refused,
        wrong,
        injected,
    } = matrix.tally;
    println!(
        "{shell}: {} places, {} values: {right} right, {refused} refused, {wrong} wrong, {injected} injected",
        places.len(),
        HOSTILE.len()
    );
    let shown = matrix.problems.iter().take(40).cloned().collect::<Vec<_>>();
    assert!(
        shown.is_empty(),
        "{} problems:\n{}",
        matrix.problems.len(),
        shown.join("\n")
    );
    assert!(right > 0 && refused > 0);
}

#[test]
fn no_value_is_code_in_bash() {
    run("/bin/bash", &COMMON.iter().chain(BASH).collect::<Vec<_>>());
}

#[test]
fn no_value_is_code_in_zsh() {
    let Some(zsh) = ["/bin/zsh", "/usr/bin/zsh"]
        .into_iter()
        .find(|path| fs::metadata(path).is_ok())
    else {
        println!("skipped: no zsh");
        return;
    };
    run(zsh, &COMMON.iter().chain(ZSH).collect::<Vec<_>>());
}
