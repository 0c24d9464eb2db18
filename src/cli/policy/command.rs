//! `karyi policy`: shows and removes rules, and explains what they decide.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use serde_json::{Value as Json, json};

use crate::approval::{AskedPart, Mode, Rule, RuleKind, Verdict};
use crate::cli::config::{self, Settings};
use crate::cli::policy::args::{PolicyArgs, PolicyCommand};
use crate::cli::policy::project::{PROJECT_SETTINGS, ProjectPolicy, Source, home, project};
use crate::cli::policy::store::ApprovalStore;
use crate::cli::shell::{self, SessionUse, ShellNames};
use crate::cli::{fail, print, say};
use crate::exec::approval::{ApprovalOptions, Approvals, ShellPlace};
use crate::render::paint::safe_line;
use crate::tool::sessions::is_bash;
use crate::tools::{self, Call};

/// Exit status when there is no such rule.
const NO_RULE: u8 = 1;

/// Runs `karyi policy`.
pub(in crate::cli) fn policy(args: PolicyArgs) -> ExitCode {
    let done = match args.command {
        PolicyCommand::List { json } => list(json),
        PolicyCommand::Explain { script, mode, json } => explain(&script, mode, json),
        PolicyCommand::Add {
            rule,
            ask,
            deny,
            user,
        } => {
            let kind = match (ask, deny) {
                (true, _) => RuleKind::Ask,
                (_, true) => RuleKind::Deny,
                _ => RuleKind::Allow,
            };
            add(kind, rule.trim(), user)
        }
        PolicyCommand::Trust { dir } => set_trusted(dir, true),
        PolicyCommand::Untrust { dir } => set_trusted(dir, false),
        PolicyCommand::Remove { rule, json } => remove(rule.trim(), json),
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
    let line = |(kind, rule, source): (&str, &Rule, Source)| {
        let rule = safe_line(rule.as_str()).into_owned();
        format!("{kind:<5}  {rule:<40}  {}\n", source.as_str())
    };
    let mut start = format!("mode   {:<40}\n", policy.mode.as_str());
    if let Some(is_trusted) = policy.trust {
        let word = if is_trusted { "yes" } else { "no" };
        let source = Source::Stored.as_str();
        start.push_str(&format!("trust  {word:<40}  {source}\n"));
    }
    if let Some(ignored) = &policy.ignored {
        say(ignored);
    }
    Ok(print(
        &rules.map(line).fold(start, |text, line| text + &line),
    ))
}

fn add(kind: RuleKind, rule: &str, is_for_all: bool) -> anyhow::Result<ExitCode> {
    let parsed =
        Rule::parse(rule).map_err(|why| anyhow::anyhow!("`{}`: {why}", safe_line(rule)))?;
    let place = match is_for_all {
        true => {
            let lists = [(kind.as_str(), vec![parsed.as_str()])];
            config::import(&lists, None, false)?.file
        }
        false => {
            let policy = here()?;
            policy.store.add(kind, &[parsed.to_string()])?;
            policy.project
        }
    };
    let (kind, rule) = (kind.as_str(), safe_line(parsed.as_str()));
    let place = place.display().to_string();
    Ok(print(&format!("{kind}  {rule}  {}\n", safe_line(&place))))
}

fn set_trusted(directory: Option<PathBuf>, is_trusted: bool) -> anyhow::Result<ExitCode> {
    let directory = directory.unwrap_or_else(|| PathBuf::from("."));
    ensure!(
        directory.is_dir(),
        "expected a directory, found none at {}",
        safe_line(&directory.display().to_string())
    );
    let project = project(&directory);
    ApprovalStore::of(&project)?.set_trusted(is_trusted)?;
    let word = if is_trusted { "trusted" } else { "not trusted" };
    let project = project.display().to_string();
    Ok(print(&format!("{word}: {}\n", safe_line(&project))))
}

fn explain(script: &str, mode: Option<Mode>, is_json: bool) -> anyhow::Result<ExitCode> {
    let policy = here()?;
    let cwd = std::env::current_dir().context("finding the current directory")?;
    let options = ApprovalOptions {
        rules: policy.all_rules(),
        home: home(),
        ..ApprovalOptions::new(mode.unwrap_or(policy.mode), policy.project)
    };
    let call = call(script)?;
    let names = ShellNames::find(None, SessionUse::Conversation, &shell::search_path())?;
    let is_bash = is_bash(names.requested.as_ref().or(names.preferred.as_ref()));
    let place = ShellPlace { cwd, is_bash };
    let verdict = Approvals::new(options).judge(&call, place, true);
    Ok(print(&match is_json {
        true => format!("{}\n", object(&verdict)),
        false => text(&verdict),
    }))
}

/// Returns the call that runs a script, or that reads, writes or asks for what stands after `read:`, `edit:` or
/// `fetch:`.
fn call(text: &str) -> anyhow::Result<Call> {
    let (tool, arguments) = match text.split_once(':') {
        Some(("edit", path)) => ("edit", json!({ "files": [{ "src": path, "content": "" }] })),
        Some(("read", path)) => ("read", json!({ "files": [{ "src": path }] })),
        Some(("fetch", url)) => ("url_fetch", json!({ "url": url })),
        _ => ("command", json!({ "text": text })),
    };
    let registry = tools::for_scripts();
    let entry = registry.get(tool).context("the tool is missing")?;
    (entry.from_json)(arguments).with_context(|| format!("reading `{}`", safe_line(text)))
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
    let is_removed = policy.store.remove(rule)?;
    if is_json {
        print(&format!("{}\n", json!({ "removed": is_removed })));
    } else if !is_removed {
        say(&elsewhere(&policy, rule)?);
    }
    Ok(match is_removed {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(NO_RULE),
    })
}

/// Returns a sentence about a rule that is not stored for the project: where it stands, if it does.
fn elsewhere(policy: &ProjectPolicy, rule: &str) -> anyhow::Result<String> {
    let found = policy
        .listed()
        .find(|(_, listed, _)| listed.as_str() == rule);
    let Some((kind, _, source)) = found else {
        return Ok(
            "no such rule is stored for this project; `karyi policy list` shows all rules"
                .to_owned(),
        );
    };
    Ok(match source {
        Source::Settings => {
            let file = Settings::load()?.file.display().to_string();
            let file = safe_line(&file);
            format!("the rule stands in approval.{kind} of {file}: `karyi config edit` opens it")
        }
        Source::Stored | Source::Project => {
            let file = policy.project.join(PROJECT_SETTINGS).display().to_string();
            format!(
                "the rule stands in approval.{kind} of {}: edit it",
                safe_line(&file)
            )
        }
    })
}
