//! Which store holds the secrets, and how it is opened: the only part that knows flags, variables,
//! descriptors and the terminal.

mod given;
mod identity;
mod keeper;
mod place;

pub(super) use given::{read_secretly, take_variables};
pub(super) use place::{Place, keyring, unopened};

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
use crate::tool::context::Keeper;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::secret::SecretName;
use karyi_pty::{guard, inherited};
use karyi_vault::index::Index;
use karyi_vault::session::{LoadIssue, LoadIssueKind, Need, Secrets, Source};
use karyi_vault::store::Kind;
use karyi_vault::store::env::PREFIX;
use karyi_vault::store::journal_key::JournalKey;
use karyi_vault::sync::{OtherStores, StoreSync};

use given::{given, has_given, insert_given, named, pairs_of, passphrase};
use keeper::StoreKeeper;

/// Name of the encrypted file, in the directory of karyi's data.
pub(super) const AGE_FILE: &str = "vault.age";

/// Which store, and what opens it.
#[derive(Debug, Clone, Args, Default)]
pub(super) struct VaultFlags {
    /// Where secrets are kept: auto is the store chosen at the first `karyi var set`, which takes the keyring when none is
    /// named; before that nothing is kept
    #[arg(long, value_name = "STORE", value_parser = store_names(), default_value = "auto", global = true)]
    pub(super) vault: StoreName,
    /// Identity file of the store age: an ssh private key (ed25519 or rsa) or one of age
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, global = true)]
    pub(super) age_identity: Option<PathBuf>,
    /// Read the passphrase of the store age from this descriptor
    #[arg(long, value_name = "N", global = true)]
    pub(super) age_passphrase_fd: Option<RawFd>,
}

/// A store as it is named on the command line; with none it is the one chosen at the first `karyi var set`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct StoreName(pub(super) Option<Kind>);

/// Names of the stores that last.
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
    let others = [("memory", "Nothing is kept"), env];
    let all = std::iter::once(&auto).chain(LASTING).chain(&others);
    let all: Vec<_> = all
        .map(|(name, help)| PossibleValue::new(*name).help(*help))
        .collect();
    PossibleValuesParser::new(all).map(|name| StoreName(serde_json::from_value(name.into()).ok()))
}

/// Values that are given for one run, and what is wanted of the store.
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
    /// Whether what is kept in another store than the one that is used is no reason to stop.
    #[arg(skip)]
    is_one_store_enough: bool,
}

impl VaultFlags {
    /// Refuses what cannot be what it is given as: that is wrong usage, whether the store is needed or not.
    ///
    /// # Errors
    /// What comes by the descriptor is no passphrase.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        self.age_passphrase_fd
            .map_or(Ok(()), |descriptor| passphrase(descriptor).map(drop))
    }
}

impl GivenArgs {
    /// Wants a store that can be read, and gives nothing.
    #[cfg(feature = "serve")]
    pub(super) fn store() -> Self {
        Self {
            require_vault: true,
            is_one_store_enough: true,
            ..Self::default()
        }
    }

    /// Returns why a session lacks what is wanted of the store.
    fn missing(&self, secrets: &Secrets) -> Option<ToolError> {
        let is_enough =
            |lack: &LoadIssue| lack.kind == LoadIssueKind::Elsewhere && self.is_one_store_enough;
        let mut lacks = secrets.load_issues().into_iter();
        lacks.find(|lack| !is_enough(lack)).map(|lack| lack.error)
    }
}

/// What a run has of the store, besides its values.
#[derive(Default)]
pub(super) struct Opened {
    /// Keeps values that the user gives, when there is a store that does.
    pub(super) keeper: Option<Arc<dyn Keeper>>,
    /// The key of the undo journal, when the store was opened and could be read.
    pub(super) journal_key: Option<JournalKey>,
}

/// Gives a session the values it starts with, and the way to those of the store. Returns what else
/// there is of the store.
///
/// # Errors
/// Values that were given and cannot be used; with `require`, a store that cannot be read.
pub(super) fn prepare(
    secrets: &Secrets,
    flags: &VaultFlags,
    asker: Option<Asker>,
    wanted: &GivenArgs,
) -> Result<Opened, ToolError> {
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
        let keeper = attached?;
        return match wanted.missing(secrets) {
            None => Ok(opened(secrets, keeper)),
            Some(failure) => Err(unreadable(failure)),
        };
    }
    match attached {
        Ok(keeper) => Ok(opened(secrets, keeper)),
        // The session around this one knows the values; what it runs must not get at them.
        Err(error) if error.code == ErrorCode::InsideSession => Ok(Opened::default()),
        // What is kept behind a link that leads nowhere is neither known nor masked.
        Err(error) if error.code == ErrorCode::VaultUnavailable => Err(error),
        // Whoever has no place for a vault has nothing in it.
        Err(_) if flags.vault.0.is_none() => Ok(Opened::default()),
        Err(error) => Err(error),
    }
}

fn opened(secrets: &Secrets, keeper: Option<StoreKeeper>) -> Opened {
    let readable = keeper
        .as_ref()
        .filter(|_| secrets.source_failure().is_none());
    // Without a key what holds a value is not kept for undo, and its result says so.
    let journal_key = readable.and_then(|keeper| keeper.loader().journal_key().ok().flatten());
    Opened {
        keeper: keeper.map(|keeper| Arc::new(keeper) as Arc<dyn Keeper>),
        journal_key,
    }
}

/// Opens the store for a command that shows what the journal holds: returns its values, which must
/// not be shown, and the key. Nothing is made or kept there.
///
/// # Errors
/// With `is_needed`, why the store cannot be opened or read; else the secrets know that.
pub(super) fn open_to_show(
    flags: &VaultFlags,
    asker: Option<Asker>,
    is_needed: bool,
) -> Result<(Secrets, Option<JournalKey>), ToolError> {
    let secrets = Secrets::default();
    secrets.protect_memory_with(guard::protect);
    // All that is done with them is to mask them.
    secrets.accept_short();
    if flags.vault.0 == Some(Kind::Env) {
        insert_given(&secrets, given()?)?;
    }
    let keeper = match attach(&secrets, flags, asker) {
        Ok(keeper) => keeper,
        Err(error) if is_needed => return Err(error),
        // The session around this one masks; whoever has no place for a vault has nothing in it.
        Err(_) => None,
    };
    if is_needed && secrets.source_failure().is_none() {
        secrets.refresh(Need::Used);
    }
    let key = match secrets.source_failure() {
        Some(failure) if is_needed => return Err(failure),
        Some(_) => None,
        None => keeper.map(|keeper| keeper.loader().stored_journal_key()),
    };
    Ok((secrets, key.transpose()?.flatten()))
}

/// Names the store as the source of a session's values and loads what is in it.
fn attach(
    secrets: &Secrets,
    flags: &VaultFlags,
    asker: Option<Asker>,
) -> Result<Option<StoreKeeper>, ToolError> {
    if inherited::is_inside_session() {
        return Err(inside_session());
    }
    let place = Place::find(flags, asker)?;
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
    // Where no index names a store one may do so later, or say what opens it.
    let is_settled = index.is_some_and(|index| index.store.is_some());
    let settled = chosen.filter(|_| is_settled);
    let loader = StoreSync::for_chosen(directory, place.opening(settled.clone()));
    let loader = Arc::new(loader.with_choice(place.choosing(settled.clone())));
    secrets.attach(Arc::clone(&loader) as Arc<dyn Source>);
    secrets.refresh(Need::Listed);
    Ok(Some(StoreKeeper::new(loader, secrets, place, settled)))
}

/// Returns the error of whoever wants the vault inside a session.
pub(super) fn inside_session() -> ToolError {
    let message = "this runs inside a session of karyi, where the vault stays closed";
    ToolError::new(ErrorCode::InsideSession, message)
}

/// Reads the name of a secret.
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

/// Returns the names of the secrets there are, as far as that is known without opening a store.
pub(super) fn known_names(secrets: &Secrets) -> BTreeSet<SecretName> {
    let index = state_dir::data_dir().ok().map(|dir| Index::read(&dir));
    let index = index.and_then(Result::ok).unwrap_or_default();
    index.secret_names().chain(secrets.names()).collect()
}

/// Returns the names that stand for something in a session or in any store.
///
/// # Errors
/// Nobody can tell: the index cannot be read, or a link on the way to it leads nowhere.
pub(super) fn taken_names(secrets: &Secrets) -> Result<BTreeSet<SecretName>, ToolError> {
    let index = match state_dir::data_dir() {
        Ok(directory) => Index::read(&directory)?.require_readable(&directory)?,
        // Without a place for them none is stored.
        Err(error) => match error.downcast::<ToolError>() {
            Ok(error) => return Err(error),
            Err(_) => Index::default(),
        },
    };
    let stored = index.names.keys();
    let stored = stored.filter_map(|name| SecretName::parse(name));
    Ok(stored.chain(secrets.names()).collect())
}

/// Writes down which secrets of the store a run used. That is for people to know; a run does not fail
/// for it.
pub(super) fn record_use(secrets: &Secrets) {
    let used = secrets.used();
    if let (false, Ok(directory)) = (used.is_empty(), state_dir::data_dir()) {
        let now = Timestamp::now();
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        let _ = Index::record_use(&directory, &used, now);
    }
}

/// Returns the identity file that opens the encrypted file: who reads it can read every value.
pub(super) fn identity_file(flags: &VaultFlags) -> Option<PathBuf> {
    let remembered = || {
        let index = Index::read(&state_dir::data_dir().ok()?).ok()?;
        index.store?.identity
    };
    let given = flags.age_identity.as_deref().map(absolute);
    given.or_else(remembered)
}

/// Returns the name karyi's values have in the keyring: another one for another home, so that tests
/// and second installations do not meet.
pub(super) fn service() -> String {
    match std::env::var_os("KARYI_HOME").filter(|home| !home.is_empty()) {
        None => "karyi".to_owned(),
        Some(home) => {
            let home = absolute(Path::new(&home));
            format!("karyi:{:08x}", fnv1a(home.as_os_str().as_encoded_bytes()))
        }
    }
}

/// Returns a path that means the same in every directory.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A short name for a text: FNV-1a with 32 bits. Nothing rests on it being hard to turn around.
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
