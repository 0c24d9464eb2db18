//! Validation of imported sites.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::Value;

use crate::site::{Bundle, Content, Profile, Prompt, Site};
use karyi_core::ids::is_id;
use karyi_core::limits;

/// Content types.
const TYPES: &[&str] = &[
    "knowledge",
    "story",
    "guide",
    "announcement",
    "faq",
    "poi",
    "route",
];
/// Publication states.
const STATUSES: &[&str] = &["draft", "review", "published", "offline"];
/// Uses of prompts.
const PROMPT_TYPES: &[&str] = &["system", "greeting", "fallback"];

/// Validates a site: rejects what the store would refuse without naming it, and what no tool could show.
///
/// # Errors
/// The position, the value found, and the expected value.
pub fn check(bundle: &Bundle) -> Result<(), String> {
    site(&bundle.site)?;
    bundle.profiles.iter().try_for_each(profile)?;
    bundle.prompts.iter().try_for_each(prompt)?;
    bundle.contents.iter().try_for_each(content)?;
    once("content", bundle.contents.iter().map(|c| c.id.clone()))?;
    let versions = bundle.profiles.iter();
    let versions = versions.map(|p| format!("{} version {}", p.npc_id, p.version));
    once("profile", versions)?;
    let active = bundle.profiles.iter().filter(|p| p.active);
    once("active profile of", active.map(|p| p.npc_id.clone()))?;
    let named = |p: &Prompt| format!("{} {}", p.npc_id, p.prompt_type);
    let versions = bundle.prompts.iter();
    let versions = versions.map(|p| format!("{} version {}", named(p), p.version));
    once("prompt of", versions)?;
    let active = bundle.prompts.iter().filter(|p| p.active);
    once("active prompt of", active.map(named))?;
    stops(&bundle.contents)
}

fn site(site: &Site) -> Result<(), String> {
    for (name, id) in [("tenant_id", &site.tenant_id), ("site_id", &site.site_id)] {
        if !is_id(id) || id.len() > limits::MAX_SITE_ID_CHARS {
            return Err(format!(
                "{name}: expected 1 to {} of the characters A-Z a-z 0-9 . _ : -, found {id:?}",
                limits::MAX_SITE_ID_CHARS
            ));
        }
    }
    length("name of the site", &site.name, limits::MAX_NAME_CHARS)
}

fn profile(profile: &Profile) -> Result<(), String> {
    length("npc_id", &profile.npc_id, limits::MAX_ID_CHARS)?;
    let about = format!("profile {}", profile.npc_id);
    version(&about, profile.version)?;
    length(
        &format!("{about}: name"),
        &profile.name,
        limits::MAX_NAME_CHARS,
    )
}

fn prompt(prompt: &Prompt) -> Result<(), String> {
    length("npc_id", &prompt.npc_id, limits::MAX_ID_CHARS)?;
    let about = format!("prompt of {}", prompt.npc_id);
    version(&about, prompt.version)?;
    one_of(
        &format!("{about}: prompt_type"),
        &prompt.prompt_type,
        PROMPT_TYPES,
    )
}

fn content(content: &Content) -> Result<(), String> {
    length("id of a content", &content.id, limits::MAX_ID_CHARS)?;
    let about = format!("content {}", content.id);
    let place = |field: &str| format!("{about}: {field}");
    one_of(&place("content_type"), &content.content_type, TYPES)?;
    one_of(&place("status"), &content.status, STATUSES)?;
    length(
        &place("title"),
        &content.title,
        limits::MAX_CONTENT_TITLE_CHARS,
    )?;
    let score = content.credibility_score;
    if !(0.0..=1.0).contains(&score) {
        return Err(format!(
            "{about}: expected credibility_score from 0 to 1, found {score}"
        ));
    }
    match content.metadata.get("location") {
        Some(found) if content.content_type == "poi" && !is_location(found) => Err(format!(
            "{about}: expected a location with lat from -90 to 90 and lng from -180 to 180"
        )),
        _ => Ok(()),
    }
}

fn is_location(value: &Value) -> bool {
    #[derive(Deserialize)]
    struct Location {
        lat: f64,
        lng: f64,
    }
    // NaN and infinity became null in JSON.
    Location::deserialize(value).is_ok_and(|place| {
        (-90.0..=90.0).contains(&place.lat) && (-180.0..=180.0).contains(&place.lng)
    })
}

/// Checks that the stops of routes are points of the same site.
fn stops(contents: &[Content]) -> Result<(), String> {
    let of_type = |kind: &'static str| contents.iter().filter(move |c| c.content_type == kind);
    let points: HashSet<&str> = of_type("poi").map(|point| point.id.as_str()).collect();
    for route in of_type("route") {
        let named = route.metadata.get("stops").and_then(Value::as_array);
        for stop in named.into_iter().flatten() {
            let is_known = stop.as_str().is_some_and(|stop| points.contains(stop));
            if !is_known {
                return Err(format!(
                    "content {}: expected stops that are points of the site, found {stop}",
                    route.id
                ));
            }
        }
    }
    Ok(())
}

fn version(about: &str, version: u32) -> Result<(), String> {
    match version {
        0 => Err(format!("{about}: expected a version from 1, found 0")),
        _ => Ok(()),
    }
}

fn one_of(place: &str, found: &str, known: &[&str]) -> Result<(), String> {
    match known.contains(&found) {
        true => Ok(()),
        false => Err(format!(
            "{place}: expected one of {}, found {found:?}",
            known.join(", ")
        )),
    }
}

fn length(place: &str, text: &str, most: usize) -> Result<(), String> {
    let found = text.chars().count();
    match (1..=most).contains(&found) {
        true => Ok(()),
        false => Err(format!(
            "{place}: expected 1 to {most} characters, found {found}"
        )),
    }
}

fn once(what: &str, names: impl Iterator<Item = String>) -> Result<(), String> {
    let mut seen = HashSet::new();
    for name in names {
        if seen.contains(&name) {
            return Err(format!("there are two of: {what} {name}"));
        }
        seen.insert(name);
    }
    Ok(())
}

#[cfg(test)]
#[path = "rules/tests.rs"]
mod tests;
