//! `karyi tools`: lists and explains the tools.

use std::process::ExitCode;

use jiff::Timestamp;

use crate::cli::args::{ToolsArgs, ToolsTopic};
use crate::cli::shell::{self, SessionUse, ShellNames};
use crate::cli::vault::{VaultFlags, VaultLocation};
use crate::cli::{fail, print};
use crate::reference::{grammar, help, prompt};
use crate::render::paint::safe_line;
use crate::tool::spec::Family;
use crate::tools;
use karyi_core::secret::SecretName;
use karyi_vault::index::{Index, IndexEntry};

/// Sentence on what `karyi run` does at the end of a message, for its model.
const ONE_ANSWER: &str = "\n- Shell and jobs end with your answer; the next one starts anew.";

/// Runs `karyi tools`.
pub(super) fn tools(args: &ToolsArgs) -> ExitCode {
    let scripts = match args.offer.offer() {
        Ok(offer) => offer.registry(),
        Err(error) => return fail(&format!("{error:#}")),
    };
    if let Some(ToolsTopic::Grammar { notation }) = args.topic {
        return print(&grammar::grammar(&scripts, notation));
    }
    let Some(family) = Family::ALL
        .iter()
        .find(|family| family.as_str() == args.family)
    else {
        let known: Vec<&str> = Family::ALL.iter().map(|family| family.as_str()).collect();
        return fail(&format!(
            "unknown family of tools {:?}; the families are: {}",
            args.family,
            known.join(", ")
        ));
    };
    let registry = match *family == Family::Core {
        true => scripts,
        false => tools::all().only(|entry| entry.spec.family == *family),
    };
    match args.name.as_deref() {
        None if args.json => print(&help::list_json(&registry)),
        None => print(&help::list(&registry)),
        Some("prompt") => {
            let names = if args.no_var_names {
                String::new()
            } else {
                var_names()
            };
            let search_path = shell::search_path();
            let shell = match family.is_for_scripts() {
                true => ShellNames::find(None, SessionUse::Script, &search_path),
                false => return print(&(prompt::prompt(&registry, "") + &names)),
            };
            match shell {
                Ok(_) if !registry.lists("command") => {
                    print(&(prompt::prompt(&registry, "") + &names))
                }
                Ok(shell) => {
                    let shell = shell.description(&search_path) + ONE_ANSWER;
                    print(&(prompt::prompt(&registry, &shell) + &names))
                }
                Err(error) => fail(&format!("{error:#}")),
            }
        }
        Some(name) => match tools::all().get(name) {
            Some(entry) if args.json => print(&help::tool_json(entry)),
            Some(entry) => print(&help::tool(entry)),
            None => fail(&format!(
                "unknown tool {name:?}; `karyi tools` lists the tools"
            )),
        },
    }
}

/// Returns the names and notes of usable secrets, from the index alone.
pub(super) fn var_names() -> String {
    let place = VaultLocation::find(&VaultFlags::default(), None);
    let index = place.and_then(|place| Index::read(&place.directory));
    // A prompt without names is still useful.
    let index = index.unwrap_or_default();
    let now = Timestamp::now();
    let cwd = std::env::current_dir().unwrap_or_default();
    let used = index.store.as_ref().map(|chosen| chosen.kind);
    let is_usable = |name: &SecretName, listed: &IndexEntry| {
        let mut tools = ["command", "input", "edit"].iter();
        used == Some(listed.store)
            && tools.any(|tool| listed.policy.check_use(name, tool, &cwd, now).is_ok())
    };
    let lines = index.secret_names().filter_map(|name| {
        let listed = index.get(&name).filter(|listed| is_usable(&name, listed))?;
        let note = listed.note.as_deref().unwrap_or_default();
        let line = format!("- $KARYI{{{name}}} {note}");
        Some(format!("{}\n", safe_line(line.trim_end())))
    });
    let lines: String = lines.collect();
    if lines.is_empty() {
        return lines;
    }
    format!("\nSecrets you may use by name, without ever seeing a value:\n{lines}")
}
