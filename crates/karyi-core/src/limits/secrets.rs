//! Limits of secrets: prompts, vault and redaction.

use std::time::Duration;

/// Time a person has to answer a prompt for a value.
pub const PROMPT_TIMEOUT: Duration = Duration::from_secs(120);
/// Longest reason shown when a value is asked for, in characters.
pub const MAX_REASON_CHARS: usize = 300;
/// Most characters of a call that an MCP client shows when it asks for consent; the question tells that there are more.
pub const MAX_QUESTION_CHARS: usize = 8_000;
/// Most lines of a script that are shown when its user is asked to agree to it.
pub const MAX_SHOWN_LINES: usize = 30;
/// Longest secret value, in bytes: about the capacity of a pipe.
pub const MAX_SECRET_BYTES: usize = 60 << 10;
/// Bytes of values per write to the shell; cancellation is checked in between.
pub const SECRET_PART_BYTES: usize = 4 << 10;
/// Milliseconds between checks for the end of the writer of values.
pub const SECRET_DRAIN_MS: u8 = 20;
/// Most bytes of all secret values together: redaction keeps tables many times as large.
pub const MAX_SECRETS_BYTES: usize = 4 << 20;
/// Shortest secret value that redaction can tell from ordinary text, in bytes.
pub const MIN_SECRET_BYTES: usize = 4;
/// Shortest secret value that is masked inside other text; a shorter one is masked as a whole word only, and stored
/// on request only.
pub const GOOD_SECRET_BYTES: usize = 8;
/// Longest reply time of the keyring without a user to unlock it.
pub const KEYRING_TIMEOUT: Duration = Duration::from_secs(3);
/// Longest reply time of the keyring when a user may have to unlock it.
pub const KEYRING_UNLOCK_TIMEOUT: Duration = Duration::from_secs(60);
/// Waiting time after which the user is notified of a slow keyring.
pub const KEYRING_NOTICE_AFTER: Duration = Duration::from_millis(1500);
/// Time for which a check that found the keyring unlocked is valid.
pub const KEYRING_CHECK_AGE: Duration = Duration::from_secs(1);
/// Entries of the keyring per call, which has one deadline.
pub const KEYRING_PART: usize = 50;
/// Longest wait for the lock of the vault: its holder never waits for another process, but checking a passphrase takes
/// a second.
pub const VAULT_LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause between two attempts to take that lock.
pub const VAULT_LOCK_PAUSE: Duration = Duration::from_millis(10);
/// Resolution of the time of last use, so that not every run writes the index.
pub const SECRET_USE_STEP: Duration = Duration::from_secs(60 * 60);
/// Largest file of the vault, in bytes: the largest values with everything around them.
pub const MAX_VAULT_FILE_BYTES: u64 = 16 << 20;
/// Most names in the index.
pub const MAX_STORED_SECRETS: usize = 10_000;
/// Work of checking a passphrase, as a power of two: about a second.
pub const PASSPHRASE_WORK: u8 = 18;
/// Highest work factor accepted from a file, as a power of two: one more takes about 16 seconds and 4 GiB.
pub const MAX_PASSPHRASE_WORK: u8 = 21;
/// Age at which a temporary file of karyi is abandoned: a write takes seconds.
pub const LEFTOVER_AGE: Duration = Duration::from_secs(60 * 60);
/// Number of attempts at a passphrase before opening the file fails.
pub const PASSPHRASE_TRIES: u32 = 3;
/// Longest passphrase, in bytes.
pub const MAX_PASSPHRASE_BYTES: usize = 4 << 10;
/// Time the writer of values or of a passphrase on a descriptor may take.
pub const VARS_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest note beside a secret, in characters.
pub const MAX_NOTE_CHARS: usize = 300;
/// Most former values that stay masked; the session reports when it drops one.
pub const MAX_FORMER_SECRETS: usize = 10_000;
/// Most bytes of former values.
pub const MAX_FORMER_BYTES: usize = 4 << 20;
/// Shortest part of a value, in any form, that is masked anywhere, in visible bytes.
pub const REDACTED_RUN_BYTES: usize = 12;
/// Longest escape that redaction reads, such as `&#x1F600;`, in bytes.
pub const MAX_ESCAPE_BYTES: usize = 12;
/// Silence of a command after which a watcher sees output that redaction holds back.
pub const SHOW_HELD_AFTER: Duration = Duration::from_millis(50);
/// Bytes per search step of redaction: small enough for the L1 cache.
pub const REDACT_BLOCK_BYTES: usize = 2 << 10;
/// Bytes that redaction buffers before it emits some.
pub const REDACT_PIECE_BYTES: usize = 64 << 10;
/// Most bytes that redaction holds back for a possible value, since an endless escape sequence could hide the rest.
/// Beyond that they are masked.
pub const MAX_HELD_REDACTION_BYTES: usize = 64 << 10;
/// Most files of karyi that are compared with a file with several names.
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
/// Longest transfer time between `karyi var set --session` and a session: both are programs of this machine.
pub const CONTROL_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time for a session to accept a value: it may have to open its store first.
pub const CONTROL_ANSWER_TIMEOUT: Duration = Duration::from_secs(90);
/// Largest message between them, in bytes: the longest value, or a policy.
pub const MAX_CONTROL_FRAME_BYTES: usize = MAX_SECRET_BYTES + (64 << 10);
