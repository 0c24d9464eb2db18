//! `karyi doctor`: checks what works on this machine and suggests fixes.
//!
//! Every check runs in its own thread with a time limit, so that a hanging file system or shell is a line in the
//! list. A real session is started last, since only it shows that everything works together.

mod environment;
mod session;

use std::process::ExitCode;
use std::sync::mpsc;

use serde_json::{Value, json};

use crate::cli::args::DoctorArgs;
use crate::cli::{fail, print, screen};
use crate::render::paint::{Colour, Ink, safe_line};
use karyi_core::limits;
use karyi_pty::health::{Check, Health, SYSTEM};

/// Exit status when a session lacks something it needs.
const MISSING: u8 = 1;

/// Runs `karyi doctor`.
pub(super) fn doctor(args: &DoctorArgs) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("starting the runtime: {error}")),
    };
    let mut checks: Vec<Check> = SYSTEM
        .iter()
        .chain(environment::CHECKS)
        .map(|(name, check)| bounded(name, *check))
        .collect();
    checks.extend(runtime.block_on(session::checks(args)));
    runtime.shutdown_background();
    let printed = if args.json {
        print(&json_of(&checks))
    } else {
        print(&text_of(&checks, screen::colour(&std::io::stdout())))
    };
    match worst(&checks) {
        Health::Missing => ExitCode::from(MISSING),
        Health::Ok | Health::Limited => printed,
    }
}

/// Runs a check, which may hang.
fn bounded(name: &str, check: fn() -> Check) -> Check {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::Builder::new().name("check".into());
    // Abandoned at its deadline: a thread that hangs in the kernel cannot be stopped.
    let started = thread.spawn(move || sender.send(check()));
    let found = started
        .ok()
        .and_then(|_| receiver.recv_timeout(limits::CHECK_TIMEOUT).ok());
    found.unwrap_or_else(|| {
        let found = format!("no answer in {} s", limits::CHECK_TIMEOUT.as_secs());
        Check::limited(name, found, "not known", "find the cause of the hang")
    })
}

fn worst(checks: &[Check]) -> Health {
    let has = |health| checks.iter().any(|check| check.health == health);
    if has(Health::Missing) {
        Health::Missing
    } else if has(Health::Limited) {
        Health::Limited
    } else {
        Health::Ok
    }
}

fn json_of(checks: &[Check]) -> String {
    let report = json!({
        "version": env!("CARGO_PKG_VERSION"), "status": worst(checks).as_str(), "checks": list_of(checks),
    });
    format!("{report:#}\n")
}

/// Returns checks for programs.
pub(super) fn list_of(checks: &[Check]) -> Vec<Value> {
    let fields = |check: &Check| {
        json!({
            "name": check.name, "status": check.health.as_str(), "found": check.found,
            "meaning": check.meaning, "advice": check.advice,
        })
    };
    checks.iter().map(fields).collect()
}

fn text_of(checks: &[Check], colour: Colour) -> String {
    let width = checks
        .iter()
        .map(|check| check.name.len())
        .max()
        .unwrap_or(0);
    let indent = " ".repeat("missing".len() + width + 4);
    let mut text = String::new();
    for check in checks {
        let ink = match check.health {
            Health::Ok => Ink::Good,
            Health::Limited => Ink::Warning,
            Health::Missing => Ink::Bad,
        };
        let status = colour.paint(ink, &format!("{:7}", check.health.as_str()));
        let found = safe_line(&check.found);
        text.push_str(&format!("{status}  {:width$}  {found}\n", check.name));
        if check.health != Health::Ok {
            text.push_str(&format!("{indent}means: {}\n", safe_line(&check.meaning)));
            text.push_str(&format!("{indent}to do: {}\n", safe_line(&check.advice)));
        }
    }
    text.push_str(match worst(checks) {
        Health::Ok => "\nEverything works.\n",
        Health::Limited => "\nSessions work, with the limits above.\n",
        Health::Missing => "\nA session lacks something it needs.\n",
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_hangs_is_a_line_of_its_own() {
        let hang: fn() -> Check = || loop {
            std::thread::park();
        };
        let check = bounded("disk", hang);
        assert_eq!(
            (check.name.as_str(), check.health),
            ("disk", Health::Limited)
        );
        let lost: fn() -> Check = || std::panic::resume_unwind(Box::new(()));
        assert_eq!(bounded("disk", lost).health, Health::Limited);
    }

    #[test]
    fn the_text_shows_what_to_do_only_where_something_is_to_be_done() {
        let checks = [
            Check::ok("one", "fine", "all"),
            Check::limited("three", "a\x1b[31m\nb", "less", "buy more"),
        ];
        let expected = "ok       one    fine\n\
                        limited  three  a␛[31m␊b\n\
                        \x20               means: less\n\
                        \x20               to do: buy more\n\
                        \nSessions work, with the limits above.\n";
        assert_eq!(text_of(&checks, Colour::Off), expected);
        assert!(text_of(&checks, Colour::On).contains("\x1b[32mok     \x1b[0m"));
    }
}
