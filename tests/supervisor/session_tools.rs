//! Tools that a role does not have, and the number of tasks that a session hands over.

use std::fs;

use super::{Home, code};
use crate::harness::{Karyi, results};

/// Calls of tools outside the two roles.
const OTHERS: &[(&str, &str)] = &[
    (
        "command",
        "<command>touch made; echo $KARYI{UNKNOWN}</command>",
    ),
    (
        "edit",
        "<edit><file src=\"made\"><find></find><replace>x</replace></file></edit>",
    ),
    ("read", "<read><file src=\"there\"/></read>"),
    ("get_value", "<get_value key=\"TOKEN\" reason=\"x\"/>"),
    ("input", "<input>y</input>"),
    ("ctrl", "<ctrl>c</ctrl>"),
    ("plan", "<plan><step>x</step></plan>"),
    ("bash", "<bash><cmd>touch made</cmd></bash>"),
    (
        "write_file",
        "<write_file path=\"file_state_dir/made\"><content>x</content></write_file>",
    ),
    ("url_fetch", "<url_fetch url=\"https://127.0.0.1/\"/>"),
];

#[test]
fn a_call_of_any_other_tool_ends_alone() {
    for role in ["teller", "planner"] {
        let home = Home::new();
        let own = "<delegate><prompt>before</prompt></delegate>";
        let mut calls = own.to_owned();
        for (_, call) in OTHERS {
            calls.push_str(call);
        }
        calls.push_str("<list_tasks/>");
        let run = Karyi::new().args(&["--json", "--role", role, "--state-dir", home.state()]);
        let run = run
            .file("there", "secret")
            .stdin(format!("<tools>{calls}</tools>"));
        let work = run.work();
        let ran = run.run().exit(1);
        assert!(!work.join("made").exists());
        assert!(!ran.stdout().contains("secret"));
        let report = ran.json();
        let results = results(&report);
        assert_eq!(results.len(), OTHERS.len() + 2);
        for (result, (tool, _)) in results[1..].iter().zip(OTHERS) {
            assert_eq!(code(result), "tool_not_allowed", "{result}");
            let expected = format!("the role {role} has no tool {tool}");
            assert_eq!(result["message"], expected.as_str());
        }
        for own in [&results[0], &results[OTHERS.len() + 1]] {
            assert_eq!(own["status"], "ok", "{own}");
        }
        let log = fs::read_to_string(home.path("log.jsonl")).unwrap();
        let lines = log.lines().filter(|line| line.contains("tool_not_allowed"));
        assert_eq!(lines.count(), OTHERS.len(), "{log}");
    }
}

#[test]
fn a_hint_names_no_tool_that_the_role_does_not_have() {
    let home = Home::new();
    for call in ["<shell>ls</shell>", "<comand>ls</comand>", "<zzzzzz/>"] {
        let told = home.play("teller", call).exit(2);
        let told = String::from_utf8_lossy(told.raw_stdout()).into_owned();
        assert!(told.contains("\"unknown-tool\""), "{told}");
        let tools = "ask_user, cancel_task, delegate, list_tasks, remember, reply";
        assert!(told.contains(tools), "{told}");
        for other in ["`command`", "`bash`", "search_memory"] {
            assert!(!told.contains(other), "{told}");
        }
    }
}

#[test]
fn a_session_hands_over_two_hundred_tasks_at_most() {
    for (role, queue) in [("teller", "planner/queue"), ("planner", "worker/queue")] {
        let home = Home::new();
        let calls = "<delegate><prompt>x</prompt></delegate>".repeat(200);
        let ran = home.play(role, &format!("{calls}<list_tasks scope=\"running\"/>"));
        ran.exit(0);
        assert_eq!(home.names(queue).len(), 200);
        let home = Home::new();
        let report = home
            .play(
                role,
                &format!("{calls}<delegate><prompt>more</prompt></delegate>"),
            )
            .exit(1)
            .json();
        let last = &results(&report)[200];
        assert_eq!(code(last), "bad_arguments", "{last}");
        assert_eq!(
            last["message"],
            "expected at most 200 tasks of one session, found one more"
        );
    }
}
