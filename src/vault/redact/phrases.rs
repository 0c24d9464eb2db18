//! What many values share, so that it says nothing about one: schemes and hosts, the heads of keys and tokens, and
//! settings of connections.

use std::ops::Range;

/// Phrases.
const PHRASES: &[&str] = &[
    "-----BEGIN ",
    "-----END ",
    " PRIVATE KEY-----",
    "https://",
    "http://",
    "postgres://",
    "postgresql://",
    "mysql://",
    "mongodb+srv://",
    "mongodb://",
    "redis://",
    "amqp://",
    ".amazonaws.com",
    ".windows.net",
    "googleapis.com",
    "hooks.slack.com/services/",
    "api.telegram.org",
    "localhost",
    "127.0.0.1",
    // What files of settings begin with, and what stands before a token. A phrase that left few letters beside it would
    // make a secret of these.
    "apiVersion: v1\n",
    "kind: Config\n",
    "clusters:\n- cluster:\n",
    "    server: https://",
    "users:\n- name: ",
    "NODE_ENV=production\n",
    "NODE_ENV=development\n",
    "machine api.github.com login ",
    "machine github.com login ",
    "Authorization: Bearer ",
    "Authorization: Basic ",
    "Authorization: token ",
    "; Path=/",
    "; HttpOnly",
    "; Secure",
    "; SameSite=Lax",
    "; SameSite=Strict",
    "; SameSite=None",
    // OpenSSH keys, without a passphrase and with one, of either kind.
    "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAAB",
    "b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAAB",
    "AAAAMwAAAAtzc2gtZWQyNTUxOQAAAC",
    "AAABFwAAAAdzc2gtcnNhAAAAAwEAAQAAAQEA",
    "AAACFwAAAAdzc2gtcnNhAAAAAwEAAQAAAgEA",
    "AAABlwAAAAdzc2gtcnNhAAAAAwEAAQAAAYEA",
    // Keys on elliptic curves.
    "MC4CAQAwBQYDK2VwBCIEI",
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg",
    "MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDA",
    // Signatures of certificates.
    "MA0GCSqGSIb3DQEBCwUA",
];

/// Heads of keys of RSA, without the lengths in them, and how many characters of those stand before.
const HEADS: &[(&str, usize)] = &[
    ("IBADANBgkqhkiG9w0BAQEFAASC", 6),
    ("IBAAKCAQEA", 6),
    ("IBAAKCAgEA", 6),
    ("IBAAKCAYEA", 6),
];

/// What the inner head of a key of the first kind ends with, and how far behind the outer one.
const INNER_HEAD: (&str, usize) = ("AgEAAoI", 8);

/// What a token begins with that says how it is signed, and the part behind it.
const TOKEN_STARTS: &[&str] = &["eyJhbGciOi", "eyJ0eXAiOi", "eyJraWQiOi"];
const TOKEN_BODY: &str = "eyJ";

/// Kinds of JSON with which programs log in to a cloud.
pub(super) const ACCOUNTS: &[&str] = &[
    "service_account",
    "authorized_user",
    "external_account",
    "impersonated_service_account",
];

/// What such JSON says that everybody may know.
pub(super) const PUBLIC_KEYS: &[&str] = &[
    "type",
    "project_id",
    "quota_project_id",
    "client_email",
    "auth_uri",
    "token_uri",
    "token_url",
    "subject_token_type",
    "auth_provider_x509_cert_url",
    "client_x509_cert_url",
    "universe_domain",
];

/// Settings of a connection whose words are known.
const SETTINGS: &[(&str, &[&str])] = &[
    ("retrywrites", &["true", "false"]),
    ("retryreads", &["true", "false"]),
    ("w", &["majority"]),
    ("ssl", &["true", "false", "require"]),
    ("tls", &["true", "false"]),
    ("usessl", &["true", "false"]),
    ("encrypt", &["true", "false", "strict"]),
    ("trustservercertificate", &["true", "false"]),
    ("directconnection", &["true", "false"]),
    (
        "sslmode",
        &[
            "disable",
            "allow",
            "prefer",
            "require",
            "verify-ca",
            "verify-full",
        ],
    ),
    ("channel_binding", &["disable", "prefer", "require"]),
    ("authsource", &["admin"]),
    (
        "readpreference",
        &[
            "primary",
            "secondary",
            "nearest",
            "primaryPreferred",
            "secondaryPreferred",
        ],
    ),
    ("charset", &["utf8", "utf8mb4", "UTF-8"]),
    (
        "target_session_attrs",
        &["read-write", "read-only", "primary", "standby"],
    ),
];

/// Whether a setting of a connection says only what many do.
pub(super) fn is_setting(key: &str, value: &str) -> bool {
    let known = SETTINGS
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(key));
    known.is_some_and(|(_, words)| words.contains(&value))
}

/// Returns the parts of a value that many others have as well.
pub(super) fn parts(value: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for phrase in PHRASES {
        let places = value.match_indices(phrase);
        found.extend(places.map(|(at, _)| at..at + phrase.len()));
    }
    for (head, before) in HEADS {
        for (at, _) in value.match_indices(head) {
            let end = at + head.len();
            found.push(at.saturating_sub(*before)..end);
            let (inner, behind) = INNER_HEAD;
            let inner_end = end + behind + inner.len();
            if value.get(end + behind..inner_end) == Some(inner) {
                found.push(end..inner_end);
            }
        }
    }
    for start in TOKEN_STARTS {
        found.extend(value.match_indices(start).filter_map(|(at, _)| {
            let (head, rest) = value.get(at..)?.split_once('.')?;
            let is_head = head
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
            let end = at + head.len() + ".".len() + TOKEN_BODY.len();
            (is_head && rest.starts_with(TOKEN_BODY)).then_some(at..end)
        }));
    }
    found
}
