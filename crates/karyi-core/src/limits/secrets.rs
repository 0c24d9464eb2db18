//! Secrets: asking for them, the vault that holds them, and masking them.

use std::time::Duration;

/// Time a person has to answer a prompt for a value.
pub const PROMPT_TIMEOUT: Duration = Duration::from_secs(120);
/// Longest reason shown when a value is asked for, in characters.
pub const MAX_REASON_CHARS: usize = 300;
/// Most lines of a script that are shown when its user is asked to agree to it.
pub const MAX_SHOWN_LINES: usize = 30;
/// Longest secret value, in bytes: about as much as a pipe holds.
pub const MAX_SECRET_BYTES: usize = 60 << 10;
/// Bytes of values that are written to the shell at once; in between it is seen whether they are wanted
/// any more.
pub const SECRET_PART_BYTES: usize = 4 << 10;
/// Milliseconds after which it is looked again whether the writer of values has ended, should nothing
/// come.
pub const SECRET_DRAIN_MS: u8 = 20;
/// Most bytes of all secret values together: redaction keeps tables many times as large.
pub const MAX_SECRETS_BYTES: usize = 4 << 20;
/// Shortest secret value that redaction can tell from ordinary text, in bytes.
pub const MIN_SECRET_BYTES: usize = 4;
/// Shortest secret value that is masked wherever it stands; a shorter one only as a whole word, and
/// a store takes it only on request.
pub const GOOD_SECRET_BYTES: usize = 8;
/// Time the keyring may take to answer when nobody is there to unlock it.
pub const KEYRING_TIMEOUT: Duration = Duration::from_secs(3);
/// Time it may take when the user may have to unlock it first.
pub const KEYRING_UNLOCK_TIMEOUT: Duration = Duration::from_secs(60);
/// Time it may take until a user is told that it is waited for.
pub const KEYRING_NOTICE_AFTER: Duration = Duration::from_millis(1500);
/// Time a keyring that was seen unlocked counts as that.
pub const KEYRING_CHECK_AGE: Duration = Duration::from_secs(1);
/// Entries of the keyring that are looked at in one call, which has one deadline.
pub const KEYRING_PART: usize = 50;
/// Time another process may keep the files of the vault locked: it waits for nobody meanwhile,
/// but a passphrase takes a second to check.
pub const VAULT_LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause between two tries to lock them.
pub const VAULT_LOCK_PAUSE: Duration = Duration::from_millis(10);
/// Time for which the last use of a secret is not written down again, so that not every run writes.
pub const SECRET_USE_STEP: Duration = Duration::from_secs(60 * 60);
/// Largest file of the vault, in bytes: the largest values with everything around them.
pub const MAX_VAULT_FILE_BYTES: u64 = 16 << 20;
/// Most names the index holds.
pub const MAX_STORED_SECRETS: usize = 10_000;
/// Work of checking a passphrase, as a power of two: about a second.
pub const PASSPHRASE_WORK: u8 = 18;
/// Most work a file may ask for, as a power of two: about 16 seconds and 4 GiB would be one more.
pub const MAX_PASSPHRASE_WORK: u8 = 21;
/// Age from which a temporary file of karyi's own belongs to nobody: a write takes seconds.
pub const LEFTOVER_AGE: Duration = Duration::from_secs(60 * 60);
/// Number of attempts at a passphrase before opening the file fails.
pub const PASSPHRASE_TRIES: u32 = 3;
/// Longest passphrase, in bytes.
pub const MAX_PASSPHRASE_BYTES: usize = 4 << 10;
/// Time the writer of values or of a passphrase on a descriptor may take.
pub const VARS_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest note beside a secret, in characters.
pub const MAX_NOTE_CHARS: usize = 300;
/// Most replaced or removed values that redaction goes on knowing; the session tells when it forgets one.
pub const MAX_FORMER_SECRETS: usize = 10_000;
/// Most bytes of them.
pub const MAX_FORMER_BYTES: usize = 4 << 20;
/// Shortest part of a value, in any form, that is masked wherever it stands, in visible bytes.
pub const REDACTED_RUN_BYTES: usize = 12;
/// Longest escape that redaction reads, such as `&#x1F600;`, in bytes.
pub const MAX_ESCAPE_BYTES: usize = 12;
/// Silence of a command after which a watcher sees output that redaction holds back.
pub const SHOW_HELD_AFTER: Duration = Duration::from_millis(50);
/// Bytes of a text that redaction looks at in one go: few enough for the processor's nearest cache.
pub const REDACT_BLOCK_BYTES: usize = 2 << 10;
/// Bytes of a text that redaction takes in before it gives some out.
pub const REDACT_PIECE_BYTES: usize = 64 << 10;
/// Most bytes of a text that are held back because they may become a value: an escape sequence that
/// never ends could hide the rest of it. Then what is held is masked.
pub const MAX_HELD_REDACTION_BYTES: usize = 64 << 10;
/// Most of karyi's own files that are compared with one that has several names.
pub const MAX_OWN_FILES: usize = 100_000;
/// Longest text that stands for a secret, in bytes: with a name of 64 and the name of an encoding.
pub const MAX_MARKER_BYTES: usize = 112;
/// Shortest start of a value that is masked where output was cut off, in bytes.
pub const MIN_CUT_SECRET_BYTES: usize = 4;
/// Longest value that is masked in every encoding; longer ones, which are files, only as they are,
/// by line, in JSON and in base64. It keeps the tables small.
pub const MAX_ENCODED_SECRET_BYTES: usize = 8 << 10;
/// Deepest nesting of quotes and substitutions in a script that refers to secrets.
pub const MAX_SCRIPT_DEPTH: usize = 64;
/// Time a greeting or a value may take on its way between `karyi var set --session` and a session: both are
/// programs of this machine.
pub const CONTROL_TIMEOUT: Duration = Duration::from_secs(5);
/// Time a session may take to say whether it takes a value: it may have to open its store first.
pub const CONTROL_ANSWER_TIMEOUT: Duration = Duration::from_secs(90);
/// Largest message between them, in bytes: the longest value, or a policy.
pub const MAX_CONTROL_FRAME_BYTES: usize = MAX_SECRET_BYTES + (64 << 10);
