//! The files of jobs and of long outputs: what is in them, in which order, under which id.

use serde_json::{Value, json};

use super::{field, jobs, reports};
use crate::harness::results;

/// What a `<read>` of one file has shown.
fn shown(report: &Value, index: usize) -> &str {
    let file = &results(report)[index]["files"][0];
    file["output"]
        .as_str()
        .unwrap_or_else(|| panic!("{report}"))
}

/// Returns id and state of every job of a report.
fn states(report: &Value) -> Vec<(String, String)> {
    let word = |job: &Value, key: &str| job[key].as_str().unwrap().to_owned();
    let jobs = jobs(report);
    let jobs = jobs.as_array().into_iter().flatten();
    jobs.map(|job| (word(job, "id"), word(job, "state")))
        .collect()
}

fn state(id: &str, state: &str) -> (String, String) {
    (id.to_owned(), state.to_owned())
}

/// It prints during the commands and between them.
#[test]
fn a_file_has_its_lines_in_the_order_they_were_printed_in() {
    let start = "<command>(i=0; until [ -e stop ]; do i=$((i+1)); echo T$i; sleep 0.002; done; echo T$((i+1)) end) &amp;</command>";
    let commands: String = (1..=30)
        .map(|n| format!("<command>sleep 0.01; echo x{n}</command>"))
        .collect();
    let reports = reports(&[
        start,
        &commands,
        &commands,
        "<command>touch stop; wait</command><read><file src=\"job:1\"/></read>",
    ]);
    let text = shown(&reports[3], 1);
    let numbers = |prefix: char| -> Vec<u32> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
        let first = lines.filter_map(|line| line.split(' ').next());
        first.map(|number| number.parse().unwrap()).collect()
    };
    let ticks = numbers('T');
    let last = u32::try_from(ticks.len()).unwrap();
    assert_eq!(ticks, (1..=last).collect::<Vec<_>>(), "{text}");
    assert!(text.contains(&format!("T{last} end\n")), "{text}");
    let twice: Vec<u32> = (1..=30).chain(1..=30).collect();
    assert_eq!(numbers('x'), twice, "{text}");
}

#[test]
fn a_file_begins_with_what_was_printed_since_its_command_began() {
    let reports = reports(&[
        "<command>echo older</command>\
         <command id=\"s\">(echo first; touch up; until [ -e go ]; do sleep 0.02; done; echo second) &amp; sleep 100 &amp; until [ -e up ]; do sleep 0.02; done; echo now</command>\
         <read><file src=\"job:s\"/></read><read><file src=\"job:s-2\"/></read>",
        "<command>touch go; wait %1</command>\
         <read><file src=\"job:s\"/></read><read><file src=\"job:s-2\"/></read>",
    ]);
    assert_eq!(states(&reports[0])[1], state("s-2", "running"));
    let begin = "first\nnow\n";
    assert_eq!(
        (shown(&reports[0], 2), shown(&reports[0], 3)),
        (begin, begin)
    );
    for file in [shown(&reports[1], 1), shown(&reports[1], 2)] {
        assert!(file.starts_with("first\nnow\nsecond\n"), "{file}");
    }
}

#[test]
fn a_long_output_and_what_the_job_prints_later_are_one_file() {
    let reports = reports(&[
        "<command>seq 1 50000; (until [ -e go ]; do sleep 0.02; done; echo later) &amp;</command>\
         <command>touch go; wait</command><read><file src=\"job:1\" lines=\"49999-50001\"/></read>",
    ]);
    assert!(results(&reports[0])[0]["omitted_bytes"].is_u64());
    assert_eq!(shown(&reports[0], 2), "49999\n50000\nlater\n");
}

/// It cannot print any more when its shell has ended.
#[test]
fn a_job_without_a_terminal_has_what_its_command_printed() {
    let reports = reports(&[
        "<command>echo before; sleep 100 &amp; exit 3</command><read><file src=\"job:1\"/></read>",
    ]);
    let file = shown(&reports[0], 1);
    assert!(file.starts_with("before\n"), "{file}");
}

/// What a job leaves that ended while no call waited begins with what that printed.
#[test]
fn what_an_unwatched_job_leaves_has_its_output() {
    let left = "<command id=\"w\">true</command>\
                <read><file src=\"job:a-2\"/></read>";
    let mut scripts = vec![
        "<command id=\"a\" timeout=\"0.3\">echo one; until [ -e go ]; do sleep 0.02; done; echo two; sleep 100 &amp;</command>",
        "<command>touch go</command>",
    ];
    // Its end may take some of these on a busy machine.
    scripts.extend(["<command>sleep 0.05</command>"; 30]);
    scripts.push(left);
    let reports = reports(&scripts);
    assert_eq!(shown(reports.last().unwrap(), 1), "one\ntwo\n");
}

#[test]
fn a_job_that_is_stopped_keeps_its_id_and_its_file() {
    let reports = reports(&[
        "<command>sleep 100 &amp; echo start; cat</command><input>hello\\n</input><ctrl>z</ctrl>",
        "<ctrl job=\"1\" end=\"true\">c</ctrl><read><file src=\"job:1\"/></read><read><file src=\"job:1-2\"/></read>",
    ]);
    let statuses = ["awaiting_input", "awaiting_input", "stopped"];
    assert_eq!(field(&reports[0], "status"), statuses);
    let left = [state("1", "stopped"), state("1-2", "running")];
    assert_eq!(states(&reports[0]), left);
    let end = &results(&reports[1])[0];
    assert_eq!((&end["status"], &end["job"]), (&json!("ok"), &json!("1")));
    for file in [shown(&reports[1], 1), shown(&reports[1], 2)] {
        assert!(file.starts_with("start\nhello\nhello\n^Z"), "{file}");
    }
    assert_eq!(states(&reports[1])[0], state("1", "ended"));
}
