//! Tests of policies: terms, narrowing and what is permitted.

use proptest::prelude::*;

use super::*;

fn now() -> Timestamp {
    "2026-11-22T08:00:00Z".parse().unwrap()
}

fn name() -> SecretName {
    SecretName::parse("K").unwrap()
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(Into::into).collect()
}

fn terms(toml: &str) -> PolicyTerms {
    toml::from_str(toml).unwrap()
}

fn policy(toml: &str) -> Result<Policy, String> {
    terms(toml).policy(now()).map_err(|error| error.message)
}

#[test]
fn a_new_secret_serves_commands_input_and_named_hosts() {
    let policy = Policy::default();
    let check = |tool: &str, expected: Result<(), ErrorCode>| {
        let found = policy.check_use(&name(), tool, Path::new("/p"), now());
        assert_eq!(found.map_err(|error| error.code), expected, "{tool}");
    };
    check("command", Ok(()));
    check("input", Ok(()));
    check("url_fetch", Ok(()));
    check("edit", Err(ErrorCode::PolicyDenied));
    check("read", Err(ErrorCode::PolicyDenied));
    assert!(policy.check_write(&name()).is_err());
    assert!(policy.check_host(&name(), "https", "a.com", None).is_err());
    assert_eq!(PolicyTerms::default().policy(now()), Ok(policy));
}

#[test]
fn terms_make_a_policy() {
    let made =
        policy("tools = ['command']\nuse = 'ask'\nexpires = '30d'\nallow-short = true").unwrap();
    let expected = Policy {
        tools: Some(BTreeSet::from(["command".into()])),
        approval: Approval::Ask,
        expires: Some("2026-12-22T08:00:00Z".parse().unwrap()),
        allow_short: true,
        ..Policy::default()
    };
    assert_eq!(made, expected);
    let written = policy("write = true").unwrap();
    assert!(
        written
            .check_use(&name(), "edit", Path::new("/"), now())
            .is_ok()
    );
    let sealed = policy("output = 'sealed'\nhosts = ['a.com']").unwrap();
    assert_eq!(sealed.tools, Some(BTreeSet::from(["url_fetch".into()])));
    let found = sealed.check_use(&name(), "command", Path::new("/"), now());
    assert_eq!(found.unwrap_err().code, ErrorCode::SealedInShell);
}

#[test]
fn terms_that_mean_nothing_are_refused() {
    let check = |toml: &str, expected: &str| {
        let message = policy(toml).unwrap_err();
        assert!(message.contains(expected), "{toml}: {message}");
    };
    check("tools = ['comand']", "found something else");
    check("hosts = ['https://a.com']", "expected a host");
    check("commands = ['/bin/sh']", "expected the name of a program");
    check("dirs = ['here']", "expected an absolute directory");
    check("dirs = ['/a/../b']", "expected an absolute directory");
    check("expires = 'soon'", "expected a time such as 30d");
    check("expires = '-3d'", "expected a time such as 30d");
    check("expires = '999999999y'", "expected a time such as 30d");
    check("output = 'sealed'", "needs hosts");
    check(
        "output = 'sealed'\ntools = ['command']\nhosts = ['a.com']",
        "tools=url_fetch only",
    );
    check(
        "output = 'sealed'\nwrite = true\nhosts = ['a.com']",
        "contradict",
    );
}

#[test]
fn an_expiry_is_never_later_than_requested() {
    let end = |text: &str| {
        let narrowed = Policy::unrestricted().narrowed(&terms(&format!("expires = '{text}'")));
        let made = policy(&format!("expires = '{text}'"));
        let made = made.map(|policy| policy.expires.unwrap().to_string());
        let narrowed = narrowed.map(|policy| policy.expires.unwrap().to_string());
        assert_eq!(made.clone().ok(), narrowed.ok(), "{text}");
        made
    };
    for (text, expected) in [
        ("2030-01-01", "2030-01-01T23:59:59Z"),
        ("20300101", "2030-01-01T23:59:59Z"),
        ("2030-01-01T10:00Z", "2030-01-01T10:00:00Z"),
        ("2030-01-01 10:00+02:00", "2030-01-01T08:00:00Z"),
    ] {
        assert_eq!(end(text).as_deref(), Ok(expected), "{text}");
    }
    for text in [
        "2030-01-01 10:00",
        "2030-01-01T10:00",
        "2030-01-01t10:00:00",
        "20300101T10",
        "2030-01-01T10:00[Europe/Berlin]",
        "2030-01-01[Europe/Berlin]",
    ] {
        let refused = end(text).unwrap_err();
        assert!(
            refused.contains("time of day with its zone"),
            "{text}: {refused}"
        );
    }
}

#[test]
fn a_policy_survives_the_store() {
    for toml in [
        "",
        "tools = ['command']\nhosts = ['*.a.com:8443']\ndirs = ['/p']\nexpires = '2030-01-01'",
    ] {
        let made = policy(toml).unwrap();
        let json = serde_json::to_string(&made).unwrap();
        assert_eq!(
            serde_json::from_str::<Policy>(&json).unwrap(),
            made,
            "{json}"
        );
    }
    let given = Policy::unrestricted();
    let json = serde_json::to_string(&given).unwrap();
    assert_eq!(
        serde_json::from_str::<Policy>(&json).unwrap(),
        given,
        "{json}"
    );
    assert!(serde_json::from_str::<Policy>(r#"{"tols":[]}"#).is_err());
}

#[test]
fn a_secret_ends_at_its_date() {
    let made = policy("expires = '2026-11-22'").unwrap();
    let endless = terms("expires = 'never'").applied(&made, now()).unwrap();
    assert_eq!(endless.expires, None);
    let check = |moment: &str, expected: Result<(), ErrorCode>| {
        let found = made.check_use(&name(), "command", Path::new("/"), moment.parse().unwrap());
        assert_eq!(found.map_err(|error| error.code), expected, "{moment}");
    };
    check("2026-11-22T23:59:58Z", Ok(()));
    check("2026-11-23T00:00:00Z", Err(ErrorCode::SecretExpired));
}

#[test]
fn a_bound_secret_stays_in_its_project() {
    let made = policy("dirs = ['/home/a/project']").unwrap();
    let check = |cwd: &str, expected: bool| {
        let found = made.check_use(&name(), "command", Path::new(cwd), now());
        assert_eq!(found.is_ok(), expected, "{cwd}");
    };
    check("/home/a/project", true);
    check("/home/a/project/src", true);
    check("/home/a/projects", false);
    check("/home/a", false);
}

#[test]
fn a_file_narrows_and_never_widens() {
    let own = policy("tools = ['command']\nhosts = ['*.a.com']\ndirs = ['/p']\nuse = 'ask'\nexpires = '2027-01-01'").unwrap();
    let file = "tools = ['command', 'edit']\nhosts = ['x.a.com', 'b.com']\ndirs = ['/p/q', '/r']\n\
        use = 'always'\nwrite = true\nexpires = '2030-01-01'\ncommands = ['gh']";
    let expected = Policy {
        hosts: Some(vec![Host::parse("x.a.com").unwrap()]),
        dirs: Some(vec!["/p/q".into()]),
        commands: Some(BTreeSet::from(["gh".into()])),
        ..own.clone()
    };
    assert_eq!(own.narrowed(&terms(file)), Ok(expected));
    let endless = own.narrowed(&terms("expires = 'never'")).unwrap();
    assert_eq!(endless.expires, own.expires);
    let nothing = own.narrowed(&terms("tools = ['edit']")).unwrap();
    assert_eq!(nothing.tools, Some(BTreeSet::new()));
    assert!(
        Policy::default()
            .narrowed(&terms("hosts = ['a.com']"))
            .unwrap()
            .check_host(&name(), "https", "a.com", None)
            .is_err()
    );
    let given = Policy::unrestricted()
        .narrowed(&terms("hosts = ['a.com']"))
        .unwrap();
    assert!(given.check_host(&name(), "https", "a.com", None).is_ok());
}

#[test]
fn files_are_read_strictly() {
    let check = |toml: &str, expected: &str| {
        let message = PolicyFile::parse(toml).unwrap_err().message;
        assert!(message.contains(expected), "{toml}: {message}");
    };
    assert_eq!(PolicyFile::parse(""), Ok(PolicyFile::default()));
    let unknown = "unknown field: there are tables [secret.NAME]";
    check(
        "[secret.K]\ntool = ['command']",
        &format!("line 2, column 1: {unknown}"),
    );
    check("[secrets.K]\n", &format!("line 1, column 2: {unknown}"));
    check("[secret.K]\nwrite = 'yes'", "line 2, column 9: wrong type");
    check("[secret.K]\nuse = 'often'", "unknown word: use is ask,");
    check("[secret.K]\nuse = 'ask'\nuse = 'ask'", "line 3, column 1: ");
    check("[secret.'a b']\n", "no name of a secret");
    check("[secret.K]\nexpires = '30d'", "expected a date");
    check("[secret.K]\nuse = 'never'", "line 2, column 7");
    check("[secret.K\n", "TOML");
    // A file of values was passed by mistake.
    for text in [
        "tools = [\"Zvalue-as-arg-77",
        "TOKEN=Zvalue-as-arg-77",
        "TOKEN=\"Zvalue-as-arg-77\"",
        "[secret.K]\ntools = \"Zvalue-as-arg-77\"",
        "[secret.K]\nuse = \"Zvalue-as-arg-77\"",
        "[secret.K]\nexpires = \"Zvalue-as-arg-77\"",
        "[secret.K]\ndirs = [\"Zvalue-as-arg-77\"]",
        "[secret.K]\nhosts = [\"Zvalue-as-arg-77/\"]",
        "[secret.\"Zvalue-as-arg-77\"]",
        "[secret.K]\n\"Zvalue-as-arg-77\" = 1",
        "[secret.K]\nwrite = 'hun\"Zvalue-as-arg-77\"x'",
        "[secret.K]\nwrite = 'hun`Zvalue-as-arg-77`x'",
        "[secret.K]\nuse = 'hun`Zvalue-as-arg-77`x'",
        "[secret.K]\nuse = 'hun\"\\Zvalue-as-arg-77\"x'",
        "[secret.K]\nZvalue-as-arg-77 = 1\nZvalue-as-arg-77 = 2",
        "Zvalue-as-arg-77",
    ] {
        if let Err(error) = PolicyFile::parse(text) {
            assert!(
                !format!("{error:?}").contains("Zvalue"),
                "{text}: {error:?}"
            );
        }
    }
    let file = PolicyFile::parse("[secret.K]\nuse = 'ask'").unwrap();
    assert_eq!(
        file.narrow(&name(), &Policy::default()).approval,
        Approval::Ask
    );
    let other = SecretName::parse("OTHER").unwrap();
    assert_eq!(file.narrow(&other, &Policy::default()), Policy::default());
    check("[secret.K]\n[secret.k]\n", "differ only in case");
}

#[test]
fn names_of_a_file_are_compared_with_those_there_are() {
    let parse = |text: &str| SecretName::parse(text).unwrap();
    let file = PolicyFile::parse("[secret.TOKEN]\nuse = 'ask'\n[secret.OTHER]\n").unwrap();
    let known = |names: &[&str]| names.iter().map(|name| parse(name)).collect();
    let unknown = |names: &[&str]| file.unknown(&known(names)).map_err(|error| error.message);
    assert_eq!(unknown(&["TOKEN", "OTHER", "MORE"]), Ok(vec![]));
    assert_eq!(unknown(&["TOKEN"]), Ok(vec![parse("OTHER")]));
    assert_eq!(unknown(&[]), Ok(vec![parse("OTHER"), parse("TOKEN")]));
    let expected = "[secret.TOKEN]: the secret is called token".to_owned();
    assert_eq!(unknown(&["token"]), Err(expected));
    // A later name in other case is narrowed all the same.
    let late = file.narrow(&parse("token"), &Policy::default());
    assert_eq!(late.approval, Approval::Ask);
}

fn any_terms() -> impl Strategy<Value = PolicyTerms> {
    let some = |words: &'static [&'static str]| {
        proptest::option::of(proptest::sample::subsequence(words, 0..=words.len()))
    };
    const APPROVALS: &[Approval] = &[Approval::Ask, Approval::Session, Approval::Always];
    (
        some(TOOLS),
        some(&[
            "a.com",
            "*.a.com",
            "x.a.com",
            "localhost",
            "localhost:80",
            "a.com:443",
        ]),
        some(&["curl", "gh"]),
        some(&["/", "/a", "/a/b", "/c"]),
        proptest::option::of(proptest::sample::select(APPROVALS)),
        proptest::option::of(any::<bool>()),
        proptest::option::of(proptest::sample::select(&[
            "2026-01-01",
            "2027-01-01",
            "2028-01-01",
        ])),
    )
        .prop_map(|(tools, hosts, commands, dirs, approval, write, expires)| {
            let list = |words: Option<Vec<&str>>| {
                words.map(|list| list.into_iter().map(Into::into).collect())
            };
            PolicyTerms {
                tools: list(tools),
                hosts: list(hosts),
                commands: list(commands),
                dirs: dirs.map(|list| list.into_iter().map(Into::into).collect()),
                approval,
                write,
                expires: expires.map(Into::into),
                ..PolicyTerms::default()
            }
        })
}

proptest! {
    /// Everything that a narrowed policy permits, the policy and the terms both permit.
    #[test]
    fn narrowing_permits_nothing_new(own in any_terms(), wanted in any_terms(), then in any_terms()) {
        let own = own.policy(now()).unwrap();
        let once = own.narrowed(&wanted).unwrap();
        let twice = once.narrowed(&then).unwrap();
        let other = then.policy(now()).unwrap();
        let both = own.within(&other);
        for (outer, inner) in [(&own, &once), (&once, &twice), (&own, &both), (&other, &both)] {
            for tool in TOOLS {
                for cwd in ["/", "/a", "/a/b", "/c", "/d"] {
                    if inner.check_use(&name(), tool, Path::new(cwd), now()).is_ok() {
                        prop_assert!(outer.check_use(&name(), tool, Path::new(cwd), now()).is_ok());
                    }
                }
            }
            for host in words("a.com x.a.com y.x.a.com localhost b.com") {
                for port in [None, Some(80), Some(443), Some(8080)] {
                    for scheme in ["http", "https"] {
                        if inner.check_host(&name(), scheme, &host, port).is_ok() {
                            prop_assert!(outer.check_host(&name(), scheme, &host, port).is_ok());
                        }
                    }
                }
            }
            prop_assert!(inner.approval <= outer.approval && inner.write <= outer.write);
        }
    }
}

/// The pasted command must not bind the secret to other directories.
#[test]
fn a_directory_that_a_list_would_part_is_named_by_the_user() {
    let hint = |own: &str, here: &str| {
        let policy = Policy {
            dirs: Some(vec![own.into()]),
            ..Policy::default()
        };
        let name = SecretName::parse("TOKEN").unwrap();
        let used = policy.check_use(&name, "command", Path::new(here), Timestamp::UNIX_EPOCH);
        used.unwrap_err().hint
    };
    assert!(hint("/a", "/b c").contains("--dirs '/a,/b c'"));
    for (own, here) in [("/a", "/b,.."), ("/a,..", "/b"), ("/a", "/b\u{1b}[1m")] {
        let hint = hint(own, here);
        assert!(hint.contains("--dirs DIRECTORIES"), "{hint}");
    }
}
