//! What a placeholder adds to a command: finding its place in the script, and the way of its value
//! into the shell.

use karyi::pty::CommandRequest;
use karyi::secret::{SecretName, SecretValue};
use karyi::vault::session::Secrets;
use karyi::vault::shell::substitute_script;

use crate::report::Report;
use crate::samples::Samples;
use crate::terminal::DrivenSession;

const ROUNDS: usize = 200;
/// Most milliseconds that a command without a placeholder may be looked at for.
const MOST_LOOKING: f64 = 0.2;
/// Most milliseconds that one to ten placeholders may add, for 95 of 100 commands.
const MOST_ADDED: f64 = 10.0;
/// Most times as long as a command without placeholders one with ten may take.
const MOST_TIMES: f64 = 4.0;

/// Measures and reports.
pub(crate) fn measure(report: &mut Report) {
    let secrets = secrets();
    let scripts: [(&str, String); 3] = [
        ("none", script(0)),
        ("one placeholder", script(1)),
        ("ten placeholders", script(10)),
    ];
    let driven = DrivenSession::start();
    let mut times: [Samples; 3] = Default::default();
    for _ in 0..ROUNDS {
        for ((_, text), samples) in scripts.iter().zip(&mut times) {
            samples.time(|| run(&driven, text, &secrets));
        }
    }
    let heads = ["a command with", "median", "95 of 100", "÷ none"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    let [none, one, ten] = &times;
    for ((name, _), samples) in scripts.iter().zip(&times) {
        rows.push(vec![
            (*name).to_owned(),
            milliseconds(samples.median()),
            milliseconds(samples.quantile(0.95)),
            format!("{:.2}", samples.median() / none.median()),
        ]);
    }
    report.table(
        &format!("What a placeholder adds, {ROUNDS} times each"),
        &rows,
    );
    let added = |samples: &Samples| (samples.quantile(0.95) - none.quantile(0.95)) * 1e3;
    report.check(
        "ten placeholders / none",
        ten.median() / none.median(),
        ..=MOST_TIMES,
    );
    report.check(
        "milliseconds one adds, 95 of 100",
        added(one),
        ..=MOST_ADDED,
    );
    report.check("milliseconds ten add, 95 of 100", added(ten), ..=MOST_ADDED);
    let what = "milliseconds looking for one, 95 of 100";
    report.check(what, looking(&secrets) * 1e3, ..=MOST_LOOKING);
}

/// Returns how long a long script without a placeholder is looked at.
fn looking(secrets: &Secrets) -> f64 {
    let text = "for file in *.rs; do echo \"$file: $(wc -l < \"$file\")\"; done\n".repeat(20);
    let mut samples = Samples::default();
    for _ in 0..ROUNDS {
        samples.time(|| drop(substitute_script(&text, secrets).unwrap()));
    }
    samples.quantile(0.95)
}

fn secrets() -> Secrets {
    let secrets = Secrets::default();
    for number in 0..10 {
        let name = SecretName::parse(&format!("KEY_{number}")).unwrap();
        let value = SecretValue::new(format!("S3cr3t-T0ken-{number}-AbCdEf0123456789xyz"));
        secrets.insert(name, value).unwrap();
    }
    secrets
}

fn script(placeholders: usize) -> String {
    let words: Vec<String> = (0..10)
        .map(|number| match number < placeholders {
            true => format!("$KARYI{{KEY_{number}}}"),
            false => format!("plain-text-{number}-AbCdEf0123456789xyz"),
        })
        .collect();
    format!(": {}", words.join(" "))
}

fn run(driven: &DrivenSession, text: &str, secrets: &Secrets) {
    let resolved = substitute_script(text, secrets).unwrap();
    let request = CommandRequest {
        script: resolved.text.to_string(),
        bindings: resolved.bindings,
        ..CommandRequest::default()
    };
    let call = driven.session.command(request, Box::new(|_| {}));
    let progress = driven.runtime.block_on(call).unwrap();
    assert_eq!(progress.exit_code, Some(0));
}

fn milliseconds(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1e3)
}
