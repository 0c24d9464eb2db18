//! The session: its shells, its terminal, its processes and jobs.

use std::time::Duration;

/// Columns of the session's terminal.
pub const TERMINAL_COLUMNS: u16 = 120;
/// Rows of the session's terminal.
pub const TERMINAL_ROWS: u16 = 40;
/// Most rows or columns a terminal may be given.
pub const MAX_TERMINAL_SIDE: u16 = 1000;
/// Bytes of the last lines that a program may still go back to on its screen: more than a screen of
/// ordinary text takes.
pub const TERMINAL_REACH_BYTES: usize = 64 << 10;
/// Time a shell may take to start and to source the user's rc file before it is started without.
pub const RC_TIMEOUT: Duration = Duration::from_secs(2);
/// Most bytes of what a shell printed that did not start, in the error that says so.
pub const MAX_START_OUTPUT_BYTES: usize = 400;
/// Most exports and aliases named that a restart left out because they hold a secret.
pub const MAX_LEFT_OUT_NAMES: usize = 20;
/// Time a shell may take more to read back what an earlier one printed about itself.
pub const RESTORE_TIMEOUT: Duration = Duration::from_secs(10);
/// Fewest descriptors with which a shell can put its own aside while a script runs: it uses numbers
/// from 10 on.
pub const MIN_SHELL_DESCRIPTORS: u64 = 20;
/// Time a shell may take to get back the descriptors a command has closed.
pub const MEND_TIMEOUT: Duration = Duration::from_secs(1);
/// Time a shell without an rc file may take to answer for the first time.
pub const SHELL_START_TIMEOUT: Duration = Duration::from_secs(10);
/// First pause between two looks at what the foreground job waits for.
pub const WAIT_SCAN_MIN: Duration = Duration::from_millis(1);
/// Time a caller reads the terminal itself before it leaves that to the session's thread: it
/// holds up what else its own thread is to do.
pub const CALLER_READS: Duration = Duration::from_micros(500);
/// Pause after a look, in the long run, as a multiple of the processor time it took: looking takes a
/// twentieth of a processor at most.
pub const WAIT_SCAN_SHARE: u32 = 20;
/// Most processes one look reads; the next one goes on with the rest.
pub const MAX_SCANNED_PROCESSES: usize = 128;
/// Most processes of a group beside one that reads that are asked whether they are stopped.
pub const MAX_COMPANY: usize = 16;
/// Most processes without a parent of their own that are looked at, the newest ones.
pub const MAX_SCANNED_ORPHANS: usize = 32;
/// Time a terminal must be silent before a guess from its modes and its last line counts, where
/// the kernel does not show what the job does.
pub const GUESS_QUIET: Duration = Duration::from_secs(1);
/// Longest pause between two such looks, where they cost little; output starts over at the first
/// pause.
pub const WAIT_SCAN_MAX: Duration = Duration::from_millis(8);
/// Longest pause of all between two looks, however much one costs.
pub const WAIT_SCAN_REST_MAX: Duration = Duration::from_secs(1);
/// Deepest nesting of terminals: one relays to one inside it, and so on.
pub const MAX_INNER_TERMINALS: usize = 4;
/// Interval between checks of a job for a status request, until two checks agree.
pub const MAX_ASKED_LOOKS: usize = 5;
/// Time such an answer may take while the session's thread hands on output.
pub const LOOK_ANSWER_TIMEOUT: Duration = Duration::from_millis(200);
/// Pause between two such looks at a job that no call waits for; only a lost mark is looked for.
pub const WAIT_SCAN_DETACHED: Duration = Duration::from_millis(100);
/// Time a job must do nothing but look for input, silently, before its call returns: a
/// full-screen program or a server that listens to the keyboard would otherwise never return.
pub const ACCEPTS_INPUT_QUIET: Duration = Duration::from_secs(1);
/// Time a password prompt must be silent when the kernel does not show its program's state.
pub const HIDDEN_PROMPT_QUIET: Duration = Duration::from_millis(50);
/// Time a job must be stopped before its call returns: a shell with job control notices first.
pub const STOPPED_QUIET: Duration = Duration::from_millis(100);
/// Number and spacing of repeated stop signals to a job that Ctrl+Z stopped only in part.
pub const MAX_REPEATED_STOPS: u32 = 10;
/// Number of shells one command may be meant for: one may end by itself before it is given the command.
pub const MAX_SHELLS_PER_COMMAND: u32 = 3;
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
/// Age up to which a background program must have forked for its session to be followed.
pub const SUCCESSOR_AGE: Duration = Duration::from_secs(1);
/// Processes followed so, from which on those that have ended are forgotten.
pub const MAX_CLAIMED_PROCESSES: usize = 1024;
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
/// Number of reads of output in a row before anything else is checked; a read returns 4 KiB at most.
pub const READS_IN_A_ROW: usize = 32;
/// Most ancestors of this process among which a session of its own kind is looked for.
pub const MAX_ANCESTORS: usize = 64;
/// Number of reads of completion marks in a row; together more than a FIFO holds.
pub const READS_OF_TOLD: usize = 80;
/// Output that may stand on the terminal before a mark that came beside it: more than a terminal holds.
pub const MAX_UNREAD_OUTPUT: usize = 64 << 10;
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
/// Time the last output of a shell that has ended is read, should others go on writing.
pub const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_millis(200);
/// Time a session rests before its environment is saved for a later restart.
pub const SNAPSHOT_IDLE: Duration = Duration::from_millis(50);
/// Largest process id of Linux; other systems have smaller ones.
pub const MAX_PROCESS_ID: i32 = 1 << 22;
/// Shells of a session, one after the other, from which on those are forgotten of whose jobs nothing
/// is left.
pub const MAX_KNOWN_SHELLS: usize = 64;
/// Looks in a row that must find nothing of a session before it is gone.
pub const QUIET_ENDING_LOOKS: usize = 2;
/// Looks in a row that must find nothing of an abandoned session of which something had to be killed.
pub const QUIET_SWEEP_LOOKS: usize = 6;
/// Looks in a row at what is left of a session before its end rests: something ends all the time.
pub const MAX_ENDING_LOOKS: usize = 8;
/// Quick looks at what was just adopted, after each look at everything: a process that forks and
/// ends without pause is somewhere else by the time a long look is over.
pub const QUICK_ENDING_LOOKS: usize = 50;
/// Number of of the newest process ids such a look takes after karyi was killed: others are started meanwhile, too.
pub const NEWEST_PROCESSES: i32 = 32;
/// Most looks at a group in the foreground until each of its processes has a signal: new ones may
/// be started meanwhile.
pub const MAX_SIGNALLING_LOOKS: usize = 8;
/// Time a new session tries to lock its directory, which a sweep may be looking at.
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
/// Looks in a row that must see a shell read in vain before it is ended.
pub const DEAF_LOOKS: u32 = 5;
/// Number of times that the lines of a command are resent after another program consumed them.
pub const MAX_REPEATED_LINES: u32 = 2;
/// Empty lines between those that something else may read: a hook that reads one, two or three lines
/// each time before the shell reads one leaves it every twelfth.
pub const LINES_FOR_HOOKS: usize = 11;
/// Pause between the signals INT, TERM and KILL when a job is ended.
pub const JOB_LADDER_STEP: Duration = Duration::from_secs(1);
/// Time the shell itself must be in the foreground before it is killed as its own job: between
/// two programs of a script it is that for a moment only.
pub const SHELL_GRACE: Duration = Duration::from_millis(300);
/// Pause between the signals HUP, TERM and KILL when a session ends.
pub const SIGNAL_LADDER_STEP: Duration = Duration::from_secs(1);
/// Time killed processes may take to be gone: many take long on a busy machine.
pub const KILL_TIMEOUT: Duration = Duration::from_secs(10);
/// Most directories of sessions that a start looks at for abandoned ones.
pub const MAX_SWEPT_SESSIONS: usize = 1000;
/// Time a start may take to end what is left of abandoned sessions.
pub const SWEEP_TIMEOUT: Duration = Duration::from_secs(2);
/// Age at which a session's directory without a record was left half made by somebody killed.
pub const UNFINISHED_SESSION_AGE: Duration = Duration::from_secs(60);
/// Most bytes of a session's record.
pub const MAX_RECORD_BYTES: u64 = 64 << 10;
/// Time a shell may take to end of HUP where processes are not shown, before all are asked for.
pub const UNSEEN_SHELL_GRACE: Duration = Duration::from_millis(200);
/// Resolution of process start times, with a margin.
pub const PROCESS_CLOCK_TICK: Duration = Duration::from_millis(20);
/// How long `karyi doctor` goes on to the next shell: without `/proc` each takes about a second.
pub const SHELL_CHECKS_TIME: Duration = Duration::from_secs(3);
/// Time one check of `karyi doctor` may take.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long `karyi doctor` waits for a shell to be blocked, to look at it.
pub const LOOK_TIMEOUT: Duration = Duration::from_secs(2);
/// Time a shell may take to tell its version.
pub const VERSION_TIMEOUT: Duration = Duration::from_secs(2);
