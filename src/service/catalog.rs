//! The tools that a server offers, and their listings.

use serde::Serialize;
use serde_json::{Value, json};

use crate::service::principal::CALL;
use crate::tool::registry::Entry;
use crate::tool::service::{Audience, Service};
use crate::tool::spec::Family;
use crate::tool::validate;
use crate::tools::{self, Call};

/// One tool on offer.
pub struct OfferedTool {
    /// Registry entry.
    pub entry: Entry<Call>,
    /// Scopes that a caller needs, all of them.
    pub scopes: Vec<String>,
    /// True if an input is a list of files that may be given as plain paths.
    pub takes_paths: bool,
}

/// Listing of one tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolListing {
    /// Name of the tool.
    pub name: &'static str,
    /// Version of its input and output.
    pub version: &'static str,
    /// Summary and details.
    pub description: String,
    /// Category, which is part of a scope's name.
    pub category: &'static str,
    /// JSON Schema of the input.
    pub input_schema: Value,
    /// JSON Schema of the output.
    pub output_schema: Value,
    /// True if callers must authenticate.
    pub requires_auth: bool,
    /// True if a model may decide to call it.
    pub ai_callable: bool,
}

impl OfferedTool {
    /// Returns the name of the tool.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.entry.spec.name
    }

    /// Tells whether the tool works on a site; others work on this machine.
    #[must_use]
    pub fn is_site_tool(&self) -> bool {
        self.entry.spec.family == Family::Site
    }

    /// Returns the listing of the tool.
    #[must_use]
    pub fn listing(&self) -> ToolListing {
        let spec = &self.entry.spec;
        let output = self
            .entry
            .output_schema
            .as_ref()
            .map(|schema| schema.published());
        ToolListing {
            name: spec.name,
            version: self.entry.service.version,
            description: format!("{}. {}", spec.summary, spec.details),
            category: self.entry.service.category,
            input_schema: self.entry.schema.of_input(),
            output_schema: output.unwrap_or_else(|| json!({"type": "object"})),
            requires_auth: true,
            ai_callable: self.entry.service.audience == Audience::Anyone,
        }
    }
}

fn scopes(service: &Service) -> Vec<String> {
    let own = format!("{CALL}{}", service.category);
    let others = service.scopes.iter().map(|scope| (*scope).to_owned());
    std::iter::once(own).chain(others).collect()
}

/// Returns all site tools, and the named tools of this machine.
///
/// # Errors
/// The names that cannot be offered.
pub fn offered_tools(named: &[String]) -> Result<Vec<OfferedTool>, Vec<String>> {
    /// Tools that need a person or a lasting terminal.
    const NEVER: [&str; 4] = ["get_value", "input", "ctrl", "plan"];
    let is_offered = |entry: &Entry<Call>| {
        let name = entry.spec.name;
        entry.spec.family == Family::Site
            || (named.iter().any(|other| other == name) && !NEVER.contains(&name))
    };
    let offered = tools::all().only(is_offered).into_entries();
    let offered: Vec<OfferedTool> = offered
        .into_iter()
        .map(|entry| OfferedTool {
            scopes: scopes(&entry.service),
            takes_paths: validate::takes_paths(entry.schema.annotated()),
            entry,
        })
        .collect();
    let is_offered = |name: &&String| offered.iter().any(|tool| tool.name() == *name);
    let unknown: Vec<String> = named
        .iter()
        .filter(|name| !is_offered(name))
        .cloned()
        .collect();
    match unknown.is_empty() {
        true => Ok(offered),
        false => Err(unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_tools_are_offered_by_name_only() {
        let names = |named: &[&str]| {
            let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
            offered_tools(&named)
                .map(|tools| tools.iter().map(OfferedTool::name).collect::<Vec<_>>())
        };
        let site = [
            "get_npc_profile",
            "search_content",
            "get_site_map",
            "create_draft_content",
            "log_user_event",
            "get_prompt_active",
        ];
        assert_eq!(names(&[]), Ok(site.to_vec()));
        assert_eq!(names(&["read"]).unwrap()[..2], ["read", "get_npc_profile"]);
        assert_eq!(
            names(&["ctrl", "read", "nope"]),
            Err(vec!["ctrl".into(), "nope".into()])
        );
    }
}
