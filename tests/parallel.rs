//! Calls overlap where nobody can see it, and never where somebody could.

use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use crate::harness::{Karyi, results};

/// Runs a script and returns its results without their durations, and the files it left.
fn outcome(attributes: &str, calls: &[String]) -> (Value, Vec<(String, String)>) {
    let karyi = Karyi::new()
        .file("a.txt", "0\n")
        .file("d/b.txt", "0\n")
        .arg("--json");
    let work = karyi.work();
    let script = format!("<tools{attributes}>\n{}\n</tools>", calls.join("\n"));
    let ran = karyi.stdin(script).run();
    let files = ["a.txt", "d/b.txt", "d/new.txt", "hard.txt"]
        .iter()
        .filter_map(|name| {
            let text = std::fs::read_to_string(work.join(name)).ok()?;
            Some(((*name).to_owned(), text))
        });
    let files = files.collect();
    (ran.json(), files)
}

fn call(pick: usize, step: usize) -> String {
    let files = ["a.txt", "d/b.txt", "./d/../a.txt", "link.txt", "hard.txt"];
    let file = files[step % files.len()];
    match pick {
        0 => format!(
            "<edit><file src=\"{file}\"><find>{}</find><replace>{}</replace></file></edit>",
            step % 3,
            (step + 1) % 3
        ),
        1 => format!("<read><file src=\"{file}\"/></read>"),
        2 => format!("<command>echo {} >> a.txt</command>", step % 3),
        3 => "<command>cd d 2>/dev/null || cd ..</command>".to_owned(),
        4 => "<read><file src=\".\"/><search pattern=\"0\"/></read>".to_owned(),
        5 => "<command>ln -sf a.txt link.txt; ln -f d/b.txt hard.txt</command>".to_owned(),
        _ => format!(
            "<edit><file src=\"d/new.txt\"><find></find><replace>{step}</replace></file></edit>"
        ),
    }
}

#[test]
fn every_block_is_as_if_sequential() {
    let cases = if std::env::var_os("KARYI_FULL").is_some() {
        200
    } else {
        5
    };
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        ..Config::default()
    });
    let picks = proptest::collection::vec((0..7usize, 0..12usize), 1..14);
    runner
        .run(&picks, |picks| {
            let calls: Vec<String> = picks
                .iter()
                .map(|(pick, step)| call(*pick, *step))
                .collect();
            let (auto, auto_files) = outcome("", &calls);
            let (sequential, sequential_files) = outcome(" order=\"sequential\"", &calls);
            proptest::prop_assert_eq!(auto, sequential);
            proptest::prop_assert_eq!(auto_files, sequential_files);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_question_does_not_wait_for_a_command() {
    let script = "<tools><command>read -r x &lt; gate; echo $x</command>\
        <get_value key=\"PIN_CODE\" reason=\"to show that it is asked at once\"/></tools>";
    let karyi = Karyi::with_args(&["run", "--format", "xml", "a.xml"]).file("a.xml", script);
    let gate = karyi.work().join("gate");
    nix::unistd::mkfifo(&gate, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut terminal = karyi.on_terminal();
    terminal.expect("value (hidden").answer("12345678");
    std::fs::write(&gate, "opened\n").unwrap();
    let (screen, status) = terminal.end();
    assert!(
        screen.contains("opened") && screen.contains("status=\"provided\""),
        "{screen}"
    );
    assert_eq!(status, 0);
}

#[test]
fn results_stand_in_document_order() {
    let reads: String = (0..50)
        .map(|i| format!("<read id=\"r{i}\"><file src=\"f{}\"/></read>", i % 7))
        .collect();
    let mut karyi = Karyi::new().arg("--json");
    for i in 0..7 {
        karyi = karyi.file(&format!("f{i}"), "x".repeat(i * 10_000));
    }
    let report = karyi
        .stdin(format!("<tools>{reads}</tools>"))
        .run()
        .exit(0)
        .json();
    let ids: Vec<_> = results(&report)
        .iter()
        .map(|r| r["id"].as_str().unwrap().to_owned())
        .collect();
    let expected: Vec<_> = (0..50).map(|i| format!("r{i}")).collect();
    assert_eq!(ids, expected);
}

#[test]
fn one_failure_leaves_its_siblings_alone() {
    let report = Karyi::new()
        .file("a", "1")
        .arg("--json")
        .stdin("<tools><read><file src=\"gone\"/></read><read><file src=\"a\"/></read><command>echo ok</command></tools>")
        .run()
        .exit(1)
        .json();
    let statuses: Vec<_> = results(&report)
        .iter()
        .map(|r| r["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["error", "ok", "ok"]);
}

#[test]
fn ctrl_c_interrupts_the_job_and_skips_later_calls() {
    let script = "<tools><command>bash -c 'echo first; sleep 100'</command><command>echo second</command></tools>";
    let karyi = Karyi::with_args(&["run", "a.xml"]).file("a.xml", script);
    let mut terminal = karyi.on_terminal();
    terminal
        .expect("\nfirst")
        .keys("\x03")
        .expect("exit status 130");
    let (screen, status) = terminal.end();
    assert!(screen.contains("skipped[cancelled]"), "{screen}");
    assert!(!screen.contains("\nsecond"), "{screen}");
    assert_eq!(status, 130);
}

#[test]
fn sigterm_ends_every_job() {
    let karyi = Karyi::with_args(&["run", "a.xml"]).file(
        "a.xml",
        "<tools><command>echo $$ up; sleep 100</command></tools>",
    );
    let mut terminal = karyi.on_terminal();
    terminal.expect(" up");
    let pid = nix::unistd::Pid::from_raw(terminal.pid());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let (_, status) = terminal.end();
    assert_eq!(status, 143);
}

/// A file with a line for each of `count` writers, and the calls that change one line each.
fn slots(count: usize) -> (String, Vec<String>) {
    let file = (0..count).map(|i| format!("slot {i} = 0\n")).collect();
    let call = |i: usize| {
        format!(
            "<edit><file src=\"f\"><find>slot {i} = 0\n</find><replace>slot {i} = 1\n</replace></file></edit>"
        )
    };
    (file, (0..count).map(call).collect())
}

#[test]
fn edits_of_one_file_in_one_block_are_all_applied() {
    let (before, calls) = slots(64);
    let script = format!("<tools>{}</tools>", calls.concat());
    Karyi::new()
        .file("f", &before)
        .stdin(script)
        .run()
        .exit(0)
        .file("f", before.replace("= 0", "= 1"));
}

#[test]
fn edits_of_one_file_by_many_processes_are_all_applied() {
    let (before, calls) = slots(64);
    let karyi = Karyi::new().file("f", &before).file("probe", "");
    let mut children: Vec<_> = calls
        .iter()
        .map(|call| {
            let mut command = karyi.command();
            command.arg("-c").arg(format!("<tools>{call}</tools>"));
            command.stdout(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    karyi
        .stdin("<tools></tools>")
        .run()
        .file("f", before.replace("= 0", "= 1"))
        .tree(&["f", "probe"]);
}

#[test]
fn edits_by_processes_with_different_homes_are_all_applied() {
    let (before, calls) = slots(64);
    let karyi = Karyi::new().file("f", &before);
    let homes = tempfile::tempdir().unwrap();
    let run = |(index, call): (usize, &String)| {
        let home = homes.path().join(index.to_string());
        let mut command = karyi.command();
        command.arg("-c").arg(format!("<tools>{call}</tools>"));
        command.env("KARYI_HOME", &home).env("TMPDIR", &home);
        command.stdout(std::process::Stdio::null()).spawn().unwrap()
    };
    let mut children: Vec<_> = calls.iter().enumerate().map(run).collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    karyi
        .stdin("<tools></tools>")
        .run()
        .file("f", before.replace("= 0", "= 1"));
}
