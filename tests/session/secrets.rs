//! Secrets that travel beside a command.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use karyi::error::ErrorCode;
use karyi::outcome::Status;
use karyi::pty::ShellSecrets;
use karyi::secret::{SecretName, SecretValue};

use super::support::{Shell, run};

#[test]
fn a_secret_is_a_variable_that_is_not_exported() {
    run(async {
        for path in ["/bin/bash", "/usr/bin/zsh"] {
            if !std::path::Path::new(path).exists() {
                eprintln!("skipped: no {path}");
                continue;
            }
            let shell = Shell::with(|options| options.shell = Some(path.into())).await;
            let long = "x".repeat(60 << 10);
            let secrets = [("K1", "hunter2 \\ \"quoted\"\n line"), ("K2", &long)];
            let seen = shell
                .command_with(
                    "printf '%s|%s\\n' \"$__karyi_K1\" \"${#__karyi_K2}\"; env | grep -c K1=",
                    &secrets,
                )
                .await
                .unwrap();
            assert_eq!(
                seen.brief(),
                (
                    Status::Failed,
                    Some(1),
                    "hunter2 \\ \"quoted\"\n line|61440\n0\n"
                ),
                "{path}"
            );
            shell.check("set -a", 0, "").await;
            let seen = shell
                .command_with("env | grep -c hunter2", &[("K1", "hunter2")])
                .await
                .unwrap();
            assert_eq!(seen.brief(), (Status::Failed, Some(1), "0\n"), "{path}");
        }
    });
}

#[test]
fn a_secret_is_in_no_file() {
    run(async {
        let shell = Shell::bash().await;
        let script = "grep -r 'hunt[e]r2' /proc/$$/environ /proc/$$/cmdline; find \"$HOME\" -type f -exec grep -l 'hunt[e]r2' {} +; [ $__karyi_K1 = \"hun\"ter2 ]; echo $?";
        let seen = shell
            .command_with(script, &[("K1", "hunter2")])
            .await
            .unwrap();
        assert_eq!(seen.brief(), (Status::Ok, Some(0), "0\n"));
        shell
            .command_with("export LEAK=$__karyi_K1; exit 1", &[("K1", "hunter2")])
            .await
            .unwrap();
        shell
            .check(
                "find \"$HOME\" -type f -exec grep -l 'hunt[e]r2' {} +; echo ${#LEAK}",
                0,
                "7\n",
            )
            .await;
    });
}

#[test]
fn a_shell_that_cannot_read_them_takes_no_secrets() {
    run(async {
        let shell = Shell::with(|options| options.shell = Some("/bin/dash".into())).await;
        let error = shell
            .command_with("true", &[("K1", "hunter2")])
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::UnsupportedShell);
    });
}

/// Values by name, as they are now.
type CurrentValues = Arc<Mutex<BTreeMap<&'static str, &'static str>>>;

/// Starts a shell that finds the values of secrets in `current`.
async fn shell_with(path: &str, current: &CurrentValues) -> Shell {
    let current = Arc::clone(current);
    let value_of = move |name: &SecretName| {
        let current = current.lock().unwrap();
        let value = current.get(name.as_str())?;
        Some(SecretValue::new((*value).into()))
    };
    let secrets = ShellSecrets::default().with_values(value_of);
    Shell::with(|options| {
        options.shell = Some(path.into());
        options.secrets = secrets;
    })
    .await
}

const SHOW: &str = "echo \"[${__karyi_K-unset}]\"";

#[test]
fn a_variable_stays_and_follows_its_secret() {
    run(async {
        for path in ["/bin/bash", "/usr/bin/zsh"] {
            if !std::path::Path::new(path).exists() {
                eprintln!("skipped: no {path}");
                continue;
            }
            let current = CurrentValues::default();
            current.lock().unwrap().insert("K", "it's $1");
            let shell = shell_with(path, &current).await;
            shell.check(SHOW, 0, "[unset]\n").await;
            let script = "f() { echo \"<$__karyi_K>\"; }; set -u; f";
            let seen = shell.command_with(script, &[("K", "it's $1")]).await;
            assert_eq!(seen.unwrap().output, "<it's $1>\n", "{path}");
            shell.check("f", 0, "<it's $1>\n").await;
            current.lock().unwrap().insert("K", "another\nvalue");
            shell.check("f; set +u", 0, "<another\nvalue>\n").await;
            current.lock().unwrap().clear();
            shell.check(SHOW, 0, "[unset]\n").await;
            current.lock().unwrap().insert("K", "back again");
            shell.check("f", 0, "<back again>\n").await;
            // A shell that comes after this one has it, and exports it no more than this one did.
            shell.command("set -a; kill -9 $$").await;
            shell
                .check("f; env | grep -c back", 1, "<back again>\n0\n")
                .await;
        }
    });
}
