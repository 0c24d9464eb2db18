//! Directories that go, or that nobody may enter any more.

use serde_json::json;

use crate::harness::{Karyi, is_root, results};

/// What a run of a user without rights reports of these commands, in a directory of that user.
fn reported(commands: &str) -> Vec<serde_json::Value> {
    const NOBODY: u32 = 65534;
    let karyi = match is_root() {
        true => Karyi::new().run_as(NOBODY),
        false => Karyi::new(),
    };
    if is_root() {
        std::os::unix::fs::chown(karyi.work(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let ran = karyi
        .args(&["--json", "--no-rc"])
        .stdin(format!("<tools>{commands}</tools>"))
        .run();
    let report = ran.json();
    results(&report).to_vec()
}

#[test]
fn a_shell_that_ends_where_nobody_may_enter_is_followed_by_one_elsewhere() {
    let results = reported(
        "<command>mkdir -p inner; cd inner; export EE=1; chmod 000 .; exit 1</command>\
         <command>pwd; echo $EE</command><command cwd=\"/\">pwd</command>\
         <command>chmod 700 inner; rmdir inner</command>",
    );
    let output = results[1]["output"].as_str().unwrap();
    assert!(output.ends_with("/work\n1\n"), "{results:?}");
    assert_eq!(results[0]["exit_code"], 1, "{results:?}");
    let lost = results[1]["lost"]
        .as_array()
        .or(results[0]["lost"].as_array());
    assert!(
        lost.is_some_and(|lost| lost.contains(&json!("cwd"))),
        "{results:?}"
    );
    assert_eq!(results[2]["output"], "/\n", "{results:?}");
    assert_eq!(results[3]["status"], "ok", "{results:?}");
}

#[test]
fn a_command_is_not_sent_where_nobody_may_enter() {
    let results = reported(
        "<command>v=kept; mkdir closed; chmod 600 closed</command>\
         <command cwd=\"closed\">pwd</command><command>echo $v; rmdir closed</command>",
    );
    assert_eq!(results[1]["code"], "permission_denied", "{results:?}");
    assert_eq!(results[2]["output"], "kept\n", "{results:?}");
}

#[test]
fn a_session_beside_one_without_a_directory_says_where_it_began() {
    let results = reported(
        "<command timeout=\"0.2\">mkdir gone; cd gone; rmdir ../gone; read x</command>\
         <command>pwd</command>",
    );
    let place = results[1]["output"].as_str().unwrap().trim_end();
    let note = results[1]["note"].as_str().unwrap();
    let wanted = format!(
        "opened in {place} with its exported environment, because its directory is gone or cannot be entered;"
    );
    assert!(note.contains(&wanted), "{note}");
}
