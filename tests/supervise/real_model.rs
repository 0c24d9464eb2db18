//! A real small model behind the server of llama.cpp, at the address in `KARYI_TEST_LLAMA`, as the Teller: skipped
//! without it. The server of the other tests plays the Planner.

use std::fs;

use jiff::Timestamp;
use karyi_tasks::inbox;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::home::{Home, until};
use super::role_server::RoleServer;
use crate::harness::{skip, wait};

#[test]
fn a_small_model_as_the_teller_replies_or_hands_over() {
    let Ok(url) = std::env::var("KARYI_TEST_LLAMA") else {
        skip("KARYI_TEST_LLAMA names no server of llama.cpp");
        return;
    };
    let server = RoleServer::start(|asked| {
        assert_ne!(asked.role(), "teller");
        Some("Done.".to_owned())
    });
    let args = ["--worker", "read-only", "--json"];
    let home = Home::new(&server, &args, "teller_model = 'local'\nteller_steps = 3\n");
    let config = home.path("../home/.config/karyi/config.toml");
    let local = format!(
        "[models.local]\nprovider = 'openai_chat'\nbase_url = '{}/v1'\nmodel = 'small'\nsmall = true\n",
        url.trim_end_matches('/')
    );
    let settings = fs::read_to_string(&config).unwrap();
    fs::write(&config, settings + &local).unwrap();
    let text = "Build the project each night, and tell me when it fails.";
    inbox::add(&home.state, text, Timestamp::now()).unwrap();

    let child = home.spawn();
    let replies = || !home.logged("reply").is_empty();
    let tasks = || !home.names("planner/results").is_empty();
    until("a reply or a task", || replies() || tasks());
    let id = Pid::from_raw(child.id().try_into().unwrap());
    kill(id, Signal::SIGTERM).unwrap();
    wait(child);
    // The grammar lets it write only calls and arguments that its role may use.
    assert!(home.logged("tool_not_allowed").is_empty());
    assert!(home.logged("model_failed").is_empty());
}
