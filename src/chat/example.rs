//! A worked example for small models, which follow what they see better than what they are told.

use karyi_model::Message;
use karyi_vault::redact::Redactor;

/// Tools that it uses.
pub const TOOLS: [&str; 2] = ["edit", "command"];

/// Text of the user, answer, report and last answer.
pub const EXAMPLE: [&str; 4] = [
    "Create hello.txt with the line hi, then show it.",
    "<tools>\n<edit><file src=\"hello.txt\"><content>\nhi\n</content></file></edit>\n<command>cat hello.txt</command>\n</tools>",
    "<results>\n  <result id=\"1\" tool=\"edit\" status=\"ok\"><files><file src=\"hello.txt\" change=\"created\" lines=\"1\"/></files></result>\n  <result id=\"2\" tool=\"command\" status=\"ok\"><output>hi\n</output></result>\n</results>",
    "hello.txt has the line hi.",
];

/// Returns the example as messages.
#[must_use]
pub fn messages(redactor: &Redactor) -> Vec<Message> {
    let [user, answer, report, last] = EXAMPLE.map(|text| redactor.redact_whole_again(text));
    vec![
        Message::user(user),
        Message::assistant(answer),
        Message::user(report),
        Message::assistant(last),
    ]
}
