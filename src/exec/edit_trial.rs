//! Tries edits without changing anything.

use serde_json::Value;

use crate::tool::{Context, Use};
use crate::tools::Call;
use crate::tools::core::edit;
use karyi_core::error::ToolError;
use karyi_core::limits;
use karyi_core::secret::Template;
use karyi_files::edit::Diffs;
use karyi_vault::substitute;

/// Sign that stands for the `$` of a placeholder that would be written, so that it is not taken for a literal one.
const WRITTEN: char = '\u{1f}';

/// Tries an edit. Values are only looked for: what it would write keeps its placeholders. An edit that looks for an
/// unknown value is not tried.
pub(super) async fn trial(context: &Context, mut call: Call) -> Option<Result<Value, ToolError>> {
    let mut is_known = true;
    call.templates(&mut |purpose, template| {
        let source = template.source();
        if matches!(purpose, Use::Written) && template.has_secret() {
            *template = Template::new(source.replace("$KARYI", &format!("{WRITTEN}KARYI")));
        } else if template.has_placeholder() {
            match substitute::substitute(source, &context.secrets) {
                Ok(text) => template.resolve(text),
                Err(_) => is_known = false,
            }
        }
    });
    let Call::Edit(args) = call else {
        return None;
    };
    if !is_known {
        return None;
    }
    let tried = edit::preview(args, context).await;
    let redactor = &context.redactor;
    Some(match tried {
        Ok(answer) => {
            let files = redactor.redact_result(&answer.output.files);
            let files = files.unwrap_or_default().get().to_string();
            let files = files.replace("\\u001fKARYI", "$KARYI");
            Ok(serde_json::from_str(&files).unwrap_or_default())
        }
        Err(error) => {
            let mut error = redactor.redact_error(error).into_inner();
            for text in [&mut error.message, &mut error.hint] {
                *text = text.replace(WRITTEN, "$");
            }
            Err(error)
        }
    })
}

/// Change that an edit makes to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// Path with the kind of the change: `src/a.rs (edited)`.
    pub heading: String,
    /// Unified diff; empty for a file without text.
    pub diff: String,
    /// Number of changed lines that the diff leaves out.
    pub omitted_lines: u64,
}

impl ChangedFile {
    fn of(file: &Value) -> Self {
        let word = |name: &str| file.get(name).and_then(Value::as_str).unwrap_or_default();
        let to = match word("to") {
            "" => String::new(),
            to => format!(" -> {to}"),
        };
        let omitted = file.get("diff_omitted_lines").and_then(Value::as_u64);
        Self {
            heading: format!("{}{to} ({})", word("src"), word("change")),
            diff: word("diff").to_owned(),
            omitted_lines: omitted.unwrap_or_default(),
        }
    }

    /// Returns true when the diff has every changed line as it is.
    pub(super) fn is_whole(&self) -> bool {
        let is_cut = |line: &str| line.len() >= limits::MAX_DIFF_LINE_BYTES;
        self.omitted_lines == 0 && !self.diff.lines().any(is_cut)
    }

    /// Returns heading and diff, each line with its end.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{}\n{}", self.heading, self.diff);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        if self.omitted_lines > 0 {
            text.push_str(&format!("… {} more changed lines\n", self.omitted_lines));
        }
        text
    }
}

/// Returns the changes that an edit would make, values masked; nothing for another call, or one that would fail.
pub(super) async fn changes(context: &Context, call: &Call) -> Option<Vec<ChangedFile>> {
    if !matches!(call, Call::Edit(_)) {
        return None;
    }
    let mut context = context.clone();
    context.shown.diffs = Diffs::Full;
    let files = trial(&context, call.clone()).await?.ok()?;
    Some(files.as_array()?.iter().map(ChangedFile::of).collect())
}
