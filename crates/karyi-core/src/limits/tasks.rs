//! Limits of a supervisor's tasks, triggers, questions, history and memory.

use std::time::Duration;

/// Longest identifier of a task, a trigger or a question, in characters.
pub const MAX_TASK_ID_CHARS: usize = 64;
/// Longest identifier of a trigger: its runs add their number.
pub const MAX_TRIGGER_ID_CHARS: usize = 40;
/// Longest prompt, message, question or note, in bytes: a person reads it, and every session pays for it.
pub const MAX_TASK_TEXT_BYTES: usize = 32 << 10;
/// Bytes of a task's result that are kept.
pub const MAX_TASK_RESULT_BYTES: usize = 256 << 10;
/// Largest file of a state directory: a plan of 200 tasks with the longest prompts, each byte escaped.
pub const MAX_STATE_FILE_BYTES: u64 = 48 << 20;
/// Most tasks and triggers that one session hands over.
pub const MAX_STAGED_ITEMS: usize = 200;
/// Highest priority of a task.
pub const MAX_TASK_PRIORITY: u8 = 10;
/// Priority of a task that names none.
pub const DEFAULT_TASK_PRIORITY: u8 = 5;
/// Longest time limit of a task.
pub const MAX_TASK_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
/// Number of times that a task runs: once more after a failure.
pub const MAX_TASK_ATTEMPTS: u32 = 2;
/// Pause before a failed task runs again.
pub const TASK_RETRY_PAUSE: Duration = Duration::from_secs(60);
/// Time after which a waiting task gains one step of priority, where aging is on.
pub const TASK_AGING_STEP: Duration = Duration::from_secs(60);
/// Most steps of priority that a task gains by waiting.
pub const MAX_TASK_AGING: i64 = 5;
/// Longest interval and cooldown of a trigger.
pub const MAX_TRIGGER_INTERVAL: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// Deepest nesting of a condition.
pub const MAX_CONDITION_DEPTH: usize = 16;
/// Most conditions inside one condition.
pub const MAX_CONDITION_PARTS: usize = 100;
/// Most files that one watched pattern covers.
pub const MAX_WATCHED_FILES: usize = 10_000;
/// Shortest time between two questions about conditions to a model.
pub const CONDITION_QUESTION_PAUSE: Duration = Duration::from_secs(5 * 60);
/// Time that a result is kept, longer while a trigger names it.
pub const TASK_RESULT_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Longest time that a question to the user waits.
pub const MAX_QUESTION_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Time that a question waits when it names none.
pub const DEFAULT_QUESTION_TIMEOUT: Duration = Duration::from_secs(60 * 60);
/// Most options of a question.
pub const MAX_QUESTION_OPTIONS: usize = 20;
/// Characters of a result in the event that reports it.
pub const MAX_EVENT_CHARS: usize = 2000;
/// Characters of a prompt in a list of tasks.
pub const MAX_TASK_SUMMARY_CHARS: usize = 100;
/// Characters of an earlier result that a task is told.
pub const MAX_UPSTREAM_CHARS: usize = 8000;
/// Most messages of one look into the history.
pub const MAX_HISTORY_MESSAGES: usize = 1000;
/// Size of a history file from which on a new one begins.
pub const MAX_HISTORY_FILE_BYTES: u64 = 64 << 20;
/// Bytes from the end of the history in which a message is looked up before it is added again.
pub const HISTORY_TAIL_BYTES: u64 = 4 << 20;
/// Bytes of the history that are read at once, from its end: more than 20 usual messages.
pub const HISTORY_BLOCK_BYTES: u64 = 64 << 10;
/// Size of the log from which on a new file begins.
pub const MAX_TASK_LOG_BYTES: u64 = 10 << 20;
/// Bytes from the end of the log in which the last failure of a model is looked up.
pub const TASK_LOG_TAIL_BYTES: u64 = 64 << 10;
/// Lines of the log that are shown before those that follow.
pub const TASK_LOG_LINES: usize = 20;
/// Pause between two looks at a log that is followed: a person reads it.
pub const TASK_LOG_STEP: Duration = Duration::from_millis(200);
/// Most files of the log.
pub const MAX_TASK_LOG_FILES: usize = 10;
/// Longest passage of memory, in characters.
pub const MAX_PASSAGE_CHARS: usize = 1000;
/// Characters of a passage around the best match.
pub const MAX_SNIPPET_CHARS: usize = 300;
/// Most different words of a query; the others are ignored.
pub const MAX_QUERY_WORDS: usize = 64;
/// Most hits of one search.
pub const MAX_MEMORY_HITS: usize = 50;
/// Largest file of memory that is searched.
pub const MAX_MEMORY_FILE_BYTES: u64 = 64 << 20;
/// Longest name of a note, without its date.
pub const MAX_NOTE_SLUG_CHARS: usize = 32;
/// Time that a change of the state directory waits for another one; each takes milliseconds.
pub const STATE_LOCK_WAIT: Duration = Duration::from_secs(10);
/// Pause between two looks whether the other change is done.
pub const STATE_LOCK_STEP: Duration = Duration::from_millis(1);
/// Age below which the time of a directory does not tell whether it changed: clocks of file systems are coarse.
pub const FOLDER_TIME_GRAIN: Duration = Duration::from_millis(50);
/// Time after which a directory that was changed here is read again: files that were put there by hand meanwhile are found
/// then.
pub const FOLDER_STALE_TIME: Duration = Duration::from_secs(1);
/// Longest time of a session of the Teller.
pub const TELLER_TIMEOUT: Duration = Duration::from_secs(180);
/// Longest time of a Planner, where its task names none.
pub const PLANNER_TIMEOUT: Duration = Duration::from_secs(600);
/// Longest time of a Worker, where its task names none.
pub const WORKER_TIMEOUT: Duration = Duration::from_secs(600);
/// Longest time of a question about conditions.
pub const VERDICT_TIMEOUT: Duration = Duration::from_secs(120);
/// Most requests to the model in a session of the Teller: it answers and hands work over.
pub const TELLER_STEPS: u64 = 8;
/// Most requests to the model of a Planner.
pub const PLANNER_STEPS: u64 = 20;
/// Most requests to the model of a Worker.
pub const WORKER_STEPS: u64 = 60;
/// Number of Workers at a time.
pub const WORKERS: usize = 3;
/// Tokens that a supervisor uses on a day.
pub const MAX_TOKENS_PER_DAY: u64 = 2_000_000;
/// Time between two looks of a supervisor that nothing wakes.
pub const SUPERVISOR_TICK: Duration = Duration::from_secs(1);
/// Time that the Teller waits for another message: people send several at once.
pub const INPUT_DEBOUNCE: Duration = Duration::from_millis(800);
/// Pause after a changed file woke a supervisor: files often change several at once.
pub const FILE_WAKE_PAUSE: Duration = Duration::from_millis(10);
/// First pause of the Teller after its model failed; it doubles each time.
pub const MODEL_PAUSE: Duration = Duration::from_secs(5);
/// Longest pause of the Teller after its model failed.
pub const MAX_MODEL_PAUSE: Duration = Duration::from_secs(5 * 60);
/// Most messages of the history that the Teller is told.
pub const MAX_TOLD_MESSAGES: usize = 20;
/// Most tokens of the history that the Teller is told, of four ASCII characters or one other.
pub const MAX_TOLD_TOKENS: usize = 4096;
/// Most passages of memory that the Teller is told.
pub const MAX_TOLD_PASSAGES: usize = 5;
/// Most open tasks that the Teller is told.
pub const MAX_TOLD_TASKS: usize = 20;
/// Time between two removals of old results.
pub const PRUNE_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);
