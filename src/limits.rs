//! Every cap and every waiting time of the program, each with its reason.
//!
//! A wait without a limit is a hang and a buffer without a limit is a crash, so both live here and
//! nowhere else. Values a user may change are defaults; the rest are walls.

use std::time::Duration;

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
/// Bytes of a source line shown on either side of a diagnostic's place: enough to recognise it.
pub const EXCERPT_REACH_BYTES: usize = 240;

/// Bytes of an unfinished text that may wait to be checked, so that tokens of a few bytes are not
/// checked one by one.
pub const MAX_UNCHECKED_BYTES: usize = 1 << 10;

/// Bytes that may gather while the parser waits for one that matters.
pub const MAX_CALM_BYTES: usize = 4 << 10;
/// Most warnings of one message; the rest are left out, or hostile text would outgrow its report.
pub const MAX_WARNINGS: usize = 1000;
/// Deepest nesting of a JSON envelope.
pub const MAX_JSON_DEPTH: usize = 128;

/// Bytes of output kept from the start of a result.
pub const OUTPUT_HEAD_BYTES: usize = 64 << 10;
/// Bytes of output kept from the end of a result.
pub const OUTPUT_TAIL_BYTES: usize = 64 << 10;
/// Bytes of one file with the whole output of a call.
pub const OUTPUT_FILE_BYTES: u64 = 256 << 20;
/// Files with whole outputs that a run has at a time; the oldest is removed for a new one.
pub const MAX_OUTPUT_FILES: usize = 256;
/// How often the directory for whole outputs is made again that another run took for abandoned.
pub const MAX_OUTPUT_DIRECTORY_TRIES: usize = 5;
/// Most leftovers of earlier runs that are looked at when a run begins.
pub const MAX_OUTPUT_LEFTOVERS: usize = 100;
/// Jobs in the background from which on those that have ended are looked for.
pub const MIN_JOBS_SWEPT: usize = 32;
/// Bytes kept in memory of the end of a job's output: enough for its last line.
pub const JOB_TAIL_BYTES: usize = 2 << 10;
/// Longest last line of a job in a report, in characters.
pub const MAX_LAST_LINE_CHARS: usize = 200;
/// Longest line the terminal renderer edits in place (carriage returns, backspaces), in bytes.
pub const MAX_TERMINAL_LINE_BYTES: usize = 64 << 10;
/// Bytes of one file shown by `read` when the call names no `max_bytes`.
pub const READ_FILE_BYTES: u64 = 256 << 10;
/// Most bytes of one file that `read` shows, whatever the call asks for.
pub const MAX_READ_BYTES: u64 = 64 << 20;
/// Largest file `edit` loads: matching works on the whole text in memory.
pub const MAX_EDIT_FILE_BYTES: u64 = 256 << 20;
/// Largest index of a git repository that is looked at.
pub const MAX_GIT_INDEX_BYTES: u64 = 64 << 20;
/// Most bytes one `edit` holds in memory, old and new texts of all its files together.
pub const MAX_EDIT_BYTES: u64 = 1 << 30;
/// Largest file that `search` reads whole, to tell its encoding; larger ones are searched as they are read.
pub const SEARCH_WHOLE_BYTES: u64 = 4 << 20;
/// Longest path that a file may get: what Linux takes in one call.
pub const MAX_PATH_BYTES: usize = 4095;
/// Most bytes of the names of a file's attributes, and of the value of one: what Linux allows.
pub const MAX_ATTRIBUTE_BYTES: usize = 64 << 10;
/// Bytes from the start of a file in which the passage closest to a text that is nowhere is looked for: each takes
/// some tens of nanoseconds.
pub const CLOSEST_TEXT_BYTES: usize = 8 << 20;
/// Lines of them: each takes some hundreds of nanoseconds and some tens of bytes, however short it is.
pub const CLOSEST_TEXT_LINES: usize = 500_000;
/// Places that are looked at whether they begin and end like a text to find that may have been replaced before.
pub const MAX_RIVAL_PLACES: usize = 1000;
/// Bytes behind the beginning of such a place in which its end is looked for.
pub const RIVAL_REACH_BYTES: usize = 64 << 10;
/// How long an edit waits for others of the same files: each of them takes a moment.
pub const EDIT_LOCK_TIMEOUT: Duration = Duration::from_secs(60);
/// First pause between two looks whether they are done.
pub const EDIT_LOCK_PAUSE_MIN: Duration = Duration::from_micros(200);
/// Longest pause between two such looks.
pub const EDIT_LOCK_PAUSE_MAX: Duration = Duration::from_millis(20);
/// Most bytes of the record of a change under way: it names each file a few times.
pub const MAX_INTENT_BYTES: u64 = 256 << 20;
/// Files named in an error because they were left half changed before.
pub const MAX_TOLD_RECOVERED: usize = 10;
/// Bytes of contents the journal keeps on the disk, compressed.
pub const JOURNAL_BYTES: u64 = 1 << 30;
/// Age of the oldest change that can be undone.
pub const JOURNAL_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Most changes in the journal.
pub const JOURNAL_ENTRIES: usize = 100_000;
/// Largest new content the journal keeps, for a look at what was changed; to undo a change only the
/// old one is needed.
pub const JOURNAL_NEW_BYTES: u64 = 4 << 20;
/// Largest old content that the journal syncs to the disk with its change: a large file would take as long
/// again, and the disk writes it within a minute anyway.
pub const JOURNAL_SYNCED_BYTES: u64 = 8 << 20;
/// Old content from which on it is made ready for the journal while the change is still worked out: starting a
/// thread pays then, and an edit that fails does the work for nothing.
pub const EARLY_JOURNAL_BYTES: u64 = 8 << 20;
/// Bytes of contents after which the journal looks for what is past its caps.
pub const JOURNAL_PRUNE_BYTES: u64 = 64 << 20;
/// How long the journal is not looked through when little was added: that takes some microseconds for each change
/// in it.
pub const JOURNAL_LOOK_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Age below which a content that no change names may belong to one under way: from then on until its record is
/// written it takes seconds, a large file on a slow disk a minute or two.
pub const JOURNAL_UNCLAIMED_AGE: Duration = Duration::from_secs(10 * 60);
/// Bytes from the end of the journal in which its last change is looked for first.
pub const JOURNAL_TAIL_BYTES: u64 = 64 << 10;
/// Most lines of a file's diff in a result.
pub const MAX_DIFF_LINES: usize = 200;
/// Most bytes of a file's diff in a result.
pub const MAX_DIFF_BYTES: usize = 16 << 10;
/// Most bytes of a file's diff that a person asked to see.
pub const MAX_WHOLE_DIFF_BYTES: usize = 16 << 20;
/// Longest line of a diff, in bytes; longer ones are cut and marked.
pub const MAX_DIFF_LINE_BYTES: usize = 500;
/// Most lines of both texts of a diff that are compared each with each; beyond that lines are only
/// compared in their order, or the time would grow with the square.
pub const MAX_COMPARED_LINES: usize = 4000;
/// Largest texts, old and new together, in which secrets are masked for a diff, in bytes: others are
/// only counted.
pub const MAX_MASKED_DIFF_BYTES: usize = 16 << 20;
/// Most entries of a directory listing.
pub const MAX_LISTING_ENTRIES: usize = 1000;
/// Levels of a directory listing when the call names no `depth`.
pub const LISTING_DEPTH: usize = 2;
/// Most levels of a directory listing, whatever the call asks for.
pub const MAX_LISTING_DEPTH: usize = 32;
/// Names that a missing one is compared with to say what could have been meant.
pub const MAX_COMPARED_NAMES: usize = 10_000;
/// Matches `search` returns when the call names no `max`.
pub const SEARCH_MATCHES: usize = 200;
/// Most matches `search` returns, whatever the call asks for.
pub const MAX_SEARCH_MATCHES: usize = 10_000;
/// Most lines of context around a match.
pub const MAX_SEARCH_CONTEXT: usize = 50;
/// Most bytes of lines that `search` returns: beyond that matches are only counted.
pub const MAX_SEARCH_TEXT_BYTES: usize = 4 << 20;
/// Memory for one line of a searched file; files with longer lines are skipped.
pub const SEARCH_LINE_BUFFER_BYTES: usize = 64 << 20;
/// Longest line shown by `search`, in bytes; of longer ones what stands around the match.
pub const MAX_SEARCH_LINE_BYTES: usize = 2000;
/// Most threads of one search: beyond this the disk is what is waited for.
pub const MAX_SEARCH_THREADS: usize = 12;
/// Memory a pattern may need when it is built; one that needs more would take seconds.
pub const MAX_PATTERN_BYTES: usize = 10 << 20;

/// Columns of the session's terminal.
pub const TERMINAL_COLUMNS: u16 = 120;
/// Rows of the session's terminal.
pub const TERMINAL_ROWS: u16 = 40;
/// Most rows or columns a terminal may be given.
pub const MAX_TERMINAL_SIDE: u16 = 1000;
/// Bytes of the last lines that a program may still go back to on its screen: more than a screen of
/// ordinary text takes.
pub const TERMINAL_REACH_BYTES: usize = 64 << 10;
/// How long a shell may take to start and to source the user's rc file before it is started without.
pub const RC_TIMEOUT: Duration = Duration::from_secs(2);
/// Most bytes of what a shell printed that did not start, in the error that says so.
pub const MAX_START_OUTPUT_BYTES: usize = 400;
/// Most exports and aliases named that a restart left out because they hold a secret.
pub const MAX_LEFT_OUT_NAMES: usize = 20;
/// How long a shell may take more to read back what an earlier one printed about itself.
pub const RESTORE_TIMEOUT: Duration = Duration::from_secs(10);
/// Fewest descriptors with which a shell can put its own aside while a script runs: it uses numbers
/// from 10 on.
pub const MIN_SHELL_DESCRIPTORS: u64 = 20;
/// How long a shell may take to get back the descriptors a command has closed.
pub const MEND_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a shell without an rc file may take to answer for the first time.
pub const SHELL_START_TIMEOUT: Duration = Duration::from_secs(10);
/// First pause between two looks at what the foreground job waits for.
pub const WAIT_SCAN_MIN: Duration = Duration::from_millis(1);
/// How long a caller reads the terminal itself before it leaves that to the session's thread: it
/// holds up what else its own thread is to do.
pub const CALLER_READS: Duration = Duration::from_micros(500);
/// Pause after a look, in the long run, as a multiple of the processor time it took: looking takes a
/// twentieth of a processor at most.
pub const WAIT_SCAN_SHARE: u32 = 20;
/// Most processes one look reads; the next one goes on with the rest.
pub const MAX_SCANNED_PROCESSES: usize = 128;
/// Most processes without a parent of their own that are looked at, the newest ones.
pub const MAX_SCANNED_ORPHANS: usize = 32;
/// How long a terminal must be silent before a guess from its modes and its last line counts, where
/// the kernel does not show what the job does.
pub const GUESS_QUIET: Duration = Duration::from_secs(1);
/// Longest pause between two such looks, where they cost little; output starts over at the first
/// pause.
pub const WAIT_SCAN_MAX: Duration = Duration::from_millis(8);
/// Longest pause of all between two looks, however much one costs.
pub const WAIT_SCAN_REST_MAX: Duration = Duration::from_secs(1);
/// Deepest nesting of terminals: one relays to one inside it, and so on.
pub const MAX_INNER_TERMINALS: usize = 4;
/// How often a job is looked at for somebody who asks, until it does the same twice.
pub const MAX_ASKED_LOOKS: usize = 5;
/// How long such an answer may take while the session's thread hands on output.
pub const LOOK_ANSWER_TIMEOUT: Duration = Duration::from_millis(200);
/// Pause between two such looks at a job that no call waits for; only a lost mark is looked for.
pub const WAIT_SCAN_DETACHED: Duration = Duration::from_millis(100);
/// How long a job must do nothing but look for input, silently, before its call returns: a
/// full-screen program or a server that listens to the keyboard would otherwise never return.
pub const ACCEPTS_INPUT_QUIET: Duration = Duration::from_secs(1);
/// How long a password prompt must be silent when the kernel does not show its program's state.
pub const HIDDEN_PROMPT_QUIET: Duration = Duration::from_millis(50);
/// How long a job must be stopped before its call returns: a shell with job control notices first.
pub const STOPPED_QUIET: Duration = Duration::from_millis(100);
/// Output kept while no call waits for it, in bytes; older output is dropped.
pub const MAX_BACKLOG_BYTES: usize = 256 << 10;
/// Most shells of one run: the first one and its siblings.
pub const MAX_SESSIONS: usize = 16;
/// Jobs of a session that ended unwatched whose exit status is remembered.
pub const MAX_ENDED_JOBS: usize = 256;
/// Processes in the background that are followed at a time: each costs a descriptor, and one more
/// for the file of its job.
pub const MAX_FOLLOWED_PROCESSES: usize = 256;
/// Most of them that one command leaves.
pub const MAX_FOLLOWED_PROCESSES_OF_COMMAND: usize = 64;
/// Most bytes of answers that wait to be typed: a program that reads none gets no more.
pub const MAX_TERMINAL_ANSWER_BYTES: usize = 256;
/// Most bytes of colours that are kept until the end of a line.
pub const MAX_KEPT_COLOUR_BYTES: usize = 256;
/// Most parameters of a control sequence that are kept.
pub const MAX_SEQUENCE_PARAMETERS: usize = 8;
/// Longest sequence that sets modes, in bytes; longer ones are not looked at.
pub const MAX_MODE_SEQUENCE_BYTES: usize = 32;
/// Bytes at the end of a piece of output among which an unfinished line is looked for.
pub const OPEN_LINE_BYTES: usize = 512;
/// How often output is read before anything else is looked at; a read gives 4 KiB at most.
pub const READS_IN_A_ROW: usize = 32;
/// Most ancestors of this process among which a session of its own kind is looked for.
pub const MAX_ANCESTORS: usize = 64;
/// Longest mark in bytes: a path of the system's greatest length and its frame.
pub const MAX_MARK_BYTES: usize = 8 << 10;
/// Most entries of a program's `io_uring` that are looked at.
pub const MAX_RING_ENTRIES: usize = 4096;
/// Most descriptors of one `poll` that are looked at; the terminal is nearly always among the first.
pub const MAX_POLLED_DESCRIPTORS: usize = 1024;
/// Most bytes of one set of `select`.
pub const MAX_SELECT_SET_BYTES: usize = 1024;
/// Most descriptors of a process among which the other end of a pipe is looked for.
pub const MAX_SEARCHED_DESCRIPTORS: usize = 1024;
/// Deepest nesting of epoll descriptors.
pub const MAX_EPOLL_DEPTH: usize = 4;
/// Largest description of itself a shell may give for a later restart, in bytes.
pub const MAX_SNAPSHOT_BYTES: usize = 8 << 20;
/// Bytes read from the terminal at once.
pub const TERMINAL_READ_BYTES: usize = 64 << 10;
/// How long the last output of a shell that has ended is read, should others go on writing.
pub const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(200);
/// How long a session rests before its environment is saved for a later restart.
pub const SNAPSHOT_IDLE: Duration = Duration::from_millis(50);
/// Largest process id of Linux; other systems have smaller ones.
pub const MAX_PROCESS_ID: i32 = 1 << 22;
/// Shells of a session, one after the other, from which on those are forgotten of whose jobs nothing
/// is left.
pub const MAX_KNOWN_SHELLS: usize = 64;
/// Looks in a row that must find nothing of a session before it is gone.
pub const QUIET_ENDING_LOOKS: usize = 2;
/// Looks in a row at what is left of a session before its end rests: something ends all the time.
pub const MAX_ENDING_LOOKS: usize = 8;
/// Quick looks at what was just adopted, after each look at everything: a process that forks and
/// ends without pause is somewhere else by the time a long look is over.
pub const QUICK_ENDING_LOOKS: usize = 50;
/// Most looks at a group in the foreground until each of its processes has a signal: new ones may
/// be started meanwhile.
pub const MAX_SIGNALLING_LOOKS: usize = 8;
/// How long a new session tries to lock its directory, which a sweep may be looking at.
pub const CLAIM_TIMEOUT: Duration = Duration::from_millis(200);
/// Longest time for which ended processes that lost their parent wait to be collected while
/// commands run: each of them takes one of the process ids there are.
pub const REAP_EVERY: Duration = Duration::from_millis(500);
/// How long `<input>` and `<ctrl>` wait when the call names no timeout.
pub const INPUT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest line a terminal gives a program that reads whole lines, in bytes without the line break;
/// the kernel drops the rest of a longer one.
pub const MAX_TERMINAL_INPUT_LINE: usize = if cfg!(target_os = "linux") {
    4095
} else {
    1023
};
/// Most lines of one input that are typed one by one into a terminal that hides them, each when the
/// job reads again: programs that ask for a password throw away what was typed ahead.
pub const MAX_GATED_LINES: usize = 64;
/// Pause between the signals INT, TERM and KILL when a job is ended.
pub const JOB_LADDER_STEP: Duration = Duration::from_secs(1);
/// How long the shell itself must be in the foreground before it is killed as its own job: between
/// two programs of a script it is that for a moment only.
pub const SHELL_GRACE: Duration = Duration::from_millis(300);
/// Pause between the signals HUP, TERM and KILL when a session ends.
pub const SIGNAL_LADDER_STEP: Duration = Duration::from_secs(1);
/// How long killed processes may take to be gone: many take long on a busy machine.
pub const KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// Most directories of sessions that a start looks at for abandoned ones.
pub const MAX_SWEPT_SESSIONS: usize = 1000;
/// How long a start may take to end what is left of abandoned sessions.
pub const SWEEP_TIMEOUT: Duration = Duration::from_secs(2);
/// Age at which a session's directory without a record was left half made by somebody killed.
pub const UNFINISHED_SESSION_AGE: Duration = Duration::from_secs(60);
/// How long a change that was left half done and cannot be ended is tried again: 30 days.
pub const UNENDED_CHANGE_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Most bytes of a session's record.
pub const MAX_RECORD_BYTES: u64 = 64 << 10;
/// How long a shell may take to end of HUP where processes are not shown, before all are asked for.
pub const UNSEEN_SHELL_GRACE: Duration = Duration::from_millis(200);
/// How exactly the kernel tells when a process was started, and a little more.
pub const PROCESS_CLOCK_TICK: Duration = Duration::from_millis(20);
/// How long `karyi doctor` goes on to the next shell: without `/proc` each takes about a second.
pub const SHELL_CHECKS_TIME: Duration = Duration::from_secs(3);
/// How long one check of `karyi doctor` may take.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long `karyi doctor` waits for a shell to be blocked, to look at it.
pub const LOOK_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a shell may take to tell its version.
pub const VERSION_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a person has to answer a prompt for a value.
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
/// How long the keyring may take to answer when nobody is there to unlock it.
pub const KEYRING_TIMEOUT: Duration = Duration::from_secs(3);
/// How long it may take when the user may have to unlock it first.
pub const KEYRING_UNLOCK_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a keyring that was seen unlocked counts as that.
pub const KEYRING_CHECK_AGE: Duration = Duration::from_secs(1);
/// How long another process may keep the files of the vault locked: it waits for nobody meanwhile,
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
/// Longest passphrase, in bytes.
pub const MAX_PASSPHRASE_BYTES: usize = 4 << 10;
/// How long the writer of values or of a passphrase on a descriptor may take.
pub const VARS_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest note beside a secret, in characters.
pub const MAX_NOTE_CHARS: usize = 300;
/// Replaced or removed values that redaction goes on knowing.
pub const MAX_FORMER_SECRETS: usize = 100;
/// Shortest part of a value, in any form, that is masked wherever it stands, in visible bytes.
pub const REDACTED_RUN_BYTES: usize = 12;
/// Longest escape that redaction reads, such as `&#x1F600;`, in bytes.
pub const MAX_ESCAPE_BYTES: usize = 12;
/// How long nothing is printed before a watcher sees what redaction holds back.
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
/// Bytes before a place where output was cut off that are looked at for the start of a value: eleven
/// visible ones, with colours between them.
pub const MAX_CUT_LOOK_BYTES: usize = 256;
/// Shortest start of a value that is masked where output was cut off, in bytes.
pub const MIN_CUT_SECRET_BYTES: usize = 4;
/// Longest value that is masked in every encoding; longer ones, which are files, only as they are,
/// by line, in JSON and in base64. It keeps the tables small.
pub const MAX_ENCODED_SECRET_BYTES: usize = 8 << 10;
/// Deepest nesting of quotes and substitutions in a script that refers to secrets.
pub const MAX_SCRIPT_DEPTH: usize = 64;

/// Calls that may run at once: more threads than this only fight for the same disk.
pub const MAX_PARALLEL_CALLS: usize = 16;
/// Messages waiting between two parts of the program before the sender has to wait.
pub const CHANNEL_DEPTH: usize = 256;
/// How long a call runs on a terminal before a spinner shows that it is still at work.
pub const SPINNER_DELAY: Duration = Duration::from_millis(400);
/// Pause between two pictures of the spinner.
pub const SPINNER_STEP: Duration = Duration::from_millis(100);
/// Most diagnostics listed in one report; the rest are counted.
pub const MAX_DIAGNOSTICS: usize = 100;
/// How long a prompt waits for a key before it looks at the clock and at the wish to stop.
pub const KEY_WAIT: Duration = Duration::from_millis(100);
/// How long a cancelled run waits for a question to clear the terminal, and for a reader of the
/// report who does not read.
pub const CANCEL_GRACE: Duration = Duration::from_secs(1);
/// No time at all.
pub const NO_GRACE: Duration = Duration::ZERO;
/// Longest line that says what a call is about, in characters.
pub const MAX_TITLE_CHARS: usize = 100;
/// Paths of one call that are compared with those of others; a call with more waits for all of them.
pub const MAX_CLAIMED_PATHS: usize = 64;
/// How many calls a block may run ahead of its first one without a result: their results are held.
pub const MAX_CALLS_AHEAD: usize = 64;
/// What a call costs in memory beyond its text, in bytes.
pub const CALL_OVERHEAD_BYTES: u64 = 512;

/// How long a write waits for another program that holds a database.
pub const DATABASE_BUSY_TIMEOUT: Duration = Duration::from_secs(1);
/// Random bytes that a thread asks of the system at once.
pub const RANDOM_POOL_BYTES: usize = 1 << 10;
/// Prepared statements a database connection keeps.
pub const CACHED_STATEMENTS: usize = 64;
/// Fewest threads of the server that read one database: a slow question holds one up to its deadline.
pub const MIN_DATABASE_READERS: usize = 4;
/// Most threads of the server that read one database, on a machine with as many processors.
pub const MAX_DATABASE_READERS: usize = 8;
/// Questions to a database that wait for a thread before the next caller has to wait.
pub const MAX_WAITING_READS: usize = 8192;
/// Room that is made for the one spelling of an input, in bytes; longer ones take more.
pub const CANONICAL_BYTES: usize = 256;
/// Headers of an answer there is room for at once.
pub const ANSWER_HEADERS: usize = 8;
/// Room that is made for a record of the ledger, in bytes; longer ones take more.
pub const RECORD_BYTES: usize = 1 << 10;
/// Pages of the ledger's log that are taken over into its file together: seldom, since nobody reads
/// it while it grows.
pub const LEDGER_CHECKPOINT_PAGES: u32 = 8192;
/// Memory of the ledger's writer for pages of its index, in KiB: traces come in any order.
pub const LEDGER_CACHE_KIB: i64 = 16 << 10;
/// Writes that wait for the writing thread before the next caller has to wait.
pub const MAX_WAITING_WRITES: usize = 8192;
/// How long the writing thread waits for more when several callers write, at first: a commit costs as
/// much for one write as for a hundred. Each further pause is twice as long.
pub const GATHER_PAUSE: Duration = Duration::from_micros(500);
/// Writes that are worth a commit: nobody waits for more.
pub const GATHERED_WRITES: usize = 128;
/// Most such pauses before a commit.
pub const MAX_GATHER_PAUSES: u32 = 3;
/// Most writes of one commit: more would only make each caller wait longer, and while these are
/// committed others are made ready.
pub const MAX_WRITES_OF_COMMIT: usize = 2048;
/// Most rows `karyi ledger tail` and `show` print.
pub const MAX_LEDGER_ROWS_SHOWN: usize = 10_000;
/// Largest file of a site that is imported, in bytes.
pub const MAX_IMPORT_FILE_BYTES: u64 = 64 << 20;
/// Most files of one import.
pub const MAX_IMPORT_FILES: usize = 10_000;
/// Deepest directory of an import.
pub const MAX_IMPORT_DEPTH: usize = 8;
/// How long an import may take.
pub const IMPORT_TIMEOUT: Duration = Duration::from_secs(600);
/// Characters of a content's text that a search result shows.
pub const SEARCH_BODY_CHARS: usize = 500;
/// Memory for the contents of all sites, read and parsed for searches, and for the index of their words,
/// in bytes; with more contents than that every search asks the database.
pub const LIBRARY_BYTES: usize = 64 << 20;
/// What a content, a word or a place where it stands takes there beside its texts, in bytes: at most.
pub const LIBRARY_CONTENT_BYTES: usize = 768;
/// See [`LIBRARY_CONTENT_BYTES`].
pub const LIBRARY_WORD_BYTES: usize = 64;
/// See [`LIBRARY_CONTENT_BYTES`].
pub const LIBRARY_PLACE_BYTES: usize = 16;
/// How long reading all contents may take; it is given up then, and the database asked.
pub const LIBRARY_READ_TIMEOUT: Duration = Duration::from_secs(30);
/// How many times as long as reading all contents searches in the database must have taken before they
/// are read again.
pub const LIBRARY_PATIENCE: u32 = 4;
/// Longest search in these contents that the thread of a connection does itself, in steps of a few
/// nanoseconds: others are done by a thread that reads.
pub const LIBRARY_STEPS_AT_ONCE: usize = 100_000;
/// Memory for results of searches that are given again while no content changes, in bytes.
pub const RECENT_SEARCH_BYTES: usize = 16 << 20;
/// How long nobody looks again whether another program has changed contents.
pub const RECENT_SEARCH_TRUST: Duration = Duration::from_millis(4);
/// What such a result takes beside its texts, in bytes.
pub const RECENT_SEARCH_OVERHEAD_BYTES: usize = 512;
/// How long an answer can be repeated by its idempotency key, in seconds.
pub const IDEMPOTENCY_SECONDS: i64 = 24 * 3600;
/// Contents `search_content` returns when the call names no limit.
pub const SEARCH_CONTENT_ITEMS: u32 = 10;
/// Most bytes of an event's data, as JSON.
pub const MAX_EVENT_BYTES: usize = 16 << 10;
/// Deepest nesting of an event's data.
pub const MAX_EVENT_DEPTH: usize = 8;
/// How long a call of the server that only reads may take.
pub const READ_CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a call of the server that writes may take.
pub const WRITE_CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long any call of the server may take.
pub const MAX_CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause between two looks for buckets of callers who have stopped calling.
pub const SWEEP_BUCKETS_EVERY: Duration = Duration::from_secs(10);
/// Refused requests of one caller in a second that get a record each; the rest share one.
pub const MAX_REFUSALS_RECORDED: u64 = 100;
/// That second.
pub const FLOOD_WINDOW: Duration = Duration::from_secs(1);
/// Longest token, in bytes.
pub const MAX_TOKEN_BYTES: usize = 16 << 10;
/// How far the clocks of issuer and server may be apart.
pub const TOKEN_LEEWAY: Duration = Duration::from_secs(60);
/// Longest life of a token: a stolen one is of little use.
pub const MAX_TOKEN_LIFE: Duration = Duration::from_secs(900);
/// Shortest secret that signs tokens, in bytes: as long as the hash.
pub const MIN_TOKEN_SECRET_BYTES: usize = 32;
/// Shortest internal key, in bytes.
pub const MIN_INTERNAL_KEY_BYTES: usize = 16;
/// Longest identifier a caller may send, in characters.
pub const MAX_ID_CHARS: usize = 100;
/// What stands around the contents in the result of a search, in bytes, about.
pub const FIELDS_AROUND_BYTES: usize = 64;
/// Room that is made for the fields of a result as text, in bytes; longer ones take more.
pub const FIELDS_BYTES: usize = 2 << 10;
/// Room that is made for an answer beside the output of its tool, in bytes.
pub const ENVELOPE_BYTES: usize = 1 << 10;
/// Longest error message the ledger keeps, in bytes.
pub const MAX_RECORDED_ERROR_BYTES: usize = 1 << 10;
/// How long after its deadline a reading call may still give its answer or its own error.
pub const READ_GRACE: Duration = Duration::from_millis(250);
/// How long after its deadline a write may take to be committed: it was in time.
pub const WRITE_GRACE: Duration = Duration::from_secs(2);
/// Largest number a header may hold: six digits, so that a pattern can say it.
pub const MAX_HEADER_NUMBER: u64 = 999_999;
/// Largest body of a request, in bytes.
pub const MAX_BODY_BYTES: usize = 1 << 20;
/// How long a body may take to arrive.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the head of a request may take to arrive; an idle connection is closed then.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest head of a request, in bytes.
pub const MAX_HEAD_BYTES: usize = 64 << 10;
/// Most connections at a time.
pub const MAX_CONNECTIONS: usize = 4096;
/// Most calls under way at a time.
pub const MAX_CALLS_IN_FLIGHT: usize = 1024;
/// How long the server waits for requests under way when it ends.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(35);
/// Pause after a connection that could not be accepted.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Log lines that wait to be written, in bytes; further ones are lost rather than waited for.
pub const MAX_WAITING_LOG_BYTES: usize = 4 << 20;
/// How long the lines of the log gather before they are written.
pub const LOG_PAUSE: Duration = Duration::from_millis(5);
/// Spans that wait to be sent to a collector; further ones are lost rather than waited for.
pub const MAX_WAITING_SPANS: usize = 8 << 10;
/// Most spans of one request to a collector.
pub const MAX_SPANS_OF_EXPORT: usize = 512;
/// How long spans gather before they are sent.
pub const SPANS_PAUSE: Duration = Duration::from_millis(500);
/// How long a collector may take to answer.
pub const SPANS_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the end of the server waits for the last spans to be sent.
pub const SPANS_FLUSH_TIMEOUT: Duration = Duration::from_secs(6);
/// How long `/readyz` trusts databases that worked: asking writes to the ledger.
pub const PROBE_EVERY: Duration = Duration::from_secs(1);
/// Pause between two looks whether the keys of tokens were changed.
pub const KEYS_POLL: Duration = Duration::from_secs(1);
/// Most attempts of one call by the client.
pub const MAX_ATTEMPTS: u32 = 3;
/// Half of the longest pause before the second attempt.
pub const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// Longest pause between two attempts that the server did not ask for.
pub const MAX_RETRY_PAUSE: Duration = Duration::from_secs(10);
/// Largest answer the client reads, in bytes.
pub const MAX_ANSWER_BYTES: usize = 64 << 20;

/// Tools on one page of a list for an MCP client: more than there are, so that no client has to ask
/// twice.
pub const TOOLS_PER_PAGE: usize = 100;
/// Longest message of an MCP client on standard input, in bytes.
pub const MAX_MCP_LINE_BYTES: usize = 16 << 20;
/// Messages of an MCP client that wait to be read; then standard input is left alone.
pub const MAX_MCP_MESSAGES: usize = 16;
/// Calls of one MCP connection under way, those that wait for their turn among them.
pub const MAX_MCP_CALLS: usize = 64;
/// Requests of one MCP connection under way, of any kind.
pub const MAX_MCP_REQUESTS: usize = 1024;
/// How long the answer to a line that is no message waits for an MCP client to read; then the client
/// is gone.
pub const MCP_REFUSAL_WAIT: Duration = Duration::from_secs(60);
/// How long a command of an MCP client runs before it becomes a job, when neither the call nor the
/// user says: many clients give up on a call after a minute.
pub const MCP_COMMAND_TIMEOUT: Duration = Duration::from_secs(50);
/// Pause between two notifications of progress.
pub const PROGRESS_STEP: Duration = Duration::from_secs(1);
/// Most characters of a notification of progress.
pub const MAX_PROGRESS_CHARS: usize = 200;
/// How long calls under way may still end by themselves when an MCP client has gone; clients send a
/// signal after two seconds.
pub const MCP_DRAIN: Duration = Duration::from_millis(500);
/// Shells the server keeps for callers who name them.
pub const MAX_KEPT_SHELLS: usize = 64;
/// How long such a shell stays after its last call.
pub const KEPT_SHELL_IDLE: Duration = Duration::from_secs(900);
/// Sessions of MCP clients with `initialize` that the server keeps.
pub const MAX_MCP_SESSIONS: usize = 1024;
/// Those of one principal among them, so that a client that begins and never ends them leaves room.
pub const MAX_MCP_SESSIONS_EACH: usize = 256;
/// How long such a session stays without a message.
pub const MCP_SESSION_IDLE: Duration = Duration::from_secs(300);
/// When a caller who has too many may try again: some will have ended by then.
pub const MCP_SESSION_RETRY: Duration = Duration::from_secs(30);
/// Pages for values that wait for a call to be made again.
pub const MAX_WAITING_PAGES: usize = 16;
/// How long a page for a value stands after its answer, so that a browser shows its last words.
pub const PAGE_GRACE: Duration = Duration::from_millis(200);
/// Largest answer of a page for a value: every byte of the longest value as three.
pub const MAX_PAGE_BODY_BYTES: usize = 3 * MAX_SECRET_BYTES + 4096;
/// Pause between two presses of Ctrl+C while the command of a cancelled call has not begun.
pub const INTERRUPT_PAUSE: Duration = Duration::from_millis(20);
