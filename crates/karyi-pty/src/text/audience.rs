//! The receivers of the text, which need it in different ways.

/// Receiver of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    /// A reader of the complete text.
    Result,
    /// A viewer of the lines as they end.
    Watcher,
    /// The program itself, which gets replies to queries; the text is not used.
    Terminal,
}
