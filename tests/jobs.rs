//! Commands that go on after their call, what scripts put in the background, and long outputs.

mod logs;
mod outputs;
mod working;

use serde_json::{Value, json};

use crate::harness::{Karyi, results};

/// Runs scripts one after another in one session; returns their reports.
fn reports(scripts: &[&str]) -> Vec<Value> {
    let names: Vec<String> = (0..scripts.len()).map(|n| format!("{n}.xml")).collect();
    let mut karyi = Karyi::with_args(&["run", "--no-rc", "--json", "--shell", "bash"]);
    for (name, script) in names.iter().zip(scripts) {
        karyi = karyi
            .arg(name)
            .file(name, format!("<tools>{script}</tools>"));
    }
    let ran = karyi.run();
    let text = String::from_utf8_lossy(ran.raw_stdout()).into_owned();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Returns one field of every result of a report.
fn field<'a>(report: &'a Value, name: &str) -> Vec<&'a Value> {
    results(report).iter().map(|result| &result[name]).collect()
}

/// Returns the jobs of a report without their ages.
fn jobs(report: &Value) -> Value {
    let mut jobs = report["jobs"].clone();
    for job in jobs.as_array_mut().into_iter().flatten() {
        assert!(job["age_ms"].is_u64(), "{job}");
        job.as_object_mut().unwrap().remove("age_ms");
    }
    jobs
}

#[test]
fn a_job_is_listed_until_its_end_was_told_once() {
    let script = "echo step 1; until [ -e go ]; do sleep 0.02; done; echo step 2; (exit 4)";
    let start = format!("<command timeout=\"0.3\">{script}</command>");
    let mut scripts = vec![
        start.as_str(),
        "<command>true</command>",
        "<command>touch go</command>",
    ];
    // Its end may take some of these on a busy machine.
    scripts.extend(["<command>sleep 0.05</command>"; 30]);
    let all: Vec<Value> = reports(&scripts).iter().map(jobs).collect();
    let running =
        json!([{ "id": "1", "state": "running", "command": script, "last_line": "step 1" }]);
    assert_eq!(all[..2], [running.clone(), running]);
    let ended = json!([
        { "id": "1", "state": "ended", "exit_code": 4, "command": script, "last_line": "step 2" }
    ]);
    assert_eq!(
        all.iter().filter(|jobs| **jobs == ended).count(),
        1,
        "{all:?}"
    );
    let end = all.iter().position(|jobs| *jobs == ended).unwrap();
    let is_running = |jobs: &Value| jobs[0]["state"] == "running";
    assert!(all[..end].iter().all(is_running), "{all:?}");
    assert!(all[end + 1..].iter().all(Value::is_null), "{all:?}");
}

#[test]
fn the_later_output_of_a_job_can_be_read() {
    let start = "<command timeout=\"0.3\">echo step 1; until [ -e go ]; do sleep 0.02; done; echo step 2; printf 'no line end'; touch printed; sleep 60</command>";
    let read = "<command>touch go; until [ -e printed ]; do sleep 0.02; done; sleep 0.05</command>\
                <read><file src=\"job:1\" lines=\"-1\"/></read><read><file src=\"job:1\"/></read>";
    // It may take some of these on a busy machine.
    let mut scripts = vec![start];
    scripts.extend([read; 30]);
    let reports = reports(&scripts);
    let shown = |report: &Value, index: usize| results(report)[index]["files"][0]["output"].clone();
    let is_whole = |report: &&Value| shown(report, 2) == "step 1\nstep 2\nno line end";
    // The two reads of a report are of two moments: only the next report surely sees all in both.
    let whole = reports[1..].iter().filter(is_whole).nth(1).unwrap();
    assert_eq!(shown(whole, 1), json!("no line end"));
    assert_eq!(jobs(&reports[30])[0]["state"], "killed");
}

#[test]
fn what_a_script_puts_in_the_background_is_a_job() {
    let start = "<command>(for i in $(seq 3000); do [ -e go ] &amp;&amp; break; sleep 0.02; done; echo LATE; touch late; sleep 60) &amp; echo now</command>";
    let look = "<command>touch go; until [ -e late ]; do sleep 0.02; done</command><read><file src=\"job:1\"/></read><input job=\"1\">x</input>";
    let reports = reports(&[start, look]);
    assert_eq!(results(&reports[0])[0]["output"], "now\n");
    let job = &jobs(&reports[0])[0];
    assert_eq!(
        (&job["id"], &job["state"], &job["background"]),
        (&json!("1"), &json!("running"), &json!(true))
    );
    assert_eq!(results(&reports[1])[1]["files"][0]["output"], "now\nLATE\n");
    assert_eq!(results(&reports[1])[2]["code"], "no_job");
    let message = "job 1 runs in the background of its terminal; nothing was sent";
    assert_eq!(results(&reports[1])[2]["message"], message);
    let hint = results(&reports[1])[2]["hint"].as_str().unwrap();
    assert!(
        hint.ends_with("end it with `ctrl` c, its job 1 and `end`"),
        "{hint}"
    );
    assert_eq!(jobs(&reports[1])[0]["state"], "killed");
}

#[test]
fn a_job_that_is_not_in_the_foreground_can_be_ended() {
    let reports = reports(&[
        "<command id=\"s\" timeout=\"0.5\">V=1; sleep 100</command><ctrl>z</ctrl>",
        // The one that is stopped, where nothing runs.
        "<ctrl end=\"true\">c</ctrl>",
        "<command id=\"b\">sleep 101 &amp; sleep 102 &amp;</command>",
        "<ctrl end=\"true\" job=\"b\">c</ctrl><ctrl end=\"true\">c</ctrl><command>echo V=$V</command>",
    ]);
    let states = |report: &Value| -> Vec<(String, String)> {
        let word = |job: &Value, key: &str| job[key].as_str().unwrap().to_owned();
        let jobs = jobs(report);
        let jobs = jobs.as_array().cloned().unwrap_or_default();
        let pair = |job: &Value| (word(job, "id"), word(job, "state"));
        jobs.iter().map(pair).collect()
    };
    let pair = |id: &str, state: &str| (id.to_owned(), state.to_owned());
    assert!(states(&reports[0]).contains(&pair("s", "stopped")));
    assert_eq!(field(&reports[1], "status"), ["ok"]);
    assert_eq!(field(&reports[1], "job"), ["s"]);
    assert_eq!(states(&reports[1]), [pair("s", "ended")]);
    let running = [pair("b", "running"), pair("b-2", "running")];
    assert_eq!(states(&reports[2]), running);
    // A job that only runs in the background must be named.
    let statuses = ["ok", "error", "ok"];
    assert_eq!(field(&reports[3], "status"), statuses);
    let output = results(&reports[3])[2]["output"].as_str().unwrap();
    assert!(output.ends_with("V=1\n"), "{output}");
    let left = [pair("b", "ended"), pair("b-2", "killed")];
    assert_eq!(states(&reports[3]), left);
}

#[test]
fn what_outlives_its_shell_is_listed_and_has_no_later_output() {
    let reports = reports(&[
        "<command>(setsid sleep 100 &amp;); sleep 0.2</command>",
        "<command id=\"x\">(for i in $(seq 500); do [ -e go ] &amp;&amp; break; sleep 0.02; done; echo late) &amp; echo $! >pid; exit 3</command>",
        "<command>echo other; touch go; for i in $(seq 500); do kill -0 $(cat pid) 2>/dev/null || break; sleep 0.02; done</command><read><file src=\"job:x\"/></read>",
        "<command>true</command>",
    ]);
    let short = |report: &Value| {
        let job = &jobs(report)[0];
        (
            job["id"].clone(),
            job["state"].clone(),
            job["last_line"].clone(),
        )
    };
    assert_eq!(jobs(&reports[0]), Value::Null);
    let running = (json!("x"), json!("running"), Value::Null);
    assert_eq!(short(&reports[1]), running);
    // The daemon of the first command is none of this one's.
    assert_eq!(jobs(&reports[1]).as_array().unwrap().len(), 1);
    assert_eq!(results(&reports[2])[1]["code"], "not_found");
    let ended = (json!("x"), json!("ended"), Value::Null);
    assert_eq!(short(&reports[2]), ended);
    assert_eq!(jobs(&reports[3]), Value::Null);
}

#[test]
fn a_job_in_the_background_does_not_spoil_the_run() {
    Karyi::new()
        .stdin("<tools><command>sleep 60 &amp;\nuntil grep -q ^sleep /proc/$!/cmdline; do :; done\necho now</command></tools>")
        .stdout_xml(
            r#"<results>
              <result id="1" tool="command" status="ok"><output>now
</output></result>
              <jobs><job id="1" state="killed" background="true" signal="HUP" age_ms="0"><command>sleep 60</command></job></jobs>
            </results>"#,
        )
        .exit(0);
}

#[test]
fn the_end_of_a_background_job_is_told_once() {
    let start = "<command>for i in $(seq 3000); do [ -e go ] &amp;&amp; break; sleep 0.02; done &amp; echo $!</command>";
    let end = "<command>touch go; wait; rm go</command>";
    let reports = reports(&[start, end, "<command>true</command>"]);
    assert_eq!(jobs(&reports[0])[0]["state"], "running");
    assert_eq!(jobs(&reports[1])[0]["state"], "ended");
    assert_eq!(jobs(&reports[2]), Value::Null);
}

#[test]
fn what_an_unwatched_job_leaves_is_told_with_its_end() {
    let start = "<command id=\"a\" timeout=\"0.3\">until [ -e go ]; do sleep 0.02; done; sleep 60 &amp;\n\
                 until grep -q ^sleep /proc/$!/cmdline; do :; done</command>";
    let mut scripts = vec![start, "<command>touch go</command>"];
    // Its end may take some of these on a busy machine.
    scripts.extend(["<command>sleep 0.05</command>"; 30]);
    let all: Vec<Value> = reports(&scripts).iter().map(jobs).collect();
    let end = all.iter().find(|jobs| jobs[0]["state"] == "ended").unwrap();
    let left = json!({
        "id": "a-2", "state": "running", "background": true, "command": "sleep 60"
    });
    assert_eq!((&end[0]["id"], &end[1]), (&json!("a"), &left));
}

#[test]
fn a_command_beside_a_busy_one_has_what_the_session_has() {
    let reports = reports(&[
        "<command>mkdir sub; cd sub; export A=1 M='it'\\''s\nso'; f() { echo \"fun $1\"; }; alias ll='echo al'; set -u; local=x</command>",
        "<command id=\"b\">export B=2; sh -c 'read x'; echo over</command>\
         <command>echo $A$B \"$M\" $PWD; f x; ll; echo ${local-none}; case $- in *u*) echo nounset;; esac; cd ..; C=3</command>\
         <command>echo $C $PWD</command>\
         <input job=\"b\">\\n</input>\
         <command>echo ${C-none} $PWD; f y</command>",
    ]);
    let sessions = field(&reports[1], "session");
    assert_eq!(
        sessions,
        [
            &Value::Null,
            &json!(2),
            &json!(2),
            &Value::Null,
            &Value::Null
        ]
    );
    let output = |index: usize| {
        results(&reports[1])[index]["output"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let work = results(&reports[0])[0]["cwd"]
        .as_str()
        .unwrap()
        .strip_suffix("/sub")
        .unwrap();
    assert_eq!(
        output(1),
        format!("12 it's\nso {work}/sub\nfun x\nal\nnone\nnounset\n")
    );
    assert_eq!(output(2), format!("3 {work}\n"));
    assert_eq!(output(3), "\nover\n");
    assert_eq!(output(4), format!("none {work}/sub\nfun y\n"));
    let note = results(&reports[1])[1]["note"].as_str().unwrap();
    assert!(
        note.starts_with("session 1 is busy, so this ran in session 2"),
        "{note}"
    );
    assert_eq!(results(&reports[1])[2]["note"], Value::Null);
}

#[test]
fn definitions_reach_a_session_beside_without_a_pause() {
    let reports = reports(&["<command>f() { echo fun; }; shopt -s nullglob</command>\
         <command timeout=\"0.2\">sleep 60</command>\
         <command>f; shopt nullglob</command>"]);
    assert_eq!(
        results(&reports[0])[2]["output"],
        "fun\nnullglob       \ton\n"
    );
}

/// Waits in a command until a process is gone whose number is in a file.
const UNTIL_GONE: &str =
    "<command>while kill -0 $(cat pid) 2&gt;/dev/null; do sleep 0.02; done; echo gone</command>";

/// Without job control its group is that of the shell, and of whatever runs in the foreground.
#[test]
fn what_is_meant_for_a_job_without_job_control_reaches_no_other() {
    let end = format!("<ctrl end=\"true\" job=\"b\">c</ctrl>{UNTIL_GONE}");
    let reports = reports(&[
        "<command id=\"b\">set +m; sh -c 'sleep 100 &amp; echo $! &gt;pid; wait' &amp; until [ -s pid ]; do sleep 0.02; done</command>\
         <command id=\"r\">read x; echo got $x</command>",
        "<input job=\"b\">no\\n</input><ctrl job=\"b\">c</ctrl>",
        "<input job=\"r\">yes\\n</input>",
        &end,
    ]);
    let status = |place: usize| field(&reports[place], "status");
    assert_eq!(status(0), ["ok", "awaiting_input"]);
    assert_eq!(field(&reports[1], "code"), ["no_job", "no_job"]);
    assert_eq!(results(&reports[2])[0]["output"], "yes\ngot yes\n");
    assert_eq!(status(3), ["ok", "ok"]);
    assert_eq!(results(&reports[3])[1]["output"], "gone\n");
}

#[test]
fn a_job_is_ended_with_all_that_stands_below_it() {
    let below = "timeout 100 sh -c 'echo $$ &gt;pid; exec sleep 100'";
    let scripts = [
        // The job ends with its first process, and its server runs on.
        "<command id=\"b\" timeout=\"1\">sh -c \"(trap '' INT; echo \\$\\$ &gt;pid; exec sleep 100) &amp; sleep 101\"</command>".to_owned(),
        format!("<command id=\"b\" timeout=\"1\">sh -c \"{below}; true\"</command>"),
        format!(
            "<command id=\"b\">sh -c \"{below}; true\" &amp; until [ -s pid ]; do sleep 0.02; done</command>"
        ),
    ];
    for script in scripts {
        let script = script.replace("$$", "\\$\\$");
        let end = format!("<ctrl end=\"true\" job=\"b\">c</ctrl>{UNTIL_GONE}");
        let reports = reports(&[&script, &end]);
        let last = &results(&reports[1])[1];
        assert_eq!(
            (&last["status"], &last["output"]),
            (&json!("ok"), &json!("gone\n"))
        );
    }
}

/// `setsid` forks where it leads a group, and ends; so does a script that leaves its program behind.
#[test]
fn a_job_that_goes_on_in_its_child_is_followed() {
    let scripts = [
        (
            "(until [ -e go ]; do :; done; exec setsid sh -c 'echo $$ &gt;pid; exec sleep 100') &amp;",
            "sleep 100",
        ),
        (
            "(until [ -e go ]; do :; done; exec sh -c 'echo $$ &gt;pid; sleep 100 &amp;') &amp;",
            "sleep 100",
        ),
    ];
    for (script, command) in scripts {
        let end = "<ctrl end=\"true\" job=\"b\">c</ctrl>";
        let reports = reports(&[
            // It may have gone on before its command ends, else, and would be a daemon.
            &format!("<command id=\"b\">{script}</command><command>touch go</command>"),
            "<command>until [ -s pid ]; do sleep 0.02; done; sleep 0.3</command>",
            end,
            "<command>true</command>",
        ]);
        let running = json!([{
            "id": "b", "state": "running", "background": true, "command": command
        }]);
        assert_eq!(jobs(&reports[1]), running, "{script}");
        assert_eq!(field(&reports[2], "status"), ["ok"], "{script}");
        assert_eq!(jobs(&reports[2])[0]["state"], "ended", "{script}");
        assert_eq!(jobs(&reports[3]), Value::Null, "{script}");
    }
}

/// The shell's own child has ended by then, and was never seen.
#[test]
fn a_job_that_left_the_session_before_its_command_ended_is_listed() {
    let reports = reports(&[
        "<command id=\"b\">setsid sh -c 'echo $$ &gt;pid; exec sleep 100' &amp; \
         until grep -q ^sleep /proc/$(cat pid)/cmdline; do sleep 0.02; done 2&gt;&amp;-; \
         wait $!</command>",
        &format!("<ctrl end=\"true\" job=\"b\">c</ctrl>{UNTIL_GONE}"),
        "<command>(setsid sleep 101 &amp;); sleep 0.1</command>",
    ]);
    let running = json!([{
        "id": "b", "state": "running", "background": true, "command": "sleep 100"
    }]);
    assert_eq!(jobs(&reports[0]), running);
    assert_eq!(field(&reports[1], "status"), ["ok", "ok"]);
    assert_eq!(jobs(&reports[1])[0]["state"], "ended");
    assert_eq!(jobs(&reports[2]), Value::Null);
}

#[test]
fn a_session_beside_one_that_is_beside_has_its_environment() {
    let reports = reports(&["<command>f() { :; }; export A=1</command>\
         <command timeout=\"0.2\">sleep 60</command>\
         <command timeout=\"0.2\">export B=2; sleep 61</command>\
         <command>echo $A$B</command>"]);
    assert_eq!(results(&reports[0])[3]["output"], "12\n");
}

#[test]
fn an_export_comes_back_after_the_shell_was_replaced() {
    let reports = reports(&[
        "<command>export A=1</command><command>cd /</command><command>exec true</command>\
         <command>echo $A</command>",
    ]);
    assert_eq!(results(&reports[0])[3]["output"], "1\n");
}

#[test]
fn input_and_keys_name_their_job() {
    let reports = reports(&[
        "<command id=\"ask\">read -p 'name? ' x; echo hi $x</command>\
         <command id=\"loop\" timeout=\"0.2\">sleep 60; echo no</command>\
         <ctrl job=\"loop\">c</ctrl>\
         <input job=\"ask\">Ada\\n</input>\
         <input job=\"ask\">again\\n</input>\
         <ctrl job=\"nobody\">c</ctrl>",
    ]);
    let statuses = field(&reports[0], "status");
    assert_eq!(
        statuses,
        ["awaiting_input", "running", "ok", "ok", "error", "error"]
    );
    assert_eq!(
        field(&reports[0], "exit_code")[2..4],
        [&json!(130), &json!(0)]
    );
    assert_eq!(results(&reports[0])[3]["output"], "Ada\nhi Ada\n");
    assert_eq!(
        results(&reports[0])[4]["message"],
        "no job \"ask\"; no job runs; nothing was sent"
    );
    assert_eq!(
        results(&reports[0])[5]["message"],
        "no job \"nobody\"; no job runs; nothing was sent"
    );
    assert_eq!(jobs(&reports[0]), Value::Null);
}

#[test]
fn a_question_of_another_job_still_waits_at_the_end() {
    let ran = Karyi::new()
        .stdin("<tools><command>read x</command><command>true</command></tools>")
        .run();
    ran.exit(3);
}

#[test]
fn the_same_id_in_a_later_message_gets_a_number() {
    let sleep = "<command timeout=\"0.2\">sleep 60</command>";
    let reports = reports(&[sleep, sleep]);
    assert_eq!(results(&reports[1])[0]["job"], "1-2");
    let ids: Vec<_> = reports[1]["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| &job["id"])
        .collect();
    assert_eq!(ids, ["1", "1-2"]);
}

#[test]
fn jobs_are_told_to_a_person() {
    Karyi::with_args(&["run", "--no-rc", "--shell", "bash", "--format", "text"])
        .stdin("<tools><command>sleep 60 &amp;\nuntil grep -q ^sleep /proc/$!/cmdline; do :; done</command><command timeout=\"0.2\">echo up; sleep 50</command></tools>")
        .run()
        .stdout_text(
            "$ sleep 60 &\n  until grep -q ^sleep /proc/$!/cmdline; do :; done\n$ echo up; sleep 50\nup\nstill runs\n\
             job 1 (sleep 60) in the background still ran and was ended with HUP\n\
             job 2 (echo up; sleep 50) still ran and was ended with HUP: up\n",
        );
}

#[test]
fn many_jobs_in_the_background_cost_no_descriptors() {
    let one = "<command>true &amp; wait</command>";
    let left = "<command>sleep 0 &amp;</command>";
    let script = format!(
        "{}{one}<command>ls /proc/$PPID/fd | wc -l</command>",
        left.repeat(400)
    );
    let reports = reports(&[&script, "<command>true</command>"]);
    let open = results(&reports[0]).last().unwrap()["output"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(open.trim().parse::<u32>().unwrap() < 150, "{open}");
    let told = reports[0]["jobs"].as_array().map_or(0, Vec::len);
    let omitted = reports[0]["omitted_jobs"].as_u64().unwrap_or(0);
    assert!(
        told <= 320 && told as u64 + omitted <= 400,
        "{told} {omitted}"
    );
}

#[test]
fn jobs_in_the_background_that_run_on_leave_descriptors_to_others() {
    let left = "<command>for i in $(seq 60); do sleep 300 &amp; done</command>";
    let count = "<command>ls /proc/$PPID/fd | wc -l</command>";
    let reports = reports(&[&format!("{}{count}", left.repeat(8))]);
    let open = results(&reports[0]).last().unwrap()["output"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(open.trim().parse::<u32>().unwrap() < 600, "{open}");
    let told = reports[0]["jobs"].as_array().map_or(0, Vec::len);
    assert_eq!(
        (told, &reports[0]["omitted_jobs"]),
        (256, &json!(8 * 60 - 256))
    );
}

#[test]
fn a_daemon_of_a_session_beside_lives_until_the_end() {
    let reports = reports(&["<command timeout=\"0.2\">sleep 60</command>\
         <command>(setsid sleep 61 &amp;); sleep 0.1; cd /; pgrep -xf 'sleep 61' | wc -l</command>\
         <ctrl job=\"1\">c</ctrl>\
         <command>pgrep -xf 'sleep 61' | wc -l</command>\
         <command id=\"again\" timeout=\"0.2\">sleep 60</command>\
         <command>pwd</command>"]);
    let result = |index: usize| &results(&reports[0])[index];
    assert_eq!(result(1)["output"], result(3)["output"]);
    assert_ne!(result(3)["output"], "0\n");
    let note = result(3)["note"].as_str().unwrap();
    assert!(note.starts_with("session 1 is free again"), "{note}");
    // Not the session that was left, whose directory is another one by now.
    assert_eq!(result(5)["session"], 3);
    assert_ne!(result(5)["output"], "/\n");
}
