//! A store that lets whoever asks wait, or is locked meanwhile.

use super::*;

#[test]
fn a_store_that_hangs_makes_nobody_wait_twice() {
    let session = Session::new(Duration::ZERO);
    let (store, secrets) = (&session.store, &session.secrets);
    store.keep("K", VALUE);
    session.list("K", 2);
    store.hangs.store(true, Ordering::SeqCst);
    for need in [Need::Listed, Need::Used, Need::Listed, Need::Used] {
        secrets.refresh(need);
        assert_eq!(session.failure(), Some(ErrorCode::KeyringTimeout));
        let lack = secrets.lack_of(&["K".to_owned()]).unwrap();
        assert_eq!(lack.error.code, ErrorCode::KeyringTimeout);
    }
    assert_eq!((store.asked(), secrets.is_behind()), (1, false));
    // Somebody changed what is kept, so it may answer: once more, and without the user.
    store.keep("OTHER", "another-one-77");
    session.list("OTHER", 4);
    for need in [Need::Used, Need::Listed, Need::Used] {
        secrets.refresh(need);
    }
    assert_eq!(store.asked(), 2);
    assert_eq!(
        *session.opened.lock().unwrap(),
        [Attended::Yes, Attended::No]
    );
    // Somebody in the background finds out that it answers, and the next look reads it.
    store.hangs.store(false, Ordering::SeqCst);
    while !secrets.is_behind() {
        thread::yield_now();
    }
    secrets.refresh(Need::Listed);
    assert_eq!((session.failure(), store.asked()), (None, 3));
    assert!(session.masks(VALUE) && !secrets.is_behind());
    // The call that the user waited for may hang still.
    let opened = [Attended::Yes, Attended::No, Attended::Yes];
    assert_eq!(*session.opened.lock().unwrap(), opened);
}

#[test]
fn a_store_that_hung_and_is_locked_is_told_of_as_that() {
    let session = Session::new(Duration::ZERO);
    let (store, secrets) = (&session.store, &session.secrets);
    session.list("K", 2);
    store.hangs.store(true, Ordering::SeqCst);
    secrets.refresh(Need::Listed);
    store.is_away.store(true, Ordering::SeqCst);
    store.hangs.store(false, Ordering::SeqCst);
    while !secrets.is_behind() {
        thread::yield_now();
    }
    secrets.refresh(Need::Listed);
    assert_eq!(session.failure(), Some(ErrorCode::KeyringLocked));
    assert_eq!(
        *session.opened.lock().unwrap(),
        [Attended::Yes, Attended::No]
    );
}

#[test]
fn a_store_that_hung_and_was_locked_is_another_one_when_it_is_open() {
    let session = Session::new(Duration::ZERO);
    let (store, secrets) = (&session.store, &session.secrets);
    store.keep("K", VALUE);
    session.list("K", 2);
    store.hangs.store(true, Ordering::SeqCst);
    secrets.refresh(Need::Listed);
    store.is_away.store(true, Ordering::SeqCst);
    store.hangs.store(false, Ordering::SeqCst);
    session.wait_for_an_answer();
    secrets.refresh(Need::Listed);
    assert_eq!(session.failure(), Some(ErrorCode::KeyringLocked));
    store.is_away.store(false, Ordering::SeqCst);
    secrets.refresh(Need::Listed);
    assert_eq!(session.failure(), None);
    let (yes, no) = (Attended::Yes, Attended::No);
    assert_eq!(*session.opened.lock().unwrap(), [yes, no, yes]);
}

/// The store that asks the user hangs still, and the one that asks nobody can be read.
#[test]
fn what_changed_after_a_store_was_given_up_is_asked_of_another_one() {
    let (hung, open) = (Arc::new(Shared::default()), Arc::new(Shared::default()));
    hung.hangs.store(true, Ordering::SeqCst);
    open.is_away.store(true, Ordering::SeqCst);
    open.keep("K", VALUE);
    let session = Session::new(Duration::MAX);
    session.list("K", 2);
    let stores = (Arc::clone(&hung), Arc::clone(&open));
    let opener: OpenChosen = Box::new(move |opening| {
        let store = match opening.attended {
            Attended::Yes => &stores.0,
            Attended::No => &stores.1,
        };
        Ok(Arc::clone(store) as Arc<dyn Store>)
    });
    let secrets = Secrets::default();
    let path = session.dir.path().to_owned();
    let loader = Arc::new(Loader::choosing(path, opener).with_pause(Duration::MAX));
    secrets.attach(Arc::clone(&loader) as Arc<dyn Source>);
    secrets.refresh(Need::Listed);
    while loader.retry.hangs() {
        thread::yield_now();
    }
    // It is locked, and whoever unlocks it to keep something changes the index, too.
    secrets.refresh(Need::Listed);
    open.is_away.store(false, Ordering::SeqCst);
    session.list("K", 4);
    secrets.refresh(Need::Listed);
    let masked = Redactor::new(&secrets).redact_str(VALUE).into_owned();
    assert_eq!((masked.as_str(), hung.asked()), ("$KARYI{K}", 1));
}

#[test]
fn a_store_that_answers_and_is_slow_is_left_alone_for_longer() {
    for (pause, looks) in [(Duration::MAX, 1), (Duration::ZERO, 4)] {
        let session = Session::new(pause);
        session.store.keep("K", VALUE);
        session.list("K", 2);
        session.store.is_slow.store(true, Ordering::SeqCst);
        for _ in 0..4 {
            session.secrets.refresh(Need::Listed);
            session.wait_for_an_answer();
        }
        assert_eq!(session.failure(), Some(ErrorCode::KeyringTimeout));
        assert_eq!(
            (session.store.asked(), session.secrets.is_behind()),
            (looks, pause.is_zero())
        );
        session.store.is_slow.store(false, Ordering::SeqCst);
        session.secrets.refresh(Need::Listed);
        assert_eq!(session.masks(VALUE), pause.is_zero());
        // Whoever needs a value waits for it.
        session.secrets.refresh(Need::Used);
        assert!(session.masks(VALUE) && !session.secrets.is_behind());
    }
}
