//! Limits of reading, editing, the journal and searching.

use std::time::Duration;

/// Bytes of one file or of the lines of a search shown by `read` when the call names no `max_bytes`.
pub const READ_SHOWN_BYTES: usize = 60 << 10;
/// Bytes of one file that `read` loads then: long lines are cut before they are shown.
pub const READ_FILE_BYTES: u64 = 256 << 10;
/// Lines of one file shown by `read` when the call names none.
pub const READ_LINES: usize = 2000;
/// Bytes of one line shown by `read`: of longer ones the start, or what stands around a match.
pub const READ_LINE_BYTES: usize = 2000;
/// Most bytes of one file that `read` shows, whatever the call asks for.
pub const MAX_READ_BYTES: u64 = 64 << 20;
/// Largest file `edit` loads: matching works on the whole text in memory.
pub const MAX_EDIT_FILE_BYTES: u64 = 256 << 20;
/// Largest index of a git repository that is looked at.
pub const MAX_GIT_INDEX_BYTES: u64 = 64 << 20;
/// Most bytes one `edit` holds in memory, old and new texts of all its files together.
pub const MAX_EDIT_BYTES: u64 = 1 << 30;
/// Most bytes one undo holds in memory, of all files before and after. Twice as many, since an edit counts
/// characters of UTF-16 once: what one edit did can always be taken back.
pub const MAX_UNDO_BYTES: u64 = 2 << 30;
/// Largest file that `search` reads whole, to tell its encoding; larger ones are searched as they are read.
pub const SEARCH_WHOLE_BYTES: u64 = 4 << 20;
/// Bytes that `search` asks for at once, so that most files need one question.
pub const SEARCH_READ_BYTES: usize = 64 << 10;
/// Longest path that a file may get: what Linux takes in one call.
pub const MAX_PATH_BYTES: usize = 4095;
/// Most bytes of the names of a file's attributes, and of the value of one: what Linux allows.
pub const MAX_ATTRIBUTE_BYTES: usize = 64 << 10;
/// Bytes from the start of a file that are searched for the passage closest to a missing text: each takes tens of
/// nanoseconds.
pub const CLOSEST_TEXT_BYTES: usize = 8 << 20;
/// Lines of them: each takes hundreds of nanoseconds and tens of bytes.
pub const CLOSEST_TEXT_LINES: usize = 500_000;
/// Positions checked for text that starts and ends like a missing one, which an earlier edit may have replaced.
pub const MAX_RIVAL_PLACES: usize = 1000;
/// Bytes after such a position that are searched for its end.
pub const RIVAL_REACH_BYTES: usize = 64 << 10;
/// Time an edit waits for other edits of the same files: each takes a moment.
pub const EDIT_LOCK_TIMEOUT: Duration = Duration::from_secs(60);
/// First pause between two attempts to lock the files.
pub const EDIT_LOCK_PAUSE_MIN: Duration = Duration::from_micros(200);
/// Longest pause between two such attempts.
pub const EDIT_LOCK_PAUSE_MAX: Duration = Duration::from_millis(20);
/// Most bytes of the record of a change under way: it names each file a few times.
pub const MAX_WAL_RECORD_BYTES: u64 = 256 << 20;
/// Recovered files listed in an error.
pub const MAX_LISTED_RECOVERED: usize = 10;
/// Bytes of compressed contents in the journal.
pub const JOURNAL_BYTES: u64 = 1 << 30;
/// Age of the oldest change that can be undone.
pub const JOURNAL_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Most changes in the journal.
pub const JOURNAL_ENTRIES: usize = 100_000;
/// Largest new content in the journal, for displaying a change; an undo needs only the old one.
pub const JOURNAL_NEW_BYTES: u64 = 4 << 20;
/// Largest old content that the journal syncs to the disk with its change: a large file would take as long
/// again, and the disk writes it within a minute anyway.
pub const JOURNAL_SYNCED_BYTES: u64 = 8 << 20;
/// Size of old content from which its journal entry is prepared in a thread while the change is computed; a failed
/// edit wastes the work.
pub const PREFETCH_BYTES: u64 = 8 << 20;
/// Bytes of new contents after which the journal is pruned.
pub const JOURNAL_PRUNE_BYTES: u64 = 64 << 20;
/// Interval between prunings when little was added: a pruning takes microseconds per change.
pub const JOURNAL_CHECK_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Age below which an unreferenced content may belong to a change under way: writing its record takes seconds, or
/// minutes for a large file on a slow disk.
pub const JOURNAL_UNCLAIMED_AGE: Duration = Duration::from_secs(10 * 60);
/// Bytes from the end of the journal that are searched first for its last change.
pub const JOURNAL_TAIL_BYTES: u64 = 64 << 10;
/// Most lines of a file's diff in a result.
pub const MAX_DIFF_LINES: usize = 200;
/// Most bytes of a file's diff in a result.
pub const MAX_DIFF_BYTES: usize = 16 << 10;
/// Most bytes of a file's diff that a person asked to see.
pub const MAX_WHOLE_DIFF_BYTES: usize = 16 << 20;
/// Longest line of a diff, in bytes; longer ones are cut and marked.
pub const MAX_DIFF_LINE_BYTES: usize = 500;
/// Most lines of a diff that are compared pairwise; beyond that lines are compared in order, since the time grows with
/// the square.
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
/// Names that a missing name is compared with for a suggestion.
pub const MAX_COMPARED_NAMES: usize = 10_000;
/// Matches `search` returns when the call names no `max`.
pub const SEARCH_MATCHES: usize = 200;
/// Most matches `search` returns, whatever the call asks for.
pub const MAX_SEARCH_MATCHES: usize = 10_000;
/// Most lines of context around a match.
pub const MAX_SEARCH_CONTEXT: usize = 50;
/// Memory for one line of a searched file; files with longer lines are skipped.
pub const SEARCH_LINE_BUFFER_BYTES: usize = 64 << 20;
/// Most threads of one search: beyond this the disk is the bottleneck.
pub const MAX_SEARCH_THREADS: usize = 12;
/// Memory a pattern may need when it is built; one that needs more would take seconds.
pub const MAX_PATTERN_BYTES: usize = 10 << 20;
/// Age up to which recovery of an incomplete change is retried: 30 days.
pub const INCOMPLETE_CHANGE_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Bytes of UTF-8 that `read_file` shows of a file, unless the settings say otherwise.
pub const READ_FILE_TOOL_BYTES: u64 = 256 << 10;
/// Bytes of the content of one `write_file`, unless the settings say otherwise.
pub const WRITE_FILE_TOOL_BYTES: u64 = 512 << 10;
/// Largest TODO file: tens of thousands of entries.
pub const MAX_TODO_FILE_BYTES: usize = 16 << 20;
/// Largest file of contacts: thousands of them.
pub const MAX_CONTACTS_BYTES: usize = 4 << 20;
/// Longest text of one entry of a TODO file in bytes: a person reads it as one line.
pub const MAX_TODO_TEXT_BYTES: usize = 8 << 10;
/// Entries that a model is shown to find the one that a text means: the nearest of more.
pub const MAX_ASKED_ENTRIES: usize = 200;
/// Entries that a model is shown to find duplicates of a new one.
pub const MAX_ASKED_DUPLICATES: usize = 50;
/// Contacts that a model is shown for one entry.
pub const MAX_ASKED_CONTACTS: usize = 150;
/// Warnings that are taken from one answer of a model.
pub const MAX_REPLY_WARNINGS: usize = 10;
/// Entries listed when a text may mean several.
pub const MAX_TODO_CANDIDATES: usize = 20;
/// Steps of a plan for a task, when the call names no number.
pub const TASK_PLAN_STEPS: u32 = 6;
/// Most characters of one text in such a plan.
pub const TASK_PLAN_TEXT_CHARS: u32 = 500;
/// Most risks, and most questions, in such a plan.
pub const TASK_PLAN_NOTES: u32 = 10;
/// Most tokens of such a plan.
pub const TASK_PLAN_TOKENS: u64 = 4096;
