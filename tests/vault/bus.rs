//! A private message bus with the keyring a test wants on it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use crate::harness::skip;

/// How long a daemon may take to be there on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Who answers for the keyring.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Nobody.
    None,
    /// A program that never answers.
    Hangs,
    /// gnome-keyring, unlocked.
    Unlocked,
    /// gnome-keyring, started on demand and locked.
    Locked,
    /// The same, and the program that would ask for the password never does.
    Prompts,
}

/// How often each call came over a bus, by its name.
pub struct Calls(BTreeMap<String, usize>);

impl Calls {
    fn of(heard: impl Iterator<Item = String>) -> Self {
        let mut calls = BTreeMap::new();
        for line in heard.filter(|line| line.starts_with("mc\t")) {
            if let Some((_, member)) = line.rsplit_once('\t') {
                *calls.entry(member.to_owned()).or_default() += 1;
            }
        }
        Self(calls)
    }

    /// How often this was called.
    pub fn count(&self, member: &str) -> usize {
        self.0.get(member).copied().unwrap_or_default()
    }
}

/// A bus; it and its keyring end with it.
pub struct Bus {
    pub address: String,
    daemons: Vec<Child>,
}

impl Bus {
    /// Starts a bus whose keyring keeps its files in `home`; nothing when a program is missing.
    pub fn start(home: &Path, provider: Provider) -> Option<Self> {
        for program in ["dbus-daemon", "dbus-send", "gnome-keyring-daemon"] {
            if !is_there(program) {
                skip(&format!("no {program}"));
                return None;
            }
        }
        let directory = home.join("bus");
        let services = directory.join("services");
        fs::create_dir_all(&services).unwrap();
        fs::create_dir_all(home.join("run")).unwrap();
        let exec = match provider {
            Provider::None | Provider::Unlocked => None,
            Provider::Hangs => Some("/bin/sleep 90"),
            Provider::Locked | Provider::Prompts => {
                Some("/usr/bin/gnome-keyring-daemon --start --foreground --components=secrets")
            }
        };
        let service = services.join("org.freedesktop.secrets.service");
        let _ = fs::remove_file(&service);
        if let Some(exec) = exec {
            let text = format!("[D-BUS Service]\nName=org.freedesktop.secrets\nExec={exec}\n");
            fs::write(&service, text).unwrap();
        }
        let prompter = services.join("org.gnome.keyring.SystemPrompter.service");
        let _ = fs::remove_file(&prompter);
        if provider == Provider::Prompts {
            let text =
                "[D-BUS Service]\nName=org.gnome.keyring.SystemPrompter\nExec=/bin/sleep 90\n";
            fs::write(&prompter, text).unwrap();
        }
        let config = directory.join("config.xml");
        fs::write(&config, configuration(&directory, &services, provider)).unwrap();
        let mut daemon = command(home, "dbus-daemon", None)
            .arg(format!("--config-file={}", config.display()))
            .args(["--nofork", "--print-address=1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(daemon.stdout.take().unwrap())
            .read_line(&mut address)
            .unwrap();
        let mut bus = Self {
            address: address.trim().to_owned(),
            daemons: vec![daemon],
        };
        if provider == Provider::Unlocked {
            bus.unlocked(home);
        }
        Some(bus)
    }

    /// Returns the process that keeps the keyring, when it was started with the bus.
    pub fn keyring(&self) -> Option<Pid> {
        let daemon = self.daemons.get(1)?;
        Some(Pid::from_raw(i32::try_from(daemon.id()).ok()?))
    }

    /// Does something and returns which calls came over the bus meanwhile; nothing when nobody can listen.
    pub fn calls(&self, home: &Path, work: impl FnOnce()) -> Option<Calls> {
        if !is_there("dbus-monitor") {
            skip("no dbus-monitor");
            return None;
        }
        let mut monitor = command(home, "dbus-monitor", Some(&self.address))
            .args(["--session", "--profile"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(monitor.stdout.take().unwrap()).lines();
        let mut lines = lines.by_ref().map(Result::unwrap);
        // A bus takes the name of whoever only listens.
        lines.find(|line| line.ends_with("\tNameLost")).unwrap();
        work();
        self.has_keyring(home);
        let heard = lines.take_while(|line| !line.ends_with("\tNameHasOwner"));
        let calls = Calls::of(heard);
        let _ = monitor.kill();
        let _ = monitor.wait();
        Some(calls)
    }

    fn unlocked(&mut self, home: &Path) {
        let mut daemon = command(home, "gnome-keyring-daemon", Some(&self.address))
            .args(["--unlock", "--components=secrets", "--foreground"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        daemon.stdin.take().unwrap().write_all(b"pw").unwrap();
        self.daemons.push(daemon);
        let deadline = Instant::now() + LIMIT;
        while !self.has_keyring(home) {
            assert!(Instant::now() < deadline, "the keyring does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn has_keyring(&self, home: &Path) -> bool {
        let output = command(home, "dbus-send", Some(&self.address))
            .args([
                "--session",
                "--print-reply",
                "--dest=org.freedesktop.DBus",
                "/",
            ])
            .args([
                "org.freedesktop.DBus.NameHasOwner",
                "string:org.freedesktop.secrets",
            ])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).contains("boolean true")
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        // The keyring first: it would start to complain about the bus.
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

fn command(home: &Path, program: &str, address: Option<&str>) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", std::env::var("PATH").unwrap_or_default())
        .env("HOME", home.join("home"))
        .env("XDG_RUNTIME_DIR", home.join("run"))
        .env("TMPDIR", home.join("tmp"));
    if let Some(address) = address {
        command.env("DBUS_SESSION_BUS_ADDRESS", address);
    }
    command
}

fn configuration(directory: &Path, services: &Path, provider: Provider) -> String {
    // A bus gives up a program that it starts and that does not come, usually after 25 seconds.
    let limit = match provider {
        Provider::Prompts => "<limit name=\"service_start_timeout\">4000</limit>",
        _ => "",
    };
    format!(
        "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\" \
         \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n\
         <busconfig><type>session</type><listen>unix:path={}</listen><servicedir>{}</servicedir>\
         <policy context=\"default\"><allow send_destination=\"*\" eavesdrop=\"true\"/>\
         <allow eavesdrop=\"true\"/><allow own=\"*\"/></policy>{limit}</busconfig>",
        directory.join("socket").display(),
        services.display()
    )
}

/// Whether a program is on the PATH.
pub fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir: PathBuf| dir.join(program).is_file())
}
