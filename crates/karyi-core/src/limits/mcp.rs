//! The Model Context Protocol.

use std::time::Duration;

use super::MAX_SECRET_BYTES;

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
/// Time the answer to a line that is no message waits for an MCP client to read; then the client
/// is gone.
pub const MCP_REFUSAL_WAIT: Duration = Duration::from_secs(60);
/// Time a command of an MCP client runs before it becomes a job, when neither the call nor the
/// user says: many clients give up on a call after a minute.
pub const MCP_COMMAND_TIMEOUT: Duration = Duration::from_secs(50);
/// Pause between two notifications of progress.
pub const PROGRESS_STEP: Duration = Duration::from_secs(1);
/// Most characters of a notification of progress.
pub const MAX_PROGRESS_CHARS: usize = 200;
/// Time calls under way may still end by themselves when an MCP client has gone; clients send a
/// signal after two seconds.
pub const MCP_DRAIN: Duration = Duration::from_millis(500);
/// Shells the server keeps for callers who name them.
pub const MAX_KEPT_SHELLS: usize = 64;
/// Time such a shell stays after its last call.
pub const KEPT_SHELL_IDLE: Duration = Duration::from_secs(900);
/// Sessions of MCP clients with `initialize` that the server keeps.
pub const MAX_MCP_SESSIONS: usize = 1024;
/// Those of one principal among them, so that a client that begins and never ends them leaves room.
pub const MAX_MCP_SESSIONS_EACH: usize = 256;
/// Time such a session stays without a message.
pub const MCP_SESSION_IDLE: Duration = Duration::from_secs(300);
/// Time the answer to a call in such a session can be asked for again by a client that comes back.
pub const REPLAY_TIME: Duration = Duration::from_secs(60);
/// Most such answers.
pub const MAX_REPLAYED_CALLS: usize = 1024;
/// Most bytes of them, as text; the oldest go first.
pub const MAX_REPLAYED_BYTES: usize = 32 << 20;
/// When a caller who has too many may try again: some will have ended by then.
pub const MCP_SESSION_RETRY: Duration = Duration::from_secs(30);
/// Pages for values that wait for a call to be made again.
pub const MAX_WAITING_PAGES: usize = 16;
/// Time a page for a value stands after its answer, so that a browser shows its last words.
pub const PAGE_GRACE: Duration = Duration::from_millis(200);
/// Largest answer of a page for a value: every byte of the longest value as three.
pub const MAX_PAGE_BODY_BYTES: usize = 3 * MAX_SECRET_BYTES + 4096;
/// Pause between two presses of Ctrl+C while the command of a cancelled call has not begun.
pub const INTERRUPT_PAUSE: Duration = Duration::from_millis(20);
