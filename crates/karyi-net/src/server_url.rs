//! Address of a server, checked before anything is sent to it.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use reqwest::Url;

use crate::error::{NetError, NetErrorKind};

/// Address of a server: http or https, a host, perhaps a port and a path. It has no user information, query or
/// fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerUrl {
    /// Its path ends with one slash.
    url: Url,
}

impl ServerUrl {
    /// Reads an address. Slashes at the end, and doubled ones in the path, count once.
    ///
    /// # Errors
    /// The text is no such address. The message does not repeat it, since it may contain a password.
    pub fn parse(text: &str) -> Result<Self, NetError> {
        let bad = |found: &str| {
            let message = format!("expected http://HOST:PORT or https://HOST:PORT, found {found}");
            NetError::new(NetErrorKind::Address, message)
        };
        let text = text.trim();
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(bad("an address without a scheme"));
        };
        if !matches!(scheme.to_ascii_lowercase().as_str(), "http" | "https") {
            // `localhost:8080` has no scheme either.
            return Err(
                match rest.starts_with("//") || scheme.eq_ignore_ascii_case("file") {
                    true => bad("another scheme"),
                    false => bad("an address without a scheme"),
                },
            );
        }
        // The URL standard repairs these.
        let has_host = rest
            .strip_prefix("//")
            .is_some_and(|rest| !rest.starts_with(['/', '?', '#']));
        if !has_host
            || text.contains(|sign: char| sign == '\\' || sign.is_whitespace() || sign.is_control())
        {
            return Err(bad("an address that is not valid"));
        }
        let mut url = Url::parse(text).map_err(|error| bad(&error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            let message = "the address contains a name or password, which every process would see";
            return Err(NetError::new(NetErrorKind::Address, message));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(bad("an address with a query or fragment"));
        }
        let segments: Vec<&str> = url
            .path()
            .split('/')
            .filter(|part| !part.is_empty())
            .collect();
        let path = match segments.is_empty() {
            true => "/".to_owned(),
            false => format!("/{}/", segments.join("/")),
        };
        url.set_path(&path);
        Ok(Self { url })
    }

    /// Returns the host, without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        let host = self.url.host_str().unwrap_or_default();
        host.trim_matches(['[', ']'])
    }

    /// Returns host and port as they are named in messages.
    #[must_use]
    pub fn authority(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        let port = self.url.port_or_known_default().unwrap_or_default();
        format!("{host}:{port}")
    }

    /// Returns true for https.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Returns true when the host is this machine.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        is_loopback(self.host())
    }

    /// Returns the last segment of the path; empty without one.
    #[must_use]
    pub fn last_segment(&self) -> &str {
        let path = self.url.path().trim_end_matches('/');
        path.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the path at the server that a request of a path asks for.
    #[must_use]
    pub fn path_of(&self, path: &str) -> String {
        self.join(path).path().to_owned()
    }

    /// Returns the URL of a path, perhaps with a query: below this address, or from the root of the server if it
    /// begins with a slash. It never leads to another host.
    pub(crate) fn join(&self, path: &str) -> Url {
        let (path, query) = match path.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (path, None),
        };
        let mut url = self.url.clone();
        match path.starts_with('/') {
            true => url.set_path(path),
            false => url.set_path(&format!("{}{path}", self.url.path())),
        }
        url.set_query(query);
        url
    }
}

impl fmt::Display for ServerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.url.as_str().trim_end_matches('/'))
    }
}

/// Returns true for a host, without brackets, that is this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let is_v4 = host
        .parse()
        .is_ok_and(|address: Ipv4Addr| address.is_loopback());
    let is_v6 = host.parse().is_ok_and(|address: Ipv6Addr| {
        let mapped = address.to_ipv4_mapped();
        mapped.map_or(address.is_loopback(), |address| address.is_loopback())
    });
    host == "localhost" || is_v4 || is_v6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let found = ServerUrl::parse(text).map(|url| url.join("chat").to_string());
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
            (Err(error), Err(part)) => {
                assert!(error.message.contains(part), "{text}: {error}");
                assert!(!error.message.contains("hunter2"), "{error}");
            }
            (found, expected) => {
                assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{text}")
            }
        }
    }

    #[test]
    fn addresses_are_joined_without_doubled_slashes() {
        check("http://h", Ok("http://h/chat"));
        check("http://h/", Ok("http://h/chat"));
        check("HTTP://H:80/v1", Ok("http://h/v1/chat"));
        check("https://h//api//v1//", Ok("https://h/api/v1/chat"));
        check("http://[::1]:8080/v1", Ok("http://[::1]:8080/v1/chat"));
        check(
            " http://127.0.0.1:8080/v1\n",
            Ok("http://127.0.0.1:8080/v1/chat"),
        );
    }

    #[test]
    fn other_addresses_are_refused() {
        check("file:///etc/passwd", Err("another scheme"));
        check("ftp://h", Err("another scheme"));
        check("h", Err("without a scheme"));
        check("localhost:8080", Err("without a scheme"));
        check("", Err("without a scheme"));
        check("http:h", Err("not valid"));
        check("http:///h", Err("not valid"));
        check("http://", Err("found"));
        check("http:\\\\h", Err("not valid"));
        check("http://h\\@evil", Err("not valid"));
        check("http://a b", Err("not valid"));
        check("http://h:99999", Err("found"));
        check("https://user:hunter2@h", Err("name or password"));
        check("https://hunter2@h", Err("name or password"));
        check("https://h?key=hunter2", Err("query"));
        check("https://h#hunter2", Err("fragment"));
    }

    #[test]
    fn a_path_never_leads_to_another_host() {
        let server = ServerUrl::parse("http://h/v1").unwrap();
        assert_eq!(server.join("/props").as_str(), "http://h/props");
        for path in [
            "//evil/x",
            "http://evil/x",
            "\\\\evil",
            "@evil",
            "../../x",
            "x?q=//evil",
        ] {
            let url = server.join(path);
            assert_eq!(url.host_str(), Some("h"), "{path}: {url}");
        }
    }

    #[test]
    fn this_machine_has_several_names() {
        let check = |text: &str, expected: bool| {
            assert_eq!(
                ServerUrl::parse(text).unwrap().is_loopback(),
                expected,
                "{text}"
            );
        };
        check("http://localhost:1", true);
        check("http://LOCALHOST", true);
        check("http://127.1.2.3", true);
        check("http://2130706433", true);
        check("http://[::1]", true);
        check("http://[::ffff:127.0.0.1]", true);
        check("http://localhost.example.com", false);
        check("http://127.0.0.1.example.com", false);
        check("http://0.0.0.0", false);
        check("http://10.0.0.1", false);
    }
}
