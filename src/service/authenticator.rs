//! Identifies callers by internal key or token.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use ring::{digest, hmac};
use serde::Deserialize;

use crate::service::jwt::TokenVerifier;
use crate::service::principal::{NameSet, Principal, Proof};
use crate::service::rejection::Rejection;
use karyi_core::ids;
use karyi_core::limits;

/// Credential of a caller.
#[derive(Clone, Default)]
pub struct Credential {
    /// Internal key.
    pub key: Option<String>,
    /// Token after `Bearer`.
    pub token: Option<String>,
}

/// Internal key with the scopes of its holder.
struct InternalKey {
    /// MAC of the key, so that comparing takes constant time.
    tag: hmac::Tag,
    principal: Arc<Principal>,
}

/// Entry of a key file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyEntry {
    id: String,
    key: String,
    tenants: Vec<String>,
    sites: Vec<String>,
    scopes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    keys: Vec<KeyEntry>,
}

/// All configured internal keys.
pub struct InternalKeys {
    mac_key: hmac::Key,
    keys: Vec<InternalKey>,
}

impl InternalKeys {
    /// Reads a key file: one key with all scopes, or JSON with several restricted keys.
    ///
    /// # Errors
    /// The file has the wrong format, or a key is too short.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let raw = match text.starts_with('{') {
            true => {
                serde_json::from_str::<KeyFile>(text)
                    .map_err(|error| error.to_string())?
                    .keys
            }
            false => vec![unrestricted_key(text)],
        };
        for (place, key) in raw.iter().enumerate() {
            let others = raw.iter().take(place);
            if others.clone().any(|other| other.id == key.id) {
                return Err(format!("key {}: two keys have this id", key.id));
            }
            if let Some(other) = others.clone().find(|other| other.key == key.key) {
                let (one, two) = (&other.id, &key.id);
                return Err(format!("keys {one} and {two} are the same key"));
            }
        }
        let secret = ids::random::<32>().map_err(|error| error.to_string())?;
        let mac_key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let keys = raw.into_iter().map(|raw| internal_key(&mac_key, raw));
        let keys: Vec<InternalKey> = keys.collect::<Result<_, _>>()?;
        match keys.is_empty() {
            true => Err("expected at least one key, found none".into()),
            false => Ok(Self { mac_key, keys }),
        }
    }

    fn find(&self, candidate: &str) -> Option<Arc<Principal>> {
        // Hashing first hides the length of the key from timing.
        let hash = digest::digest(&digest::SHA256, candidate.as_bytes());
        let mut found = None;
        for key in &self.keys {
            if hmac::verify(&self.mac_key, hash.as_ref(), key.tag.as_ref()).is_ok() {
                found = Some(Arc::clone(&key.principal));
            }
        }
        found
    }
}

fn unrestricted_key(key: &str) -> KeyEntry {
    let all = || vec!["*".to_owned()];
    KeyEntry {
        id: "internal".into(),
        key: key.into(),
        tenants: all(),
        sites: all(),
        scopes: all(),
    }
}

fn internal_key(mac_key: &hmac::Key, raw: KeyEntry) -> Result<InternalKey, String> {
    let is_default = raw.key.starts_with("your-internal-api-key");
    if is_default || raw.key.len() < limits::MIN_INTERNAL_KEY_BYTES {
        return Err(format!(
            "key {}: expected at least {} random characters, for example from `openssl rand -hex 32`",
            raw.id,
            limits::MIN_INTERNAL_KEY_BYTES
        ));
    }
    let hash = digest::digest(&digest::SHA256, raw.key.as_bytes());
    Ok(InternalKey {
        tag: hmac::sign(mac_key, hash.as_ref()),
        principal: Arc::new(Principal {
            id: format!("key:{}", raw.id),
            proof: Proof::Authenticated,
            tenants: NameSet::of(raw.tenants),
            sites: NameSet::of(raw.sites),
            scopes: NameSet::of(raw.scopes),
        }),
    })
}

/// Checks credentials.
pub struct Authenticator {
    /// Principal of every caller when no key is configured.
    local: Arc<Principal>,
    keys: Option<InternalKeys>,
    tokens: Option<RwLock<Arc<TokenVerifier>>>,
}

impl Default for Authenticator {
    fn default() -> Self {
        Self::new(None, None)
    }
}

impl Authenticator {
    /// Creates an authenticator; without keys and tokens every caller is `local`.
    #[must_use]
    pub fn new(keys: Option<InternalKeys>, tokens: Option<TokenVerifier>) -> Self {
        Self {
            local: Arc::new(Principal::local()),
            keys,
            tokens: tokens.map(|tokens| RwLock::new(Arc::new(tokens))),
        }
    }

    /// Tells whether callers must authenticate.
    #[must_use]
    pub fn requires_credentials(&self) -> bool {
        self.keys.is_some() || self.tokens.is_some()
    }

    /// Replaces the keys for tokens.
    pub fn replace_tokens(&self, tokens: TokenVerifier) {
        if let Some(current) = &self.tokens {
            *current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tokens);
        }
    }

    /// Returns the reason for every skipped token key.
    #[must_use]
    pub fn skipped_keys(&self) -> Vec<String> {
        let tokens = self.tokens.iter();
        let skipped_keys = tokens.flat_map(|tokens| {
            let tokens = tokens.read().unwrap_or_else(PoisonError::into_inner);
            tokens.skipped_keys().to_vec()
        });
        skipped_keys.collect()
    }

    /// Returns the principal of a credential.
    ///
    /// # Errors
    /// The credential is missing or not valid.
    pub fn identify(&self, credential: &Credential) -> Result<Arc<Principal>, Rejection> {
        if !self.requires_credentials() {
            return Ok(Arc::clone(&self.local));
        }
        let (key, token) = (&credential.key, &credential.token);
        match (key, token, &self.keys, &self.tokens) {
            (Some(_), Some(_), ..) => {
                Err(Rejection::unauthorized("send a token or a key, not both"))
            }
            (None, Some(token), _, Some(tokens)) => {
                let tokens = Arc::clone(&tokens.read().unwrap_or_else(PoisonError::into_inner));
                let now = SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default();
                let found = tokens.verify(token, now.as_secs_f64());
                found.map(Arc::new).map_err(Rejection::unauthorized)
            }
            (Some(key), None, Some(keys), _) => {
                let found = keys.find(key);
                found.ok_or_else(|| Rejection::unauthorized("Invalid internal API key"))
            }
            _ => Err(Rejection::unauthorized(
                "expected a token in Authorization or a key in X-Internal-API-Key",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef";

    fn key(text: &str) -> Credential {
        Credential {
            key: Some(text.into()),
            token: None,
        }
    }

    #[test]
    fn without_keys_every_caller_is_local() {
        let authenticator = Authenticator::default();
        let found = authenticator.identify(&key("anything")).unwrap();
        assert_eq!(*found, Principal::local());
        assert!(found.has_scope("tools:call:content") && !found.has_scope("content:draft:read"));
    }

    #[test]
    fn a_wrong_key_is_refused() {
        let authenticator = Authenticator::new(Some(InternalKeys::parse(KEY).unwrap()), None);
        assert_eq!(
            authenticator.identify(&key(KEY)).unwrap().id,
            "key:internal"
        );
        let refused =
            |credential: &Credential| authenticator.identify(credential).unwrap_err().detail;
        assert_eq!(refused(&key(&KEY[1..])), "Invalid internal API key");
        assert_eq!(refused(&key("")), "Invalid internal API key");
        let nothing = "expected a token in Authorization or a key in X-Internal-API-Key";
        assert_eq!(refused(&Credential::default()), nothing);
        let token = Credential {
            key: None,
            token: Some("x".into()),
        };
        assert_eq!(refused(&token), nothing);
        let both = Credential {
            key: Some(KEY.into()),
            token: Some("x".into()),
        };
        assert_eq!(refused(&both), "send a token or a key, not both");
    }

    #[test]
    fn keys_are_restricted_as_the_file_says() {
        let file = format!(
            r#"{{"keys": [{{"id": "a", "key": "{KEY}", "tenants": ["t"], "sites": ["*"], "scopes": ["tools:list"]}}]}}"#
        );
        let authenticator = Authenticator::new(Some(InternalKeys::parse(&file).unwrap()), None);
        let found = authenticator.identify(&key(KEY)).unwrap();
        assert!(found.tenants.has("t") && !found.tenants.has("u") && found.sites.has("any"));
        assert!(found.has_scope("tools:list") && !found.has_scope("tools:call:npc"));
    }

    #[test]
    fn ids_and_keys_are_unique() {
        let check = |two: (&str, &str), expected: &str| {
            let entry = |(id, key): (&str, &str)| serde_json::json!({"id": id, "key": key, "tenants": [], "sites": [], "scopes": []});
            let file = serde_json::json!({"keys": [entry(("a", KEY)), entry(two)]});
            let result = InternalKeys::parse(&file.to_string()).map(drop);
            assert_eq!(result.err().unwrap_or_default(), expected);
        };
        let other = "fedcba9876543210fedcba9876543210";
        check(("b", other), "");
        check(("a", other), "key a: two keys have this id");
        check(("b", KEY), "keys a and b are the same key");
    }

    #[test]
    fn short_keys_are_refused() {
        for text in [
            "",
            "short",
            "your-internal-api-key",
            "{}",
            r#"{"keys": []}"#,
        ] {
            assert!(InternalKeys::parse(text).is_err(), "{text}");
        }
    }
}
