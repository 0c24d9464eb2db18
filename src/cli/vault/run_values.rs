//! Values given with a run: by descriptor and by the environment.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::RawFd;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use zeroize::Zeroizing;

use crate::cli::secret_lints;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::{SecretName, SecretValue};
use karyi_pty::inherited;
use karyi_vault::policy::Policy;
use karyi_vault::session::{Origin, Secrets};
use karyi_vault::store::age::{identity_bytes, passphrase_of, secret_lines};
use karyi_vault::store::env::PREFIX;
use karyi_vault::store::nul_pairs;

/// Inserts the given values into a session.
pub(super) fn insert_given(
    secrets: &Secrets,
    values: Vec<(SecretName, SecretValue)>,
) -> Result<(), ToolError> {
    let mut seen = BTreeSet::new();
    for (name, value) in values {
        if !seen.insert(name.clone()) {
            let message = format!("{name} has two values");
            return Err(ToolError::new(ErrorCode::BadArguments, message)
                .with_hint("pass one value per name"));
        }
        secrets.check_given(&name, &value)?;
        secret_lints::warn(&name, Some(&value), None);
        secrets.insert_with(name, value, Policy::unrestricted(), Origin::Given)?;
    }
    Ok(())
}

/// Variables `KARYI_VAR_NAME` this process was started with, without the prefix.
static GIVEN: Mutex<Vec<(String, SecretValue)>> = Mutex::new(Vec::new());

/// Removes the values from the environment, so that no other process finds them there. Must be called before a
/// second thread starts.
pub(in crate::cli) fn take_variables() {
    let mut taken = Vec::new();
    for (key, value) in std::env::vars_os() {
        if let Some(name) = key.to_str().and_then(|key| key.strip_prefix(PREFIX)) {
            // Values that are no text are refused later, like values that are too short.
            let value = SecretValue::new(value.into_string().unwrap_or_default());
            taken.push((name.to_owned(), value));
        }
    }
    if !taken.is_empty() {
        inherited::forget_variables(PREFIX);
        *GIVEN.lock().unwrap_or_else(PoisonError::into_inner) = taken;
    }
}

/// Returns true when there are such variables.
pub(super) fn has_given() -> bool {
    let given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    !given.is_empty()
}

/// Returns copies of their values.
pub(super) fn given() -> Result<Vec<(SecretName, SecretValue)>, ToolError> {
    let given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let copies = given
        .iter()
        .map(|(name, value)| (name.clone(), value.duplicate()));
    named(copies.collect())
}

/// Parses the names of values.
pub(super) fn named(
    pairs: Vec<(String, SecretValue)>,
) -> Result<Vec<(SecretName, SecretValue)>, ToolError> {
    let parse = |(name, value): (String, SecretValue)| {
        let parsed = super::name(&name)?;
        Ok((parsed, value))
    };
    pairs.into_iter().map(parse).collect()
}

/// Reads names and values from a descriptor.
pub(super) fn pairs_of(descriptor: RawFd) -> Result<Vec<(String, SecretValue)>, ToolError> {
    let most = limits::MAX_SECRETS_BYTES as u64 * 2;
    let bytes = read_descriptor(descriptor, most, "--vars-fd")?;
    nul_pairs::read(&bytes).map_err(|problem| {
        let message = format!(
            "expected pairs of NAME, NUL, VALUE, NUL on descriptor {descriptor}: {problem}"
        );
        ToolError::new(ErrorCode::BadArguments, message)
            .with_hint("write them with printf '%s\\0' NAME \"$VALUE\"")
    })
}

/// Result of reading the passphrase: the descriptor can be read only once.
static PASSPHRASE: OnceLock<Result<SecretValue, ToolError>> = OnceLock::new();

/// Returns the passphrase from a descriptor.
pub(super) fn passphrase(descriptor: RawFd) -> Result<SecretValue, ToolError> {
    let read = || {
        let most = limits::MAX_PASSPHRASE_BYTES as u64 + 2;
        let bytes = read_descriptor(descriptor, most, "--age-passphrase-fd")?;
        passphrase_of(&bytes)
    };
    match PASSPHRASE.get_or_init(read) {
        Ok(known) => Ok(known.duplicate()),
        Err(error) => Err(error.clone()),
    }
}

/// Masks the keys of the vault: the passphrase from a descriptor and the secret lines of an identity file. Errors
/// are reported where the keys are used.
pub(super) fn mask_keys(secrets: &Secrets, descriptor: Option<RawFd>, identity: Option<&Path>) {
    let given = descriptor.and_then(|descriptor| passphrase(descriptor).ok());
    let read = |path: &Path| identity_bytes(path).ok().flatten();
    let identity = identity.and_then(read).unwrap_or_default();
    let keys = secret_lines(&identity).into_iter();
    let all = given.map(|value| ("KARYI_PASSPHRASE", value)).into_iter();
    for (name, value) in all.chain(keys.map(|key| ("KARYI_IDENTITY", key))) {
        if let Some(name) = SecretName::parse(name) {
            // A text too short to be masked is no useful passphrase.
            let _ = secrets.mask_only(&name, value);
        }
    }
}

/// Reads everything from a descriptor.
fn read_descriptor(
    descriptor: RawFd,
    most: u64,
    flag: &str,
) -> Result<Zeroizing<Vec<u8>>, ToolError> {
    let read = inherited::take_descriptor(descriptor).and_then(|file| read_secretly(file, most));
    read.map_err(|error| {
        let message = format!("{flag} {descriptor}: {error}");
        ToolError::new(ErrorCode::BadArguments, message).with_hint(format!(
            "open the descriptor for karyi: {flag} {descriptor} {descriptor}< FILE"
        ))
    })
}

/// Reads a file or a pipe to its end, but not more than so many bytes, into a buffer that never grows: a
/// larger one would leave a copy behind that nobody clears. A file has the room that it needs.
pub(in crate::cli) fn read_secretly(file: File, most: u64) -> io::Result<Zeroizing<Vec<u8>>> {
    let found = file.metadata()?;
    // Some files of the system say that they hold nothing.
    let is_sized = found.is_file() && found.len() > 0;
    let size = if is_sized {
        found.len().min(most)
    } else {
        most
    };
    // A byte more, to see the end without growing.
    let room = usize::try_from(size).unwrap_or(0) + 1;
    let mut bytes = Zeroizing::new(Vec::with_capacity(room));
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
