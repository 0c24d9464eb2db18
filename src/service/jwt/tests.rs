//! Valid tokens, and each reason for which a token is refused.

use super::*;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::json;

const NOW: f64 = 1_800_000_000.0;
const SECRET: &[u8] = b"a secret of thirty-two bytes or more";

fn encode(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

fn claims() -> Value {
    json!({
        "iss": "issuer", "aud": "karyi", "sub": "orchestrator", "iat": NOW, "exp": NOW + 600.0,
        "tenants": ["yantian"], "sites": ["yantian-main"], "scope": "tools:list tools:call:npc"
    })
}

fn token(header: &Value, claims: &Value, sign: &dyn Fn(&[u8]) -> Vec<u8>) -> String {
    let signed = format!("{}.{}", encode(header), encode(claims));
    let signature = URL_SAFE_NO_PAD.encode(sign(signed.as_bytes()));
    format!("{signed}.{signature}")
}

fn by_secret(message: &[u8]) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET);
    hmac::sign(&key, message).as_ref().to_vec()
}

fn tokens(keys: &Value) -> TokenVerifier {
    let expected = ExpectedClaims {
        issuer: "issuer".into(),
        audience: "karyi".into(),
    };
    TokenVerifier::new(&json!({"keys": keys}).to_string(), expected).unwrap()
}

fn secret_keys() -> Value {
    json!([{"kty": "oct", "kid": "h", "k": URL_SAFE_NO_PAD.encode(SECRET)}])
}

#[test]
fn valid_tokens_of_every_algorithm_are_accepted() {
    let random = SystemRandom::new();
    let document = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
    let edwards = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
    let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
    let elliptic = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
    let point = elliptic.public_key().as_ref();
    let keys = json!([
        {"kty": "OKP", "crv": "Ed25519", "kid": "e", "x": URL_SAFE_NO_PAD.encode(edwards.public_key().as_ref())},
        {"kty": "EC", "crv": "P-256", "kid": "p", "alg": "ES256",
         "x": URL_SAFE_NO_PAD.encode(&point[1..33]), "y": URL_SAFE_NO_PAD.encode(&point[33..])},
        secret_keys()[0],
    ]);
    let tokens = tokens(&keys);
    let check = |header: Value, sign: &dyn Fn(&[u8]) -> Vec<u8>| {
        let found = tokens
            .verify(&token(&header, &claims(), sign), NOW)
            .unwrap();
        let is_bound = found.tenants.has("yantian")
            && !found.tenants.has("other")
            && found.sites.has("yantian-main");
        assert_eq!((found.id.as_str(), is_bound), ("jwt:orchestrator", true));
        assert!(found.has_scope("tools:call:npc") && !found.has_scope("content:draft:read"));
    };
    check(json!({"alg": "EdDSA", "kid": "e"}), &|m| {
        edwards.sign(m).as_ref().to_vec()
    });
    check(json!({"alg": "ES256", "kid": "p"}), &|m| {
        elliptic.sign(&random, m).unwrap().as_ref().to_vec()
    });
    check(
        json!({"alg": "HS256", "kid": "h", "typ": "JWT"}),
        &by_secret,
    );
}

/// The example of RFC 7515, appendix A.2: key and signature come from another implementation.
#[test]
fn the_rsa_example_of_the_standard_verifies() {
    let n = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yR\
        T-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEM\
        a2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb5\
        4h4FRWyuXpoQ";
    let signed = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    let signature = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9\
        CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12\
        jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
    let tokens = tokens(&json!([{"kty": "RSA", "n": n, "e": "AQAB"}]));
    let key = &tokens.keys[0];
    assert!(key.verifies(signed.as_bytes(), &decode_base64(signature).unwrap()));
    assert!(!key.verifies(b"something else", &decode_base64(signature).unwrap()));
    let error = tokens
        .verify(&format!("{signed}.{signature}"), NOW)
        .unwrap_err();
    assert_eq!(
        error,
        "expected the claims iss, aud, sub, exp and iat of their types"
    );
    // The public key as the secret of another algorithm.
    let confused = token(&json!({"alg": "HS256"}), &claims(), &|message| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &decode_base64(n).unwrap());
        hmac::sign(&key, message).as_ref().to_vec()
    });
    assert_eq!(
        tokens.verify(&confused, NOW).unwrap_err(),
        "no key has this kid and algorithm"
    );
}

#[test]
fn each_invalid_claim_is_refused() {
    let tokens = tokens(&secret_keys());
    let check = |change: &dyn Fn(&mut Value), expected: &str| {
        let mut claims = claims();
        change(&mut claims);
        let token = token(&json!({"alg": "HS256"}), &claims, &by_secret);
        assert_eq!(
            tokens
                .verify(&token, NOW)
                .map(drop)
                .err()
                .as_deref()
                .unwrap_or(""),
            expected,
            "{claims}"
        );
    };
    check(&|_| {}, "");
    check(&|c| c["exp"] = json!(NOW - 59.0), "");
    check(&|c| c["exp"] = json!(NOW - 61.0), "the token has expired");
    check(
        &|c| c["aud"] = json!("other"),
        "the token is for another audience",
    );
    check(&|c| c["aud"] = json!(["other", "karyi"]), "");
    check(
        &|c| c["iss"] = json!("other"),
        "the token is from another issuer",
    );
    check(
        &|c| c["nbf"] = json!(NOW + 61.0),
        "the token is not valid yet",
    );
    check(&|c| c["nbf"] = json!(NOW + 59.0), "");
    check(
        &|c| c["iat"] = json!(NOW + 61.0),
        "the token was issued in the future",
    );
    check(
        &|c| c["exp"] = json!(NOW + 901.0),
        "the token is valid for more than 15 minutes",
    );
    check(&|c| c["sub"] = json!(""), "the token has no valid subject");
    let missing = "expected the claims iss, aud, sub, exp and iat of their types";
    for name in ["exp", "iat", "iss", "aud", "sub"] {
        check(
            &|c| drop(c.as_object_mut().unwrap().shift_remove(name)),
            missing,
        );
    }
    check(&|c| c["exp"] = json!("soon"), missing);
}

#[test]
fn forged_tokens_are_refused() {
    let tokens = tokens(&secret_keys());
    let check = |token: &str, expected: &str| {
        assert_eq!(tokens.verify(token, NOW).unwrap_err(), expected, "{token}");
    };
    let good = token(&json!({"alg": "HS256", "kid": "h"}), &claims(), &by_secret);
    assert!(tokens.verify(&good, NOW).is_ok());
    let with = |header: Value| token(&header, &claims(), &by_secret);
    let nokey = "no key has this kid and algorithm";
    check(&with(json!({"alg": "none"})), nokey);
    check(&with(json!({"alg": "RS256"})), nokey);
    check(&with(json!({"alg": "hs256"})), nokey);
    check(&with(json!({"alg": "HS256", "kid": "x"})), nokey);
    check(&with(json!({})), nokey);
    check(
        &with(json!({"alg": "HS256", "crit": ["b64"]})),
        "the token requires an unsupported extension",
    );
    // Keys inside a token are ignored.
    let brought = json!({"alg": "HS256", "jwk": {"kty": "oct", "k": "AAAA"}, "jku": "https://x", "x5u": "https://x"});
    assert!(tokens.verify(&with(brought), NOW).is_ok());
    let unsigned = format!(
        "{}.{}.",
        encode(&json!({"alg": "HS256"})),
        encode(&claims())
    );
    check(&unsigned, "the signature does not match the key");
    let (signed, signature) = good.rsplit_once('.').unwrap();
    check(
        &format!("{signed}.{}", &signature[..40]),
        "the signature does not match the key",
    );
    check(
        &format!("{signed}A.{signature}"),
        "the signature does not match the key",
    );
    check("", "the token is not a JWT");
    check("a.b", "the token is not a JWT");
    check("a.b.c", "a part is not base64url");
    check(&"a".repeat(1 << 20), "the token is too long");
    let twice = format!(
        "{}.e30.",
        URL_SAFE_NO_PAD.encode(r#"{"alg":"none","alg":"HS256"}"#)
    );
    check(&twice, "a part is not JSON");
}

#[test]
fn unusable_keys_are_skipped() {
    let good = json!({"kty": "oct", "kid": "s", "k": URL_SAFE_NO_PAD.encode([7; 32])});
    let others = json!([
        {"kty": "EC", "kid": "p384", "crv": "P-384", "x": "AA", "y": "AA"},
        good,
        {"kty": "new", "kid": "n", "k": {"deep": 1}},
        {"kty": "RSA", "kid": "r", "alg": "RS512", "n": "AA", "e": "AQAB"},
        {"kid": "nothing"},
        "no key",
        {"kty": "OKP", "kid": "e", "use": "enc", "crv": "X25519", "x": "AA"},
    ]);
    let set = tokens(&others);
    let ids: Vec<_> = set.keys.iter().map(|key| key.id.as_deref()).collect();
    assert_eq!(ids, [Some("s")]);
    let no_members = "expected members of a key (RFC 7517) of their types";
    assert_eq!(
        set.skipped_keys(),
        [
            "key p384: expected Ed25519, P-256, RSA or a secret".to_owned(),
            format!("key n: {no_members}"),
            "key r: expected the algorithm RS256, found \"RS512\"".to_owned(),
            format!("key nothing: {no_members}"),
            format!("key without kid: {no_members}"),
        ]
    );
}

#[test]
fn a_set_without_usable_keys_is_refused() {
    let check = |keys: Value, expected: &str| {
        let expected_claims = ExpectedClaims {
            issuer: "i".into(),
            audience: "a".into(),
        };
        let error = TokenVerifier::new(&json!({"keys": keys}).to_string(), expected_claims)
            .err()
            .unwrap();
        assert_eq!(error, expected);
    };
    check(json!([]), "expected at least one key, found none");
    check(
        json!([{"kty": "oct", "kid": "s", "k": "c2hvcnQ"}]),
        "key s: expected a secret of at least 32 bytes",
    );
    check(
        json!([{"kty": "EC", "crv": "P-521"}]),
        "key without kid: expected Ed25519, P-256, RSA or a secret",
    );
    let named = json!([{"kty": "RSA", "kid": "r", "alg": "HS256", "n": "AA", "e": "AQAB"}]);
    check(
        named,
        "key r: expected the algorithm RS256, found \"HS256\"",
    );
}
