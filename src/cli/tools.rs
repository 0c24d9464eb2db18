//! `karyi tools`: what there is, and how it is used.

use std::process::ExitCode;

use crate::cli::args::{ToolsArgs, ToolsTopic};
use crate::cli::{fail, print};
use crate::reference::{grammar, help, prompt};
use crate::tool::spec::Family;
use crate::tools;

/// Runs `karyi tools`.
pub(super) fn tools(args: &ToolsArgs) -> ExitCode {
    let scripts = tools::registry();
    if let Some(ToolsTopic::Grammar { notation }) = args.topic {
        return print(&grammar::grammar(&scripts, notation));
    }
    let Some(family) = Family::ALL
        .iter()
        .find(|family| family.as_str() == args.family)
    else {
        let known: Vec<&str> = Family::ALL.iter().map(|family| family.as_str()).collect();
        return fail(&format!(
            "no family of tools is called {:?}; there is: {}",
            args.family,
            known.join(", ")
        ));
    };
    let registry = match family.is_for_scripts() {
        true => scripts,
        false => tools::all().only(|entry| entry.spec.family == *family),
    };
    match args.name.as_deref() {
        None if args.json => print(&help::list_json(&registry)),
        None => print(&help::list(&registry)),
        Some("prompt") => print(&prompt::prompt(&registry, *family)),
        Some(name) => match tools::all().get(name) {
            Some(entry) if args.json => print(&help::tool_json(entry)),
            Some(entry) => print(&help::tool(entry)),
            None => fail(&format!(
                "no tool is called {name:?}; `karyi tools` lists them"
            )),
        },
    }
}
