//! Frames of the assistant: history, what is under way, the input with what belongs to it, and the status line.

use std::time::Instant;

use crate::cli::assistant::app::{App, Overlay};
use crate::cli::assistant::shell_watch::Wait;
use crate::cli::assistant::short_path::short_path;
use karyi_core::limits;
use karyi_screen::live_region::{Region, most_rows};
use karyi_screen::safe_text::safe_line;
use karyi_screen::status_line::StatusView;
use karyi_screen::styled_line::{Line, Span, fit};
use karyi_screen::theme;

/// Rows of a region from which on a blank line stands above the input.
const AIRY_ROWS: usize = 8;

/// Lines of the live region that the user answers, with the caret in them.
struct Lower {
    lines: Vec<Line<'static>>,
    caret: (usize, usize),
}

impl App {
    /// Draws a frame.
    pub(super) fn draw(&mut self, now: Instant) -> std::io::Result<()> {
        let has_draft = !self.input.is_empty();
        if let Some(asked) = &mut self.approval {
            asked.has_draft = has_draft;
        }
        let before = self.screen.size();
        let size = self.screen.measure();
        if size != before && self.exit.is_none() {
            // The lines on the screen may not have been wrapped for this size yet.
            self.clock.hold(now + limits::RESIZE_PAUSE);
            return Ok(());
        }
        let columns = usize::from(size.columns.saturating_sub(1)).max(1);
        let most = most_rows(size);
        let lower = self.lower(columns, most, now);
        let room = most.saturating_sub(lower.lines.len());
        let queue = self.queue_lines(columns, room / 2);
        let mut view = self.view.lock();
        view.set_columns(columns);
        view.is_asking = self.approval.is_some();
        view.set_wait(self.shell.state().wait.map(Wait::as_str));
        let history = view.take_history();
        let mut lines = view.live_lines(now, room.saturating_sub(queue.len()));
        drop(view);
        lines.extend(queue);
        let (row, column) = lower.caret;
        let caret = (lines.len() + row, column);
        lines.extend(lower.lines);
        let caret = Some(caret).filter(|_| self.exit.is_none());
        self.screen.draw(&history, &Region { lines, caret })
    }

    /// Returns the question about calls, the input, the list below it and the status line.
    fn lower(&self, columns: usize, most: usize, now: Instant) -> Lower {
        let mut below = self.overlay_lines(columns);
        below.truncate(most.saturating_sub(2));
        let asked = self.approval.as_ref();
        // On a small screen a question has the place of the status line.
        if asked.is_none() || most > below.len() + 2 {
            below.push(self.status().line(columns));
        }
        let (mut lines, mut caret) =
            asked.map_or_else(Default::default, |asked| asked.lines(columns, now));
        if most >= AIRY_ROWS {
            lines.insert(0, Line::default());
            caret = caret.map(|(row, column)| (row + 1, column));
        }
        let room = most.saturating_sub(below.len());
        let surplus = (lines.len() + 1).saturating_sub(room);
        // The keys that answer stand at the end, the most important ones first.
        let keys = asked.map_or(0, |asked| asked.key_lines(columns, now).len());
        let above = surplus.min(lines.len().saturating_sub(keys));
        lines.drain(..above);
        lines.truncate(lines.len() + above - surplus.min(lines.len() + above));
        caret = caret.map(|(row, column)| (row.saturating_sub(surplus), column));
        let rows = (room.saturating_sub(lines.len()) / 2).max(1);
        let input = self.input.rows(columns, rows);
        if self.screen.has_input_last() {
            lines.append(&mut below);
        }
        let of_input = (lines.len() + input.caret.0, input.caret.1);
        lines.extend(input.lines);
        lines.extend(below);
        Lower {
            lines,
            caret: caret.unwrap_or(of_input),
        }
    }

    fn queue_lines(&self, columns: usize, most: usize) -> Vec<Line<'static>> {
        let line = |(word, text): (&str, &String)| {
            let text = format!("{word}: {}", safe_line(text));
            fit(&Line::from(Span::styled(text, theme::FAINT)), columns)
        };
        let next = self.start.steering.waiting();
        let next = next.iter().map(|text| ("next", text));
        let later = self.queue.iter().map(|text| ("after this", text));
        next.chain(later).take(most).map(line).collect()
    }

    fn overlay_lines(&self, columns: usize) -> Vec<Line<'static>> {
        match &self.overlay {
            Overlay::None => Vec::new(),
            Overlay::Completion(completion) => completion.list.lines(columns),
            Overlay::Search(list) => list.lines(columns),
            Overlay::Rewind(list) => list.lines(columns),
            Overlay::Picker(picker) => picker.lines(columns),
            Overlay::Menu(menu) => menu.lines(&self.totals, self.since.elapsed(), columns),
        }
    }

    /// Returns the state for the status line.
    pub(super) fn status(&self) -> StatusView {
        let shell = self.shell.state();
        let view = self.view.lock();
        let directory = short_path(&shell.directory, self.start.home.as_deref());
        let redactor = &self.start.setup.context.redactor;
        StatusView {
            directory: redactor.redact_again(&directory).into_owned(),
            exit: view.last_exit.filter(|exit| *exit != 0),
            program: shell.wait.map(|wait| wait.as_str().to_owned()),
            is_waiting: shell.wait.is_some(),
            // What works now is no job.
            jobs: if self.talk.is_busy() { 0 } else { shell.jobs },
            model: self.start.setup.model.name.clone(),
            context: self.context,
            tokens: self.totals.tokens(),
            has_more_tokens: self.totals.has_unknown_tokens,
            cost: self.totals.cost(),
            mode: self.start.approvals.mode().as_str().to_owned(),
        }
    }
}
