//! Reading a store during a change, or after an interrupted one.

use std::sync::mpsc;

use super::*;

#[test]
fn a_change_that_broke_off_ends_when_the_store_has_answered() {
    let session = Session::new();
    let (store, secrets) = (&session.store, &session.secrets);
    store.keep("K", VALUE);
    session.list("K", 3);
    store.is_away.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        secrets.refresh(Need::Listed);
    }
    // The user is asked only once.
    assert_eq!((store.asked(), session.generation()), (1, 3));
    store.is_away.store(false, Ordering::SeqCst);
    secrets.refresh(Need::Used);
    assert!(session.masks(VALUE));
    session.wait_for_a_whole_index();
}

#[test]
fn a_store_under_change_is_read_at_each_refresh() {
    let session = Session::new();
    session.store.keep("K", VALUE);
    session.list("K", 3);
    let changing = Index::lock(session.dir.path()).unwrap();
    for looks in 1..=3 {
        session.secrets.refresh(Need::Listed);
        assert_eq!((session.store.asked(), session.generation()), (looks, 3));
        assert!(session.secrets.is_behind());
    }
    drop(changing);
    session.wait_for_a_whole_index();
    let asked = session.store.asked();
    session.secrets.refresh(Need::Listed);
    session.secrets.refresh(Need::Listed);
    assert_eq!(session.store.asked(), asked);
}

#[test]
fn a_change_that_ends_while_the_store_is_read_is_seen() {
    let session = Session::new();
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
        locked.change_store(index, change).unwrap();
        end.send(()).unwrap();
    });
    has_begun.recv().unwrap();
    session.secrets.refresh(Need::Listed);
    other.join().unwrap();
    assert!(!session.masks("the-value-of-now") && session.secrets.is_behind());
    session.secrets.refresh(Need::Listed);
    assert!(session.masks("the-value-of-now"));
    assert_eq!(session.generation(), 4);
}
