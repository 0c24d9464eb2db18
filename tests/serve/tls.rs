//! TLS with a certificate of its own, between the real client and the real server.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::Server;
use crate::harness::{Karyi, program, results, skip};

const KEY: &str = "0123456789abcdef0123456789abcdef";

/// Makes a certificate for a name and its key; nothing without openssl.
fn certificate(dir: &Path, name: &str) -> Option<(PathBuf, PathBuf)> {
    let (cert, key) = (
        dir.join(format!("{name}.pem")),
        dir.join(format!("{name}.key")),
    );
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
        ])
        .args(["-nodes", "-days", "2", "-subj", &format!("/CN={name}")])
        .args(["-addext", &format!("subjectAltName=DNS:{name}")])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&cert)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    made.ok()?.success().then_some((cert, key))
}

fn call(url: &str, key: &Path, authority: Option<&Path>) -> (Option<i32>, String) {
    let mut command = Command::new(program());
    command
        .args([
            "call",
            url,
            "get_site_map",
            "--tenant",
            "yantian",
            "--site",
            "yantian-main",
        ])
        .args(["--timeout", "60", "--key-file"])
        .arg(key);
    if let Some(authority) = authority {
        command.arg("--ca").arg(authority);
    }
    let output = command.output().unwrap();
    let told = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(told).unwrap())
}

#[test]
fn calls_are_encrypted_for_who_trusts_the_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let (Some((cert, key)), Some((other, _))) = (
        certificate(dir.path(), "localhost"),
        certificate(dir.path(), "other"),
    ) else {
        return skip("no openssl");
    };
    let secret = dir.path().join("key");
    std::fs::write(&secret, KEY).unwrap();
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let server = Server::start(&[
        "--tls-cert",
        &path(&cert),
        "--tls-key",
        &path(&key),
        "--key-file",
        &path(&secret),
    ]);
    let url = format!("https://localhost:{}", server.port);
    let (code, told) = call(&url, &secret, Some(&cert));
    let answer: Value = serde_json::from_str(&told).unwrap_or_else(|_| panic!("{told}"));
    assert_eq!(
        (code, &answer["output"]["site_name"]),
        (Some(0), &json!("严田古村"))
    );
    // Another authority, none at all, another name.
    for (url, authority) in [
        (url.as_str(), Some(other.as_path())),
        (url.as_str(), None),
        (
            &format!("https://127.0.0.1:{}", server.port),
            Some(cert.as_path()),
        ),
    ] {
        let (code, told) = call(url, &secret, authority);
        assert!(code == Some(2) && !told.contains(KEY), "{told}");
    }
    // Without encryption nothing is answered, and the next call is.
    let bare = server.get("/healthz");
    assert_eq!((bare.status, bare.body.as_str()), (0, ""));
    assert_eq!(call(&url, &secret, Some(&cert)).0, Some(0));
    assert_eq!(server.records().len(), 2);
    // Who has only connected does not hold up the end.
    let silent = server.connect();
    assert_eq!(call(&url, &secret, Some(&cert)).0, Some(0));
    let start = std::time::Instant::now();
    server.stop();
    assert!(start.elapsed() < std::time::Duration::from_secs(20));
    drop(silent);
}

/// `url_fetch` trusts the authorities of the machine, which this variable names.
#[test]
fn pages_are_fetched_from_servers_with_a_trusted_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let (Some((cert, key)), Some((other, _))) = (
        certificate(dir.path(), "localhost"),
        certificate(dir.path(), "other"),
    ) else {
        return skip("no openssl");
    };
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let server = Server::start(&["--tls-cert", &path(&cert), "--tls-key", &path(&key)]);
    let origin = format!("https://localhost:{}", server.port);
    let fetch = |authority: &Path| {
        let run = Karyi::new()
            .args(&["--json", "--tools", "url_fetch"])
            .env("SSL_CERT_FILE", authority)
            .file(
                "../home/.config/karyi/config.toml",
                format!("[guard]\nallow = [\"{origin}\"]\n"),
            )
            .stdin(format!(
                "<tools><url_fetch url=\"{origin}/healthz\"/></tools>"
            ));
        results(&run.run().json())[0].clone()
    };
    let found = fetch(&cert);
    assert_eq!(found["http_status"], 200, "{found}");
    let found = fetch(&other);
    assert_eq!(found["code"], "network_error", "{found}");
    let message = found["message"].as_str().unwrap();
    assert!(
        message.starts_with("encrypting the connection to localhost:"),
        "{message}"
    );
}

#[test]
fn a_certificate_with_the_key_of_another_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (Some((cert, _)), Some((_, key))) = (
        certificate(dir.path(), "localhost"),
        certificate(dir.path(), "other"),
    ) else {
        return skip("no openssl");
    };
    let output = super::command(dir.path())
        .args(["--port", "0", "--tls-cert"])
        .arg(&cert)
        .arg("--tls-key")
        .arg(&key)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        told.contains("using the certificate with its key"),
        "{told}"
    );
}
