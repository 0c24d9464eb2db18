//! Ends every process of a session, however far it went: background jobs, disowned ones, those in
//! a session of their own, those whose parents ended.
//!
//! This program adopts what loses its parent (it is the subreaper), so an escapee is found by the
//! session it is in, by what it descends from, or as a child we have but never started. Children
//! that this program started itself stay in its own session and are left alone; another part that
//! puts a child into a session of its own must not run beside a shell session. When several shell
//! sessions run, an escapee that gives no hint whose it is, is ended with the last of them.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpid, getsid};

use super::process::{self, Process};

/// The environment variable by which processes of a session know each other.
pub(super) const TAG_VARIABLE: &str = "KARYI_SESSION";

/// The shells of every session of this program.
static SHELLS: Mutex<Vec<KnownShell>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct KnownShell {
    pid: i32,
    tag: String,
    /// Whether its exit status was collected, so that its number may be somebody else's by now. Its
    /// jobs are still found by it: it is the number of their session.
    is_gone: bool,
}

/// Has this program adopt the processes of its sessions that lose their parent.
pub(super) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_child_subreaper(true);
}

/// Starts a shell with `spawn`, which returns its process id, so that nobody takes it for an
/// escapee before it is known.
pub(super) fn register<T, E>(
    tag: &str,
    spawn: impl FnOnce() -> Result<(i32, T), E>,
) -> Result<T, E> {
    let mut known = shells();
    let (pid, value) = spawn()?;
    let tag = tag.to_owned();
    known.push(KnownShell {
        pid,
        tag,
        is_gone: false,
    });
    Ok(value)
}

/// Takes note that the exit status of a shell was collected.
pub(super) fn collected(pid: i32) {
    for shell in shells().iter_mut().filter(|shell| shell.pid == pid) {
        shell.is_gone = true;
    }
}

/// Forgets the shells of a session that has ended.
pub(super) fn unregister(tag: &str) {
    shells().retain(|shell| shell.tag != tag);
}

/// Sends a signal to what still runs of a session, once to each; returns how much that is.
///
/// Called again and again with the same set it reaches what was started meanwhile, too.
pub(super) fn signal_all(tag: &str, signal: Signal, signalled: &mut HashSet<i32>) -> usize {
    let running = running(tag);
    for pid in &running {
        if signalled.insert(*pid) {
            let _ = kill(Pid::from_raw(*pid), signal);
            // A stopped process acts on a signal only when it goes on.
            let _ = kill(Pid::from_raw(*pid), Signal::SIGCONT);
        }
    }
    running.len()
}

/// Collects the exit status of adopted processes that have ended.
pub(super) fn reap_orphans() {
    let known = shells();
    let children = process::children(getpid().as_raw());
    for process in children.into_iter().filter_map(process::find) {
        if is_adopted(&process, &known) && process.is_zombie() {
            reap(process.pid);
        }
    }
}

/// Returns the ids of what still runs of a session, and collects what has ended.
fn running(tag: &str) -> Vec<i32> {
    let known = shells();
    let all = process::all();
    let (own, others): (Vec<&KnownShell>, Vec<&KnownShell>) =
        known.iter().partition(|shell| shell.tag == tag);
    let ids = |shells: &[&KnownShell]| shells.iter().map(|shell| shell.pid).collect::<Vec<_>>();
    let is_alone = others.is_empty();
    let adopted: Vec<i32> = all
        .iter()
        .filter(|process| is_adopted(process, &known))
        .filter(|process| find_tag(process.pid).map_or(is_alone, |found| found == tag))
        .map(|process| process.pid)
        .collect();
    let mine = process::belonging(&all, &ids(&own), &adopted);
    let spared = process::belonging(&all, &ids(&others), &[]);
    let is_target = |p: &&Process| mine.contains(&p.pid) && !spared.contains(&p.pid);
    let (ended, running): (Vec<&Process>, Vec<&Process>) = all
        .iter()
        .filter(is_target)
        .partition(|process| process.is_zombie());
    for process in ended {
        // The shells are collected by those who started them.
        if is_adopted(process, &known) {
            reap(process.pid);
        }
    }
    running.into_iter().map(|process| process.pid).collect()
}

/// Whether a process became our child without our doing: it is in no session of ours.
fn is_adopted(process: &Process, known: &[KnownShell]) -> bool {
    let own_session = getsid(None).map_or(0, Pid::as_raw);
    process.parent == getpid().as_raw()
        && process.session != own_session
        && !known
            .iter()
            .any(|shell| shell.pid == process.pid && !shell.is_gone)
}

/// Returns the tag in a process's environment.
fn find_tag(pid: i32) -> Option<String> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let prefix = format!("{TAG_VARIABLE}=");
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| variable.strip_prefix(prefix.as_bytes()))?;
    Some(String::from_utf8_lossy(value).into_owned())
}

fn shells() -> MutexGuard<'static, Vec<KnownShell>> {
    SHELLS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn reap(pid: i32) {
    let _ = waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG));
}
