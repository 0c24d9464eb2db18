//! Texts that many values share and that identify none: headers of keys and tokens, and common lines of configuration
//! files.

use std::ops::Range;

/// Shared texts.
const SHARED_TEXTS: &[&str] = &[
    "-----BEGIN ",
    "-----END ",
    " PRIVATE KEY-----",
    "https://",
    // A longer entry would leave too few characters beside it.
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
    // Keys on elliptic curves, and signatures of certificates.
    "MC4CAQAwBQYDK2VwBCIEI",
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg",
    "MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDA",
    "MA0GCSqGSIb3DQEBCwUA",
];

/// Headers of RSA keys, without the lengths in them.
const HEADS: [&str; 4] = [
    "IBADANBgkqhkiG9w0BAQEFAASC",
    "IBAAKCAQEA",
    "IBAAKCAgEA",
    "IBAAKCAYEA",
];
/// Number of characters of the lengths before them.
const LENGTHS: usize = 6;
/// End of the inner PKCS#8 header, and its offset from the end of the outer one.
const INNER_HEAD: (&str, usize) = ("AgEAAoI", 8);

/// Returns the ranges of a value that many values share.
pub(super) fn shared_ranges(value: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for shared in SHARED_TEXTS {
        let places = value.match_indices(shared);
        found.extend(places.map(|(at, _)| at..at + shared.len()));
    }
    for (at, head) in HEADS.iter().flat_map(|head| value.match_indices(head)) {
        let end = at + head.len();
        found.push(at.saturating_sub(LENGTHS)..end);
        let (inner, behind) = INNER_HEAD;
        let inner_end = end + behind + inner.len();
        if value.get(end + behind..inner_end) == Some(inner) {
            found.push(end..inner_end);
        }
    }
    found.extend(token_head(value));
    found
}

/// Returns the header of a signed token, and the start of its body.
fn token_head(value: &str) -> Option<Range<usize>> {
    const STARTS: [&str; 3] = ["eyJhbGciOi", "eyJ0eXAiOi", "eyJraWQiOi"];
    const BODY: &str = ".eyJ";
    let start = STARTS.iter().find_map(|start| value.find(start))?;
    let end = start + value.get(start..)?.find('.')? + BODY.len();
    let head = value.get(start..end)?.strip_suffix(BODY)?;
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    head.bytes().all(is_digit).then_some(start..end)
}
