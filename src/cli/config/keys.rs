//! The table of settings. What is valid, the list of settings and their documentation follow from it.

use crate::approval::Mode;
use crate::cli::config::worker_power::WorkerPower;
use crate::tool::web_settings::{HeaderFormat, SearchEngine};
use crate::tools::assistant::url_fetch::METHODS;
use karyi_core::similar_names::similar_names;
use karyi_model::{Capability, Provider};

/// A setting.
#[derive(Debug)]
pub(super) struct Key {
    /// Name, its parts joined by dots; `*` is the name of a model or profile.
    pub(super) pattern: &'static str,
    /// Kind of its value.
    pub(super) kind: Kind,
    /// Value without it, as text; empty when there is none.
    pub(super) usual: &'static str,
    /// Environment variable that is stronger; empty when there is none.
    pub(super) variable: &'static str,
    /// Meaning.
    pub(super) summary: &'static str,
}

/// Kind of value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// Text that is not empty.
    Text,
    /// Whole number from 0.
    Count,
    /// Whole number from 1.
    Tokens,
    /// Number from 0.
    Price,
    /// `true` or `false`.
    Flag,
    /// URL of a server.
    Url,
    /// Placeholder of a secret, or an empty text.
    Secret,
    /// List of texts.
    Texts,
    /// Number of seconds from the first to the second.
    Seconds(f64, f64),
    /// Whole number from the first to the second.
    Within(i64, i64),
    /// List of rules about URLs.
    UrlRules,
    /// One of these words.
    Word(Words),
    /// List of these words.
    Words(Words),
    /// List of rules about calls.
    Rules,
    /// Table with any fields of JSON.
    Fields,
}

impl Kind {
    /// Returns what a value of the kind is.
    pub(super) fn expected(self) -> String {
        match self {
            Self::Text => "a text".to_owned(),
            Self::Count => "a whole number from 0".to_owned(),
            Self::Tokens => "a whole number from 1".to_owned(),
            Self::Price => "a number from 0".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Url => "a URL like http://127.0.0.1:8080/v1".to_owned(),
            Self::Secret => "\"$KARYI{NAME}\"".to_owned(),
            Self::Texts => "a list of texts".to_owned(),
            Self::Seconds(least, most) => format!("seconds from {least} to {most}"),
            Self::Within(least, most) => format!("a whole number from {least} to {most}"),
            Self::Word(words) => listed(&words()),
            Self::Words(words) => format!("a list of {}", listed(&words())),
            Self::UrlRules => "a list of https:// or https://HOST/PATH".to_owned(),
            Self::Rules => "a list of commands, `edit:PATHS` and `fetch:HOST`".to_owned(),
            Self::Fields => "a table".to_owned(),
        }
    }
}

/// Returns words with `or` before the last one.
pub(super) fn listed(words: &[&str]) -> String {
    match words {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// Seconds of a time limit, a pause or an interval: a day at most.
const SECONDS: Kind = Kind::Seconds(0.01, 86400.0);
/// Requests to a model in one session.
const STEPS: Kind = Kind::Within(1, 1000);

/// Returns the words of a choice.
type Words = fn() -> Vec<&'static str>;

/// Every setting, in the order of the documentation.
pub(super) const KEYS: &[Key] = &[
    Key {
        pattern: "shell",
        kind: Kind::Text,
        usual: "bash",
        variable: "KARYI_SHELL",
        summary: "Shell of the session, by name or path",
    },
    limit(
        "max_output",
        "32768",
        "Bytes of output per result, half from each end",
    ),
    limit("max_lines", "2000", "Lines that `read` shows of a file"),
    limit(
        "max_read",
        "61440",
        "Bytes that `read` shows of a file or a search",
    ),
    limit("max_line", "2000", "Bytes that `read` shows of one line"),
    limit("max_report", "102400", "Bytes of all texts in a report"),
    limit(
        "max_output_file",
        "268435456",
        "Bytes of a file with the whole output of a call",
    ),
    Key {
        pattern: "model",
        kind: Kind::Text,
        usual: "",
        variable: "KARYI_MODEL",
        summary: "Language model to use, a NAME or PROVIDER:MODEL",
    },
    Key {
        pattern: "notify",
        kind: Kind::Word(notices),
        usual: "bell",
        variable: "",
        summary: "How the assistant calls you to another window",
    },
    Key {
        pattern: "approval.mode",
        kind: Kind::Word(modes),
        usual: "ask",
        variable: "",
        summary: "How much runs without a question",
    },
    rules("approval.allow", "Calls that run without a question"),
    rules("approval.ask", "Calls that are always asked about"),
    rules("approval.deny", "Calls that never run"),
    setting(
        "models.*.provider",
        Kind::Word(providers),
        "",
        "Protocol of the server",
    ),
    setting(
        "models.*.base_url",
        Kind::Url,
        "the provider's",
        "URL before the protocol's paths",
    ),
    setting(
        "models.*.model",
        Kind::Text,
        "",
        "Name of the model at the server",
    ),
    setting(
        "models.*.key",
        Kind::Secret,
        "the provider's variable",
        "Secret with the key; \"\" sends none",
    ),
    setting(
        "models.*.context",
        Kind::Tokens,
        "asked of the server",
        "Tokens of a prompt and its answer together",
    ),
    setting(
        "models.*.max_output",
        Kind::Tokens,
        "that of the server",
        "Tokens of the longest answer",
    ),
    setting(
        "models.*.price.input",
        Kind::Price,
        "",
        "Price of a million tokens of the prompt",
    ),
    setting(
        "models.*.price.output",
        Kind::Price,
        "",
        "Price of a million tokens of the answer",
    ),
    setting(
        "models.*.price.cached",
        Kind::Price,
        "price.input",
        "Price of a million tokens from the cache",
    ),
    setting(
        "models.*.extra",
        Kind::Fields,
        "",
        "Fields for the body of each request",
    ),
    setting(
        "models.*.small",
        Kind::Flag,
        "asked of the server",
        "A small model, which needs an example",
    ),
    setting(
        "models.*.allow_plain",
        Kind::Flag,
        "false",
        "Send the key over http to another machine",
    ),
    setting(
        "models.*.system",
        Kind::Word(system_roles),
        "system",
        "Role of the system text",
    ),
    setting(
        "models.*.capabilities",
        Kind::Words(capabilities),
        "the provider's",
        "Abilities of the model",
    ),
    setting(
        "file_cache_dir",
        Kind::Text,
        "in `$XDG_CACHE_HOME`",
        "Directory of the assistant's files that may be lost",
    ),
    setting(
        "file_state_dir",
        Kind::Text,
        "in `$XDG_DATA_HOME`",
        "Directory of the assistant's lasting files",
    ),
    enabled("tools.read_file.enabled"),
    setting(
        "tools.read_file.max_bytes",
        Kind::Tokens,
        "262144",
        "Bytes that a result shows of a file",
    ),
    setting(
        "tools.read_file.deny_paths",
        Kind::Texts,
        "",
        "Names and ends of paths that are not read",
    ),
    enabled("tools.write_file.enabled"),
    setting(
        "tools.write_file.max_bytes",
        Kind::Tokens,
        "524288",
        "Bytes of the content of a call",
    ),
    enabled("tools.bash.enabled"),
    setting(
        "tools.bash.timeout",
        SECONDS,
        "30",
        "Time limit of a call that names none",
    ),
    setting(
        "tools.bash.max_output_bytes",
        Kind::Tokens,
        "262144",
        "Bytes of output, half from each end",
    ),
    setting(
        "tools.bash.deny_paths",
        Kind::Texts,
        "",
        "Paths that no script names",
    ),
    setting(
        "tools.bash.deny_tokens",
        Kind::Texts,
        "",
        "Words that no script has",
    ),
    enabled("tools.todo_update.enabled"),
    setting(
        "tools.todo_update.without_model",
        Kind::Flag,
        "false",
        "Plain rules instead of a language model",
    ),
    enabled("tools.plan_create.enabled"),
    enabled("tools.url_fetch.enabled"),
    setting(
        "tools.url_fetch.timeout",
        SECONDS,
        "30",
        "Time limit of a call that names none",
    ),
    setting(
        "tools.url_fetch.max_bytes",
        Kind::Tokens,
        "524288",
        "Bytes of a body that a result is made of",
    ),
    setting(
        "tools.url_fetch.user_agent",
        Kind::Text,
        "that of karyi",
        "Header User-Agent, also of `web_search`",
    ),
    enabled("tools.web_search.enabled"),
    setting(
        "tools.web_search.engine",
        Kind::Word(search_engines),
        "duckduckgo_html",
        "Search engine",
    ),
    setting(
        "tools.web_search.base_url",
        Kind::Url,
        "the engine's",
        "URL of the engine's page",
    ),
    setting(
        "tools.web_search.timeout",
        SECONDS,
        "20",
        "Time limit of a call",
    ),
    setting(
        "tools.web_search.max_results",
        Kind::Tokens,
        "5",
        "Results of a call that does not say, at most 20",
    ),
    setting(
        "guard.allow",
        Kind::UrlRules,
        "https://",
        "URLs that may be asked for",
    ),
    setting(
        "guard.deny_private",
        Kind::Flag,
        "true",
        "Refuse addresses that are not public and not named",
    ),
    setting(
        "guard.follow_redirects",
        Kind::Flag,
        "false",
        "Follow redirects to the same origin",
    ),
    setting(
        "secrets.allow_profiles",
        Kind::Texts,
        "",
        "Auth profiles that calls may use",
    ),
    setting(
        "auth_profiles.*.secret",
        Kind::Secret,
        "",
        "Secret that the profile adds",
    ),
    setting(
        "auth_profiles.*.allow.url_prefixes",
        Kind::UrlRules,
        "",
        "URLs that the profile is for",
    ),
    setting(
        "auth_profiles.*.allow.methods",
        Kind::Words(methods),
        "GET",
        "Methods that it is for",
    ),
    setting(
        "auth_profiles.*.allow.follow_redirects",
        Kind::Flag,
        "false",
        "Follow redirects to the same origin",
    ),
    setting(
        "auth_profiles.*.inject.name",
        Kind::Text,
        "Authorization",
        "Header with the secret",
    ),
    setting(
        "auth_profiles.*.inject.format",
        Kind::Word(header_formats),
        "bearer",
        "Form of the secret in the header",
    ),
    setting(
        "supervise.worker",
        Kind::Word(worker_powers),
        "",
        "Calls of Workers that run; needed without `--worker`",
    ),
    setting(
        "supervise.work_dir",
        Kind::Text,
        "the current one",
        "Directory in which Workers start",
    ),
    setting(
        "supervise.workers",
        Kind::Within(1, 100),
        "3",
        "Workers at a time",
    ),
    setting(
        "supervise.max_tokens_per_day",
        Kind::Within(1, 1_000_000_000_000),
        "2000000",
        "Most tokens per day (UTC)",
    ),
    setting(
        "supervise.teller_model",
        Kind::Text,
        "`model`",
        "Language model of the Teller",
    ),
    setting(
        "supervise.planner_model",
        Kind::Text,
        "`model`",
        "Language model of Planners, and for questions of conditions",
    ),
    setting(
        "supervise.worker_model",
        Kind::Text,
        "`model`",
        "Language model of Workers",
    ),
    setting(
        "supervise.teller_timeout",
        SECONDS,
        "180",
        "Longest time of a session of the Teller",
    ),
    setting(
        "supervise.planner_timeout",
        SECONDS,
        "600",
        "Longest time of a Planner whose task names none",
    ),
    setting(
        "supervise.worker_timeout",
        SECONDS,
        "600",
        "Longest time of a Worker whose task names none",
    ),
    setting(
        "supervise.teller_steps",
        STEPS,
        "8",
        "Requests to the model in a session of the Teller",
    ),
    setting(
        "supervise.planner_steps",
        STEPS,
        "20",
        "Requests to the model of a Planner",
    ),
    setting(
        "supervise.worker_steps",
        STEPS,
        "60",
        "Requests to the model of a Worker",
    ),
    setting(
        "supervise.aging",
        Kind::Flag,
        "false",
        "Tasks gain priority while they wait",
    ),
    setting(
        "supervise.retry_pause",
        SECONDS,
        "60",
        "Pause before a failed task runs again",
    ),
    setting(
        "supervise.model_pause",
        SECONDS,
        "5",
        "First pause after the Teller's model failed; it doubles",
    ),
    setting(
        "supervise.question_pause",
        SECONDS,
        "300",
        "Shortest time between two questions of conditions",
    ),
    setting(
        "supervise.debounce",
        SECONDS,
        "0.8",
        "Time that the Teller waits for another message",
    ),
    setting(
        "supervise.tick",
        SECONDS,
        "1",
        "Longest time between two looks at the state",
    ),
];

fn search_engines() -> Vec<&'static str> {
    SearchEngine::ALL.map(SearchEngine::as_str).to_vec()
}

fn header_formats() -> Vec<&'static str> {
    HeaderFormat::ALL.map(HeaderFormat::as_str).to_vec()
}

fn methods() -> Vec<&'static str> {
    METHODS.to_vec()
}

/// Returns the setting that switches a tool on.
const fn enabled(pattern: &'static str) -> Key {
    setting(pattern, Kind::Flag, "true", "The tool can be used")
}

const fn limit(pattern: &'static str, usual: &'static str, summary: &'static str) -> Key {
    Key {
        pattern,
        kind: Kind::Count,
        usual,
        variable: "",
        summary,
    }
}

const fn rules(pattern: &'static str, summary: &'static str) -> Key {
    Key {
        pattern,
        kind: Kind::Rules,
        usual: "",
        variable: "",
        summary,
    }
}

const fn setting(
    pattern: &'static str,
    kind: Kind,
    usual: &'static str,
    summary: &'static str,
) -> Key {
    Key {
        pattern,
        kind,
        usual,
        variable: "",
        summary,
    }
}

fn modes() -> Vec<&'static str> {
    Mode::CHOICES.map(Mode::as_str).to_vec()
}

fn worker_powers() -> Vec<&'static str> {
    WorkerPower::ALL.map(WorkerPower::as_str).to_vec()
}

fn notices() -> Vec<&'static str> {
    vec!["bell", "osc9", "off"]
}

fn providers() -> Vec<&'static str> {
    Provider::ALL.iter().map(|one| one.as_str()).collect()
}

fn capabilities() -> Vec<&'static str> {
    Capability::ALL.iter().map(|one| one.as_str()).collect()
}

fn system_roles() -> Vec<&'static str> {
    vec!["system", "user"]
}

impl Key {
    /// Returns the parts of its name.
    pub(super) fn parts(&self) -> impl Iterator<Item = &'static str> {
        self.pattern.split('.')
    }

    /// Returns its name with a word for the name of a model.
    pub(super) fn shown(&self) -> String {
        self.pattern.replace('*', "NAME")
    }

    /// Returns true when the first parts of its name are these.
    fn begins_with(&self, path: &[&str]) -> bool {
        let mut parts = self.parts();
        path.iter().all(|name| {
            let part = parts.next();
            part == Some(*name) || part == Some("*")
        })
    }
}

/// Meaning of a path.
#[derive(Debug)]
pub(super) enum Found {
    /// A setting.
    Setting(&'static Key),
    /// A table of settings.
    Table,
    /// A field of requests.
    Field,
    /// Nothing, with the name that was probably meant.
    Nothing(Option<String>),
}

/// Looks a path up.
pub(super) fn find(path: &[&str]) -> Found {
    let fits = |key: &&Key| key.begins_with(path);
    match KEYS.iter().find(fits) {
        Some(key) if key.parts().count() == path.len() => Found::Setting(key),
        Some(_) => Found::Table,
        None if is_field(path) => Found::Field,
        None => Found::Nothing(nearest(path)),
    }
}

fn is_field(path: &[&str]) -> bool {
    let mut tables = KEYS.iter().filter(|key| matches!(key.kind, Kind::Fields));
    tables.any(|key| {
        let table = path.get(..key.parts().count());
        table.is_some_and(|table| key.begins_with(table))
    })
}

/// Returns the path with the nearest name in place of its first unknown part, else the setting with the same last part
/// elsewhere.
fn nearest(path: &[&str]) -> Option<String> {
    let is_known = |path: &[&str]| KEYS.iter().any(|key| key.begins_with(path));
    let mut parts = path.iter().enumerate();
    let (at, wrong) = parts.find(|(at, _)| !path.get(..=*at).is_some_and(is_known))?;
    let (parent, rest) = path.split_at_checked(at)?;
    let beside = KEYS.iter().filter(|key| key.begins_with(parent));
    let names = beside.filter_map(|key| key.parts().nth(at));
    let alike = similar_names(wrong, names.filter(|name| *name != "*"));
    if let Some(name) = alike.first() {
        let whole = parent.iter().chain([name]).chain(rest.iter().skip(1));
        return Some(dotted(&whole.copied().collect::<Vec<_>>()));
    }
    let same = |key: &&Key| key.parts().last() == path.last().copied();
    KEYS.iter().find(same).map(Key::shown)
}

/// Returns a path as it is written in the file, with quotes where they are needed.
pub(super) fn dotted(path: &[&str]) -> String {
    let parts = path
        .iter()
        .map(|part| toml_edit::Key::new(*part).display_repr().into_owned());
    parts.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::config::Settings;
    use crate::tool::context::ShownTexts;
    use karyi_core::limits;

    #[test]
    fn paths_are_found_or_the_nearest_name_is() {
        let check = |path: &str, expected: &str| {
            let path: Vec<&str> = path.split('.').collect();
            let found = match find(&path) {
                Found::Setting(key) => format!("setting {}", key.shown()),
                Found::Table => "table".to_owned(),
                Found::Field => "field".to_owned(),
                Found::Nothing(near) => format!("nothing, near {near:?}"),
            };
            assert_eq!(found, expected, "{path:?}");
        };
        check("shell", "setting shell");
        check("models", "table");
        check("models.a", "table");
        check("models.a.price", "table");
        check("models.a.price.input", "setting models.NAME.price.input");
        check("models.a.extra", "setting models.NAME.extra");
        check("models.a.extra.b.c", "field");
        check("shel", "nothing, near Some(\"shell\")");
        check("modles", "nothing, near Some(\"models\")");
        check(
            "models.a.base-url",
            "nothing, near Some(\"models.a.base_url\")",
        );
        check(
            "models.a.prise.input",
            "nothing, near Some(\"models.a.price.input\")",
        );
        check("provider", "nothing, near Some(\"models.NAME.provider\")");
        check("shell.x", "nothing, near None");
        check("zzzzzzzz", "nothing, near None");
    }

    #[test]
    fn the_documentation_has_every_setting() {
        let pages = concat!(
            include_str!("../../../docs/configuration.md"),
            include_str!("../../../docs/tool-settings.md"),
            include_str!("../../../docs/supervise.md")
        );
        let lines = pages.lines();
        let found: Vec<&str> = lines.filter(|line| line.starts_with("| `")).collect();
        let expected: Vec<String> = KEYS.iter().map(row).collect();
        assert_eq!(found, expected, "{}", expected.join("\n"));
    }

    fn row(key: &Key) -> String {
        let variable = match key.variable {
            "" => String::new(),
            name => format!("; `{name}`"),
        };
        let (name, kind) = (key.shown(), key.kind.expected());
        format!(
            "| `{name}` | {kind} | {} | {}{variable} |",
            key.usual, key.summary
        )
    }

    #[test]
    fn the_usual_limits_are_those_of_the_program() {
        let usual = ShownTexts::default();
        let file = usize::try_from(limits::OUTPUT_FILE_BYTES).unwrap();
        let expected = [
            ("max_output", usual.output_bytes),
            ("max_lines", usual.lines),
            ("max_read", usual.bytes),
            ("max_line", usual.line_bytes),
            ("max_report", usual.report_bytes),
            ("max_output_file", file),
        ];
        let limits = KEYS.iter().filter(|key| matches!(key.kind, Kind::Count));
        let found = limits.map(|key| (key.pattern, key.usual.parse().unwrap()));
        assert_eq!(found.collect::<Vec<(&str, usize)>>(), expected);
    }

    #[test]
    fn a_file_with_the_usual_numbers_sets_what_holds_without_it() {
        let of_program = |key: &&Key| {
            let is_number = key.usual.parse::<f64>().is_ok();
            is_number
                && ["tools.", "supervise."]
                    .iter()
                    .any(|table| key.pattern.starts_with(table))
        };
        let lines: Vec<String> = KEYS
            .iter()
            .filter(of_program)
            .map(|key| format!("{} = {}\n", key.pattern, key.usual))
            .collect();
        assert_eq!(lines.len(), 21);
        let usual = Settings::parse("f".into(), &lines.concat()).unwrap();
        let none = Settings::default();
        assert_eq!(usual.supervisor(), none.supervisor());
        assert_eq!(
            format!("{:?}", usual.tools()),
            format!("{:?}", none.tools())
        );
    }
}
