//! Replaces placeholders with values right before a tool runs, and checks their names before the block runs.

use crate::tool::context::blocking;
use crate::tool::{ToolSettings, Use};
use crate::tools::Call;
use karyi_core::error::{ErrorClass, ErrorCode, ToolError};
use karyi_core::secret::{SecretName, Template};
use karyi_net::WebUrl;
use karyi_vault::session::{LoadIssueKind, Need, Secrets};
use karyi_vault::{shell, substitute};

/// Checks that the calls can be run and that every name they use has a value.
///
/// # Errors
/// A call that can never run, or a malformed placeholder; otherwise all names without a value.
pub fn check_names<'a>(
    calls: impl Iterator<Item = &'a mut Call>,
    is_known: &dyn Fn(&SecretName) -> bool,
) -> Result<(), ToolError> {
    let mut missing: Vec<SecretName> = Vec::new();
    let mut broken = None;
    for call in calls {
        broken = broken.or_else(|| call.check().err());
        call.templates(
            &mut |purpose, template| match names_of(&purpose, template.source()) {
                Err(error) => broken = broken.take().or(Some(error)),
                Ok(names) => {
                    for name in names {
                        if !is_known(&name) && !missing.contains(&name) {
                            missing.push(name);
                        }
                    }
                }
            },
        );
    }
    match broken {
        Some(error) => Err(error),
        None if missing.is_empty() => Ok(()),
        None => Err(substitute::undefined(&missing)),
    }
}

fn names_of(purpose: &Use, source: &str) -> Result<Vec<SecretName>, ToolError> {
    if matches!(purpose, Use::Script) {
        substitute::check_continued(source)?;
    }
    substitute::names_in(source)
}

/// Returns the names that a call uses; malformed placeholders are skipped.
pub fn names(call: &mut Call) -> Vec<SecretName> {
    let mut names = Vec::new();
    call.templates(&mut |_, template| names.extend(template.names().unwrap_or_default()));
    names
}

/// Reloads stored values on a blocking thread.
pub async fn refresh(secrets: &Secrets, need: Need) {
    if !secrets.has_source() {
        return;
    }
    let secrets = secrets.clone();
    let _ = blocking(move || {
        secrets.refresh(need);
        Ok(())
    })
    .await;
}

/// Explains why names have no value: a secret's name differs only in case, or its store could not be read
/// or is another one.
#[must_use]
pub fn explain(error: ToolError, secrets: &Secrets) -> ToolError {
    if error.code != ErrorCode::UndefinedVariable {
        return error;
    }
    // A damaged value does not explain why another name is missing.
    let Some(lack) = secrets.load_issue_of(&error.names) else {
        return match meant(&error, secrets) {
            Some(meant) => {
                error.with_hint(format!("write $KARYI{{{meant}}}: the secret is called so"))
            }
            None => error,
        };
    };
    if lack.kind == LoadIssueKind::Elsewhere {
        let message = format!("{}: {}", error.message, lack.error.message);
        return ToolError {
            message,
            hint: lack.error.hint,
            ..error
        };
    }
    let problem = match lack.names.is_empty() {
        true => "the store cannot be read",
        false => "what the store has cannot be used",
    };
    let failure = unreadable(lack.error);
    ToolError {
        message: format!("{}, and {problem}: {}", error.message, failure.message),
        ..failure
    }
}

/// Returns a secret whose name differs only in case from one of the names.
fn meant(error: &ToolError, secrets: &Secrets) -> Option<SecretName> {
    let known = secrets.names();
    let mut names = error
        .names
        .iter()
        .filter_map(|name| SecretName::parse(name));
    names.find_map(|name| {
        let meant = |known: &&SecretName| known.differs_only_in_case(&name);
        known.iter().find(meant).cloned()
    })
}

/// Turns the error of an unreadable store into one the user must resolve.
#[must_use]
pub fn unreadable(failure: ToolError) -> ToolError {
    // Errors about one value or name stay as they are.
    let is_of_one = matches!(failure.code, ErrorCode::BadArguments | ErrorCode::BadValue);
    if failure.code.class() == ErrorClass::NeedsUser || is_of_one {
        return failure;
    }
    ToolError {
        code: ErrorCode::VaultUnavailable,
        message: format!("{}: {}", failure.code.as_str(), failure.message),
        ..failure
    }
}

/// Replaces the placeholders of one call.
///
/// # Errors
/// A name without a value, or a context where a value cannot be passed safely.
pub fn resolve(call: &mut Call, secrets: &Secrets) -> Result<(), ToolError> {
    let mut failed = None;
    call.templates(&mut |purpose, template| {
        if failed.is_none() && template.has_placeholder() {
            failed = resolve_one(purpose, template, secrets).err();
        }
    });
    failed.map_or(Ok(()), Err)
}

fn resolve_one(purpose: Use, template: &mut Template, secrets: &Secrets) -> Result<(), ToolError> {
    let source = template.source();
    let resolved = match purpose {
        Use::Literal => substitute::substitute(source, secrets)?,
        Use::Written => {
            check_written(source, secrets)?;
            substitute::substitute(source, secrets)?
        }
        Use::Pattern | Use::Shared if template.has_secret() => return Err(refused(purpose)),
        Use::Pattern | Use::Shared | Use::Header => substitute::substitute(source, secrets)?,
        Use::Typed => substitute::substitute_typed(source, secrets)?,
        Use::Script => shell::substitute_script(source, secrets)?,
    };
    for name in template.names().unwrap_or_default() {
        secrets.record_use(&name);
    }
    template.resolve(resolved);
    Ok(())
}

/// Checks that text to be written contains no mask of a known secret: the model copied masked output, and
/// writing it would destroy the value.
///
/// # Errors
/// `bad_placeholder`.
pub fn check_written(text: &str, secrets: &Secrets) -> Result<(), ToolError> {
    const MASK: &str = "[KARYI:";
    for (at, _) in text.match_indices(MASK) {
        let rest = text.get(at + MASK.len()..).unwrap_or_default();
        let name = rest
            .split_once(':')
            .and_then(|(name, _)| SecretName::parse(name));
        if let Some(name) = name.filter(|name| secrets.contains(name)) {
            let message = format!(
                "[KARYI:{name}: stands for something that was masked, and cannot be written"
            );
            return Err(ToolError::new(ErrorCode::BadPlaceholder, message).with_hint(format!(
                "leave the passage out of the edit, or write $KARYI{{{name}}} for the whole value"
            )));
        }
    }
    Ok(())
}

/// Adds what the settings say to a call: the secret of a profile, the page of a search engine, the directory of a file
/// that is named by its whole path. So rules and order see one name of a file.
pub fn add_settings(call: &mut Call, settings: &ToolSettings) {
    match call {
        Call::UrlFetch(args) => {
            args.add_profile(&settings.web);
            if let Some(path) = &mut args.download_path {
                settings.directories.name(path);
            }
        }
        Call::WriteFile(args) => settings.directories.name(&mut args.path),
        Call::WebSearch(args) => args.set_page(&settings.web),
        _ => {}
    }
}

/// Returns the URL that the secrets of a call are sent to.
pub(super) fn destination(call: &Call) -> Option<WebUrl> {
    match call {
        Call::UrlFetch(args) => args.destination(),
        _ => None,
    }
}

/// Returns the error of a placeholder in a text that may hold none.
pub(super) fn refused(purpose: Use) -> ToolError {
    let (message, hint) = match purpose {
        Use::Shared => (
            "a placeholder stands in a text that is stored or sent as it is",
            "leave the secret out; in <url_fetch> it goes into a header",
        ),
        Use::Pattern | Use::Literal | Use::Written | Use::Typed | Use::Script | Use::Header => (
            "a placeholder stands in a search pattern",
            "search for text around the value; matches show it as its placeholder",
        ),
    };
    ToolError::new(ErrorCode::UnsafeContext, message).with_hint(hint)
}
