//! Exchanges with the server of a model: requests, statuses, and errors without a key in them.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::config::ModelConfig;
use crate::error::{ModelError, ModelErrorKind};
use crate::server_error::{self, Account, Subject};
use crate::server_json;
use karyi_core::limits;
use karyi_core::secret::{SecretName, SecretValue};
use karyi_net::{
    ClientOptions, HttpClient, HttpRequest, HttpResponse, IdleConnections, NetError, NetErrorKind,
    ProxyUse, ServerUrl, Timeouts,
};
use karyi_vault::redact::Redactor;
use karyi_vault::session::Secrets;

/// Time limits of a model. Silence has none on this machine, where a prompt is read slowly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelLimits {
    /// From the request to the head of the answer.
    pub head: Option<Duration>,
    /// Between two pieces of the answer, signs of life among them.
    pub idle: Option<Duration>,
    /// Between two events of the answer.
    pub progress: Option<Duration>,
    /// From the reason of the end to the last counts.
    pub tail: Duration,
    /// Pause before the second attempt; it doubles.
    pub retry_pause: Duration,
    /// Longest pause that the server may ask for.
    pub max_wait: Duration,
}

impl ModelLimits {
    /// Returns the limits for a server.
    #[must_use]
    pub fn of(server: &ServerUrl) -> Self {
        let remote = |time: Duration| (!server.is_loopback()).then_some(time);
        Self {
            head: remote(limits::MODEL_HEAD_TIMEOUT),
            idle: remote(limits::MODEL_IDLE_TIMEOUT),
            progress: remote(limits::MODEL_PROGRESS_TIMEOUT),
            tail: limits::MODEL_TAIL_TIMEOUT,
            retry_pause: limits::MODEL_RETRY_PAUSE,
            max_wait: limits::MAX_MODEL_WAIT,
        }
    }
}

/// Adds the key to a request, and what each request of a protocol has.
pub(crate) type Authorize = fn(HttpRequest, Option<&SecretValue>) -> Result<HttpRequest, NetError>;

/// Connection to the server of one model.
pub(crate) struct Exchange {
    pub(crate) config: ModelConfig,
    pub(crate) limits: ModelLimits,
    pub(crate) subject: Subject,
    key: Option<SecretValue>,
    /// Masks the key in errors.
    redactor: Redactor,
    authorize: Authorize,
    client: HttpClient,
}

impl Exchange {
    /// Makes the connection of a model. Nothing is sent.
    pub(crate) fn new(
        config: ModelConfig,
        key: Option<SecretValue>,
        authorize: Authorize,
        model_limits: Option<ModelLimits>,
    ) -> Result<Self, ModelError> {
        let server = ServerUrl::parse(&config.base_url).map_err(|error| {
            let message = format!("base_url: {}", error.message);
            ModelError::new(ModelErrorKind::Config, message)
        })?;
        let limits = model_limits.unwrap_or_else(|| ModelLimits::of(&server));
        let subject = Subject {
            host: server.authority(),
            model: config.model.clone(),
            key: config.key.as_ref().map(ToString::to_string),
            key_variables: config.provider.key_variables(),
        };
        let options = ClientOptions {
            proxy: ProxyUse::Environment,
            timeouts: Timeouts {
                head: limits.head,
                idle: limits.idle,
            },
            idle_connections: IdleConnections::Kept,
            allow_plain: config.allow_plain,
            ..ClientOptions::default()
        };
        let client = HttpClient::new(server, &options).map_err(|error| network(&error))?;
        let redactor = redactor(config.key.as_ref(), key.as_ref());
        Ok(Self {
            config,
            limits,
            subject,
            key,
            redactor,
            authorize,
            client,
        })
    }

    /// Returns the server.
    pub(crate) fn server(&self) -> &ServerUrl {
        self.client.server()
    }

    /// Sends a request for facts, and returns the JSON of the answer; nothing if the server does not have the path.
    pub(crate) async fn fact(&self, request: HttpRequest) -> Result<Option<Value>, ModelError> {
        let exchange = async {
            let answer = match self.send(request).await {
                Ok(answer) => answer,
                Err(error) if error.kind == ModelErrorKind::Protocol => return Ok(None),
                Err(error) => return Err(error),
            };
            let body = answer.bytes(limits::MAX_MODEL_EVENT_BYTES).await;
            let body = body.map_err(|error| self.hidden(network(&error)))?;
            Ok(server_json::parse_bytes(&body).ok())
        };
        match tokio::time::timeout(limits::MODEL_FACTS_TIMEOUT, exchange).await {
            Ok(found) => found,
            Err(_) => {
                let message = format!("{} does not tell about its model", self.subject.host);
                Err(ModelError::new(ModelErrorKind::Timeout, message))
            }
        }
    }

    /// Sends a request, and returns an answer with a status of success.
    pub(crate) async fn send(&self, request: HttpRequest) -> Result<HttpResponse, ModelError> {
        let path = self.server().path_of(request.path());
        let request = (self.authorize)(request, self.key.as_ref());
        let sent = self
            .client
            .send(request.map_err(|error| network(&error))?)
            .await;
        let answer = sent.map_err(|error| self.hidden(network(&error)))?;
        if answer.is_success() {
            return Ok(answer);
        }
        let status = answer.status();
        if (300..400).contains(&status) {
            return Err(server_error::redirect(&self.subject, status));
        }
        let wait = karyi_net::retry_after(answer.headers(), SystemTime::now());
        let should_retry = answer.header("x-should-retry").map(str::to_owned);
        let body = answer.start(limits::MODEL_ERROR_BYTES).await;
        let account = server_error::account_of_body(&body);
        let mut error = self.reported(Some(status), &account);
        if status == 404 && error.kind == ModelErrorKind::Protocol {
            error.hint = format!("check `base_url`: the server has no path {path}");
        }
        Err(server_error::with_wait(
            error,
            wait,
            should_retry.as_deref(),
        ))
    }

    /// Makes the error of a failure that the server reports.
    pub(crate) fn reported(&self, status: Option<u16>, account: &Account) -> ModelError {
        self.hidden(server_error::error(&self.subject, status, account))
    }

    /// Removes the key from an error, if a server repeats it, also encoded.
    pub(crate) fn hidden(&self, mut error: ModelError) -> ModelError {
        let Some(key) = self
            .key
            .as_ref()
            .map(SecretValue::expose)
            .filter(|key| !key.is_empty())
        else {
            return error;
        };
        let name = self.subject.key.as_deref().unwrap_or(KEY_NAME);
        self.redactor.redact_in_again(&mut error.message);
        // A key that is too short to be masked.
        error.message = error.message.replace(key, &format!("$KARYI{{{name}}}"));
        let parts = key.as_bytes().windows(SHOWN_PART);
        if parts
            .into_iter()
            .any(|part| memchr::memmem::find(error.message.as_bytes(), part).is_some())
        {
            error.message = format!(
                "{} answers with a part of the key {name}",
                self.subject.host
            );
        }
        error
    }
}

/// Name of a key that has none in the settings.
const KEY_NAME: &str = "KEY";

/// Makes the redactor of a key.
fn redactor(name: Option<&SecretName>, key: Option<&SecretValue>) -> Redactor {
    let secrets = Secrets::default();
    let name = name.cloned().or_else(|| SecretName::parse(KEY_NAME));
    if let (Some(name), Some(key)) = (name, key) {
        // One that is too short to be masked is replaced as it is.
        let _ = secrets.mask_only(&name, key.duplicate());
    }
    Redactor::new(&secrets)
}

/// Length of a part of a key that may not be repeated.
const SHOWN_PART: usize = 8;

/// Makes the error of a failed exchange.
pub(crate) fn network(error: &NetError) -> ModelError {
    let (kind, is_final) = match error.kind {
        NetErrorKind::Address
        | NetErrorKind::Settings
        | NetErrorKind::Refused
        | NetErrorKind::Plain => (ModelErrorKind::Config, true),
        NetErrorKind::Encryption => (ModelErrorKind::Network, true),
        NetErrorKind::Connect | NetErrorKind::Cut => (ModelErrorKind::Network, false),
        NetErrorKind::Timeout => (ModelErrorKind::Timeout, false),
        NetErrorKind::Protocol => (ModelErrorKind::Protocol, true),
    };
    let mut made = ModelError::new(kind, &error.message);
    made.is_final = is_final;
    match error.kind {
        NetErrorKind::Plain => {
            made.with_hint("use https, or set `allow_plain = true` if the network is trusted")
        }
        NetErrorKind::Encryption => made.with_hint(
            "check that the server speaks https, and that this machine trusts its certificate",
        ),
        NetErrorKind::Connect => {
            made.with_hint("start the server, or check `base_url` and the network")
        }
        NetErrorKind::Address
        | NetErrorKind::Settings
        | NetErrorKind::Refused
        | NetErrorKind::Cut
        | NetErrorKind::Timeout
        | NetErrorKind::Protocol => made,
    }
}
