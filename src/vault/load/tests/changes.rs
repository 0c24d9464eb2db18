//! A session that reads the store while somebody changes it, or after that was broken off.

use std::sync::mpsc;

use super::*;

#[test]
fn a_change_that_broke_off_ends_when_the_store_has_answered() {
    let session = Session::new(Duration::MAX);
    let (store, secrets) = (&session.store, &session.secrets);
    store.keep("K", VALUE);
    session.list("K", 3);
    store.is_away.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        secrets.refresh(Need::Listed);
    }
    // What hung may still be done; and nobody is asked more than once.
    assert_eq!((store.asked(), session.generation()), (1, 3));
    assert_eq!(*session.opened.lock().unwrap(), [Attended::Yes]);
    store.is_away.store(false, Ordering::SeqCst);
    for _ in 0..3 {
        secrets.refresh(Need::Used);
    }
    assert!(session.masks(VALUE));
    assert_eq!((store.asked(), session.generation()), (2, 4));
}

#[test]
fn while_a_store_is_changed_it_is_read_at_each_look() {
    let session = Session::new(Duration::MAX);
    session.store.keep("K", VALUE);
    session.list("K", 3);
    let changing = Index::lock(session.dir.path()).unwrap();
    for looks in 1..=3 {
        session.secrets.refresh(Need::Listed);
        assert_eq!((session.store.asked(), session.generation()), (looks, 3));
        assert!(session.secrets.is_behind());
    }
    drop(changing);
    for _ in 0..3 {
        session.secrets.refresh(Need::Listed);
    }
    assert_eq!((session.store.asked(), session.generation()), (4, 4));
}

/// Another program changes K, and nothing of the index but its generation: after the session has read the value.
fn change_value(session: &Session, value: &'static str) -> impl FnOnce() + Send + use<> {
    let (store, path) = (Arc::clone(&session.store), session.dir.path().to_owned());
    move || {
        let mut locked = Index::lock(&path).unwrap();
        let index = locked.index().clone();
        let change = || {
            store.keep("K", value);
            Ok(())
        };
        locked.around(index.clone(), index, change).unwrap();
    }
}

#[test]
fn a_change_that_ends_while_the_store_is_read_is_seen() {
    let session = Session::new(Duration::MAX);
    session.store.keep("K", VALUE);
    session.list("K", 2);
    let (begin, has_begun) = mpsc::channel();
    let (read, was_read) = mpsc::channel();
    let (end, has_ended) = mpsc::channel();
    let meanwhile = move || {
        read.send(()).unwrap();
        has_ended.recv().unwrap();
    };
    *session.store.meanwhile.lock().unwrap() = Some(Box::new(meanwhile));
    let (store, path) = (Arc::clone(&session.store), session.dir.path().to_owned());
    let other = thread::spawn(move || {
        let mut locked = Index::lock(&path).unwrap();
        let index = locked.index().clone();
        let change = || {
            begin.send(()).unwrap();
            was_read.recv().unwrap();
            store.keep("K", "the-value-of-now");
            Ok(())
        };
        locked.around(index.clone(), index, change).unwrap();
        drop(locked);
        end.send(()).unwrap();
    });
    has_begun.recv().unwrap();
    session.secrets.refresh(Need::Listed);
    other.join().unwrap();
    // The generation is one more than the session read, as if that had been broken off and settled.
    assert!(!session.masks("the-value-of-now") && session.secrets.is_behind());
    for _ in 0..3 {
        session.secrets.refresh(Need::Listed);
    }
    assert!(session.masks("the-value-of-now") && !session.secrets.is_behind());
    assert_eq!((session.store.asked(), session.generation()), (2, 4));
}

#[test]
fn what_changes_after_a_change_that_broke_off_is_seen() {
    let session = Session::new(Duration::MAX);
    session.store.keep("K", VALUE);
    session.list("K", 3);
    let meanwhile = change_value(&session, "the-value-of-now");
    *session.store.meanwhile.lock().unwrap() = Some(Box::new(meanwhile));
    for _ in 0..3 {
        session.secrets.refresh(Need::Listed);
    }
    assert!(session.masks("the-value-of-now"));
    assert_eq!((session.store.asked(), session.generation()), (2, 6));
}

#[test]
fn what_somebody_else_settles_meanwhile_is_read_once() {
    let session = Session::new(Duration::MAX);
    session.store.keep("K", VALUE);
    session.list("K", 3);
    let path = session.dir.path().to_owned();
    let settle = move || assert!(Index::settle(&path, 3).unwrap().is_some());
    *session.store.meanwhile.lock().unwrap() = Some(Box::new(settle));
    for _ in 0..3 {
        session.secrets.refresh(Need::Listed);
    }
    assert_eq!((session.store.asked(), session.generation()), (1, 4));
}

#[test]
fn where_nobody_knows_whether_a_change_broke_off_the_store_is_read_at_each_look() {
    let session = Session::new(Duration::MAX);
    session.store.keep("K", VALUE);
    session.list("K", 3);
    let lock = session.dir.path().join(FILE_NAME).with_extension("lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    for looks in 1..=3 {
        session.secrets.refresh(Need::Listed);
        assert_eq!((session.store.asked(), session.generation()), (looks, 3));
    }
}

#[test]
fn nobody_is_asked_for_the_beginning_and_the_end_of_a_change() {
    let session = Session::new(Duration::MAX);
    session.store.keep("K", VALUE);
    session.list("K", 2);
    session.store.is_away.store(true, Ordering::SeqCst);
    for generation in 3..=6 {
        session.list("K", generation);
        session.secrets.refresh(Need::Listed);
        assert_eq!(session.failure(), Some(ErrorCode::KeyringLocked));
    }
    let (yes, no) = (Attended::Yes, Attended::No);
    let asked = [yes, no];
    // Each store is opened once; the looks were attended, not, attended, not.
    assert_eq!(*session.opened.lock().unwrap(), asked);
    assert_eq!(session.store.asked(), 4);
}
