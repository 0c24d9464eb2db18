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
use karyi_vault::redact::Redacted;

/// Texts of a request from outside the arguments.
#[derive(Debug, Default)]
pub(super) struct RequestInput {
    /// Standard input, unless it is a terminal.
    stdin: Option<String>,
    /// The user's part of the system text.
    system: Option<String>,
}

/// Text of the user and what follows it.
#[derive(Debug)]
pub(super) struct RequestText {
    /// Text that the user wrote.
    pub(super) text: String,
    /// Files and standard input, redacted.
    pub(super) attached: String,
}

/// Reads standard input and the file of the system text. Both may wait, and Ctrl+C ends that, so nothing catches signals
/// yet.
///
/// # Errors
/// There is nothing to ask, or something cannot be read or is too large.
pub(super) fn input(args: &AskArgs) -> anyhow::Result<RequestInput> {
    let stdin = match io::stdin().is_terminal() {
        true => None,
        false => Some(read_input()?),
    };
    let is_blank = |text: &str| text.trim().is_empty();
    if args.text.iter().all(|text| is_blank(text)) && stdin.as_deref().is_none_or(is_blank) {
        anyhow::bail!(
            "nothing to ask: give the text, as in `karyi ask \"why does the build fail?\"`, or pipe it in"
        );
    }
    let system = args.system_file.as_ref().map(|path| {
        let text = std::fs::read_to_string(path);
        text.with_context(|| format!("--system-file {}", path.display()))
    });
    let system = system.transpose()?;
    Ok(RequestInput { stdin, system })
}

/// Returns the system text: the tools, then the user's own.
pub(super) fn system(
    args: &AskArgs,
    input: &RequestInput,
    registry: &Arc<Registry<Call>>,
) -> anyhow::Result<String> {
    let note = match args.approve {
        ApproveMode::None => "\n- Here no call is permitted: answer from what you are given.",
        ApproveMode::Read => {
            "\n- Here only <read> and commands that only read are permitted; other calls end with needs_approval."
        }
        ApproveMode::Full => "",
    };
    let mut text = chat_setup::system(&args.session, registry, note)?;
    if let Some(own) = &input.system {
        text.push('\n');
        text.push_str(own.trim_end());
        text.push('\n');
    }
    Ok(text)
}

/// Returns the first message: directory and date, the text, files, and standard input where it is context.
///
/// # Errors
/// A file cannot be read.
pub(super) async fn text(
    args: &AskArgs,
    cwd: &Path,
    input: &RequestInput,
    mut reader: AnswerRunner,
) -> anyhow::Result<RequestText> {
    let mut text = chat_setup::heading(cwd);
    let given = args.text.join(" ");
    let is_given = !given.trim().is_empty();
    let stdin = input.stdin.as_deref().unwrap_or_default();
    text.push_str(if is_given { &given } else { stdin });
    text.truncate(text.trim_end().len());
    text.push('\n');
    let mut attached = Vec::new();
    for path in &args.file {
        attached.push(read_file(path, &mut reader).await?);
    }
    if is_given && !stdin.trim().is_empty() {
        let stdin = reader.redactor().redact(stdin);
        attached.push(format!("Standard input:\n{}", stdin.as_str()));
    }
    let attached = attached.join("\n\n");
    Ok(RequestText { text, attached })
}

/// Returns the report of a `read` of a file or directory.
async fn read_file(path: &Path, reader: &mut AnswerRunner) -> anyhow::Result<String> {
    let place = || format!("--file {}", path.display());
    let metadata = std::fs::metadata(path).with_context(place)?;
    if !metadata.is_file() && !metadata.is_dir() {
        anyhow::bail!("{}: expected a file or a directory", place());
    }
    if metadata.is_file() {
        std::fs::File::open(path).with_context(place)?;
    }
    let src = path.to_str().context("--file: the name is not UTF-8")?;
    // A name such as `job:1` would be that of a job.
    let src = match path.is_absolute() {
        true => src.to_owned(),
        false => format!("./{src}"),
    };
    let arguments = json!({"files": [{"src": src}]});
    let call = serde_json::from_value(arguments).map(Call::Read)?;
    let results = reader.run_call(call).await;
    let report = results.report.map(Redacted::into_string);
    let report = report.unwrap_or_default();
    if results.calls.iter().any(|call| call.is_failure) {
        anyhow::bail!("{}: it cannot be read: {report}", place());
    }
    Ok(report)
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
