//! Rules for hosts that a secret may be sent to.
//!
//! A rule is a name, a name with a port, or `*.` and a domain. Names are compared in lower case as written: another
//! spelling of an address is another host. http is permitted to this machine only.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A host, or the hosts below a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// The name in lower case, without `*.`, brackets and a final dot.
    name: String,
    is_wildcard: bool,
    port: Option<u16>,
}

impl Host {
    /// Parses a rule.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (is_wildcard, rest) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (name, port) = split_port(rest)?;
        let name = normal(name)?;
        // `*.com` covers too much, and an address has no subdomains.
        let is_domain = name.contains('.') && !is_address(&name);
        (!is_wildcard || is_domain).then_some(Self {
            name,
            is_wildcard,
            port,
        })
    }

    /// Returns the port the rule names.
    pub(crate) fn port(&self) -> Option<u16> {
        self.port
    }

    /// Returns true when a request to a host is permitted. A rule without a port permits the https port, and any port
    /// of this machine.
    #[must_use]
    pub fn permits(&self, scheme: &str, host: &str, port: Option<u16>) -> bool {
        let Some(name) = normal(host) else {
            return false;
        };
        let is_here = is_loopback(&name);
        let default = match scheme {
            "https" => 443,
            "http" if is_here => 80,
            _ => return false,
        };
        let port = port.unwrap_or(default);
        let is_port = match self.port {
            Some(own) => own == port,
            None => is_here || port == default,
        };
        is_port && self.is_name(&name)
    }

    /// Returns true when this rule permits everything that the other one permits.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let is_port = self.port == other.port || (self.port.is_none() && other.port == Some(443));
        let is_here = self.port.is_none() && is_loopback(&other.name);
        let is_below = || other.name.ends_with(&format!(".{}", self.name));
        let is_name = match (self.is_wildcard, other.is_wildcard) {
            (false, false) => self.name == other.name,
            (false, true) => false,
            (true, false) => is_below(),
            (true, true) => self.name == other.name || is_below(),
        };
        is_name && (is_port || is_here)
    }

    fn is_name(&self, name: &str) -> bool {
        if !self.is_wildcard {
            return name == self.name;
        }
        let labels = name
            .strip_suffix(&self.name)
            .and_then(|rest| rest.strip_suffix('.'));
        labels.is_some_and(|labels| !labels.is_empty())
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stars = if self.is_wildcard { "*." } else { "" };
        if self.name.contains(':') {
            write!(f, "[{}]", self.name)?;
        } else {
            write!(f, "{stars}{}", self.name)?;
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl Serialize for Host {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Host {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a host"))
    }
}

fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    let after_name = match text.strip_prefix('[') {
        Some(inner) => {
            let (name, rest) = inner.split_once(']')?;
            return match rest.strip_prefix(':') {
                None => rest.is_empty().then_some((name, None)),
                Some(port) => Some((name, Some(port_number(port)?))),
            };
        }
        None => text.rsplit_once(':'),
    };
    match after_name {
        // An IPv6 address without brackets.
        Some((name, _)) if name.contains(':') => Some((text, None)),
        Some((name, port)) => Some((name, Some(port_number(port)?))),
        None => Some((text, None)),
    }
}

fn port_number(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|port| is_plain && *port > 0)
}

/// Returns a host name in normal form for comparison.
fn normal(name: &str) -> Option<String> {
    let inner = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    if let Ok(address) = inner.unwrap_or(name).parse::<Ipv6Addr>() {
        return Some(address.to_string());
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        !label.is_empty() && label.len() <= 63 && label.bytes().all(is_word)
    };
    let fits = name.len() <= 253 && name.split('.').all(is_label);
    fits.then(|| name.to_ascii_lowercase())
}

fn is_address(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    name.contains(':') || last.starts_with(|c: char| c.is_ascii_digit())
}

/// Returns true when a name is this machine.
fn is_loopback(name: &str) -> bool {
    name == "localhost"
        || name
            .parse::<Ipv4Addr>()
            .is_ok_and(|address| address.is_loopback())
        || name
            .parse::<Ipv6Addr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read() {
        let check = |text: &str, expected: Option<&str>| {
            let output = Host::parse(text).map(|host| host.to_string());
            assert_eq!(output.as_deref(), expected, "{text:?}");
        };
        check("api.Example.com", Some("api.example.com"));
        check("api.example.com.:8443", Some("api.example.com:8443"));
        check("*.example.com", Some("*.example.com"));
        check("localhost:3000", Some("localhost:3000"));
        check("127.0.0.1", Some("127.0.0.1"));
        check("[::1]:80", Some("[::1]:80"));
        check("0:0:0:0:0:0:0:1", Some("[::1]"));
        for bad in [
            "",
            "*",
            "*.com",
            "*.1.2.3.4",
            "a b",
            "https://a.com",
            "a.com/x",
            "u@a.com",
            "a..b",
            "a.com:0",
            "a.com:99999",
            "a.com:+1",
            "ä.com",
            "*.*.com",
            "[::1",
            "[::1]x",
            ".com",
            "a.com:",
        ] {
            check(bad, None);
        }
    }

    #[test]
    fn requests_are_permitted_or_not() {
        let check = |rule: &str, scheme: &str, host: &str, port: Option<u16>, expected: bool| {
            let found = Host::parse(rule).unwrap().permits(scheme, host, port);
            assert_eq!(found, expected, "{rule} {scheme}://{host} {port:?}");
        };
        check("a.com", "https", "a.com", None, true);
        check("a.com", "https", "A.COM.", Some(443), true);
        check("a.com", "https", "a.com", Some(8443), false);
        check("a.com:8443", "https", "a.com", Some(8443), true);
        check("a.com", "http", "a.com", None, false);
        check("a.com:80", "http", "a.com", None, false);
        check("a.com", "ftp", "a.com", None, false);
        check("a.com", "https", "xa.com", None, false);
        check("a.com", "https", "a.com.evil.org", None, false);
        check("a.com", "https", "b.a.com", None, false);
        check("*.a.com", "https", "b.a.com", None, true);
        check("*.a.com", "https", "c.b.a.com", None, true);
        check("*.a.com", "https", "a.com", None, false);
        check("*.a.com", "https", "ba.com", None, false);
        check("*.a.com", "https", ".a.com", None, false);
        check("localhost", "http", "localhost", Some(3000), true);
        check("localhost:80", "http", "localhost", Some(3000), false);
        check("127.0.0.1", "http", "127.0.0.1", Some(1), true);
        check("127.0.0.1", "http", "127.1", Some(1), false);
        check("127.0.0.1", "http", "localhost", Some(1), false);
        check("::1", "http", "[::1]", Some(1), true);
        check("10.0.0.1", "http", "10.0.0.1", None, false);
        check("a.com", "https", "a.com@evil.org", None, false);
    }

    #[test]
    fn one_rule_covers_another() {
        let check = |outer: &str, inner: &str, expected: bool| {
            let (outer, inner) = (Host::parse(outer).unwrap(), Host::parse(inner).unwrap());
            assert_eq!(outer.covers(&inner), expected, "{outer} {inner}");
        };
        check("a.com", "a.com", true);
        check("a.com", "a.com:443", true);
        check("a.com", "a.com:8443", false);
        check("a.com:443", "a.com", false);
        check("*.a.com", "b.a.com", true);
        check("*.a.com", "*.b.a.com", true);
        check("*.a.com", "a.com", false);
        check("b.a.com", "*.a.com", false);
        check("localhost", "localhost:3000", true);
        check("localhost:3000", "localhost", false);
    }
}
