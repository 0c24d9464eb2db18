//! Requests of the assistant: small at the start, and the same to the byte but for their end, so that a provider can
//! cache them.

use super::assistant;
use crate::ask::server::{ModelServer, Reply};

/// Most bytes before the first text of the user.
const MOST_START_BYTES: usize = 10_000;

#[test]
fn the_first_request_is_small_and_each_one_begins_with_the_last() {
    let block = "<tools><command>echo hi</command></tools>\n";
    let server = ModelServer::start(vec![
        Reply::text(block),
        Reply::text("First."),
        Reply::text("Second."),
    ]);
    let mut terminal = assistant(&server, &["--mode", "full"]).on_terminal();
    terminal
        .expect("/help")
        .keys("what is here?\r")
        .expect("240 tokens");
    terminal.keys("and now?\r").expect("Second.");
    terminal.keys("\x04");
    assert_eq!(terminal.echo_at_end(), (true, 0));
    let raw = server.raw();
    let bodies: Vec<&str> = raw.iter().map(|(_, body)| body.as_str()).collect();
    let start = bodies[0].find("what is here?").unwrap();
    assert!(start <= MOST_START_BYTES, "{start} bytes before the text");
    for pair in bodies.windows(2) {
        let (messages, _) = pair[0].split_once("],\"stream\"").unwrap();
        assert!(pair[1].starts_with(messages), "{}\n{}", pair[0], pair[1]);
    }
}
