//! Secrets that travel beside a command.

use karyi::error::ErrorCode;
use karyi::outcome::Status;

use super::support::{Shell, run};

#[test]
fn a_secret_is_a_variable_of_one_command() {
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
                    "printf '%s|%s\\n' \"$K1\" \"${#K2}\"; env | grep -c K1=",
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
            shell
                .check("echo \"[${K1-unset}${K2-unset}]\"", 0, "[unsetunset]\n")
                .await;
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
        let script = "grep -r 'hunt[e]r2' /proc/$$/environ /proc/$$/cmdline; find \"$HOME\" -type f -exec grep -l 'hunt[e]r2' {} +; [ $K1 = \"hun\"ter2 ]; echo $?";
        let seen = shell
            .command_with(script, &[("K1", "hunter2")])
            .await
            .unwrap();
        assert_eq!(seen.brief(), (Status::Ok, Some(0), "0\n"));
        shell
            .command_with("export LEAK=$K1; exit 1", &[("K1", "hunter2")])
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
        let shell = Shell::bash().await;
        let error = shell
            .command_with("true", &[("a b", "hunter2")])
            .await
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::BadValue);
    });
}
