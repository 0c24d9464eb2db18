//! What a run was measured on.

use std::process::Command;

/// Says the day, the machine, the kernel and the versions of the programs that take part.
pub(crate) fn describe() -> String {
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = processor
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("", |line| line.trim_start_matches([' ', '\t', ':']));
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = first_line("uname", &["-sr"]).unwrap_or_default();
    let day = first_line("date", &["+%Y-%m-%d"]).unwrap_or_default();
    let versions: Vec<String> = [
        ("bash", "--version"),
        ("tmux", "-V"),
        ("python3", "--version"),
    ]
    .iter()
    .filter_map(|(program, argument)| first_line(program, &[argument]))
    .collect();
    format!(
        "{day}; {count} × {processor}; {kernel}; {}; karyi {}",
        versions.join("; "),
        env!("CARGO_PKG_VERSION")
    )
}

/// Whether a program is on this machine.
pub(crate) fn has_program(name: &str) -> bool {
    first_line(name, &["--version"]).is_some()
}

fn first_line(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Some(text.lines().next()?.trim().to_owned())
}
