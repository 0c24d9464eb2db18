//! Masks a text that arrives in pieces.
//!
//! Only text that may still become a match is held back. Offsets count the bytes of the whole text.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use zeroize::Zeroizing;

use super::boundaries::{self, before_placeholder, begun, escape, is_word};
use super::form::Form;
use super::redacted::Redacted;
use super::search_tables::SearchTables;
use super::unescaped_text::{HeldText, UnescapedText};
use super::visible_text::{SecretSpan, VisibleText};
use crate::session::Secrets;
use crate::visible::{EscapeState, visible_bytes};
use karyi_core::limits;
use karyi_core::secret::SecretName;

/// Secrets, and the tables of their newest generation.
#[derive(Clone)]
pub(super) struct LiveTables {
    pub(super) secrets: Secrets,
    tables: Arc<Mutex<Arc<SearchTables>>>,
}

impl LiveTables {
    /// Builds the tables.
    pub(super) fn new(secrets: &Secrets) -> Self {
        Self {
            secrets: secrets.clone(),
            tables: Arc::new(Mutex::new(Arc::new(SearchTables::build(secrets)))),
        }
    }

    /// Returns the tables, rebuilt when a secret has changed.
    pub(super) fn tables(&self) -> Arc<SearchTables> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if tables.generation != self.secrets.generation() {
            *tables = Arc::new(SearchTables::build(&self.secrets));
        }
        Arc::clone(&tables)
    }
}

/// Range of a text that spans line ends, and its replacement in each of the lines.
pub(super) type MaskAcrossLines = (Range<usize>, String);

/// Masks a text that arrives in pieces.
#[derive(Clone)]
pub struct RedactStream {
    source: LiveTables,
    tables: Arc<SearchTables>,
    view: EscapeState,
    /// Visible bytes.
    main: VisibleText,
    /// Decoded bytes around the escapes of each kind.
    unescaped: [UnescapedText; 3],
    /// Bytes inside escape sequences of the terminal.
    inside: VisibleText,
    /// Retained end of the text, from offset `base`, which is not after `given`.
    held: Zeroizing<String>,
    base: u64,
    /// Offset before which all text is settled.
    given: u64,
    /// Offset before which the search for short values is complete.
    shorts_done: u64,
    /// Spans to mask, in order and disjoint.
    regions: VecDeque<SecretSpan>,
    /// True when literal placeholders are left unchanged.
    preserves_placeholders: bool,
    /// True when anything was changed.
    is_changed: bool,
    /// Masked ranges that span line ends, when they are recorded.
    across_lines: Option<Vec<MaskAcrossLines>>,
}

impl RedactStream {
    pub(super) fn new(source: &LiveTables, preserves_placeholders: bool) -> Self {
        Self {
            source: source.clone(),
            tables: source.tables(),
            view: EscapeState::Ground,
            main: VisibleText::default(),
            unescaped: UnescapedText::all(),
            inside: VisibleText::default(),
            held: Zeroizing::new(String::new()),
            base: 0,
            given: 0,
            shorts_done: 0,
            regions: VecDeque::new(),
            preserves_placeholders,
            is_changed: false,
            across_lines: None,
        }
    }

    /// Adds the next piece and appends the settled text to `out`.
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
        self.settle(self.settled_end(), out);
        if self.held_back().len() > limits::MAX_HELD_REDACTION_BYTES {
            // The buffer is full. A started value is masked.
            self.cut(out);
        }
    }

    /// Appends the rest at the normal end of the text.
    pub fn finish(mut self, out: &mut Redacted) {
        self.flush(out);
    }

    /// Appends the rest of a text that was cut off; a possible start of a value is masked.
    pub fn finish_cut(mut self, out: &mut Redacted) {
        self.cut(out);
    }

    /// Appends all text so far, as if it ended here, and continues: a value that was started is recognised when it is
    /// completed.
    pub fn flush(&mut self, out: &mut Redacted) {
        self.flush_texts();
        self.find_short_values(true);
        self.settle(self.end(), out);
    }

    /// As `flush`, and masks a possible start of a value.
    pub fn cut(&mut self, out: &mut Redacted) {
        let half = self.unescaped.each_ref();
        let half = half.map(|text| text.half_escape(&self.main));
        self.flush_texts();
        self.find_short_values(true);
        let cut = [&self.main, &self.inside].map(|text| text.cut(&self.tables));
        let unescaped = self.unescaped.each_ref();
        let unescaped = unescaped.map(|text| text.cut(&self.tables));
        for found in cut.into_iter().chain(unescaped).flatten() {
            self.add_region(found);
        }
        let end = self.end();
        // Half an escape belongs to the span before it.
        if let Some(last) = self
            .regions
            .back_mut()
            .filter(|last| half.contains(&Some(last.end)))
        {
            last.end = end;
        }
        self.settle(self.end(), out);
    }

    /// Returns the text that is held back.
    pub(super) fn held_back(&self) -> &str {
        self.held.get(self.index(self.given)..).unwrap_or_default()
    }

    pub(super) fn preserves_placeholders(&self) -> bool {
        self.preserves_placeholders
    }

    /// Records masked ranges that span line ends from now on.
    pub(super) fn record_across_lines(&mut self) {
        self.across_lines = Some(Vec::new());
    }

    /// Returns the recorded ranges.
    pub(super) fn into_across_lines(self) -> Vec<MaskAcrossLines> {
        self.across_lines.unwrap_or_default()
    }

    pub(super) fn is_changed(&self) -> bool {
        self.is_changed
    }

    fn flush_texts(&mut self) {
        let mut found = Vec::new();
        for text in [&self.main, &self.inside] {
            text.flush(&mut found);
        }
        let known = HeldText {
            bytes: self.held.as_bytes(),
            base: self.base,
        };
        for text in &mut self.unescaped {
            text.read(&self.main, &known, true);
            text.scan(&self.tables, &mut found);
            text.scan_end(&self.tables, &mut found);
            text.flush(&mut found);
        }
        found.into_iter().for_each(|found| self.add_region(found));
    }

    fn end(&self) -> u64 {
        self.base + self.held.len() as u64
    }

    /// Appends to the retained text; a former buffer is wiped.
    fn hold(&mut self, text: &str) {
        let needed = self.held.len() + text.len();
        if needed > self.held.capacity() {
            let mut larger = Zeroizing::new(String::with_capacity(needed.next_power_of_two()));
            larger.push_str(&self.held);
            self.held = larger;
        }
        self.held.push_str(text);
    }

    /// Searches the retained text again with new tables: a secret was added in the middle of the text.
    fn change_tables(&mut self) {
        let old = std::mem::replace(&mut self.tables, self.source.tables());
        self.main = VisibleText::default();
        self.unescaped = UnescapedText::all();
        self.inside = VisibleText::default();
        self.view = EscapeState::Ground;
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

    /// Finds matches in the retained text from an offset on.
    fn scan(&mut self, from: u64) {
        let held = std::mem::take(&mut *self.held);
        let bytes = held.as_bytes();
        let mut at = from;
        let start = usize::try_from(from - self.base).unwrap_or(usize::MAX);
        let known = HeldText {
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
            for text in &mut self.unescaped {
                text.read(&self.main, &known, false);
                text.scan(&self.tables, &mut found);
            }
            self.main.forget();
            self.inside.forget();
        }
        self.main.scan_end(&self.tables, &mut found);
        self.inside.scan_end(&self.tables, &mut found);
        for text in &mut self.unescaped {
            text.scan_end(&self.tables, &mut found);
        }
        *self.held = held;
        found.into_iter().for_each(|found| self.add_region(found));
        self.find_short_values(false);
    }

    /// Adds a span to mask. Overlapping spans are merged and named after the longest, or the plainer form of two equal
    /// ones.
    fn add_region(&mut self, mut new: SecretSpan) {
        let first = self.regions.partition_point(|old| old.end <= new.start);
        while let Some(old) = self.regions.get(first).filter(|old| old.start < new.end) {
            let rank = |found: &SecretSpan| (Reverse(found.length), found.secret, found.form);
            if rank(old) < rank(&new) {
                (new.secret, new.form, new.length) = (old.secret, old.form, old.length);
            }
            new.start = new.start.min(old.start);
            new.end = new.end.max(old.end);
            self.regions.remove(first);
        }
        self.regions.insert(first, new);
    }

    /// Finds values that are too short for n-grams, as whole words.
    fn find_short_values(&mut self, is_end: bool) {
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
                    found.push(SecretSpan {
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

    /// Returns the offset before which nothing can become a match any more.
    fn settled_end(&self) -> u64 {
        let texts = [&self.main, &self.inside];
        let open = texts
            .into_iter()
            .filter_map(|text| text.open_from(&self.tables));
        let unescaped = self.unescaped.iter();
        let open =
            open.chain(unescaped.filter_map(|text| text.open_from(&self.main, &self.tables)));
        let end = self.end();
        let shorts = if self.tables.shorts.is_empty() {
            end
        } else {
            self.shorts_done
        };
        let settled = self.index(open.fold(end, u64::min).min(shorts));
        let settled = if self.preserves_placeholders {
            settled
        } else {
            before_placeholder(&self.held, settled)
        };
        self.base + self.held.floor_char_boundary(settled) as u64
    }

    /// Emits everything before `safe`, where the first open match may start.
    fn settle(&mut self, safe: u64, out: &mut Redacted) {
        // Text that a cut emitted may belong to a match that is still open.
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
            if start >= end || self.preserves_placeholders && self.is_marker(start, end) {
                continue;
            }
            self.emit(at, self.base + start as u64, out);
            let used = self.mask(&region, start, end, out);
            at = self.base + (end + used) as u64;
        }
        let open = self
            .regions
            .front()
            .map_or(safe, |region| region.start.min(safe));
        self.emit(at, open, out);
        self.given = open.max(at);
        self.forget();
    }

    /// Trims a span of a value with several lines: a few bytes in the lines before and after it may match by chance.
    fn trimmed(&self, region: &SecretSpan, start: usize, end: usize) -> (usize, usize) {
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

    /// Returns true when a span is inside a marker of an earlier pass: a value may contain its own name.
    fn is_marker(&self, start: usize, end: usize) -> bool {
        let from = self
            .held
            .floor_char_boundary(start.saturating_sub(boundaries::MARKER_BYTES));
        let text = self.held.get(from..).unwrap_or_default();
        let is_name = |name: &str| self.tables.names.iter().any(|known| known.as_str() == name);
        boundaries::markers(text, end - from, is_name)
            .any(|marker| from + marker.start <= start && end <= from + marker.end)
    }

    /// Writes the marker of a span; returns the number of bytes after it that belong to the value.
    fn mask(&mut self, region: &SecretSpan, start: usize, end: usize, out: &mut Redacted) -> usize {
        self.is_changed = true;
        let stretch = self.held.get(start..end).unwrap_or_default();
        let after = self.held.get(end..).unwrap_or_default();
        // After a `$` it would be a literal placeholder.
        let is_literal = boundaries::is_behind_dollar(out.as_str(), &self.held, start);
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
        if let Some(across_lines) = self
            .across_lines
            .as_mut()
            .filter(|_| stretch.contains('\n'))
        {
            across_lines.push((base + start..base + end, part));
        }
        used
    }

    fn emit(&mut self, from: u64, to: u64, out: &mut Redacted) {
        if from >= to {
            return;
        }
        let text = self.held.get(self.index(from)..self.index(to));
        let (text, out) = (text.unwrap_or_default(), out.text());
        if self.preserves_placeholders {
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

    /// Drops settled text once it is the larger part of the buffer: moving the rest each time would cost more.
    fn forget(&mut self) {
        let settled = self.index(self.given);
        if settled > self.held.len() / 2 {
            // Bytes before it decide whether a word starts after it.
            let settled = settled.saturating_sub(boundaries::ESCAPE_BYTES);
            let settled = self.held.floor_char_boundary(settled);
            self.held.drain(..settled);
            self.base += settled as u64;
        }
    }
}
