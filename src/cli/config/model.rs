//! The language model to use: from a flag, a variable or the settings.
//!
//! The key stays where it is. Only its name is in the result, and the caller reads the value when it sends a request.

use std::fmt;

use karyi_core::secret::SecretName;
use karyi_core::similar_names::similar_names;
use karyi_model::{Capability, ModelConfig, Price, Provider, SystemRole};
use karyi_net::ServerUrl;
use serde_json::{Map, Number, Value as Json};
use toml_edit::{Item, TableLike, Value};

use crate::cli::config::check::{check_url, number, secret_name};
use crate::cli::config::error::SettingsError;
use crate::cli::config::keys::{dotted, listed};
use crate::cli::config::settings::Settings;
use crate::render::paint::safe_line;

/// Variable with the name of the model.
const MODEL: &str = "KARYI_MODEL";
/// Variable with the URL for a model that is given as `PROVIDER:MODEL`.
const MODEL_URL: &str = "KARYI_MODEL_URL";

/// The language model to use.
#[derive(Debug, PartialEq)]
pub(in crate::cli) struct ChosenModel {
    /// Name in the settings, or `PROVIDER:MODEL`.
    pub(in crate::cli) name: String,
    /// Its settings; `key` has the name of the secret or variable.
    pub(in crate::cli) config: ModelConfig,
    /// Source of the key.
    pub(in crate::cli) key: KeySource,
}

/// Source of a key.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cli) enum KeySource {
    /// Secret of the vault.
    Secret(SecretName),
    /// Environment variable, which is set.
    Variable(&'static str),
    /// No key is sent.
    None,
}

/// Error when neither a flag, nor a variable, nor the settings choose a model.
#[derive(Debug)]
pub(in crate::cli) struct NoModel;

impl fmt::Display for NoModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "expected a language model, found none: choose one with --model, KARYI_MODEL or `karyi config set model`",
        )
    }
}

impl std::error::Error for NoModel {}

/// Finds the model to use: that of the flag `--model`, else of `KARYI_MODEL`, else `model` in the settings. Each is a
/// name of `[models]` or `PROVIDER:MODEL`, the latter at `KARYI_MODEL_URL` when that is set.
///
/// # Errors
/// [`NoModel`] without any choice; [`SettingsError`] when there is no such model, or its settings are not complete.
pub(in crate::cli) fn chosen_model(
    settings: &Settings,
    flag: Option<&str>,
) -> anyhow::Result<ChosenModel> {
    chosen(settings, flag, &of_environment)
}

/// Chooses the model that a setting other than `model` names.
///
/// # Errors
/// It is not configured, or its provider is unknown; the error has the place of the setting.
pub(in crate::cli) fn model_of_setting(
    settings: &Settings,
    setting: &[&str],
    name: &str,
) -> anyhow::Result<ChosenModel> {
    let given = (name, settings.place(setting));
    named(settings, Some(given), &of_environment)
}

fn of_environment(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

fn chosen(
    settings: &Settings,
    flag: Option<&str>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> anyhow::Result<ChosenModel> {
    let given = flag.map(|name| (name, "--model".to_owned()));
    named(settings, given, environment)
}

/// Chooses a model by its name and what gave it, else by environment and settings.
fn named(
    settings: &Settings,
    given: Option<(&str, String)>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> anyhow::Result<ChosenModel> {
    let variable = |name| environment(name).filter(|value| !value.is_empty());
    let (name, source) = match (given, variable(MODEL), settings.text("model")) {
        (Some((name, source)), _, _) => (name.to_owned(), source),
        (None, Some(name), _) => (name, MODEL.to_owned()),
        (None, None, Some(name)) => (name.to_owned(), settings.place(&["model"])),
        (None, None, None) => return Err(NoModel.into()),
    };
    let (config, key) = match name.split_once(':') {
        Some((provider, model)) => {
            let provider = known_provider(&source, provider, model)?;
            let mut config = ModelConfig::new(provider, model);
            if let Some(url) = variable(MODEL_URL) {
                check_url(&url).map_err(|wrong| SettingsError::of(MODEL_URL, wrong.sentence()))?;
                config.base_url = plain_url(&url);
            }
            (config, None)
        }
        None => configured(settings, &name, &source)?,
    };
    let mut usual = config.provider.key_variables().iter().copied();
    let key = match key {
        Some(key) => key,
        // The key of one service must not reach another.
        None if name.contains(':') || is_usual_place(&config) => usual
            .find(|name| variable(name).is_some())
            .map_or(KeySource::None, KeySource::Variable),
        None => KeySource::None,
    };
    let config = ModelConfig {
        key: match &key {
            KeySource::Secret(name) => Some(name.clone()),
            KeySource::Variable(name) => SecretName::parse(name),
            KeySource::None => None,
        },
        ..config
    };
    Ok(ChosenModel { name, config, key })
}

/// Returns true for the provider's own service, and for a server on this machine.
fn is_usual_place(config: &ModelConfig) -> bool {
    let server = |url: &str| ServerUrl::parse(url).ok();
    let usual = server(config.provider.base_url());
    server(&config.base_url).is_some_and(|url| {
        url.is_loopback() || usual.is_some_and(|usual| usual.authority() == url.authority())
    })
}

/// Parses the provider in `PROVIDER:MODEL`.
fn known_provider(source: &str, provider: &str, model: &str) -> Result<Provider, SettingsError> {
    let names: Vec<&str> = Provider::ALL.iter().map(|one| one.as_str()).collect();
    let Some(known) = Provider::parse(provider) else {
        let near = similar_names(provider, names.iter().copied());
        let near = hint(near.first().map(|near| format!("{near}:{model}")));
        let (expected, found) = (listed(&names), word(provider));
        let message =
            format!("expected {expected} before the `:` of a model, found `{found}`{near}");
        return Err(SettingsError::of(source, message));
    };
    match model.is_empty() {
        true => {
            let message = format!("expected the name of a model behind `{known}:`, found nothing");
            Err(SettingsError::of(source, message))
        }
        false => Ok(known),
    }
}

fn hint(near: Option<String>) -> String {
    near.map(|near| format!("; did you mean `{}`?", word(&near)))
        .unwrap_or_default()
}

/// Returns a name as one line.
fn word(name: &str) -> String {
    safe_line(name).into_owned()
}

/// Returns a URL that paths can be appended to.
fn plain_url(url: &str) -> String {
    url.trim_end_matches('/').to_owned()
}

/// Returns the settings of a model, and the source of its key when they have one.
fn configured(
    settings: &Settings,
    name: &str,
    source: &str,
) -> Result<(ModelConfig, Option<KeySource>), SettingsError> {
    let path = ["models", name];
    if settings.item(&path).is_none() {
        let names = settings.names(&["models"]);
        let near = similar_names(name, names.iter().copied());
        let near = match near.first() {
            Some(near) => hint(Some((*near).to_owned())),
            None => "; [models.NAME] in config.toml defines one, and PROVIDER:MODEL needs none"
                .to_owned(),
        };
        let message = format!("expected the name of a model, found `{}`{near}", word(name));
        return Err(SettingsError::of(source, message));
    }
    let table = ModelTable { settings, name };
    let provider = table.needed("provider")?;
    let provider = Provider::parse(provider).ok_or_else(|| table.missing("provider"))?;
    let mut config = ModelConfig::new(provider, table.needed("model")?);
    if let Some(url) = table.text("base_url") {
        config.base_url = plain_url(url);
    }
    config.context = table.tokens("context");
    config.max_output = table.tokens("max_output");
    config.price = table.price()?;
    config.extra = table.extra();
    config.small = table.flag("small");
    config.allow_plain = table.flag("allow_plain").unwrap_or(false);
    config.system = match table.text("system") {
        Some("user") => SystemRole::User,
        Some(_) | None => SystemRole::System,
    };
    config.capabilities = table.capabilities();
    let key = table
        .text("key")
        .map(|text| secret_name(text).map_or(KeySource::None, KeySource::Secret));
    Ok((config, key))
}

/// Checks that the models that were complete before a change are complete after it.
///
/// # Errors
/// The first setting that is missing.
pub(super) fn check_models(before: &Settings, after: &Settings) -> Result<(), SettingsError> {
    let complete = |settings, name| configured(settings, name, "").map(drop);
    let names = after.models().into_iter();
    let mut were_complete = names.filter(|name| complete(before, name).is_ok());
    were_complete.try_for_each(|name| complete(after, name))
}

/// The table of one model, which was checked.
struct ModelTable<'s> {
    settings: &'s Settings,
    name: &'s str,
}

impl<'s> ModelTable<'s> {
    fn item(&self, key: &str) -> Option<&'s Item> {
        self.settings.item(&["models", self.name, key])
    }

    fn text(&self, key: &str) -> Option<&'s str> {
        self.item(key)?.as_str()
    }

    fn flag(&self, key: &str) -> Option<bool> {
        self.item(key)?.as_bool()
    }

    fn tokens(&self, key: &str) -> Option<u64> {
        u64::try_from(self.item(key)?.as_integer()?).ok()
    }

    fn needed(&self, key: &str) -> Result<&'s str, SettingsError> {
        self.text(key).ok_or_else(|| self.missing(key))
    }

    fn missing(&self, key: &str) -> SettingsError {
        let path = ["models", self.name];
        let place = self.settings.place(&path);
        let name = dotted(&path);
        SettingsError::of(&place, format!("expected `{key}` in [{name}], found none"))
    }

    fn price(&self) -> Result<Option<Price>, SettingsError> {
        let price = self.item("price").and_then(Item::as_table_like);
        if price.is_none_or(TableLike::is_empty) {
            return Ok(None);
        }
        let part = |key| number(self.settings.item(&["models", self.name, "price", key])?);
        let needed = |key| part(key).ok_or_else(|| self.missing(&format!("price.{key}")));
        Ok(Some(Price {
            input: needed("input")?,
            output: needed("output")?,
            cached: part("cached"),
        }))
    }

    fn extra(&self) -> Map<String, Json> {
        let fields = self.item("extra").cloned();
        match fields.map(Item::into_value) {
            Some(Ok(Value::InlineTable(table))) => fields_of(&table),
            Some(_) | None => Map::new(),
        }
    }

    fn capabilities(&self) -> Option<Vec<Capability>> {
        let words = self.item("capabilities")?.as_array()?.iter();
        Some(
            words
                .filter_map(|word| Capability::parse(word.as_str()?))
                .collect(),
        )
    }
}

fn fields_of(table: &toml_edit::InlineTable) -> Map<String, Json> {
    let fields = table.iter();
    fields
        .map(|(name, value)| (name.to_owned(), json(value)))
        .collect()
}

/// Returns a value as JSON; a date is a text there.
pub(super) fn json(value: &Value) -> Json {
    match value {
        Value::String(text) => Json::String(text.value().clone()),
        Value::Integer(number) => Json::Number((*number.value()).into()),
        Value::Float(number) => Number::from_f64(*number.value()).map_or(Json::Null, Json::Number),
        Value::Boolean(flag) => Json::Bool(*flag.value()),
        Value::Datetime(date) => Json::String(date.value().to_string()),
        Value::Array(list) => Json::Array(list.iter().map(json).collect()),
        Value::InlineTable(table) => Json::Object(fields_of(table)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
model = \"local\"
[models.local]
provider = \"openai_chat\"
base_url = \"http://127.0.0.1:8080/v1/\"
model = \"qwen\"
context = 32768
extra = { top_k = 5, stops = [\"a\", 1.5], day = 2026-01-02, inner = { x = true } }
small = true
system = \"user\"
capabilities = [\"json\"]
[models.claude]
provider = \"anthropic\"
model = \"c\"
key = \"$KARYI{CLAUDE}\"
max_output = 16384
price.input = 3
price.output = 15.5
allow_plain = true
[models.open]
provider = \"gemini\"
model = \"g\"
key = \"\"
[models.half]
model = \"x\"
[models.priced]
provider = \"ollama\"
model = \"x\"
price = { input = 1 }
";

    type Variables = &'static [(&'static str, &'static str)];

    fn choose(text: &str, flag: Option<&str>, variables: Variables) -> anyhow::Result<ChosenModel> {
        let settings = Settings::parse("config.toml".into(), text).unwrap();
        let value = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        chosen(&settings, flag, &value)
    }

    #[test]
    fn all_settings_of_a_model_are_read() {
        let mut local = ModelConfig::new(Provider::OpenAiChat, "qwen");
        local.base_url = "http://127.0.0.1:8080/v1".into();
        local.context = Some(32768);
        let extra = serde_json::json!(
            {"top_k": 5, "stops": ["a", 1.5], "day": "2026-01-02", "inner": {"x": true}}
        );
        local.extra = extra.as_object().unwrap().clone();
        local.small = Some(true);
        local.system = SystemRole::User;
        local.capabilities = Some(vec![Capability::Json]);
        let expected = ChosenModel {
            name: "local".into(),
            config: local,
            key: KeySource::None,
        };
        assert_eq!(choose(FILE, None, &[]).unwrap(), expected);
        let mut claude = ModelConfig::new(Provider::Anthropic, "c");
        claude.key = SecretName::parse("CLAUDE");
        claude.max_output = Some(16384);
        claude.price = Some(Price {
            input: 3.0,
            output: 15.5,
            cached: None,
        });
        claude.allow_plain = true;
        let expected = ChosenModel {
            name: "claude".into(),
            config: claude,
            key: KeySource::Secret(SecretName::parse("CLAUDE").unwrap()),
        };
        let variables = &[("ANTHROPIC_API_KEY", "v")];
        assert_eq!(choose(FILE, Some("claude"), variables).unwrap(), expected);
    }

    #[test]
    fn a_flag_is_stronger_than_a_variable_and_that_than_the_file() {
        let check = |flag, variables, expected: &str| {
            let found = match choose(FILE, flag, variables) {
                Ok(model) => {
                    format!(
                        "{} at {} {:?}",
                        model.name, model.config.base_url, model.key
                    )
                }
                Err(error) => error.to_string(),
            };
            assert_eq!(found, expected);
        };
        let google = "https://generativelanguage.googleapis.com/v1beta";
        check(None, &[], "local at http://127.0.0.1:8080/v1 None");
        check(
            None,
            &[("KARYI_MODEL", "")],
            "local at http://127.0.0.1:8080/v1 None",
        );
        check(
            None,
            &[("KARYI_MODEL", "open"), ("GEMINI_API_KEY", "v")],
            &format!("open at {google} None"),
        );
        check(
            None,
            &[("KARYI_MODEL", "gemini:g"), ("GOOGLE_API_KEY", "v")],
            &format!("gemini:g at {google} Variable(\"GOOGLE_API_KEY\")"),
        );
        check(
            Some("ollama:qwen3:8b"),
            &[
                ("KARYI_MODEL", "open"),
                ("KARYI_MODEL_URL", "http://[::1]:9/"),
            ],
            "ollama:qwen3:8b at http://[::1]:9 None",
        );
        check(
            Some("local"),
            &[("OPENAI_API_KEY", "v"), ("KARYI_MODEL_URL", "http://x")],
            "local at http://127.0.0.1:8080/v1 Variable(\"OPENAI_API_KEY\")",
        );
    }

    #[test]
    fn a_model_that_cannot_be_chosen_is_an_error_with_the_nearest_name() {
        let check = |text: &str, flag, variables, expected: &str| {
            let error = choose(text, flag, variables).unwrap_err();
            assert_eq!(error.to_string(), expected);
            let is_other = error.downcast_ref::<SettingsError>().is_some();
            assert_ne!(is_other, error.downcast_ref::<NoModel>().is_some());
        };
        check("", None, &[], &NoModel.to_string());
        check(
            "\nmodel = \"lcoal\"\nmodels.local.small = true",
            None,
            &[],
            "config.toml:2:1: expected the name of a model, found `lcoal`; did you mean `local`?",
        );
        check(
            "",
            None,
            &[("KARYI_MODEL", "gpt")],
            "KARYI_MODEL: expected the name of a model, found `gpt`; [models.NAME] in config.toml defines one, \
             and PROVIDER:MODEL needs none",
        );
        check(
            FILE,
            Some("half"),
            &[],
            "config.toml:23:9: expected `provider` in [models.half], found none",
        );
        check(
            FILE,
            Some("priced"),
            &[],
            "config.toml:25:9: expected `price.output` in [models.priced], found none",
        );
        check(
            FILE,
            Some("openai_caht:gpt"),
            &[],
            "--model: expected openai_chat, openai_responses, anthropic, gemini or ollama before the `:` of a \
             model, found `openai_caht`; did you mean `openai_chat:gpt`?",
        );
        check(
            FILE,
            Some("ollama:"),
            &[],
            "--model: expected the name of a model behind `ollama:`, found nothing",
        );
        check(
            FILE,
            Some("ollama:x"),
            &[("KARYI_MODEL_URL", "http://me:hunter2@x/")],
            "KARYI_MODEL_URL: expected a URL like http://127.0.0.1:8080/v1, found one with user information: put \
             the key into `key`",
        );
    }
}
