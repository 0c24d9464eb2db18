//! Reads a site from a directory of YAML and JSON files.
//!
//! A directory with `site.yaml` (or `.yml`, `.json`) is a site; every other such file in or below
//! it holds lists of profiles, contents, points, routes and prompts. A directory without one holds
//! sites, one in each directory in it.

use std::fs;
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::limits;
use crate::store::ids::hex;
use crate::store::site::{Bundle, Content, Profile, Prompt, Site};

/// Why a site could not be read: the file, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct ImportError {
    /// The file or directory.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: String,
}

/// One file beside the site's own.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Part {
    profiles: Vec<Profile>,
    contents: Vec<Content>,
    points: Vec<Point>,
    routes: Vec<Route>,
    prompts: Vec<Prompt>,
}

/// A place on the site.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Point {
    id: String,
    name: String,
    #[serde(rename = "type", default = "default_type")]
    kind: String,
    description: Option<String>,
    location: Option<Location>,
    #[serde(default)]
    tags: Vec<String>,
}

fn default_type() -> String {
    "default".into()
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Location {
    lat: f64,
    lng: f64,
}

/// A walk from place to place.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Route {
    id: String,
    name: String,
    description: Option<String>,
    #[serde(default)]
    stops: Vec<String>,
}

/// Reads every site in a directory.
///
/// # Errors
/// The first file that cannot be read, or does not fit.
pub fn read(directory: &Path) -> Result<Vec<Bundle>, ImportError> {
    if site_file(directory).is_some() {
        return Ok(vec![bundle(directory)?]);
    }
    let mut bundles = Vec::new();
    for path in entries(directory)? {
        if path.is_dir() && site_file(&path).is_some() {
            bundles.push(bundle(&path)?);
        }
    }
    match bundles.is_empty() {
        false => Ok(bundles),
        true => Err(wrong(
            directory,
            "expected site.yaml or site.json here or in a directory in it, found none",
        )),
    }
}

fn site_file(directory: &Path) -> Option<PathBuf> {
    let names = ["site.yaml", "site.yml", "site.json"];
    let mut paths = names.iter().map(|name| directory.join(name));
    paths.find(|path| path.is_file())
}

fn bundle(directory: &Path) -> Result<Bundle, ImportError> {
    let own = site_file(directory).ok_or_else(|| wrong(directory, "there is no site.yaml"))?;
    let mut digest = Context::new(&SHA256);
    let site: Site = parse(&own, &load(&own, &mut digest)?)?;
    let mut all = Bundle {
        site,
        profiles: Vec::new(),
        contents: Vec::new(),
        prompts: Vec::new(),
        digest: String::new(),
    };
    let mut paths = Vec::new();
    collect(directory, 0, &mut paths)?;
    for path in paths.iter().filter(|path| **path != own) {
        let part: Part = parse(path, &load(path, &mut digest)?)?;
        all.profiles.extend(part.profiles);
        all.contents.extend(part.contents);
        all.contents.extend(part.points.into_iter().map(point));
        all.contents.extend(part.routes.into_iter().map(route));
        all.prompts.extend(part.prompts);
    }
    all.digest = hex(digest.finish().as_ref());
    check(directory, &all)?;
    Ok(all)
}

fn collect(directory: &Path, depth: usize, paths: &mut Vec<PathBuf>) -> Result<(), ImportError> {
    if depth > limits::MAX_IMPORT_DEPTH {
        return Err(wrong(directory, "the directories are nested too deeply"));
    }
    for path in entries(directory)? {
        let extension = path.extension().and_then(|e| e.to_str());
        if path.is_dir() {
            collect(&path, depth + 1, paths)?;
        } else if matches!(extension, Some("yaml" | "yml" | "json")) {
            paths.push(path);
        }
    }
    match paths.len() <= limits::MAX_IMPORT_FILES {
        true => Ok(()),
        false => Err(wrong(directory, "there are too many files")),
    }
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let list = fs::read_dir(directory).map_err(|error| wrong(directory, error))?;
    let paths = list.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = paths
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(directory, error))?;
    paths.sort();
    Ok(paths)
}

fn load(path: &Path, digest: &mut Context) -> Result<String, ImportError> {
    let size = fs::metadata(path)
        .map_err(|error| wrong(path, error))?
        .len();
    if size > limits::MAX_IMPORT_FILE_BYTES {
        return Err(wrong(
            path,
            format!("it has {size} bytes, which is too much"),
        ));
    }
    let text = fs::read_to_string(path).map_err(|error| wrong(path, error))?;
    digest.update(path.to_string_lossy().as_bytes());
    digest.update(&[0]);
    digest.update(text.as_bytes());
    digest.update(&[0]);
    Ok(text)
}

fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, ImportError> {
    let is_json = path
        .extension()
        .is_some_and(|extension| extension == "json");
    let read = match is_json {
        true => serde_json::from_str(text).map_err(|error| error.to_string()),
        false => serde_saphyr::from_str(text).map_err(|error| error.to_string()),
    };
    read.map_err(|problem| wrong(path, problem))
}

fn point(point: Point) -> Content {
    let mut metadata = Map::new();
    if let Some(Location { lat, lng }) = point.location {
        metadata.insert("location".into(), json!({"lat": lat, "lng": lng}));
    }
    Content {
        category: Some(point.kind),
        tags: point.tags,
        metadata,
        ..place("poi", point.id, point.name, point.description)
    }
}

fn route(route: Route) -> Content {
    Content {
        metadata: Map::from_iter([("stops".to_owned(), Value::from(route.stops))]),
        ..place("route", route.id, route.name, route.description)
    }
}

fn place(content_type: &str, id: String, title: String, about: Option<String>) -> Content {
    Content {
        id,
        content_type: content_type.into(),
        title,
        body: about.clone().unwrap_or_default(),
        summary: about,
        category: None,
        tags: Vec::new(),
        domains: Vec::new(),
        source: None,
        credibility_score: 1.0,
        verified: true,
        status: "published".into(),
        metadata: Map::new(),
    }
}

/// Refuses what the store could only refuse without naming it.
fn check(directory: &Path, bundle: &Bundle) -> Result<(), ImportError> {
    let ids = bundle.contents.iter().map(|content| content.id.clone());
    once(directory, "content", ids)?;
    let versions = bundle
        .profiles
        .iter()
        .map(|p| format!("{} version {}", p.npc_id, p.version));
    once(directory, "profile", versions)?;
    let active = bundle
        .profiles
        .iter()
        .filter(|p| p.active)
        .map(|p| p.npc_id.clone());
    once(directory, "active profile of", active)?;
    let prompts = bundle.prompts.iter().filter(|p| p.active);
    let prompts = prompts.map(|p| format!("{} {}", p.npc_id, p.prompt_type));
    once(directory, "active prompt of", prompts)?;
    let wild = bundle
        .contents
        .iter()
        .find(|c| !(0.0..=1.0).contains(&c.credibility_score));
    match wild {
        None => Ok(()),
        Some(content) => Err(wrong(
            directory,
            format!(
                "content {}: credibility_score must be from 0 to 1",
                content.id
            ),
        )),
    }
}

fn once(
    directory: &Path,
    what: &str,
    names: impl Iterator<Item = String>,
) -> Result<(), ImportError> {
    let mut seen = std::collections::HashSet::new();
    for name in names {
        if seen.contains(&name) {
            return Err(wrong(directory, format!("there are two of: {what} {name}")));
        }
        seen.insert(name);
    }
    Ok(())
}

fn wrong(path: &Path, problem: impl ToString) -> ImportError {
    ImportError {
        path: path.to_owned(),
        problem: problem.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(files: &[(&str, &str)]) -> Result<Vec<Bundle>, String> {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = dir.path().to_string_lossy().into_owned();
        read(dir.path()).map_err(|error| error.to_string().replace(&root, "DIR"))
    }

    const SITE: &str = "tenant_id: t\nsite_id: s\nname: S\n";

    #[test]
    fn yaml_and_json_say_the_same() {
        let yaml =
            "points:\n- id: p\n  name: P\n  type: heritage\n  location: {lat: 1.5, lng: 2}\n";
        let json = r#"{"points":[{"id":"p","name":"P","type":"heritage","location":{"lat":1.5,"lng":2}}]}"#;
        let a = site(&[("site.yaml", SITE), ("a/points.yaml", yaml)]).unwrap();
        let b = site(&[("site.yaml", SITE), ("points.json", json)]).unwrap();
        assert_eq!(a[0].contents, b[0].contents);
        assert_eq!(
            a[0].contents[0].metadata,
            *json!({"location": {"lat": 1.5, "lng": 2.0}})
                .as_object()
                .unwrap()
        );
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_file() {
        let check = |files: &[(&str, &str)], expected: &str| {
            let error = site(files).unwrap_err();
            assert!(error.contains(expected), "{error}");
        };
        check(&[("a.yaml", SITE)], "DIR: expected site.yaml");
        check(&[("site.yaml", "name: S")], "DIR/site.yaml: ");
        check(
            &[("site.yaml", SITE), ("p.json", r#"{"profile": []}"#)],
            "unknown field `profile`",
        );
        let twice = "profiles:\n- {npc_id: n, name: N}\n- {npc_id: n, name: N, version: 2}\n";
        check(
            &[("site.yaml", SITE), ("p.yaml", twice)],
            "two of: active profile of n",
        );
    }

    #[test]
    fn a_directory_of_sites_is_read_whole() {
        let other = "tenant_id: u\nsite_id: s\nname: U\n";
        let found = site(&[("a/site.yaml", SITE), ("b/site.yaml", other)]).unwrap();
        let names: Vec<&str> = found
            .iter()
            .map(|bundle| bundle.site.name.as_str())
            .collect();
        assert_eq!(names, ["S", "U"]);
    }
}
