//! A person at a terminal: the program on a PTY, keys in, screen out.

use std::fs::File;
use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use nix::sys::termios::{
    LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr,
};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};

use super::Karyi;

/// How long a test waits for a text before it fails.
const LIMIT: Duration = Duration::from_secs(60);

/// The program on a terminal.
pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    writer: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    seen: String,
    /// Closing it would hang up the program.
    master: Box<dyn MasterPty + Send>,
    _karyi: Karyi,
}

impl Karyi {
    /// Starts the program on a terminal.
    pub fn on_terminal(self) -> Terminal {
        self.start("")
    }

    /// Starts the program on a terminal, behind a pipe of a shell: `cat a.xml |`.
    pub fn on_terminal_through(self, pipe: &str) -> Terminal {
        self.start(pipe)
    }

    fn start(self, pipe: &str) -> Terminal {
        let size = PtySize {
            rows: 40,
            cols: 100,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let prepared = self.command();
        let mut command = CommandBuilder::new(if pipe.is_empty() {
            prepared.get_program().to_owned()
        } else {
            "sh".into()
        });
        if !pipe.is_empty() {
            command.args(["-c", &format!("{pipe} \"$0\" \"$@\"")]);
            command.arg(prepared.get_program());
        }
        command.args(prepared.get_args());
        command.cwd(self.work());
        command.env_clear();
        for (key, value) in prepared.get_envs() {
            if let Some(value) = value {
                command.env(key, value);
            }
        }
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Terminal {
            child,
            writer: pair.master.take_writer().unwrap(),
            output,
            seen: String::new(),
            master: pair.master,
            _karyi: self,
        }
    }
}

impl Terminal {
    /// Waits until a text is on the screen.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> &mut Self {
        let deadline = Instant::now() + LIMIT;
        while !self.seen.contains(text) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(error) => panic!("{error} before {text:?}: {:?}", self.seen),
            }
        }
        self
    }

    /// Waits until one of two texts is on the screen; returns true for the first one.
    #[track_caller]
    pub fn expect_first(&mut self, one: &str, other: &str) -> bool {
        let deadline = Instant::now() + LIMIT;
        loop {
            if self.seen.contains(one) {
                return true;
            }
            if self.seen.contains(other) {
                return false;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(error) => panic!("{error} before {one:?} or {other:?}: {:?}", self.seen),
            }
        }
    }

    /// Returns what was seen so far.
    pub fn screen(&self) -> String {
        self.seen.clone()
    }

    /// Sets the size of the terminal.
    pub fn resize(&self, columns: u16, rows: u16) {
        let size = PtySize {
            rows,
            cols: columns,
            pixel_width: 0,
            pixel_height: 0,
        };
        self.master.resize(size).unwrap();
    }

    /// Forgets what was seen so far.
    pub fn forget(&mut self) -> &mut Self {
        self.seen.clear();
        self
    }

    /// Types keys.
    pub fn keys(&mut self, keys: &str) -> &mut Self {
        self.writer.write_all(keys.as_bytes()).unwrap();
        self.writer.flush().unwrap();
        self
    }

    /// Answers the question that stands on the screen, for this session.
    pub fn answer(&mut self, value: &str) -> &mut Self {
        self.expect("value (hidden").keys(value).keys("\r");
        self.expect("keep it:").keys("\r");
        // The next question has a place for its value and a choice of its own.
        self.seen = self.seen.replace("keep it:", "kept:");
        self.seen = self.seen.replace("value (hidden", "value (was hidden");
        self
    }

    /// Whether the terminal shows what is typed.
    pub fn is_echoing(&self) -> bool {
        let modes = self.master.get_termios().unwrap();
        modes.local_flags.bits() & LocalFlags::ECHO.bits() != 0
    }

    /// Lets the terminal show what is typed, as a shell does that has it while the program is stopped.
    pub fn show_typing(&self) {
        self.set_modes(|modes| modes.local_flags |= LocalFlags::ECHO | LocalFlags::ICANON);
    }

    /// Sets modes of the terminal; returns it.
    pub fn set_modes(&self, change: impl Fn(&mut Termios)) -> File {
        let path = self.master.tty_name().unwrap();
        let terminal = File::options().read(true).write(true).open(path).unwrap();
        let mut modes = tcgetattr(&terminal).unwrap();
        change(&mut modes);
        tcsetattr(&terminal, SetArg::TCSANOW, &modes).unwrap();
        terminal
    }

    /// Returns the modes of the terminal.
    pub fn modes(&self) -> Termios {
        tcgetattr(self.set_modes(|_| {})).unwrap()
    }

    /// Takes the terminal away, as a window that is closed, and returns the exit status.
    #[track_caller]
    pub fn hang_up(self) -> u32 {
        // Closing the writer would type the end of the input.
        let end = SpecialCharacterIndices::VEOF as usize;
        let mut terminal = self.set_modes(|modes| modes.control_chars[end] = 0);
        let Self {
            mut child,
            writer,
            output,
            master,
            ..
        } = self;
        drop((writer, output));
        // The reader has the terminal open as well, and ends with the first text that nobody takes.
        terminal.write_all(b"\r\n").unwrap();
        drop((terminal, master));
        let deadline = Instant::now() + LIMIT;
        while Instant::now() < deadline {
            if let Some(status) = child.try_wait().unwrap() {
                return status.exit_code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = child.kill();
        panic!("it goes on without its terminal");
    }

    /// Waits for the end of the program; returns whether the terminal shows what is typed then, and
    /// the exit status.
    pub fn echo_at_end(mut self) -> (bool, u32) {
        let status = self.child.wait().unwrap();
        (self.is_echoing(), status.exit_code())
    }

    /// Waits for the end of the program.
    pub fn wait(&mut self) {
        self.child.wait().unwrap();
    }

    /// Returns the process id of the program.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.process_id().unwrap()).unwrap()
    }

    /// Waits for the end; returns everything that was on the screen and the exit status.
    pub fn end(mut self) -> (String, u32) {
        let deadline = Instant::now() + LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                Err(error) => panic!("{error}: {:?}", self.seen),
            }
        }
        let status = self.child.wait().unwrap();
        (self.seen, status.exit_code())
    }
}
