//! What a killed run left, as undo tells it.

use serde_json::json;

use crate::harness::Karyi;

use super::{again, parsed, place, read, run, state, text};

/// Leaves a record of a change of `a` and `b` behind, of which `a` has taken its place.
fn leave_half_done(karyi: &Karyi) {
    let hash = |text: &str| blake3::hash(text.as_bytes()).to_hex().to_string();
    let (mut steps, mut decided, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for (name, temporary) in [("a", ".karyi-t-0.tmp"), ("b", ".karyi-t-1.tmp")] {
        let path = place(karyi, name);
        let version =
            |text: &str| json!({"content": hash(text), "size": 3, "mode": 0o644, "is_kept": false});
        steps.push(json!({"path": path, "temporary": temporary, "backup": null}));
        decided.push(json!({"old": hash("old"), "new": hash("new")}));
        files.push(json!({"path": path, "old": version("old"), "new": version("new")}));
    }
    std::fs::write(karyi.work().join("a"), "new").unwrap();
    std::fs::write(karyi.work().join("b"), "old").unwrap();
    std::fs::write(karyi.work().join(".karyi-t-1.tmp"), "new").unwrap();
    let entry = json!({"id": "t", "time_ms": 1, "session": "s", "call": "c", "tool": "edit", "files": files});
    let plan = json!({"steps": steps, "made": []});
    let decision = json!({"steps": decided, "entry": entry});
    let record = state(karyi).join("transactions/t.json");
    std::fs::write(record, format!("{plan}\n{decision}\n")).unwrap();
}

#[test]
fn undo_tells_what_a_killed_run_left_also_when_it_is_refused() {
    let karyi = Karyi::new().file("keep", "1");
    let script =
        "<tools><edit><file src=\"keep\"><find>1</find><replace>2</replace></file></edit></tools>";
    text(&run(&karyi, script), 0);
    let recovered = |change: &str| json!([{"path": place(&karyi, "a"), "change": change}, {"path": place(&karyi, "b"), "change": change}]);

    leave_half_done(&karyi);
    // It is foreseen that the half-done change is the last one then, of which nothing was kept.
    let dry = parsed(&again(&karyi, &["undo", "--dry-run", "--json"]), 1);
    assert_eq!(dry["recovered"][1]["change"], "waiting");
    assert_eq!(dry["code"], "undo_unavailable");
    let told = dry["message"].as_str().unwrap();
    assert!(told.starts_with("change 2 cannot be undone"), "{told}");
    assert_eq!(read(&karyi, "b").as_deref(), Some("old"));

    let refused = parsed(&again(&karyi, &["undo", "99", "--json"]), 2);
    assert_eq!(refused["code"], "not_found");
    assert_eq!(refused["recovered"], recovered("completed"));
    assert_eq!(read(&karyi, "b").as_deref(), Some("new"));

    leave_half_done(&karyi);
    let away = karyi.work().with_file_name("away");
    let (work, path) = (karyi.work(), place(&karyi, "b"));
    std::fs::create_dir(&away).unwrap();
    std::fs::rename(work.join(".karyi-t-1.tmp"), away.join("t")).unwrap();
    std::fs::write(work.join(".karyi-t-1.tmp"), "evil").unwrap();
    let told = again(&karyi, &["undo", "99"]);
    text(&told, 2);
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    let expected = format!("karyi: {path}: half changed by a killed karyi: taken_back\n");
    assert!(told.contains(&expected), "{told}");
    let theirs = place(&karyi, ".karyi-t-1.tmp");
    let expected =
        format!("karyi: warning: {theirs}: half changed by a killed karyi: left_alone: ");
    assert!(told.contains(&expected), "{told}");
}
