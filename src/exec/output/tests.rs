//! Output of one job in results and for a watcher.

use super::*;
use karyi_core::secret::{SecretName, SecretValue};
use karyi_vault::session::Secrets;

fn output(secrets: &Secrets) -> OutputPipeline {
    OutputPipeline::new(&Redactor::new(secrets), Cap::default(), None, None)
}

fn learn(secrets: &Secrets) {
    let name = SecretName::parse("token").unwrap();
    let value = SecretValue::new("huntEr22".into());
    secrets.insert(name, value).unwrap();
}

#[test]
fn a_value_known_later_is_masked_before_it_is_overwritten() {
    let secrets = Secrets::default();
    let output = output(&secrets);
    let mut sink = output.sink(None);
    sink(b"before\n");
    learn(&secrets);
    sink(b"huntEr22\rX\n");
    let (view, _) = output.detach(Ending::Whole);
    assert!(
        view.get().text.starts_with("before\nX"),
        "{:?}",
        view.get().text
    );
    assert!(
        !view.get().text.contains("untEr22"),
        "{:?}",
        view.get().text
    );
}

#[test]
fn the_start_of_a_value_is_masked_in_an_unfinished_line() {
    let secrets = Secrets::default();
    learn(&secrets);
    let output = output(&secrets);
    output.sink(None)(b"is hun\x1b[0mtEr2");
    let line = output.last_line().unwrap();
    assert!(line.starts_with("is ") && !line.contains("hunt"), "{line}");
}

/// Returns the longest part of `value` in a text.
fn longest_part(text: &str, value: &str) -> usize {
    let ends = (0..value.len()).map(|start| {
        let lengths = (1..=value.len() - start).rev();
        let found = |length: &usize| text.contains(&value[start..start + length]);
        lengths.into_iter().find(found).unwrap_or(0)
    });
    ends.max().unwrap_or(0)
}

#[test]
fn parts_that_overwrite_each_other_show_no_more_than_parts() {
    let value = "S3cr3t-T0ken/Val+ue_AbCdEf0123456789xyz";
    let secrets = Secrets::default();
    let name = SecretName::parse("token").unwrap();
    secrets
        .insert(name, SecretValue::new(value.into()))
        .unwrap();
    for (first, second) in (1..=14).flat_map(|n| (1..=14).map(move |m| (n, m))) {
        let (rest, shown) = (&value[first..], &value[..first]);
        for text in [
            format!("{shown}\r{}\n", &value[..second]),
            format!("{shown}\r{}\n", &rest[..second]),
            format!("{}{}\r{shown}\n", " ".repeat(first), &rest[..second]),
            format!("{}{}\r{shown}", " ".repeat(first), &rest[..second]),
        ] {
            let output = output(&secrets);
            output.sink(None)(text.as_bytes());
            let (view, _) = output.detach(Ending::Whole);
            let seen = longest_part(&view.get().text, value);
            assert!(seen <= 11, "{text:?} {:?}", view.get().text);
        }
    }
}

#[test]
fn the_start_of_a_value_is_masked_when_a_signal_ended_it() {
    let secrets = Secrets::default();
    learn(&secrets);
    for (ending, expected) in [
        (Ending::Whole, "is huntEr2"),
        (Ending::Broken, "is [KARYI:token:part]"),
    ] {
        let output = output(&secrets);
        output.sink(None)(b"is huntEr2");
        assert_eq!(output.detach(ending).0.get().text, expected);
    }
}

/// A program never sees the start of a value, in whatever chunks the value arrives.
#[test]
fn a_program_sees_no_start_of_a_value_when_output_pauses() {
    let secrets = Secrets::default();
    learn(&secrets);
    let text = |event: Option<Redacted<Event>>| match event.map(Redacted::into_inner) {
        Some(Event::Output { text, .. }) => text.into_string(),
        _ => String::new(),
    };
    let value = "huntEr22 goes on";
    for at in 1..8 {
        let output = output(&secrets);
        let (index, id) = (0, Redacted::default());
        let _ = output.attach(OutputOwner { index, id }, Some(WatcherStyle::Plain));
        let (first, second) = value.split_at(at);
        output.sink(None)(format!("the {first}").as_bytes());
        let _ = output.show_idle(false);
        let mut shown = text(output.show_idle(false));
        assert!(shown.len() < "the hunt".len(), "{at}: {shown:?}");
        output.sink(None)(second.as_bytes());
        let (_, rest) = output.detach(Ending::Whole);
        shown.push_str(&text(rest));
        assert!(
            shown.ends_with(" goes on") && !shown.contains("hunt"),
            "{at}: {shown:?}"
        );
    }
}

#[test]
fn a_watcher_sees_withheld_output_when_output_pauses() {
    let secrets = Secrets::default();
    learn(&secrets);
    let output = output(&secrets);
    let (index, id) = (0, Redacted::default());
    let _ = output.attach(OutputOwner { index, id }, Some(WatcherStyle::Plain));
    let text = |event: Option<Redacted<Event>>| match event.map(Redacted::into_inner) {
        Some(Event::Output { text, .. }) => text.into_string(),
        _ => String::new(),
    };
    output.sink(None)(b"the hunt\n");
    assert_eq!(text(output.show_idle(true)), "");
    assert_eq!(text(output.show_idle(true)), "the hunt\n");
    assert_eq!(text(output.show_idle(true)), "");
    output.sink(None)(b"Er22 goes on\n");
    let (view, rest) = output.detach(Ending::Whole);
    assert_eq!(text(rest), "[KARYI:token:part] goes on\n");
    assert_eq!(view.get().text, "the [KARYI:token:part] goes on\n");
}

#[test]
fn a_watcher_sees_output_from_before_its_call_was_ready() {
    let output = output(&Secrets::default());
    let (index, id) = (0, Redacted::default());
    assert!(
        output
            .attach(OutputOwner { index, id }, Some(WatcherStyle::Plain))
            .is_none()
    );
    output.sink(None)(b"early\n");
    let (_, event) = output.detach(Ending::Whole);
    assert!(
        matches!(event.as_ref().map(Redacted::get), Some(Event::Output { text, .. }) if text.as_str() == "early\n"),
        "{event:?}"
    );
}
