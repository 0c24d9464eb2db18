//! The guard: which URLs may be asked for, and which addresses may be reached.
//!
//! A URL needs a rule that admits it. An address that is not public is reached only where that rule names the host, or
//! where private addresses are permitted. Addresses in a URL are judged here, those of names by the resolver, which
//! the connection uses.

mod address;
mod resolver;
mod rule;

pub(crate) use resolver::{JudgingResolver, PrivateAddress, Reach};
pub use resolver::{Lookup, NameSource, SystemNames};
pub use rule::UrlRule;

use reqwest::Url;

use crate::error::{NetError, NetErrorKind};
use crate::web_url::WebUrl;
use resolver::is_this_machine;

/// Rules for the URLs of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// Rules, of which one must admit a URL.
    pub rules: Vec<UrlRule>,
    /// Refuses addresses that are not public, unless a rule names the host.
    pub deny_private: bool,
    /// Name of the auth profile that the rules belong to.
    pub profile: Option<String>,
}

impl Default for Guard {
    /// Admits encrypted connections to the public internet.
    fn default() -> Self {
        Self {
            rules: UrlRule::parse("https://").into_iter().collect(),
            deny_private: true,
            profile: None,
        }
    }
}

impl Guard {
    /// Checks a URL, apart from the addresses that its name leads to.
    ///
    /// # Errors
    /// It may not be asked for.
    pub fn check(&self, url: &WebUrl) -> Result<(), NetError> {
        self.judge(url).map(drop)
    }

    /// Judges a URL; returns the addresses that its request may reach.
    ///
    /// # Errors
    /// It may not be asked for.
    pub(crate) fn judge(&self, url: &WebUrl) -> Result<Reach, NetError> {
        if self.rules.is_empty() {
            let message = match &self.profile {
                None => {
                    "url_fetch is blocked by guard (no allowed_url_prefixes configured)".to_owned()
                }
                Some(_) => self.not_allowed(url),
            };
            return Err(refused(message));
        }
        let mut admitting = self.rules.iter().filter(|rule| rule.admits(url)).peekable();
        if admitting.peek().is_none() {
            return Err(refused(self.not_allowed(url)));
        }
        if !self.deny_private || admitting.any(UrlRule::names_host) {
            return Ok(Reach::Everywhere);
        }
        match is_private_host(url.url()) {
            true => Err(refused(self.not_public())),
            false => Ok(Reach::Public),
        }
    }

    /// Returns the message about a host that is not public.
    pub(crate) fn not_public(&self) -> String {
        format!("private ip/localhost is not allowed by {}", self.name())
    }

    fn not_allowed(&self, url: &WebUrl) -> String {
        match &self.profile {
            None => "url is not allowed by guard".to_owned(),
            Some(_) => format!("url \"{url}\" not allowed by {}", self.name()),
        }
    }

    fn name(&self) -> String {
        match &self.profile {
            None => "guard".to_owned(),
            Some(profile) => format!("auth_profile {profile:?}"),
        }
    }
}

/// Returns true for a host that is known not to be public without a resolver.
fn is_private_host(url: &Url) -> bool {
    // The type of the host is not exported; its text is in its shortest form.
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_matches(['[', ']']);
    match host.parse() {
        Ok(address) => !Reach::Public.has(address),
        Err(_) => is_this_machine(host),
    }
}

fn refused(message: String) -> NetError {
    NetError::new(NetErrorKind::Refused, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(rules: &[&str]) -> Guard {
        let rules = rules.iter().map(|rule| UrlRule::parse(rule).unwrap());
        Guard {
            rules: rules.collect(),
            ..Guard::default()
        }
    }

    #[track_caller]
    fn check(guard: &Guard, url: &str, expected: Result<Reach, &str>) {
        let found = guard.judge(&WebUrl::parse(url).unwrap());
        let found = found
            .as_ref()
            .map(|reach| *reach)
            .map_err(|error| error.message.as_str());
        assert_eq!(found, expected, "{url}");
    }

    const PRIVATE: Result<Reach, &str> = Err("private ip/localhost is not allowed by guard");

    #[test]
    fn hosts_that_are_not_public_are_refused_in_every_form() {
        let guard = guard(&["http://", "https://"]);
        for host in [
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "[::1]",
            "[::ffff:7f00:1]",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "0",
            "[64:ff9b::7f00:1]",
            "[2002:7f00:1::]",
            "127.0.0.1.",
            "\u{ff11}27.0.0.1",
        ] {
            check(&guard, &format!("http://{host}/"), PRIVATE);
        }
        check(&guard, "http://8.8.8.8/", Ok(Reach::Public));
        check(&guard, "https://localhost.example.com/", Ok(Reach::Public));
    }

    #[test]
    fn a_rule_that_names_a_host_admits_it_wherever_it_is() {
        let mut guard = guard(&["https://", "http://localhost:3000", "https://10.0.0.1"]);
        check(&guard, "http://localhost:3000/", Ok(Reach::Everywhere));
        check(&guard, "https://10.0.0.1/", Ok(Reach::Everywhere));
        check(&guard, "https://10.0.0.2/", PRIVATE);
        check(
            &guard,
            "http://localhost/",
            Err("url is not allowed by guard"),
        );
        guard.deny_private = false;
        check(&guard, "https://10.0.0.2/", Ok(Reach::Everywhere));
    }

    #[test]
    fn refusals_say_whose_rules_they_are() {
        check(
            &guard(&[]),
            "https://h/",
            Err("url_fetch is blocked by guard (no allowed_url_prefixes configured)"),
        );
        check(
            &Guard::default(),
            "http://h/",
            Err("url is not allowed by guard"),
        );
        let mut guard = guard(&["https://h/tasks"]);
        guard.profile = Some("p".to_owned());
        check(
            &guard,
            "https://h/x",
            Err("url \"https://h/x\" not allowed by auth_profile \"p\""),
        );
    }
}
