//! URL of a page anywhere, checked before anything is sent.

use std::fmt;

use karyi_core::limits;
use reqwest::Url;

use crate::error::{NetError, NetErrorKind};

/// URL with http or https, a host and no user information.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebUrl {
    url: Url,
}

impl WebUrl {
    /// Reads a URL as browsers do: a number is an address, a name is written in ASCII. A fragment is dropped.
    ///
    /// # Errors
    /// The text is no such URL. The message does not repeat it, since it may contain a password.
    pub fn parse(text: &str) -> Result<Self, NetError> {
        let text = text.trim_matches(' ');
        if text.len() > limits::MAX_URL_BYTES {
            let most = limits::MAX_URL_BYTES;
            return Err(bad(format!(
                "invalid url: expected at most {most} bytes, found {}",
                text.len()
            )));
        }
        // The URL standard repairs these, and other programs read them in another way.
        if text.contains(|sign: char| sign == '\\' || sign.is_control()) {
            return Err(bad(
                "invalid url: it contains a backslash or a control character",
            ));
        }
        let url = Url::parse(text).map_err(|error| bad(format!("invalid url: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad(format!("unsupported url scheme: {}", url.scheme())));
        }
        // The standard would take `https:///host` as `https://host`.
        let authority = text.get(url.scheme().len() + 1..).unwrap_or_default();
        if authority
            .strip_prefix("//")
            .is_none_or(|rest| rest.starts_with('/'))
        {
            return Err(bad("invalid url: expected http://HOST or https://HOST"));
        }
        Self::checked(url)
    }

    fn checked(mut url: Url) -> Result<Self, NetError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad(format!("unsupported url scheme: {}", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad("userinfo in URL is not allowed"));
        }
        if url.port() == Some(0) {
            return Err(bad("invalid url: port 0 is none"));
        }
        // The standard permits signs that no name has, and that rules and messages would show as they are.
        let is_part = |sign: char| sign.is_ascii_alphanumeric() || "-._:[]".contains(sign);
        if !url.host_str().unwrap_or_default().chars().all(is_part) {
            return Err(bad(
                "invalid url: expected a host of letters, digits, dots and hyphens",
            ));
        }
        url.set_fragment(None);
        Ok(Self { url })
    }

    /// Returns the URL that a reference on its page means.
    ///
    /// # Errors
    /// It is no URL of this kind.
    pub fn join(&self, reference: &str) -> Result<Self, NetError> {
        if reference.len() > limits::MAX_URL_BYTES {
            return Err(bad("invalid url: it is too long"));
        }
        let url = self.url.join(reference);
        Self::checked(url.map_err(|error| bad(format!("invalid url: {error}")))?)
    }

    /// Returns the URL as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// Returns the host, in lower case and without the dot at its end; an address of IPv6 has brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        let host = self.url.host_str().unwrap_or_default();
        host.strip_suffix('.').unwrap_or(host)
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &str {
        self.url.path()
    }

    /// Returns host and port as they are named in messages.
    #[must_use]
    pub fn authority(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        format!("{host}:{}", self.port())
    }

    /// Returns true for https.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Returns true when the host is this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        crate::server_url::is_loopback(self.host().trim_matches(['[', ']']))
    }

    /// Returns a value of the query, decoded once.
    #[must_use]
    pub fn query_value(&self, name: &str) -> Option<String> {
        let mut pairs = self.url.query_pairs();
        pairs.find_map(|(key, value)| (key == name).then(|| value.into_owned()))
    }

    /// Returns the URL with a value of its query in place of those of the same name.
    #[must_use]
    pub fn with_query_value(&self, name: &str, value: &str) -> Self {
        let others = self.url.query_pairs().filter(|(key, _)| key != name);
        let others: Vec<(String, String)> = others
            .map(|(key, value)| (key.into_owned(), value.into_owned()))
            .collect();
        let mut url = self.url.clone();
        url.query_pairs_mut()
            .clear()
            .extend_pairs(others)
            .append_pair(name, value);
        Self { url }
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the scheme.
    #[must_use]
    pub fn scheme(&self) -> &str {
        self.url.scheme()
    }

    /// Returns the host, with the port if it is not the usual one.
    #[must_use]
    pub fn named_host(&self) -> String {
        match self.unusual_port() {
            Some(port) => format!("{}:{port}", self.host()),
            None => self.host().to_owned(),
        }
    }

    /// Returns the port, if it is not that of the scheme.
    #[must_use]
    pub fn unusual_port(&self) -> Option<u16> {
        self.url.port()
    }

    pub(crate) fn port(&self) -> u16 {
        self.url.port_or_known_default().unwrap_or_default()
    }

    /// Returns true when scheme, host and port are the same.
    pub(crate) fn has_origin_of(&self, other: &Self) -> bool {
        (self.scheme(), self.host(), self.port()) == (other.scheme(), other.host(), other.port())
    }
}

impl fmt::Display for WebUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn bad(message: impl Into<String>) -> NetError {
    NetError::new(NetErrorKind::Address, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let found = WebUrl::parse(text);
        let found = found
            .as_ref()
            .map(WebUrl::as_str)
            .map_err(|error| error.message.as_str());
        match (found, expected) {
            (Err(message), Err(part)) => assert!(message.contains(part), "{text}: {message}"),
            (found, expected) => assert_eq!(found, expected, "{text}"),
        }
    }

    #[test]
    fn urls_are_read_as_browsers_do() {
        check("HTTPS://API.example.com/x", Ok("https://api.example.com/x"));
        check(" https://h/a b?q=c d#part ", Ok("https://h/a%20b?q=c%20d"));
        check("http://127.1:80/", Ok("http://127.0.0.1/"));
        check("http://2130706433", Ok("http://127.0.0.1/"));
        check("http://0x7f000001/", Ok("http://127.0.0.1/"));
        check("https://h/a/%2e%2e/b", Ok("https://h/b"));
        // Letters of another alphabet are shown as they are sent.
        check(
            "https://ex\u{430}mple.com/",
            Ok("https://xn--exmple-4nf.com/"),
        );
    }

    #[test]
    fn other_texts_are_refused() {
        check("", Err("invalid url: "));
        check("example.com", Err("invalid url: "));
        check("ftp://h/", Err("unsupported url scheme: ftp"));
        check("file:///etc/passwd", Err("unsupported url scheme: file"));
        check(
            "javascript:alert(1)",
            Err("unsupported url scheme: javascript"),
        );
        check("https:h", Err("expected http://HOST"));
        check("https:///h", Err("expected http://HOST"));
        check("https://", Err("invalid url: "));
        check(
            "https://api.example.com@evil/",
            Err("userinfo in URL is not allowed"),
        );
        check(
            "https://u:hunter2@h/",
            Err("userinfo in URL is not allowed"),
        );
        check("http://h:0/", Err("port 0"));
        check("http://h:99999/", Err("invalid url: "));
        check("http://h\\@evil/", Err("backslash"));
        check("http://h/\n", Err("control character"));
        check("http://h/\0", Err("control character"));
        check("http://a b/", Err("invalid url: "));
        check(
            "https://a$KARYI{X}.evil/",
            Err("expected a host of letters"),
        );
        check("https://*.h/", Err("expected a host of letters"));
        check(
            &format!("http://h/{}", "x".repeat(70_000)),
            Err("at most 8192 bytes, found 70009"),
        );
    }

    #[test]
    fn references_keep_to_the_web() {
        let page = WebUrl::parse("https://h/a/b?c").unwrap();
        let joined = |text: &str| page.join(text).ok().map(|url| url.to_string());
        assert_eq!(joined("../x#y").as_deref(), Some("https://h/x"));
        assert_eq!(joined("//other/x").as_deref(), Some("https://other/x"));
        assert_eq!(joined("javascript:alert(1)"), None);
        assert_eq!(joined("https://u@h/"), None);
    }

    #[test]
    fn values_of_a_query_are_decoded_once() {
        let url =
            WebUrl::parse("https://h/l/?a=1&uddg=https%3A%2F%2Fx%2F%3Fq%3D1%252B1&a=2").unwrap();
        assert_eq!(
            url.query_value("uddg").as_deref(),
            Some("https://x/?q=1%2B1")
        );
        let url = WebUrl::parse("https://h/?b=1&q=old")
            .unwrap()
            .with_query_value("q", "a+b c&d");
        assert_eq!(url.as_str(), "https://h/?b=1&q=a%2Bb+c%26d");
    }
}
