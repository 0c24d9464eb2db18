//! Diagnostics of the parser and errors of tools, each with a stable code.
//!
//! Codes are a stable public format: parser codes are kebab-case, tool codes snake_case. Each tool code has a class,
//! which decides the exit status, and a standard hint. A caller that knows more replaces the hint.

use crate::span::Position;

/// Declares an enum whose variants are wire words.
macro_rules! words {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// Every code, in the order of the specification.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the word used on the wire.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

words! {
    /// Code of a parser error or warning.
    pub enum Code {
        /// An element directly in `<tools>` is no registered tool.
        UnknownTool = "unknown-tool",
        /// An element is not permitted here.
        UnexpectedElement = "unexpected-element",
        /// Text where only elements are permitted.
        UnexpectedText = "unexpected-text",
        /// Text stands between the tools of a block.
        TextBetweenTools = "text-between-tools",
        /// After a tool's end tag comes something that cannot follow it.
        UnexpectedAfterEndTag = "unexpected-after-end-tag",
        /// An end tag may close the element or belong to its text.
        AmbiguousEndTag = "ambiguous-end-tag",
        /// An end tag names another element.
        MismatchedEnd = "mismatched-end",
        /// An element has no end tag.
        UnclosedElement = "unclosed-element",
        /// A tag has no `>`.
        UnclosedTag = "unclosed-tag",
        /// A CDATA section has no `]]>`.
        UnclosedCdata = "unclosed-cdata",
        /// A comment has no `-->`.
        UnclosedComment = "unclosed-comment",
        /// `</tools>` is missing.
        UnclosedTools = "unclosed-tools",
        /// A required child element is missing.
        MissingChild = "missing-child",
        /// A required attribute is missing.
        MissingAttribute = "missing-attribute",
        /// The element has no such attribute.
        UnknownAttribute = "unknown-attribute",
        /// An attribute is given twice.
        DuplicateAttribute = "duplicate-attribute",
        /// Two calls of the message have the same id.
        DuplicateId = "duplicate-id",
        /// An attribute is not well formed, or its value does not fit.
        BadAttribute = "bad-attribute",
        /// A tag is not well formed.
        BadTag = "bad-tag",
        /// The text of `<ctrl>` names no key.
        BadCtrl = "bad-ctrl",
        /// A backslash escape of `<input>` is broken.
        BadEscape = "bad-escape",
        /// JSON is not well formed, or a JSON argument does not fit.
        BadJson = "bad-json",
        /// A `<tools>` inside `<tools>`.
        NestedTools = "nested-tools",
        /// Text mixes escaped and raw markup, so that two readings differ.
        MixedEscapes = "mixed-escapes",
        /// A character that XML 1.0 does not allow.
        IllegalChar = "illegal-char",
        /// Bytes that are not UTF-8.
        Encoding = "encoding",
        /// A processing instruction.
        ProcessingInstruction = "processing-instruction",
        /// CDATA or another declaration between elements.
        UnexpectedMarkup = "unexpected-markup",
        /// A size limit is passed.
        TooLarge = "too-large",
        /// Something looked like a block and was not run.
        IgnoredBlock = "ignored-block",
        /// Results of calls stand in the message: the model made them up.
        InventedResults = "invented-results",
        /// The message has no block, so nothing ran.
        NoBlock = "no-block",
        /// Strict mode: markup in the text of a leaf.
        MarkupInText = "markup-in-text",
        /// Strict mode: a broken or unknown reference.
        BadReference = "bad-reference",
        /// Strict mode: `]]>` in text.
        CdataEndInText = "cdata-end-in-text",
        /// Strict mode: a comment that XML does not allow.
        BadComment = "bad-comment",
        /// Not the parser's: stored values are not known, so output may show them.
        RedactionIncomplete = "redaction_incomplete",
        /// Not the parser's: stored values cannot be used; they are masked.
        UnusableSecret = "unusable_secret",
        /// Not the parser's: a policy file names a secret that is not there.
        UnknownSecret = "unknown_secret",
    }
}

/// Severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The message continues.
    Warning,
    /// The message is refused from here on.
    Error,
}

impl Severity {
    /// Returns the word used on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A located message about the text the model wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Code of the problem.
    pub code: Code,
    /// Position of the problem.
    pub position: Position,
    /// True when the position counts inside the decoded `tools` string of a JSON envelope.
    pub is_in_json: bool,
    /// Expected and actual input or state.
    pub message: String,
    /// Next step for the reader, in one line.
    pub hint: String,
    /// The source line, with the place in it.
    pub excerpt: Option<Excerpt>,
}

/// One source line and the stretch of it that a caret points at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The line without its end, at most a few hundred characters around the place; characters a
    /// terminal would act on are replaced.
    pub line: String,
    /// Characters of `line` before the place.
    pub caret_start: usize,
    /// Characters to underline, at least 1.
    pub caret_len: usize,
}

/// Effect of a failure on the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The call failed: exit status 1.
    Failed,
    /// The call was not allowed to start: exit status 2.
    Refused,
    /// A person is needed and cannot be asked: exit status 3.
    NeedsUser,
}

/// Declares the tool error codes with class and standard hint.
macro_rules! tool_codes {
    ($($(#[$doc:meta])* $variant:ident = $word:literal, $class:ident, $hint:literal;)*) => {
        words! {
            /// Code of a tool error.
            pub enum ErrorCode { $($(#[$doc])* $variant = $word,)* }
        }

        impl ErrorCode {
            /// Returns what the failure means for the whole run.
            #[must_use]
            pub fn class(self) -> ErrorClass {
                match self { $(Self::$variant => ErrorClass::$class,)* }
            }

            /// Returns the standard hint.
            #[must_use]
            pub fn hint(self) -> &'static str {
                match self { $(Self::$variant => $hint,)* }
            }
        }
    };
}

tool_codes! {
    /// The call changes something or runs a program, and nobody has permitted that.
    NeedsApproval = "needs_approval", NeedsUser, "tell the user what you would run and why; `--approve full` permits it";
    /// A rule, the mode or the user does not permit the call.
    Denied = "denied", Refused, "do not try it in another way; go on without it, or ask the user what to do instead";
    /// The path names nothing.
    NotFound = "not_found", Failed, "check the path; list its directory with `read`";
    /// The path is a directory and a file is needed.
    IsDirectory = "is_directory", Failed, "name a file inside the directory";
    /// A part of the path is a file and a directory is needed.
    NotADirectory = "not_a_directory", Failed, "check the path: one of its parents is a file";
    /// The path is neither file nor directory.
    NotAFile = "not_a_file", Failed, "pipes, sockets and devices are reached with a command";
    /// The links of the path lead in a circle.
    SymlinkLoop = "symlink_loop", Failed, "see where the links lead with the command `ls -l PATH`";
    /// A name or the path is longer than the file system takes.
    NameTooLong = "name_too_long", Failed, "shorten it: most file systems take names of 255 bytes, and paths of 4095";
    /// The system does not allow it.
    PermissionDenied = "permission_denied", Failed, "check the owner and mode with the command `ls -l PATH`";
    /// The disk or the quota is full.
    NoSpace = "no_space", Failed, "free some space, then send the call again; nothing was changed";
    /// The file system is read-only.
    ReadOnly = "read_only", Failed, "choose a path on a file system that can be written";
    /// The path leaves the root directory of the run.
    OutsideRoot = "outside_root", Failed, "use a path inside the directory given with --root";
    /// The file is too large for the operation.
    FileTooLarge = "file_too_large", Failed, "use a command with a program that works on streams";
    /// The file is not text.
    BinaryFile = "binary_file", Failed, "edit works on text; change binary files with a command";
    /// A file changed between reading and writing.
    FileChanged = "file_changed", Failed, "read the file again and send the edit anew";
    /// A `find` text is not in the file.
    FindNotFound = "find_not_found", Failed, "copy the text to find exactly as it stands in the file";
    /// A `find` text is there more than once.
    FindAmbiguous = "find_ambiguous", Failed, "add lines around the text until it is unique, or set `all` to true for this find";
    /// A change is in the file already, and others of the same call are not.
    AlreadyApplied = "already_applied", Failed, "leave this pair out and send the others again";
    /// A symlink leads out of the root or repository that holds it.
    SymlinkEscape = "symlink_escape", Failed, "name the file the link leads to, if it is really meant";
    /// The file has other hard links, which would retain the old content.
    HardLinked = "hard_linked", Failed, "set `break_links` to true for the file to change or delete this name only; the others keep the old content";
    /// The new content could not be given the owner of the old one.
    OwnerNotKept = "owner_not_kept", Failed, "run karyi as the owner of the file, or change it with a command, which may ask for sudo";
    /// A file that is to be made exists.
    FileExists = "file_exists", Failed, "choose another name, or delete that file first in the same edit";
    /// The encoding of the file has no such character.
    NotEncodable = "not_encodable", Failed, "use characters the file's encoding has, or convert the file to UTF-8 with `iconv` first";
    /// Other changes of the same files took too long.
    EditBusy = "edit_busy", Failed, "wait for the other karyi to end, then send the call again";
    /// Several files are to change, and what is done to them cannot be written down.
    NoJournal = "no_journal", Failed, "set KARYI_HOME or XDG_STATE_HOME to a directory that can be written, or change one file per call";
    /// The current content is not the content that the change left.
    UndoConflict = "undo_conflict", Failed, "undo the later changes first, or restore the wanted lines by hand";
    /// The journal does not hold what the undo needs.
    UndoUnavailable = "undo_unavailable", Failed, "restore the file from version control or a backup";
    /// The settings switch the tool off.
    ToolDisabled = "tool_disabled", Failed, "go on without it, or ask the user to switch it on in config.toml";
    /// A command waits for input, and nobody can give it any.
    WaitsForInput = "waits_for_input", Failed, "run it with <command>, and answer with <input>";
    /// The guard does not admit a URL, or an address that its name leads to.
    UrlNotAllowed = "url_not_allowed", Refused, "do not try it in another way; ask the user to add the host to guard.allow in config.toml";
    /// A server answered with a status that is no success.
    HttpError = "http_error", Failed, "read `http_status` and `body`: 404 means another URL, 401 and 403 a missing permission, 429 and 5xx to try again later";
    /// A server cannot be reached, or its answer was cut or broken.
    NetworkError = "network_error", Failed, "check the URL, or try again in a moment";
    /// A search engine answered with something else than results.
    SearchBlocked = "search_blocked", Failed, "try again later, or fetch a page that you know with <url_fetch>; the user can choose another engine with tools.web_search.engine";
    /// Two arguments do not go together.
    BadArguments = "bad_arguments", Failed, "see `karyi tools` for the arguments";
    /// A regular expression or glob is broken.
    BadPattern = "bad_pattern", Failed, "correct the pattern, or leave out regex=\"true\" to search literally";
    /// Another input or output error.
    Io = "io_error", Failed, "see the message of the system";
    /// A job holds the terminal.
    SessionBusy = "session_busy", Failed, "answer it with `input`, or end it with `ctrl` c";
    /// Nothing runs that could read input.
    NoJob = "no_job", Failed, "start a command first; `input` and `ctrl` go to a command that still runs";
    /// The job does not read its input.
    NoReader = "no_reader", Failed, "wait longer with a larger `timeout`, or end the command with `ctrl` c";
    /// A line of input is longer than the terminal passes to the job.
    LineTooLong = "line_too_long", Failed, "write the text to a file and have the command read that";
    /// A secret would be echoed by the terminal.
    EchoOn = "echo_on", Refused, "the program shows what is typed; set `allow_echo` to true to send the secret all the same";
    /// No shell can be started.
    NoShell = "no_shell", Refused, "install bash, or name a shell with --shell PATH";
    /// The session's shell could not be started or restarted.
    SessionFailed = "session_failed", Failed, "fix what the message names and run the command again; `karyi doctor` checks what a session needs";
    /// The shell cannot take secrets.
    UnsupportedShell = "unsupported_shell", Refused, "secrets in commands need bash or zsh: run with --shell /bin/bash";
    /// A name in a placeholder has no value.
    UndefinedVariable = "undefined_variable", Refused, "ask for it first with `get_value`, and use it from the next block on";
    /// A placeholder is not well formed.
    BadPlaceholder = "bad_placeholder", Refused, "write $KARYI{NAME}, or $$KARYI{ for the characters themselves";
    /// A placeholder in a context where no value is safe.
    UnsafeContext = "unsafe_context", Refused, "put the placeholder where a program takes it as an argument, in its environment or on its input, and keep it out of code, names and numbers";
    /// A placeholder in text that a second program parses.
    UnsafeNestedParse = "unsafe_nested_parse", Refused, "pass it through the environment: X=$KARYI{NAME} bash -c '... \"$X\" ...', where \"$X\" is an argument of a program that reads no code";
    /// A value did not come whole to the shell, which was changed.
    SecretNotDelivered = "secret_not_delivered", Refused, "undo what was done to IFS, read or builtin in this session, or start another one; with --shell /bin/bash more of that does no harm";
    /// A sealed secret in text that a shell would store.
    SealedInShell = "sealed_in_shell", Refused, "a sealed secret is for <url_fetch> alone; use another one";
    /// The policy of a secret does not allow its use here.
    PolicyDenied = "policy_denied", Failed, "ask the user to change the policy with `karyi var set`, or use another secret";
    /// A secret is past its date.
    SecretExpired = "secret_expired", Failed, "ask the user to give it a new value with `karyi var rotate NAME --expires WHEN`";
    /// The user must agree to the use of a secret and cannot be asked.
    ApprovalRequired = "approval_required", NeedsUser, "run karyi with --allow NAME, or on a terminal";
    /// A policy is not well formed.
    BadPolicy = "bad_policy", Refused, "correct the policy; its keys are the names of the flags of `karyi var set`";
    /// The value cannot be used as a secret.
    BadValue = "bad_value", Failed, "give a value of 8 bytes to 60 KiB without NUL; 4 to 7 bytes need --allow-short";
    /// There is no keyring to speak to.
    KeyringUnavailable = "keyring_unavailable", NeedsUser, "start the keyring of the desktop and repeat the command; secrets that are not kept yet can go into an encrypted file: `karyi var set NAME --vault age`";
    /// The keyring is locked and was not unlocked.
    KeyringLocked = "keyring_locked", NeedsUser, "unlock the keyring, then try again; without a desktop it is unlocked by the first program that speaks to it: start `dbus-run-session -- bash`, and there `printf %s \"$(cat FILE)\" | gnome-keyring-daemon --unlock --components=secrets`";
    /// The keyring did not answer in time.
    KeyringTimeout = "keyring_timeout", NeedsUser, "see what the keyring waits for with `karyi doctor`, then try again";
    /// The encrypted file cannot be opened with the key that was given.
    WrongKey = "wrong_key", NeedsUser, "give the passphrase or the identity file the store was made with";
    /// The content of a store or of the index cannot be read.
    BadVault = "bad_vault", Failed, "see `karyi var doctor`";
    /// The store is not the one the index lists, or cannot be read, and its user must say what to do.
    VaultUnavailable = "vault_unavailable", NeedsUser, "see `karyi var doctor`";
    /// The store cannot be written.
    VaultReadOnly = "vault_read_only", Failed, "choose a store that lasts: --vault os or --vault age";
    /// Another process holds the lock of the store.
    VaultBusy = "vault_busy", Failed, "wait for the other karyi to end, then try again";
    /// The command was used in a way it does not have.
    Usage = "usage", Refused, "see `karyi help`";
    /// No session runs that takes a value.
    NoSession = "no_session", Refused, "give it to one run with `karyi run --vars-fd N`, or let the script ask for it with `get_value`";
    /// The vault stays closed inside a session.
    InsideSession = "inside_session", Refused, "use a terminal outside of karyi";
    /// The user declined.
    Declined = "declined", Failed, "the user declined; ask what they want instead";
    /// There is no terminal to ask on.
    SecretPromptUnavailable = "secret_prompt_unavailable", NeedsUser, "run karyi on a terminal, without CI and --vars-mode warn, so that the value can be asked for";
    /// The prompt was not answered in time.
    PromptTimeout = "prompt_timeout", NeedsUser, "ask again when the user is there";
    /// A tool of a site was called without one.
    NoSite = "no_site", Refused, "tools of a site run in `karyi serve`: call them over HTTP";
    /// No language model is there to be asked.
    NoModel = "no_model", Failed, "tell the user to choose one: `karyi config set model PROVIDER:NAME`; docs/models.md has the rest";
    /// A language model could not be used.
    ModelFailed = "model_failed", Failed, "try again in a moment; `karyi model test` shows what is wrong";
    /// The answer of a language model could not be used.
    BadReply = "bad_reply", Failed, "send the call again, in other words or with another model; nothing was changed";
    /// A text means one of several things.
    Ambiguous = "ambiguous", Failed, "say which one is meant, in the words of its text";
    /// A question to the user is open, and there is one at a time.
    QuestionPending = "question_pending", Failed, "wait for its answer, which the next session is told";
    /// The role of the session does not have the tool.
    ToolNotAllowed = "tool_not_allowed", Failed, "use the tools of your role; `karyi tools --family supervisor` lists those of each";
    /// The role of the session may not give the argument.
    ArgumentNotAllowed = "argument_not_allowed", Failed, "leave it out, or say it in the prompt: the Planner decides";
    /// Another supervisor works in the state directory.
    SupervisorRunning = "supervisor_running", Refused, "end that process first, or give this one a directory of its own with --state-dir";
    /// A stored value cannot be read or written now.
    Unavailable = "unavailable", Failed, "try again in a moment";
    /// The time for the call was up.
    Timeout = "timeout", Failed, "try again; nothing was changed";
    /// An earlier call failed and the block says `on_error="stop"`.
    EarlierFailure = "earlier_failure", Failed, "fix the call that failed, then send this one again";
    /// An earlier `cd` failed, so a relative path would lead elsewhere.
    CdFailed = "cd_failed", Failed, "correct the `cd`, then send this call again, or use absolute paths";
    /// Another call of the block was refused, so none of it ran.
    BlockRefused = "block_refused", Failed, "correct the call that was refused, then send the block again";
    /// The run was cancelled.
    Cancelled = "cancelled", Failed, "the run was interrupted; send the call again if it is still wanted";
    /// The run was asked to do nothing.
    DryRun = "dry_run", Failed, "leave out --dry-run to run it";
    /// A bug in karyi.
    Internal = "internal_error", Failed, "this is a bug in karyi; the other calls are not affected";
}

/// Failure of one call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// Code of the failure.
    pub code: ErrorCode,
    /// Expected and actual input or state.
    pub message: String,
    /// Next step for the reader.
    pub hint: String,
    /// True when the hint quotes text of a file, in which placeholders are characters like others.
    pub is_hint_quoted: bool,
    /// Names of secrets it is about, for programs that read reports.
    pub names: Vec<String>,
}

impl ToolError {
    /// Makes an error with the standard hint of its code.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: code.hint().into(),
            is_hint_quoted: false,
            names: Vec::new(),
        }
    }

    /// Adds names of secrets.
    #[must_use]
    pub fn with_names(mut self, names: Vec<String>) -> Self {
        self.names = names;
        self
    }

    /// Replaces the hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Replaces the hint by one that quotes text of a file.
    #[must_use]
    pub fn with_quoting_hint(self, hint: impl Into<String>) -> Self {
        Self {
            is_hint_quoted: true,
            ..self.with_hint(hint)
        }
    }

    /// Names the tool it is an error of, where the standard hint leaves that open.
    #[must_use]
    pub fn of_tool(self, tool: &str) -> Self {
        match (self.code, self.hint == self.code.hint()) {
            (ErrorCode::BadArguments, true) => {
                self.with_hint(format!("see `karyi tools {tool}` for the arguments"))
            }
            _ => self,
        }
    }

    /// Makes an error from a failed system call on `path`.
    #[must_use]
    pub fn from_io(path: &std::path::Path, error: &std::io::Error) -> Self {
        use std::io::ErrorKind;
        let code = match error.kind() {
            _ if is_link_loop(error) => ErrorCode::SymlinkLoop,
            ErrorKind::NotFound => ErrorCode::NotFound,
            ErrorKind::PermissionDenied => ErrorCode::PermissionDenied,
            ErrorKind::IsADirectory => ErrorCode::IsDirectory,
            ErrorKind::NotADirectory => ErrorCode::NotADirectory,
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => ErrorCode::NoSpace,
            ErrorKind::ReadOnlyFilesystem => ErrorCode::ReadOnly,
            ErrorKind::InvalidFilename => ErrorCode::NameTooLong,
            ErrorKind::Other if is_no_file(error) => ErrorCode::NotAFile,
            _ => ErrorCode::Io,
        };
        let found = Self::new(code, format!("{}: {error}", path.display()));
        match error.kind() {
            ErrorKind::ResourceBusy => found.with_hint(BUSY),
            ErrorKind::FileTooLarge => found.with_hint(FILE_LIMIT),
            _ if is_out_of_files(error) => found.with_hint(OUT_OF_FILES),
            _ => found,
        }
    }
}

/// Text of the I/O error for a path that names no regular file.
#[derive(Debug, thiserror::Error)]
#[error("expected a file, found a pipe, socket or device")]
pub struct NoFile;

fn is_no_file(error: &std::io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<NoFile>())
}

const BUSY: &str = "the system uses it; a file that is mounted by itself, as in containers, can be written to with \
                    a command, such as `cat NEW > FILE`, and never be replaced";

const FILE_LIMIT: &str = "start karyi with a higher limit of the size of files (`ulimit -f`), or where the file system has \
                          one, write elsewhere";

const OUT_OF_FILES: &str = "so many files cannot be open at a time: name fewer in one call, or start karyi with a \
                            higher limit (`ulimit -n`)";

/// Returns true when no more files can be opened, by this process or at all.
#[cfg(unix)]
fn is_out_of_files(error: &std::io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(nix::libc::EMFILE | nix::libc::ENFILE)
    )
}

/// Returns false: this system has no such error code.
#[cfg(not(unix))]
fn is_out_of_files(_: &std::io::Error) -> bool {
    false
}

/// Returns true when the links of a path lead in a circle.
#[cfg(unix)]
fn is_link_loop(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(nix::libc::ELOOP)
}

/// Returns false: this system has no such error code.
#[cfg(not(unix))]
fn is_link_loop(_: &std::io::Error) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_keep_their_spelling() {
        for code in Code::ALL {
            assert!(
                code.as_str()
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b == b'-')
                    || matches!(
                        code,
                        Code::RedactionIncomplete | Code::UnusableSecret | Code::UnknownSecret
                    )
            );
        }
        for code in ErrorCode::ALL {
            assert!(
                code.as_str()
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b == b'_')
            );
            assert!(!code.hint().is_empty(), "{code:?}");
        }
    }

    #[test]
    fn system_errors_keep_their_meaning() {
        let check = |errno: i32, code: ErrorCode| {
            let error = std::io::Error::from_raw_os_error(errno);
            let found = ToolError::from_io(std::path::Path::new("f"), &error).code;
            assert_eq!(found, code, "errno {errno}");
        };
        check(nix::libc::ENOENT, ErrorCode::NotFound);
        check(nix::libc::EACCES, ErrorCode::PermissionDenied);
        check(nix::libc::ENOSPC, ErrorCode::NoSpace);
        check(nix::libc::EDQUOT, ErrorCode::NoSpace);
        check(nix::libc::ENAMETOOLONG, ErrorCode::NameTooLong);
        check(nix::libc::EINVAL, ErrorCode::Io);
        check(nix::libc::EROFS, ErrorCode::ReadOnly);
        check(nix::libc::ELOOP, ErrorCode::SymlinkLoop);
        check(nix::libc::EISDIR, ErrorCode::IsDirectory);
        for errno in [nix::libc::EMFILE, nix::libc::ENFILE] {
            check(errno, ErrorCode::Io);
            let error = std::io::Error::from_raw_os_error(errno);
            let hint = ToolError::from_io(std::path::Path::new("f"), &error).hint;
            assert!(hint.contains("ulimit -n"), "{hint}");
        }
    }
}
