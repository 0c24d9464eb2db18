//! Verifies JSON Web Tokens (RFC 7519) as RFC 8725 asks.
//!
//! The key decides the algorithm, never the token: a token whose header names another algorithm is
//! refused, and headers that contain or reference a key are ignored. ring checks the signatures;
//! nothing here signs.

use std::collections::BTreeSet;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::{hmac, signature};
use serde::Deserialize;
use serde_json::Value;

use crate::service::principal::{NameSet, Principal, Proof};
use crate::tool::json_text;
use karyi_core::limits;

/// Claims that every token must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectedClaims {
    /// Issuer (`iss`).
    pub issuer: String,
    /// Audience (`aud`).
    pub audience: String,
}

/// Keys of the issuer, and the claims its tokens must have.
pub struct TokenVerifier {
    keys: Vec<VerificationKey>,
    /// Reasons why keys of the set were skipped.
    skipped_keys: Vec<String>,
    expected: ExpectedClaims,
}

/// One public or shared key.
struct VerificationKey {
    id: Option<String>,
    algorithm: &'static str,
    material: KeyMaterial,
}

enum KeyMaterial {
    Ed25519(Vec<u8>),
    P256(Vec<u8>),
    Rsa { n: Vec<u8>, e: Vec<u8> },
    Secret(hmac::Key),
}

#[derive(Deserialize)]
struct JwkSet {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
    n: Option<String>,
    e: Option<String>,
    k: Option<String>,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    aud: Audience,
    sub: String,
    exp: f64,
    iat: f64,
    nbf: Option<f64>,
    #[serde(default)]
    tenants: BTreeSet<String>,
    #[serde(default)]
    sites: BTreeSet<String>,
    #[serde(default)]
    scope: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl TokenVerifier {
    /// Reads the keys of a JWKS document and skips those it cannot use (RFC 7517, section 5). If
    /// one bad key failed the whole set, revoked keys would stay in force.
    ///
    /// # Errors
    /// The document is no key set, or has no usable key.
    pub fn new(jwks: &str, expected: ExpectedClaims) -> Result<Self, String> {
        let set: JwkSet = serde_json::from_str(jwks).map_err(|error| error.to_string())?;
        let (mut keys, mut skipped_keys) = (Vec::new(), Vec::new());
        let purpose = |key: &Value| key.get("use")?.as_str().map(|purpose| purpose == "sig");
        let for_signatures = |key: &Value| purpose(key).unwrap_or(true);
        for raw in set.keys.into_iter().filter(for_signatures) {
            match parse_key(raw) {
                Ok(key) => keys.push(key),
                Err(problem) => skipped_keys.push(problem),
            }
        }
        match (keys.is_empty(), skipped_keys.is_empty()) {
            (true, true) => Err("expected at least one key, found none".into()),
            (true, false) => Err(skipped_keys.join("; ")),
            (false, _) => Ok(Self {
                keys,
                skipped_keys,
                expected,
            }),
        }
    }

    /// Returns the reason for every skipped key.
    #[must_use]
    pub fn skipped_keys(&self) -> &[String] {
        &self.skipped_keys
    }

    /// Returns the principal of a token, at `now` in seconds since 1970.
    ///
    /// # Errors
    /// The token is not valid; the message never repeats it.
    pub fn verify(&self, token: &str, now: f64) -> Result<Principal, String> {
        if token.len() > limits::MAX_TOKEN_BYTES {
            return Err("the token is too long".into());
        }
        let (signed, signature) = token.rsplit_once('.').ok_or("the token is not a JWT")?;
        let (header, claims) = signed.split_once('.').ok_or("the token is not a JWT")?;
        let key = self.key_for(&decode_json(header)?)?;
        if !key.verifies(signed.as_bytes(), &decode_base64(signature)?) {
            return Err("the signature does not match the key".into());
        }
        let claims = serde_json::from_value(decode_json(claims)?)
            .map_err(|_| "expected the claims iss, aud, sub, exp and iat of their types")?;
        self.principal(claims, now)
    }

    fn key_for(&self, header: &Value) -> Result<&VerificationKey, String> {
        if header.get("crit").is_some() {
            return Err("the token requires an unsupported extension".into());
        }
        let algorithm = header
            .get("alg")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let key = match (
            header.get("kid").and_then(Value::as_str),
            self.keys.as_slice(),
        ) {
            (Some(id), keys) => keys.iter().find(|key| key.id.as_deref() == Some(id)),
            (None, [only]) => Some(only),
            (None, _) => None,
        };
        key.filter(|key| key.algorithm == algorithm)
            .ok_or_else(|| "no key has this kid and algorithm".into())
    }

    fn principal(&self, claims: Claims, now: f64) -> Result<Principal, String> {
        let leeway = limits::TOKEN_LEEWAY.as_secs_f64();
        let is_for_us = match &claims.aud {
            Audience::One(name) => *name == self.expected.audience,
            Audience::Several(names) => names.contains(&self.expected.audience),
        };
        let rules = [
            (
                claims.iss == self.expected.issuer,
                "the token is from another issuer",
            ),
            (is_for_us, "the token is for another audience"),
            (claims.exp + leeway > now, "the token has expired"),
            (
                claims.iat - leeway <= now,
                "the token was issued in the future",
            ),
            (
                claims.nbf.is_none_or(|from| from - leeway <= now),
                "the token is not valid yet",
            ),
            (
                claims.exp - claims.iat <= limits::MAX_TOKEN_LIFE.as_secs_f64(),
                "the token is valid for more than 15 minutes",
            ),
            (
                !claims.sub.is_empty() && claims.sub.len() <= limits::MAX_ID_CHARS,
                "the token has no valid subject",
            ),
        ];
        if let Some((_, problem)) = rules.into_iter().find(|(holds, _)| !holds) {
            return Err(problem.into());
        }
        let scopes = claims.scope.split_ascii_whitespace();
        Ok(Principal {
            id: format!("jwt:{}", claims.sub),
            proof: Proof::Authenticated,
            tenants: NameSet::Only(Arc::new(claims.tenants)),
            sites: NameSet::Only(Arc::new(claims.sites)),
            scopes: NameSet::Only(Arc::new(scopes.map(str::to_owned).collect())),
        })
    }
}

impl VerificationKey {
    fn verifies(&self, message: &[u8], signature_bytes: &[u8]) -> bool {
        let check = |algorithm: &'static dyn signature::VerificationAlgorithm, key: &[u8]| {
            signature::UnparsedPublicKey::new(algorithm, key)
                .verify(message, signature_bytes)
                .is_ok()
        };
        match &self.material {
            KeyMaterial::Ed25519(key) => check(&signature::ED25519, key),
            KeyMaterial::P256(key) => check(&signature::ECDSA_P256_SHA256_FIXED, key),
            KeyMaterial::Rsa { n, e } => signature::RsaPublicKeyComponents { n, e }
                .verify(
                    &signature::RSA_PKCS1_2048_8192_SHA256,
                    message,
                    signature_bytes,
                )
                .is_ok(),
            KeyMaterial::Secret(key) => hmac::verify(key, message, signature_bytes).is_ok(),
        }
    }
}

fn parse_key(raw: Value) -> Result<VerificationKey, String> {
    let name = raw.get("kid").and_then(Value::as_str);
    let name = name.unwrap_or("without kid").to_owned();
    let problem = |what: &str| format!("key {name}: {what}");
    let raw: Jwk = serde_json::from_value(raw)
        .map_err(|_| problem("expected members of a key (RFC 7517) of their types"))?;
    let part = |text: &Option<String>, what: &str| {
        let text = text
            .as_deref()
            .ok_or_else(|| problem(&format!("expected {what}")))?;
        decode_base64(text).map_err(|error| problem(&format!("{what}: {error}")))
    };
    let (algorithm, material) = match (raw.kty.as_str(), raw.crv.as_deref()) {
        ("OKP", Some("Ed25519")) => ("EdDSA", KeyMaterial::Ed25519(part(&raw.x, "x")?)),
        ("EC", Some("P-256")) => {
            let point = [vec![4], part(&raw.x, "x")?, part(&raw.y, "y")?].concat();
            ("ES256", KeyMaterial::P256(point))
        }
        ("RSA", _) => {
            let material = KeyMaterial::Rsa {
                n: part(&raw.n, "n")?,
                e: part(&raw.e, "e")?,
            };
            ("RS256", material)
        }
        ("oct", _) => {
            let secret = part(&raw.k, "k")?;
            if secret.len() < limits::MIN_TOKEN_SECRET_BYTES {
                return Err(problem("expected a secret of at least 32 bytes"));
            }
            (
                "HS256",
                KeyMaterial::Secret(hmac::Key::new(hmac::HMAC_SHA256, &secret)),
            )
        }
        _ => return Err(problem("expected Ed25519, P-256, RSA or a secret")),
    };
    match raw.alg.as_deref() {
        Some(named) if named != algorithm => Err(problem(&format!(
            "expected the algorithm {algorithm}, found {named:?}"
        ))),
        _ => Ok(VerificationKey {
            id: raw.kid,
            algorithm,
            material,
        }),
    }
}

fn decode_base64(text: &str) -> Result<Vec<u8>, String> {
    URL_SAFE_NO_PAD
        .decode(text)
        .map_err(|_| "a part is not base64url".into())
}

/// Decodes a part of a token; duplicate keys are an error.
fn decode_json(part: &str) -> Result<Value, String> {
    let text = String::from_utf8(decode_base64(part)?).map_err(|_| "a part is not text")?;
    json_text::parse(&text).map_err(|_| "a part is not JSON".into())
}

#[cfg(test)]
#[path = "jwt/tests.rs"]
mod tests;
