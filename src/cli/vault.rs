//! Selects and opens the store of secrets: the only part that reads flags, variables, descriptors and the
//! terminal for it.

mod identity;
mod location;
mod run_values;
mod saver;

pub(super) use location::{VaultLocation, keyring, unopened};
pub(super) use run_values::{read_secretly, take_variables};

use std::collections::BTreeSet;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use jiff::Timestamp;

use crate::cli::prompt::Asker;
use crate::cli::{say, state_dir};
use crate::exec::resolve::unreadable;
use crate::tool::context::SecretSaver;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::SecretName;
use karyi_pty::{guard, inherited};
use karyi_vault::index::Index;
use karyi_vault::session::{LoadIssue, LoadIssueKind, Need, Secrets, Source};
use karyi_vault::store::Kind;
use karyi_vault::store::env::PREFIX;
use karyi_vault::store::journal_key::JournalKey;
use karyi_vault::sync::{OtherStores, StoreSync};

use run_values::{given, has_given, insert_given, named, pairs_of, passphrase};
use saver::StoreSaver;

/// Name of the encrypted file in karyi's data directory.
pub(super) const AGE_FILE: &str = "vault.age";

/// The store and its keys.
#[derive(Debug, Clone, Args, Default)]
pub(super) struct VaultFlags {
    /// Store of the secrets: auto is the store chosen at the first `karyi var set`, by default the keyring;
    /// before that nothing is stored
    #[arg(long, value_name = "STORE", value_parser = store_names(), default_value = "auto", global = true)]
    pub(super) vault: StoreName,
    /// Identity file of the store age: an ssh private key (ed25519 or rsa) or an age key
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, global = true)]
    pub(super) age_identity: Option<PathBuf>,
    /// Read the passphrase of the store age from this descriptor
    #[arg(long, value_name = "N", global = true)]
    pub(super) age_passphrase_fd: Option<RawFd>,
}

/// A store named on the command line; `None` is the one chosen at the first `karyi var set`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct StoreName(pub(super) Option<Kind>);

/// Names of the persistent stores.
pub(super) const LASTING: &[(&str, &str)] = &[
    ("os", "The keyring of the system"),
    ("age", "A file encrypted with age"),
];

fn store_names() -> impl TypedValueParser<Value = StoreName> {
    let auto = (
        "auto",
        "The store chosen at the first `karyi var set`, else memory",
    );
    let env = ("env", "Variables KARYI_VAR_NAME that karyi is started with");
    let others = [("memory", "Nothing is stored"), env];
    let all = std::iter::once(&auto).chain(LASTING).chain(&others);
    let all: Vec<_> = all
        .map(|(name, help)| PossibleValue::new(*name).help(*help))
        .collect();
    PossibleValuesParser::new(all).map(|name| StoreName(serde_json::from_value(name.into()).ok()))
}

/// Values given for one run, and requirements on the store.
#[derive(Debug, Clone, Args, Default)]
pub(super) struct GivenArgs {
    /// Run nothing when the store with the secrets cannot be read
    #[arg(long)]
    pub(super) require_vault: bool,
    /// Read secrets for this run from this descriptor: NAME, NUL, VALUE, NUL, and so on
    #[arg(long, value_name = "N")]
    pub(super) vars_fd: Option<RawFd>,
    /// Accept values of 4 to 7 bytes for this run, which are masked as whole words only
    #[arg(long)]
    pub(super) allow_short: bool,
    /// True when values in an unused store are no error.
    #[arg(skip)]
    is_one_store_enough: bool,
}

impl VaultFlags {
    /// Refuses flags with invalid contents, whether the store is needed or not.
    ///
    /// # Errors
    /// The descriptor has no passphrase.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        self.age_passphrase_fd
            .map_or(Ok(()), |descriptor| passphrase(descriptor).map(drop))
    }
}

impl GivenArgs {
    /// Requires a readable store and gives no values.
    #[cfg(feature = "serve")]
    pub(super) fn store() -> Self {
        Self {
            require_vault: true,
            is_one_store_enough: true,
            ..Self::default()
        }
    }

    /// Returns the error of a session that lacks a required store.
    fn missing(&self, secrets: &Secrets) -> Option<ToolError> {
        let is_enough =
            |lack: &LoadIssue| lack.kind == LoadIssueKind::Elsewhere && self.is_one_store_enough;
        let mut lacks = secrets.load_issues().into_iter();
        lacks.find(|lack| !is_enough(lack)).map(|lack| lack.error)
    }
}

/// Parts of the store that a run uses besides the values.
#[derive(Default)]
pub(super) struct OpenedStore {
    /// Saves values that the user enters, when there is a store for them.
    pub(super) saver: Option<Arc<dyn SecretSaver>>,
    /// Key of the undo journal, when the store was opened and could be read.
    pub(super) journal_key: Option<JournalKey>,
}

/// Gives a session its initial values and access to stored ones. Returns the other parts of the store.
///
/// # Errors
/// Given values that cannot be used; with `require`, a store that cannot be read.
pub(super) fn prepare(
    secrets: &Secrets,
    flags: &VaultFlags,
    asker: Option<Asker>,
    wanted: &GivenArgs,
) -> Result<OpenedStore, ToolError> {
    if wanted.allow_short {
        secrets.accept_short();
    }
    if let Some(descriptor) = wanted.vars_fd {
        insert_given(secrets, named(pairs_of(descriptor)?)?)?;
    }
    flags.check()?;
    match flags.vault.0 {
        Some(Kind::Env) => insert_given(secrets, given()?)?,
        _ if has_given() => say(&format!(
            "variables {PREFIX}NAME are set and not used; --vault env uses them"
        )),
        _ => {}
    }
    let attached = attach(secrets, flags, asker);
    if wanted.require_vault {
        let saver = attached?;
        return match wanted.missing(secrets) {
            None => Ok(opened(secrets, saver)),
            Some(failure) => Err(unreadable(failure)),
        };
    }
    match attached {
        Ok(saver) => Ok(opened(secrets, saver)),
        // The outer session knows the values; programs in it must not get at them.
        Err(error) if error.code == ErrorCode::InsideSession => Ok(OpenedStore::default()),
        // Data behind a dangling link is neither known nor masked.
        Err(error) if error.code == ErrorCode::VaultUnavailable => Err(error),
        // A user without a vault directory has no stored secrets.
        Err(_) if flags.vault.0.is_none() => Ok(OpenedStore::default()),
        Err(error) => Err(error),
    }
}

fn opened(secrets: &Secrets, saver: Option<StoreSaver>) -> OpenedStore {
    let readable = saver
        .as_ref()
        .filter(|_| secrets.source_failure().is_none());
    // Without a key, contents with a value are not stored for undo, and the result says so.
    let journal_key = readable.and_then(|saver| saver.loader().journal_key().ok().flatten());
    OpenedStore {
        saver: saver.map(|saver| Arc::new(saver) as Arc<dyn SecretSaver>),
        journal_key,
    }
}

/// Opens the store for a command that shows journal contents: returns its values, which must be masked, and the key.
/// Creates and stores nothing.
///
/// # Errors
/// With `is_needed`, the error of a store that cannot be opened or read; otherwise the secrets record it.
pub(super) fn open_to_show(
    flags: &VaultFlags,
    asker: Option<Asker>,
    is_needed: bool,
) -> Result<(Secrets, Option<JournalKey>), ToolError> {
    let secrets = Secrets::default();
    secrets.protect_memory_with(guard::protect);
    // The values are only used to mask them.
    secrets.accept_short();
    if flags.vault.0 == Some(Kind::Env) {
        insert_given(&secrets, given()?)?;
    }
    let saver = match attach(&secrets, flags, asker) {
        Ok(saver) => saver,
        Err(error) if is_needed => return Err(error),
        // The outer session masks; a user without a vault directory has no secrets.
        Err(_) => None,
    };
    if is_needed && secrets.source_failure().is_none() {
        secrets.refresh(Need::Used);
    }
    let key = match secrets.source_failure() {
        Some(failure) if is_needed => return Err(failure),
        Some(_) => None,
        None => saver.map(|saver| saver.loader().stored_journal_key()),
    };
    Ok((secrets, key.transpose()?.flatten()))
}

/// Attaches the store as the source of a session's values and loads them.
fn attach(
    secrets: &Secrets,
    flags: &VaultFlags,
    asker: Option<Asker>,
) -> Result<Option<StoreSaver>, ToolError> {
    if inherited::is_inside_session() {
        return Err(inside_session());
    }
    let place = VaultLocation::find(flags, asker)?;
    let directory = place.directory.clone();
    let index = Index::read(&directory).ok();
    let look = |index: &Index| place.chosen_or_unlisted(index, None);
    let (chosen, unlisted) = index.as_ref().map(look).unwrap_or_default();
    if let Some(kind) = flags.vault.0.filter(|kind| !kind.is_persistent()) {
        secrets.attach(Arc::new(OtherStores::new(directory, kind, unlisted)));
        secrets.refresh(Need::Listed);
        return Ok(None);
    }
    let chosen = chosen.filter(|chosen| chosen.kind.is_persistent());
    if chosen.is_some() || index.is_none() {
        place.warn_if_open();
    }
    place.mask_keys(secrets, chosen.as_ref());
    // An index created later may name a store or its keys.
    let is_settled = index.is_some_and(|index| index.store.is_some());
    let initial_choice = chosen.filter(|_| is_settled);
    let loader = StoreSync::for_chosen(directory, place.opening(initial_choice.clone()));
    let loader = Arc::new(loader.with_choice(place.choosing(initial_choice.clone())));
    secrets.attach(Arc::clone(&loader) as Arc<dyn Source>);
    secrets.refresh(Need::Listed);
    Ok(Some(StoreSaver::new(
        loader,
        secrets,
        place,
        initial_choice,
    )))
}

/// Returns the error for opening the vault inside a session.
pub(super) fn inside_session() -> ToolError {
    let message = "this runs inside a session of karyi, where the vault stays closed";
    ToolError::new(ErrorCode::InsideSession, message)
}

/// Parses the name of a secret.
///
/// # Errors
/// `bad_arguments`.
pub(super) fn name(text: &str) -> Result<SecretName, ToolError> {
    SecretName::parse(text).ok_or_else(|| {
        let message = format!(
            "expected a name (letters, digits and _, at most {} of them and no digit first), found something \
             else",
            SecretName::MAX_LEN
        );
        ToolError::new(ErrorCode::BadArguments, message).with_hint("choose a name such as NPM_TOKEN")
    })
}

/// Returns the names of known secrets, without opening a store.
pub(super) fn known_names(secrets: &Secrets) -> BTreeSet<SecretName> {
    let index = state_dir::data_dir().ok().map(|dir| Index::read(&dir));
    let index = index.and_then(Result::ok).unwrap_or_default();
    index.secret_names().chain(secrets.names()).collect()
}

/// Returns the names in use in a session or in any store.
///
/// # Errors
/// The index cannot be read, or a link on its path is dangling.
pub(super) fn taken_names(secrets: &Secrets) -> Result<BTreeSet<SecretName>, ToolError> {
    let index = match state_dir::data_dir() {
        Ok(directory) => Index::read(&directory)?.require_readable(&directory)?,
        // Without a vault directory none is stored.
        Err(error) => match error.downcast::<ToolError>() {
            Ok(error) => return Err(error),
            Err(_) => Index::default(),
        },
    };
    let stored = index.names.keys();
    let stored = stored.filter_map(|name| SecretName::parse(name));
    Ok(stored.chain(secrets.names()).collect())
}

/// Records which stored secrets a run used, for the user's information; a failure does not fail the run.
pub(super) fn record_use(secrets: &Secrets) {
    let used = secrets.used();
    if let (false, Ok(directory)) = (used.is_empty(), state_dir::data_dir()) {
        let now = Timestamp::now();
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        let _ = Index::record_use(&directory, &used, now);
    }
}

/// Returns the identity file of the encrypted file: whoever reads it can read every value.
pub(super) fn identity_file(flags: &VaultFlags) -> Option<PathBuf> {
    let remembered = || {
        let index = Index::read(&state_dir::data_dir().ok()?).ok()?;
        index.store?.identity
    };
    let given = flags.age_identity.as_deref().map(absolute);
    given.or_else(remembered)
}

/// Returns the service name of karyi's values in the keyring, which depends on the home, so that tests and second
/// installations stay apart.
pub(super) fn service() -> String {
    match state_dir::variable("KARYI_HOME") {
        None => "karyi".to_owned(),
        Some(home) => {
            let home = absolute(Path::new(&home));
            format!("karyi:{:08x}", fnv1a(home.as_os_str().as_encoded_bytes()))
        }
    }
}

/// Returns the absolute form of a path.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Returns a short name for a text: 32-bit FNV-1a. It need not be hard to invert.
fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_have_short_names() {
        assert_eq!(fnv1a(b""), 0x811c_9dc5);
        assert_eq!(fnv1a(b"a"), 0xe40c_292c);
        assert_eq!(fnv1a(b"foobar"), 0xbf9c_f968);
    }
}
