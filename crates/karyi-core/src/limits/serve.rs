//! Limits of the HTTP server, its databases, and its client.

use std::time::Duration;

/// Time a write waits for another program that holds a database.
pub const DATABASE_BUSY_TIMEOUT: Duration = Duration::from_secs(1);
/// Random bytes that a thread asks of the system at once.
pub const RANDOM_POOL_BYTES: usize = 1 << 10;
/// Prepared statements a database connection keeps.
pub const CACHED_STATEMENTS: usize = 64;
/// Fewest reader threads of a database: a slow query occupies one until its deadline.
pub const MIN_DATABASE_READERS: usize = 4;
/// Most reader threads of a database, on a machine with as many processors.
pub const MAX_DATABASE_READERS: usize = 8;
/// Queries that wait for a reader thread before callers block.
pub const MAX_WAITING_READS: usize = 8192;
/// Initial capacity for the canonical form of an input, in bytes.
pub const CANONICAL_BYTES: usize = 256;
/// Initial capacity for the headers of a response.
pub const ANSWER_HEADERS: usize = 8;
/// Initial capacity for a record of the ledger, in bytes.
pub const RECORD_BYTES: usize = 1 << 10;
/// Pages of the ledger's WAL per checkpoint: rare, since the WAL is not read while it grows.
pub const LEDGER_CHECKPOINT_PAGES: u32 = 8192;
/// Memory of the ledger's writer for pages of its index, in KiB: traces come in any order.
pub const LEDGER_CACHE_KIB: i64 = 16 << 10;
/// Bytes of records that wait in memory while the ledger cannot be written. Beyond that records of read-only calls are
/// lost, and those of writing calls still wait.
pub const MAX_LATE_RECORD_BYTES: usize = 32 << 20;
/// Time for writing the waiting records at shutdown.
pub const LATE_RECORDS_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause between two such attempts.
pub const LATE_RECORDS_PAUSE: Duration = Duration::from_millis(100);
/// Shortest wait for the record of a call, also when its caller has no time left.
pub const RECORD_GRACE: Duration = Duration::from_millis(200);
/// Writes that wait for the writer thread before callers block.
pub const MAX_WAITING_WRITES: usize = 8192;
/// First pause of the writer thread to collect a batch: a commit costs as much for one write as for a hundred. Each
/// further pause is twice as long.
pub const GATHER_PAUSE: Duration = Duration::from_micros(500);
/// Batch size at which the writer commits without a further pause.
pub const GATHERED_WRITES: usize = 128;
/// Fraction of the waiting writes that must arrive in a pause to start another one.
pub const GATHER_SHARE: usize = 16;
/// Most such pauses before a commit.
pub const MAX_GATHER_PAUSES: u32 = 3;
/// Most writes of one commit: more would delay each caller, and the next batch is prepared meanwhile.
pub const MAX_WRITES_OF_COMMIT: usize = 2048;
/// Most rows `karyi ledger tail` and `show` print.
pub const MAX_LEDGER_ROWS_SHOWN: usize = 10_000;
/// Largest file of a site that is imported, in bytes.
pub const MAX_IMPORT_FILE_BYTES: u64 = 64 << 20;
/// Most files of one import.
pub const MAX_IMPORT_FILES: usize = 10_000;
/// Deepest directory of an import.
pub const MAX_IMPORT_DEPTH: usize = 8;
/// Longest identifier of a tenant or a site that is imported, in characters.
pub const MAX_SITE_ID_CHARS: usize = 50;
/// Longest name of a site or a character that is imported, in characters.
pub const MAX_NAME_CHARS: usize = 100;
/// Longest title of a content that is imported, in characters.
pub const MAX_CONTENT_TITLE_CHARS: usize = 500;
/// Time an import may take.
pub const IMPORT_TIMEOUT: Duration = Duration::from_secs(600);
/// Characters of a content's text that a search result shows.
pub const SEARCH_BODY_CHARS: usize = 500;
/// Time an answer can be repeated by its idempotency key, in seconds.
pub const IDEMPOTENCY_SECONDS: i64 = 24 * 3600;
/// Contents `search_content` returns when the call names no limit.
pub const SEARCH_CONTENT_ITEMS: u32 = 10;
/// Most bytes of an event's data, as JSON.
pub const MAX_EVENT_BYTES: usize = 16 << 10;
/// Deepest nesting of an event's data.
pub const MAX_EVENT_DEPTH: usize = 8;
/// Time a call of the server that only reads may take.
pub const READ_CALL_TIMEOUT: Duration = Duration::from_secs(2);
/// Time a call of the server that writes may take.
pub const WRITE_CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// Time any call of the server may take.
pub const MAX_CALL_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval between removals of unused rate-limit buckets.
pub const SWEEP_BUCKETS_EVERY: Duration = Duration::from_secs(10);
/// Refused requests of one caller in a second that get a record each; the rest share one.
pub const MAX_REFUSALS_RECORDED: u64 = 100;
/// Window of that count.
pub const FLOOD_WINDOW: Duration = Duration::from_secs(1);
/// Longest token, in bytes.
pub const MAX_TOKEN_BYTES: usize = 16 << 10;
/// Largest allowed difference between the clocks of issuer and server.
pub const TOKEN_LEEWAY: Duration = Duration::from_secs(60);
/// Longest life of a token: a stolen one is of little use.
pub const MAX_TOKEN_LIFE: Duration = Duration::from_secs(900);
/// Shortest secret that signs tokens, in bytes: as long as the hash.
pub const MIN_TOKEN_SECRET_BYTES: usize = 32;
/// Shortest internal key, in bytes.
pub const MIN_INTERNAL_KEY_BYTES: usize = 16;
/// Most of the body of a refused request that is read and dropped, so that its connection can stay.
pub const REFUSED_BODY_BYTES: usize = 64 << 10;
/// Longest wait for the rest of such a body.
pub const REFUSED_BODY_WAIT: Duration = Duration::from_millis(100);
/// Longest identifier a caller may send, in characters.
pub const MAX_ID_CHARS: usize = 100;
/// Room that is made for the fields of a result as text, in bytes; longer ones take more.
pub const FIELDS_BYTES: usize = 2 << 10;
/// Room that is made for an answer beside the output of its tool, in bytes.
pub const ENVELOPE_BYTES: usize = 1 << 10;
/// Longest error message the ledger keeps, in bytes.
pub const MAX_RECORDED_ERROR_BYTES: usize = 1 << 10;
/// Time after its deadline in which a reading call may still return its result or error.
pub const READ_GRACE: Duration = Duration::from_millis(250);
/// Time after its deadline in which a started write may be committed.
pub const WRITE_GRACE: Duration = Duration::from_secs(2);
/// Largest number a header may hold: six digits, so that a pattern can say it.
pub const MAX_HEADER_NUMBER: u64 = 999_999;
/// Largest body of a request, in bytes.
pub const MAX_BODY_BYTES: usize = 1 << 20;
/// Time a body may take to arrive.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Time the head of a request may take to arrive; an idle connection is closed then.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Time an answer may wait to be taken by a client who does not read.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The same when the server ends.
pub const LAST_ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between checks of the connections.
pub const CONNECTION_TICK: Duration = Duration::from_secs(1);
/// Largest head of a request, in bytes.
pub const MAX_HEAD_BYTES: usize = 64 << 10;
/// Most connections at a time.
pub const MAX_CONNECTIONS: usize = 4096;
/// Most calls under way at a time.
pub const MAX_CALLS_IN_FLIGHT: usize = 1024;
/// Time the server waits for requests under way when it ends.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(35);
/// Longest wait for the last lines of the log when the server ends.
pub const LOG_END_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause after a connection that could not be accepted.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Bytes of log lines that wait to be written; further lines are dropped.
pub const MAX_WAITING_LOG_BYTES: usize = 4 << 20;
/// Time for which log lines are batched.
pub const LOG_PAUSE: Duration = Duration::from_millis(5);
/// Spans that wait to be sent to a collector; further ones are dropped.
pub const MAX_WAITING_SPANS: usize = 8 << 10;
/// Most spans of one request to a collector.
pub const MAX_SPANS_OF_EXPORT: usize = 512;
/// Time for which spans are batched.
pub const SPANS_PAUSE: Duration = Duration::from_millis(500);
/// Time a collector may take to answer.
pub const SPANS_TIMEOUT: Duration = Duration::from_secs(5);
/// Time the end of the server waits for the last spans to be sent.
pub const SPANS_FLUSH_TIMEOUT: Duration = Duration::from_secs(6);
/// Time for which `/readyz` trusts a successful database check: the check writes to the ledger.
pub const PROBE_EVERY: Duration = Duration::from_secs(1);
/// Interval between checks for changed token keys.
pub const KEYS_POLL: Duration = Duration::from_secs(1);
/// Most attempts of one call by the client.
pub const MAX_ATTEMPTS: u32 = 3;
/// Extra time to wait for an answer after the deadline of its tool.
pub const ANSWER_GRACE: Duration = Duration::from_secs(1);
/// Half of the longest pause before the second attempt.
pub const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// Longest pause between two attempts that the server did not ask for.
pub const MAX_RETRY_PAUSE: Duration = Duration::from_secs(10);
/// Largest answer the client reads, in bytes.
pub const MAX_ANSWER_BYTES: usize = 64 << 20;
