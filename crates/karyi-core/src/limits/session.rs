//! Limits of a session: shells, terminal, processes and jobs.

use std::time::Duration;

/// Columns of the session's terminal.
pub const TERMINAL_COLUMNS: u16 = 120;
/// Rows of the session's terminal.
pub const TERMINAL_ROWS: u16 = 40;
/// Most rows or columns a terminal may be given.
pub const MAX_TERMINAL_SIDE: u16 = 1000;
/// Bytes of the last lines that a program may move back to on its screen: more than a screen of ordinary text.
pub const TERMINAL_REACH_BYTES: usize = 64 << 10;
/// Time for the user's start-up files: version managers and completions take seconds on a busy machine.
pub const RC_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for a shell to end its start-up files after Ctrl+C, before it is replaced.
pub const RC_INTERRUPT_TIMEOUT: Duration = Duration::from_secs(4);
/// Time for a shell to answer after Ctrl+C during its start-up files, before the next one. A Ctrl+C that comes while it
/// reads the lines for it makes it lose a part of them.
pub const RC_INTERRUPT_PAUSE: Duration = Duration::from_millis(500);
/// Time for a shell that has read start-up files to set itself up, before one without them is started.
pub const SETUP_TIMEOUT: Duration = Duration::from_secs(2);
/// Most bytes of the output of a shell that failed to start, in the error.
pub const MAX_START_OUTPUT_BYTES: usize = 400;
/// Most names listed of exports and aliases that a restart omitted because they contain a secret.
pub const MAX_LEFT_OUT_NAMES: usize = 20;
/// Extra start time for a shell to read the saved state of an earlier one.
pub const RESTORE_TIMEOUT: Duration = Duration::from_secs(10);
/// Fewest descriptors with which a shell can move its own aside while a script runs: it uses numbers from 10 on.
pub const MIN_SHELL_DESCRIPTORS: u64 = 20;
/// Time for a shell to restore the descriptors that a command closed.
pub const REPAIR_TIMEOUT: Duration = Duration::from_secs(1);
/// Time for an idle shell to tell what names mean.
pub const NAMES_TIMEOUT: Duration = Duration::from_secs(2);
/// Most bytes of that answer.
pub const MAX_NAMES_BYTES: usize = 256 << 10;
/// Start time of a shell without an rc file.
pub const SHELL_START_TIMEOUT: Duration = Duration::from_secs(10);
/// First pause between two scans of the foreground job for waiting.
pub const WAIT_SCAN_MIN: Duration = Duration::from_millis(1);
/// Long-term pause after a scan, as a multiple of its processor time: scans take a twentieth of a processor at most.
pub const WAIT_SCAN_SHARE: u32 = 20;
/// Most processes per scan; the next scan continues with the rest.
pub const MAX_SCANNED_PROCESSES: usize = 128;
/// Most other processes of a reader's group that are checked for being stopped.
pub const MAX_CHECKED_GROUP_MEMBERS: usize = 16;
/// Most orphaned processes that are scanned, newest first.
pub const MAX_SCANNED_ORPHANS: usize = 32;
/// Silence of a terminal before a guess from its modes and last line counts, where the kernel does not show the job's
/// state.
pub const GUESS_QUIET: Duration = Duration::from_secs(1);
/// Longest pause between two cheap scans; output resets the pause.
pub const WAIT_SCAN_MAX: Duration = Duration::from_millis(8);
/// Longest pause between two scans, at any cost.
pub const WAIT_SCAN_REST_MAX: Duration = Duration::from_secs(1);
/// Deepest nesting of terminals that relay to one another.
pub const MAX_INNER_TERMINALS: usize = 4;
/// Most scans of a job for one status request, until two agree.
pub const MAX_STATUS_SCANS: usize = 5;
/// Longest time for such a request while the session's thread handles output.
pub const STATUS_SCAN_TIMEOUT: Duration = Duration::from_millis(200);
/// Pause between two scans of a job that no call waits for; they only detect a lost mark.
pub const WAIT_SCAN_DETACHED: Duration = Duration::from_millis(100);
/// Silence of a job that only polls its input before its call returns: a full-screen program or a server that reads
/// the keyboard would never return otherwise.
pub const ACCEPTS_INPUT_QUIET: Duration = Duration::from_secs(3);
/// Time that a command waits for a job that may still be at work, where no command has a limit.
pub const WORKING_JOB_TIMEOUT: Duration = Duration::from_secs(120);
/// Processor time of a job in that silence: what a program needs that only polls.
pub const IDLE_PROCESSOR_TIME: Duration = Duration::from_millis(60);
/// Shortest limit of a wait for a lock, in seconds, that is housekeeping and not a pause of the program.
pub const MIN_HOUSEKEEPING_SECONDS: i64 = 30;
/// Silence of a password prompt when the kernel does not show its program's state.
pub const HIDDEN_PROMPT_QUIET: Duration = Duration::from_millis(50);
/// Time a job must be stopped before its call returns: a shell with job control notices first.
pub const STOPPED_QUIET: Duration = Duration::from_millis(100);
/// Number of repeated stop signals to a job that Ctrl+Z stopped only in part.
pub const MAX_REPEATED_STOPS: u32 = 10;
/// Number of shells tried for one command: a shell may exit before it receives the command.
pub const MAX_SHELLS_PER_COMMAND: u32 = 3;
/// Bytes of output retained while no call waits for it; older output is dropped.
pub const MAX_BACKLOG_BYTES: usize = 256 << 10;
/// Most shells of one run: the first one and its siblings.
pub const MAX_SESSIONS: usize = 16;
/// Number of unwatched ended jobs whose exit status is remembered.
pub const MAX_ENDED_JOBS: usize = 256;
/// Background processes that are tracked at a time: each costs a descriptor, and one more for the file of its job.
pub const MAX_FOLLOWED_PROCESSES: usize = 256;
/// Most tracked processes of one command.
pub const MAX_FOLLOWED_PROCESSES_OF_COMMAND: usize = 64;
/// Age up to which a background program must have forked for its session to be followed.
pub const SUCCESSOR_AGE: Duration = Duration::from_secs(1);
/// Number of tracked processes at which ended ones are removed.
pub const MAX_CLAIMED_PROCESSES: usize = 1024;
/// Most bytes of terminal replies that wait to be read; further ones are dropped.
pub const MAX_TERMINAL_ANSWER_BYTES: usize = 256;
/// Most bytes of colour sequences stored until the end of a line.
pub const MAX_KEPT_COLOUR_BYTES: usize = 256;
/// Most stored parameters of a control sequence.
pub const MAX_SEQUENCE_PARAMETERS: usize = 8;
/// Longest mode sequence that is parsed, in bytes.
pub const MAX_MODE_SEQUENCE_BYTES: usize = 32;
/// Bytes at the end of a piece of output that are searched for an unfinished line.
pub const OPEN_LINE_BYTES: usize = 512;
/// Number of reads of output in a row before anything else is checked; a read returns 4 KiB at most.
pub const READS_IN_A_ROW: usize = 32;
/// Most ancestors of this process that are checked for a session of karyi.
pub const MAX_ANCESTORS: usize = 64;
/// Number of reads of completion marks in a row; together more than a FIFO holds.
pub const MAX_MARK_FIFO_READS: usize = 80;
/// Output that may be unread on the terminal before a mark from the FIFO: more than a terminal buffers.
pub const MAX_UNREAD_OUTPUT: usize = 64 << 10;
/// Longest mark in bytes: the longest path of the system and its frame.
pub const MAX_MARK_BYTES: usize = 8 << 10;
/// Most entries of an `io_uring` that are scanned.
pub const MAX_RING_ENTRIES: usize = 4096;
/// Most descriptors of a `poll` that are scanned; the terminal is nearly always among the first.
pub const MAX_POLLED_DESCRIPTORS: usize = 1024;
/// Most bytes of one set of `select`.
pub const MAX_SELECT_SET_BYTES: usize = 1024;
/// Most descriptors of a process that are scanned for the other end of a pipe.
pub const MAX_SEARCHED_DESCRIPTORS: usize = 1024;
/// Deepest nesting of epoll descriptors.
pub const MAX_EPOLL_DEPTH: usize = 4;
/// Largest saved state of a shell for a restart, in bytes.
pub const MAX_SNAPSHOT_BYTES: usize = 8 << 20;
/// Bytes read from the terminal at once.
pub const TERMINAL_READ_BYTES: usize = 64 << 10;
/// Time for reading the last output of an ended shell while other processes still write.
pub const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(200);
/// Idle time of a session before its environment is saved for a restart.
pub const SNAPSHOT_IDLE: Duration = Duration::from_millis(50);
/// Largest process id of Linux; other systems have smaller ones.
pub const MAX_PROCESS_ID: i32 = 1 << 22;
/// Number of shells of a session at which those without remaining jobs are removed.
pub const MAX_KNOWN_SHELLS: usize = 64;
/// Consecutive empty scans after which a session is gone.
pub const QUIET_ENDING_SCANS: usize = 2;
/// Consecutive empty scans after which an abandoned session with killed processes is gone.
pub const QUIET_SWEEP_SCANS: usize = 6;
/// Most walks through the tree of processes until one finds nothing new.
pub const MAX_TREE_ROUNDS: usize = 4;
/// Consecutive scans of a session's remains before its end pauses.
pub const MAX_ENDING_SCANS: usize = 8;
/// Quick scans of newly adopted processes after each full scan: a process that forks and exits constantly has moved by
/// the end of a long scan.
pub const QUICK_ENDING_SCANS: usize = 50;
/// Number of the newest process ids that such a scan covers after karyi was killed: other processes start meanwhile.
pub const NEWEST_PROCESSES: i32 = 32;
/// Most scans of a foreground group until each of its processes has a signal: new ones may start meanwhile.
pub const MAX_SIGNALLING_SCANS: usize = 8;
/// Time for a new session to lock its directory, which a cleanup may hold.
pub const CLAIM_TIMEOUT: Duration = Duration::from_millis(200);
/// Longest time before orphaned ended processes are reaped while commands run: each occupies a process id.
pub const REAP_EVERY: Duration = Duration::from_millis(500);
/// Time a command runs before it becomes a job in conversations, for MCP clients, and where nobody watches: most builds
/// and tests end sooner, and a model that waits for a server learns of it. At `/mcp` of a server a call has the time
/// that the server gives it.
pub const COMMAND_TIMEOUT: Duration = Duration::from_secs(120);
/// The same when the next call types into the command, which waits for it in vain until then.
pub const HAND_OVER_AFTER: Duration = Duration::from_secs(10);
/// A longer time limit of a call was probably meant in milliseconds.
pub const LONG_TIMEOUT: Duration = Duration::from_secs(3600);
/// Wait of `<input>` and `<ctrl>` when the call names no timeout.
pub const INPUT_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest line a terminal gives a program that reads whole lines, in bytes without the line break;
/// the kernel drops the rest of a longer one.
pub const MAX_TERMINAL_INPUT_LINE: usize = if cfg!(target_os = "linux") {
    4095
} else {
    1023
};
/// Most lines of one input that are typed one by one into a terminal without echo, each when the job reads again:
/// password prompts discard typed-ahead input.
pub const MAX_GATED_LINES: usize = 64;
/// Consecutive scans that must find a shell reading in vain before it is ended.
pub const STUCK_SHELL_SCANS: u32 = 5;
/// Number of times that the lines of a command are resent after another program consumed them.
pub const MAX_REPEATED_LINES: u32 = 2;
/// Empty lines inserted between lines that a hook may consume: a hook that reads one, two or three lines before each
/// line of the shell leaves every twelfth.
pub const LINES_FOR_HOOKS: usize = 11;
/// Pause between the signals INT, TERM and KILL when a job is ended.
pub const JOB_LADDER_STEP: Duration = Duration::from_secs(1);
/// Longest wait for a killed job to disappear: a busy machine needs more than a second. A job of another user stays.
pub const JOB_KILL_TIMEOUT: Duration = Duration::from_secs(4);
/// Time the shell itself must be in the foreground before it is killed as its own job: between two programs of a
/// script it is so only briefly.
pub const SHELL_GRACE: Duration = Duration::from_millis(300);
/// Time for the traps of a job, and then of the shell, when a session ends.
pub const TRAP_GRACE: Duration = Duration::from_secs(2);
/// Pause between the signals TERM and KILL when a session ends.
pub const SIGNAL_LADDER_STEP: Duration = Duration::from_secs(1);
/// Time for killed processes to disappear: it is long on a busy machine.
pub const KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// Most directories of sessions that a start looks at for abandoned ones.
pub const MAX_SWEPT_SESSIONS: usize = 1000;
/// Time at a start for ending abandoned sessions.
pub const SWEEP_TIMEOUT: Duration = Duration::from_secs(2);
/// Age at which a session directory without a record is abandoned.
pub const UNFINISHED_SESSION_AGE: Duration = Duration::from_secs(60);
/// Most bytes of a session's record.
pub const MAX_RECORD_BYTES: u64 = 64 << 10;
/// Time for a shell to end after HUP where processes are not visible, before all are signalled.
pub const UNSEEN_SHELL_GRACE: Duration = Duration::from_millis(200);
/// Resolution of process start times, with a margin.
pub const PROCESS_CLOCK_TICK: Duration = Duration::from_millis(20);
/// Time one check of `karyi doctor` may take.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long `karyi doctor` waits for a shell to be blocked, to look at it.
pub const LOOK_TIMEOUT: Duration = Duration::from_secs(2);
/// Time a shell may take to tell its version.
pub const VERSION_TIMEOUT: Duration = Duration::from_secs(2);
/// Time limit of a `bash` call, unless the call or the settings say otherwise.
pub const BASH_TOOL_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of output of a `bash` call, half from each end, unless the settings say otherwise.
pub const BASH_TOOL_OUTPUT_BYTES: usize = 256 << 10;
/// Time of a call over HTTP that is left for ending the processes of a `bash` call: INT, TERM and KILL.
pub const BASH_TOOL_ENDING: Duration = Duration::from_secs(3);
