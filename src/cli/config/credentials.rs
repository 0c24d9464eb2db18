//! Names of fields that hold credentials: a literal key in a field of a request is refused by its name.

/// Ends of names of credentials.
const ENDS: &[&str] = &[
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "jwt",
    "passphrase",
    "passwd",
    "password",
    "pwd",
    "secret",
];

/// Kinds of keys that are credentials. Others name something, such as `prompt_cache_key` and `sort_key`.
const KEYS: &[&str] = &[
    "access",
    "account",
    "api",
    "auth",
    "client",
    "encryption",
    "license",
    "master",
    "private",
    "secret",
    "service",
    "shared",
    "signing",
    "subscription",
    "virtual",
];

/// Kinds of tokens that are pieces of a text. All others are credentials.
const TEXT_TOKENS: &[&str] = &[
    "begin", "bos", "cls", "end", "eos", "fill", "first", "image", "last", "mask", "middle",
    "next", "pad", "prefix", "sep", "special", "start", "stop", "suffix", "think", "unk",
];

/// Returns true when a name ends like that of a credential. Words may be joined in any way: `api_key`, `API-Key`,
/// `apiKey`.
pub(in crate::cli) fn is_credential(name: &str) -> bool {
    let words = words(name);
    // Counts, such as `max_tokens`, are no credentials.
    let one = words
        .strip_suffix('s')
        .filter(|one| !one.ends_with("token"));
    let name = one.unwrap_or(&words);
    if let Some(kind) = name.strip_suffix("token") {
        let kind = kind.trim_end_matches('_').rsplit('_').next();
        return kind.is_none_or(|kind| !TEXT_TOKENS.contains(&kind));
    }
    if let Some(kind) = name.strip_suffix("key") {
        let kind = kind.trim_end_matches('_');
        return kind.is_empty() || KEYS.iter().any(|key| kind.ends_with(key));
    }
    ENDS.iter().any(|end| name.ends_with(end))
}

/// Returns a name in lower case, its words joined by `_`.
fn words(name: &str) -> String {
    let mut words = String::new();
    let mut was_lower = false;
    for sign in name.chars() {
        if was_lower && sign.is_uppercase() {
            words.push('_');
        }
        was_lower = sign.is_lowercase();
        match sign.is_alphanumeric() {
            true => words.extend(sign.to_lowercase()),
            false => words.push('_'),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_known_by_the_end_of_their_name() {
        for name in [
            "key",
            "api_key",
            "API-Key",
            "apiKey",
            "APIKey",
            "x-goog-api-key",
            "api keys",
            "token",
            "access_token",
            "authToken",
            "hf_token",
            "backend_token",
            "auth",
            "proxy_auth",
            "bearer",
            "Bearer",
            "X-Bearer",
            "Authorization",
            "password",
            "client_secret",
            "secrets",
            "credentials",
            "aws_secret_access_key",
            "master_key",
            "Cookie",
            "PASSWORD",
        ] {
            assert!(is_credential(name), "{name}");
        }
    }

    #[test]
    fn settings_of_a_request_are_no_credentials() {
        for name in [
            "max_tokens",
            "maxTokens",
            "max_completion_tokens",
            "token_limit",
            "tokens",
            "stop_token",
            "stopToken",
            "eos_token",
            "eostoken",
            "decoder_start_token",
            "stop_tokens",
            "prompt_cache_key",
            "sort_key",
            "monkey",
            "author",
            "authors",
            "key_format",
            "reasoning_effort",
            "user",
            "",
            "s",
            "_",
            "model",
            "keyboard",
        ] {
            assert!(!is_credential(name), "{name}");
        }
    }
}
