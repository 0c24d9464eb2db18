//! `karyi call`: a client of the tool server.
//!
//! Credentials come from a file or from the user's secrets, never from an argument: every process of the
//! machine can see arguments.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use axum::http::Uri;
use jiff::Timestamp;
use serde_json::Value;
use zeroize::Zeroizing;

use crate::cli::args::CallArgs;
use crate::cli::vault::VaultFlags;
use crate::cli::{fail, print, runtime, say, var};
use crate::http::client::{self, ClientCall};
use crate::tool::json_text;
use karyi_core::limits;
use karyi_core::secret::{self, Piece, SecretName, SecretValue};
use karyi_vault::policy::Policy;

/// Runs `karyi call`.
pub(super) fn call(args: CallArgs) -> ExitCode {
    let answered = runtime::runtime(false).and_then(|runtime| {
        let call = client_call(args)?;
        runtime.block_on(client::call(&call))
    });
    match answered {
        Err(error) => fail(&format!("{error:#}")),
        Ok(answer) => {
            print(&format!("{}\n", answer.body.trim_end()));
            let body: Value = serde_json::from_str(&answer.body).unwrap_or_default();
            if !body.is_object() {
                let status = answer.status;
                say(&format!(
                    "expected a JSON object as answer, found something else with HTTP status {status}"
                ));
            }
            ExitCode::from(u8::from(body["success"] != true))
        }
    }
}

fn client_call(args: CallArgs) -> anyhow::Result<ClientCall> {
    let input = match &args.input {
        Some(text) => json_text::parse(text)
            .map_err(anyhow::Error::msg)
            .context("reading the input")?,
        None => Value::Object(serde_json::Map::new()),
    };
    let proof =
        |flag, placeholder: &Option<String>, file: &Option<PathBuf>| match (placeholder, file) {
            (Some(placeholder), _) => {
                let name = name_in(flag, placeholder)?;
                kept(&args.vault, &name, &args.url).map(Some)
            }
            (None, Some(path)) => in_file(path).map(Some),
            (None, None) => Ok(None),
        };
    let key = proof("--key", &args.key, &args.key_file)?;
    let token = proof("--token", &args.token, &args.token_file)?;
    Ok(ClientCall {
        url: args.url,
        tool: args.tool,
        input,
        tenant: args.tenant,
        site: args.site,
        trace: args.trace,
        key,
        token,
        idempotency_key: args.idempotency_key,
        authority: args.ca,
        timeout: args.timeout.duration(),
    })
}

/// Parses the name in a placeholder. Anything else may be the value itself, so it is not repeated.
fn name_in(flag: &str, text: &str) -> anyhow::Result<SecretName> {
    let pieces = secret::split(text).unwrap_or_default();
    match <[Piece<'_>; 1]>::try_from(pieces) {
        Ok([Piece::Secret(name)]) => Ok(name),
        _ => bail!(
            "expected {flag} '$KARYI{{NAME}}', the name of a secret, and found something else: keep the value with \
            `karyi var set NAME`, or put it into a file and use {flag}-file"
        ),
    }
}

/// Returns a stored value, when it may be sent to the server.
fn kept(flags: &VaultFlags, name: &SecretName, url: &str) -> anyhow::Result<SecretValue> {
    let found = var::existing(flags).and_then(|vault| vault.get(name));
    let record = found.map_err(|error| anyhow::anyhow!("{}", error.message))?;
    let uri: Uri = url.parse().context("reading the URL of the server")?;
    if record
        .policy
        .expires
        .is_some_and(|end| end <= Timestamp::now())
    {
        bail!("{name} has expired");
    }
    if !may_reach(&record.policy, &uri) {
        let host = uri.host().unwrap_or_default();
        bail!("{name} is meant for other hosts than {host}");
    }
    Ok(record.value)
}

/// Returns true when a secret may be sent to a server. Without hosts any server that the user names is allowed.
fn may_reach(policy: &Policy, uri: &Uri) -> bool {
    let (scheme, host) = (uri.scheme_str().unwrap_or_default(), uri.host());
    let hosts = policy.hosts.as_deref().unwrap_or_default();
    let permits = |host: &str| {
        hosts
            .iter()
            .any(|rule| rule.permits(scheme, host, uri.port_u16()))
    };
    hosts.is_empty() || host.is_some_and(permits)
}

fn in_file(path: &Path) -> anyhow::Result<SecretValue> {
    let most = limits::MAX_SECRET_BYTES + 1;
    // A growing buffer would leave copies that are not cleared.
    let mut bytes = Zeroizing::new(Vec::with_capacity(most + 1));
    let read = |bytes: &mut Vec<u8>| File::open(path)?.take(most as u64).read_to_end(bytes);
    read(&mut bytes).with_context(|| format!("reading {}", path.display()))?;
    if bytes.len() == most {
        bail!(
            "{}: more than {} bytes",
            path.display(),
            limits::MAX_SECRET_BYTES
        );
    }
    let Ok(text) = std::str::from_utf8(&bytes) else {
        bail!("{}: no UTF-8 text", path.display());
    };
    Ok(SecretValue::new(text.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_placeholder_names_a_secret() {
        let name = |text: &str| name_in("--key", text).map(|name| name.to_string()).ok();
        assert_eq!(name("$KARYI{API_KEY}").as_deref(), Some("API_KEY"));
        for text in [
            "",
            "API_KEY",
            "x$KARYI{A}",
            "$KARYI{A}$KARYI{B}",
            "$KARYI{A|file}",
            "$KARYI{",
        ] {
            assert_eq!(name(text), None, "{text}");
        }
        let told = name_in("--key", "0123456789abcdef")
            .unwrap_err()
            .to_string();
        assert!(
            told.contains("--key-file") && !told.contains("0123456789"),
            "{told}"
        );
    }

    #[test]
    fn a_secret_goes_to_its_hosts_only() {
        let policy = |hosts: &[&str]| Policy {
            hosts: Some(
                hosts
                    .iter()
                    .map(|host| karyi_vault::policy::Host::parse(host).unwrap())
                    .collect(),
            ),
            ..Policy::default()
        };
        let reach = |hosts: &[&str], url: &str| may_reach(&policy(hosts), &url.parse().unwrap());
        assert!(reach(&[], "https://tools.example"));
        assert!(reach(&["tools.example"], "https://tools.example/base"));
        assert!(!reach(&["tools.example"], "https://other.example"));
        assert!(!reach(&["tools.example"], "https://tools.example:8443"));
        assert!(reach(&["localhost"], "http://localhost:8000"));
    }
}
