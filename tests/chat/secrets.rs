//! No value of a secret is in a request.

use karyi::chat::turn::TurnEnd;
use karyi::model::scripted::ScriptedModel;
use karyi::secret::{SecretName, SecretValue};

use super::harness::{Chat, Seen, messages};

const VALUE: &str = "kP7-vQ2.zL9-tR4w";

#[test]
fn values_in_files_outputs_and_the_users_text_are_masked() {
    let chat = Chat::new();
    let name = SecretName::parse("TOKEN").unwrap();
    let value = SecretValue::new(VALUE.to_owned());
    chat.secrets.insert(name, value).unwrap();
    std::fs::write(chat.work().join("f"), format!("key={VALUE}\n")).unwrap();
    let text = format!(
        "I saw {VALUE}.\n<tools><read><file src=\"f\"/></read><command>cat f | base64</command></tools>"
    );
    let mut seen = Seen::default();
    let model = ScriptedModel::texts(&[&text, "Done."]);
    let (report, requests) = chat.turn(model, &mut seen);
    assert_eq!(report.end, TurnEnd::Done);
    let all: Vec<String> = requests.iter().flat_map(messages).collect();
    let all = all.join("\n");
    assert!(!all.contains(VALUE), "{all}");
    assert!(!seen.text.contains(VALUE), "{}", seen.text);
    assert!(all.contains("key=$KARYI{TOKEN}"), "{all}");
}
