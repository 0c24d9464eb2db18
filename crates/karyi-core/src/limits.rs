//! Every size limit and timeout of the program, each with its reason.
//!
//! Every wait and every buffer is limited, and the limits are only here. Values that a user may change are defaults;
//! the others are fixed.

mod files;
mod mcp;
mod net;
mod screen;
mod secrets;
mod serve;
mod session;
mod tasks;

use std::time::Duration;

pub use files::*;
pub use mcp::*;
pub use net::*;
pub use screen::*;
pub use secrets::*;
pub use serve::*;
pub use session::*;
pub use tasks::*;

/// Largest file of the user's settings, in bytes: one with hundreds of models is smaller.
pub const MAX_SETTINGS_BYTES: u64 = 1 << 20;
/// Longest text of one leaf element, in bytes: what one edit may reasonably carry.
pub const MAX_LEAF_BYTES: usize = 256 << 20;
/// Longest single tag with its attributes, in bytes.
pub const MAX_TAG_BYTES: usize = 64 << 10;
/// Most attributes on one tag.
pub const MAX_ATTRIBUTES: usize = 1024;
/// Most calls in one message.
pub const MAX_CALLS: u64 = 1_000_000;
/// Deepest nesting of elements inside one argument; deeper input is an attack, not an argument.
pub const MAX_ARGUMENT_DEPTH: usize = 64;
/// Most bytes of calls held while a whole message is parsed before its first call runs.
pub const MAX_HELD_BYTES: usize = 64 << 20;
/// Most rules that one answer "always" stores: more cannot be read with care.
pub const MAX_STORED_RULES: usize = 5;
/// Bytes of a source line shown on either side of a diagnostic's place: enough to recognise it.
pub const EXCERPT_REACH_BYTES: usize = 240;

/// Bytes of an unfinished text that may wait to be checked, so that tokens of a few bytes are not
/// checked one by one.
pub const MAX_UNCHECKED_BYTES: usize = 1 << 10;

/// Bytes the parser may buffer while it waits for a stop byte.
pub const MAX_BUFFERED_BYTES: usize = 4 << 10;
/// Bytes after an error in which the end of a thought is looked for; an endless text must end.
pub const MAX_AFTER_ERROR_BYTES: usize = 1 << 20;
/// Most warnings of one message; the rest are left out, or hostile text would outgrow its report.
pub const MAX_WARNINGS: usize = 1000;
/// Deepest nesting of a JSON envelope.
pub const MAX_JSON_DEPTH: usize = 128;

/// Time of a call, in milliseconds, below which compact reports leave it out.
pub const SHORT_CALL_MS: u64 = 1000;
/// Bytes of output kept from the start of a result.
pub const OUTPUT_HEAD_BYTES: usize = 16 << 10;
/// Bytes of output kept from the end of a result.
pub const OUTPUT_TAIL_BYTES: usize = 16 << 10;
/// Bytes of the texts of one report: what a context window takes in one piece.
pub const REPORT_BYTES: usize = 100 << 10;
/// Largest transcript of a chat that is read, in bytes: many context windows of text.
pub const MAX_TRANSCRIPT_BYTES: u64 = 256 << 20;
/// Time after which a locked chat counts as open elsewhere: a forked process has locks for a moment.
pub const CHAT_LOCK_TIMEOUT: Duration = Duration::from_millis(500);
/// Longest title of a chat in characters, when it is made of a text.
pub const MAX_CHAT_TITLE_CHARS: usize = 80;
/// Bytes of an answer that a conversation keeps; the rest is shown and run all the same.
pub const MAX_CHAT_ANSWER_BYTES: usize = 1 << 20;
/// Size of the diffs of one edit in a transcript, in bytes; files beyond it are named only.
pub const MAX_RECORDED_CHANGES_BYTES: usize = 64 << 10;
/// Bytes of all notes of a project in a system prompt, and of one skill or command: what a small model can still follow.
pub const MAX_NOTES_BYTES: usize = 32 << 10;
/// Most files of notes that are read, imports among them.
pub const MAX_NOTE_FILES: usize = 100;
/// Most skills of a project that a system prompt lists.
pub const MAX_SKILLS: usize = 100;
/// Bytes of the description of a skill; the rest is left out.
pub const MAX_SKILL_BYTES: usize = 500;
/// Most steps of a plan: a person reads them all.
pub const MAX_PLAN_STEPS: usize = 50;
/// Bytes of one step of a plan; the rest is left out.
pub const MAX_PLAN_STEP_BYTES: usize = 500;
/// Bytes of one file with the whole output of a call.
pub const OUTPUT_FILE_BYTES: u64 = 256 << 20;
/// Bytes from the end of a command's output that are copied into the file of each further job it leaves.
pub const COPIED_LOG_BYTES: u64 = 128 << 10;
/// Files with whole outputs that a run has at a time; the oldest is removed for a new one.
pub const MAX_OUTPUT_FILES: usize = 256;
/// Number of attempts to recreate the directory for whole outputs after another run removed it as abandoned.
pub const MAX_OUTPUT_DIRECTORY_TRIES: usize = 5;
/// Most leftovers of earlier runs that the start of a run checks.
pub const MAX_OUTPUT_LEFTOVERS: usize = 100;
/// Number of background jobs at which ended ones are removed.
pub const MIN_JOBS_SWEPT: usize = 32;
/// Bytes kept in memory of the end of a job's output: enough for its last line.
pub const JOB_TAIL_BYTES: usize = 2 << 10;
/// Longest last line of a job in a report, in characters.
pub const MAX_LAST_LINE_CHARS: usize = 200;
/// Longest line the terminal renderer edits in place (carriage returns, backspaces), in bytes.
pub const MAX_TERMINAL_LINE_BYTES: usize = 64 << 10;

/// Calls that may run at once: more threads than this only fight for the same disk.
pub const MAX_PARALLEL_CALLS: usize = 16;
/// Messages waiting between two parts of the program before the sender has to wait.
pub const CHANNEL_DEPTH: usize = 256;
/// Time a call runs on a terminal before a spinner shows that it is still at work.
pub const SPINNER_DELAY: Duration = Duration::from_millis(400);
/// Width of a terminal that does not know its size.
pub const DEFAULT_COLUMNS: usize = 80;
/// Bytes of a report gathered before one write: the capacity of a pipe.
pub const REPORT_BUFFER_BYTES: usize = 64 << 10;
/// Pause between two pictures of the spinner.
pub const SPINNER_STEP: Duration = Duration::from_millis(100);
/// Time a question waits for a signal that the report has been displayed before it checks itself.
pub const TERMINAL_LOCK_STEP: Duration = Duration::from_millis(50);
/// Most diagnostics listed in one report; the rest are counted.
pub const MAX_DIAGNOSTICS: usize = 100;
/// Time a prompt waits for a key before it checks the clock and cancellation.
pub const KEY_WAIT: Duration = Duration::from_millis(100);
/// Bytes of keys that are read at once.
pub const KEYS_BYTES: usize = 1 << 10;
/// Longest time between keys and the wait for them, for a program that has asked and does not read yet.
pub const KEYS_GRACE: Duration = Duration::from_millis(300);
/// Pause in typing before a question reads keys, and before it releases the terminal: longer than pauses in fast
/// typing and pastes.
pub const TYPING_PAUSE: Duration = Duration::from_millis(200);
/// Longest that an answered question waits for such a pause.
pub const TYPING_LIMIT: Duration = Duration::from_secs(2);
/// Time a cancelled run waits for a question to clear the terminal, and for a slow reader of the report.
pub const CANCEL_GRACE: Duration = Duration::from_secs(1);
/// No time at all.
pub const NO_GRACE: Duration = Duration::ZERO;
/// Most lines of a script that are shown before it runs; the others are counted.
pub const MAX_TITLE_LINES: usize = 20;
/// Most characters of each of them.
pub const MAX_TITLE_LINE_CHARS: usize = 2000;
/// Lines at the start and at the end of an output that a person sees.
pub const SHOWN_LINES: usize = 10;
/// Longest line that says what a call is about, in characters.
pub const MAX_TITLE_CHARS: usize = 100;
/// Paths of one call that are compared with those of others; a call with more waits for all of them.
pub const MAX_CLAIMED_PATHS: usize = 64;
/// Number of calls that may run before the first unfinished call of a block: their results are buffered.
pub const MAX_CALLS_AHEAD: usize = 64;
/// Memory of a call beyond its text, in bytes.
pub const CALL_OVERHEAD_BYTES: u64 = 512;
