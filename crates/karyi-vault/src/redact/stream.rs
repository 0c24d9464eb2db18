//! Masks a text that comes in pieces.
//!
//! As much of the text is held back as could still become a match, not a byte more. Offsets count
//! the bytes of the whole text.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use zeroize::Zeroizing;

use super::edges::{self, before_placeholder, begun, escape, is_word};
use super::form::Form;
use super::lane::{Found, Lane};
use super::tables::Tables;
use super::text::Redacted;
use super::unescaped::{Known, Unescaped};
use crate::session::Secrets;
use crate::view::{View, visible_bytes};
use karyi_core::limits;
use karyi_core::secret::SecretName;

/// The secrets and the tables of their newest generation.
#[derive(Clone)]
pub(super) struct Source {
    pub(super) secrets: Secrets,
    tables: Arc<Mutex<Arc<Tables>>>,
}

impl Source {
    /// Builds the tables.
    pub(super) fn new(secrets: &Secrets) -> Self {
        Self {
            secrets: secrets.clone(),
            tables: Arc::new(Mutex::new(Arc::new(Tables::build(secrets)))),
        }
    }

    /// Returns the tables, built again when a secret has changed.
    pub(super) fn tables(&self) -> Arc<Tables> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if tables.generation != self.secrets.generation() {
            *tables = Arc::new(Tables::build(&self.secrets));
        }
        Arc::clone(&tables)
    }
}

/// A stretch of a text over the end of a line, and what to show in its place in each of the lines.
pub(super) type OverLines = (Range<usize>, String);

/// Masks a text that comes in pieces.
#[derive(Clone)]
pub struct RedactStream {
    source: Source,
    tables: Arc<Tables>,
    view: View,
    /// What is visible.
    main: Lane,
    /// What is visible around the escapes of each kind, without these.
    unescaped: [Unescaped; 3],
    /// What stands inside of escape sequences.
    inside: Lane,
    /// The end of the text so far; it starts at `base`, not after `given`.
    held: Zeroizing<String>,
    base: u64,
    /// Everything before this is settled.
    given: u64,
    /// Everything before this was looked at for values that are too short for windows.
    shorts_done: u64,
    /// Masked stretches, in order, apart from each other.
    regions: VecDeque<Found>,
    /// Whether what looks like a placeholder is left alone.
    keeps_placeholders: bool,
    /// Whether anything was changed.
    is_changed: bool,
    /// What was masked over the end of a line, and how it is shown in each, when somebody wants to know.
    over_lines: Option<Vec<OverLines>>,
}

impl RedactStream {
    pub(super) fn new(source: &Source, keeps_placeholders: bool) -> Self {
        Self {
            source: source.clone(),
            tables: source.tables(),
            view: View::Ground,
            main: Lane::default(),
            unescaped: Unescaped::all(),
            inside: Lane::default(),
            held: Zeroizing::new(String::new()),
            base: 0,
            given: 0,
            shorts_done: 0,
            regions: VecDeque::new(),
            keeps_placeholders,
            is_changed: false,
            over_lines: None,
        }
    }

    /// Takes the next piece and appends to `out` what is settled by now.
    pub fn push(&mut self, text: &str, out: &mut Redacted) {
        if self.tables.generation != self.source.secrets.generation() {
            self.change_tables();
        }
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.ceil_char_boundary(limits::REDACT_PIECE_BYTES.min(rest.len()));
            let (piece, after) = rest.split_at(end);
            self.push_piece(piece, out);
            rest = after;
        }
    }

    fn push_piece(&mut self, text: &str, out: &mut Redacted) {
        let from = self.end();
        self.hold(text);
        if !self.tables.is_empty() {
            self.scan(from);
        }
        self.settle(self.safe(), out);
        if self.held_back().len() > limits::MAX_HELD_REDACTION_BYTES {
            // It would become too much. A value that was begun is masked.
            self.cut(out);
        }
    }

    /// Appends the rest after the text came to its normal end.
    pub fn finish(mut self, out: &mut Redacted) {
        self.flush(out);
    }

    /// Appends the rest after the text was cut off: what may be the start of a value is masked.
    pub fn finish_cut(mut self, out: &mut Redacted) {
        self.cut(out);
    }

    /// Appends everything so far, as if the text ended here, and goes on: a value that was begun is
    /// known when it is completed.
    pub fn flush(&mut self, out: &mut Redacted) {
        self.flush_lanes();
        self.find_shorts(true);
        self.settle(self.end(), out);
    }

    /// Does so, and masks what may be the start of a value.
    pub fn cut(&mut self, out: &mut Redacted) {
        let half = self.unescaped.each_ref();
        let half = half.map(|lane| lane.half_escape(&self.main));
        self.flush_lanes();
        self.find_shorts(true);
        let cut = [&self.main, &self.inside].map(|lane| lane.cut(&self.tables));
        let unescaped = self.unescaped.each_ref();
        let unescaped = unescaped.map(|lane| lane.cut(&self.tables));
        for found in cut.into_iter().chain(unescaped).flatten() {
            self.add_region(found);
        }
        let end = self.end();
        // An escape that was cut in two is of what stands before it.
        if let Some(last) = self
            .regions
            .back_mut()
            .filter(|last| half.contains(&Some(last.end)))
        {
            last.end = end;
        }
        self.settle(self.end(), out);
    }

    /// Returns what is held back now.
    pub(super) fn held_back(&self) -> &str {
        self.held.get(self.index(self.given)..).unwrap_or_default()
    }

    pub(super) fn keeps_placeholders(&self) -> bool {
        self.keeps_placeholders
    }

    /// Keeps what is masked over the end of a line from now on.
    pub(super) fn keep_over_lines(&mut self) {
        self.over_lines = Some(Vec::new());
    }

    /// Returns what was masked over the end of a line.
    pub(super) fn into_over_lines(self) -> Vec<OverLines> {
        self.over_lines.unwrap_or_default()
    }

    pub(super) fn is_changed(&self) -> bool {
        self.is_changed
    }

    fn flush_lanes(&mut self) {
        let mut found = Vec::new();
        for lane in [&self.main, &self.inside] {
            lane.flush(&mut found);
        }
        let known = Known {
            bytes: self.held.as_bytes(),
            base: self.base,
        };
        for lane in &mut self.unescaped {
            lane.read(&self.main, &known, true);
            lane.scan(&self.tables, &mut found);
            lane.scan_end(&self.tables, &mut found);
            lane.flush(&mut found);
        }
        found.into_iter().for_each(|found| self.add_region(found));
    }

    fn end(&self) -> u64 {
        self.base + self.held.len() as u64
    }

    /// Appends to what is held; what is there is wiped where it was.
    fn hold(&mut self, text: &str) {
        let needed = self.held.len() + text.len();
        if needed > self.held.capacity() {
            let mut larger = Zeroizing::new(String::with_capacity(needed.next_power_of_two()));
            larger.push_str(&self.held);
            self.held = larger;
        }
        self.held.push_str(text);
    }

    /// Takes what is held through new tables: a secret became known in the middle of the text.
    fn change_tables(&mut self) {
        let old = std::mem::replace(&mut self.tables, self.source.tables());
        self.main = Lane::default();
        self.unescaped = Unescaped::all();
        self.inside = Lane::default();
        self.view = View::Ground;
        let given = self.given;
        self.regions.retain(|region| region.start < given);
        for region in &mut self.regions {
            let name = old.names.get(region.secret);
            let index = self.tables.names.iter().position(|n| Some(n) == name);
            region.secret = index.unwrap_or(usize::MAX);
        }
        self.shorts_done = given;
        self.scan(given);
    }

    /// Looks for matches in what is held from a place on.
    fn scan(&mut self, from: u64) {
        let held = std::mem::take(&mut *self.held);
        let bytes = held.as_bytes();
        let mut at = from;
        let start = usize::try_from(from - self.base).unwrap_or(usize::MAX);
        let known = Known {
            bytes,
            base: self.base,
        };
        let mut found = Vec::new();
        let blocks = bytes.get(start..).unwrap_or_default();
        for block in blocks.chunks(limits::REDACT_BLOCK_BYTES) {
            self.view.split(block, at, &mut self.main, &mut self.inside);
            at += block.len() as u64;
            self.main.scan(&self.tables, &mut found);
            self.inside.scan(&self.tables, &mut found);
            for lane in &mut self.unescaped {
                lane.read(&self.main, &known, false);
                lane.scan(&self.tables, &mut found);
            }
            self.main.forget();
            self.inside.forget();
        }
        self.main.scan_end(&self.tables, &mut found);
        self.inside.scan_end(&self.tables, &mut found);
        for lane in &mut self.unescaped {
            lane.scan_end(&self.tables, &mut found);
        }
        *self.held = held;
        found.into_iter().for_each(|found| self.add_region(found));
        self.find_shorts(false);
    }

    /// Adds a stretch that is masked; those that overlap become one, named as the longest of them, and of two alike as
    /// the one in the plainer form.
    fn add_region(&mut self, mut new: Found) {
        let first = self.regions.partition_point(|old| old.end <= new.start);
        while let Some(old) = self.regions.get(first).filter(|old| old.start < new.end) {
            let rank = |found: &Found| (Reverse(found.length), found.secret, found.form);
            if rank(old) < rank(&new) {
                (new.secret, new.form, new.length) = (old.secret, old.form, old.length);
            }
            new.start = new.start.min(old.start);
            new.end = new.end.max(old.end);
            self.regions.remove(first);
        }
        self.regions.insert(first, new);
    }

    /// Looks for values that are too short for windows: as they are, where they stand as a word.
    fn find_shorts(&mut self, is_end: bool) {
        let tables = Arc::clone(&self.tables);
        let from = self.index(self.shorts_done.max(self.base));
        let mut open = self.held.len();
        let mut found = Vec::new();
        for short in &tables.shorts {
            let bytes = self.held.as_bytes();
            let tail = bytes.get(from..).unwrap_or_default();
            for at in memchr::memmem::find_iter(tail, short.text.as_slice()) {
                let (start, end) = (from + at, from + at + short.text.len());
                if end == bytes.len() && !is_end {
                    open = open.min(start);
                } else if is_word(&self.held, start, end) {
                    found.push(Found {
                        start: self.base + start as u64,
                        end: self.base + end as u64,
                        secret: short.secret,
                        form: Form::Raw,
                        length: short.text.len(),
                    });
                }
            }
            open = open.min(bytes.len() - begun(tail, &short.text));
        }
        self.shorts_done = self.base + if is_end { self.held.len() } else { open } as u64;
        found.into_iter().for_each(|found| self.add_region(found));
    }

    /// Returns the place before which nothing can become a match any more.
    fn safe(&self) -> u64 {
        let lanes = [&self.main, &self.inside];
        let open = lanes
            .into_iter()
            .filter_map(|lane| lane.open_from(&self.tables));
        let unescaped = self.unescaped.iter();
        let open =
            open.chain(unescaped.filter_map(|lane| lane.open_from(&self.main, &self.tables)));
        let end = self.end();
        let shorts = if self.tables.shorts.is_empty() {
            end
        } else {
            self.shorts_done
        };
        let settled = self.index(open.fold(end, u64::min).min(shorts));
        let settled = if self.keeps_placeholders {
            settled
        } else {
            before_placeholder(&self.held, settled)
        };
        self.base + self.held.floor_char_boundary(settled) as u64
    }

    /// Gives out everything before `safe`, where the first match that is still open may start.
    fn settle(&mut self, safe: u64, out: &mut Redacted) {
        // What a cut has given out already may belong to a match that is still open.
        let safe = safe.max(self.given);
        let mut at = self.given;
        while let Some(region) = self.regions.pop_front_if(|region| region.end <= safe) {
            let (start, end) = (self.index(region.start), self.index(region.end));
            let (start, end) = (
                self.held.floor_char_boundary(start),
                self.held.ceil_char_boundary(end),
            );
            let start = start.max(self.index(at));
            let (start, end) = self.trimmed(&region, start, end);
            if start >= end || self.keeps_placeholders && self.is_marker(start, end) {
                continue;
            }
            self.give(at, self.base + start as u64, out);
            let used = self.mask(&region, start, end, out);
            at = self.base + (end + used) as u64;
        }
        let open = self
            .regions
            .front()
            .map_or(safe, |region| region.start.min(safe));
        self.give(at, open, out);
        self.given = open.max(at);
        self.forget();
    }

    /// Leaves out what a region has of the lines before and behind a value of several: a letter or two of them may be the
    /// value's next ones by chance.
    fn trimmed(&self, region: &Found, start: usize, end: usize) -> (usize, usize) {
        let (mut start, mut end) = (start, end);
        let stretch = self.held.get(start..end).unwrap_or_default();
        let has_lines = region.form == Form::Raw && self.tables.has_lines(region.secret);
        if !has_lines || self.tables.whole(stretch.as_bytes(), b"").is_some() {
            return (start, end);
        }
        let is_few = |text: &str| visible_bytes(text) < limits::MIN_CUT_SECRET_BYTES;
        if let Some((lines, _)) = stretch.rsplit_once('\n').filter(|(_, last)| is_few(last)) {
            end = start + lines.trim_end().len();
        }
        if let Some((_, lines)) = stretch.split_once('\n').filter(|(first, _)| is_few(first)) {
            start += stretch.len() - lines.trim_start().len();
        }
        (start, end)
    }

    /// Whether a region is a part of a marker that an earlier pass wrote: a value may hold its own name.
    fn is_marker(&self, start: usize, end: usize) -> bool {
        let from = self
            .held
            .floor_char_boundary(start.saturating_sub(edges::MARKER_BYTES));
        let text = self.held.get(from..).unwrap_or_default();
        let is_name = |name: &str| self.tables.names.iter().any(|known| known.as_str() == name);
        edges::markers(text, end - from, is_name)
            .any(|marker| from + marker.start <= start && end <= from + marker.end)
    }

    /// Writes the marker of a region; returns how many bytes after it belong to the value.
    fn mask(&mut self, region: &Found, start: usize, end: usize, out: &mut Redacted) -> usize {
        self.is_changed = true;
        let stretch = self.held.get(start..end).unwrap_or_default();
        let after = self.held.get(end..).unwrap_or_default();
        // A `$` before it would make a literal of it.
        let is_literal = edges::is_behind_dollar(out.as_str(), &self.held, start);
        let is_exact = region.start >= self.given && !is_literal;
        let whole = self.tables.whole(stretch.as_bytes(), after.as_bytes());
        let whole = whole.filter(|_| is_exact);
        let (secret, used) = whole.unwrap_or((region.secret, 0));
        let name = self.tables.names.get(secret).map_or("", SecretName::as_str);
        let part = match name {
            "" => "[KARYI]".to_owned(),
            name => format!("[KARYI:{name}:{}]", region.form.as_str()),
        };
        let text = out.text();
        match whole.filter(|_| !name.is_empty()) {
            Some(_) => text.extend(["$KARYI{", name, "}"]),
            None => text.push_str(&part),
        }
        let base = usize::try_from(self.base).unwrap_or(usize::MAX);
        if let Some(over_lines) = self.over_lines.as_mut().filter(|_| stretch.contains('\n')) {
            over_lines.push((base + start..base + end, part));
        }
        used
    }

    fn give(&mut self, from: u64, to: u64, out: &mut Redacted) {
        if from >= to {
            return;
        }
        let text = self.held.get(self.index(from)..self.index(to));
        let (text, out) = (text.unwrap_or_default(), out.text());
        if self.keeps_placeholders {
            out.push_str(text);
            return;
        }
        self.is_changed |= escape(text, out);
    }

    fn index(&self, offset: u64) -> usize {
        usize::try_from(offset.saturating_sub(self.base))
            .unwrap_or(usize::MAX)
            .min(self.held.len())
    }

    /// Drops settled text once it is the larger part of what is held: moving the rest to the front
    /// each time would cost more than keeping it.
    fn forget(&mut self) {
        let settled = self.index(self.given);
        if settled > self.held.len() / 2 {
            // What stands before it tells whether a word starts after it.
            let settled = settled.saturating_sub(edges::ESCAPE_BYTES);
            let settled = self.held.floor_char_boundary(settled);
            self.held.drain(..settled);
            self.base += settled as u64;
        }
    }
}
