//! Edits several files, or none.
//!
//! Every pair of every file is first matched in memory, so most errors are found before anything changes.
//! Edits that name the same file, however spelled, apply in order. Encoding, byte order mark, line endings,
//! mode and owner are preserved. [`transaction`](crate::transaction) writes the results to the disk.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::change::Change;
use super::diff::{Diff, DiffCaps, changed_range, diff};
use super::encoding::Encoding;
use super::journal::{Damage, IsPrivate, PrunedChanges};
use super::links;
use super::match_error::pair_label;
use super::matching::{MatchMode, PairResult};
use super::multi_error;
use super::parallel::join;
use super::prefetch::Prefetcher;
use super::recover::{FileRecovery, with_recoveries};
use super::risk::risk;
use super::root::Root;
use super::transaction::{Recorder, Transaction};
use super::working_copy::WorkingCopies;
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::shell_word::word;

pub use super::matching::Scope;
pub use super::request::{EditPair, FileEdit, WrittenPair};

/// Context of an edit.
#[derive(Clone, Copy)]
pub struct EditOptions<'a> {
    /// Absolute directory that relative paths start from.
    pub cwd: &'a Path,
    /// Directory the edit is confined to.
    pub root: &'a Root,
    /// Recorder of the change.
    pub recorder: &'a Recorder,
    /// Tells which contents may only be stored encrypted for undo.
    pub is_private: IsPrivate<'a>,
    /// Masking of secrets in shown texts.
    pub masking: Masking<'a>,
    /// Changes whose diff is made.
    pub diffs: Diffs,
}

/// Changes whose diff is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Diffs {
    /// No change: the caller knows the texts.
    None,
    /// Changes of texts that were not found literally, so that the caller does not know what they were.
    #[default]
    Changed,
    /// Every change.
    Full,
}

/// Masking of secrets in a diff.
#[derive(Clone, Copy)]
pub enum Masking<'a> {
    /// No secret is known: the diff is sanitised by this.
    Part(&'a (dyn Fn(&str) -> String + Sync)),
    /// Secrets are known and may span lines: both whole texts are masked before they are compared.
    Whole(&'a (dyn Fn(&str) -> String + Sync)),
}

/// Outcome of one file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileOutcome {
    /// Path as the caller wrote it.
    pub path: PathBuf,
    /// Effect on the file as a whole.
    pub kind: EditKind,
    /// Number of replaced matches.
    pub replacements: usize,
    /// Line of the first replacement, from 1, whether made now or found in place.
    pub first_line: Option<usize>,
    /// First and last changed line of the new text; set on the last edit of the file.
    pub lines: Option<(usize, usize)>,
    /// Match mode when a text was not found literally.
    pub found_as: Option<MatchMode>,
    /// True when a replacement was decoded and no text to find could tell whether that was meant.
    pub is_decoded: bool,
    /// The encoding of its text, when it is not UTF-8.
    pub encoding: Option<&'static str>,
    /// Reason why the change deserves a second look.
    pub risk: Option<&'static str>,
    /// Diff of all edits of this file; set on the last of them.
    pub diff: Diff,
}

/// Effect on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EditKind {
    /// Text unchanged.
    #[default]
    Unchanged,
    /// All replacements were already in place.
    AlreadyApplied,
    /// Text changed.
    Edited,
    /// File created.
    Created,
    /// File removed.
    Deleted,
    /// File renamed, perhaps with another text.
    Renamed,
}

/// Outcome of an edit.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EditOutcome {
    /// Outcomes of the files, in order.
    pub files: Vec<FileOutcome>,
    /// Reason why it cannot be undone; `None` when it can.
    pub no_undo: Option<String>,
    /// Files of interrupted changes that were recovered first.
    pub recovered: Vec<FileRecovery>,
    /// Damage found in the journal.
    pub damage: Option<Damage>,
    /// Files whose attributes could not all be preserved, with the names of those attributes.
    pub losses: Vec<(PathBuf, String)>,
    /// Temporary files that could not be removed.
    pub leftovers: Option<String>,
    /// Changes removed from the full journal.
    pub pruned: Option<PrunedChanges>,
}

/// Makes the changes in all files, or in none.
///
/// # Errors
/// The problem of each file, with the pair and what was found instead. Nothing is changed then, unless the
/// rollback fails, too: then the message names the file and its copy.
pub fn apply(edits: &[FileEdit], options: EditOptions<'_>) -> Result<EditOutcome, ToolError> {
    let paths =
        multi_error::collect_all(edits.iter().map(|edit| ResolvedPaths::of(edit, options)))?;
    let all: Vec<&Path> = paths.iter().flat_map(ResolvedPaths::all).collect();
    let transaction = Transaction::begin(options.recorder, &all)?;
    let is_live = AtomicBool::new(true);
    let recovered = transaction.recovered().to_vec();
    let done = std::thread::scope(|scope| {
        let journal = options.recorder.journal.as_deref();
        let mut prefetcher = Prefetcher::new(scope, journal, options.is_private, &is_live);
        let on_read = &mut |change: &mut Change| change.start_prefetch(&mut prefetcher);
        let done = plan(edits, paths, options.root, on_read)
            .and_then(|plan| execute(transaction, plan, options));
        // Stops a prefetch whose change failed.
        is_live.store(false, Ordering::Relaxed);
        done
    });
    done.map_err(|error| with_recoveries(error, &recovered))
}

/// Returns what [`apply`] would do to the files as they are now, and changes nothing.
///
/// # Errors
/// The problem of each file.
pub fn preview(
    edits: &[FileEdit],
    options: EditOptions<'_>,
) -> Result<Vec<FileOutcome>, ToolError> {
    let paths =
        multi_error::collect_all(edits.iter().map(|edit| ResolvedPaths::of(edit, options)))?;
    let mut plan = plan(edits, paths, options.root, &mut |_| {})?;
    let diffs = plan.shown.iter().map(|shown| shown.change(&plan, options));
    let diffs = diffs.collect();
    plan.describe(diffs);
    Ok(plan.results)
}

/// Commits the changes and computes their diffs meanwhile.
fn execute(
    transaction: Transaction<'_>,
    mut plan: EditPlan,
    options: EditOptions<'_>,
) -> Result<EditOutcome, ToolError> {
    for change in &mut plan.changes {
        change.restrict_if_private(options.is_private);
    }
    let (receipt, diffs) = join(
        || transaction.commit(&plan.changes, options.is_private),
        || {
            plan.shown
                .iter()
                .map(|shown| shown.change(&plan, options))
                .collect::<Vec<_>>()
        },
    );
    let receipt = receipt?;
    plan.describe(diffs);
    Ok(EditOutcome {
        files: plan.results,
        no_undo: receipt.no_undo,
        recovered: receipt.recovered,
        damage: receipt.damage,
        losses: receipt.losses,
        leftovers: receipt.leftovers,
        pruned: receipt.pruned,
    })
}

/// Paths of an edit with every symlink resolved.
struct ResolvedPaths {
    real: PathBuf,
    to: Option<PathBuf>,
}

impl ResolvedPaths {
    fn of(edit: &FileEdit, options: EditOptions<'_>) -> Result<Self, ToolError> {
        if edit.delete && (edit.to.is_some() || !edit.pairs.is_empty()) {
            let message = format!(
                "{}: delete cannot be combined with find, replace or to",
                edit.path.display()
            );
            return Err(ToolError::new(ErrorCode::BadArguments, message));
        }
        if edit.delete || edit.to.is_some() {
            links::refuse_link(options.cwd, &edit.path)?;
        }
        let resolve = |path: &Path| links::resolve(options.root, options.cwd, path);
        let real = resolve(&edit.path)?;
        let to = edit.to.as_deref().map(resolve).transpose()?;
        if let Some(to) = &edit.to {
            links::refuse_taken(options.cwd, to)?;
        }
        Ok(Self { real, to })
    }

    fn all(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.real.as_path()).chain(self.to.as_deref())
    }
}

/// Result of matching, before the disk is touched.
struct EditPlan {
    changes: Vec<Change>,
    results: Vec<FileOutcome>,
    shown: Vec<PendingDiff>,
}

impl EditPlan {
    /// Sets the changed lines and the diffs of the files.
    fn describe(&mut self, diffs: Vec<(Option<(usize, usize)>, Diff)>) {
        for (shown, (lines, diff)) in self.shown.iter().zip(diffs) {
            if let Some(result) = self.results.get_mut(shown.result) {
                (result.lines, result.diff) = (lines, diff);
            }
        }
    }
}

/// Diff to compute after the commit.
struct PendingDiff {
    /// Indexes of the changes with the old and the new text.
    old: usize,
    new: usize,
    /// Index of the outcome that shows the diff.
    result: usize,
    /// Encoding of the new text, if the edit changes the file.
    encoding: Option<Encoding>,
    /// True when a replaced text was not found literally.
    is_unknown: bool,
}

/// Matches everything in memory.
fn plan(
    edits: &[FileEdit],
    paths: Vec<ResolvedPaths>,
    root: &Root,
    on_read: &mut dyn FnMut(&mut Change),
) -> Result<EditPlan, ToolError> {
    let mut copies = WorkingCopies::new(on_read);
    let mut results = Vec::with_capacity(edits.len());
    let mut pairs = Vec::with_capacity(edits.len());
    let mut shown: Vec<PendingDiff> = Vec::new();
    let (mut errors, mut failed) = (Vec::new(), HashSet::new());
    for (edit, paths) in edits.iter().zip(paths) {
        // A file whose earlier edit failed is in another state than later edits expect.
        if paths.all().any(|path| failed.contains(path)) {
            failed.extend(paths.all().map(Path::to_owned));
            continue;
        }
        let risk = paths.all().find_map(risk);
        let (index, new, applied, mut result) = match edit_file(&mut copies, edit, &paths, root) {
            Ok(done) => done,
            Err(error) => {
                errors.push(error);
                failed.extend(paths.all().map(Path::to_owned));
                continue;
            }
        };
        let mut pair_label = PendingDiff {
            old: index,
            new,
            result: results.len(),
            encoding: None,
            is_unknown: result.found_as.is_some(),
        };
        if new != index {
            result.kind = EditKind::Renamed;
        }
        if !matches!(result.kind, EditKind::Unchanged | EditKind::AlreadyApplied) {
            // A file that is named twice shows all its changes with the last edit.
            let is_same = |earlier: &PendingDiff| [index, pair_label.new].contains(&earlier.new);
            if let Some(earlier) = shown.iter().position(is_same) {
                let earlier = shown.remove(earlier);
                pair_label.old = earlier.old;
                pair_label.is_unknown |= earlier.is_unknown;
            }
            pair_label.encoding = copies.get(pair_label.new).encoding();
            shown.push(pair_label);
            result.risk = risk;
        }
        copies.check_size(&edit.path)?;
        results.push(result);
        pairs.push(applied);
    }
    if let Some(error) = multi_error::combine(errors) {
        return Err(error);
    }
    refuse_half_applied(edits, &pairs, &results)?;
    let changes = copies.into_changes()?;
    Ok(EditPlan {
        changes,
        results,
        shown,
    })
}

/// Applies one edit to the working copies. Returns the index of the file, its index under its new name, and
/// the outcome.
fn edit_file(
    copies: &mut WorkingCopies<'_>,
    edit: &FileEdit,
    paths: &ResolvedPaths,
    root: &Root,
) -> Result<(usize, usize, Vec<PairResult>, FileOutcome), ToolError> {
    let opened = copies.open(&edit.path, paths.real.clone());
    let index = opened.map_err(|error| whole_file_hint(edit, error))?;
    let (applied, result) = change(copies, index, edit, root)?;
    let new = match (&edit.to, &paths.to) {
        (Some(to), Some(real)) => {
            let new = copies.open(to, real.clone())?;
            copies.rename(index, new, to)?;
            new
        }
        (Some(_), None) | (None, _) => index,
    };
    Ok((index, new, applied, result))
}

/// Suggests a shell command for what an edit cannot rename or delete.
fn whole_file_hint(edit: &FileEdit, error: ToolError) -> ToolError {
    let what = match error.code {
        ErrorCode::IsDirectory => "an edit renames and deletes files only",
        ErrorCode::FileTooLarge => "an edit keeps what it renames and deletes for undo",
        _ => return error,
    };
    let path = word(edit.path.as_os_str());
    let how = match (edit.delete, edit.to.as_deref()) {
        (true, _) => format!("rm -r -- {path}"),
        (false, Some(to)) => format!("mv -- {path} {}", word(to.as_os_str())),
        (false, None) => return error,
    };
    error.with_hint(format!("{what}; the command `{how}` does it, without undo"))
}

/// Applies one edit to a working copy, except for its rename.
fn change(
    copies: &mut WorkingCopies<'_>,
    index: usize,
    edit: &FileEdit,
    root: &Root,
) -> Result<(Vec<PairResult>, FileOutcome), ToolError> {
    let copy = copies.get(index);
    copy.allow_breaking_links(edit.breaks_links);
    let existed = copy.exists();
    if !existed && (edit.delete || edit.pairs.first().is_none_or(|pair| !pair.find.is_empty())) {
        return Err(missing(edit, copy.similar_paths(root)));
    }
    let mut result = FileOutcome {
        path: edit.path.clone(),
        ..FileOutcome::default()
    };
    if edit.delete {
        copy.delete();
        result.kind = EditKind::Deleted;
    }
    if edit.delete || edit.pairs.is_empty() {
        return Ok((Vec::new(), result));
    }
    let (pairs, is_changed) = copy.apply(edit)?;
    add_pairs(&mut result, &pairs);
    result.is_decoded = is_decoded(edit, &pairs);
    result.encoding = copy.encoding().and_then(Encoding::name);
    result.kind = match (existed, is_changed) {
        (false, _) => EditKind::Created,
        (true, true) => EditKind::Edited,
        (true, false) if pairs.iter().all(is_applied) => EditKind::AlreadyApplied,
        (true, false) => EditKind::Unchanged,
    };
    Ok((pairs, result))
}

fn missing(edit: &FileEdit, similar_paths: Option<String>) -> ToolError {
    let message = format!("{}: there is no such file", edit.path.display());
    let error = ToolError::new(ErrorCode::NotFound, message);
    let create = "to write a whole file, use <content>";
    match (edit.delete || edit.to.is_some(), similar_paths) {
        (true, None) => error,
        (true, Some(similar_paths)) => error.with_hint(similar_paths),
        (false, None) => error.with_hint(format!("check the path; {create}")),
        (false, Some(similar_paths)) => error.with_hint(format!("{similar_paths}; {create}")),
    }
}

/// Returns true when a replacement was decoded and no text to find shows that this was meant.
fn is_decoded(edit: &FileEdit, results: &[PairResult]) -> bool {
    let pairs = || edit.pairs.iter().zip(results);
    let is_told = |(pair, result): (&EditPair, &PairResult)| {
        result.mode() == Some(MatchMode::Written)
            || pair.has_written_find() && result.mode() == Some(MatchMode::Exact)
    };
    pairs().any(|(pair, result)| pair.written.is_some() && !is_applied(result))
        && !pairs().any(is_told)
}

fn is_applied(pair: &PairResult) -> bool {
    matches!(pair, PairResult::AlreadyApplied { .. })
}

/// Adds the results of the pairs to the outcome of their file.
fn add_pairs(result: &mut FileOutcome, pairs: &[PairResult]) {
    for pair in pairs {
        let first_line = match *pair {
            PairResult::Replaced {
                count,
                first_line,
                found_as,
            } => {
                if found_as != MatchMode::Exact {
                    result.found_as = Some(found_as);
                }
                result.replacements += count;
                first_line
            }
            PairResult::AlreadyApplied { line } => line,
        };
        let first = result.first_line.unwrap_or(first_line);
        result.first_line = Some(first.min(first_line));
    }
}

/// Refuses a call that is partly in place already: it was meant for another state of the files. One that is
/// wholly in place is fine.
fn refuse_half_applied(
    edits: &[FileEdit],
    pairs: &[Vec<PairResult>],
    results: &[FileOutcome],
) -> Result<(), ToolError> {
    let is_replaced = |pair: &PairResult| !is_applied(pair);
    let is_moved = |file: &FileOutcome| matches!(file.kind, EditKind::Deleted | EditKind::Renamed);
    if !pairs.iter().flatten().any(is_replaced) && !results.iter().any(is_moved) {
        return Ok(());
    }
    let first = |(edit, pairs): (&FileEdit, &Vec<PairResult>)| {
        let mut pairs = pairs.iter().enumerate();
        pairs.find_map(|(index, pair)| match pair {
            PairResult::AlreadyApplied { line } => {
                let pair_label = pair_label(edit, index);
                let message = format!(
                    "{pair_label}: the text to find is gone, and its replacement is on line {line} already"
                );
                Some(ToolError::new(ErrorCode::AlreadyApplied, message))
            }
            PairResult::Replaced { .. } => None,
        })
    };
    let errors = edits.iter().zip(pairs).filter_map(first).collect();
    multi_error::combine(errors).map_or(Ok(()), Err)
}

impl PendingDiff {
    /// Compares the texts before and after: the changed lines, and the diff if it is wanted. A binary file has
    /// neither.
    fn change(&self, plan: &EditPlan, options: EditOptions<'_>) -> (Option<(usize, usize)>, Diff) {
        let old = plan.changes.get(self.old).and_then(Change::bytes);
        let new = plan.changes.get(self.new);
        let new = new.and_then(|change| change.after.as_ref());
        let new = new.map(|after| after.bytes.as_slice());
        if old == new {
            return <_>::default();
        }
        let is_wanted = match options.diffs {
            Diffs::None => false,
            Diffs::Changed => self.is_unknown,
            Diffs::Full => true,
        };
        let compare = |old: &str, new: &str| {
            let found = match is_wanted {
                true => masked_diff(old, new, options.masking, DiffCaps::RESULT),
                false => Diff::default(),
            };
            (changed_range(old, new), found)
        };
        let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
        let is_plain = self.encoding == Some(Encoding::UTF8);
        if is_plain && let (Ok(old), Ok(new)) = (std::str::from_utf8(old), std::str::from_utf8(new))
        {
            return compare(old, new);
        }
        match Encoding::read_to_compare(old, new, self.encoding) {
            Some((old, new)) => compare(&old, &new),
            None => <_>::default(),
        }
    }
}

/// Returns the diff of two texts with secrets masked.
#[must_use]
pub fn masked_diff(old: &str, new: &str, masking: Masking<'_>, caps: DiffCaps) -> Diff {
    match masking {
        Masking::Part(mask) => {
            let mut found = diff(old, new, caps);
            found.text = mask(&found.text);
            found
        }
        Masking::Whole(_) if old.len() + new.len() > limits::MAX_MASKED_DIFF_BYTES => {
            let mut found = diff(old, new, caps);
            found.text.clear();
            found.omitted = found.added + found.removed;
            found
        }
        Masking::Whole(mask) => diff(&mask(old), &mask(new), caps),
    }
}

#[cfg(test)]
mod tests;
