//! Checks what the system offers to a session, by trying each feature.
//!
//! No change outlasts its check, and nothing is decided here: a session finds out by itself what it can use. A check
//! has what was found, its meaning, and advice.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use nix::unistd::{AccessFlags, access};

use karyi_core::limits;

use crate::teardown::stamp::Stamp;

/// Outcome of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// The feature works.
    Ok,
    /// A session works without the feature, or with less of it.
    Limited,
    /// The feature does not work, and a session needs it.
    Missing,
}

impl Health {
    /// Returns its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Limited => "limited",
            Self::Missing => "missing",
        }
    }
}

/// Result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Name of the checked feature.
    pub name: String,
    /// Outcome of the check.
    pub health: Health,
    /// What was found, in words.
    pub found: String,
    /// Meaning for a session.
    pub meaning: String,
    /// What to do; empty when nothing needs to be done.
    pub advice: String,
}

impl Check {
    /// Creates the result for a feature that works.
    #[must_use]
    pub fn ok(name: &str, found: impl Into<String>, meaning: &str) -> Self {
        Self::new(name, Health::Ok, found.into(), meaning, "")
    }

    /// Creates the result for a missing feature that a session can do without.
    #[must_use]
    pub fn limited(name: &str, found: impl Into<String>, meaning: &str, advice: &str) -> Self {
        Self::new(name, Health::Limited, found.into(), meaning, advice)
    }

    /// Creates the result for a missing feature that a session needs.
    #[must_use]
    pub fn missing(name: &str, found: impl Into<String>, meaning: &str, advice: &str) -> Self {
        Self::new(name, Health::Missing, found.into(), meaning, advice)
    }

    fn new(name: &str, health: Health, found: String, meaning: &str, advice: &str) -> Self {
        Self {
            name: name.to_owned(),
            health,
            found,
            meaning: meaning.to_owned(),
            advice: advice.to_owned(),
        }
    }
}

/// One check of the system.
pub type SystemCheck = fn() -> Check;

/// The checks of the system, with their names.
pub const SYSTEM: &[(&str, SystemCheck)] = &[
    ("pseudo-terminal", terminal),
    ("/proc", proc),
    ("ptrace limits", ptrace),
    ("pidfd", pidfd),
    ("subreaper", subreaper),
    ("parent death signal", parent_death_signal),
    ("stamp", stamp),
    ("cgroup", cgroup),
    ("landlock", landlock),
    ("seccomp", seccomp),
];

/// Meaning when the kernel does not show what programs wait for.
const GUESSED: &str = "what a waiting program waits for is guessed from its terminal (`probably`): a password after \
     50 ms, a question after 1 s; other commands return when they end or their time is up";

fn terminal() -> Check {
    let name = "pseudo-terminal";
    match nix::pty::openpty(None, None) {
        Ok(pair) => {
            let path = nix::unistd::ttyname(&pair.slave).unwrap_or_default();
            let meaning = "every session has a terminal of its own";
            Check::ok(name, format!("opened {}", path.display()), meaning)
        }
        Err(error) => Check::missing(
            name,
            format!("none could be opened: {error}"),
            "no session can be started",
            "mount devpts on /dev/pts, or end programs that hold many terminals",
        ),
    }
}

fn proc() -> Check {
    let name = "/proc";
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let line = mounts.lines().find(|line| line.contains(" /proc proc "));
    let Some(line) = line.filter(|_| fs::read("/proc/self/syscall").is_ok()) else {
        return Check::limited(
            name,
            "not mounted, or without system calls",
            GUESSED,
            "mount proc on /proc, with a kernel that has CONFIG_HAVE_ARCH_TRACEHOOK",
        );
    };
    let hidden = line
        .split([' ', ','])
        .find(|word| word.starts_with("hidepid="));
    match hidden {
        Some(option) if !matches!(option, "hidepid=0" | "hidepid=off") => Check::limited(
            name,
            format!("mounted with {option}"),
            "waiting programs of other users, such as sudo, are detected by their terminal only",
            "nothing, unless password prompts are detected late",
        ),
        _ => Check::ok(
            name,
            "mounted, system calls readable",
            "waiting programs are detected at once",
        ),
    }
}

fn ptrace() -> Check {
    let name = "ptrace limits";
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok();
    match scope.as_deref().map(str::trim) {
        None => Check::ok(name, "no yama", "programs below karyi can be inspected"),
        Some(scope @ ("0" | "1")) => Check::ok(
            name,
            format!("yama ptrace_scope {scope}"),
            "programs below karyi can be inspected",
        ),
        Some(scope) => Check::limited(
            name,
            format!("yama ptrace_scope {scope}"),
            "programs that wait for several things at once are not detected as waiting",
            "set kernel.yama.ptrace_scope to 1 with sysctl",
        ),
    }
}

#[cfg(target_os = "linux")]
fn pidfd() -> Check {
    match crate::sys::open_process(std::process::id().cast_signed()) {
        Ok(_) => Check::ok("pidfd", "opened", "the end of a shell is known at once"),
        Err(error) => Check::limited(
            "pidfd",
            format!("refused: {error}"),
            "the end of a shell is known only at the next scan",
            "use Linux 5.3 or newer",
        ),
    }
}

#[cfg(target_os = "linux")]
fn subreaper() -> Check {
    use nix::sys::prctl::{get_child_subreaper, set_child_subreaper};
    let is_set = set_child_subreaper(true).is_ok() && get_child_subreaper().unwrap_or(false);
    let meanings = [
        "processes that lose their parent stay below karyi",
        "processes that leave the session may outlive it",
    ];
    of_setting("subreaper", is_set, meanings, "use Linux 3.4 or newer")
}

#[cfg(target_os = "linux")]
fn parent_death_signal() -> Check {
    use nix::sys::prctl::{get_pdeathsig, set_pdeathsig};
    use nix::sys::signal::Signal;
    let was = get_pdeathsig().ok().flatten();
    let is_set = set_pdeathsig(Signal::SIGCONT).is_ok()
        && get_pdeathsig().is_ok_and(|signal| signal == Some(Signal::SIGCONT));
    let _ = set_pdeathsig(was);
    let meanings = [
        "a shell ends with karyi, even when karyi is killed",
        "a shell may outlive a karyi that is killed, until the next start",
    ];
    of_setting("parent death signal", is_set, meanings, "nothing")
}

/// Returns the result for a setting of this process; `meanings` are those of success and refusal.
#[cfg(target_os = "linux")]
fn of_setting(name: &str, is_set: bool, meanings: [&str; 2], advice: &str) -> Check {
    let [with, without] = meanings;
    match is_set {
        true => Check::ok(name, "set", with),
        false => Check::limited(name, "refused", without, advice),
    }
}

#[cfg(target_os = "linux")]
fn landlock() -> Check {
    match crate::sys::landlock_version() {
        Ok(version) => Check::ok("landlock", format!("version {version}"), UNUSED),
        Err(error) => Check::limited("landlock", format!("none: {error}"), UNUSED, "nothing"),
    }
}

#[cfg(not(target_os = "linux"))]
fn pidfd() -> Check {
    elsewhere("pidfd", "the end of a shell is known only at the next scan")
}

#[cfg(not(target_os = "linux"))]
fn subreaper() -> Check {
    elsewhere(
        "subreaper",
        "processes that leave the session may outlive it",
    )
}

#[cfg(not(target_os = "linux"))]
fn parent_death_signal() -> Check {
    elsewhere(
        "parent death signal",
        "a shell may outlive a karyi that is killed",
    )
}

#[cfg(not(target_os = "linux"))]
fn landlock() -> Check {
    elsewhere("landlock", UNUSED)
}

#[cfg(not(target_os = "linux"))]
fn elsewhere(name: &str, meaning: &str) -> Check {
    Check::limited(name, "only Linux has it", meaning, "nothing")
}

const UNUSED: &str = "karyi does not use it: commands may do what their user may";

fn stamp() -> Check {
    if Stamp::new(0).is_some() {
        let meaning = "every process of a session is identified, whatever it does to escape";
        return Check::ok("stamp", "the limit of file locks is free", meaning);
    }
    Check::limited(
        "stamp",
        "the limit of file locks does not exist or is used",
        "a process that clears its environment and loses its parent may outlive a killed karyi",
        "remove the limit of file locks (ulimit -x, limits.conf)",
    )
}

fn seccomp() -> Check {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Seccomp:"));
    match line.map(str::trim) {
        Some("0") => Check::ok("seccomp", "no filter", "no system call is refused"),
        Some(mode) => Check::limited(
            "seccomp",
            format!("mode {mode}"),
            "this process is in a sandbox; the other checks show what it refuses",
            "nothing, if the session below works",
        ),
        None => Check::limited("seccomp", "not known", UNUSED, "nothing"),
    }
}

fn cgroup() -> Check {
    let meaning = "karyi does not need one: it identifies its processes by their stamp";
    let Some(directory) = own_cgroup() else {
        return Check::limited("cgroup", "version 2 is not mounted", meaning, "nothing");
    };
    let shown = directory.display();
    if access(&directory, AccessFlags::W_OK).is_err() {
        let found = format!("version 2, {shown} is not writable");
        return Check::limited("cgroup", found, meaning, "nothing");
    }
    let probe = directory.join(format!("karyi-doctor-{}", std::process::id()));
    let can_kill = fs::create_dir(&probe).is_ok() && probe.join("cgroup.kill").exists();
    let _ = fs::remove_dir(&probe);
    if can_kill {
        let found = format!("version 2, {shown} is writable, with cgroup.kill");
        return Check::ok("cgroup", found, meaning);
    }
    let found = format!("version 2, {shown} without cgroup.kill");
    Check::limited("cgroup", found, meaning, "nothing")
}

/// Returns the cgroup directory of this process.
fn own_cgroup() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mut mounts = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let mount = mounts.find(|fields| fields.get(2) == Some(&"cgroup2"))?;
    let directory = Path::new(mount.get(1)?).join(path.trim_start_matches('/'));
    directory.is_dir().then_some(directory)
}

/// Checks what the kernel shows of a child, the shell of a session.
#[must_use]
pub fn of_child(pid: i32) -> Check {
    let name = "looking at programs";
    let advice = "allow ptrace of children, in a container with --cap-add=SYS_PTRACE";
    match blocked_call(pid) {
        Err(error) => Check::limited(
            name,
            format!("the system call of a child cannot be read: {error}"),
            GUESSED,
            advice,
        ),
        Ok(call) if !can_read_memory(pid, &call) => Check::limited(
            name,
            "system calls can be read, memory cannot",
            "programs that wait for several things at once are not detected as waiting",
            advice,
        ),
        Ok(_) => Check::ok(
            name,
            "system calls and memory of a child can be read",
            "waiting programs are detected at once",
        ),
    }
}

/// Returns the system call in which a process is blocked, waiting a moment if it runs.
fn blocked_call(pid: i32) -> std::io::Result<String> {
    let until = Instant::now() + limits::LOOK_TIMEOUT;
    loop {
        let call = fs::read_to_string(format!("/proc/{pid}/syscall"))?;
        if call.trim() != "running" || Instant::now() >= until {
            return Ok(call);
        }
        std::thread::sleep(limits::WAIT_SCAN_MIN);
    }
}

/// Returns true if memory at the stack of a blocked process can be read.
#[cfg(target_os = "linux")]
fn can_read_memory(pid: i32, call: &str) -> bool {
    use nix::sys::uio::{RemoteIoVec, process_vm_readv};
    let stack = call.split_ascii_whitespace().rev().nth(1);
    let stack = stack.and_then(|hex| usize::from_str_radix(hex.trim_start_matches("0x"), 16).ok());
    let Some(base) = stack else {
        return false;
    };
    let mut buffer = [0; 8];
    let remote = [RemoteIoVec { base, len: 8 }];
    let mut local = [std::io::IoSliceMut::new(&mut buffer)];
    process_vm_readv(nix::unistd::Pid::from_raw(pid), &mut local, &remote) == Ok(8)
}

#[cfg(not(target_os = "linux"))]
fn can_read_memory(_pid: i32, _call: &str) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_has_its_name_and_advice_when_something_is_wrong() {
        for (name, check) in SYSTEM {
            let check = check();
            assert_eq!(check.name, *name);
            assert!(!check.found.is_empty() && !check.meaning.is_empty());
            assert_eq!(
                check.advice.is_empty(),
                check.health == Health::Ok,
                "{check:?}"
            );
        }
    }

    #[test]
    fn an_ended_process_is_limited() {
        assert_eq!(of_child(-1).health, Health::Limited);
    }
}
