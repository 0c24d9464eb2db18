//! Counts of what is seen: every kind of reader is seen waiting, no busy job ever is.

use std::process::Command;
use std::time::{Duration, Instant};

use karyi::outcome::Status;
use karyi::pty::InputRequest;

use super::support::{CommandOutcome, Shell, as_nobody, has, run};

/// How often each kind is tried, and how often in the full run.
pub(super) fn rounds(few: usize, many: usize) -> usize {
    match std::env::var_os("KARYI_FULL") {
        Some(_) => many,
        None => few,
    }
}

/// One kind of reader: a program it needs, the script, what is typed, and the end of the output.
type Kind = (&'static str, &'static str, &'static str, &'static str);

const POLL: &str = "python3 -c 'import select, sys
p = select.poll(); p.register(sys.stdin, select.POLLIN); p.poll(); print(len(input()))'";
const SELECTORS: &str = "python3 -c 'import selectors, sys
s = selectors.DefaultSelector(); s.register(sys.stdin, 1); s.select(); print(len(input()))'";
const SELECT: &str = "python3 -c 'import select, sys
select.select([sys.stdin], [], []); print(len(input()))'";
const ASYNCIO: &str = "python3 -c 'import asyncio, sys
async def main():
    r = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(r), sys.stdin)
    print(len(await r.readline()) - 1)
asyncio.run(main())'";
const THREAD: &str = "python3 -c 'import threading
t = threading.Thread(target=lambda: print(len(input()))); t.start(); t.join()'";
const READV: &str = "python3 -c 'import os
b = bytearray(9); print(os.readv(0, [b]) - 1)'";
const ORPHAN: &str = "python3 -c 'import os
r, w = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        print(len(os.read(0, 9)) - 1, flush=True); os.write(w, b\"x\")
    os._exit(0)
os.read(r, 1)'";
const GETPASS: &str = "python3 -c 'import getpass; print(len(getpass.getpass()))'";
const NODE: &str = "node -e 'const r = require(\"readline\").createInterface({input: process.stdin, output: process.stdout}); r.question(\"q? \", a => { console.log(a.length); r.close() })'";
const EXPECT: &str = "expect -c 'spawn -noecho head -n1; interact'";

/// Kinds of readers; each reads `abc` and a line break.
const KINDS: &[Kind] = &[
    ("bash", "read x; echo ${#x}", "abc\n", "3\n"),
    ("bash", "read -s x; echo ${#x}", "abc\n", "3\n"),
    ("bash", "read -n1 x; echo; echo $x", "a", "a\n"),
    ("bash", "read -e x; echo ${#x}", "abc\n", "3\n"),
    ("dash", "dash -c 'read x; echo ${#x}'", "abc\n", "3\n"),
    ("zsh", "zsh -fc 'read x; echo ${#x}'", "abc\n", "3\n"),
    ("head", "head -n1 | wc -c", "abc\n", "4\n"),
    ("head", "sh -c 'read x; echo ${#x}' | cat", "abc\n", "3\n"),
    ("head", "head -n1 </dev/tty | wc -c", "abc\n", "4\n"),
    (
        "head",
        "(set +m; sh -c 'sh -c \"head -n1 | wc -c\"; true')",
        "abc\n",
        "4\n",
    ),
    (
        "setsid",
        "setsid -w head -n1 <$(tty) | wc -c",
        "abc\n",
        "4\n",
    ),
    (
        "python3",
        "python3 -c 'print(len(input()))'",
        "abc\n",
        "3\n",
    ),
    ("python3", GETPASS, "abc\n", "3\n"),
    ("python3", SELECT, "abc\n", "3\n"),
    ("python3", POLL, "abc\n", "3\n"),
    ("python3", SELECTORS, "abc\n", "3\n"),
    ("python3", ASYNCIO, "abc\n", "3\n"),
    ("python3", THREAD, "abc\n", "3\n"),
    ("python3", READV, "abc\n", "3\n"),
    ("python3", ORPHAN, "abc\n", "3\n"),
    ("node", NODE, "abc\n", "3\n"),
    (
        "script",
        "SHELL=/bin/sh script -qc 'head -n1 | wc -c' /dev/null",
        "abc\n",
        "4\n",
    ),
    (
        "script",
        "SHELL=/bin/sh script -qc \"SHELL=/bin/sh script -qc 'head -n1 | wc -c' /dev/null\" /dev/null",
        "abc\n",
        "4\n",
    ),
    ("expect", EXPECT, "abc\n", "abc\n"),
    ("less", "seq 9 | less; echo on", "q", "on\n"),
    (
        "sqlite3",
        "sqlite3 :memory: 2>&1; echo on",
        ".quit\n",
        "on\n",
    ),
    ("bc", "bc -q; echo on", "quit\n", "on\n"),
    ("gdb", "gdb -q -nx; echo on", "quit\n", "on\n"),
    (
        "python3",
        "echo x=1 >p.py; python3 -m pdb p.py; echo on",
        "q\n",
        "on\n",
    ),
    ("bash", "bash --norc -i; echo on", "exit\n", "on\n"),
];

async fn check_kind(shell: &Shell, kind: &Kind, rounds: usize) {
    let (program, script, typed, end) = kind;
    if !has(program) {
        return;
    }
    for round in 0..rounds {
        let seen = shell.command(script).await;
        assert_eq!(seen.status, Status::AwaitingInput, "{script:?} {round}");
        assert!(!seen.progress.is_probable, "{script:?}");
        let mut seen = shell.input(typed).await;
        let mut output = std::mem::take(&mut seen.output);
        // Some ask once more before they take notice.
        while seen.status == Status::AwaitingInput {
            seen = shell.input("\n").await;
            output += &seen.output;
        }
        let is_right = seen.exit_code == Some(0) && output.ends_with(end);
        assert!(
            is_right,
            "{script:?} {round}: {output:?} {:?}",
            seen.progress
        );
    }
}

#[test]
fn every_kind_of_reader_is_seen_waiting() {
    run(async {
        let shell = Shell::bash().await;
        for kind in KINDS {
            let start = Instant::now();
            check_kind(&shell, kind, rounds(1, 200)).await;
            println!("{:?}: {:?}", kind.1, start.elapsed());
        }
    });
}

/// Jobs that do not read the terminal although it is their standard input; each ends by itself.
const BUSY: &[&str] = &[
    "sleep 0.2",
    "sleep 0.2 | cat",
    "python3 -c 'import time; t = time.time()\nwhile time.time() < t + 0.2: pass'",
    "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done",
    "cat <(sleep 0.2)",
    "for i in 1 2 3 4 5 6 7 8; do sleep 0.02; done </dev/null",
    "for i in 1 2 3 4 5 6 7 8 9; do sh -c 'sh -c true; sleep 0.01'; done",
    "python3 -c 'import socket, threading\na, b = socket.socketpair()\nthreading.Timer(0.2, lambda: b.send(b\"x\")).start(); a.recv(1)'",
    "python3 -c 'import socket, select\ns = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen()\nselect.select([s], [], [], 0.2)'",
    "python3 -c 'import socket, threading\ns = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen()\nthreading.Timer(0.2, lambda: socket.create_connection(s.getsockname())).start(); s.accept()'",
    "python3 -c 'import selectors, socket\na, b = socket.socketpair(); s = selectors.DefaultSelector(); s.register(a, 1); s.select(0.2)'",
    "python3 -c 'import threading; e = threading.Event()\nthreading.Timer(0.2, e.set).start(); e.wait()'",
    "python3 -c 'import subprocess; subprocess.run([\"sleep\", \"0.2\"])'",
    "python3 -c 'import os, time\nif os.fork() == 0:\n os.setsid(); time.sleep(0.2); os._exit(0)\nos.wait()'",
    "(sleep 0.2) & wait",
    "yes | head -c 3000000 | wc -c >/dev/null",
    "seq 200000 | sort -R | sort | tail -n1 >/dev/null",
    "dd if=/dev/zero of=file bs=64k count=300 conv=fsync 2>/dev/null; rm file",
    "find /usr/lib >/dev/null 2>&1",
    "tar cf - /usr/lib/python3* /usr/include 2>/dev/null | wc -c >/dev/null",
    "flock . sleep 0.2",
    "cat /dev/zero | head -c 30000000 | wc -c >/dev/null",
    "read -t 0.2 x <> <(:)",
    "node -e 'setTimeout(() => {}, 200)'",
    "SHELL=/bin/sh script -qc 'sleep 0.2' /dev/null",
    "expect -c 'spawn -noecho sleep 0.2; interact'",
    "(cat <$(tty) >/dev/null &) ; sleep 0.2; pkill -KILL -g 0 -x nothing; true",
    "timeout 0.2 sleep 9; true",
];

/// Runs a busy job to its end, looking at it often: whoever says that it waits is wrong.
async fn check_busy(shell: &Shell, script: &str) {
    let seen = shell.command_within(script, Duration::from_secs(20)).await;
    let is_right = matches!(seen.status, Status::Ok | Status::Failed | Status::Running);
    assert!(is_right, "{script:?}: {:?}", seen.progress);
    if seen.status == Status::Running {
        // The machine is slow; that is no mistake either.
        shell.session.end_job().await.unwrap();
    }
}

#[test]
fn no_busy_job_is_seen_waiting() {
    run(async {
        let shell = Shell::bash().await;
        let start = Instant::now();
        let wanted = rounds(1, 5000) as u64;
        while shell.session.scan_count() < wanted {
            for script in BUSY {
                check_busy(&shell, script).await;
            }
        }
        let looks = shell.session.scan_count();
        println!(
            "{looks} looks at busy jobs in {:?}: none seen waiting",
            start.elapsed()
        );
    });
}

/// Waits that go on by themselves, or for others as well: never `awaiting_input`.
#[test]
fn programs_that_can_go_on_only_accept_input() {
    const DAY: &str = "python3 -c 'import select, sys\nselect.select([sys.stdin], [], [], 86400)'";
    const SERVER: &str = "python3 -c 'import select, socket, sys\ns = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen()\nselect.select([sys.stdin, s], [], [])'";
    const CHILD: &str = "python3 -c 'import select, subprocess, sys\np = subprocess.Popen([\"sleep\", \"9\"], stdout=subprocess.PIPE)\nselect.select([sys.stdin, p.stdout], [], [])'";
    const TIMER: &str = "python3 -c 'import select, os, sys\nf = os.timerfd_create(1); os.timerfd_settime(f, initial=99)\nselect.select([sys.stdin, f], [], [])'";
    const NODE: &str = "node -e 'process.stdin.on(\"data\", () => process.exit(1)); require(\"http\").createServer().listen(0)'";
    const THREAD_SLEEPS: &str = "python3 -c 'import sys, threading, time\nthreading.Thread(target=sys.stdin.readline).start(); time.sleep(9)'";
    const CHILD_WORKS: &str = "sh -c 'sleep 9 & head -n1; wait'";
    const KINDS: [(&str, &str); 11] = [
        ("python3", THREAD_SLEEPS),
        ("head", CHILD_WORKS),
        ("python3", DAY),
        ("python3", SERVER),
        ("python3", CHILD),
        ("python3", TIMER),
        ("node", NODE),
        ("bash", "read -t 99 x"),
        ("stty", "stty -icanon min 0 time 100; head -c1"),
        ("vim", "vim -u NONE"),
        ("top", "top -d 9"),
    ];
    run(async {
        let shell = Shell::bash().await;
        for (program, script) in KINDS {
            if !has(program) {
                continue;
            }
            if script == TIMER && !has_timers() {
                eprintln!("skipped: no timers in python3");
                continue;
            }
            for _ in 0..rounds(1, 10) {
                let seen = shell.command(script).await;
                let found = (seen.status, seen.exit_code, seen.progress.is_probable);
                // After four seconds without a key vim waits for one without end.
                let status = match seen.status {
                    Status::AwaitingInput if program == "vim" => Status::AwaitingInput,
                    _ => Status::AcceptsInput,
                };
                assert_eq!(found, (status, None, false), "{script:?}");
                let ended = shell.session.end_job().await;
                assert!(ended.is_ok(), "{script:?}: {ended:?}");
            }
        }
    });
}

/// Silence is not enough: a job that uses the processor is at work.
#[test]
fn a_job_that_computes_is_not_told_to_accept_input() {
    const COMPUTES: &str = "python3 -c 'import sys, threading, time\nthreading.Thread(target=sys.stdin.readline, daemon=True).start()\nend = time.time() + 5\nwhile time.time() < end: sum(range(10000))\nprint(1)'";
    run(async {
        let shell = Shell::bash().await;
        let seen = shell.command_within(COMPUTES, Duration::from_secs(4)).await;
        assert_eq!(seen.brief(), (Status::Running, None, ""));
        assert!(shell.session.end_job().await.is_ok());
    });
}

fn has_timers() -> bool {
    let mut command = Command::new("python3");
    let output = command
        .args(["-c", "import os; os.timerfd_create"])
        .output();
    output.unwrap().status.success()
}

/// Programs the kernel is asked for directly: what C libraries do not do by themselves.
#[test]
fn rings_and_32_bit_programs_are_seen_waiting() {
    run(async {
        let shell = Shell::bash().await;
        if !has("cc") {
            return;
        }
        let ring = include_str!("ring.c");
        std::fs::write(shell.home.path().join("ring.c"), ring).unwrap();
        if shell.command("cc -o ring ring.c").await.exit_code != Some(0) {
            eprintln!("skipped: no headers of io_uring");
        } else if shell.command("./ring probe").await.exit_code != Some(0) {
            eprintln!("skipped: no io_uring");
        } else {
            for how in ["read", "poll", "epoll"] {
                let seen = shell.command(&format!("./ring {how}")).await;
                assert_eq!(seen.brief(), (Status::AwaitingInput, None, ""), "{how}");
                assert_eq!(shell.input("abc\n").await.exit_code, Some(0), "{how}");
            }
            let seen = shell.command("./ring timed").await;
            assert_eq!(seen.brief(), (Status::AcceptsInput, None, ""));
            assert_eq!(shell.input("abc\n").await.exit_code, Some(0));
            let seen = shell
                .command_within("./ring pipe", Duration::from_millis(300))
                .await;
            assert_eq!(seen.brief(), (Status::Running, None, ""));
            assert!(shell.session.end_job().await.is_ok());
        }
        if !cfg!(target_arch = "x86_64") {
            eprintln!("skipped: no 32-bit programs");
            return;
        }
        std::fs::write(shell.home.path().join("old.s"), include_str!("old.s")).unwrap();
        let make = "as --32 old.s -o old.o && ld -m elf_i386 old.o -o old && ./old </dev/null";
        if shell.command(make).await.exit_code != Some(0) {
            eprintln!("skipped: no 32-bit programs");
            return;
        }
        let seen = shell.command("./old").await;
        assert_eq!(seen.brief(), (Status::AwaitingInput, None, ""));
        assert_eq!(shell.input("abc\n").await.exit_code, Some(0));
    });
}

/// A job of many processes whose oldest one reads: a look reads a part of them at a time, so that
/// the reader is found late, but found, and everything else goes on meanwhile.
#[test]
fn a_reader_in_a_crowd_is_found() {
    run(async {
        let shell = Shell::bash().await;
        if !has("cc") {
            return;
        }
        std::fs::write(shell.home.path().join("crowd.c"), include_str!("crowd.c")).unwrap();
        shell.check("cc -o crowd crowd.c", 0, "").await;
        let size = rounds(1000, 10_000);
        let start = Instant::now();
        let seen = shell.command(&format!("./crowd {size}")).await;
        if seen.exit_code.is_some() {
            eprintln!("skipped: no {size} processes");
            return;
        }
        assert_eq!(seen.brief(), (Status::AwaitingInput, None, "ready\n"));
        println!("a crowd of {size}: {:?}", start.elapsed());
        // So many take long to end on a busy machine.
        let patient = InputRequest {
            timeout: Some(Duration::from_secs(100)),
            ..InputRequest::default()
        };
        let seen = shell.try_input("abc\n", patient).await.unwrap();
        assert_eq!(seen.exit_code, Some(0));
        let script = format!("./crowd {size} busy");
        let seen = shell.command_within(&script, Duration::from_secs(3)).await;
        assert_eq!(seen.brief(), (Status::Running, None, "ready\n"));
        assert!(shell.session.end_job().await.is_ok());
        shell.check("echo on", 0, "on\n").await;
    });
}

/// A shell that cannot start processes any more says so, and comes back.
#[test]
fn a_fork_bomb_is_a_command_that_fails() {
    run(async {
        let shell = Shell::bash().await;
        if nix::unistd::geteuid().is_root() && !has("setpriv") {
            return;
        }
        // Root has no such limit, so somebody else does it.
        let limit = if nix::unistd::geteuid().is_root() {
            "setpriv --reuid=65533 --clear-groups bash -c 'ulimit -u 60; "
        } else {
            "bash -c 'ulimit -u 60; "
        };
        let bomb = format!("{limit} f() {{ f | f & }}; f; wait' >/dev/null 2>&1; true");
        let seen = shell.command_within(&bomb, Duration::from_secs(2)).await;
        if seen.exit_code.is_none() {
            shell.session.end_job().await.unwrap();
        }
        shell.check("echo on", 0, "on\n").await;
    });
}

/// Repeats some tests as a user without rights, and a test of programs with more rights.
#[test]
fn an_unprivileged_user_sees_the_same() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: not root; the other tests show this already");
        return;
    }
    if !has("setpriv") {
        return;
    }
    let text = as_nobody(
        &[],
        &[
            "session::detection::every_kind_of_reader_is_seen_waiting",
            "session::detection::no_busy_job_is_seen_waiting",
            "session::detection::a_program_of_another_user_asks_for_a_password",
        ],
    );
    println!("{text}");
}

#[test]
fn a_program_of_another_user_asks_for_a_password() {
    if nix::unistd::geteuid().is_root() {
        // Root needs no password; `an_unprivileged_user_sees_the_same` comes back here.
        return;
    }
    run(async {
        let shell = Shell::bash().await;
        let secret = InputRequest {
            is_secret: true,
            ..InputRequest::default()
        };
        for (program, script) in [("su", "su -c true root"), ("sudo", "sudo -k -S true")] {
            if !has(program) {
                continue;
            }
            for round in 0..rounds(1, 200) {
                let seen = shell.command(script).await;
                if seen.exit_code.is_some() {
                    eprintln!(
                        "skipped: {program} asks for no password here: {:?}",
                        seen.output
                    );
                    break;
                }
                let found = (seen.status, seen.progress.echo);
                assert_eq!(
                    found,
                    (Status::AwaitingInput, Some(false)),
                    "{script} {round}"
                );
                let seen = answer(&shell, secret).await;
                assert!(
                    !seen.output.contains("wrong-pass"),
                    "{script}: {:?}",
                    seen.output
                );
            }
        }
    });
}

/// Gives a wrong password until the program gives up; pressing Ctrl+C would do for the last try.
async fn answer(shell: &Shell, secret: InputRequest) -> CommandOutcome {
    let mut seen = shell.try_input("wrong-pass\n", secret).await.unwrap();
    let mut output = seen.output.clone();
    while seen.exit_code.is_none() {
        seen = shell.key("c").await;
        output += &seen.output;
    }
    seen.output = output;
    seen
}
