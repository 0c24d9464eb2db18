//! Key of the encrypted file: a passphrase, or an ssh or age identity.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use age::secrecy::{ExposeSecret, SecretString};
use age::{Decryptor, Encryptor, Identity, Recipient};
use zeroize::Zeroizing;

use crate::store::private_file;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::SecretValue;

/// Most bytes of an identity file.
const MAX_IDENTITY_BYTES: u64 = 1 << 20;

/// Provides the key at its first use: from a file, a descriptor or the user.
pub type GetKey = Arc<dyn Fn(KeyRequest) -> Result<AgeKey, ToolError> + Send + Sync>;

/// Reason for requesting the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyRequest {
    /// The file is about to be made.
    New,
    /// The file is to be opened.
    First,
    /// The last key did not open the file.
    Again,
}

/// Reads an identity file, which may be a link; `None` when there is none.
///
/// # Errors
/// `bad_vault` when it is too large or no regular file, or an error of the file system.
pub fn identity_bytes(path: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, ToolError> {
    private_file::read_named(path, MAX_IDENTITY_BYTES)
}

/// Returns true when a file is encrypted for an identity, which no passphrase opens.
pub(super) fn is_for_identity(bytes: &[u8]) -> bool {
    Decryptor::new_buffered(bytes).is_ok_and(|file| !file.is_scrypt())
}

/// Key that encrypts and decrypts the file.
pub struct AgeKey {
    material: KeyMaterial,
    /// True when a user typed it and may have mistyped it.
    is_typed: bool,
}

enum KeyMaterial {
    Passphrase {
        passphrase: SecretString,
        work: u8,
    },
    Identity {
        recipients: Vec<Box<dyn Recipient + Send + Sync>>,
        identities: Vec<Box<dyn Identity + Send + Sync>>,
    },
}

impl AgeKey {
    /// Makes the key of a passphrase.
    #[must_use]
    pub fn passphrase(passphrase: &SecretValue) -> Self {
        Self::with_work(passphrase, limits::PASSPHRASE_WORK)
    }

    /// Makes the key of a passphrase with a scrypt work factor of 2 to the power of `work`.
    #[must_use]
    pub fn with_work(passphrase: &SecretValue, work: u8) -> Self {
        Self {
            material: KeyMaterial::Passphrase {
                passphrase: passphrase.expose().to_owned().into(),
                work: work.clamp(1, limits::MAX_PASSPHRASE_WORK),
            },
            is_typed: false,
        }
    }

    /// Marks the key as typed by a user, who can try again.
    #[must_use]
    pub fn typed(self) -> Self {
        Self {
            is_typed: true,
            ..self
        }
    }

    /// Returns true when another attempt may open the file.
    pub(super) fn may_be_mistyped(&self, bytes: &[u8]) -> bool {
        self.is_typed && Decryptor::new_buffered(bytes).is_ok_and(|file| file.is_scrypt())
    }

    /// Reads the key from an identity file of ssh or age. `passphrase` opens an encrypted ssh key.
    ///
    /// # Errors
    /// `wrong_key` when the file contains no usable identity, or an error of the file system.
    pub fn identity(path: &Path, passphrase: Option<&SecretValue>) -> Result<Self, ToolError> {
        let bytes = identity_bytes(path)?.ok_or_else(|| {
            let message = format!("there is no identity file {}", path.display());
            ToolError::new(ErrorCode::WrongKey, message)
                .with_hint("restore it, or name another one with --age-identity FILE")
        })?;
        let material = match age::ssh::Identity::from_buffer(bytes.as_slice(), None) {
            Ok(identity) => of_ssh(identity, passphrase),
            Err(_) => of_age(&bytes),
        };
        let key = material.map(|material| Self {
            material,
            is_typed: false,
        });
        key.map_err(|problem| {
            let message = format!("the identity file {} {problem}", path.display());
            ToolError::new(ErrorCode::WrongKey, message).with_hint(
                "name an ssh private key (ed25519 or rsa) or an identity of age with --age-identity FILE, and give the \
                 passphrase of an ssh key that has one with --age-passphrase-fd N",
            )
        })
    }

    /// Returns true when its use takes much memory: 256 MB for a passphrase.
    pub(super) fn takes_memory(&self) -> bool {
        matches!(self.material, KeyMaterial::Passphrase { .. })
    }

    /// Returns the encryptor for the file.
    pub(super) fn encryptor(&self) -> io::Result<Encryptor> {
        match &self.material {
            KeyMaterial::Passphrase { passphrase, work } => {
                let mut recipient = age::scrypt::Recipient::new(passphrase.clone());
                recipient.set_work_factor(*work);
                let all = std::iter::once(&recipient as &dyn Recipient);
                Encryptor::with_recipients(all).map_err(io::Error::other)
            }
            KeyMaterial::Identity { recipients, .. } => {
                let all = recipients.iter().map(|one| &**one as &dyn Recipient);
                Encryptor::with_recipients(all).map_err(io::Error::other)
            }
        }
    }

    /// Decrypts the file.
    ///
    /// # Errors
    /// `wrong_key`, or `bad_vault` when it is no age file.
    pub(super) fn open<'a>(&self, bytes: &'a [u8]) -> Result<impl Read + use<'a>, ToolError> {
        let decryptor = Decryptor::new_buffered(bytes).map_err(|_| {
            ToolError::new(ErrorCode::BadVault, "the file is not encrypted with age")
        })?;
        let wrong = |message: &str| ToolError::new(ErrorCode::WrongKey, message);
        match (&self.material, decryptor.is_scrypt()) {
            (KeyMaterial::Passphrase { .. }, false) => Err(wrong(
                "it is encrypted for an identity, not with a passphrase",
            )
            .with_hint("name the identity with --age-identity FILE")),
            (KeyMaterial::Identity { .. }, true) => Err(wrong(
                "it is encrypted with a passphrase, not for an identity",
            )),
            (KeyMaterial::Passphrase { passphrase, .. }, true) => {
                let mut identity = age::scrypt::Identity::new(passphrase.clone());
                identity.set_max_work_factor(limits::MAX_PASSPHRASE_WORK);
                let all = std::iter::once(&identity as &dyn Identity);
                decryptor
                    .decrypt(all)
                    .map_err(|_| wrong("the passphrase does not open it"))
            }
            (KeyMaterial::Identity { identities, .. }, false) => {
                let all = identities.iter().map(|one| &**one as &dyn Identity);
                decryptor
                    .decrypt(all)
                    .map_err(|_| wrong("the identity does not open it"))
            }
        }
    }
}

fn of_ssh(
    identity: age::ssh::Identity,
    passphrase: Option<&SecretValue>,
) -> Result<KeyMaterial, &'static str> {
    if matches!(identity, age::ssh::Identity::Encrypted(_)) && passphrase.is_none() {
        return Err("has a passphrase, which was not given");
    }
    let recipient = age::ssh::Recipient::try_from(identity.clone())
        .map_err(|_| "is of a kind that cannot encrypt")?;
    let given = FixedPassphrase(passphrase.map(|text| text.expose().to_owned().into()));
    Ok(KeyMaterial::Identity {
        recipients: vec![Box::new(recipient)],
        identities: vec![Box::new(identity.with_callbacks(given))],
    })
}

fn of_age(bytes: &[u8]) -> Result<KeyMaterial, &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "is no text")?;
    let mut recipients: Vec<Box<dyn Recipient + Send + Sync>> = Vec::new();
    let mut identities: Vec<Box<dyn Identity + Send + Sync>> = Vec::new();
    for line in key_lines(text) {
        let identity = key_of(line).ok_or("holds something that is no identity of ssh or age")?;
        recipients.push(Box::new(identity.to_public()));
        identities.push(Box::new(identity));
    }
    if identities.is_empty() {
        return Err("holds no identity");
    }
    Ok(KeyMaterial::Identity {
        recipients,
        identities,
    })
}

/// Returns the key lines of an age identity file.
fn key_lines(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn key_of(line: &str) -> Option<age::x25519::Identity> {
    line.parse().ok()
}

/// Makes a new identity. Returns its public key and the identity itself.
///
/// # Errors
/// Never; a build without age refuses here.
pub fn new_identity() -> Result<(String, SecretValue), ToolError> {
    let identity = age::x25519::Identity::generate();
    let secret = identity.to_string().expose_secret().to_owned();
    Ok((identity.to_public().to_string(), SecretValue::new(secret)))
}

/// Returns the secrets of an identity file: the whole ssh private key, or the age keys, as written and in normal form.
#[must_use]
pub fn secret_lines(file: &[u8]) -> Vec<SecretValue> {
    let text = std::str::from_utf8(file).unwrap_or_default();
    let mut found = Vec::new();
    if text.contains("PRIVATE KEY") {
        found.push(SecretValue::new(text.to_owned()));
    }
    for line in key_lines(text) {
        if let Some(key) = key_of(line) {
            found.push(SecretValue::new(line.to_owned()));
            let usual = key.to_string();
            found.push(SecretValue::new(usual.expose_secret().to_owned()));
        }
    }
    found
}

/// Callbacks that supply a fixed passphrase and nothing else.
#[derive(Clone)]
struct FixedPassphrase(Option<SecretString>);

impl age::Callbacks for FixedPassphrase {
    fn display_message(&self, _: &str) {}

    fn confirm(&self, _: &str, _: &str, _: Option<&str>) -> Option<bool> {
        None
    }

    fn request_public_string(&self, _: &str) -> Option<String> {
        None
    }

    fn request_passphrase(&self, _: &str) -> Option<SecretString> {
        self.0.clone()
    }
}

/// Returns a passphrase without its final line break.
///
/// # Errors
/// `bad_value` when it is empty, too long, or not UTF-8.
pub fn passphrase_of(bytes: &[u8]) -> Result<SecretValue, ToolError> {
    let bad = |message: &str| ToolError::new(ErrorCode::BadValue, message);
    let text = std::str::from_utf8(bytes).map_err(|_| bad("the passphrase is not UTF-8"))?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() || text.len() > limits::MAX_PASSPHRASE_BYTES {
        return Err(bad("the passphrase is empty or too long").with_hint("give a passphrase"));
    }
    Ok(SecretValue::new(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_an_identity_file_is_found() {
        let (one, two) = (
            age::x25519::Identity::generate(),
            age::x25519::Identity::generate(),
        );
        let (one, two) = (one.to_string(), two.to_string());
        let (one, two) = (one.expose_secret(), two.expose_secret());
        let low = two.to_lowercase();
        let file = format!("# made today\n\n \t {one} \r\n{low}\n");
        let found = of_age(file.as_bytes()).map(|material| match material {
            KeyMaterial::Identity { identities, .. } => identities.len(),
            KeyMaterial::Passphrase { .. } => 0,
        });
        assert_eq!(found, Ok(2));
        let lines = secret_lines(file.as_bytes());
        let lines: Vec<&str> = lines.iter().map(SecretValue::expose).collect();
        assert_eq!(lines, [one, one, low.as_str(), two]);
        let ssh = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n";
        let lines = secret_lines(ssh.as_bytes());
        let lines: Vec<&str> = lines.iter().map(SecretValue::expose).collect();
        assert_eq!(lines, [ssh]);
    }
}
