//! Working copies of the files of an edit, in memory.
//!
//! Each path has one working copy that later edits of the call continue with: a file may be renamed and then
//! edited under its new name, or deleted and created anew. In the end each working copy becomes one change.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::change::{Change, MetadataSource, NewContent};
use super::encoding::{Encoding, TextError};
use super::links;
use super::match_error::describe;
use super::matching::{self, Pair, PairResult, UndecodedPair};
use super::multi_error;
use super::opener::Opener;
use super::recode::CONVERT;
use super::request::FileEdit;
use super::root::Root;
use super::secret_line_breaks;
use super::similar_paths;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::secret::ByteSet;

/// Working copy of one path.
pub(super) struct WorkingCopy {
    change: Change,
    /// True if the file exists at this point of the edit.
    exists: bool,
    content: Content,
    /// Content before the call, under whatever name; `None` for a file that the call created.
    original: Option<Arc<Vec<u8>>>,
    /// File whose owner and permissions it takes after a rename.
    like: Option<PathBuf>,
    breaks_links: bool,
    /// Bytes of the inserted secrets.
    values: ByteSet,
}

/// Content of a working copy.
enum Content {
    /// Content on the disk.
    OnDisk,
    /// Bytes of a renamed file.
    Bytes(Vec<u8>),
    /// Text.
    Text(Encoding, String),
}

/// All working copies of an edit.
pub(super) struct WorkingCopies<'a> {
    /// Callback for each file that is read.
    on_read: &'a mut dyn FnMut(&mut Change),
    copies: Vec<WorkingCopy>,
    known: HashMap<CopyKey, usize>,
    bytes: u64,
}

/// Key of a working copy. Several hard links of one file have separate ones.
#[derive(PartialEq, Eq, Hash)]
enum CopyKey {
    File { device: u64, inode: u64 },
    Path(PathBuf),
}

impl WorkingCopy {
    fn new(shown: &Path, real: &Path) -> Result<Self, ToolError> {
        let change = Change::read(shown, real)?;
        let found = change.before.as_ref();
        Ok(Self {
            exists: found.is_some(),
            original: found.map(|found| Arc::clone(&found.bytes)),
            change,
            content: Content::OnDisk,
            like: None,
            breaks_links: false,
            values: ByteSet::EMPTY,
        })
    }

    /// Tells whether the file exists at this point of the edit.
    pub(super) fn exists(&self) -> bool {
        self.exists
    }

    /// Suggests similar paths for a missing file.
    pub(super) fn similar_paths(&self, root: &Root) -> Option<String> {
        similar_paths::hint(
            &Opener::new(root).ok()?,
            &self.change.shown,
            &self.change.real,
        )
    }

    fn found(&self) -> &[u8] {
        self.change.bytes().unwrap_or_default()
    }

    /// Decodes the content as text.
    fn text(&self, shown: &Path) -> Result<(Encoding, Cow<'_, str>), ToolError> {
        let read = |bytes| Encoding::read(bytes).map_err(|error| text_error(shown, error));
        match &self.content {
            Content::Text(encoding, text) => Ok((*encoding, Cow::Borrowed(text))),
            _ if !self.exists => Ok((Encoding::UTF8, Cow::Borrowed(""))),
            Content::OnDisk => read(self.found()),
            Content::Bytes(bytes) => read(bytes),
        }
    }

    /// Returns the encoding, if the content was read as text.
    pub(super) fn encoding(&self) -> Option<Encoding> {
        match &self.content {
            Content::Text(encoding, _) if self.exists => Some(*encoding),
            Content::Text(..) | Content::OnDisk | Content::Bytes(_) => None,
        }
    }

    /// Applies the pairs of one edit; returns their results and whether the text changed.
    pub(super) fn apply(&mut self, edit: &FileEdit) -> Result<(Vec<PairResult>, bool), ToolError> {
        let pairs = edit.pairs.iter().map(|pair| Pair {
            find: &pair.find,
            replace: &pair.replace,
            all: pair.all,
            written: pair.written.as_ref().map(|written| UndecodedPair {
                find: &written.find,
                replace: &written.replace,
            }),
            scope: pair.scope,
        });
        let mut pairs: Vec<Pair<'_>> = pairs.collect();
        let (encoding, before) = self.text(&edit.path)?;
        secret_line_breaks::check(edit, &before, encoding)?;
        let mut values = self.values;
        edit.pairs.iter().for_each(|pair| values.join(pair.values));
        if encoding.has_mark() {
            pairs.iter_mut().for_each(drop_mark);
        }
        let applied = matching::apply(&before, &pairs);
        let (after, results) = applied.map_err(|error| {
            let original = self.original.as_ref();
            let original = original.and_then(|bytes| Encoding::read(bytes).ok());
            let original = original.as_ref().map(|(_, text)| text.as_ref());
            let error = describe(edit, error, &before, original);
            match encoding.is_doubtful() && edit.pairs.iter().any(|pair| !pair.find.is_ascii()) {
                true => with_encoding_doubt(error, encoding),
                false => error,
            }
        })?;
        let is_changed = after != *before || !self.exists;
        if encoding.is_doubtful() {
            refuse_new_characters(&edit.path, encoding, (&before, &after), values)?;
        }
        self.values = values;
        if is_changed {
            self.content = Content::Text(encoding, after);
        }
        self.exists = true;
        Ok((results, is_changed))
    }

    /// Allows the edit to break hard links.
    pub(super) fn allow_breaking_links(&mut self, may: bool) {
        self.breaks_links |= may;
    }

    /// Removes the file.
    pub(super) fn delete(&mut self) {
        self.exists = false;
        self.content = Content::OnDisk;
        self.original = None;
        self.like = None;
    }

    /// Converts the working copy to a change.
    fn into_change(mut self) -> Result<Change, ToolError> {
        if !self.exists {
            return Ok(self.change);
        }
        let shown = self.change.shown.clone();
        let bytes = match self.content {
            Content::OnDisk => self.found().to_vec(),
            Content::Bytes(bytes) => bytes,
            Content::Text(encoding, text) => write(&shown, encoding, text, self.values)?,
        };
        let metadata = self
            .like
            .map_or(MetadataSource::Replaced, MetadataSource::CopyOf);
        self.change.after = Some(NewContent { bytes, metadata });
        Ok(self.change)
    }

    fn size(&self) -> u64 {
        let now = match &self.content {
            Content::OnDisk => 0,
            Content::Bytes(bytes) => bytes.len(),
            Content::Text(_, text) => text.len(),
        };
        (self.found().len() + now) as u64
    }
}

/// Removes a byte order mark that was copied along from a diff.
fn drop_mark(pair: &mut Pair<'_>) {
    for text in [&mut pair.find, &mut pair.replace] {
        *text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    }
}

const GUESSED: &str = "use only ASCII and characters that stand in the file already, or convert the file from its \
                       encoding to UTF-8 with `iconv` first";

fn write(
    shown: &Path,
    encoding: Encoding,
    text: String,
    values: ByteSet,
) -> Result<Vec<u8>, ToolError> {
    encoding.write(text).map_err(|character| {
        let name = encoding.name().unwrap_or("utf-8");
        let message = format!(
            "{}: the file is in {name}, which does not have {}",
            shown.display(),
            character_name(character, values)
        );
        ToolError::new(ErrorCode::NotEncodable, message)
    })
}

/// Names a character, unless it may belong to a secret.
fn character_name(character: char, values: ByteSet) -> String {
    match values.may_hold(character) {
        true => "a character of the value of a secret".into(),
        false => format!("{character:?} (U+{:04X})", u32::from(character)),
    }
}

/// Refuses new non-ASCII characters in a text whose encoding is only a guess.
fn refuse_new_characters(
    shown: &Path,
    encoding: Encoding,
    (before, after): (&str, &str),
    values: ByteSet,
) -> Result<(), ToolError> {
    let known: HashSet<char> = before.chars().filter(|c| !c.is_ascii()).collect();
    let is_new = |character: &char| !character.is_ascii() && !known.contains(character);
    let Some(character) = after.chars().find(is_new) else {
        return Ok(());
    };
    let message = format!(
        "{}: {} is only a guess of the file's encoding, so {} might be written wrong",
        shown.display(),
        encoding.name().unwrap_or("utf-8"),
        match values.may_hold(character) {
            true => "a character of the value of a secret".into(),
            false => character_name(character, values),
        }
    );
    Err(ToolError::new(ErrorCode::NotEncodable, message).with_hint(GUESSED))
}

/// Adds to a hint that the encoding may be wrong.
fn with_encoding_doubt(error: ToolError, encoding: Encoding) -> ToolError {
    let name = encoding.name().unwrap_or("utf-8");
    let hint = format!(
        "{}\nthe file was read as {name}, which is only a guess: if `read` shows it wrong, {CONVERT}",
        error.hint.trim_end()
    );
    error.with_hint(hint)
}

fn text_error(shown: &Path, error: TextError) -> ToolError {
    let shown = shown.display();
    let message = match error {
        TextError::Binary(at) => {
            format!("{shown}: expected text, found a NUL byte or control character at offset {at}")
        }
        TextError::BrokenUtf8(at) => {
            format!("{shown}: expected UTF-8 text, found a broken character at offset {at}")
        }
        TextError::Unknown(at) => {
            format!("{shown}: expected text, found an unknown encoding at offset {at}")
        }
    };
    let error_of_bytes = ToolError::new(ErrorCode::BinaryFile, message);
    match error {
        TextError::Binary(_) => error_of_bytes,
        TextError::BrokenUtf8(_) | TextError::Unknown(_) => {
            error_of_bytes.with_hint(format!("if it is a text in another encoding, {CONVERT}"))
        }
    }
}

/// Tells whether a file is only renamed, which preserves its hard links.
fn is_moved(change: &Change, changes: &[Change]) -> bool {
    let is_same = |other: &Change| match &other.after {
        Some(after) => {
            after.metadata == MetadataSource::CopyOf(change.real.clone())
                && other.before.is_none()
                && change.bytes() == Some(&after.bytes)
        }
        None => false,
    };
    change.after.is_none() && changes.iter().any(is_same)
}

/// Error of a file whose other hard links would keep the old content.
fn hard_linked(change: &Change, links: u64, replaces_other: bool) -> ToolError {
    let shown = change.shown.display();
    let identity = change.before.as_ref().map(|found| found.stamp.identity());
    let leftover = identity.and_then(|identity| links::leftover_name(&change.real, identity));
    if let Some(leftover) = leftover {
        let leftover = leftover.display();
        let message = format!(
            "{shown}: the file has {links} hard links; one of them is `{leftover}`, which a killed karyi left beside it"
        );
        let hint = format!(
            "the next edit or `karyi undo` with the KARYI_HOME of that run ends its change; if that is gone, look at \
             both files and remove `{leftover}`"
        );
        return ToolError::new(ErrorCode::HardLinked, message).with_hint(hint);
    }
    let message = format!("{shown}: the file has {links} hard links");
    let error = ToolError::new(ErrorCode::HardLinked, message);
    match replaces_other {
        true => error.with_hint(ONE_BY_ONE),
        false => error,
    }
}

const ONE_BY_ONE: &str = "to keep all hard links of the file, send each rename and delete as an edit of its own, in this \
                          order: a file that is only renamed, to a free name, keeps its inode";

/// Tells whether a file is renamed unchanged to a name that another file had.
fn replaces_other(change: &Change, changes: &[Change]) -> bool {
    let target = change.renamed_to.as_ref();
    let target = target.and_then(|to| changes.iter().find(|other| other.real == *to));
    let after = target.and_then(|target| target.after.as_ref());
    after.is_some_and(|after| change.bytes() == Some(&after.bytes))
}

/// Refuses a file inside another file of the same edit.
fn refuse_nested(changes: &[Change]) -> Result<(), ToolError> {
    let files = changes.iter().filter(|change| change.after.is_some());
    let shown: HashMap<&Path, &Path> = files
        .clone()
        .map(|change| (change.real.as_path(), change.shown.as_path()))
        .collect();
    for change in files {
        let mut above = change.real.ancestors().skip(1);
        if let Some(outer) = above.find_map(|path| shown.get(path)) {
            let (inner, outer) = (change.shown.display(), outer.display());
            let message = format!("{inner}: lies inside {outer}, which this edit makes a file");
            return Err(ToolError::new(ErrorCode::BadArguments, message)
                .with_hint("give one of them another path"));
        }
    }
    Ok(())
}

impl<'a> WorkingCopies<'a> {
    /// Starts without files; `on_read` is called for each file that is read.
    pub(super) fn new(on_read: &'a mut dyn FnMut(&mut Change)) -> Self {
        Self {
            on_read,
            copies: Vec::new(),
            known: HashMap::new(),
            bytes: 0,
        }
    }

    /// Returns the index of the working copy of a file; reads the file the first time.
    pub(super) fn open(&mut self, shown: &Path, real: PathBuf) -> Result<usize, ToolError> {
        if let Some(index) = self.known.get(&CopyKey::Path(real.clone())) {
            return Ok(*index);
        }
        let mut copy = WorkingCopy::new(shown, &real)?;
        let next = self.copies.len();
        let index = match &copy.change.before {
            // Two spellings of one name on a case-insensitive file system.
            Some(found) if found.stamp.links == 1 => {
                let (device, inode) = (found.stamp.device, found.stamp.inode);
                *self
                    .known
                    .entry(CopyKey::File { device, inode })
                    .or_insert(next)
            }
            Some(_) | None => next,
        };
        self.known.insert(CopyKey::Path(real), index);
        if index == next {
            self.bytes += copy.size();
            (self.on_read)(&mut copy.change);
            self.copies.push(copy);
        }
        Ok(index)
    }

    /// Returns a working copy.
    pub(super) fn get(&mut self, index: usize) -> &mut WorkingCopy {
        match self.copies.get_mut(index) {
            Some(copy) => copy,
            None => unreachable!("indexes come from `open`"),
        }
    }

    /// Moves the content to another working copy, where no file may exist.
    pub(super) fn rename(&mut self, from: usize, to: usize, shown: &Path) -> Result<(), ToolError> {
        if from == to {
            let message = format!("{}: the file already has this name", shown.display());
            let error = ToolError::new(ErrorCode::BadArguments, message);
            return Err(error.with_hint("choose another name, or leave to=\"...\" out"));
        }
        if self.get(to).exists {
            let message = format!("{}: a file of this name already exists", shown.display());
            return Err(ToolError::new(ErrorCode::FileExists, message));
        }
        let source = self.get(from);
        let content = match std::mem::replace(&mut source.content, Content::OnDisk) {
            Content::OnDisk => Content::Bytes(source.found().to_vec()),
            other => other,
        };
        let has_file = source.change.before.is_some();
        let real = has_file.then(|| source.change.real.clone());
        let like = source.like.take().or(real);
        let (breaks_links, values) = (source.breaks_links, source.values);
        let original = source.original.take();
        source.exists = false;
        let (from, origin) = (source.change.real.clone(), like.clone());
        let target = self.get(to);
        target.exists = true;
        target.content = content;
        target.original = original;
        target.like = like;
        target.breaks_links |= breaks_links;
        target.values.join(values);
        let target = target.change.real.clone();
        self.record_rename(origin.as_deref(), &from, target);
        Ok(())
    }

    /// Records the new path of the file that was at `origin` before the call and at `from` until now.
    fn record_rename(&mut self, origin: Option<&Path>, from: &Path, target: PathBuf) {
        let mut copies = self.copies.iter_mut().map(|copy| &mut copy.change);
        let Some(change) = copies.find(|change| Some(change.real.as_path()) == origin) else {
            return;
        };
        // Not a second file of that name that the call created.
        let is_it = match &change.renamed_to {
            Some(before) => before == from,
            None => change.real == from,
        };
        if is_it {
            change.renamed_to = (change.real != target).then_some(target);
        }
    }

    /// Refuses an edit that would need too much memory.
    pub(super) fn check_size(&mut self, shown: &Path) -> Result<(), ToolError> {
        self.bytes = self.copies.iter().map(WorkingCopy::size).sum();
        if self.bytes <= limits::MAX_EDIT_BYTES {
            return Ok(());
        }
        let message = format!(
            "{}: the files of this edit are too large to be changed together",
            shown.display()
        );
        Err(ToolError::new(ErrorCode::FileTooLarge, message)
            .with_hint("split the edit into several calls"))
    }

    /// Converts all working copies to changes, in the order the files were named.
    ///
    /// # Errors
    /// Text that its encoding cannot represent, and `hard_linked`.
    pub(super) fn into_changes(self) -> Result<Vec<Change>, ToolError> {
        let may_break: Vec<bool> = self.copies.iter().map(|copy| copy.breaks_links).collect();
        let changes =
            multi_error::collect_all(self.copies.into_iter().map(WorkingCopy::into_change))?;
        refuse_nested(&changes)?;
        for (change, may_break) in changes.iter().zip(may_break) {
            let links = change.before.as_ref().map_or(1, |found| found.stamp.links);
            let is_broken = links > 1 && change.is_needed() && !is_moved(change, &changes);
            if is_broken && !may_break {
                return Err(hard_linked(change, links, replaces_other(change, &changes)));
            }
        }
        Ok(changes)
    }
}
