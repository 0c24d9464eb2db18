//! The journal over several changes and several openings.

use super::*;

fn entry(id: &str, time_ms: u64, content: &str) -> Entry {
    let version = Version {
        content: content.into(),
        size: 1,
        mode: 0o644,
        owner: None,
        attributes: None,
        is_kept: true,
    };
    Entry {
        id: id.into(),
        time_ms,
        session: "s".into(),
        call: "1".into(),
        tool: "edit".into(),
        files: vec![FileRecord {
            path: Path::new("/f").into(),
            old: Some(version),
            new: None,
            renamed_to: None,
        }],
        ..Entry::default()
    }
}

#[test]
fn entries_are_numbered_once_and_survive_a_cut_line() {
    let temp = tempfile::tempdir().unwrap();
    let open = || Journal::open(temp.path(), None).unwrap();
    assert_eq!(open().entries().unwrap(), []);
    let now = milliseconds(SystemTime::now());
    assert_eq!(open().append(entry("a", now, "")).unwrap(), 1);
    assert_eq!(open().append(entry("b", now, "")).unwrap(), 2);
    assert_eq!(open().append(entry("a", now, "")).unwrap(), 1);
    let mut file = OpenOptions::new()
        .append(true)
        .open(temp.path().join("entries"))
        .unwrap();
    file.write_all(b"{\"number\":3,\"id\":\"cut").unwrap();
    assert_eq!(open().append(entry("c", now, "")).unwrap(), 3);
    let ids: Vec<String> = open()
        .entries()
        .unwrap()
        .into_iter()
        .map(|e| e.id)
        .collect();
    assert_eq!(ids, ["a", "b", "c"]);
}

#[test]
fn an_unwritten_first_entry_is_not_damage() {
    let temp = tempfile::tempdir().unwrap();
    let open = || Journal::open(temp.path(), None).unwrap();
    // The process about to write it was killed, or is writing it.
    std::fs::write(open().entries_lock(), "").unwrap();
    std::fs::write(open().entries_path(), "").unwrap();
    assert_eq!(open().entries_and_damage().unwrap(), (Vec::new(), None));
    let journal = open();
    assert_eq!(journal.append(entry("a", 1, "")).unwrap(), 1);
    assert_eq!(journal.take_damage(), None);
}

#[test]
fn parallel_entries_are_all_recorded() {
    let temp = tempfile::tempdir().unwrap();
    let now = milliseconds(SystemTime::now());
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let path = temp.path();
            scope.spawn(move || {
                let journal = Journal::open(path, None).unwrap();
                for turn in 0..20 {
                    journal
                        .append(entry(&format!("{thread}-{turn}"), now, ""))
                        .unwrap();
                }
            });
        }
    });
    let entries = Journal::open(temp.path(), None).unwrap().entries().unwrap();
    let numbers: Vec<u64> = entries.iter().map(|entry| entry.number).collect();
    assert_eq!(numbers, (1..=160).collect::<Vec<u64>>());
}

/// Adds incompressible contents and returns which of three entries stay within the limits.
fn retained(caps: JournalCaps, now_ms: u64) -> Vec<u64> {
    let temp = tempfile::tempdir().unwrap();
    let journal = Journal::with_caps(temp.path(), None, caps).unwrap();
    journal.taken.store(0, Ordering::Relaxed);
    let mut noise = 1_u64;
    for index in 0..3 {
        let bytes: Vec<u8> = std::iter::repeat_with(|| {
            noise = noise
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (noise >> 56) as u8
        })
        .take(10_000)
        .collect();
        let name = journal.store(&bytes, Durability::Process).unwrap();
        journal
            .append(entry(&index.to_string(), 1000 * index, &name))
            .unwrap();
    }
    for blob in journal.blobs.list() {
        let old = SystemTime::now() - limits::JOURNAL_UNCLAIMED_AGE * 2;
        File::open(blob.path).unwrap().set_modified(old).unwrap();
    }
    let prune = |now| journal.prune(&journal.entries().unwrap(), now);
    prune(UNIX_EPOCH + Duration::from_millis(now_ms)).unwrap();
    // Blobs have real times, so a time long ago only judges entries.
    prune(SystemTime::now()).unwrap_or_default();
    let entries = journal.entries().unwrap();
    for entry in &entries {
        for version in entry.files.iter().filter_map(|file| file.old.as_ref()) {
            assert!(journal.content(version).is_ok());
        }
    }
    assert_eq!(journal.blobs.list().len(), entries.len());
    entries.iter().map(|entry| entry.number).collect()
}

#[test]
fn the_journal_respects_its_limits() {
    let ages = Duration::from_secs(1 << 40);
    let caps = |bytes, entries| JournalCaps {
        bytes,
        age: ages,
        entries,
    };
    assert_eq!(retained(caps(100_000, 10), 3000), [1, 2, 3]);
    assert_eq!(retained(caps(25_000, 10), 3000), [2, 3]);
    assert_eq!(retained(caps(100_000, 1), 3000), [3]);
    // The last change can be undone whatever its size.
    assert_eq!(retained(caps(10, 10), 3000), [3]);
}

#[test]
fn old_entries_are_pruned() {
    let temp = tempfile::tempdir().unwrap();
    let caps = JournalCaps {
        age: Duration::from_secs(10),
        ..JournalCaps::default()
    };
    let journal = Journal::with_caps(temp.path(), None, caps).unwrap();
    journal.taken.store(0, Ordering::Relaxed);
    // The clock was wrong once.
    for time in [1000, 5000, 30, 9000] {
        journal.append(entry(&time.to_string(), time, "")).unwrap();
    }
    let entries = journal.entries().unwrap();
    let now = UNIX_EPOCH + Duration::from_secs(15);
    journal.prune(&entries, now).unwrap();
    let times: Vec<u64> = journal
        .entries()
        .unwrap()
        .iter()
        .map(|e| e.time_ms)
        .collect();
    assert_eq!(times, [5000, 30, 9000]);
}

#[test]
fn a_damaged_line_is_reported_once() {
    let temp = tempfile::tempdir().unwrap();
    let now = milliseconds(SystemTime::now());
    let add = |id: &str| {
        let journal = Journal::open(temp.path(), None).unwrap();
        journal.append(entry(id, now, "")).unwrap();
        journal.take_damage()
    };
    assert_eq!(["a", "b", "c"].map(add), [None, None, None]);
    let list = temp.path().join("entries");
    let text = std::fs::read_to_string(&list).unwrap();
    std::fs::write(&list, text.replace("\"id\":\"b\"", "\"id\":b")).unwrap();
    assert_eq!(["d", "e"].map(add), [Some(Damage::Lines(1)), None]);
}

#[test]
fn only_the_latest_entries_are_read() {
    let temp = tempfile::tempdir().unwrap();
    let journal = Journal::open(temp.path(), None).unwrap();
    let now = milliseconds(SystemTime::now());
    for id in 1..=400 {
        let long = "a".repeat(300);
        journal
            .append(entry(&format!("{long}{id}"), now, ""))
            .unwrap();
    }
    // The damage is farther from the end than one block.
    let list = temp.path().join("entries");
    let text = std::fs::read_to_string(&list).unwrap();
    let broken = text.replacen("\"number\":1,", "\"number\":,", 1);
    assert!(text.len() as u64 > 2 * limits::JOURNAL_TAIL_BYTES);
    std::fs::write(&list, broken).unwrap();
    let numbers = |(entries, damage): (Vec<Entry>, Option<Damage>)| {
        let numbers = entries.iter().map(|entry| entry.number);
        (numbers.collect::<Vec<u64>>(), damage)
    };
    for last in [400, 399, 2] {
        let found = journal.latest(|entry| entry.number == last).unwrap();
        assert_eq!(numbers(found), ((last..=400).collect(), None));
    }
    let all = ((2..=400).collect(), Some(Damage::Lines(1)));
    let found = journal.latest(|entry| entry.number == 1).unwrap();
    assert_eq!(numbers(found), all);
    assert_eq!(numbers(journal.entries_and_damage().unwrap()), all);
}

#[test]
fn numbers_continue_when_the_list_is_emptied_cut_or_removed() {
    let temp = tempfile::tempdir().unwrap();
    let now = milliseconds(SystemTime::now());
    let add = |id: &str| {
        let journal = Journal::open(temp.path(), None).unwrap();
        journal.append(entry(id, now, "")).unwrap()
    };
    let list = temp.path().join("entries");
    assert_eq!(["a", "b", "c", "a"].map(add), [1, 2, 3, 1]);
    std::fs::write(&list, "").unwrap();
    assert_eq!(["d", "e"].map(add), [4, 5]);
    std::fs::remove_file(&list).unwrap();
    assert_eq!(add("f"), 6);
    // Foreign text in the lock file is ignored.
    for text in ["x", "", "18446744073709551615"] {
        std::fs::write(temp.path().join("locks/entries"), text).unwrap();
        let before = add(&format!("before {text}"));
        assert_eq!(add(&format!("after {text}")), before + 1);
    }
}

#[test]
fn the_list_is_scanned_only_when_due() {
    let temp = tempfile::tempdir().unwrap();
    let caps = JournalCaps {
        entries: 3,
        ..JournalCaps::default()
    };
    let now = milliseconds(SystemTime::now());
    let add = |id: &str| {
        let journal = Journal::with_caps(temp.path(), None, caps).unwrap();
        journal.append(entry(id, now, "")).unwrap();
        let pruned = journal.take_pruned().map(|pruned| pruned.changes);
        (journal.entries().unwrap().len(), pruned)
    };
    let counts = ["a", "b", "c", "d", "e"].map(add);
    assert_eq!(counts, [1, 2, 3, 4, 5].map(|count| (count, None)));
    // Another program wrote to it.
    let list = temp.path().join("entries");
    let text = std::fs::read_to_string(&list).unwrap();
    std::fs::write(&list, text + "\n").unwrap();
    assert_eq!(add("f"), (3, Some(3)));
    assert_eq!(add("g"), (4, None));
    // An hour passed.
    let scan_state = temp.path().join("looked");
    let text = std::fs::read_to_string(&scan_state).unwrap();
    let mut known: serde_json::Value = serde_json::from_str(&text).unwrap();
    known["time_ms"] = (now - 4_000_000).into();
    std::fs::write(&scan_state, known.to_string()).unwrap();
    assert_eq!(add("h"), (3, Some(2)));
    // Much was stored.
    known["time_ms"] = now.into();
    known["taken"] = limits::JOURNAL_PRUNE_BYTES.into();
    let journal = Journal::with_caps(temp.path(), None, caps).unwrap();
    known["list"] = serde_json::to_value(journal.list_mark()).unwrap();
    std::fs::write(&scan_state, known.to_string()).unwrap();
    journal.store(&[1; 100], Durability::Process).unwrap();
    journal.append(entry("i", now, "")).unwrap();
    assert_eq!(journal.entries().unwrap().len(), 3);
}

#[test]
fn blobs_of_unfinished_changes_are_not_pruned() {
    let temp = tempfile::tempdir().unwrap();
    let journal = Journal::open(temp.path(), None).unwrap();
    let needed = journal.store(b"needed", Durability::Process).unwrap();
    let other = journal.store(b"of nobody", Durability::Process).unwrap();
    for blob in journal.blobs.list() {
        let old = SystemTime::now() - limits::JOURNAL_UNCLAIMED_AGE * 2;
        File::open(blob.path).unwrap().set_modified(old).unwrap();
    }
    let now = milliseconds(SystemTime::now());
    let decision = serde_json::json!({"steps": [], "entry": entry("t", now, &needed)});
    let record = format!("{{\"steps\":[],\"made\":[]}}\n{decision}\n");
    std::fs::write(journal.transactions().join("t.json"), record).unwrap();
    journal.prune(&[], SystemTime::now()).unwrap();
    let is_there = [needed, other].map(|name| journal.blobs.exists(&name));
    assert_eq!(is_there, [true, false]);
}
