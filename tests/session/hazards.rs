//! Commands that break shells driven by typing, all in one session.

mod found;
mod known;
mod losses;

use std::path::Path;
use std::time::{Duration, Instant};

use karyi::error::ToolError;
use karyi::outcome::Status;
use karyi::pty::{CommandRequest, InputRequest};

use super::support::{CommandOutcome, Shell, run};

/// What is done when a command waits, or goes on.
enum Step {
    Input(&'static str),
    Key(&'static str),
}

use Step::{Input, Key};

/// How long a command of the list may take.
const LONG: Duration = Duration::from_secs(120);

/// A command that breaks shells which are driven otherwise.
struct Hazard {
    name: &'static str,
    script: &'static str,
    steps: &'static [Step],
    /// What the output contains: one of these, separated by `|`.
    contains: &'static str,
    exit_code: Option<i32>,
    /// Shells in which it ends otherwise, and why; they must survive it all the same.
    differs: &'static [(&'static str, &'static str)],
}

const fn hazard(
    name: &'static str,
    script: &'static str,
    steps: &'static [Step],
    contains: &'static str,
    exit_code: Option<i32>,
) -> Hazard {
    Hazard {
        name,
        script,
        steps,
        contains,
        exit_code,
        differs: &[],
    }
}

impl Hazard {
    const fn differs(mut self, shells: &'static [(&'static str, &'static str)]) -> Self {
        self.differs = shells;
        self
    }
}

/// All of them, in the order in which one session meets them.
const HAZARDS: [&[Hazard]; 3] = [known::HAZARDS, found::HAZARDS, losses::HAZARDS];

async fn one_hazard(shell: &Shell, name: &str, hazard: &Hazard) -> Result<(), String> {
    let (seen, output) = steps(shell, hazard)
        .await
        .map_err(|error| format!("{}: {error}", hazard.name))?;
    let is_usual = hazard.differs.iter().all(|(shell, _)| *shell != name);
    let is_right = hazard.contains.split('|').any(|text| output.contains(text))
        && matches!(
            seen.status,
            Status::Ok | Status::Failed | Status::Stopped | Status::Killed
        )
        && (seen.status != Status::Killed || seen.progress.restarted.is_some())
        && hazard
            .exit_code
            .is_none_or(|code| seen.exit_code == Some(code));
    if !is_usual && seen.status == Status::Running {
        let _ = shell.try_key("c").await;
    }
    if is_usual && !is_right {
        let shown: String = output.chars().take(300).collect();
        return Err(format!("{}: {:?} {shown:?}", hazard.name, seen.progress));
    }
    let seen = command(shell, r#"echo "ok-$((1+1))""#, LONG).await;
    let is_right = seen
        .as_ref()
        .is_ok_and(|seen| seen.exit_code == Some(0) && seen.output.lines().any(|l| l == "ok-2"));
    if is_right {
        Ok(())
    } else {
        Err(format!("{}: probe answered {seen:?}", hazard.name))
    }
}

/// Runs a hazard; returns the last result and all output.
async fn steps(shell: &Shell, hazard: &Hazard) -> Result<(CommandOutcome, String), ToolError> {
    let timeout = match hazard.steps.first() {
        Some(Key(_)) => Duration::from_millis(300),
        _ => LONG,
    };
    let mut seen = command(shell, hazard.script, timeout).await?;
    let mut output = seen.output.clone();
    for step in hazard.steps {
        seen = match step {
            Input(text) => shell.try_input(text, InputRequest::default()).await?,
            Key(name) => shell.try_key(name).await?,
        };
        output.push_str(&seen.output);
    }
    Ok((seen, output))
}

async fn command(
    shell: &Shell,
    script: &str,
    timeout: Duration,
) -> Result<CommandOutcome, ToolError> {
    let request = CommandRequest {
        script: script.into(),
        timeout: Some(timeout),
        ..CommandRequest::default()
    };
    shell.request(request).await
}

async fn survives_every_hazard(path: &str) {
    let Some(name) = Path::new(path).file_name().and_then(|name| name.to_str()) else {
        return;
    };
    let shell = Shell::with(|options| options.shell = Some(path.into())).await;
    let line = format!("echo {} | wc -c", "a".repeat(6000));
    shell.check(&line, 0, "6001\n").await;
    let mut failures = Vec::new();
    for hazard in HAZARDS.into_iter().flatten() {
        let start = Instant::now();
        if let Err(failure) = one_hazard(&shell, name, hazard).await {
            failures.push(failure);
            // The rest is tried all the same.
            let _ = shell.try_key("c").await;
        }
        println!("{}: {:?}", hazard.name, start.elapsed());
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(shell.session.close().await, None);
}

fn check(path: &str) {
    if Path::new(path).exists() {
        run(survives_every_hazard(path));
    } else {
        eprintln!("skipped: no {path}");
    }
}

#[test]
fn bash_survives_every_hazard_in_one_session() {
    check("/bin/bash");
}

#[test]
fn zsh_survives_every_hazard_in_one_session() {
    check("/usr/bin/zsh");
}

#[test]
fn dash_survives_every_hazard_in_one_session() {
    check("/bin/dash");
}

#[test]
fn ksh_survives_every_hazard_in_one_session() {
    check("/bin/ksh");
}

#[test]
fn mksh_survives_every_hazard_in_one_session() {
    check("/bin/mksh");
}

#[test]
fn busybox_survives_every_hazard_in_one_session() {
    check("/bin/busybox");
}
