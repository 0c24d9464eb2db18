//! `karyi var set --session`: a value for a session that runs, from outside of it only.

mod full;
mod limits;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use super::home::{Home, Ran};
use crate::harness::{Karyi, is_root, program, skip, wait};

/// How long a session may take for one call.
const LIMIT: Duration = Duration::from_secs(60);

const VALUE: &str = "given-from-outside-4f1c77";

/// A `karyi run` that reads its script from a pipe.
struct WaitingRun {
    child: Option<Child>,
    script: Option<ChildStdin>,
    events: Receiver<String>,
}

impl WaitingRun {
    /// Starts it and waits until it runs calls.
    fn start(home: &Home) -> Self {
        Self::with(home, &[])
    }

    fn with(home: &Home, args: &[&str]) -> Self {
        let run = [
            "run", "--no-rc", "--stream", "--strict", "--format", "jsonl",
        ];
        let mut command = home.command(program(), &[&run, args].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut running = Self {
            script: child.stdin.take(),
            events: lines(child.stdout.take().unwrap()),
            child: Some(child),
        };
        assert_eq!(running.command("echo begun")["output"], "begun\n");
        running
    }

    /// Runs a block of one call and returns its result.
    fn call(&mut self, call: &str) -> Value {
        let block = format!("<tools>{call}</tools>\n");
        let script = self.script.as_mut().unwrap();
        script.write_all(block.as_bytes()).unwrap();
        loop {
            let event = self.events.recv_timeout(LIMIT).unwrap();
            assert!(!event.contains(VALUE), "{event}");
            let event: Value = serde_json::from_str(&event).unwrap();
            if event["event"] == "finished" {
                return event;
            }
        }
    }

    fn command(&mut self, script: &str) -> Value {
        self.call(&format!("<command><![CDATA[{script}]]></command>"))
    }

    fn pid(&self) -> String {
        self.child.as_ref().unwrap().id().to_string()
    }

    /// Ends the script, and with it the session.
    fn end(mut self) {
        drop(self.script.take());
        wait(self.child.take().unwrap());
    }
}

impl Drop for WaitingRun {
    fn drop(&mut self) {
        // As KILL does; a test that failed, too.
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Reads lines in a thread of its own.
fn lines(output: ChildStdout) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    lines
}

impl Home {
    fn give(&self, name: &str, value: &str, args: &[&str]) -> Ran {
        let mut all = vec!["var", "set", name, "--stdin", "--session"];
        all.extend(args);
        self.karyi(&all, value)
    }

    /// What lies in the directory of running sessions, but for the directories of their shells.
    fn sockets(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path().join("run/karyi"));
        let paths = entries
            .into_iter()
            .flatten()
            .map(|found| found.unwrap().path());
        paths.filter(|path| !path.is_dir()).collect()
    }

    fn socket(&self) -> PathBuf {
        let [socket] = &self.sockets()[..] else {
            panic!("{:?}", self.sockets());
        };
        socket.clone()
    }
}

/// Reads one frame.
fn said(stream: &mut UnixStream) -> Value {
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut text = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// A program that connects to a socket and prints what is said there.
fn knock(socket: &Path) -> String {
    format!(
        "use IO::Socket::UNIX; my $s = IO::Socket::UNIX->new(\"{}\") or die \"$!\"; \
         read $s, my $head, 4; local $/; print scalar <$s>;",
        socket.display()
    )
}

#[test]
fn a_value_is_there_from_the_next_block_on_and_nowhere_else() {
    let home = Home::new();
    let mut run = WaitingRun::start(&home);
    assert_eq!(
        run.command("echo $KARYI{TOKEN}")["code"],
        "undefined_variable"
    );
    let told = home
        .give("TOKEN", VALUE, &["--note", "n"])
        .exit(0)
        .hides(VALUE)
        .stderr;
    let expected = format!(
        "karyi: warning: a session has no notes, so this one is ignored\n\
         karyi: TOKEN is available in process {}: karyi run of standard input in {} since ",
        run.pid(),
        home.work().display()
    );
    assert!(told.starts_with(&expected), "{told}");
    let shown = run.command("printf %s $KARYI{TOKEN} | wc -c; echo $KARYI{TOKEN}");
    assert_eq!(shown["output"], "25\n$KARYI{TOKEN}\n");
    let printed = run.command("x=$KARYI{TOKEN}; printf %s \"$x\" | base64");
    let printed = printed["output"].as_str().unwrap();
    assert!(printed.starts_with("[KARYI:TOKEN:base64]"), "{printed}");
    let asked = run.call("<get_value key=\"TOKEN\" reason=\"r\"/>");
    assert_eq!(asked["status"], "exists", "{asked}");
    let written = run
        .call("<edit><file src=\"f\"><find></find><replace>$KARYI{TOKEN}</replace></file></edit>");
    assert_eq!(written["code"], "policy_denied", "{written}");
    // In memory only.
    home.assert_nowhere(VALUE);
    let listed = home.karyi(&["var", "list", "--json"], "").exit(0);
    assert!(!listed.stdout.contains("TOKEN"), "{}", listed.stdout);
    assert!(!home.index().exists());
    let mode = home
        .socket()
        .symlink_metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    run.end();
    assert_eq!(home.sockets(), Vec::<PathBuf>::new());
    home.give("TOKEN", VALUE, &[]).exit(2).error("no_session");
}

#[test]
fn what_is_said_with_a_value_counts() {
    let home = Home::new();
    let mut run = WaitingRun::start(&home);
    home.give("WRITTEN", VALUE, &["--write"]).exit(0);
    let edit =
        "<edit><file src=\"f\"><find></find><replace>$KARYI{WRITTEN}</replace></file></edit>";
    assert_eq!(run.call(edit)["status"], "ok");
    let file = std::fs::read_to_string(home.work().join("f")).unwrap();
    assert_eq!(file, VALUE);
    home.give("NARROW", "another-value-1", &["--tools", "input"])
        .exit(0);
    assert_eq!(run.command("echo $KARYI{NARROW}")["code"], "policy_denied");
    home.give("SHORT", "pw1!z", &[]).exit(2).error("bad_value");
    home.give("SHORT", "pw1!z", &["--allow-short"]).exit(0);
    assert_eq!(
        run.command("echo $KARYI{SHORT}")["output"],
        "$KARYI{SHORT}\n"
    );
    let told = home.give("HEADER", "Bearer abcdefgh1", &[]).exit(0).stderr;
    assert!(
        told.contains("starts with the scheme of a header"),
        "{told}"
    );
    run.end();
}

#[test]
fn only_a_new_name_and_a_good_value_are_taken() {
    let home = Home::new();
    home.set("STORED", "value-in-the-store", &[]);
    let mut run = WaitingRun::start(&home);
    home.set("LATER", "another-in-the-store", &[]);
    home.give("TOKEN", VALUE, &[]).exit(0);
    for name in ["TOKEN", "token", "STORED", "stored", "LATER", "later"] {
        let refused = home.give(name, "not-this-value", &[]).exit(2);
        refused.error("bad_arguments");
    }
    assert_eq!(
        run.command("printf %s $KARYI{TOKEN} | wc -c")["output"],
        "25\n"
    );
    assert_eq!(
        run.command("printf %s $KARYI{STORED} | wc -c")["output"],
        "18\n"
    );
    let long = "x".repeat(70 << 10);
    for value in ["", "\n", "abc", "a\0bcdefghi", &long] {
        home.give("OTHER", value, &[]).exit(2).error("bad_value");
    }
    let usage = home.karyi(&["var", "set", "OTHER", VALUE, "--session"], "");
    usage.exit(2).hides(VALUE).error("usage");
    for args in [
        ["--note", "two\nlines"],
        ["--tools", "nothing"],
        ["--output", "sealed"],
    ] {
        let refused = home.give("OTHER", VALUE, &args).exit(2).stderr;
        assert!(refused.contains("karyi: bad_"), "{refused}");
    }
    assert_eq!(
        run.command("echo $KARYI{OTHER}")["code"],
        "undefined_variable"
    );
    run.end();
}

#[test]
fn one_of_several_sessions_is_named() {
    let home = Home::new();
    let (mut one, mut other) = (WaitingRun::start(&home), WaitingRun::with(&home, &["-"]));
    let refused = home
        .give("TOKEN", VALUE, &[])
        .exit(2)
        .error("bad_arguments")
        .stderr;
    for pid in [one.pid(), other.pid()] {
        assert!(
            refused.contains(&format!("\n  process {pid}: karyi run of ")),
            "{refused}"
        );
    }
    let chosen = format!("--session={}", other.pid());
    let give = ["var", "set", "TOKEN", "--stdin", &chosen];
    home.karyi(&give, VALUE).exit(0);
    assert_eq!(
        one.command("echo $KARYI{TOKEN}")["code"],
        "undefined_variable"
    );
    assert_eq!(
        other.command("echo $KARYI{TOKEN}")["output"],
        "$KARYI{TOKEN}\n"
    );
    let nobody = home.karyi(&["var", "set", "TOKEN", "--stdin", "--session=1"], VALUE);
    let hint = nobody.exit(2).error("no_session").stderr;
    assert!(
        hint.contains(&one.pid()) && hint.contains(&other.pid()),
        "{hint}"
    );
    one.end();
    other.end();
}

#[test]
fn a_person_types_the_value() {
    let home = Home::new();
    let set = || {
        let set = Karyi::with_args(&["var", "set", "TOKEN", "--session"]);
        set.env("XDG_RUNTIME_DIR", home.path().join("run"))
            .on_terminal()
    };
    // Nothing is asked where nobody would take it.
    let mut terminal = set();
    terminal.expect("no_session").expect("hint: ");
    assert!(
        !terminal.screen().contains("hidden"),
        "{}",
        terminal.screen()
    );
    let mut run = WaitingRun::start(&home);
    let mut terminal = set();
    terminal
        .expect("value of TOKEN for process ")
        .expect("gives up): ");
    terminal
        .keys(VALUE)
        .keys("\r")
        .expect("TOKEN is available in");
    assert!(!terminal.screen().contains(VALUE), "{}", terminal.screen());
    assert_eq!(
        run.command("echo $KARYI{TOKEN}")["output"],
        "$KARYI{TOKEN}\n"
    );
    run.end();
}

#[test]
fn what_a_session_runs_gets_neither_in_nor_between() {
    let home = Home::new();
    let mut run = WaitingRun::start(&home);
    let karyi = program().display();
    let knock = knock(&home.socket());
    // Where root can take the stamp of a session away, who belongs to whom is seen all the same.
    let script = format!(
        "give() {{ echo other-value-99 | $@ {karyi} var set OTHER --stdin --session 2>&1 | head -n 1 | cut -c1-23; }}\n\
         give env; give setsid -w env -i XDG_RUNTIME_DIR=$XDG_RUNTIME_DIR; give nohup\n\
         perl -e '{knock}'; echo; setsid -w perl -e '{knock}'; echo\n\
         mkfifo answer; un='prlimit --locks=unlimited'; $un true 2> /dev/null || un=\n\
         setsid $un perl -e 'use POSIX; fork and exit; setsid; my $p = $$; fork and exit; \
             1 while getppid == $p; open STDOUT, \">answer\"; {knock}'\n\
         cat answer; echo; echo $KARYI{{OTHER}}\n"
    );
    let (script, last) = script.split_once("; echo $KARYI").unwrap();
    let seen = run.command(script)["output"].as_str().unwrap().to_owned();
    let mut lines = seen.lines();
    for _ in 0..3 {
        assert_eq!(lines.next(), Some("karyi: inside_session: "), "{seen}");
    }
    for _ in 0..3 {
        let refused: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
        assert_eq!(refused["refused"]["code"], "inside_session", "{seen}");
    }
    let unknown = run.command(&format!("echo $KARYI{}", last.trim()));
    assert_eq!(unknown["code"], "undefined_variable", "{unknown}");
    run.end();
}

/// A program of a session can make a socket where the socket is, and would be given what a person types.
#[test]
fn a_false_socket_is_not_used() {
    let home = Home::new();
    let mut run = WaitingRun::start(&home);
    let socket = home.socket();
    let name = socket.display();
    let script = format!(
        "perl -e 'use IO::Socket::UNIX; unlink \"{name}\"; \
         my $s = IO::Socket::UNIX->new(Local => \"{name}\", Listen => 5) or die; \
         print \"there\\n\"; close STDOUT; while (my $c = $s->accept) {{ sysread $c, my $x, 9 }}' > made &\n\
         until [ -s made ]; do read -t 0.01 < /dev/zero; done; cat made"
    );
    assert_eq!(run.command(&script)["output"], "there\n");
    home.give("TOKEN", VALUE, &[]).exit(2).error("no_session");
    run.end();
}

#[test]
fn a_session_that_was_killed_leaves_nothing_that_counts() {
    let home = Home::new();
    let run = WaitingRun::start(&home);
    let socket = home.socket();
    drop(run);
    assert!(socket.exists());
    home.give("TOKEN", VALUE, &[]).exit(2).error("no_session");
    assert!(!socket.exists());
    // The next session takes away what is left, too.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let next = WaitingRun::start(&home);
    assert!(!socket.exists());
    home.give("TOKEN", VALUE, &[]).exit(0);
    next.end();
}

#[test]
fn who_says_nothing_or_too_much_holds_nothing_up() {
    let home = Home::new();
    let mut run = WaitingRun::start(&home);
    let socket = home.socket();
    let knock = || {
        let mut stream = UnixStream::connect(&socket).unwrap();
        let hello = said(&mut stream)["hello"].to_string();
        assert!(
            hello.starts_with("\"karyi run of standard input in "),
            "{hello}"
        );
        stream
    };
    let _silent = [knock(), knock()];
    let mut half = knock();
    half.write_all(&[0, 0, 1, 0, b'{']).unwrap();
    for length in [[0xff; 4], [0, 8, 0, 0]] {
        let mut long = knock();
        long.write_all(&length).unwrap();
        let refused = said(&mut long);
        assert_eq!(refused["refused"]["code"], "bad_arguments", "{refused}");
    }
    let mut other = knock();
    other.write_all(b"\0\0\0\x04GET ").unwrap();
    assert_eq!(said(&mut other)["refused"]["code"], "bad_arguments");
    home.give("TOKEN", VALUE, &[]).exit(0);
    assert_eq!(
        run.command("echo $KARYI{TOKEN}")["output"],
        "$KARYI{TOKEN}\n"
    );
    // The end waits for none of them.
    run.end();
    assert_eq!(half.read(&mut [0]).unwrap(), 0);
}

#[test]
fn another_user_is_refused() {
    if !is_root() {
        return skip("only root can be another user");
    }
    let home = Home::new();
    let run = WaitingRun::start(&home);
    let socket = home.socket();
    // As if no directory kept them out.
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open(&socket, 0o666);
    for directory in socket.ancestors().skip(1).take(3) {
        open(directory, 0o711);
    }
    let mut command = home.command(Path::new("/usr/bin/perl"), &["-e", &knock(&socket)]);
    command
        .current_dir("/")
        .uid(65534)
        .gid(65534)
        .stdout(Stdio::piped());
    let output = wait(command.spawn().unwrap());
    let refused: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = json!({"refused": {
        "code": "permission_denied",
        "message": "a session accepts values only from its own user",
        "hint": "run `karyi var set` as the user of the session",
    }});
    assert_eq!(refused, expected);
    // Nor is that directory one that a value is given through.
    home.give("TOKEN", VALUE, &[])
        .exit(1)
        .error("session_failed");
    run.end();
}
