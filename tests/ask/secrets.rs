//! No value of a secret reaches the model, however it is written.

use std::collections::BTreeSet;

use super::headless::{ask, run, text};
use super::server::{ModelServer, Reply};
use crate::redaction::reference::encodings;

/// Ten values: tokens as services give them, a password with signs, and one that is not ASCII.
const VALUES: [&str; 10] = [
    "ghp_9fKq2LxVbT7mWzRc4YdN8sHj",
    "glpat-Xw3_vTq9LmZr2kBs",
    "AKIAV7Q2MZK4TWXB9JHN",
    "xoxb-7719302846-Qm3ZtYw8Lk",
    "eyJhbGciOi.JIUzI1NiIsI.nR5cCI6IkpX",
    "p4ss w'rd\"with<signs>&more;!",
    "kP7-vQ2.zL9-tR4w$x(y)`z`",
    "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
    "schlüssel-Ωmega-5521-ß-Qx",
    "0c7f2e9a41d8b3655f9e1d02ac47be38",
];

/// Returns each value in every form that is promised to be masked, in base64 at three offsets.
fn forms() -> Vec<String> {
    let forms: BTreeSet<String> = VALUES
        .iter()
        .flat_map(|value| ["", "x", "xy"].map(|before| encodings(value, before)))
        .flatten()
        .collect();
    forms.into_iter().collect()
}

/// Returns the middle half of a text.
fn middle(text: &str) -> &str {
    let quarter = text.len() / 4;
    let (start, end) = (
        text.ceil_char_boundary(quarter),
        text.floor_char_boundary(text.len() - quarter),
    );
    &text[start..end]
}

#[test]
fn no_form_of_ten_values_is_in_any_request() {
    let block = "<tools><command>cat f</command></tools>";
    let server = ModelServer::start(vec![Reply::text(block), Reply::text("Done.")]);
    let forms = forms();
    assert!(forms.len() > 250, "{}", forms.len());
    let all = forms.join("\n");
    let flags = [
        "--approve",
        "full",
        "--vault",
        "env",
        "--max-output",
        "200000",
    ];
    let more = [
        "--max-read",
        "200000",
        "--max-report",
        "400000",
        "--file",
        "f",
    ];
    let args: Vec<&str> = flags
        .iter()
        .chain(&more)
        .copied()
        .chain([all.as_str()])
        .collect();
    let mut karyi = ask(&server, &args).file("f", format!("{all}\n"));
    for (at, value) in VALUES.iter().enumerate() {
        karyi = karyi.env(&format!("KARYI_VAR_SECRET_{at}"), value);
    }
    let output = run(&karyi);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    let mut sent = String::new();
    for ((head, body), request) in server.raw().iter().zip(&requests) {
        sent.push_str(head);
        sent.push_str(body);
        for message in request["messages"].as_array().unwrap() {
            sent.push_str(message["content"].as_str().unwrap());
            sent.push('\n');
        }
    }
    // The user's text, the file and the output of the command all arrived.
    let masked = sent.matches("SECRET_3").count();
    assert!(masked > 3 * 20, "{masked}");
    let leaks: Vec<&String> = forms
        .iter()
        .filter(|form| sent.contains(middle(form)))
        .collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
}
