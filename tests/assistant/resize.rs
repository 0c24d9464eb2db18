//! Resizes while an answer streams.

use super::assistant;
use super::tmux::Tmux;
use crate::ask::server::{ModelServer, Reply};
use crate::harness::skip;

#[test]
fn every_line_stands_once_after_resizes_during_a_stream() {
    let line = |number: usize| format!("line-{number:03} {}\n\n", "word ".repeat(10));
    let pieces: Vec<String> = (0..60).map(line).collect();
    let (reply, gate) = Reply::gated(pieces);
    let server = ModelServer::start(vec![reply]);
    let Some(tmux) = Tmux::start(assistant(&server, &[]), 80, 24) else {
        return skip("tmux is not installed");
    };
    tmux.wait(|screen| screen.contains("openai_chat:tiny"));
    tmux.text("stream");
    tmux.key("Enter");
    tmux.wait(|screen| screen.contains("● "));
    tmux.text("typed meanwhile, a line that is longer than the narrow screen");
    for round in 0..5 {
        for (columns, rows) in [(80, 24), (50, 20), (100, 30)] {
            for _ in 0..4 {
                gate.send(()).unwrap();
            }
            tmux.resize(columns, rows);
        }
        let last = format!("line-{:03}", round * 12 + 10);
        tmux.wait(|screen| screen.contains(&last));
    }
    let all = tmux.wait(|screen| screen.contains("line-059") && !screen.contains("answering"));
    for number in 0..60 {
        let start = format!("line-{number:03} ");
        assert_eq!(all.matches(&start).count(), 1, "{start}\n{all}");
    }
    assert_eq!(all.matches("typed meanwhile").count(), 1, "{all}");
    assert_eq!(all.matches("· ask").count(), 1, "{all}");
    assert!(!all.contains("●"), "{all}");
}
