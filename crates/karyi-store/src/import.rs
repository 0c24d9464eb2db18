//! Imports sites from directories of YAML and JSON files.
//!
//! A directory with `site.yaml` (or `.yml`, `.json`) is a site; the other such files in or below it list
//! profiles, contents, points, routes and prompts. A directory without one contains sites, one per
//! subdirectory.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::rules;
use crate::site::{Bundle, Content, Profile, Prompt, Site};
use karyi_core::ids::hex;
use karyi_core::limits;

/// Failure to import a site.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct ImportError {
    /// File or directory.
    pub path: PathBuf,
    /// Description of the problem.
    pub problem: String,
}

/// File of a site besides `site.yaml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Part {
    profiles: Vec<Profile>,
    contents: Vec<Content>,
    points: Vec<Point>,
    routes: Vec<Route>,
    prompts: Vec<Prompt>,
}

/// Point of interest.
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

/// Route from point to point.
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
/// The first file that cannot be read or is invalid.
pub fn read(directory: &Path) -> Result<Vec<Bundle>, ImportError> {
    if site_file(directory).is_some() {
        return Ok(vec![bundle(directory)?]);
    }
    let mut bundles = Vec::new();
    let mut places: HashMap<(String, String), PathBuf> = HashMap::new();
    for path in entries(directory)? {
        if path.is_dir() && site_file(&path).is_some() {
            let found = bundle(&path)?;
            let name = (found.site.tenant_id.clone(), found.site.site_id.clone());
            if let Some(other) = places.get(&name) {
                let (tenant, site) = name;
                let problem = format!(
                    "it is the site {tenant}/{site}, and so is {}; expected one directory for each site",
                    other.display()
                );
                return Err(wrong(&path, problem));
            }
            places.insert(name, path);
            bundles.push(found);
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
    rules::check(&all).map_err(|problem| wrong(directory, problem))?;
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
    let text = text_of(path).map_err(|problem| wrong(path, problem))?;
    digest.update(path.to_string_lossy().as_bytes());
    digest.update(&[0]);
    digest.update(text.as_bytes());
    digest.update(&[0]);
    Ok(text)
}

fn text_of(path: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| error.to_string();
    // Opening a pipe would block until somebody writes to it.
    let flags = nix::libc::O_NONBLOCK | nix::libc::O_NOCTTY;
    let opened = File::options().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err("expected a regular file, found something else".into());
    }
    let mut text = String::new();
    // The reported size may be outdated.
    let most = limits::MAX_IMPORT_FILE_BYTES;
    let length = file.take(most + 1).read_to_string(&mut text);
    match length.map_err(failed)? as u64 > most {
        true => Err(format!("expected at most {most} bytes, found more")),
        false => Ok(text),
    }
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
        ..content("poi", point.id, point.name, point.description)
    }
}

fn route(route: Route) -> Content {
    Content {
        metadata: Map::from_iter([("stops".to_owned(), Value::from(route.stops))]),
        ..content("route", route.id, route.name, route.description)
    }
}

fn content(content_type: &str, id: String, title: String, about: Option<String>) -> Content {
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
    fn errors_name_the_file() {
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
    fn special_files_are_not_read() {
        let check = |make: &dyn Fn(&Path), expected: &str| {
            let dir = tempfile::tempdir().unwrap();
            fs::write(dir.path().join("site.yaml"), SITE).unwrap();
            let path = dir.path().join("a.yaml");
            make(&path);
            let error = read(dir.path()).unwrap_err();
            let expected = ImportError {
                path,
                problem: expected.into(),
            };
            assert_eq!(error, expected);
        };
        let other = "expected a regular file, found something else";
        check(
            &|path| std::os::unix::fs::symlink("/dev/zero", path).unwrap(),
            other,
        );
        let mode = nix::sys::stat::Mode::S_IRWXU;
        check(&|path| nix::unistd::mkfifo(path, mode).unwrap(), other);
        let most = limits::MAX_IMPORT_FILE_BYTES;
        check(
            // A sparse file takes no space.
            &|path| File::create(path).unwrap().set_len(most + 1).unwrap(),
            &format!("expected at most {most} bytes, found more"),
        );
    }

    #[test]
    fn one_site_has_one_directory() {
        let error = site(&[("a/site.yaml", SITE), ("b/site.yaml", SITE)]).unwrap_err();
        assert_eq!(
            error,
            "DIR/b: it is the site t/s, and so is DIR/a; expected one directory for each site"
        );
    }

    #[test]
    fn all_sites_of_a_directory_are_read() {
        let other = "tenant_id: u\nsite_id: s\nname: U\n";
        let found = site(&[("a/site.yaml", SITE), ("b/site.yaml", other)]).unwrap();
        let names: Vec<&str> = found
            .iter()
            .map(|bundle| bundle.site.name.as_str())
            .collect();
        assert_eq!(names, ["S", "U"]);
    }
}
