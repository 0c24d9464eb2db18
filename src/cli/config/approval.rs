//! The settings about approval.

use toml_edit::Item;

use crate::approval::{Mode, Rule, Rules};
use crate::cli::config::settings::Settings;

impl Settings {
    /// Returns how much runs without a question.
    pub(in crate::cli) fn mode(&self) -> Option<Mode> {
        Mode::parse(self.item(&["approval", "mode"])?.as_str()?)
    }

    /// Returns the rules about calls.
    pub(in crate::cli) fn rules(&self) -> Rules {
        let rules = |name: &str| {
            let list = self.item(&["approval", name]).and_then(Item::as_array);
            let texts = list
                .into_iter()
                .flatten()
                .filter_map(toml_edit::Value::as_str);
            // What is no rule was an error when the file was read.
            texts.filter_map(|text| Rule::parse(text).ok()).collect()
        };
        Rules {
            allow: rules("allow"),
            ask: rules("ask"),
            deny: rules("deny"),
        }
    }
}
