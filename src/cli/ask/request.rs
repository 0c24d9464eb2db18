//! The request of `karyi ask`: the system text, and the user's text with files and standard input.

use std::io::{self, IsTerminal as _, Read as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use serde_json::json;

use crate::chat::answer_run::AnswerRunner;
use crate::cli::ask::args::{ApproveMode, AskArgs};
use crate::cli::chat_setup;
use crate::tool::Registry;
use crate::tools::Call;
use karyi_core::limits;

/// Reads standard input, unless it is a terminal: it is the request or context for it. It may wait, and Ctrl+C ends
/// that, so nothing catches signals yet.
///
/// # Errors
/// There is nothing to ask, or standard input cannot be read or is too large.
pub(super) fn input(args: &AskArgs) -> anyhow::Result<Option<String>> {
    let input = match io::stdin().is_terminal() {
        true => None,
        false => Some(read_input()?),
    };
    let is_blank = input.as_ref().is_none_or(|text| text.trim().is_empty());
    if args.text.is_empty() && is_blank {
        anyhow::bail!(
            "nothing to ask: give the text, as in `karyi ask \"why does the build fail?\"`, or pipe it in"
        );
    }
    Ok(input)
}

/// Returns the system text: the tools, then the user's own.
pub(super) fn system(args: &AskArgs, registry: &Arc<Registry<Call>>) -> anyhow::Result<String> {
    let note = match args.approve {
        ApproveMode::None => "\n- Here no call is permitted: answer from what you are given.",
        ApproveMode::Read => {
            "\n- Here only <read> and commands that only read are permitted; other calls end with needs_approval."
        }
        ApproveMode::Full => "",
    };
    let mut text = chat_setup::system(&args.session, registry, note)?;
    if let Some(path) = &args.system_file {
        let own = std::fs::read_to_string(path);
        let own = own.with_context(|| format!("reading {}", path.display()))?;
        text.push('\n');
        text.push_str(own.trim_end());
        text.push('\n');
    }
    Ok(text)
}

/// Returns the first message: directory and date, the text, files and what standard input had.
pub(super) async fn text(
    args: &AskArgs,
    cwd: &Path,
    input: Option<&str>,
    mut reader: AnswerRunner,
) -> anyhow::Result<String> {
    let mut text = chat_setup::heading(cwd);
    text.push_str(&args.text.join(" "));
    text.push('\n');
    for path in &args.file {
        text.push_str(&format!("\n{}\n", read_file(path, &mut reader).await?));
    }
    match input {
        Some(input) if args.text.is_empty() => text.push_str(input),
        Some(input) if !input.trim().is_empty() => {
            text.push_str(&format!("\nStandard input:\n{input}"));
        }
        Some(_) | None => {}
    }
    Ok(text)
}

/// Returns the report of a `read` of a file.
async fn read_file(path: &Path, reader: &mut AnswerRunner) -> anyhow::Result<String> {
    std::fs::metadata(path).with_context(|| format!("--file {}", path.display()))?;
    let src = path.to_str().context("--file: the name is not UTF-8")?;
    let arguments = json!({"files": [{"src": src}]});
    let call = serde_json::from_value(arguments).map(Call::Read)?;
    let report = reader.run_call(call).await;
    Ok(report
        .map(|report| report.into_string())
        .unwrap_or_default())
}

/// Reads standard input; more than a context window takes is an error.
fn read_input() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    let most = limits::MAX_CHAT_ANSWER_BYTES as u64;
    let mut input = io::stdin().lock().take(most + 1);
    input
        .read_to_end(&mut bytes)
        .context("reading standard input")?;
    if bytes.len() as u64 > most {
        anyhow::bail!(
            "standard input has more than {most} bytes, which no model takes; pass a part of it"
        );
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
