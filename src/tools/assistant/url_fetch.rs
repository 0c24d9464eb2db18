//! `url_fetch`: asks for a URL, and returns the answer or saves it.
//!
//! All that can be refused is refused before anything is sent: the URL by the guard or the profile, the method, the
//! body, the headers, the place of a download.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::tool::context::blocking;
use crate::tool::effect::PathBase;
use crate::tool::own_directories::OwnPath;
use crate::tool::seconds;
use crate::tool::spec::{Example, Family, Form, Spec};
use crate::tool::web_settings::{WebSettings, failure};
use crate::tool::{
    Answer, ArgumentSchema, Context, CountedKind, CountedTexts, Effect, Seconds, Tool, Use,
    normalise,
};
use karyi_core::call::{RawBody, RawElement};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_core::limits;
use karyi_core::outcome::Status;
use karyi_core::secret::{SecretValue, Template};
use karyi_net::{
    Guard, HttpResponse, NetError, NetErrorKind, RedirectAnswer, Redirects, WebRequest, WebUrl,
};
use karyi_vault::redact::Redacted;

mod answer;
mod headers;

use answer::Head;

/// The tool.
pub struct UrlFetch;

/// Arguments of `url_fetch`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// URL with http or https.
    #[schemars(extend("x-karyi" = {"missing": "missing required param: url"}))]
    pub url: Template,
    /// `GET` (the default), `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: Option<String>,
    /// Id of a profile of the user, which adds a secret.
    pub auth_profile: Option<String>,
    /// Headers by name. A secret goes here, alone or after `Bearer `.
    pub headers: Option<BTreeMap<String, Template>>,
    /// Body of a POST, PUT or PATCH.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(with = "Option<Value>", extend("x-karyi" = {"raw": true}))]
    pub body: Option<RequestBody>,
    /// File below file_cache_dir for the body of the answer.
    pub download_path: Option<Template>,
    /// Time limit in seconds; 30 by default.
    pub timeout_seconds: Option<Seconds>,
    /// Most bytes of the body of the answer.
    #[schemars(range(min = 1))]
    pub max_bytes: Option<u64>,
    /// Header that the profile adds.
    #[serde(skip)]
    pub added: Option<Box<AddedHeader>>,
    /// True when only the status of the answer may be shown.
    #[serde(skip)]
    pub is_sealed: bool,
}

/// Header with the secret of a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct AddedHeader {
    /// Name.
    pub name: String,
    /// Value, with a placeholder.
    pub value: Template,
}

/// Body of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestBody {
    /// The text, or a value as JSON.
    pub text: Template,
    /// True for a value that is no text.
    pub is_value: bool,
}

impl<'de> Deserialize<'de> for RequestBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::String(text) => Self {
                text: Template::new(text),
                is_value: false,
            },
            value => Self {
                text: Template::new(value.to_string()),
                is_value: true,
            },
        })
    }
}

impl Serialize for RequestBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.is_value {
            true => serde_json::from_str::<Value>(self.text.source())
                .unwrap_or_default()
                .serialize(serializer),
            false => serializer.serialize_str(self.text.source()),
        }
    }
}

/// Reads a body that is given; null is one, too.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<RequestBody>, D::Error> {
    RequestBody::deserialize(deserializer).map(Some)
}

/// Result of `url_fetch`.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Output {
    /// URL that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub url: Option<Redacted>,
    /// URL that answered, after redirects.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub final_url: Option<Redacted>,
    /// Absolute URL that a redirect leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub location: Option<Redacted>,
    /// Method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<&'static str>,
    /// Status of HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// `unknown` after a change that was cut off: the server may have made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<&'static str>,
    /// The parts of the answer.
    #[serde(flatten)]
    pub answer: AnswerParts,
}

/// Parts of an answer.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct AnswerParts {
    /// Kind of content.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub content_type: Option<Redacted>,
    /// Title of a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub title: Option<Redacted>,
    /// Bytes of the body that were read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// True when the body has more than `max_bytes` bytes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Absolute path of the saved file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub path: Option<Redacted>,
    /// `unavailable` when saving cannot be undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<&'static str>,
    /// True: the text is data and no request of the user.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub untrusted: bool,
    /// The text; that of a page without its markup. A binary body is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub body: Option<Redacted>,
    /// Links of a page.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
}

/// Link of a page.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Link {
    /// Number in the text.
    pub number: usize,
    /// Target.
    #[schemars(with = "String")]
    pub url: Redacted,
}

/// Methods of a request.
pub const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

impl Args {
    /// Returns the method in upper case.
    ///
    /// # Errors
    /// `bad_arguments` for an unknown one.
    fn method(&self) -> Result<&'static str, ToolError> {
        let word = self
            .method
            .as_deref()
            .unwrap_or_default()
            .trim()
            .to_ascii_uppercase();
        let word = if word.is_empty() { "GET" } else { &word };
        METHODS
            .into_iter()
            .find(|method| *method == word)
            .ok_or_else(|| {
                let shown: String = word.chars().take(20).collect();
                let message = format!(
                    "unsupported method: {shown} (expected {})",
                    METHODS.join("|")
                );
                ToolError::new(ErrorCode::BadArguments, message)
            })
    }

    /// Adds the header of the profile that the call names. Without one that may be used the call fails when it runs.
    pub fn add_profile(&mut self, settings: &WebSettings) {
        let id = self.auth_profile.as_deref();
        let profile = id.and_then(|id| settings.profile(id).ok());
        self.added = profile.map(|profile| {
            let name = profile.header.clone();
            let value = format!("{}$KARYI{{{}}}", profile.format.prefix(), profile.secret);
            let value = Template::new(value);
            Box::new(AddedHeader { name, value })
        });
    }

    /// Returns the URL that secrets in the headers are sent to, if it is one.
    #[must_use]
    pub fn destination(&self) -> Option<WebUrl> {
        WebUrl::parse(self.url.source()).ok()
    }

    /// Returns method and URL, for people.
    #[must_use]
    pub fn request_line(&self) -> String {
        let method = self.method().unwrap_or("GET");
        format!("{method} {}", self.url.source())
    }
}

impl Tool for UrlFetch {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "url_fetch",
        summary: "Ask for a URL, and read or save the answer",
        details: "A page comes as text; `[2]` in it is the second of `links`. A body of JSON is best written as JSON. \
            `download_path` saves any kind of content.",
        also_called: &[
            "fetch",
            "http",
            "curl",
            "wget",
            "web_fetch",
            "fetch_url",
            "open_url",
        ],
        heading: "> url_fetch",
        starts_job: false,
        family: Family::Assistant,
        form: Form::Parameters,
        examples: &[
            Example {
                title: "A page",
                before: "",
                xml: "<url_fetch url=\"https://example.com/\"/>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "Send JSON",
                before: "",
                xml: "<url_fetch url=\"https://example.com/tasks\" method=\"POST\">\n  <headers>{\"Content-Type\": \
                    \"application/json\"}</headers>\n  <body>{\"name\": \"bread\"}</body>\n</url_fetch>",
                status: Status::Ok,
                code: None,
            },
            Example {
                title: "A URL without a scheme",
                before: "",
                xml: "<url_fetch url=\"example.com\"/>",
                status: Status::Error,
                code: Some("bad_arguments"),
            },
        ],
    };
    const COUNTED: &'static [CountedTexts] = &[CountedTexts {
        list: "",
        text: "body",
        kind: CountedKind::Lines,
    }];

    /// Takes the text of a body as it was written, also where it is JSON.
    fn note_sources(args: &mut Args, element: &RawElement) {
        let RawBody::Elements(children) = &element.body else {
            return;
        };
        if let Some(child) = children.iter().find(|child| child.name == "body")
            && let RawBody::Text(text) = &child.body
        {
            let text = Template::new(normalise::framed(text).0);
            args.body = Some(RequestBody {
                text,
                is_value: false,
            });
        }
    }

    fn effect(args: &Args) -> Effect {
        let file = args.download_path.as_ref();
        Effect::Outside {
            is_write: args.method() != Ok("GET"),
            files: file
                .map(|path| OwnPath::access(path, PathBase::Cache, true))
                .into_iter()
                .collect(),
        }
    }

    fn title(args: &Args) -> String {
        args.request_line()
    }

    fn timeout(args: &Args) -> Option<Seconds> {
        args.timeout_seconds
    }

    fn check(args: &Args) -> Result<(), ToolError> {
        args.timeout_seconds.map_or(Ok(()), Seconds::check_positive)
    }

    fn output_schema() -> Option<ArgumentSchema> {
        Some(ArgumentSchema::of_result::<Output>())
    }

    fn templates(args: &mut Args, visit: &mut dyn FnMut(Use, &mut Template)) {
        visit(Use::Shared, &mut args.url);
        for value in args.headers.iter_mut().flat_map(BTreeMap::values_mut) {
            visit(Use::Header, value);
        }
        if let Some(body) = &mut args.body {
            visit(Use::Shared, &mut body.text);
        }
        if let Some(path) = &mut args.download_path {
            visit(Use::Shared, path);
        }
        if let Some(added) = &mut args.added {
            visit(Use::Header, &mut added.value);
        }
    }

    async fn run(args: Args, context: &Context) -> Result<Answer<Output>, ToolError> {
        let plan = plan(&args, context)?;
        let file = match &args.download_path {
            Some(path) => {
                let (path, context) = (path.text().to_owned(), context.clone());
                Some(blocking(move || answer::destination(&path, &context)).await?)
            }
            None => None,
        };
        let usual = context.settings.web.url_fetch.timeout;
        let time = args.timeout_seconds.map_or(usual, Seconds::duration);
        let time = context.time_left().map_or(time, |left| left.min(time));
        let deadline = Deadline {
            end: Instant::now() + time,
            time,
        };
        let output = Output {
            url: Some(context.redactor.redact_whole_again(plan.url.as_str())),
            method: Some(plan.method),
            ..Output::default()
        };
        let is_write = plan.method != "GET";
        let response = match send(plan, &args, context, &deadline).await {
            Ok(response) => response,
            Err(failed) => return failed.told(output, is_write, &args, context),
        };
        let head = Head::of(&response);
        let mut problem = head.problem();
        if args.is_sealed {
            let output = Output {
                http_status: Some(head.status),
                ..Output::default()
            };
            return Ok(finished(output, problem));
        }
        let file = file.filter(|_| problem.is_none());
        let read = deadline.keep(read(response, &args, file.is_some(), context));
        let answer = match read.await {
            Ok(body) => match file {
                Some(file) => answer::save(file, &head, body, context.clone()).await,
                None => Ok(answer::show(&head, &body, context)),
            },
            Err(error) => Err(error),
        };
        let answer = answer.unwrap_or_else(|error| {
            problem = Some(error);
            head.declared(context)
        });
        let output = head.fill(output, context);
        Ok(finished(Output { answer, ..output }, problem))
    }
}

/// End of the time of a call.
struct Deadline {
    end: Instant,
    time: Duration,
}

impl Deadline {
    /// Ends work at the deadline.
    async fn keep<T>(
        &self,
        work: impl Future<Output = Result<T, ToolError>>,
    ) -> Result<T, ToolError> {
        let work = tokio::time::timeout_at(self.end.into(), work).await;
        work.unwrap_or_else(|_| Err(seconds::timed_out(UrlFetch::SPEC.name, self.time)))
    }
}

/// Request that got no answer, or none that it could follow.
struct FailedRequest {
    error: ToolError,
    /// True when the server may have got the request.
    may_have_arrived: bool,
    redirect: Option<Box<RedirectAnswer>>,
}

impl FailedRequest {
    /// Returns the result of a call: what is known of the answer, or that a change may have been made.
    ///
    /// # Errors
    /// Nothing was sent, or only a request that changes nothing.
    fn told(
        self,
        output: Output,
        is_write: bool,
        args: &Args,
        context: &Context,
    ) -> Result<Answer<Output>, ToolError> {
        match self.redirect {
            Some(redirect) => {
                let http_status = Some(redirect.status);
                let location = redirect.location.as_deref();
                let location = location.map(|url| context.redactor.redact(url));
                let output = match args.is_sealed {
                    true => Output::default(),
                    false => Output { location, ..output },
                };
                let output = Output {
                    http_status,
                    ..output
                };
                Ok(finished(output, Some(self.error)))
            }
            None if is_write && self.may_have_arrived => {
                let outcome = Some("unknown");
                let hint = "the server may have done it: look before you send it again";
                let output = Output { outcome, ..output };
                Ok(finished(output, Some(self.error.with_hint(hint))))
            }
            None => Err(self.error),
        }
    }
}

/// Sends a request; returns its answer, of which the head is read.
async fn send(
    plan: RequestPlan,
    args: &Args,
    context: &Context,
    deadline: &Deadline,
) -> Result<HttpResponse, FailedRequest> {
    let client = &context.settings.web.client;
    let request = plan.request.patience(deadline.time);
    let sent = client.send(request, &plan.guard, plan.redirects);
    let sent = deadline.keep(async { Ok(sent.await) }).await;
    let sent = sent.map_err(|error| FailedRequest {
        error,
        may_have_arrived: true,
        redirect: None,
    })?;
    sent.map_err(|error| FailedRequest {
        may_have_arrived: error.may_have_arrived,
        error: refusal(&error, args.auth_profile.as_deref()),
        redirect: error.redirect,
    })
}

fn finished(output: Output, problem: Option<ToolError>) -> Answer<Output> {
    let status = if problem.is_some() {
        Status::Error
    } else {
        Status::Ok
    };
    Answer {
        status,
        output,
        problem,
    }
}

/// Body of an answer, as far as it was read.
struct ReadBody {
    bytes: Vec<u8>,
    is_cut: bool,
}

async fn read(
    response: HttpResponse,
    args: &Args,
    is_saved: bool,
    context: &Context,
) -> Result<ReadBody, ToolError> {
    let (usual, most) = match args.download_path {
        Some(_) => (limits::DOWNLOAD_BYTES, limits::DOWNLOAD_BYTES),
        None => {
            let usual = context.settings.web.url_fetch.max_bytes;
            (usual, limits::MAX_FETCH_BYTES)
        }
    };
    let most = args.max_bytes.unwrap_or(usual).min(most);
    let most_bytes = usize::try_from(most).unwrap_or(usize::MAX);
    let (bytes, is_cut) = response
        .body_up_to(most_bytes)
        .await
        .map_err(|error| failure(&error))?;
    if is_cut && is_saved {
        let message = format!("download truncated (max_bytes={most})");
        return Err(ToolError::new(ErrorCode::FileTooLarge, message).with_hint(
            "nothing was saved; raise max_bytes, or fetch a part with the header Range",
        ));
    }
    Ok(ReadBody { bytes, is_cut })
}

/// Returns the error of a request, with a hint at the rules that refuse it.
fn refusal(error: &NetError, profile: Option<&str>) -> ToolError {
    let made = failure(error);
    match (profile, &error.redirect) {
        (Some(id), None) if error.kind == NetErrorKind::Refused => made.with_hint(format!(
            "leave auth_profile out, or ask the user to add the URL to auth_profiles.{id}.allow.url_prefixes"
        )),
        _ => made,
    }
}

/// Request that may be sent.
struct RequestPlan {
    method: &'static str,
    url: WebUrl,
    request: WebRequest,
    guard: Guard,
    redirects: Redirects,
}

/// Checks the arguments of a call, in the order in which errors are told.
fn plan(args: &Args, context: &Context) -> Result<RequestPlan, ToolError> {
    let settings = &context.settings.web;
    let text = args.url.text();
    if text.trim().is_empty() {
        return Err(ToolError::new(
            ErrorCode::BadArguments,
            "missing required param: url",
        ));
    }
    let url = WebUrl::parse(text).map_err(|error| failure(&error))?;
    if args.auth_profile.is_none() {
        settings
            .guard
            .check(&url)
            .map_err(|error| failure(&error))?;
    }
    let method = args.method()?;
    if args.is_sealed && args.download_path.is_some() {
        let message = "download_path is given, and of the answer to a sealed secret nothing but the status is kept";
        return Err(ToolError::new(ErrorCode::PolicyDenied, message)
            .with_hint("leave download_path out, or use another secret"));
    }
    if args.body.is_some() && matches!(method, "GET" | "DELETE") {
        let message = "request body is only supported for POST/PUT/PATCH in url_fetch";
        return Err(ToolError::new(ErrorCode::BadArguments, message)
            .with_hint("leave the body out, or set the method"));
    }
    let (guard, redirects) = match &args.auth_profile {
        Some(id) => profile_rules(id, args, (&url, method), settings)?,
        None => (settings.guard.clone(), settings.redirects),
    };
    // A change is sent to the URL that the call names, and sent once.
    let redirects = match method {
        "GET" => redirects,
        _ => Redirects::Returned,
    };
    let request = WebRequest::new(method, url.clone()).map_err(|error| failure(&error))?;
    let request = with_headers(request, args, settings)?;
    let request = match &args.body {
        Some(body) => request.body(body.text.text().to_owned()),
        None => request,
    };
    Ok(RequestPlan {
        method,
        url,
        request,
        guard,
        redirects,
    })
}

/// Checks a call with a profile; returns its rules.
fn profile_rules(
    id: &str,
    args: &Args,
    (url, method): (&WebUrl, &str),
    settings: &WebSettings,
) -> Result<(Guard, Redirects), ToolError> {
    let profile = settings.profile(id)?;
    let checked = profile.guard.check(url);
    checked.map_err(|error| refusal(&error, Some(id)))?;
    if !profile.methods.iter().any(|known| known == method) {
        let message = format!("method {method:?} not allowed by auth_profile {id:?}");
        let hint = format!("the profile allows {}", profile.methods.join(", "));
        return Err(ToolError::new(ErrorCode::PolicyDenied, message).with_hint(hint));
    }
    if args.headers.is_some() {
        let message = format!("headers are not allowed when using auth_profile {id:?}");
        return Err(ToolError::new(ErrorCode::BadArguments, message).with_hint("leave headers out"));
    }
    Ok((profile.guard.clone(), profile.redirects))
}

/// Sets the headers of a request: those of the call, the secret of the profile, and usual ones.
fn with_headers(
    mut request: WebRequest,
    args: &Args,
    settings: &WebSettings,
) -> Result<WebRequest, ToolError> {
    let given = args.headers.iter().flatten();
    if given.clone().count() > limits::MAX_FETCH_HEADERS {
        let message = format!(
            "expected at most {} headers, found {}",
            limits::MAX_FETCH_HEADERS,
            given.count()
        );
        return Err(ToolError::new(ErrorCode::BadArguments, message));
    }
    let mut names = BTreeSet::new();
    for (name, value) in given {
        headers::check(name, value)?;
        if !names.insert(name.to_ascii_lowercase()) {
            let message = format!("expected each header once, found {name} twice");
            return Err(ToolError::new(ErrorCode::BadArguments, message)
                .with_hint("the case of a header's name does not count: write it once"));
        }
        request = set(request, name, value)?;
    }
    if let Some(added) = &args.added {
        request = set(request, &added.name, &added.value)?;
    }
    let body = args.body.as_ref().filter(|_| args.headers.is_none());
    if let Some(body) = body {
        let is_json = body.is_value
            || serde_json::from_str::<serde::de::IgnoredAny>(body.text.text()).is_ok();
        let kind = if is_json {
            "application/json"
        } else {
            "text/plain"
        };
        request = request
            .header("content-type", kind)
            .map_err(|error| failure(&error))?;
    }
    match &settings.url_fetch.user_agent {
        Some(agent) if !request.has_header("user-agent") => request
            .header("user-agent", agent)
            .map_err(|error| failure(&error)),
        _ => Ok(request),
    }
}

fn set(request: WebRequest, name: &str, value: &Template) -> Result<WebRequest, ToolError> {
    let set = match value.has_placeholder() {
        true => request.secret_header(name, &SecretValue::new(headers::sent(value.text()))),
        false => request.header(name, value.text()),
    };
    set.map_err(|error| failure(&error))
}
