//! A disk that is really full: a small file system in memory that only the server sees.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::Server;
use crate::harness::{program, skip};

/// A command in a namespace of its own where `place` holds two megabytes.
fn with_disk(place: &Path) -> Command {
    let mut command = Command::new("unshare");
    let script = "mount -t tmpfs -o size=2m tmpfs \"$0\" && exec \"$@\"";
    command
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
        .arg(place);
    command
}

/// Whether this machine lets anybody mount a file system for themselves.
fn can_mount(place: &Path) -> bool {
    let tried = with_disk(place)
        .arg("true")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    tried.is_ok_and(|status| status.success())
}

fn draft() -> Value {
    json!({"content_type": "story", "title": "a", "body": "b"})
}

#[test]
fn on_a_full_disk_nothing_is_written_and_everything_read() {
    let dir = tempfile::tempdir().unwrap();
    if !can_mount(dir.path()) {
        return skip("no file system of one's own can be mounted");
    }
    let mut start = with_disk(dir.path());
    start
        .arg(program())
        .args(["serve", "--db"])
        .arg(dir.path().join("site.db"))
        .env("XDG_RUNTIME_DIR", dir.path());
    let server = Server::run(start, dir, &[]);
    let mut place = PathBuf::from(format!("/proc/{}/root", server.pid()));
    place.extend(server.dir.path().components().skip(1));
    let written = || server.answer("create_draft_content", &draft(), &[]);
    assert_eq!(written().status, 200);
    assert_eq!(server.get("/readyz").status, 200);
    fill(&place.join("ballast"));
    // What is left of the last page of the journals is used up first.
    let refused = (0..200)
        .map(|_| written())
        .find(|answer| answer.status == 503);
    let refused = refused.expect("a full disk was never told");
    assert_eq!(refused.json()["error_code"], "audit_unavailable");
    assert_eq!(refused.header("retry-after").as_deref(), Some("1"));
    let profile = server.call("get_npc_profile", &json!({"npc_id": "ancestor_yan"}));
    assert_eq!(profile["success"], true);
    assert_eq!(server.get("/readyz").status, 503);
    assert_eq!(server.get("/healthz").status, 200);
    let drafts = drafts(&place);
    std::fs::remove_file(place.join("ballast")).unwrap();
    assert_eq!(written().status, 200);
    assert_eq!(server.get("/readyz").status, 200);
    assert_eq!(self::drafts(&place), drafts + 1);
    // A record that found no space any more has left its intent.
    let copy = copied(&place);
    let records = super::records(copy.path());
    let done = |record: &&Value| {
        record["tool_name"] == "create_draft_content" && record["status"] == "success"
    };
    let done = records.iter().filter(done).count() as u64;
    let intents = super::count(
        &copy.path().join("ledger.db"),
        "SELECT count(*) FROM intents",
    );
    assert!(
        (done..=done + intents).contains(&(drafts + 1)),
        "{done} {intents} {drafts}"
    );
}

/// Writes until there is no space.
fn fill(path: &Path) {
    use std::io::Write;
    let mut file = std::fs::File::create(path).unwrap();
    while file.write_all(&[1; 512]).is_ok() {}
}

/// Copies the databases out of the namespace: SQLite would look for their path outside of it.
fn copied(place: &Path) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for name in ["site.db", "site.db-wal", "ledger.db", "ledger.db-wal"] {
        std::fs::copy(place.join(name), dir.path().join(name)).unwrap();
    }
    dir
}

fn drafts(place: &Path) -> u64 {
    super::drafts(copied(place).path())
}
