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

/// Returns the changes that an edit would make, as diffs; nothing when they cannot be shown whole, or it would fail.
pub(super) async fn changes(context: &Context, call: &Call) -> Option<String> {
    let mut context = context.clone();
    context.shown.diffs = Diffs::Full;
    let files = trial(&context, call.clone()).await?.ok()?;
    let mut text = String::new();
    for file in files.as_array()? {
        let word = |name: &str| file.get(name).and_then(Value::as_str).unwrap_or_default();
        let diff = word("diff");
        let is_cut = |line: &str| line.len() >= limits::MAX_DIFF_LINE_BYTES;
        if file.get("diff_omitted_lines").is_some() || diff.lines().any(is_cut) {
            return None;
        }
        let to = match word("to") {
            "" => String::new(),
            to => format!(" -> {to}"),
        };
        text.push_str(&format!("{}{to} ({})\n{diff}", word("src"), word("change")));
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    Some(text)
}
