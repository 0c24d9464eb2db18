//! Which store holds the secrets, and how it is opened: the only part that knows flags, variables,
//! descriptors and the terminal.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};

use clap::{Args, ValueEnum, ValueHint};
use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::cli::screen::Floor;
use crate::cli::{doubts, prompt, say, state_dir};
use crate::error::{ErrorCode, ToolError};
use crate::exec::cancel::Cancel;
use crate::exec::resolve::unreadable;
use crate::limits;
use crate::pty::{guard, inherited};
use crate::secret::{SecretName, SecretValue};
use crate::tool::context::{Boxed, Keeper, Reply, blocking};
use crate::vault::index::{Chosen, Index};
use crate::vault::keep::{Terms, Vault};
use crate::vault::load::Loader;
use crate::vault::policy::Policy;
use crate::vault::session::{Need, Origin, Secrets, Source};
use crate::vault::store::age::{AgeKey, AgeStore, GetKey, passphrase_of};
use crate::vault::store::env::{EnvStore, PREFIX};
use crate::vault::store::journal::JournalKey;
use crate::vault::store::memory::MemoryStore;
use crate::vault::store::os::{Attended, OsStore};
use crate::vault::store::{Kind, Store, pairs};

/// Name of the encrypted file, in the directory of karyi's data.
const AGE_FILE: &str = "vault.age";

/// Which store, and what opens it.
#[derive(Debug, Clone, Args, Default)]
pub(super) struct VaultFlags {
    /// Where secrets are kept: auto is the store chosen at the first `karyi var set`, else memory
    #[arg(long, value_enum, value_name = "STORE", default_value_t, global = true)]
    pub(super) vault: StoreName,
    /// Identity file of the store age: an ssh private key (ed25519 or rsa) or one of age
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, global = true)]
    pub(super) age_identity: Option<PathBuf>,
    /// Read the passphrase of the store age from this descriptor
    #[arg(long, value_name = "N", global = true)]
    pub(super) age_passphrase_fd: Option<RawFd>,
}

/// Names of the stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum StoreName {
    /// The store chosen at the first `karyi var set`, else memory
    #[default]
    Auto,
    /// The keyring of the system
    Os,
    /// A file encrypted with age
    Age,
    /// Nothing is kept
    Memory,
    /// Variables KARYI_VAR_NAME that karyi is started with
    Env,
}

impl StoreName {
    fn kind(self) -> Option<Kind> {
        match self {
            Self::Auto => None,
            Self::Os => Some(Kind::Os),
            Self::Age => Some(Kind::Age),
            Self::Memory => Some(Kind::Memory),
            Self::Env => Some(Kind::Env),
        }
    }
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
}

impl GivenArgs {
    /// Wants a store that can be read, and gives nothing.
    pub(super) fn store() -> Self {
        Self {
            require_vault: true,
            ..Self::default()
        }
    }

    fn require(&self) -> Require {
        match self.require_vault {
            true => Require::Store,
            false => Require::Nothing,
        }
    }
}

/// Who can be asked while a store is opened.
#[derive(Clone)]
pub(super) enum Asking {
    /// The user, on the terminal.
    OnTerminal(Asker),
    /// Nobody.
    Nobody,
}

impl Asking {
    fn attended(&self) -> Attended {
        match self {
            Self::OnTerminal(_) => Attended::Yes,
            Self::Nobody => Attended::No,
        }
    }
}

/// What a question on the terminal goes with.
#[derive(Clone)]
pub(super) struct Asker {
    /// The report, which waits meanwhile, when there is one.
    pub(super) floor: Option<Floor>,
    /// The wish to stop.
    pub(super) cancel: Cancel,
}

/// The place of the vault and how it is opened.
pub(super) struct Place {
    /// The directory of index and encrypted file.
    pub(super) directory: PathBuf,
    flags: VaultFlags,
    pub(super) asking: Asking,
}

impl Place {
    /// Finds the place.
    pub(super) fn find(flags: &VaultFlags, asking: Asking) -> Result<Self, ToolError> {
        let directory = state_dir::data_dir()
            .map_err(|error| ToolError::new(ErrorCode::NotFound, format!("{error:#}")))?;
        Ok(Self {
            directory,
            flags: flags.clone(),
            asking,
        })
    }

    /// Returns the store that was chosen: by flag, else the remembered one.
    pub(super) fn chosen(&self, index: &Index) -> Option<Chosen> {
        let remembered = index.store.clone();
        let kind = self.flags.vault.kind();
        let kind = kind.or(remembered.as_ref().map(|chosen| chosen.kind))?;
        let identity = (kind == Kind::Age)
            .then(|| {
                let given = self.flags.age_identity.as_deref().map(absolute);
                let was_asked = self.flags.age_passphrase_fd.is_some();
                let kept = remembered.and_then(|chosen| chosen.identity);
                given.or(kept.filter(|_| !was_asked || self.flags.vault == StoreName::Auto))
            })
            .flatten();
        Some(Chosen { kind, identity })
    }

    /// Returns a store; nothing is opened or asked before it is used.
    pub(super) fn store(&self, chosen: &Chosen) -> Arc<dyn Store> {
        match chosen.kind {
            Kind::Os => Arc::new(OsStore::new(service(), self.asking.attended())),
            Kind::Age => {
                let key = self.key(chosen.identity.clone());
                Arc::new(AgeStore::new(self.directory.join(AGE_FILE), key))
            }
            Kind::Memory => Arc::new(MemoryStore::default()),
            Kind::Env => Arc::new(EnvStore::new(given().unwrap_or_default())),
        }
    }

    /// Returns the vault: a store and the index.
    pub(super) fn vault(&self, chosen: Chosen) -> Vault {
        let store = self.store(&chosen);
        Vault::new(self.directory.clone(), chosen, store)
    }

    /// Whether the store can be asked without asking the user.
    pub(super) fn is_quiet(&self, chosen: &Chosen) -> bool {
        match chosen.kind {
            Kind::Os | Kind::Memory | Kind::Env => true,
            Kind::Age => {
                chosen.identity.is_some()
                    || self.flags.age_passphrase_fd.is_some()
                    || (!self.directory.join(AGE_FILE).exists()
                        && !self.directory.join(AGE_FILE).is_symlink())
            }
        }
    }

    /// Returns how the key of the encrypted file is found: a file, a descriptor, the user.
    fn key(&self, identity: Option<PathBuf>) -> GetKey {
        let descriptor = self.flags.age_passphrase_fd;
        let asking = self.asking.clone();
        Arc::new(move |is_new| {
            let given = descriptor.map(passphrase).transpose()?;
            match (&identity, given) {
                (Some(path), given) => AgeKey::identity(path, given.as_ref()),
                (None, Some(given)) => Ok(AgeKey::passphrase(&given)),
                (None, None) => {
                    let typed = ask_passphrase(&asking, is_new)?;
                    Ok(AgeKey::passphrase(&typed))
                }
            }
        })
    }
}

/// Returns whom a command can ask: the user, when there is a terminal and somebody at it.
pub(super) fn asking(is_allowed: bool, asker: Asker) -> Asking {
    if is_allowed && prompt::has_terminal() {
        Asking::OnTerminal(asker)
    } else {
        Asking::Nobody
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
    asking: Asking,
    wanted: &GivenArgs,
) -> Result<Opened, ToolError> {
    if wanted.allow_short {
        secrets.accept_short();
    }
    if let Some(descriptor) = wanted.vars_fd {
        insert_given(secrets, named(pairs_of(descriptor)?)?)?;
    }
    match flags.vault {
        StoreName::Env => insert_given(secrets, given()?)?,
        _ if has_given() => say(&format!(
            "variables {PREFIX}NAME are set and not used; --vault env uses them"
        )),
        _ => {}
    }
    match (attach(secrets, flags, asking), wanted.require()) {
        (Ok(keeper), Require::Nothing) => Ok(opened(secrets, keeper)),
        (Ok(keeper), Require::Store) => match secrets.source_failure() {
            None => Ok(opened(secrets, keeper)),
            Some(failure) => Err(unreadable(failure)),
        },
        (Err(error), Require::Store) => Err(error),
        // The session around this one knows the values; what it runs must not get at them.
        (Err(error), Require::Nothing) if error.code == ErrorCode::InsideSession => {
            Ok(Opened::default())
        }
        // Whoever has no place for a vault has nothing in it.
        (Err(_), Require::Nothing) if flags.vault == StoreName::Auto => Ok(Opened::default()),
        (Err(error), Require::Nothing) => Err(error),
    }
}

fn opened(secrets: &Secrets, keeper: Option<StoreKeeper>) -> Opened {
    let readable = keeper
        .as_ref()
        .filter(|_| secrets.source_failure().is_none());
    // Without a key what holds a value is not kept for undo, and its result says so.
    let journal_key = readable.and_then(|keeper| keeper.loader.journal_key().ok().flatten());
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
    asking: Asking,
    is_needed: bool,
) -> Result<(Secrets, Option<JournalKey>), ToolError> {
    let secrets = Secrets::default();
    secrets.keep_with(guard::keep);
    // All that is done with them is to mask them.
    secrets.accept_short();
    if flags.vault == StoreName::Env {
        insert_given(&secrets, given()?)?;
    }
    let keeper = match attach(&secrets, flags, asking) {
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
        None => keeper.map(|keeper| keeper.loader.kept_journal_key()),
    };
    Ok((secrets, key.transpose()?.flatten()))
}

/// Names the store as the source of a session's values and loads what is in it.
fn attach(
    secrets: &Secrets,
    flags: &VaultFlags,
    asking: Asking,
) -> Result<Option<StoreKeeper>, ToolError> {
    if inherited::is_inside_session() {
        return Err(inside_session());
    }
    let place = Place::find(flags, asking)?;
    let chosen = match Index::read(&place.directory) {
        Ok(index) => place.chosen(&index),
        // The loader reads it again and tells what is wrong with it before it opens any store.
        Err(_) => Some(Chosen {
            kind: Kind::Os,
            identity: None,
        }),
    };
    let Some(chosen) = chosen.filter(|chosen| chosen.kind.is_persistent()) else {
        return Ok(None);
    };
    let directory = place.directory.clone();
    let opened = chosen.clone();
    let open = Box::new(move || Ok(place.store(&opened)));
    let loader = Arc::new(Loader::new(directory.clone(), open));
    secrets.attach(Arc::clone(&loader) as Arc<dyn Source>);
    secrets.refresh(Need::Listed);
    Ok(Some(StoreKeeper {
        loader,
        directory,
        chosen,
        allow_short: secrets.accepts_short(),
    }))
}

/// Keeps values the user gives during a run in the store of the run.
struct StoreKeeper {
    loader: Arc<Loader>,
    directory: PathBuf,
    chosen: Chosen,
    /// Whether values may be kept of which only whole words are masked.
    allow_short: bool,
}

impl StoreKeeper {
    /// Does something with the vault, off the thread that everything else runs on.
    fn with(
        &self,
        work: impl FnOnce(&Vault) -> Result<(), ToolError> + Send + 'static,
    ) -> Boxed<'_, Result<(), ToolError>> {
        let loader = Arc::clone(&self.loader);
        let (directory, chosen) = (self.directory.clone(), self.chosen.clone());
        Box::pin(blocking(move || {
            work(&Vault::new(directory, chosen, loader.store()?))
        }))
    }
}

impl Keeper for StoreKeeper {
    fn store(&self) -> &'static str {
        match self.chosen.kind {
            Kind::Os => "the keyring",
            Kind::Age | Kind::Memory | Kind::Env => "the encrypted file",
        }
    }

    fn probe(&self) -> Boxed<'_, Result<(), ToolError>> {
        self.with(Vault::probe)
    }

    fn keep<'a>(
        &'a self,
        name: &'a SecretName,
        value: &'a SecretValue,
        note: Option<&'a str>,
    ) -> Boxed<'a, Result<(), ToolError>> {
        let (name, value) = (name.clone(), value.duplicate());
        let (note, allow_short) = (note.map(one_line), self.allow_short);
        self.with(move |vault| {
            // A secret that gets a new value keeps the policy its user gave it.
            let mut policy = vault
                .get(&name)
                .map_or_else(|_| Policy::default(), |old| old.policy);
            policy.allow_short |= allow_short;
            vault.set(&name, &value, &Terms { note, policy })
        })
    }
}

/// Returns a note that a model wrote as one short line.
fn one_line(note: &str) -> String {
    let words: Vec<&str> = note.split_whitespace().collect();
    let line = words.join(" ").replace(char::is_control, " ");
    line.chars().take(limits::MAX_NOTE_CHARS).collect()
}

/// What a run needs of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Require {
    /// That it can be read.
    Store,
    /// Nothing, as long as no placeholder needs it.
    Nothing,
}

/// Returns the error of whoever wants the vault inside a session.
pub(super) fn inside_session() -> ToolError {
    let message = "this runs inside a session of karyi, where the vault stays closed";
    ToolError::new(ErrorCode::InsideSession, message)
}

fn insert_given(
    secrets: &Secrets,
    values: Vec<(SecretName, SecretValue)>,
) -> Result<(), ToolError> {
    let mut seen = BTreeSet::new();
    for (name, value) in values {
        if !seen.insert(name.clone()) {
            let message = format!("{name} is given twice");
            return Err(ToolError::new(ErrorCode::BadArguments, message)
                .with_hint("give each name one value"));
        }
        secrets.check_given(&name, &value)?;
        doubts::tell(&name, &value);
        secrets.insert_with(name, value, Policy::unrestricted(), Origin::Given)?;
    }
    Ok(())
}

/// Variables `KARYI_VAR_NAME` this process was started with, without the prefix.
static GIVEN: Mutex<Vec<(String, SecretValue)>> = Mutex::new(Vec::new());

/// Takes the values out of the environment, so that no other process finds them there. Must be called
/// before a second thread starts.
pub(super) fn take_variables() {
    let mut taken = Vec::new();
    for (key, value) in std::env::vars_os() {
        if let Some(name) = key.to_str().and_then(|key| key.strip_prefix(PREFIX)) {
            // What is no text is refused as a value that is too short.
            let value = SecretValue::new(value.into_string().unwrap_or_default());
            taken.push((name.to_owned(), value));
        }
    }
    if !taken.is_empty() {
        inherited::forget_variables(PREFIX);
        *GIVEN.lock().unwrap_or_else(PoisonError::into_inner) = taken;
    }
}

fn has_given() -> bool {
    let given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    !given.is_empty()
}

fn given() -> Result<Vec<(SecretName, SecretValue)>, ToolError> {
    let given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let copies = given
        .iter()
        .map(|(name, value)| (name.clone(), value.duplicate()));
    named(copies.collect())
}

fn named(pairs: Vec<(String, SecretValue)>) -> Result<Vec<(SecretName, SecretValue)>, ToolError> {
    let parse = |(name, value): (String, SecretValue)| {
        let parsed = self::name(&name)?;
        Ok((parsed, value))
    };
    pairs.into_iter().map(parse).collect()
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

fn pairs_of(descriptor: RawFd) -> Result<Vec<(String, SecretValue)>, ToolError> {
    let most = limits::MAX_SECRETS_BYTES as u64 * 2;
    let bytes = read_descriptor(descriptor, most, "--vars-fd")?;
    pairs::read(&bytes).map_err(|problem| {
        let message = format!(
            "expected pairs of NAME, NUL, VALUE, NUL on descriptor {descriptor}: {problem}"
        );
        ToolError::new(ErrorCode::BadArguments, message)
            .with_hint("write them with printf '%s\\0' NAME \"$VALUE\"")
    })
}

/// The passphrase that came by descriptor: it can be read once, and may be needed again.
static PASSPHRASE: OnceLock<SecretValue> = OnceLock::new();

fn passphrase(descriptor: RawFd) -> Result<SecretValue, ToolError> {
    if let Some(known) = PASSPHRASE.get() {
        return Ok(known.duplicate());
    }
    let most = limits::MAX_PASSPHRASE_BYTES as u64 + 2;
    let bytes = read_descriptor(descriptor, most, "--age-passphrase-fd")?;
    let read = passphrase_of(&bytes)?;
    Ok(PASSPHRASE.get_or_init(|| read).duplicate())
}

/// Reads everything from a descriptor, in a thread of its own: its writer may never end.
fn read_descriptor(
    descriptor: RawFd,
    most: u64,
    flag: &str,
) -> Result<Zeroizing<Vec<u8>>, ToolError> {
    let failed = |error: std::io::Error| {
        let message = format!("{flag} {descriptor}: {error}");
        ToolError::new(ErrorCode::Io, message).with_hint(format!(
            "open the descriptor for karyi: {flag} {descriptor} {descriptor}< FILE"
        ))
    };
    let file = inherited::take_descriptor(descriptor).map_err(failed)?;
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        let mut bytes = Zeroizing::new(Vec::with_capacity(usize::try_from(most).unwrap_or(0)));
        let result = file.take(most).read_to_end(&mut bytes);
        let _ = sender.send(result.map(|_| bytes));
    };
    std::thread::Builder::new()
        .name("values".into())
        .spawn(read)
        .map_err(failed)?;
    match receiver.recv_timeout(limits::VARS_TIMEOUT) {
        Ok(result) => result.map_err(failed),
        Err(_) => Err(failed(std::io::ErrorKind::TimedOut.into())),
    }
}

fn ask_passphrase(asking: &Asking, is_new: bool) -> Result<SecretValue, ToolError> {
    let ask = |label| {
        let otherwise = "give the passphrase of the vault with --age-passphrase-fd N, or run karyi on a terminal";
        ask(asking, &Wanted { label, otherwise })
    };
    if !is_new {
        return ask("passphrase of the vault (hidden): ");
    }
    let first = ask("new passphrase for the vault (hidden): ")?;
    let second = ask("the same again: ")?;
    if first.expose() == second.expose() {
        return Ok(first);
    }
    let message = "the two passphrases differ";
    Err(ToolError::new(ErrorCode::BadArguments, message).with_hint("try again"))
}

/// Returns the names of the secrets there are, as far as that is known without opening a store.
pub(super) fn known_names(secrets: &Secrets) -> BTreeSet<SecretName> {
    let mut names: BTreeSet<SecretName> = secrets.names().into_iter().collect();
    let index = state_dir::data_dir().ok().map(|dir| Index::read(&dir));
    if let Some(Ok(index)) = index {
        names.extend(index.kept());
    }
    names
}

/// Writes down which secrets of the store a run used. That is for people to know; a run does not fail
/// for it.
pub(super) fn note_use(secrets: &Secrets) {
    let used = secrets.used();
    if let (false, Ok(directory)) = (used.is_empty(), state_dir::data_dir()) {
        let now = Timestamp::now();
        let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
        let _ = Index::note_use(&directory, &used, now);
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

/// What is typed, and how it comes where nobody can type.
pub(super) struct Wanted<'a> {
    /// The question.
    pub(super) label: &'a str,
    /// What to do where it cannot be asked.
    pub(super) otherwise: &'a str,
}

/// Asks for something hidden on the terminal.
///
/// # Errors
/// `declined`, `cancelled`, `prompt_timeout`, or `secret_prompt_unavailable` when nobody can be asked.
pub(super) fn ask(asking: &Asking, wanted: &Wanted<'_>) -> Result<SecretValue, ToolError> {
    let unavailable = || {
        let message = "something must be typed, and nobody can be asked";
        ToolError::new(ErrorCode::SecretPromptUnavailable, message).with_hint(wanted.otherwise)
    };
    let Asking::OnTerminal(asker) = asking else {
        return Err(unavailable());
    };
    let _floor = asker
        .floor
        .as_ref()
        .map(|floor| floor.lock().unwrap_or_else(PoisonError::into_inner));
    let error = |code, message| Err(ToolError::new(code, message).with_hint("try again"));
    match prompt::hidden(wanted.label, &asker.cancel) {
        Ok(Reply::Value(value, _)) => Ok(value),
        Ok(Reply::Declined) if asker.cancel.is_cancelled() => {
            error(ErrorCode::Cancelled, "interrupted")
        }
        Ok(Reply::Declined) => error(ErrorCode::Declined, "nothing was given"),
        Ok(Reply::Timeout) => error(ErrorCode::PromptTimeout, "nothing was given in time"),
        Ok(Reply::Unavailable) | Err(_) => Err(unavailable()),
    }
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
