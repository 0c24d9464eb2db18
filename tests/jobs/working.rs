//! Programs at work that could also read the terminal: nobody is told to answer them, and what follows waits for them.

use serde_json::Value;

use super::{field, reports};
use crate::harness::results;

const NODE_WORKS_IN_SILENCE: &str = r#"<command>node -e "process.stdin.resume(); console.log('building'); setTimeout(()=>{require('fs').writeFileSync('out.js','x');console.log('built');process.exit(0)}, 4000)"</command>
<command>cat out.js; echo " second"</command>
<command>cd /; export AFTER=1; echo third</command>"#;
const PYTHON_READS_IN_A_THREAD: &str = "<command>python3 - &lt;&lt;'P'
import threading,time,subprocess,sys
t=open('/dev/tty')
threading.Thread(target=lambda:t.readline(),daemon=True).start()
for i in range(12):
    print('test',i,'ok', flush=True); time.sleep(0.25)
print('12 passed')
P</command><command>echo next</command>";
const NODE_STEPS: &str = r#"<command>node -e "
const rl=require('readline').createInterface({input:process.stdin});
rl.on('line',l=>console.log('key',l));
let i=0; const t=setInterval(()=>{ console.log('step',++i); if(i==STEPS){clearInterval(t); rl.close(); console.log('done')} }, EVERY)"</command>
<command>echo next</command>"#;

fn statuses(report: &Value) -> Vec<&str> {
    let statuses = field(report, "status").into_iter();
    statuses.map(|status| status.as_str().unwrap()).collect()
}

fn has(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap();
    std::env::split_paths(&paths).any(|path| path.join(program).exists())
}

#[test]
fn a_program_at_work_is_never_told_to_wait() {
    let quick = NODE_STEPS.replace("STEPS", "8").replace("EVERY", "300");
    let slow = NODE_STEPS.replace("STEPS", "3").replace("EVERY", "1500");
    for (program, script, end) in [
        ("python3", PYTHON_READS_IN_A_THREAD, "12 passed\n"),
        ("node", &quick, "done\n"),
        ("node", &slow, "done\n"),
    ] {
        if !has(program) {
            continue;
        }
        let [report] = &reports(&[script])[..] else {
            panic!("{script}");
        };
        assert_eq!(statuses(report), ["ok", "ok"], "{report}");
        let output = results(report)[0]["output"].as_str().unwrap();
        assert!(output.ends_with(end), "{output}");
    }
}

#[test]
fn a_command_waits_for_a_job_that_may_still_be_at_work() {
    if !has("node") {
        return;
    }
    let [report] = &reports(&[NODE_WORKS_IN_SILENCE])[..] else {
        panic!();
    };
    assert_eq!(statuses(report), ["accepts_input", "ok", "ok"], "{report}");
    let note = results(report)[0]["note"].as_str().unwrap();
    assert!(note.contains("may still be at work"), "{note}");
    let outputs = field(report, "output");
    assert_eq!(outputs[1..], ["x second\n", "third\n"], "{report}");
    assert_eq!(field(report, "session"), [&Value::Null; 3], "{report}");
}

#[test]
fn a_command_waits_only_as_long_as_the_job_may_run() {
    let script = "<command timeout=\"4\">read -t 99 x</command><command>echo beside</command>";
    let [report] = &reports(&[script])[..] else {
        panic!();
    };
    assert_eq!(statuses(report), ["accepts_input", "ok"], "{report}");
    assert_eq!(results(report)[1]["session"], 2, "{report}");
}
