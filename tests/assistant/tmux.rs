//! The program in a window of tmux, which wraps its lines anew when it is resized.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::harness::Karyi;

/// How long a test waits for a screen before it fails.
const LIMIT: Duration = Duration::from_secs(60);

/// A window of tmux with the program in it.
pub struct Tmux {
    socket: std::path::PathBuf,
    _karyi: Karyi,
    _home: tempfile::TempDir,
}

impl Tmux {
    /// Starts the program; nothing where there is no tmux.
    pub fn start(karyi: Karyi, columns: u16, rows: u16) -> Option<Self> {
        Command::new("tmux").arg("-V").output().ok()?;
        let home = tempfile::tempdir().unwrap();
        let tmux = Self {
            socket: home.path().join("socket"),
            _karyi: karyi,
            _home: home,
        };
        let command = tmux._karyi.command();
        let mut words = vec!["exec env -i".to_owned()];
        for (key, value) in command.get_envs() {
            let value = value.unwrap_or_default().to_string_lossy();
            if key != "TERM" {
                words.push(quoted(&format!("{}={value}", key.display())));
            }
        }
        words.push("TERM=tmux-256color".into());
        words.push(quoted(&command.get_program().to_string_lossy()));
        words.extend(command.get_args().map(|arg| quoted(&arg.to_string_lossy())));
        let size = [columns.to_string(), rows.to_string()];
        let work = tmux._karyi.work();
        let work = work.to_str().unwrap();
        let [columns, rows] = &size;
        // Without an attached client the size is the given one.
        let start = [
            "new-session",
            "-d",
            "-s",
            "a",
            "-c",
            work,
            "-x",
            columns,
            "-y",
            rows,
        ];
        let script = words.join(" ");
        let started = tmux.run(&[&start[..], &[&script]].concat());
        assert!(started.status.success(), "{started:?}");
        tmux.run(&["set-option", "-g", "status", "off"]);
        tmux.run(&["set-option", "-g", "remain-on-exit", "on"]);
        Some(tmux)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut tmux = Command::new("tmux");
        tmux.args(["-f", "/dev/null", "-S"]).arg(&self.socket);
        tmux.env_remove("TMUX").env("LC_ALL", "C.UTF-8");
        tmux.args(arguments).output().unwrap()
    }

    /// Sets the size of the window.
    pub fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.run(&["resize-window", "-t", "a", "-x", &columns, "-y", &rows]);
    }

    /// Types a text.
    pub fn text(&self, text: &str) {
        self.run(&["send-keys", "-t", "a", "-l", text]);
    }

    /// Types a key by its name.
    pub fn key(&self, name: &str) {
        self.run(&["send-keys", "-t", "a", name]);
    }

    /// Returns the screen with everything that has scrolled away; lines that were wrapped are whole.
    pub fn all(&self) -> String {
        let output = self.run(&["capture-pane", "-p", "-J", "-S", "-", "-t", "a"]);
        let text = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.join("\n")
    }

    /// Waits until the visible part of the screen is so.
    #[track_caller]
    pub fn wait_visible(&self, is_so: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + LIMIT;
        loop {
            let output = self.run(&["capture-pane", "-p", "-t", "a"]);
            let screen = String::from_utf8(output.stdout).unwrap();
            if is_so(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "it never came to it:\n{screen}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns the visible part of the screen with its colours.
    pub fn in_colour(&self) -> String {
        let output = self.run(&["capture-pane", "-e", "-p", "-t", "a"]);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns the column and the row of the cursor.
    pub fn cursor(&self) -> String {
        self.value("#{cursor_x},#{cursor_y}")
    }

    /// Waits for the end of the program; tmux does not always know its exit status.
    pub fn wait_for_end(&self) {
        crate::harness::process::wait_until(|| self.value("#{pane_dead}") == "1");
    }

    fn value(&self, format: &str) -> String {
        let output = self.run(&["display-message", "-p", "-t", "a", format]);
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Waits until the screen is so.
    #[track_caller]
    pub fn wait(&self, is_so: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + LIMIT;
        loop {
            let screen = self.all();
            if is_so(&screen) {
                return screen;
            }
            assert!(Instant::now() < deadline, "it never came to it:\n{screen}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
