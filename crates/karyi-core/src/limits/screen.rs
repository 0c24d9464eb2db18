//! Limits of the screen of a conversation.

use std::time::Duration;

/// Shortest time between two frames: 30 a second.
pub const FRAME_INTERVAL: Duration = Duration::from_millis(33);
/// Pause after a resize before the next frame: tmux tells a program of its new size up to 250 ms after it has wrapped its
/// lines anew.
pub const RESIZE_PAUSE: Duration = Duration::from_millis(300);
/// Time after which an escape byte without a sequence is the key itself: sequences arrive in one piece, but over slow
/// connections.
pub const ESCAPE_WAIT: Duration = Duration::from_millis(40);
/// Longest paste; more is dropped, since no model takes it.
pub const MAX_PASTE_BYTES: usize = 8 << 20;
/// Lines from which on a paste is shown as their number.
pub const LONG_PASTE_LINES: usize = 10;
/// Bytes from which on a paste is shown as its number of lines.
pub const LONG_PASTE_BYTES: usize = 1000;
/// Bytes of Markdown without the end of a paragraph, after which it is shown as it is.
pub const MAX_MARKDOWN_BLOCK_BYTES: usize = 64 << 10;
/// Bytes at the end of an unfinished paragraph that are shown while it arrives.
pub const MARKDOWN_PREVIEW_BYTES: usize = 4 << 10;
/// Longest wait of the first code block for the highlighter.
pub const HIGHLIGHT_WAIT: Duration = Duration::from_millis(150);
/// Longest line of code that is highlighted, in bytes: patterns take time.
pub const MAX_HIGHLIGHTED_BYTES: usize = 2000;
/// Bytes at the end of a call's output that its card looks at.
pub const CARD_TAIL_BYTES: usize = 4 << 10;
/// Lines of output that a running call shows.
pub const CARD_TAIL_LINES: usize = 4;
/// Lines of output that a finished call shows.
pub const CARD_RESULT_LINES: usize = 6;
/// Lines of a diff that a finished call shows.
pub const CARD_DIFF_LINES: usize = 20;
/// Time between two updates of elapsed times on the screen.
pub const CLOCK_STEP: Duration = Duration::from_millis(500);
/// Time between two looks at the live shell, for the status line: a question is seen within 100 ms.
pub const SHELL_WATCH_STEP: Duration = Duration::from_millis(60);
/// Pause in typing before keys answer a question about calls.
pub const APPROVAL_PAUSE: Duration = Duration::from_millis(400);
/// Time in which a second Ctrl+C quits.
pub const QUIT_WINDOW: Duration = Duration::from_secs(2);
/// Longest text for the clipboard of the terminal: some take no more than 100,000 bytes of base64.
pub const MAX_CLIPBOARD_BYTES: usize = 74_000;
/// Time between two looks at what a program has not read, and at output that is held back, while a person has the shell.
pub const PERSON_STEP: Duration = Duration::from_millis(25);
/// Entries of the input's history.
pub const MAX_INPUT_HISTORY: usize = 1000;
/// Choices that a list shows.
pub const CHOICE_ROWS: usize = 6;
/// Most requests to the model in one turn of the assistant: the user may write "go on".
pub const CHAT_STEPS: u64 = 100;
/// Files among which a path is completed.
pub const MAX_COMPLETED_FILES: usize = 20_000;
