//! Request to the server of a client: a path below its address, headers, and a body.

use bytes::Bytes;
use karyi_core::secret::SecretValue;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::multipart::{Form, Part};
use zeroize::Zeroizing;

use crate::error::{NetError, NetErrorKind};

/// Request to the server of a client.
#[derive(Debug)]
pub struct HttpRequest {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
    pub(crate) has_secret: bool,
}

/// Body of a request.
#[derive(Debug)]
pub(crate) enum Body {
    /// Bytes.
    Whole(Bytes),
    /// Fields of a form.
    Form(Vec<FormPart>),
}

/// Part of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormPart {
    /// Name of the field.
    pub name: String,
    /// Name of the file, for a file.
    pub file_name: Option<String>,
    /// Content.
    pub content: Bytes,
}

impl HttpRequest {
    /// Makes a GET request of a path below the address of the server, or from its root with a slash before it.
    #[must_use]
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path.into(), Body::Whole(Bytes::new()))
    }

    /// Makes a POST request of JSON.
    #[must_use]
    pub fn post(path: impl Into<String>, json: impl Into<Bytes>) -> Self {
        let mut request = Self::new(Method::POST, path.into(), Body::Whole(json.into()));
        let json = HeaderValue::from_static("application/json");
        request.headers.insert(CONTENT_TYPE, json);
        request
    }

    /// Makes a POST request of a form with files.
    #[must_use]
    pub fn post_form(path: impl Into<String>, parts: Vec<FormPart>) -> Self {
        Self::new(Method::POST, path.into(), Body::Form(parts))
    }

    /// Returns the path as it was given.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    fn new(method: Method, path: String, body: Body) -> Self {
        let headers = HeaderMap::new();
        let has_secret = false;
        Self {
            method,
            path,
            headers,
            body,
            has_secret,
        }
    }

    /// Adds a header.
    ///
    /// # Errors
    /// The value contains characters that a header cannot have.
    pub fn header(mut self, name: &'static str, value: &str) -> Result<Self, NetError> {
        let value = HeaderValue::from_str(value).map_err(|_| invalid_header(name))?;
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(self)
    }

    /// Adds a header with a secret behind a prefix such as `Bearer `. It is never printed, and the request is sent
    /// encrypted or to this machine only.
    ///
    /// # Errors
    /// The value contains characters that a header cannot have.
    pub fn secret_header(
        mut self,
        name: &'static str,
        prefix: &str,
        value: &SecretValue,
    ) -> Result<Self, NetError> {
        let text = Zeroizing::new(format!("{prefix}{}", value.expose()));
        let mut value = HeaderValue::from_str(&text).map_err(|_| invalid_header(name))?;
        value.set_sensitive(true);
        self.headers.insert(HeaderName::from_static(name), value);
        self.has_secret = true;
        Ok(self)
    }
}

/// The library's error does not name the header.
pub(crate) fn invalid_header(name: &str) -> NetError {
    let message =
        format!("the value of the header {name} contains characters that are not allowed in it");
    NetError::new(NetErrorKind::Settings, message)
}

/// Makes a form of the library's type.
pub(crate) fn form(parts: Vec<FormPart>) -> Form {
    parts.into_iter().fold(Form::new(), |form, part| {
        let mut content = Part::stream_with_length(part.content.clone(), part.content.len() as u64);
        if let Some(name) = part.file_name {
            content = content.file_name(name);
        }
        form.part(part.name, content)
    })
}
