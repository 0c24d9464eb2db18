//! The rules of the house that no compiler checks, over every source file of the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

/// Modules of the root package by layer; inside a layer a module may import only those before it.
const LAYERS: &[&[&str]] = &[
    &["web", "notebook", "tool", "tools"],
    &["approval", "exec", "service"],
    &["render", "reference"],
    &["chat"],
    &["http", "mcp", "supervisor", "cli"],
];

/// The layer of the front ends, which alone touch terminal and environment.
const FRONT: usize = 4;

/// Crates and the most production lines each may have: neither blank, nor comment, nor test.
const CRATES: &[(&str, usize)] = &[
    ("karyi-core", 3_000),
    ("karyi-syntax", 6_500),
    ("karyi-vault", 14_000),
    ("karyi-pty", 13_200),
    ("karyi-files", 12_000),
    ("karyi-model", 3_000),
    ("karyi-net", 1_500),
    ("karyi-screen", 5_000),
    ("karyi-store", 4_000),
    ("karyi-tasks", 4_300),
];

struct Source {
    path: PathBuf,
    /// Path of its module, from its crate: `["karyi", "exec", "plan"]`.
    module: Vec<String>,
    /// The file without its tests.
    code: String,
}

impl Source {
    /// Returns the layer and the place on it, or nothing for a file of another crate.
    fn layer(&self) -> Option<(usize, usize)> {
        match &self.module[..] {
            [package, top, ..] if package == "karyi" => place(top),
            _ => None,
        }
    }

    /// Tells whether the file belongs to a front end.
    fn is_front(&self) -> bool {
        self.module == ["karyi", "main"] || self.layer().is_some_and(|(layer, _)| layer == FRONT)
    }

    fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.code.lines().enumerate();
        lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut packages = vec![("karyi", root.join("src"))];
    packages.extend(
        CRATES
            .iter()
            .map(|(name, _)| (*name, root.join("crates").join(name).join("src"))),
    );
    packages
        .into_iter()
        .flat_map(|(name, directory)| sources_in(name, &directory))
        .collect()
}

fn sources_in(package: &str, directory: &Path) -> Vec<Source> {
    let mut files = Vec::new();
    collect(directory, &mut files);
    assert!(
        files.len() > 5,
        "{} has {} source files",
        directory.display(),
        files.len()
    );
    let source = |path: PathBuf| {
        let relative = path.strip_prefix(directory).unwrap().with_extension("");
        let parts = relative
            .iter()
            .map(|part| part.to_string_lossy().into_owned());
        let mut module: Vec<String> = [package.to_owned()].into_iter().chain(parts).collect();
        module.pop_if(|last| *last == "mod" || *last == "lib");
        let text = fs::read_to_string(&path).unwrap();
        let code = text
            .split("#[cfg(test)]\nmod tests")
            .next()
            .unwrap_or_default()
            .to_owned();
        Source { path, module, code }
    };
    files.into_iter().map(source).collect()
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

/// Returns layer and place of a module of the root package.
fn place(module: &str) -> Option<(usize, usize)> {
    let on = |layer: &&[&str]| layer.iter().position(|name| *name == module);
    LAYERS
        .iter()
        .enumerate()
        .find_map(|(number, layer)| Some((number, on(layer)?)))
}

fn lines_matching(source: &Source, pattern: &Regex) -> Vec<String> {
    let found = source
        .code_lines()
        .filter(|(_, line)| pattern.is_match(line));
    found
        .map(|(number, line)| format!("{}:{}: {}", source.path.display(), number + 1, line.trim()))
        .collect()
}

#[track_caller]
fn assert_none(offenders: Vec<String>, rule: &str) {
    assert!(offenders.is_empty(), "{rule}:\n{}", offenders.join("\n"));
}

/// Returns every path of its own crate that a file names, from the crate on. Groups are taken apart.
fn imports(source: &Source) -> BTreeSet<Vec<String>> {
    // A `pub use` passes a name on; the file itself does not need it.
    static USES: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?m)^\s*(?:pub\([a-z ]+\) )?use ([^;]+);").unwrap());
    static EXPORTS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?m)^\s*pub use [^;]+;").unwrap());
    static INLINE: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\b(?:crate|(?:super::)*super)(?:::[a-z_]+)+").unwrap());
    let code: Vec<&str> = source.code_lines().map(|(_, line)| line).collect();
    let code = EXPORTS.replace_all(&code.join("\n"), "").into_owned();
    let mut paths = Vec::new();
    for found in USES.captures_iter(&code) {
        expand("", &found[1], &mut paths);
    }
    let rest = USES.replace_all(&code, "");
    paths.extend(
        INLINE
            .find_iter(&rest)
            .map(|found| found.as_str().to_owned()),
    );
    paths
        .iter()
        .filter_map(|path| absolute(source, path))
        .collect()
}

/// Takes `a::{b, c::{d, e}}` apart: `a::b`, `a::c::d`, `a::c::e`.
fn expand(prefix: &str, tree: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((before, group)) = tree.split_once('{') else {
        paths.push(format!("{prefix}{tree}"));
        return;
    };
    let prefix = format!("{prefix}{before}");
    let group = &group[..group.rfind('}').unwrap()];
    let (mut depth, mut start) = (0, 0);
    for (at, sign) in group.char_indices() {
        match sign {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                expand(&prefix, &group[start..at], paths);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !group[start..].trim().is_empty() {
        expand(&prefix, &group[start..], paths);
    }
}

/// Returns a path that begins with `crate`, `self` or `super` from the crate on.
fn absolute(source: &Source, path: &str) -> Option<Vec<String>> {
    let path = path.split(" as ").next()?.trim();
    let mut parts = path.split("::").map(str::trim).peekable();
    let mut base = match parts.next()? {
        "crate" => source.module[..1].to_vec(),
        "self" => source.module.clone(),
        "super" => source.module[..source.module.len() - 1].to_vec(),
        _ => return None,
    };
    while parts.next_if(|part| *part == "super").is_some() {
        base.pop();
    }
    base.extend(parts.filter(|part| *part != "self").map(str::to_owned));
    Some(base)
}

#[test]
fn groups_of_imports_are_taken_apart() {
    let mut paths = Vec::new();
    expand("", "crate::{a, b::{self, c::D}, e::*}", &mut paths);
    assert_eq!(
        paths,
        [
            "crate::a",
            "crate::b::self",
            "crate::b::c::D",
            "crate::e::*"
        ]
    );
}

#[test]
fn every_module_has_a_place() {
    let is_root =
        |s: &&Source| s.module[0] == "karyi" && s.module.len() > 1 && s.module[1] != "main";
    let all = sources();
    let lost = all.iter().filter(is_root).filter(|s| s.layer().is_none());
    assert_none(
        lost.map(|s| s.path.display().to_string()).collect(),
        "modules on no layer",
    );
}

#[test]
fn imports_go_down_the_layers() {
    let mut offenders = Vec::new();
    for source in sources() {
        let Some(own) = source.layer() else {
            continue;
        };
        for path in imports(&source) {
            let Some(target) = path.get(1).filter(|target| **target != source.module[1]) else {
                continue;
            };
            if place(target).is_none_or(|place| place >= own) {
                offenders.push(format!("{}: {}", source.path.display(), path.join("::")));
            }
        }
    }
    assert_none(offenders, "imports that do not go down");
}

#[test]
fn files_import_each_other_without_cycles() {
    let all = sources();
    let modules: BTreeSet<&[String]> = all.iter().map(|source| &source.module[..]).collect();
    let mut edges: BTreeMap<&[String], Vec<&[String]>> = BTreeMap::new();
    for source in &all {
        let targets = imports(source);
        let targets = targets.iter().filter_map(|path| file_of(path, &modules));
        let targets = targets.filter(|target| *target != source.module).collect();
        edges.insert(&source.module, targets);
    }
    // What imports nothing that is left cannot be in a cycle.
    let mut left = edges.clone();
    loop {
        let count = left.len();
        let names: BTreeSet<&[String]> = left.keys().copied().collect();
        left.retain(|_, targets| targets.iter().any(|target| names.contains(target)));
        if left.len() == count {
            break;
        }
    }
    let cycles = left.keys().filter(|start| reaches(&edges, start, start));
    let cycles = cycles.map(|module| module.join("::")).collect();
    assert_none(cycles, "files in a cycle of imports");
}

/// Returns the module a path leads to: the longest one it starts with.
fn file_of<'a>(path: &[String], modules: &BTreeSet<&'a [String]>) -> Option<&'a [String]> {
    (1..=path.len())
        .rev()
        .find_map(|length| modules.get(&path[..length]).copied())
}

fn reaches(edges: &BTreeMap<&[String], Vec<&[String]>>, start: &[String], goal: &[String]) -> bool {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&[String]> = edges[start].clone();
    while let Some(next) = open.pop() {
        if next == goal {
            return true;
        }
        if seen.insert(next) {
            open.extend(edges.get(next).into_iter().flatten());
        }
    }
    false
}

#[test]
fn crates_keep_their_size() {
    let all = sources();
    let mut offenders = Vec::new();
    for (name, most) in CRATES {
        let files = all.iter().filter(|source| source.module[0] == *name);
        let lines = files.flat_map(Source::code_lines);
        let count = lines.filter(|(_, line)| !line.trim().is_empty()).count();
        if count > *most {
            offenders.push(format!("{name}: {count} lines, at most {most}"));
        }
    }
    assert_none(offenders, "crates that have grown too large");
}

#[test]
fn every_file_has_a_header() {
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
        .filter(|s| !s.is_front())
        .flat_map(|s| lines_matching(s, &pattern))
        .collect();
    assert_none(offenders, "terminal or environment below the front ends");
}

#[test]
fn unsafe_code_stands_in_one_file() {
    let pattern = Regex::new(r"allow\(unsafe_code\)|\bunsafe\s*(\{|fn|impl)").unwrap();
    let offenders = sources()
        .iter()
        .filter(|s| !s.path.ends_with("karyi-pty/src/sys.rs"))
        .flat_map(|s| lines_matching(s, &pattern))
        .collect();
    assert_none(offenders, "unsafe code outside karyi-pty/src/sys.rs");
}

#[test]
fn errors_of_unknown_type_stay_in_the_front_ends() {
    let pattern = Regex::new(r"\banyhow::").unwrap();
    let offenders = sources()
        .iter()
        .filter(|s| !s.is_front())
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
fn the_engine_of_a_session_is_made_of_parts() {
    let all = sources();
    let is_engine = |s: &&Source| s.module.starts_with(&["karyi-pty".into(), "engine".into()]);
    let methods = Regex::new(r"^impl (Engine|Job) ").unwrap();
    let outside = all.iter().filter(|s| !is_engine(s));
    let outside = outside.flat_map(|s| lines_matching(s, &methods)).collect();
    assert_none(outside, "methods of the engine outside of its folder");
    let engine: Vec<&str> = all
        .iter()
        .filter(is_engine)
        .map(|s| s.code.as_str())
        .collect();
    let engine = engine.join("\n");
    let field = Regex::new(r"(?m)^    (?:pub\([a-z]+\) )?[a-z_]+: ").unwrap();
    for name in [
        "Engine",
        "State",
        "ShellState",
        "Job",
        "Output",
        "JobWatch",
        "JobLines",
    ] {
        let start = format!("struct {name} {{\n");
        let (_, rest) = engine.split_once(&start).unwrap();
        let (fields, _) = rest.split_once("\n}\n").unwrap();
        let count = field.find_iter(fields).count();
        assert!((1..=10).contains(&count), "{name} has {count} fields");
    }
}

#[test]
fn every_wait_has_its_limit_in_one_place() {
    let pattern = Regex::new(r"Duration::from_(secs|millis|micros)\(\s*[0-9_]+\s*\)").unwrap();
    let offenders = sources()
        .iter()
        .filter(|s| s.module[..].get(1).is_none_or(|top| top != "limits"))
        .flat_map(|s| lines_matching(s, &pattern))
        .collect();
    assert_none(offenders, "times outside karyi-core/src/limits");
}

/// ring is the one provider of encryption; the others build C code for minutes.
#[test]
fn neither_aws_lc_nor_openssl_is_linked() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lock = manifest(&root.join("Cargo.lock"));
    let packages = lock["package"].as_array().unwrap();
    let names: BTreeSet<&str> = packages
        .iter()
        .filter_map(|package| package["name"].as_str())
        .collect();
    assert!(names.contains("ring") && names.contains("reqwest"));
    for name in [
        "aws-lc-sys",
        "aws-lc-rs",
        "openssl-sys",
        "openssl",
        "native-tls",
    ] {
        assert!(!names.contains(name), "{name} is in Cargo.lock");
    }
}

#[test]
fn every_request_leaves_through_one_client() {
    let pattern = Regex::new(r"\breqwest::|\bhyper::client|TcpStream::connect").unwrap();
    let offenders = sources()
        .iter()
        .filter(|s| s.module[0] != "karyi_net" && s.module[0] != "karyi-net")
        .flat_map(|s| lines_matching(s, &pattern))
        .collect();
    assert_none(offenders, "requests beside karyi-net");
}

/// A lock file that does not fit stops `fuzz/run`, and nothing else tells of it.
#[test]
fn the_fuzz_targets_are_locked_to_what_the_library_has() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lock = manifest(&root.join("fuzz/Cargo.lock"));
    let packages = lock["package"].as_array().unwrap();
    let mut directories = vec![("karyi", root.to_owned())];
    directories.extend(
        CRATES
            .iter()
            .map(|(name, _)| (*name, root.join("crates").join(name))),
    );
    for (name, directory) in directories {
        let declared = dependencies(&manifest(&directory.join("Cargo.toml")));
        let own = packages
            .iter()
            .find(|package| package["name"].as_str() == Some(name));
        // A version follows the name where there are several.
        let locked: BTreeSet<String> = own.unwrap()["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|name| Some(name.as_str()?.split(' ').next()?.to_owned()))
            .collect();
        assert!(declared.len() > 2);
        assert_eq!(
            declared, locked,
            "{name}: run cargo update --workspace in fuzz"
        );
    }
}

fn manifest(file: &Path) -> toml::Value {
    toml::Value::Table(fs::read_to_string(file).unwrap().parse().unwrap())
}

/// Returns the names of all dependencies but those of tests, on every system.
fn dependencies(manifest: &toml::Value) -> BTreeSet<String> {
    let targets = manifest.get("target").and_then(|target| target.as_table());
    let tables = targets.into_iter().flat_map(|targets| targets.values());
    tables
        .chain([manifest])
        .filter_map(|table| table.get("dependencies")?.as_table())
        .flat_map(|table| table.keys().cloned())
        .collect()
}
