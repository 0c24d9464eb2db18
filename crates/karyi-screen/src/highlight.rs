//! Colours lines of code by their syntax, in the 16 colours of the terminal.
//!
//! The syntaxes are loaded in a thread at the first code block, since they take time and memory. The first lines wait for
//! them a moment and are plain after that.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

use crate::styled_line::{Color, Span, Style};
use crate::theme;
use karyi_core::limits;

/// Styles of scopes; the first one that begins a scope counts.
const STYLES: &[(&str, Style)] = &[
    ("comment", theme::FAINT),
    ("string", Style::new().fg(Color::Green)),
    ("constant.character", Style::new().fg(Color::Green)),
    ("constant", Style::new().fg(Color::Cyan)),
    ("keyword.operator", Style::new()),
    ("keyword", Style::new().fg(Color::Magenta)),
    ("storage", Style::new().fg(Color::Magenta)),
    ("entity.name.function", Style::new().fg(Color::Blue)),
    ("support.function", Style::new().fg(Color::Blue)),
    ("variable.function", Style::new().fg(Color::Blue)),
    ("entity.name.tag", Style::new().fg(Color::Red)),
    ("entity.name", Style::new().fg(Color::Yellow)),
    ("support", Style::new().fg(Color::Yellow)),
    ("markup.inserted", theme::GOOD),
    ("markup.deleted", theme::BAD),
    ("markup.heading", theme::HEADING),
];

/// Syntaxes, once they are loaded.
static SYNTAXES: OnceLock<SyntaxSet> = OnceLock::new();
/// State of the load.
static LOAD: Mutex<Load> = Mutex::new(Load::Idle);
static LOADED: Condvar = Condvar::new();

#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    Idle,
    Running,
    Done,
}

/// Colours the lines of one code block.
pub(crate) struct CodeHighlighter {
    language: String,
    state: Option<(ParseState, ScopeStack)>,
    is_plain: bool,
}

impl CodeHighlighter {
    /// Starts a block in a language.
    pub(crate) fn new(language: &str) -> Self {
        drop(start());
        Self {
            language: language.to_owned(),
            state: None,
            is_plain: false,
        }
    }

    /// Returns the text of the next line in colours.
    pub(crate) fn spans(&mut self, line: &str) -> Vec<Span<'static>> {
        let plain = || vec![Span::raw(line.to_owned())];
        if self.is_plain || line.len() > limits::MAX_HIGHLIGHTED_BYTES {
            return plain();
        }
        let Some(syntaxes) = syntaxes() else {
            return plain();
        };
        let (state, stack) = match &mut self.state {
            Some(state) => state,
            None => match syntaxes.find_syntax_by_token(&self.language) {
                Some(syntax) => self
                    .state
                    .insert((ParseState::new(syntax), ScopeStack::new())),
                None => {
                    self.is_plain = true;
                    return plain();
                }
            },
        };
        match coloured(line, state, stack, syntaxes) {
            Some(spans) => spans,
            None => {
                self.is_plain = true;
                plain()
            }
        }
    }
}

/// Returns a line in colours; nothing when its syntax is broken.
fn coloured(
    line: &str,
    state: &mut ParseState,
    stack: &mut ScopeStack,
    syntaxes: &SyntaxSet,
) -> Option<Vec<Span<'static>>> {
    let operations = state.parse_line(&format!("{line}\n"), syntaxes).ok()?;
    let (mut spans, mut start) = (Vec::new(), 0);
    for (end, operation) in operations {
        let end = end.min(line.len());
        push(&mut spans, line.get(start..end)?, stack);
        start = end;
        stack.apply(&operation).ok()?;
    }
    push(&mut spans, line.get(start..)?, stack);
    Some(spans)
}

fn push(spans: &mut Vec<Span<'static>>, text: &str, stack: &ScopeStack) {
    if text.is_empty() {
        return;
    }
    let style = style(stack);
    match spans.last_mut() {
        Some(last) if last.style == style => last.content.to_mut().push_str(text),
        _ => spans.push(Span::styled(text.to_owned(), style)),
    }
}

/// Returns the style of the innermost scope that has one.
fn style(stack: &ScopeStack) -> Style {
    static SCOPES: OnceLock<Vec<(Scope, Style)>> = OnceLock::new();
    let scopes = SCOPES.get_or_init(|| {
        let scope = |(name, style): &(&str, Style)| Some((Scope::new(name).ok()?, *style));
        STYLES.iter().filter_map(scope).collect()
    });
    let of = |scope: &Scope| {
        let mut found = scopes
            .iter()
            .filter(|(prefix, _)| prefix.is_prefix_of(*scope));
        found.next().map(|(_, style)| *style)
    };
    let innermost = stack.as_slice().iter().rev().find_map(of);
    innermost.unwrap_or_default()
}

/// Starts to load the syntaxes, unless that has happened.
fn start() -> MutexGuard<'static, Load> {
    let mut load = LOAD.lock().unwrap_or_else(PoisonError::into_inner);
    if *load == Load::Idle {
        let thread = std::thread::Builder::new().name("syntaxes".into());
        let started = thread.spawn(|| {
            let _ = SYNTAXES.set(two_face::syntax::extra_newlines());
            finish();
        });
        *load = match started {
            Ok(_) => Load::Running,
            Err(_) => Load::Done,
        };
    }
    load
}

fn finish() {
    *LOAD.lock().unwrap_or_else(PoisonError::into_inner) = Load::Done;
    LOADED.notify_all();
}

/// Returns the syntaxes; waits a moment for them once.
fn syntaxes() -> Option<&'static SyntaxSet> {
    static HAS_WAITED: OnceLock<()> = OnceLock::new();
    if SYNTAXES.get().is_none() && HAS_WAITED.set(()).is_ok() {
        let is_running = |load: &mut Load| *load == Load::Running;
        // Without them the lines are plain.
        let _ = LOADED.wait_timeout_while(start(), limits::HIGHLIGHT_WAIT, is_running);
    }
    SYNTAXES.get()
}

/// Waits until the syntaxes are there.
#[cfg(test)]
pub(crate) fn wait_for_syntaxes() {
    let is_running = |load: &mut Load| *load == Load::Running;
    drop(LOADED.wait_while(start(), is_running).unwrap());
}
