//! Limits of the Model Context Protocol server.

use std::time::Duration;

use super::MAX_SECRET_BYTES;

/// Tools on one page of a list for an MCP client: more than there are, so that no client has to ask
/// twice.
pub const TOOLS_PER_PAGE: usize = 100;
/// Longest message of an MCP client on standard input, in bytes.
pub const MAX_MCP_LINE_BYTES: usize = 16 << 20;
/// Messages of an MCP client that wait to be processed; then standard input is not read.
pub const MAX_MCP_MESSAGES: usize = 16;
/// Calls of one MCP connection under way, those that wait for their turn among them.
pub const MAX_MCP_CALLS: usize = 64;
/// Requests of one MCP connection under way, of any kind.
pub const MAX_MCP_REQUESTS: usize = 1024;
/// Time the reply to a malformed line waits for the client to read it; then the client is gone.
pub const MCP_REFUSAL_WAIT: Duration = Duration::from_secs(60);
/// Pause between two notifications of progress.
pub const PROGRESS_STEP: Duration = Duration::from_secs(1);
/// Most characters of a notification of progress.
pub const MAX_PROGRESS_CHARS: usize = 200;
/// Time for calls under way to end after an MCP client has gone; clients send a signal after two seconds.
pub const MCP_DRAIN: Duration = Duration::from_millis(500);
/// Named shells that the server retains.
pub const MAX_NAMED_SHELLS: usize = 64;
/// Idle time after which a named shell is closed.
pub const NAMED_SHELL_IDLE: Duration = Duration::from_secs(900);
/// Sessions of MCP clients that the server retains.
pub const MAX_MCP_SESSIONS: usize = 1024;
/// Sessions of one principal among them, so that a client that never ends its sessions leaves room.
pub const MAX_MCP_SESSIONS_EACH: usize = 256;
/// Idle time after which such a session ends.
pub const MCP_SESSION_IDLE: Duration = Duration::from_secs(300);
/// Time for which a reconnecting client can fetch the result of a call.
pub const REPLAY_TIME: Duration = Duration::from_secs(60);
/// Most results retained for that.
pub const MAX_REPLAYED_CALLS: usize = 1024;
/// Most bytes of them, as text; the oldest are dropped first.
pub const MAX_REPLAYED_BYTES: usize = 32 << 20;
/// Retry delay for a caller with too many sessions.
pub const MCP_SESSION_RETRY: Duration = Duration::from_secs(30);
/// Pages for values that wait for a call to be made again.
pub const MAX_WAITING_PAGES: usize = 16;
/// Time a page for a value stays available after its reply, so that a browser shows its final message.
pub const PAGE_GRACE: Duration = Duration::from_millis(200);
/// Largest form data of a page for a value: each byte of the longest value percent-encoded.
pub const MAX_PAGE_BODY_BYTES: usize = 3 * MAX_SECRET_BYTES + 4096;
/// Pause between two presses of Ctrl+C while the command of a cancelled call has not begun.
pub const INTERRUPT_PAUSE: Duration = Duration::from_millis(20);
