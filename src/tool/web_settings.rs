//! Settings of the tools that reach the web: which URLs they may ask for, and which secrets they add.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::SecretName;
use karyi_net::{Guard, NetError, NetErrorKind, Redirects, WebClient, WebUrl};

/// Settings of the tools that reach the web.
#[derive(Debug, Clone, Default)]
pub struct WebSettings {
    /// Client that all calls share.
    pub client: Arc<WebClient>,
    /// URLs that may be asked for without a profile.
    pub guard: Guard,
    /// Treatment of redirects without a profile.
    pub redirects: Redirects,
    /// Profiles, each with a secret.
    pub profiles: Vec<AuthProfile>,
    /// Settings of `url_fetch`.
    pub url_fetch: UrlFetchSettings,
    /// Settings of `web_search`.
    pub web_search: WebSearchSettings,
}

/// Settings of `url_fetch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlFetchSettings {
    /// Time limit of a call that names none.
    pub timeout: Duration,
    /// Most bytes of a body that a result has, if the call does not say.
    pub max_bytes: u64,
    /// Value of the header `User-Agent`, if the call does not set it; that of `web_search`, too.
    pub user_agent: Option<String>,
}

impl Default for UrlFetchSettings {
    fn default() -> Self {
        Self {
            timeout: limits::FETCH_TIMEOUT,
            max_bytes: limits::FETCH_BYTES,
            user_agent: None,
        }
    }
}

/// Settings of `web_search`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSearchSettings {
    /// Search engine.
    pub engine: SearchEngine,
    /// URL of the engine's page, instead of the usual one.
    pub base_url: Option<String>,
    /// Time limit of a call.
    pub timeout: Duration,
    /// Results of a call that does not say.
    pub max_results: usize,
}

impl Default for WebSearchSettings {
    fn default() -> Self {
        Self {
            engine: SearchEngine::default(),
            base_url: None,
            timeout: limits::SEARCH_TIMEOUT,
            max_results: limits::SEARCH_RESULTS,
        }
    }
}

/// Search engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SearchEngine {
    /// DuckDuckGo's page without scripts.
    #[default]
    DuckDuckGo,
    /// A server of SearXNG.
    Searxng,
}

impl SearchEngine {
    /// Every engine.
    pub const ALL: [Self; 2] = [Self::DuckDuckGo, Self::Searxng];

    /// Returns the word of the settings and of results.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DuckDuckGo => "duckduckgo_html",
            Self::Searxng => "searxng",
        }
    }
}

/// Profile: a secret that is added to requests for some URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthProfile {
    /// Id that a call names.
    pub id: String,
    /// True when `secrets.allow_profiles` names it.
    pub is_allowed: bool,
    /// The secret.
    pub secret: SecretName,
    /// URLs that it is for.
    pub guard: Guard,
    /// Methods that it is for, in upper case.
    pub methods: Vec<String>,
    /// Treatment of redirects.
    pub redirects: Redirects,
    /// Header with the secret.
    pub header: String,
    /// Form of the secret in the header.
    pub format: HeaderFormat,
}

/// Form of a secret in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HeaderFormat {
    /// The value alone.
    Raw,
    /// `Bearer` and the value.
    #[default]
    Bearer,
    /// `Basic` and the value, which is encoded unless it is already.
    Basic,
}

impl HeaderFormat {
    /// Every form.
    pub const ALL: [Self; 3] = [Self::Raw, Self::Bearer, Self::Basic];

    /// Returns the word of the settings.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Bearer => "bearer",
            Self::Basic => "basic",
        }
    }

    /// Returns the text before the value.
    #[must_use]
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Raw => "",
            Self::Bearer => "Bearer ",
            Self::Basic => "Basic ",
        }
    }
}

impl WebSettings {
    /// Returns the profile that a call names.
    ///
    /// # Errors
    /// `policy_denied` when it is not allowed or not known.
    pub fn profile(&self, id: &str) -> Result<&AuthProfile, ToolError> {
        let denied = |message: String, hint: String| {
            Err(ToolError::new(ErrorCode::PolicyDenied, message).with_hint(hint))
        };
        match self.profiles.iter().find(|profile| profile.id == id) {
            Some(profile) if profile.is_allowed => Ok(profile),
            Some(_) => denied(
                format!("auth_profile {id:?} is not allowed (fail-closed)"),
                format!("ask the user to add {id:?} to secrets.allow_profiles in config.toml"),
            ),
            None => {
                let known = self.profiles.iter().filter(|profile| profile.is_allowed);
                let known: Vec<&str> = known.map(|profile| profile.id.as_str()).collect();
                let hint = match known.is_empty() {
                    true => "there is none that may be used; leave it out".to_owned(),
                    false => format!("use one of {}, or leave it out", known.join(", ")),
                };
                denied(format!("auth_profile not found: {id:?}"), hint)
            }
        }
    }

    /// Returns the page of the search engine.
    ///
    /// # Errors
    /// `bad_arguments` when the settings name none.
    pub fn search_page(&self) -> Result<WebUrl, ToolError> {
        let usual = match self.web_search.engine {
            SearchEngine::DuckDuckGo => "https://html.duckduckgo.com/html/",
            SearchEngine::Searxng => "http://localhost:8080/search",
        };
        let page = self.web_search.base_url.as_deref().unwrap_or(usual);
        WebUrl::parse(page).map_err(|error| {
            let message = format!("tools.web_search.base_url: {error}");
            ToolError::new(ErrorCode::BadArguments, message)
                .with_hint("ask the user to correct it in config.toml")
        })
    }
}

/// Request that failed, in the words of a tool.
#[must_use]
pub fn failure(error: &NetError) -> ToolError {
    let (code, hint) = match error.kind {
        NetErrorKind::Refused | NetErrorKind::Address if error.redirect.is_some() => (
            ErrorCode::UrlNotAllowed,
            Some(
                "three redirects are followed at most, to the same scheme, host and port: ask for the target itself",
            ),
        ),
        NetErrorKind::Address => (
            ErrorCode::BadArguments,
            Some("write the whole URL, as in https://example.com/page"),
        ),
        NetErrorKind::Settings => (ErrorCode::BadArguments, None),
        NetErrorKind::Refused => (ErrorCode::UrlNotAllowed, None),
        NetErrorKind::Plain => (ErrorCode::PolicyDenied, Some("use https")),
        NetErrorKind::Timeout => (ErrorCode::Timeout, None),
        NetErrorKind::Connect
        | NetErrorKind::Encryption
        | NetErrorKind::Cut
        | NetErrorKind::Protocol => (ErrorCode::NetworkError, None),
    };
    let made = ToolError::new(code, error.message.clone());
    match hint {
        Some(hint) => made.with_hint(hint),
        None => made,
    }
}

impl fmt::Display for SearchEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
