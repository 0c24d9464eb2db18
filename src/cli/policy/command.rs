//! `karyi policy`: shows and removes rules, and explains what they decide.

use std::process::ExitCode;

use anyhow::Context as _;
use serde_json::{Value as Json, json};

use crate::approval::{AskedPart, Mode, Verdict};
use crate::cli::policy::args::{PolicyArgs, PolicyCommand};
use crate::cli::policy::project::ProjectPolicy;
use crate::cli::{fail, print, say};
use crate::exec::approval::{ApprovalOptions, Approvals};
use crate::render::paint::safe_line;
use crate::tools::{self, Call};

/// Exit status when there is no such rule.
const NO_RULE: u8 = 1;

/// Runs `karyi policy`.
pub(in crate::cli) fn policy(args: PolicyArgs) -> ExitCode {
    let done = match args.command {
        PolicyCommand::List { json } => list(json),
        PolicyCommand::Explain { script, mode, json } => explain(&script, mode, json),
        PolicyCommand::Remove { rule, json } => remove(&rule, json),
    };
    done.unwrap_or_else(|error| fail(&format!("{error:#}")))
}

fn here() -> anyhow::Result<ProjectPolicy> {
    let cwd = std::env::current_dir().context("finding the current directory")?;
    ProjectPolicy::of(&cwd)
}

fn list(is_json: bool) -> anyhow::Result<ExitCode> {
    let policy = here()?;
    let rules = policy.listed();
    if is_json {
        let rules = rules.map(|(kind, rule, source)| {
            json!({ "action": kind, "rule": rule.as_str(), "source": source.as_str() })
        });
        return Ok(print(&format!("{}\n", Json::Array(rules.collect()))));
    }
    let line = |(kind, rule, source): (&str, &crate::approval::Rule, super::project::Source)| {
        let rule = safe_line(rule.as_str()).into_owned();
        format!("{kind:<5}  {rule:<40}  {}\n", source.as_str())
    };
    let mode = format!("mode   {:<40}\n", policy.mode.as_str());
    Ok(print(
        &rules.map(line).fold(mode, |text, line| text + &line),
    ))
}

fn explain(script: &str, mode: Option<Mode>, is_json: bool) -> anyhow::Result<ExitCode> {
    let policy = here()?;
    let cwd = std::env::current_dir().context("finding the current directory")?;
    let options = ApprovalOptions {
        rules: policy.all_rules(),
        ..ApprovalOptions::new(mode.unwrap_or(policy.mode), policy.project)
    };
    let call = command(script)?;
    let verdict = Approvals::new(options).judge(&call, cwd, true);
    Ok(print(&match is_json {
        true => format!("{}\n", object(&verdict)),
        false => text(&verdict),
    }))
}

/// Returns the call that runs a script.
fn command(script: &str) -> anyhow::Result<Call> {
    let registry = tools::registry();
    let arguments = json!({ "text": script });
    let call = registry
        .get("command")
        .map(|entry| (entry.from_json)(arguments));
    call.context("the tool `command` is missing")?
        .context("reading the script")
}

fn text(verdict: &Verdict) -> String {
    let line = |part: &AskedPart| {
        let (what, reason) = (safe_line(&part.what), safe_line(&part.reason));
        let rule = part
            .rule
            .as_deref()
            .map(|rule| format!("; the rule `{}` allows it", safe_line(rule)));
        format!("  {what}: {reason}{}\n", rule.unwrap_or_default())
    };
    match verdict {
        Verdict::Allow(_) => "it runs\n".to_owned(),
        Verdict::Ask(parts) => parts
            .iter()
            .map(line)
            .fold("it is asked about\n".to_owned(), |text, line| text + &line),
        Verdict::Deny(rule) => format!("it does not run: {} does not permit it\n", safe_line(rule)),
    }
}

fn object(verdict: &Verdict) -> Json {
    match verdict {
        Verdict::Allow(names) => json!({ "decision": "allow", "names": names }),
        Verdict::Ask(parts) => {
            let parts = parts.iter().map(|part| {
                json!({
                    "what": part.what,
                    "reason": part.reason,
                    "rule": part.rule,
                    "wider_rule": part.wider_rule,
                })
            });
            json!({ "decision": "ask", "parts": parts.collect::<Vec<_>>() })
        }
        Verdict::Deny(rule) => json!({ "decision": "deny", "by": rule }),
    }
}

fn remove(rule: &str, is_json: bool) -> anyhow::Result<ExitCode> {
    let policy = here()?;
    let is_removed = policy.store.remove(rule.trim())?;
    if is_json {
        print(&format!("{}\n", json!({ "removed": is_removed })));
    } else if !is_removed {
        say("no such rule is stored for this project; `karyi policy list` shows all rules");
    }
    Ok(match is_removed {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(NO_RULE),
    })
}
