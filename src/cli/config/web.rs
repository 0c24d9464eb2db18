//! Settings of the tools that reach the web: the guard, the auth profiles, and the tables of the tools.

use std::sync::Arc;

use toml_edit::Item;

use crate::cli::config::Settings;
use crate::cli::config::check::secret_name;
use crate::tool::web_settings::{
    AuthProfile, HeaderFormat, SearchEngine, UrlFetchSettings, WebSearchSettings, WebSettings,
};
use karyi_net::{Guard, Redirects, UrlRule};

impl Settings {
    /// Returns the settings of the tools that reach the web.
    pub(super) fn web(&self) -> WebSettings {
        let ids = self.names(&["auth_profiles"]);
        WebSettings {
            client: Arc::default(),
            guard: self.guard(),
            redirects: self.redirects(&["guard", "follow_redirects"]),
            profiles: ids.iter().filter_map(|id| self.profile(id)).collect(),
            url_fetch: self.url_fetch(),
            web_search: self.web_search(),
        }
    }

    fn guard(&self) -> Guard {
        let usual = Guard::default();
        let rules = match self.item(&["guard", "allow"]) {
            Some(_) => self.url_rules(&["guard", "allow"]),
            None => usual.rules,
        };
        let deny_private = self
            .item(&["guard", "deny_private"])
            .and_then(Item::as_bool);
        Guard {
            rules,
            deny_private: deny_private.unwrap_or(usual.deny_private),
            profile: None,
        }
    }

    /// Returns an auth profile; none without a secret.
    fn profile(&self, id: &str) -> Option<AuthProfile> {
        let text =
            |table: &str, name: &str| self.item(&["auth_profiles", id, table, name])?.as_str();
        let secret = secret_name(self.item(&["auth_profiles", id, "secret"])?.as_str()?)?;
        let format = text("inject", "format");
        let methods: Vec<String> = self
            .list(&["auth_profiles", id, "allow", "methods"])
            .map(str::to_owned)
            .collect();
        Some(AuthProfile {
            id: id.to_owned(),
            is_allowed: self
                .list(&["secrets", "allow_profiles"])
                .any(|allowed| allowed == id),
            secret,
            guard: Guard {
                rules: self.url_rules(&["auth_profiles", id, "allow", "url_prefixes"]),
                deny_private: true,
                profile: Some(id.to_owned()),
            },
            methods: if methods.is_empty() {
                vec!["GET".to_owned()]
            } else {
                methods
            },
            redirects: self.redirects(&["auth_profiles", id, "allow", "follow_redirects"]),
            header: text("inject", "name").unwrap_or("Authorization").to_owned(),
            format: HeaderFormat::ALL
                .into_iter()
                .find(|known| format == Some(known.as_str()))
                .unwrap_or_default(),
        })
    }

    fn url_fetch(&self) -> UrlFetchSettings {
        let usual = UrlFetchSettings::default();
        let agent = self
            .of_tool("url_fetch", "user_agent")
            .and_then(Item::as_str);
        UrlFetchSettings {
            timeout: self
                .seconds("url_fetch", "timeout")
                .unwrap_or(usual.timeout),
            max_bytes: self
                .bytes("url_fetch", "max_bytes")
                .unwrap_or(usual.max_bytes),
            user_agent: agent.map(str::to_owned),
        }
    }

    fn web_search(&self) -> WebSearchSettings {
        let usual = WebSearchSettings::default();
        let text = |name: &str| self.of_tool("web_search", name).and_then(Item::as_str);
        let results = self
            .bytes("web_search", "max_results")
            .and_then(|count| usize::try_from(count).ok());
        WebSearchSettings {
            engine: SearchEngine::ALL
                .into_iter()
                .find(|known| text("engine") == Some(known.as_str()))
                .unwrap_or_default(),
            base_url: text("base_url").map(str::to_owned),
            timeout: self
                .seconds("web_search", "timeout")
                .unwrap_or(usual.timeout),
            max_results: results.unwrap_or(usual.max_results),
        }
    }

    fn redirects(&self, path: &[&str]) -> Redirects {
        match self.item(path).and_then(Item::as_bool) {
            Some(true) => Redirects::Followed,
            Some(false) | None => Redirects::Returned,
        }
    }

    /// Returns rules about URLs. A list with a wrong one was reported before.
    fn url_rules(&self, path: &[&str]) -> Vec<UrlRule> {
        self.list(path)
            .filter_map(|rule| UrlRule::parse(rule).ok())
            .collect()
    }
}
