//! The settings of other assistants. Their files of logins are not opened.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::Value;

use crate::approval::RuleKind;
use crate::cli::import::codex_rules;
use crate::cli::import::foreign_settings::{ForeignSettings, Origin, command_rule};

/// Places of settings.
#[derive(Debug, Clone)]
pub(super) struct Places {
    /// Home directory.
    pub(super) home: PathBuf,
    /// Directory for settings: `$XDG_CONFIG_HOME`, else `~/.config`.
    pub(super) config: PathBuf,
    /// Directory of the project.
    pub(super) project: PathBuf,
}

/// Reads the settings of Claude Code.
///
/// # Errors
/// A file cannot be read.
pub(super) fn claude_code(places: &Places) -> anyhow::Result<ForeignSettings> {
    let mut found = ForeignSettings::default();
    let project = places.project.join(".claude");
    let files = [
        (Origin::User, places.home.join(".claude/settings.json")),
        (Origin::Project, project.join("settings.json")),
        (Origin::Project, project.join("settings.local.json")),
    ];
    for (origin, file) in files {
        found.origin = origin;
        let Some(settings) = found.read_json(&file)? else {
            continue;
        };
        for list in RuleKind::ALL {
            let rules = settings.pointer(&format!("/permissions/{}", list.as_str()));
            for rule in texts(rules) {
                found.add(list, rule, claude_rule(list, rule, &places.home));
                if list == RuleKind::Deny && rule.starts_with("Read(") {
                    found.skip("deny", rule, "karyi denies changes of it, and no reads");
                }
            }
        }
        if let Some(model) = settings.get("model").and_then(Value::as_str) {
            // Short names such as `opus` are none of the API.
            let is_full = model.starts_with("claude-");
            found.set_model(model, is_full.then(|| format!("anthropic:{model}")));
        }
    }
    if let Some(servers) = found.read_json(&places.project.join(".mcp.json"))? {
        found.add_servers(servers.get("mcpServers"));
    }
    Ok(found)
}

const OTHER_TOOL: &str = "karyi has rules about commands and changes of files";

/// Result of translating a rule: those of karyi, or the reason why there are none.
type Translated = Result<Vec<String>, &'static str>;

/// Returns the rules of `Bash(…)`, `Edit(…)` and `Write(…)`, and those of a denied `Read(…)`, which keeps changes out,
/// too.
fn claude_rule(list: RuleKind, text: &str, home: &Path) -> Translated {
    let call = text.strip_suffix(')').and_then(|text| text.split_once('('));
    match call.ok_or(OTHER_TOOL)? {
        ("Bash", pattern) => command_rule(pattern),
        ("Edit" | "Write", pattern) => claude_paths(list, pattern, home),
        ("Read", pattern) if list == RuleKind::Deny => claude_paths(list, pattern, home),
        _ => Err(OTHER_TOOL),
    }
}

/// Returns the rules of a pattern of paths, which is one of a `.gitignore`: `//` starts an absolute one, `/` and `./`
/// one in the project. Others match at any depth: all of them when they narrow, and those of one name when they allow.
/// A match may be a directory.
fn claude_paths(list: RuleKind, pattern: &str, home: &Path) -> Translated {
    let rooted = ["/", "./", "~/", "**/"];
    let is_name = !pattern.trim_end_matches('/').contains('/');
    let is_deep = !rooted.iter().any(|start| pattern.starts_with(start));
    let is_deep = is_deep && (is_name || list != RuleKind::Allow);
    let path = match (pattern.strip_prefix("//"), pattern.strip_prefix('/')) {
        (Some(path), _) => format!("/{path}"),
        (None, Some(path)) => path.to_owned(),
        (None, None) if is_deep => format!("**/{pattern}"),
        (None, None) => pattern.to_owned(),
    };
    let path = path_of(&path, home)?;
    let inner =
        (list != RuleKind::Allow && !path.ends_with(['/', '*'])).then(|| format!("{path}/"));
    Ok(std::iter::once(path)
        .chain(inner)
        .map(|path| format!("edit:{path}"))
        .collect())
}

/// Returns a path of a rule, with the home directory in place of `~`.
fn path_of(path: &str, home: &Path) -> Result<String, &'static str> {
    if path.starts_with('!') || path.contains(['[', '{', '\\']) {
        return Err("a pattern of karyi has `*`, `**` and `?` only");
    }
    let Some(rest) = path.strip_prefix("~/") else {
        return Ok(path.to_owned());
    };
    let home = home
        .to_str()
        .ok_or("the path of the home directory is no UTF-8")?;
    Ok(format!("{home}/{rest}"))
}

/// Reads the settings of Codex.
///
/// # Errors
/// A file cannot be read.
pub(super) fn codex(places: &Places) -> anyhow::Result<ForeignSettings> {
    let mut found = ForeignSettings::default();
    let directory = places.home.join(".codex");
    let file = directory.join("config.toml");
    if let Some(text) = found.read(&file)? {
        let settings: toml_edit::DocumentMut =
            text.parse().map_err(|error: toml_edit::TomlError| {
                // The parser's own text shows the line, which may have a key.
                anyhow::anyhow!("{}: {}", file.display(), error.message())
            })?;
        let text = |name: &str| settings.get(name).and_then(toml_edit::Item::as_str);
        if let Some(model) = text("model") {
            found.set_model(model, Some(format!("openai_responses:{model}")));
        }
        let servers = settings.get("mcp_servers");
        let servers = servers.and_then(toml_edit::Item::as_table_like);
        let names = servers.into_iter().flat_map(|table| table.iter());
        found.servers.extend(names.map(|(name, _)| name.to_owned()));
        for name in ["approval_policy", "sandbox_mode"] {
            if let Some(value) = text(name) {
                found.skip(name, value, "`approval.mode` says how much runs");
            }
        }
    }
    let rules = directory.join("rules");
    let files = rule_files(&rules).with_context(|| format!("reading {}", rules.display()))?;
    for file in files {
        if let Some(text) = found.read(&file)? {
            codex_rules::add(&text, &mut found);
        }
    }
    Ok(found)
}

/// Returns the files of rules in a directory, sorted; none when it does not exist.
fn rule_files(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths = entries.map(|entry| Ok(entry?.path()));
    let mut files = paths.collect::<std::io::Result<Vec<PathBuf>>>()?;
    files.retain(|path| path.extension().is_some_and(|end| end == "rules"));
    files.sort();
    Ok(files)
}

/// Reads the settings of opencode.
///
/// # Errors
/// A file cannot be read.
pub(super) fn opencode(places: &Places) -> anyhow::Result<ForeignSettings> {
    let mut found = ForeignSettings::default();
    let directories = [
        (Origin::User, places.config.join("opencode")),
        (Origin::Project, places.project.clone()),
    ];
    for (origin, directory) in directories {
        found.origin = origin;
        for name in ["opencode.json", "opencode.jsonc"] {
            let Some(settings) = found.read_json(&directory.join(name))? else {
                continue;
            };
            found.add_servers(settings.get("mcp"));
            if let Some(model) = settings.get("model").and_then(Value::as_str) {
                found.set_model(model, opencode_model(model));
            }
            opencode_rules(&settings, &places.home, &mut found);
        }
    }
    Ok(found)
}

/// Returns the model of `PROVIDER/NAME`.
fn opencode_model(model: &str) -> Option<String> {
    let (provider, name) = model.split_once('/')?;
    let provider = match provider {
        "anthropic" => "anthropic",
        "openai" => "openai_responses",
        "google" => "gemini",
        "ollama" => "ollama",
        _ => return None,
    };
    Some(format!("{provider}:{name}"))
}

fn opencode_rules(settings: &Value, home: &Path, found: &mut ForeignSettings) {
    let permissions = settings.get("permission").and_then(Value::as_object);
    for (name, value) in permissions.into_iter().flatten() {
        let Some(patterns) = value.as_object() else {
            let why = "`approval.mode` says how much runs";
            found.skip(&format!("permission {name}"), &value.to_string(), why);
            continue;
        };
        for (pattern, action) in patterns {
            let action = action.as_str().unwrap_or_default();
            let list = RuleKind::ALL
                .into_iter()
                .find(|list| list.as_str() == action);
            let source = format!("{name} {pattern}");
            let rule = match name.as_str() {
                "bash" => command_rule(pattern),
                // A star stands for slashes, too.
                "edit" => path_of(&pattern.replace('*', "**").replace("****", "**"), home)
                    .map(|path| vec![format!("edit:{path}")]),
                _ => Err(OTHER_TOOL),
            };
            match list {
                Some(list) => found.add(list, &source, rule),
                None => found.skip(action, &source, "its action is none of allow, ask and deny"),
            }
        }
    }
}

/// Reads the settings of Gemini CLI.
///
/// # Errors
/// A file cannot be read.
pub(super) fn gemini(places: &Places) -> anyhow::Result<ForeignSettings> {
    let mut found = ForeignSettings::default();
    for (origin, directory) in [
        (Origin::User, &places.home),
        (Origin::Project, &places.project),
    ] {
        found.origin = origin;
        let file = directory.join(".gemini/settings.json");
        let Some(settings) = found.read_json(&file)? else {
            continue;
        };
        found.add_servers(settings.get("mcpServers"));
        let lists = [
            (RuleKind::Allow, ["/tools/allowed", "/allowedTools"]),
            (RuleKind::Deny, ["/tools/exclude", "/excludeTools"]),
        ];
        for (list, names) in lists {
            for rule in names
                .into_iter()
                .flat_map(|name| texts(settings.pointer(name)))
            {
                found.add(list, rule, gemini_rule(rule));
            }
        }
        let model = settings.pointer("/model/name").or(settings.get("model"));
        if let Some(model) = model.and_then(Value::as_str) {
            found.set_model(model, Some(format!("gemini:{model}")));
        }
    }
    Ok(found)
}

/// Returns the rule of `run_shell_command(…)`, which is the start of a command.
fn gemini_rule(text: &str) -> Translated {
    let call = text.strip_suffix(')').and_then(|text| text.split_once('('));
    let ("run_shell_command" | "ShellTool", start) = call.ok_or(OTHER_TOOL)? else {
        return Err(OTHER_TOOL);
    };
    let start = start
        .trim()
        .trim_end_matches('*')
        .trim_end_matches([' ', ':']);
    command_rule(&format!("{start} *"))
}

/// Returns the texts in a list.
fn texts(list: Option<&Value>) -> impl Iterator<Item = &str> {
    let list = list.and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Self {
            let tree = Self(tempfile::TempDir::new().unwrap());
            for (name, text) in files {
                let path = tree.0.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            tree
        }

        fn found(&self, read: fn(&Places) -> anyhow::Result<ForeignSettings>) -> ForeignSettings {
            let path = |name: &str| self.0.path().join(name);
            let found = read(&Places {
                home: path("home"),
                config: path("home/.config"),
                project: path("p"),
            });
            let mut found = found.unwrap();
            let root = self.0.path().to_str().unwrap();
            for (_, rule) in &mut found.rules {
                *rule = rule.replace(root, "ROOT");
            }
            found
        }
    }

    fn check(
        found: &ForeignSettings,
        rules: &[&str],
        model: Option<&str>,
        servers: &[&str],
        left: &[&str],
    ) {
        let shown = |(list, rule): &(RuleKind, String)| format!("{} {rule}", list.as_str());
        let shown: Vec<String> = found.rules.iter().map(shown).collect();
        assert_eq!(shown, rules);
        assert_eq!(found.model.as_deref(), model);
        assert_eq!(found.servers, servers);
        assert_eq!(found.skipped, left);
    }

    #[test]
    fn claude_code_is_read_from_three_files() {
        let tree = Tree::new(&[
            (
                "home/.claude/settings.json",
                r#"{"permissions": {"allow": ["Bash(git status)", "Bash(npm run test:*)", "WebFetch(domain:x)", "Bash", "Read"],
                    "deny": ["Bash(curl:*)", "Edit(//etc/**)", "Read(.env)", "Bash(x --token abc)"]}, "model": "claude-x"}"#,
            ),
            (
                "p/.claude/settings.local.json",
                r#"{"permissions": {"allow": ["Bash(rm *)"], "ask": ["Bash(git push *)", "Edit(/src/**)", "Edit(~/x)", "Edit(doc/*)", "Edit(![a])"]}, "model": "claude-y"}"#,
            ),
            ("home/.claude/.credentials.json", "{"),
            (
                "p/.mcp.json",
                r#"{"mcpServers": {"github": {"env": {"KEY": "x"}}}}"#,
            ),
        ]);
        let found = tree.found(claude_code);
        let rules = [
            "allow git status",
            "allow npm run test *",
            "deny curl *",
            "deny edit:/etc/**",
            "deny edit:**/.env",
            "deny edit:**/.env/",
            "ask git push *",
            "ask edit:src/**",
            "ask edit:ROOT/home/x",
            "ask edit:ROOT/home/x/",
            "ask edit:**/doc/*",
        ];
        let other = "karyi has rules about commands and changes of files";
        let left = [
            &format!("allow: WebFetch(domain:x): {other}"),
            &format!("allow: Bash: {other}"),
            &format!("allow: Read: {other}"),
            "deny: Read(.env): karyi denies changes of it, and no reads",
            "deny: what may hold a key and is not shown: store the key with `karyi var set`, and do without it in a rule",
            "allow: Bash(rm *), in the project: a project cannot allow anything",
            "ask: Edit(![a]), in the project: a pattern of karyi has `*`, `**` and `?` only",
            "model: claude-y, in the project: the user alone chooses the model",
        ];
        check(
            &found,
            &rules,
            Some("anthropic:claude-x"),
            &["github"],
            &left,
        );
        assert_eq!(found.files.len(), 3);
    }

    #[test]
    fn codex_is_read_without_its_login() {
        let tree = Tree::new(&[
            (
                "home/.codex/config.toml",
                "model = \"gpt-x\"\napproval_policy = \"never\"\n[mcp_servers.docs]\ncommand = \"x\"\n",
            ),
            (
                "home/.codex/rules/default.rules",
                "# mine\nprefix_rule(\n  pattern = [\"git\", \"status\"],\n  decision = \"allow\",\n)\nprefix_rule(pattern=['rm'], decision='forbidden')\n",
            ),
            ("home/.codex/auth.json", "{"),
        ]);
        let found = tree.found(codex);
        let rules = ["allow git status *", "deny rm *"];
        let left = ["approval_policy: never: `approval.mode` says how much runs"];
        check(
            &found,
            &rules,
            Some("openai_responses:gpt-x"),
            &["docs"],
            &left,
        );
    }

    #[test]
    fn opencode_and_gemini_are_read() {
        let tree = Tree::new(&[
            (
                "home/.config/opencode/opencode.jsonc",
                "{\n// mine\n\"model\": \"anthropic/claude-x\", \"permission\": {\"webfetch\": \"ask\", \"edit\": {\"src/*\": \"allow\", \"~/x\": \"deny\"}, \"bash\": {\"git push *\": \"ask\", \"*\": \"allow\"}},\n\"mcp\": {\"a\": {}},\n}",
            ),
            (
                "home/.gemini/settings.json",
                r#"{"model": {"name": "gemini-x"}, "tools": {"allowed": ["run_shell_command(git)", "read_file"], "exclude": ["run_shell_command(rm -rf)"]}}"#,
            ),
        ]);
        let left = [
            "permission webfetch: \"ask\": `approval.mode` says how much runs",
            "allow: bash *: it fits every command, which is what `approval.mode` is for",
        ];
        let found = tree.found(opencode);
        check(
            &found,
            &[
                "allow edit:src/**",
                "deny edit:ROOT/home/x",
                "ask git push *",
            ],
            Some("anthropic:claude-x"),
            &["a"],
            &left,
        );
        let found = tree.found(gemini);
        let rules = ["allow git *", "deny rm -rf *"];
        check(
            &found,
            &rules,
            Some("gemini:gemini-x"),
            &[],
            &["allow: read_file: karyi has rules about commands and changes of files"],
        );
        let nothing = Tree::new(&[]).found(gemini);
        check(&nothing, &[], None, &[], &[]);
        assert!(nothing.files.is_empty());
    }

    #[test]
    fn a_directory_of_rules_that_cannot_be_read_is_told() {
        let tree = Tree::new(&[("home/.codex/rules", "no directory")]);
        let home = tree.0.path().join("home");
        let error = codex(&Places {
            config: home.clone(),
            project: home.clone(),
            home,
        });
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("reading ") && error.ends_with(".codex/rules"),
            "{error}"
        );
    }

    #[test]
    fn a_file_that_is_broken_is_named() {
        let tree = Tree::new(&[("home/.claude/settings.json", "{\"key\": \"sk-secret\"")]);
        let places = Places {
            home: tree.0.path().join("home"),
            config: tree.0.path().to_owned(),
            project: tree.0.path().to_owned(),
        };
        let error = claude_code(&places).unwrap_err().to_string();
        assert!(error.contains("settings.json: EOF"), "{error}");
        assert!(!error.contains("sk-secret"), "{error}");
    }
}
