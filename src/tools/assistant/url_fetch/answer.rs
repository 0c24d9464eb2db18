//! Shows the answer of a server, or saves it.

use std::path::Path;

use super::{AnswerParts, Link, Output, ReadBody};
use crate::tool::Context;
use crate::tool::context::blocking;
use crate::tool::effect::PathBase;
use crate::tools::assistant::write_file::Place;
use crate::web::{charset, page};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_files::change::Change;
use karyi_files::transaction::Transaction;
use karyi_net::{HttpResponse, WebUrl};

/// Head of an answer.
pub(super) struct Head {
    /// Status.
    pub(super) status: u16,
    is_success: bool,
    url: String,
    content_type: Option<String>,
    /// Target of a redirect.
    location: Option<String>,
    /// True when the body is packed in a way that was not asked for.
    is_packed: bool,
}

/// Kind of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyKind {
    Page,
    Text,
    Binary,
}

impl Head {
    /// Returns the head of a response.
    pub(super) fn of(response: &HttpResponse) -> Self {
        let page = WebUrl::parse(response.url()).ok();
        let target = response.header("location").zip(page);
        let target = target.and_then(|(target, page)| page.join(target).ok());
        Self {
            location: target.map(|url| url.to_string()),
            status: response.status(),
            is_success: response.is_success(),
            url: response.url().to_owned(),
            content_type: response.header("content-type").map(str::to_owned),
            // That of a body which was unpacked is gone.
            is_packed: response
                .header("content-encoding")
                .is_some_and(|word| !word.eq_ignore_ascii_case("identity")),
        }
    }

    /// Returns the error of a status that is no success.
    pub(super) fn problem(&self) -> Option<ToolError> {
        let message = format!("non-2xx status: {}", self.status);
        let error = ToolError::new(ErrorCode::HttpError, message);
        let error = match self.location {
            Some(_) => error.with_hint("fetch `location`, if it is where you want to go"),
            None => error,
        };
        Some(error).filter(|_| !self.is_success)
    }

    /// Adds status and URL to a result.
    pub(super) fn fill(&self, output: Output, context: &Context) -> Output {
        let is_other = output
            .url
            .as_ref()
            .is_some_and(|url| url.as_str() != self.url);
        Output {
            http_status: Some(self.status),
            location: self
                .location
                .as_deref()
                .map(|url| context.redactor.redact(url)),
            final_url: is_other.then(|| context.redactor.redact(&self.url)),
            ..output
        }
    }

    /// Returns what the head says of the body.
    pub(super) fn declared(&self, context: &Context) -> AnswerParts {
        let kind = self.content_type.as_deref();
        AnswerParts {
            content_type: kind.map(|kind| context.redactor.redact(kind)),
            ..AnswerParts::default()
        }
    }

    /// Returns the kind of a body: by its declared type, or by its bytes where that says nothing.
    fn kind(&self, body: &[u8]) -> BodyKind {
        if self.is_packed {
            return BodyKind::Binary;
        }
        let declared = self.content_type.as_deref().unwrap_or_default();
        let declared = declared
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        if matches!(declared.as_str(), "text/html" | "application/xhtml+xml") {
            return BodyKind::Page;
        }
        let start = body.get(..START_BYTES).unwrap_or(body);
        if is_text_type(&declared) {
            return BodyKind::Text;
        }
        if !matches!(
            declared.as_str(),
            "" | "application/octet-stream" | "binary/octet-stream"
        ) {
            return BodyKind::Binary;
        }
        let lower = start.trim_ascii_start().to_ascii_lowercase();
        let is_page = ["<!doctype html", "<html"]
            .iter()
            .any(|word| lower.starts_with(word.as_bytes()));
        // A character may be cut at the end.
        let is_utf8 =
            std::str::from_utf8(start).map_or_else(|error| error.error_len().is_none(), |_| true);
        match (is_page, is_utf8 && !start.contains(&0)) {
            (true, _) => BodyKind::Page,
            (false, true) => BodyKind::Text,
            (false, false) => BodyKind::Binary,
        }
    }
}

/// Bytes of a body by which its kind is judged.
const START_BYTES: usize = 4 << 10;

fn is_text_type(declared: &str) -> bool {
    const TEXTS: &[&str] = &[
        "json",
        "xml",
        "javascript",
        "ecmascript",
        "yaml",
        "x-yaml",
        "toml",
        "x-www-form-urlencoded",
        "x-ndjson",
        "x-sh",
    ];
    let (kind, name) = declared.split_once('/').unwrap_or((declared, ""));
    let name = name.rsplit('+').next().unwrap_or_default();
    kind == "text" || kind == "application" && TEXTS.contains(&name) || name == "xml"
}

/// Returns what a result shows of a body.
pub(super) fn show(head: &Head, body: &ReadBody, context: &Context) -> AnswerParts {
    let redactor = &context.redactor;
    let kind = head.kind(&body.bytes);
    let mut parts = AnswerParts {
        bytes: Some(body.bytes.len() as u64),
        truncated: body.is_cut,
        ..head.declared(context)
    };
    if kind == BodyKind::Binary {
        return parts;
    }
    parts.untrusted = true;
    let bytes = match body.is_cut {
        true => without_cut_character(&body.bytes),
        false => &body.bytes,
    };
    let charset = head.content_type.as_deref().and_then(charset::charset_of);
    let mut text = charset::decode(bytes, charset, kind == BodyKind::Page).into_owned();
    if let (BodyKind::Page, Ok(url)) = (kind, WebUrl::parse(&head.url)) {
        let page = page::read(&text, &url);
        parts.title = page.title.map(|title| redactor.redact(&title));
        let links = page.links.iter().enumerate();
        let link = |(at, url): (usize, &String)| Link {
            number: at + 1,
            url: redactor.redact(url),
        };
        parts.links = links.map(link).collect();
        text = page.text;
    }
    parts.body = Some(match body.is_cut {
        // It may end in the start of a value.
        true => redactor.redact_cut(&text),
        false => redactor.redact(&text),
    });
    parts
}

/// Returns bytes of UTF-8 without a character that is cut off at their end; others as they are.
fn without_cut_character(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => {
            bytes.get(..error.valid_up_to()).unwrap_or(bytes)
        }
        _ => bytes,
    }
}

/// Finds the file of a download, before anything is sent.
///
/// # Errors
/// The path is not in the cache directory, or names no file.
pub(super) fn destination(path: &str, context: &Context) -> Result<Place, ToolError> {
    let place = Place::find(path, &[PathBase::Cache], context)?;
    let (_root, real) = place.open(context)?;
    // A name in a directory that is yet to be made.
    if real
        .iter()
        .any(|name| name.len() > limits::MAX_FILE_NAME_BYTES)
    {
        let error = std::io::Error::from(std::io::ErrorKind::InvalidFilename);
        return Err(ToolError::from_io(Path::new(path), &error));
    }
    // What stands there is read to know that it can be replaced.
    Change::read(Path::new(path), &real)?;
    Ok(place)
}

/// Saves a body as a whole, or not at all.
///
/// # Errors
/// It cannot be saved.
pub(super) async fn save(
    file: Place,
    head: &Head,
    body: ReadBody,
    context: Context,
) -> Result<AnswerParts, ToolError> {
    let parts = AnswerParts {
        bytes: Some(body.bytes.len() as u64),
        ..head.declared(&context)
    };
    blocking(move || {
        let (_root, real) = file.open(&context)?;
        let transaction = Transaction::begin(&context.recorder, &[&real])?;
        let redactor = &context.redactor;
        let is_private = |bytes: &[u8]| redactor.is_in(bytes);
        let change = Change::read(Path::new(&file.written), &real)?;
        let mut change = change.with_content(body.bytes);
        change.restrict_if_private(&is_private);
        let receipt = transaction.commit(&[change], &is_private)?;
        Ok(AnswerParts {
            path: Some(redactor.redact_whole_again(&real.to_string_lossy())),
            undo: receipt.no_undo.is_some().then_some("unavailable"),
            ..parts
        })
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_bodies() {
        let check = |content_type: Option<&str>, body: &[u8], expected: BodyKind| {
            let content_type = content_type.map(str::to_owned);
            let head = Head {
                status: 200,
                is_success: true,
                url: String::new(),
                content_type,
                location: None,
                is_packed: false,
            };
            assert_eq!(
                head.kind(body),
                expected,
                "{:?} {body:?}",
                head.content_type
            );
        };
        check(Some("text/html; charset=x"), b"", BodyKind::Page);
        check(Some("Application/XHTML+xml"), b"", BodyKind::Page);
        check(Some("text/plain"), b"<html>", BodyKind::Text);
        check(Some("application/json"), b"{}", BodyKind::Text);
        check(Some("application/problem+json"), b"{}", BodyKind::Text);
        check(Some("image/svg+xml"), b"<svg/>", BodyKind::Text);
        check(Some("image/png"), b"abc", BodyKind::Binary);
        check(Some("application/pdf"), b"%PDF", BodyKind::Binary);
        check(None, b" <!DOCTYPE HTML><p>", BodyKind::Page);
        check(None, b"plain", BodyKind::Text);
        check(Some("application/octet-stream"), b"a\0b", BodyKind::Binary);
        check(None, b"\xff\xd8", BodyKind::Binary);
        check(None, "é".as_bytes().get(..1).unwrap(), BodyKind::Text);
        check(None, b"", BodyKind::Text);
    }
}
