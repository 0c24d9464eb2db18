//! Commands that end at once, and what comes between and after them.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use karyi::outcome::Status;
use karyi::pty::{CommandRequest, Sink};

use super::support::{Shell, run};

/// What several sinks took, in order.
#[derive(Clone, Default)]
struct CollectedOutput(Arc<Mutex<Vec<u8>>>);

impl CollectedOutput {
    fn sink(&self) -> Sink {
        let taken = self.0.clone();
        Box::new(move |bytes| taken.lock().unwrap().extend_from_slice(bytes))
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[test]
fn no_output_is_lost_between_quick_commands() {
    run(async {
        let shell = Shell::bash().await;
        let all = CollectedOutput::default();
        shell.session.set_idle_sink(Some(all.sink()));
        let script = "mkfifo begin end; (read x <begin; for i in {1..3000}; do echo $i; done; echo x >end) &";
        shell.check(script, 0, "").await;
        let request = CommandRequest {
            script: "echo x >begin".into(),
            ..CommandRequest::default()
        };
        let progress = shell.session.command(request, all.sink()).await.unwrap();
        assert_eq!(progress.exit_code, Some(0));
        for number in 0..500 {
            let request = CommandRequest {
                script: format!("(exit {number})"),
                ..CommandRequest::default()
            };
            let progress = shell.session.command(request, all.sink()).await.unwrap();
            assert_eq!(progress.exit_code, Some(number & 255));
        }
        let request = CommandRequest {
            script: "read x <end".into(),
            ..CommandRequest::default()
        };
        let progress = shell.session.command(request, all.sink()).await.unwrap();
        assert_eq!(progress.exit_code, Some(0));
        let expected: String = (1..=3000).map(|number| format!("{number}\n")).collect();
        assert!(all.text() == expected, "{}", all.text());
    });
}

#[test]
fn a_sink_may_wait_for_the_runtime_of_the_caller() {
    run(async {
        let shell = Shell::bash().await;
        let (sender, mut receiver) = tokio::sync::mpsc::channel::<Vec<u8>>(1);
        let runtime = tokio::runtime::Handle::current();
        let request = CommandRequest {
            script: "for i in {1..200}; do echo $i; done".into(),
            ..CommandRequest::default()
        };
        let sink = Box::new(move |bytes: &[u8]| {
            let _ = runtime.block_on(sender.send(bytes.to_vec()));
        });
        let call = shell.session.command(request, sink);
        let (progress, text) = tokio::join!(call, async {
            let mut text = Vec::new();
            while let Some(bytes) = receiver.recv().await {
                text.extend(bytes);
            }
            String::from_utf8(text).unwrap()
        });
        assert_eq!(progress.unwrap().status, Status::Ok);
        let expected: String = (1..=200).map(|number| format!("{number}\n")).collect();
        assert_eq!(text, expected);
    });
}

#[test]
fn a_snapshot_is_taken_after_quick_commands() {
    run(async {
        let shell = Shell::bash().await;
        for _ in 0..20 {
            shell.check("A=1", 0, "").await;
        }
        let ended = Instant::now();
        let until = ended + Duration::from_secs(60);
        while shell.session.saved_at().is_none_or(|at| at < ended) {
            assert!(Instant::now() < until, "nothing was saved");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}

#[test]
fn a_script_that_broke_off_its_line_tells_its_end() {
    run(async {
        let shell = Shell::bash().await;
        for _ in 0..20 {
            shell.check("true", 0, "").await;
            // What prints the mark in the same line is never reached.
            shell.check("kill -INT $$; echo on", 130, "").await;
            shell.check("echo $?", 0, "130\n").await;
            shell.check("return 3; echo on", 3, "").await;
        }
    });
}

#[test]
fn a_longer_command_ends_after_quick_ones() {
    run(async {
        let shell = Shell::bash().await;
        for round in 0..100 {
            for _ in 0..round % 7 {
                shell.check("true", 0, "").await;
            }
            shell.check("(sleep 0.001; exit 7)", 7, "").await;
        }
    });
}
