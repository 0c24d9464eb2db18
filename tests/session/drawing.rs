//! Real programs that rewrite what they printed, draw on the whole screen, or ask the terminal.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use karyi::outcome::Status;
use karyi::pty::InputRequest;

use crate::harness::Karyi;

use super::support::{CommandOutcome, Shell, run};

/// Whether a program is there; if not, says so.
fn has(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|directory| directory.join(name).is_file());
    if !found {
        eprintln!("skipped: no {name}");
    }
    found
}

fn write(shell: &Shell, name: &str, content: &str) {
    let path = shell.home.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// Serves a file in small pieces until the test program ends; returns the port.
fn serve_slowly(content: Vec<u8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let request = BufReader::new(stream.try_clone().unwrap());
            let lines = request.lines().map_while(Result::ok);
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let length = content.len();
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            for piece in content.chunks(length / 50 + 1) {
                let _ = stream.write_all(piece);
                // The pace of a download, so that there is something to draw.
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    });
    port
}

/// Checks that a command was well and gives its output's lines.
fn lines(seen: &CommandOutcome) -> Vec<&str> {
    assert_eq!(
        (seen.status, seen.exit_code),
        (Status::Ok, Some(0)),
        "{seen:?}"
    );
    seen.output.lines().collect()
}

#[test]
fn a_bar_of_python_is_one_line() {
    run(async {
        let shell = Shell::bash().await;
        let script = "python3 -c 'import sys\nfor n in range(2001): sys.stdout.write(\"\\r[%-40s] %d\" % (\"#\" * (n // 50), n))\nprint()'";
        let seen = shell.command(script).await;
        assert_eq!(lines(&seen), [format!("[{}] 2000", "#".repeat(40))]);
    });
}

#[test]
fn bars_of_several_lines_are_rewritten() {
    run(async {
        let shell = Shell::bash().await;
        let script = "python3 -c 'print(\"start\")\nfor n in range(501):\n for b in range(3): print(f\"\\x1b[2Kbar {b}: {n}\")\n if n < 500: print(\"\\x1b[3A\", end=\"\")\nprint(\"end\")'";
        let expected = "start\nbar 0: 500\nbar 1: 500\nbar 2: 500\nend\n";
        shell.check(script, 0, expected).await;
        // The same when the terminal makes line feeds two characters.
        shell
            .check(&format!("stty opost onlcr; {script}"), 0, expected)
            .await;
    });
}

#[test]
fn a_cleared_screen_shows_what_came_after() {
    run(async {
        let shell = Shell::bash().await;
        shell.check("clear; echo x", 0, "x\n").await;
        shell
            .check("echo before; tput clear; echo x", 0, "before\nx\n")
            .await;
        let frames = "for n in 1 2 3; do clear; echo frame $n; done";
        shell.check(frames, 0, "frame 3\n").await;
    });
}

#[test]
fn what_a_command_leaves_on_does_not_reach_the_next() {
    run(async {
        let shell = Shell::bash().await;
        shell.check(r"printf '\033[?1049hx\033[5;9r'", 0, "x").await;
        assert_eq!(shell.session.full_screen_program(), None);
        shell.check("seq 3", 0, "1\n2\n3\n").await;
        shell
            .check(
                r"printf 'a\033[1;31m\033[?25l\033[4h\033(0\033]0;open'",
                0,
                "a",
            )
            .await;
        shell.check("echo lqk", 0, "lqk\n").await;
    });
}

#[test]
fn curl_shows_its_last_state() {
    if !has("curl") {
        return;
    }
    run(async {
        let port = serve_slowly(vec![b'x'; 1_000_000]);
        let shell = Shell::bash().await;
        let seen = shell
            .command(&format!("curl -# -o /dev/null http://127.0.0.1:{port}/"))
            .await;
        let lines_of_bar = lines(&seen);
        assert!(
            matches!(lines_of_bar[..], [bar] if bar.starts_with("####") && bar.ends_with("100.0%")),
            "{seen:?}"
        );
        let seen = shell
            .command(&format!("curl -o /dev/null http://127.0.0.1:{port}/"))
            .await;
        let lines_of_meter = lines(&seen);
        assert!(
            lines_of_meter.len() == 3 && lines_of_meter[2].starts_with("100  976k  100  976k"),
            "{seen:?}"
        );
    });
}

#[test]
fn pip_shows_its_last_state() {
    if !has("python3") {
        return;
    }
    run(async {
        let shell = Shell::bash().await;
        if shell.command("python3 -m pip --version").await.status != Status::Ok {
            eprintln!("skipped: no pip");
            return;
        }
        let make = "import zipfile\nz = zipfile.ZipFile('sample-1.0-py3-none-any.whl', 'w')\nd = 'sample-1.0.dist-info/'\nz.writestr('sample.py', '#' * 3000000)\nz.writestr(d + 'METADATA', 'Metadata-Version: 2.1\\nName: sample\\nVersion: 1.0\\n')\nz.writestr(d + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\nz.writestr(d + 'RECORD', '')\nz.close()\n";
        write(&shell, "make.py", make);
        shell.check("python3 make.py", 0, "").await;
        let wheel = std::fs::read(shell.home.path().join("sample-1.0-py3-none-any.whl")).unwrap();
        let port = serve_slowly(wheel);
        let script = format!(
            "PIP_NO_INPUT=1 python3 -m pip download --no-deps --disable-pip-version-check --no-cache-dir --progress-bar on -d out http://127.0.0.1:{port}/sample-1.0-py3-none-any.whl 2>&1"
        );
        let seen = shell.command(&script).await;
        let shown = lines(&seen);
        let bars: Vec<_> = shown.iter().filter(|line| line.contains(" MB/s")).collect();
        assert!(
            bars.len() == 1 && bars[0].contains("3.0/3.0 MB"),
            "{seen:?}"
        );
        assert!(
            shown.contains(&"Successfully downloaded sample"),
            "{seen:?}"
        );
        assert!(seen.output.len() < 2000, "{seen:?}");
    });
}

#[test]
fn cargo_shows_its_last_state() {
    // The shims of rustup would look for a toolchain in the home directory.
    let cargo = env!("CARGO");
    let tools = Path::new(cargo).parent().unwrap();
    run(async {
        let shell = Shell::bash().await;
        let mut manifest = String::from(
            "[package]\nname = \"main\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\n",
        );
        write(&shell, "src/main.rs", "fn main() {}");
        for part in ["one", "two", "three"] {
            manifest.push_str(&format!("{part} = {{ path = \"{part}\" }}\n"));
            write(
                &shell,
                &format!("{part}/Cargo.toml"),
                &format!("[package]\nname = \"{part}\"\nversion = \"0.1.0\"\n"),
            );
            write(&shell, &format!("{part}/src/lib.rs"), "");
        }
        write(&shell, "Cargo.toml", &manifest);
        let script = format!(
            "export PATH='{}':$PATH CARGO_TERM_PROGRESS_WHEN=always CARGO_TERM_PROGRESS_WIDTH=80 CARGO_TERM_COLOR=always; cargo build --offline --quiet 2>&1; touch one/src/lib.rs; cargo build --offline 2>&1",
            tools.display()
        );
        let seen = shell.command(&script).await;
        let shown = lines(&seen);
        assert!(shown.len() == 3, "{seen:?}");
        assert!(
            shown[0].starts_with("   Compiling one v0.1.0 (/"),
            "{seen:?}"
        );
        assert!(
            shown[1].starts_with("   Compiling main v0.1.0 (/"),
            "{seen:?}"
        );
        assert!(
            shown[2].starts_with("    Finished `dev` profile"),
            "{seen:?}"
        );
    });
}

#[test]
fn npm_shows_its_last_state() {
    if !has("npm") {
        return;
    }
    run(async {
        let shell = Shell::bash().await;
        write(
            &shell,
            "package.json",
            r#"{"name":"a","version":"1.0.0","dependencies":{"b":"file:./b"}}"#,
        );
        write(
            &shell,
            "b/package.json",
            r#"{"name":"b","version":"1.0.0"}"#,
        );
        let seen = shell
            .command("npm install --progress --no-audit --no-fund --offline --no-update-notifier")
            .await;
        let shown = lines(&seen);
        assert!(
            shown.len() == 2 && shown[0].is_empty() && shown[1].starts_with("added 1 package in "),
            "{seen:?}"
        );
    });
}

#[test]
fn vim_shows_its_screen_while_it_runs() {
    if !has("vim") {
        return;
    }
    run(async {
        let shell = Shell::bash().await;
        write(&shell, "file", "hello\nworld\n");
        let seen = shell
            .command("echo before; vim -u NONE -i NONE -n file; echo after")
            .await;
        assert_eq!(seen.status, Status::AcceptsInput, "{seen:?}");
        let expected = format!(
            "before\nhello\nworld\n{}\"file\" 2 lines, 12 bytes",
            "~\n".repeat(37)
        );
        assert_eq!(seen.output, expected);
        let name = shell.session.full_screen_program().unwrap();
        assert!(name.starts_with("vim"), "{name}");
        let seen = shell.input("dd:wq\r").await;
        assert_eq!((seen.status, seen.exit_code), (Status::Ok, Some(0)));
        assert_eq!(shell.session.full_screen_program(), None);
        shell.check("cat file", 0, "world\n").await;
    });
}

#[test]
fn each_call_of_a_job_sees_its_whole_screen() {
    if !has("vim") {
        return;
    }
    let run = Karyi::new().file("file", "hello\nworld\n").stdin(
        "<tools><command>vim -u NONE -i NONE -n file</command><input>dd</input>\
         <input>:q!\n</input><command>echo end</command></tools>",
    );
    let report = run.run().stdout();
    let report = roxmltree::Document::parse(&report).unwrap();
    let results = report
        .descendants()
        .filter(|node| node.has_tag_name("output"));
    let texts: Vec<&str> = results
        .map(|node| node.text().unwrap_or_default())
        .collect();
    let shown = format!(
        "hello\nworld\n{}\"file\" 2 lines, 12 bytes",
        "~\n".repeat(37)
    );
    assert_eq!(
        (texts[0], &texts[2..]),
        (shown.as_str(), &["", "end\n"][..])
    );
    assert!(texts[1].starts_with("world\n~\n~\n"), "{texts:?}");
}

#[test]
fn less_pages() {
    if !has("less") {
        return;
    }
    run(async {
        let shell = Shell::bash().await;
        let seen = shell
            .command("seq 100 >numbers; seq 2 | cat; TERM=xterm less numbers")
            .await;
        let page =
            |from: u32, to: u32| -> String { (from..=to).map(|n| format!("{n}\n")).collect() };
        assert_eq!(seen.status, Status::AwaitingInput);
        assert_eq!(seen.output, format!("1\n2\n{}numbers", page(1, 39)));
        assert_eq!(shell.session.full_screen_program().as_deref(), Some("less"));
        let seen = shell.input(" ").await;
        assert!(seen.output.ends_with("77\n78\n:"), "{seen:?}");
        let seen = shell.input("q").await;
        assert_eq!(seen.brief(), (Status::Ok, Some(0), ""));
    });
}

#[test]
fn top_shows_one_screen() {
    if !has("top") {
        return;
    }
    run(async {
        let shell = Shell::bash().await;
        let seen = shell.command("top -d 60").await;
        assert_eq!(seen.status, Status::AcceptsInput, "{seen:?}");
        let shown: Vec<&str> = seen.output.lines().collect();
        assert!(
            shown[0].starts_with("top - ") && shown.len() <= 40,
            "{seen:?}"
        );
        assert!(
            shown.iter().all(|line| line.trim_end() == *line),
            "{seen:?}"
        );
        let heading = shown
            .iter()
            .position(|line| line.trim_start().starts_with("PID USER"));
        assert_eq!(heading, Some(6), "{seen:?}");
        let seen = shell.input("q").await;
        assert_eq!((seen.status, seen.output.trim()), (Status::Ok, ""));
    });
}

#[test]
fn line_feeds_of_curses_go_straight_down() {
    run(async {
        let shell = Shell::bash().await;
        let script = "python3 -c 'import curses\ndef draw(s):\n s.addstr(1, 5, \"abc\"); s.addstr(2, 8, \"def\"); s.addstr(3, 11, \"g\"); s.refresh(); s.getch()\ncurses.wrapper(draw)'";
        let seen = shell.command(script).await;
        assert_eq!(seen.status, Status::AwaitingInput, "{seen:?}");
        assert_eq!(seen.output, "\n     abc\n        def\n           g");
        let seen = shell.input("q").await;
        assert_eq!(seen.brief(), (Status::Ok, Some(0), ""));
    });
}

/// A program that asks where the cursor is; `%s` says how it treats the terminal first.
fn asking(modes: &str) -> String {
    format!(
        "import os, select, sys, termios, tty\nold = termios.tcgetattr(0)\n{modes}\nos.write(1, b'ab\\x1b[6n')\nready = select.select([0], [], [], 0.5 if old == termios.tcgetattr(0) else 20)[0]\nanswer = os.read(0, 100) if ready else b''\ntermios.tcsetattr(0, termios.TCSADRAIN, old)\nprint(ascii(answer))\n"
    )
}

#[test]
fn a_program_that_asks_for_the_cursor_is_answered() {
    run(async {
        let shell = Shell::bash().await;
        write(&shell, "ask.py", &asking("tty.setraw(0)"));
        let script = "seq 50; python3 ask.py | cat";
        shell
            .check("echo; python3 ask.py", 0, "\nabb'\\x1b[2;3R'\n")
            .await;
        let seen = shell.command(script).await;
        assert!(seen.output.ends_with("50\nabb'\\x1b[40;3R'\n"), "{seen:?}");
    });
}

#[test]
fn a_terminal_that_shows_what_is_typed_answers_nothing() {
    run(async {
        let shell = Shell::bash().await;
        write(&shell, "ask.py", &asking(""));
        shell.check("python3 ask.py", 0, "abb''\n").await;
        // Hidden, but gathered into lines: the answer would become a part of a password.
        let script = r"stty -echo; printf '\033[6n\033[c'; read -r x; stty echo; echo [$x]";
        let seen = shell.command(script).await;
        assert_eq!(
            (seen.status, seen.progress.echo),
            (Status::AwaitingInput, Some(false))
        );
        let secret = InputRequest {
            is_secret: true,
            ..InputRequest::default()
        };
        let seen = shell.try_input("word\n", secret).await.unwrap();
        assert_eq!(seen.brief(), (Status::Ok, Some(0), "[word]\n"));
    });
}

#[test]
fn an_answer_nobody_reads_does_not_reach_the_next_command() {
    run(async {
        let shell = Shell::bash().await;
        let ask = r"stty raw -echo; printf '\033[6n\033[c\033[5n'; sleep 0.2";
        shell.check(ask, 0, "").await;
        let seen = shell.command("read -r x; echo [$x]").await;
        assert_eq!(seen.brief(), (Status::AwaitingInput, None, ""));
        let seen = shell.input("mine\n").await;
        assert_eq!(seen.brief(), (Status::Ok, Some(0), "mine\n[mine]\n"));
    });
}

#[test]
fn questions_without_end_stop_nothing() {
    run(async {
        let shell = Shell::bash().await;
        let script =
            r#"stty raw -echo; python3 -c 'print("\x1b[6n" * 500000)'; stty sane; echo end"#;
        let seen = shell.command(script).await;
        assert_eq!(lines(&seen), ["", "end"]);
    });
}
