//! Ends every process of a session, however far it went: background jobs, disowned ones, those in
//! a session of their own, those whose parents ended.
//!
//! This program adopts what loses its parent (it is the subreaper), so an escapee is found by the
//! session it is in, by what it descends from, or as a child we have but never started. Children
//! that this program started itself stay in its own session and are left alone.

use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpid, getsid};

use super::process::{self, Process};

/// Session ids of the shells of every session of this program.
static SESSIONS: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// Has this program adopt the processes of its sessions that lose their parent.
pub(super) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_child_subreaper(true);
}

/// Starts a shell with `spawn`, which returns its process id, so that nobody takes it for an
/// escapee before it is known.
pub(super) fn register<T, E>(spawn: impl FnOnce() -> Result<(i32, T), E>) -> Result<T, E> {
    let mut known = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let (pid, value) = spawn()?;
    known.push(pid);
    Ok(value)
}

/// Forgets the shells of a session that has ended.
pub(super) fn unregister(sessions: &[i32]) {
    let mut known = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|id| !sessions.contains(id));
}

/// Sends a signal to everything that still runs of a session; returns how much that is.
pub(super) fn signal_all(sessions: &[i32], signal: Signal) -> usize {
    with_remaining(sessions, |remaining| {
        for pid in remaining {
            let _ = kill(Pid::from_raw(*pid), signal);
            // A stopped process acts on a signal only when it goes on.
            let _ = kill(Pid::from_raw(*pid), Signal::SIGCONT);
        }
    })
}

/// Returns how many processes still run of a session.
pub(super) fn count(sessions: &[i32]) -> usize {
    with_remaining(sessions, |_| {})
}

/// Collects the exit status of adopted processes that have ended.
pub(super) fn reap_orphans() {
    let known = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let own = getpid().as_raw();
    for process in process::children(own).into_iter().filter_map(process::find) {
        if is_adopted(&process, own, &known) && process.is_zombie() {
            reap(process.pid);
        }
    }
}

/// Finds what still runs of a session while no other session can start a shell.
fn with_remaining(sessions: &[i32], act: impl FnOnce(&[i32])) -> usize {
    let known = SESSIONS.lock().unwrap_or_else(PoisonError::into_inner);
    let all = process::all();
    let own = getpid().as_raw();
    let others: Vec<i32> = known
        .iter()
        .copied()
        .filter(|id| !sessions.contains(id))
        .collect();
    let adopted: Vec<i32> = all
        .iter()
        .filter(|p| is_adopted(p, own, &known))
        .map(|p| p.pid)
        .collect();
    let spared = process::belonging(&all, &others, &[]);
    let mine = process::belonging(&all, sessions, &adopted);
    let remaining = remaining(&all, |pid| {
        pid != own && mine.contains(&pid) && !spared.contains(&pid)
    });
    for zombie in &remaining.ended {
        // The shells are collected by those who started them.
        if !known.contains(zombie) {
            reap(*zombie);
        }
    }
    act(&remaining.running);
    remaining.running.len()
}

/// Processes that are ours to end.
struct Remaining {
    running: Vec<i32>,
    ended: Vec<i32>,
}

fn remaining(all: &[Process], is_target: impl Fn(i32) -> bool) -> Remaining {
    let (ended, running): (Vec<Process>, Vec<Process>) = all
        .iter()
        .filter(|p| is_target(p.pid))
        .partition(|p| p.is_zombie());
    let ids = |processes: Vec<Process>| processes.into_iter().map(|p| p.pid).collect();
    Remaining {
        running: ids(running),
        ended: ids(ended),
    }
}

/// Whether a process became our child without our doing: it is in no session we know.
fn is_adopted(process: &Process, own: i32, known: &[i32]) -> bool {
    let own_session = getsid(None).map_or(0, Pid::as_raw);
    process.parent == own && process.session != own_session && !known.contains(&process.pid)
}

fn reap(pid: i32) {
    let _ = waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG));
}
