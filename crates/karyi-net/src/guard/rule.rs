//! Rule that admits URLs: a scheme, perhaps a host with its port, perhaps the start of a path.

use std::fmt;

use crate::error::{NetError, NetErrorKind};
use crate::web_url::WebUrl;

/// Rule that admits URLs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlRule {
    /// As it was written.
    text: String,
    scheme: String,
    host: Option<NamedHost>,
}

/// Host of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NamedHost {
    host: String,
    port: u16,
    /// Segments with which the path of a URL begins.
    path: Vec<String>,
}

impl UrlRule {
    /// Reads `https://`, which admits every host, or `https://HOST:PORT/PATH`.
    ///
    /// # Errors
    /// The text is no such rule.
    pub fn parse(text: &str) -> Result<Self, NetError> {
        let bad = |found: String| {
            let message =
                format!("expected a rule such as https:// or https://HOST/PATH, found {found}");
            NetError::new(NetErrorKind::Address, message)
        };
        let made = |scheme: &str, host| Self {
            text: text.to_owned(),
            scheme: scheme.to_owned(),
            host,
        };
        let lower = text.to_ascii_lowercase();
        if let Some(scheme @ ("http" | "https")) = lower.strip_suffix("://") {
            return Ok(made(scheme, None));
        }
        if text.contains(['?', '#', '*', '@']) {
            return Err(bad(format!(
                "{text:?} with a query, a fragment, user information or a wildcard"
            )));
        }
        let url = WebUrl::parse(text).map_err(|error| bad(format!("{text:?}: {error}")))?;
        let mut path = segments(&url);
        path.pop_if(|last| last.is_empty());
        let host = url.host().to_owned();
        let port = url.port();
        let path = path.into_iter().map(str::to_owned).collect();
        Ok(made(url.scheme(), Some(NamedHost { host, port, path })))
    }

    /// Returns true when the rule admits a URL.
    pub(super) fn admits(&self, url: &WebUrl) -> bool {
        self.scheme == url.scheme() && self.host.as_ref().is_none_or(|host| host.admits(url))
    }

    /// Returns true when the rule names a host, which need not be public then.
    pub(super) fn names_host(&self) -> bool {
        self.host.is_some()
    }
}

impl NamedHost {
    fn admits(&self, url: &WebUrl) -> bool {
        if self.host != url.host() || self.port != url.port() {
            return false;
        }
        let lower = url.path().to_ascii_lowercase();
        // A server may take these as separators, or drop what follows them, and leave the path again.
        let is_hidden = ["%2f", "%5c", ";", "%3b"]
            .iter()
            .any(|sign| lower.contains(sign));
        let found = segments(url);
        self.path.is_empty()
            || !is_hidden
                && found.len() >= self.path.len()
                && self.path.iter().zip(found).all(|(a, b)| a == b)
    }
}

fn segments(url: &WebUrl) -> Vec<&str> {
    let path = url.path();
    path.strip_prefix('/').unwrap_or(path).split('/').collect()
}

impl fmt::Display for UrlRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rule: &str, url: &str, expected: bool) {
        let parsed = WebUrl::parse(url).unwrap();
        assert_eq!(
            UrlRule::parse(rule).unwrap().admits(&parsed),
            expected,
            "{rule} {url}"
        );
    }

    #[test]
    fn a_scheme_admits_every_host() {
        check("https://", "https://any.example:8443/x", true);
        check("HTTPS://", "https://any.example/", true);
        check("https://", "http://any.example/", false);
        check("http://", "https://any.example/", false);
    }

    #[test]
    fn scheme_host_and_port_are_compared_whole() {
        let rule = "https://api.example.com";
        check(rule, "HTTPS://API.example.com/x", true);
        check(rule, "https://api.example.com:443/", true);
        check(rule, "https://api.example.com./", true);
        check(rule, "http://api.example.com/", false);
        check(rule, "https://api.example.com:8443/", false);
        check(rule, "https://api.example.com.evil/", false);
        check(rule, "https://evil.api.example.com/", false);
        check("http://localhost:3000", "http://localhost:3000/x", true);
        check("http://localhost:3000", "http://localhost/x", false);
        check("http://[::1]:3000", "http://[0:0::1]:3000/x", true);
    }

    #[test]
    fn a_path_is_compared_by_segments() {
        for rule in [
            "https://h/v1/tasks",
            "https://h/v1/tasks/",
            "https://h/v1/./tasks",
        ] {
            check(rule, "https://h/v1/tasks", true);
            check(rule, "https://h/v1/tasks?all", true);
            check(rule, "https://h/v1/tasks/1", true);
            check(rule, "https://h/v1/tasks2", false);
            check(rule, "https://h/v1", false);
            check(rule, "https://h/v1/tasks/../users", false);
            check(rule, "https://h/v1/tasks/%2e%2e/users", false);
            check(rule, "https://h/v1/tasks/..%2fusers", false);
            check(rule, "https://h/v1/tasks/..%5Cusers", false);
            check(rule, "https://h/v1/tasks/..;/users", false);
            check(rule, "https://h/v1/tasks/..%3Bx/users", false);
            check(rule, "https://h/v1/tasks;x", false);
            check(rule, "https://h//v1/tasks", false);
        }
        check("https://h", "https://h/a%2fb", true);
        check("https://h", "https://h//a;b", true);
    }

    #[test]
    fn other_rules_are_refused() {
        for rule in [
            "",
            "h",
            "ftp://",
            "://",
            "https://u@h",
            "https://h?x",
            "https://h#x",
            "https://*.h",
            "https://h:0",
        ] {
            let error = UrlRule::parse(rule).unwrap_err();
            assert!(
                error.message.starts_with("expected a rule"),
                "{rule}: {error}"
            );
        }
    }
}
