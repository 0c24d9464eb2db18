//! The rules of the house that a program can check, over every source file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// Modules by floor; inside a floor a module may import only those before it.
const FLOORS: &[&[&str]] = &[
    &["span", "limits", "capped"],
    &["call", "error", "outcome", "secret"],
    &["syntax", "vault", "pty", "files", "net", "model", "store"],
    &["tool", "tools"],
    &["exec", "service"],
    &["render", "reference"],
    &["http", "mcp", "chat", "telegram", "supervisor", "cli"],
];

/// The floor of the front ends, which alone touch terminal and environment.
const FRONT: usize = 6;

struct Source {
    path: PathBuf,
    /// Top-level module: `pty`, or `lib` and `main`.
    module: String,
    /// The file without its tests.
    code: String,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&root, &mut files);
    assert!(
        files.len() > 30,
        "only {} source files were found",
        files.len()
    );
    files
        .into_iter()
        .map(|path| {
            let first = path.strip_prefix(&root).unwrap().iter().next().unwrap();
            let module = first.to_string_lossy().trim_end_matches(".rs").to_owned();
            let text = fs::read_to_string(&path).unwrap();
            let code = text
                .split("#[cfg(test)]\nmod tests")
                .next()
                .unwrap_or_default()
                .to_owned();
            Source { path, module, code }
        })
        .collect()
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            // The modules of `tests.rs`, which only tests are built from.
            if !(path.ends_with("tests") && dir.join("tests.rs").exists()) {
                collect(&path, files);
            }
        } else if path.extension().is_some_and(|e| e == "rs")
            && path.file_name().unwrap() != "tests.rs"
        {
            files.push(path);
        }
    }
}

/// Returns floor and place of a module.
fn place(module: &str) -> Option<(usize, usize)> {
    let on = |floor: &&[&str]| floor.iter().position(|name| *name == module);
    FLOORS
        .iter()
        .enumerate()
        .find_map(|(number, floor)| Some((number, on(floor)?)))
}

fn lines_matching(source: &Source, pattern: &Regex) -> Vec<String> {
    let code = source.code.lines().enumerate();
    let is_code = |line: &str| !line.trim_start().starts_with("//");
    code.filter(|(_, line)| is_code(line) && pattern.is_match(line))
        .map(|(number, line)| format!("{}:{}: {}", source.path.display(), number + 1, line.trim()))
        .collect()
}

#[track_caller]
fn assert_none(offenders: Vec<String>, rule: &str) {
    assert!(offenders.is_empty(), "{rule}:\n{}", offenders.join("\n"));
}

#[test]
fn every_module_has_a_place() {
    let lost: Vec<String> = sources()
        .iter()
        .filter(|s| !["lib", "main"].contains(&s.module.as_str()) && place(&s.module).is_none())
        .map(|s| s.path.display().to_string())
        .collect();
    assert_none(lost, "modules on no floor");
}

#[test]
fn imports_go_down_the_floors() {
    let import = Regex::new(r"\bcrate::([a-z_]+)").unwrap();
    let mut offenders = Vec::new();
    for source in sources() {
        let Some(own) = place(&source.module) else {
            continue;
        };
        for line in source
            .code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
        {
            for found in import.captures_iter(line) {
                let target = &found[1];
                let is_below = place(target).is_some_and(|(floor, order)| {
                    floor < own.0 || (floor == own.0 && order < own.1)
                });
                if target != source.module && !is_below {
                    offenders.push(format!("{}: {}", source.path.display(), line.trim()));
                }
            }
        }
    }
    assert_none(offenders, "imports that do not go down");
}

#[test]
fn files_import_each_other_without_cycles() {
    let all = sources();
    let names: Vec<String> = all.iter().map(module_path).collect();
    let mut edges: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for source in &all {
        let own = module_path(source);
        // A `mod.rs` that re-exports its children is not part of a cycle.
        if !source.path.ends_with("mod.rs") {
            let targets = imports(source).filter_map(|path| file_of(&path, &names));
            let targets = targets.filter(|target| *target != own).collect();
            edges.insert(own, targets);
        }
    }
    let cycles = edges
        .keys()
        .filter(|start| reaches(&edges, start, start))
        .cloned()
        .collect();
    assert_none(cycles, "files in a cycle of imports");
}

/// Returns the module a file is: `syntax::tag`, and `syntax` for its `mod.rs`.
fn module_path(source: &Source) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let relative = source.path.strip_prefix(&root).unwrap().with_extension("");
    let parts: Vec<String> = relative
        .iter()
        .map(|p| p.to_string_lossy().into_owned())
        .collect();
    let path = parts.join("::");
    path.strip_suffix("::mod")
        .map_or(path.clone(), str::to_owned)
}

/// Returns every path of this crate that a file names, from the top.
fn imports(source: &Source) -> impl Iterator<Item = String> {
    let pattern = Regex::new(r"\b(crate|(?:super::)*super)::([a-z_]+(?:::[a-z_]+)*)").unwrap();
    let own: Vec<String> = module_path(source).split("::").map(str::to_owned).collect();
    let code: Vec<&str> = source
        .code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let code = code.join("\n");
    let paths = pattern.captures_iter(&code).map(|found| {
        let ups = if &found[1] == "crate" {
            own.len()
        } else {
            found[1].matches("super").count()
        };
        let base = own[..own.len().saturating_sub(ups)].join("::");
        if base.is_empty() {
            found[2].to_owned()
        } else {
            format!("{base}::{}", &found[2])
        }
    });
    paths.collect::<Vec<_>>().into_iter()
}

/// Returns the file that a path leads to: the longest module it starts with.
fn file_of(path: &str, names: &[String]) -> Option<String> {
    let fits = |name: &&String| path == name.as_str() || path.starts_with(&format!("{name}::"));
    names
        .iter()
        .filter(fits)
        .max_by_key(|name| name.len())
        .cloned()
}

fn reaches(edges: &BTreeMap<String, Vec<String>>, start: &str, goal: &str) -> bool {
    let mut seen = Vec::new();
    let mut open: Vec<&str> = edges
        .get(start)
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    while let Some(next) = open.pop() {
        if next == goal {
            return true;
        }
        if !seen.contains(&next) {
            seen.push(next);
            open.extend(edges.get(next).into_iter().flatten().map(String::as_str));
        }
    }
    false
}

#[test]
fn every_file_says_what_it_decides() {
    let silent = sources()
        .iter()
        .filter(|s| !s.code.starts_with("//! "))
        .map(|s| s.path.display().to_string())
        .collect();
    assert_none(silent, "files without a header");
}

#[test]
fn only_front_ends_touch_terminal_and_environment() {
    let pattern = Regex::new(
        r"\bprintln!|\beprint(ln)?!|\bprint!|\benv::(var|args|current|temp|home|set_|remove_)|io::(stdin|stdout|stderr)\(|crossterm::|home_dir",
    )
    .unwrap();
    let offenders = sources()
        .iter()
        .filter(|s| s.module != "main" && place(&s.module).is_none_or(|(floor, _)| floor < FRONT))
        .flat_map(|s| lines_matching(s, &pattern))
        .collect();
    assert_none(offenders, "terminal or environment below the front ends");
}

#[test]
fn nothing_outside_tests_gives_up() {
    let pattern =
        Regex::new(r"\.unwrap\(\)|\.expect\(|\bpanic!\(|\btodo!\(|\bunimplemented!\(|\bassert!\(")
            .unwrap();
    let offenders = sources()
        .iter()
        .flat_map(|s| lines_matching(s, &pattern))
        .collect();
    assert_none(offenders, "code that panics");
}

#[test]
fn unsafe_code_stands_in_one_file() {
    let pattern = Regex::new(r"allow\(unsafe_code\)|\bunsafe\s*(\{|fn|impl)").unwrap();
    let offenders = sources()
        .iter()
        .filter(|s| !s.path.ends_with("pty/sys.rs"))
        .flat_map(|s| lines_matching(s, &pattern))
        .collect();
    assert_none(offenders, "unsafe code outside src/pty/sys.rs");
}

#[test]
fn errors_of_unknown_type_stay_in_the_front_ends() {
    let pattern = Regex::new(r"\banyhow::").unwrap();
    let offenders = sources()
        .iter()
        .filter(|s| place(&s.module).is_some_and(|(floor, _)| floor < FRONT))
        .flat_map(|s| lines_matching(s, &pattern))
        .collect();
    assert_none(offenders, "anyhow below the front ends");
}

#[test]
fn files_stay_readable() {
    let long = sources()
        .iter()
        .filter(|s| s.code.lines().count() > 800)
        .map(|s| format!("{}: {} lines", s.path.display(), s.code.lines().count()))
        .collect();
    assert_none(long, "files over 800 lines");
    let main = sources().into_iter().find(|s| s.module == "main").unwrap();
    assert!(main.code.lines().count() < 40);
}

#[test]
fn names_say_something() {
    let empty = [
        "util", "utils", "helper", "helpers", "manager", "common", "misc", "prelude",
    ];
    let offenders = sources()
        .iter()
        .filter(|s| {
            s.path
                .file_stem()
                .is_some_and(|stem| empty.contains(&&*stem.to_string_lossy()))
        })
        .map(|s| s.path.display().to_string())
        .collect();
    assert_none(offenders, "files with empty names");
}

#[test]
fn every_wait_has_its_limit_in_one_place() {
    let pattern = Regex::new(r"Duration::from_(secs|millis|micros)\(\s*[0-9_]+\s*\)").unwrap();
    let offenders = sources()
        .iter()
        .filter(|s| s.module != "limits")
        .flat_map(|s| lines_matching(s, &pattern))
        .collect();
    assert_none(offenders, "times outside src/limits.rs");
}

/// A lock file that does not fit stops `fuzz/run`, and nothing else tells of it.
#[test]
fn the_fuzz_targets_are_locked_to_what_the_library_has() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let parsed = |file: &str| -> toml::Table {
        let text = fs::read_to_string(root.join(file)).unwrap();
        text.parse().unwrap()
    };
    let manifest = toml::Value::Table(parsed("Cargo.toml"));
    let targets = manifest["target"].as_table().unwrap().values();
    let tables = targets.chain([&manifest]);
    let declared: BTreeSet<String> = tables
        .filter_map(|table| table.get("dependencies")?.as_table().cloned())
        .flat_map(|table| table.into_iter().map(|(name, _)| name))
        .collect();
    let lock = parsed("fuzz/Cargo.lock");
    let packages = lock["package"].as_array().unwrap();
    let own = packages
        .iter()
        .find(|package| package["name"].as_str() == Some("karyi"));
    // A version follows the name where there are several.
    let locked: BTreeSet<String> = own.unwrap()["dependencies"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|name| Some(name.as_str()?.split(' ').next()?.to_owned()))
        .collect();
    assert!(declared.len() > 30);
    assert_eq!(declared, locked, "run cargo update --workspace in fuzz");
}
