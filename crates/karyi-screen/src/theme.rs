//! Styles by meaning, in the 16 colours that the user of a terminal has chosen.

use ratatui_core::style::{Color, Modifier, Style};

/// A heading.
pub const HEADING: Style = Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD);
/// Strong emphasis.
pub const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
/// Emphasis.
pub const EMPHASIS: Style = Style::new().add_modifier(Modifier::ITALIC);
/// Deleted text.
pub const DELETED: Style = Style::new().add_modifier(Modifier::CROSSED_OUT);
/// Code in a sentence.
pub const CODE: Style = Style::new().fg(Color::Cyan);
/// A link.
pub const LINK: Style = Style::new()
    .fg(Color::Blue)
    .add_modifier(Modifier::UNDERLINED);
/// Something less important.
pub const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
/// Something good.
pub const GOOD: Style = Style::new().fg(Color::Green);
/// Something bad.
pub const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
/// Something doubtful, or something that waits for the user.
pub const WARNING: Style = Style::new().fg(Color::Yellow);
/// The chosen item of a list.
pub const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);
/// Text of the user.
pub const USER: Style = Style::new().fg(Color::Green).add_modifier(Modifier::BOLD);
