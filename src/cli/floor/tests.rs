use std::thread;

use tokio::sync::mpsc::error::TrySendError;

use crate::vault::redact::Redactor;
use crate::vault::session::Secrets;

use super::*;

/// What happened on the terminal, in order.
type Log = Arc<Mutex<Vec<&'static str>>>;

fn note(log: &Log, what: &'static str) {
    log.lock().unwrap().push(what);
}

/// A floor, its report's channel with this many events in it, and the way to tell more.
fn told(count: usize) -> (Floor, mpsc::Sender<Told>, mpsc::Receiver<Told>) {
    let floor = Floor::default();
    let (sender, receiver) = mpsc::channel(8);
    floor.hear(&sender);
    for _ in 0..count {
        tell(&sender);
    }
    (floor, sender, receiver)
}

fn tell(sender: &mpsc::Sender<Told>) {
    let event = Redactor::new(&Secrets::default()).seal(Event::Tick);
    let sent = sender.try_send(event);
    assert!(!matches!(sent, Err(TrySendError::Full(_))), "no room");
}

/// Lets a question wait for the floor; its thread notes when it stands there.
fn ask(floor: &Floor, cancel: &Cancel, log: &Log) -> thread::JoinHandle<bool> {
    let (asked, cancel, log) = (floor.clone(), cancel.clone(), Arc::clone(log));
    let asking = thread::spawn(move || {
        let held = asked.take(&cancel);
        let is_held = held.is_some();
        note(&log, "question");
        drop(held);
        is_held
    });
    while floor.shared.lock().wanted.is_none() && !asking.is_finished() {
        thread::yield_now();
    }
    asking
}

fn write(floor: &Floor, events: &mut mpsc::Receiver<Told>, log: &Log) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let next = floor.next(events, |_| note(log, "event"));
    assert_eq!(runtime.unwrap().block_on(next), Some(()));
}

#[test]
fn a_question_comes_behind_what_was_told_before_it_and_ahead_of_the_rest() {
    let (floor, sender, mut events) = told(3);
    let log = Log::default();
    let asking = ask(&floor, &Cancel::default(), &log);
    assert!(!floor.is_free(), "a question waits");
    tell(&sender);
    tell(&sender);
    for _ in 0..5 {
        write(&floor, &mut events, &log);
    }
    assert!(asking.join().unwrap());
    let log = log.lock().unwrap();
    assert_eq!(
        *log,
        ["event", "event", "event", "question", "event", "event"]
    );
    assert!(floor.is_free());
}

#[test]
fn a_question_does_not_wait_for_a_report_that_is_told_nothing_or_is_gone() {
    let (floor, _sender, _events) = told(0);
    assert!(floor.take(&Cancel::default()).is_some());
    let (floor, _sender, events) = told(2);
    drop(events);
    assert!(floor.take(&Cancel::default()).is_some());
    let (floor, sender, _events) = told(2);
    drop(sender);
    assert!(floor.take(&Cancel::default()).is_some());
    assert!(Floor::default().take(&Cancel::default()).is_some());
}

#[test]
fn a_question_that_waits_for_a_report_nobody_reads_ends_with_the_run() {
    let (floor, _sender, mut events) = told(1);
    let (cancel, log) = (Cancel::default(), Log::default());
    let asking = ask(&floor, &cancel, &log);
    cancel.cancel();
    assert!(!asking.join().unwrap());
    write(&floor, &mut events, &log);
    assert_eq!(*log.lock().unwrap(), ["question", "event"]);
}

#[test]
fn questions_take_the_floor_one_after_the_other() {
    let (floor, _sender, _events) = told(0);
    let first = floor.take(&Cancel::default()).unwrap();
    assert!(!floor.is_free());
    let cancel = Cancel::default();
    cancel.cancel();
    assert!(floor.take(&cancel).is_none(), "the run is to end");
    let log = Log::default();
    let (second, told) = (floor.clone(), Arc::clone(&log));
    let second = thread::spawn(move || {
        let held = second.take(&Cancel::default());
        note(&told, "second");
        held.is_some()
    });
    note(&log, "first");
    drop(first);
    assert!(second.join().unwrap());
    assert_eq!(*log.lock().unwrap(), ["first", "second"]);
}

/// Who writes may wait for a reader, and nobody waits for that.
#[test]
fn whoever_looks_while_the_report_writes_does_not_wait() {
    let (floor, _sender, mut events) = told(1);
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let next = floor.next(&mut events, |_| floor.is_free());
    assert_eq!(runtime.unwrap().block_on(next), Some(false));
    assert!(floor.is_free());
}
