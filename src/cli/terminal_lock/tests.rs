use std::thread;

use tokio::sync::mpsc::error::TrySendError;

use karyi_vault::redact::Redactor;
use karyi_vault::session::Secrets;

use super::*;

/// Events on the terminal, in order.
type Log = Arc<Mutex<Vec<&'static str>>>;

fn note(log: &Log, what: &'static str) {
    log.lock().unwrap().push(what);
}

/// Returns a lock, its report's channel with this many events, and the sender.
fn told(
    count: usize,
) -> (
    TerminalLock,
    mpsc::Sender<ReportEvent>,
    mpsc::Receiver<ReportEvent>,
) {
    let terminal_lock = TerminalLock::default();
    let (sender, receiver) = mpsc::channel(8);
    terminal_lock.attach_report(&sender);
    for _ in 0..count {
        tell(&sender);
    }
    (terminal_lock, sender, receiver)
}

fn tell(sender: &mpsc::Sender<ReportEvent>) {
    let event = Redactor::new(&Secrets::default()).seal(Event::Tick);
    let sent = sender.try_send(event);
    assert!(!matches!(sent, Err(TrySendError::Full(_))), "no room");
}

/// Waits for the terminal in a thread, which records when it has it.
fn ask(terminal_lock: &TerminalLock, cancel: &Cancel, log: &Log) -> thread::JoinHandle<bool> {
    let (asked, cancel, log) = (terminal_lock.clone(), cancel.clone(), Arc::clone(log));
    let asking = thread::spawn(move || {
        let held = asked.lock_for_question(&cancel);
        let is_held = held.is_some();
        note(&log, "question");
        drop(held);
        is_held
    });
    while terminal_lock.shared.lock().events_before_question.is_none() && !asking.is_finished() {
        thread::yield_now();
    }
    asking
}

fn write(terminal_lock: &TerminalLock, events: &mut mpsc::Receiver<ReportEvent>, log: &Log) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let next = terminal_lock.next(events, |_| note(log, "event"));
    assert_eq!(runtime.unwrap().block_on(next), Some(()));
}

#[test]
fn a_question_comes_behind_what_was_told_before_it_and_ahead_of_the_rest() {
    let (terminal_lock, sender, mut events) = told(3);
    let log = Log::default();
    let asking = ask(&terminal_lock, &Cancel::default(), &log);
    assert!(!terminal_lock.is_free(), "a question waits");
    tell(&sender);
    tell(&sender);
    for _ in 0..5 {
        write(&terminal_lock, &mut events, &log);
    }
    assert!(asking.join().unwrap());
    let log = log.lock().unwrap();
    assert_eq!(
        *log,
        ["event", "event", "event", "question", "event", "event"]
    );
    assert!(terminal_lock.is_free());
}

#[test]
fn a_question_does_not_wait_for_a_report_that_is_told_nothing_or_is_gone() {
    let (terminal_lock, _sender, _events) = told(0);
    assert!(
        terminal_lock
            .lock_for_question(&Cancel::default())
            .is_some()
    );
    let (terminal_lock, _sender, events) = told(2);
    drop(events);
    assert!(
        terminal_lock
            .lock_for_question(&Cancel::default())
            .is_some()
    );
    let (terminal_lock, sender, _events) = told(2);
    drop(sender);
    assert!(
        terminal_lock
            .lock_for_question(&Cancel::default())
            .is_some()
    );
    assert!(
        TerminalLock::default()
            .lock_for_question(&Cancel::default())
            .is_some()
    );
}

#[test]
fn a_question_that_waits_for_a_report_nobody_reads_ends_with_the_run() {
    let (terminal_lock, _sender, mut events) = told(1);
    let (cancel, log) = (Cancel::default(), Log::default());
    let asking = ask(&terminal_lock, &cancel, &log);
    cancel.cancel();
    assert!(!asking.join().unwrap());
    write(&terminal_lock, &mut events, &log);
    assert_eq!(*log.lock().unwrap(), ["question", "event"]);
}

#[test]
fn questions_take_the_floor_one_after_the_other() {
    let (terminal_lock, _sender, _events) = told(0);
    let first = terminal_lock.lock_for_question(&Cancel::default()).unwrap();
    assert!(!terminal_lock.is_free());
    let cancel = Cancel::default();
    cancel.cancel();
    assert!(
        terminal_lock.lock_for_question(&cancel).is_none(),
        "the run is to end"
    );
    let log = Log::default();
    let (second, told) = (terminal_lock.clone(), Arc::clone(&log));
    let second = thread::spawn(move || {
        let held = second.lock_for_question(&Cancel::default());
        note(&told, "second");
        held.is_some()
    });
    note(&log, "first");
    drop(first);
    assert!(second.join().unwrap());
    assert_eq!(*log.lock().unwrap(), ["first", "second"]);
}

/// The writer may wait for a reader; others must not wait for the writer.
#[test]
fn whoever_looks_while_the_report_writes_does_not_wait() {
    let (terminal_lock, _sender, mut events) = told(1);
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let next = terminal_lock.next(&mut events, |_| terminal_lock.is_free());
    assert_eq!(runtime.unwrap().block_on(next), Some(false));
    assert!(terminal_lock.is_free());
}

#[test]
fn a_question_waits_until_no_keys_are_read_for_commands() {
    let (terminal_lock, _sender, _events) = told(0);
    let log = Log::default();
    let keys = terminal_lock.lock_for_keys().unwrap();
    assert!(keys.goes_on());
    let asking = ask(&terminal_lock, &Cancel::default(), &log);
    assert!(!keys.goes_on() && terminal_lock.lock_for_keys().is_none());
    note(&log, "keys");
    drop(keys);
    assert!(asking.join().unwrap());
    assert_eq!(*log.lock().unwrap(), ["keys", "question"]);
    assert!(terminal_lock.lock_for_keys().is_some());
}
