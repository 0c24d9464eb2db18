//! The executor through the library, with a user who misbehaves.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use karyi::exec::Event;
use karyi::exec::cancel::Cancel;
use karyi::exec::decoder::MessageDecoder;
use karyi::exec::message_runner::{MessageRunner, Pace};
use karyi::outcome::Outcome;
use karyi::secret::SecretValue;
use karyi::syntax::Mode;
use karyi::tool::context::{
    ApprovalRequest, Boxed, Consent, Context, Lifetime, Prompter, Question, Reply,
};
use karyi::tools;
use karyi::vault::session::Secrets;
use tokio::sync::mpsc;

use crate::harness;
use crate::harness::context::{run_context, sessions};

/// A user who answers some questions and breaks on others.
struct Fickle;

impl Prompter for Fickle {
    fn ask<'a>(
        &'a self,
        question: &'a Question,
    ) -> Pin<Box<dyn Future<Output = Reply> + Send + 'a>> {
        Box::pin(async move {
            match question.name.as_str() {
                "BREAK" => panic!("the prompter breaks"),
                "SLOW" => std::future::pending().await,
                _ => Reply::Value(SecretValue::new("a good value".into()), Lifetime::Session),
            }
        })
    }

    fn approve<'a>(&'a self, _: &'a ApprovalRequest) -> Boxed<'a, Consent> {
        Box::pin(async { Consent::Unavailable })
    }
}

/// Makes what calls of that user run in.
pub fn context(dir: &Path) -> Context {
    context_with(dir, &Secrets::default())
}

fn context_with(dir: &Path, secrets: &Secrets) -> Context {
    let sessions = sessions(Path::new("/bin/bash"), dir, secrets);
    harness::context::context(sessions, secrets, Arc::new(Fickle))
}

/// Runs a message; `watch` sees every event and may cancel. Returns the outcomes in document order.
fn run(message: &str, watch: impl Fn(&Event, &Cancel)) -> Vec<Outcome> {
    run_with(&Secrets::default(), message, watch)
}

/// Does so with values that are known.
pub(crate) fn run_with(
    secrets: &Secrets,
    message: &str,
    watch: impl Fn(&Event, &Cancel),
) -> Vec<Outcome> {
    let dir = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (events, mut received) = mpsc::channel(64);
        let cancel = Cancel::default();
        let context = context_with(dir.path(), secrets);
        let run_context = run_context(context, dir.path(), (events, cancel.clone()));
        let registry = Arc::new(tools::registry());
        let decoder = MessageDecoder::new(
            Arc::clone(&registry),
            Arc::new(registry.grammar()),
            Mode::Repair,
        );
        let (sender, chunks) = mpsc::channel(1);
        sender.send(Ok(message.as_bytes().to_vec())).await.unwrap();
        drop(sender);
        let runner = MessageRunner::new(run_context);
        let work = async {
            runner.run_message(decoder, chunks, Pace::Whole).await;
            runner.close().await;
            let (is_interrupted, shell, note) = (false, None, None);
            #[rustfmt::skip]
            let ended = Event::MessageEnded { is_interrupted, shell, note };
            runner.emit(ended).await;
        };
        let mut outcomes = Vec::new();
        let collect = async {
            while let Some(event) = received.recv().await {
                let event = event.into_inner();
                watch(&event, &cancel);
                match event {
                    Event::Finished { index, outcome } => {
                        outcomes.push((index, *outcome.into_inner()))
                    }
                    Event::MessageEnded { .. } => break,
                    _ => {}
                }
            }
        };
        tokio::join!(work, collect);
        outcomes.sort_by_key(|(index, _)| *index);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    })
}

fn told(outcomes: &[Outcome]) -> Vec<(&str, Option<&str>)> {
    let code = |outcome: &Outcome| outcome.error.as_ref().map(|error| error.code.as_str());
    outcomes
        .iter()
        .map(|outcome| (outcome.status.as_str(), code(outcome)))
        .collect()
}

#[test]
fn a_panic_in_one_call_leaves_the_others_alone() {
    let outcomes = run(
        "<tools><get_value key=\"BREAK\" reason=\"r\"/><command>echo fine</command>\
         <get_value key=\"GOOD\" reason=\"r\"/></tools>\n<tools><command>echo $KARYI{GOOD}</command></tools>",
        |_, _| {},
    );
    let expected = [
        ("error", Some("internal_error")),
        ("ok", None),
        ("provided", None),
        ("ok", None),
    ];
    assert_eq!(told(&outcomes), expected);
    let shown = outcomes[3].output.as_ref().unwrap();
    assert_eq!(shown.text, "$KARYI{GOOD}\n");
}

#[test]
fn a_cancelled_run_waits_for_nobody() {
    let outcomes = run(
        "<tools><get_value key=\"SLOW\" reason=\"r\"/><command>sleep 100</command><command>true</command></tools>",
        |event, cancel| {
            if matches!(
                event,
                Event::Started {
                    tool: "command",
                    ..
                }
            ) {
                cancel.cancel();
            }
        },
    );
    let told = told(&outcomes);
    let skipped = ("skipped", Some("cancelled"));
    assert_eq!(told, [skipped, ("killed", Some("cancelled")), skipped]);
}
