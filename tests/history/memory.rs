//! What an undo takes of memory.

use std::io::Read;
use std::process::{Command, Stdio};

use nix::fcntl::{FcntlArg, fcntl};

use crate::harness::Karyi;

use super::{read, run, text};

/// Bytes of the pipe that takes the output: less than is printed, so that the program waits before it ends.
const PIPE_BYTES: i32 = 4096;

/// Edits every tenth line of a file of so many bytes, takes that back, and returns the most memory that took, in KiB.
fn peak_of_undo(bytes: usize) -> u64 {
    let line = |n: usize| format!("{n:07} {}{}\n", "a line of text ".repeat(3), n % 10);
    let before: String = (0..bytes / line(0).len()).map(line).collect();
    let karyi = Karyi::new().file("a", &before);
    let pair = "<find> 7\n</find><replace> seven\n</replace>".replace(' ', "");
    let pair = pair.replace("<find>", "<find all=\"true\">");
    let pair = pair
        .replace("7\n", "text 7\n")
        .replace("seven", "text seven");
    let script =
        format!("<tools xml:space=\"preserve\"><edit><file src=\"a\">{pair}</file></edit></tools>");
    text(&run(&karyi, &script), 0);
    assert_ne!(read(&karyi, "a").unwrap().len(), before.len());
    let prepared = karyi.command();
    let envs = prepared.get_envs();
    let mut child = Command::new(crate::harness::program())
        .arg("undo")
        .env_clear()
        .envs(envs.filter_map(|(key, value)| Some((key, value?))))
        .current_dir(karyi.work())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    fcntl(&stdout, FcntlArg::F_SETPIPE_SZ(PIPE_BYTES)).unwrap();
    let mut printed = vec![0];
    stdout.read_exact(&mut printed).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    stdout.read_to_end(&mut printed).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(printed.len() > 2 * PIPE_BYTES as usize, "{}", printed.len());
    assert!(read(&karyi, "a").is_some_and(|after| after == before));
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap()
}

#[test]
fn an_undo_takes_about_twice_the_size_of_the_file() {
    let (small, large) = (4 << 20, 16 << 20);
    let (base, peak) = (peak_of_undo(small), peak_of_undo(large));
    let more = (peak - base) * 1024;
    let times = more as f64 / (large - small) as f64;
    println!("{base} KiB for {small} bytes, {peak} KiB for {large}: {times:.2} times what is more");
    assert!(times < 2.5, "{times:.2}");
}
