//! What the system shows of a value while karyi holds it, and what is left on disk.

use std::path::Path;

use crate::harness::Karyi;

const VALUE: &str = "Zq7-unseen/Val+ue_ProcessTest-41";

/// Returns the files below a directory that hold the value.
fn files_with_value(dir: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files_with_value(&path, found),
            Ok(kind) if kind.is_file() => {
                let bytes = std::fs::read(&path).unwrap_or_default();
                if memchr::memmem::find(&bytes, VALUE.as_bytes()).is_some() {
                    found.push(path.display().to_string());
                }
            }
            _ => {}
        }
    }
}

/// Returns where in `/proc` the value stands, in arguments and environments.
fn processes_with_value() -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        for file in ["cmdline", "environ"] {
            let path = entry.path().join(file);
            let bytes = std::fs::read(&path).unwrap_or_default();
            if memchr::memmem::find(&bytes, VALUE.as_bytes()).is_some() {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

#[test]
fn a_value_is_in_no_process_and_no_file() {
    let script = "<tools><get_value key=\"PW\" reason=\"a test\"/></tools>\n\
        <tools><command>HISTFILE=$HOME/history; set -o history; v=$KARYI{PW}; echo \"$v\"; [ \"$v\" = x ]; \
        history -a; echo core $(ulimit -c); : &gt; ready; read -r x &lt; gate</command></tools>";
    let karyi = Karyi::with_args(&["run", "--format", "xml", "a.xml"]).file("a.xml", script);
    let work = karyi.work();
    nix::unistd::mkfifo(&work.join("gate"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut terminal = karyi.on_terminal();
    terminal.expect("value (hidden").answer(VALUE);
    terminal.expect("provided");
    while !work.join("ready").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(processes_with_value(), Vec::<String>::new());
    let mut files = Vec::new();
    files_with_value(work.parent().unwrap(), &mut files);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", terminal.pid())).unwrap();
    let core = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"));
    let soft = core.and_then(|line| line.split_whitespace().nth(4));
    std::fs::write(work.join("gate"), "go\n").unwrap();
    let (screen, status) = terminal.end();
    assert_eq!(status, 0, "{screen}");
    assert_eq!(files, Vec::<String>::new());
    assert_eq!(soft, Some("0"), "{limits}");
    assert!(
        screen.contains("$KARYI{PW}") && !screen.contains(&VALUE[..12]),
        "{screen}"
    );
    assert!(screen.contains("core 0"), "{screen}");
}
