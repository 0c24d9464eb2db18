//! No value of a secret is in a request.

use karyi::chat::turn::TurnEnd;
use karyi::model::StopReason;
use karyi::model::scripted::{ScriptedModel, Step};
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

/// Values of ten forms.
const VALUES: [&str; 10] = [
    VALUE,
    "ghp_Zt5Lq8Xw2Nv7Rb4Kd9Jm3Hs6",
    "Mo0n-Dust!",
    "postgres://app:W8x2-Qp5.nK@db/x",
    "two words and a cafe with 7 chairs",
    "Ünï-cödé-Pässwört-9",
    "0123abcd4567ef89fedc",
    "-----BEGIN KEY-----\nQm9yZWQgb2Yga2V5cw\n-----END KEY-----",
    "back\\slash\"quote'9911",
    "$dollar$igns$4$2$zq",
];

#[test]
fn a_value_that_arrives_in_pieces_is_masked_as_a_whole() {
    let said = |value: &str| format!("The key is {value}, they say.\n");
    let answer: String = VALUES.map(said).concat();
    let names: Vec<String> = (0..10).map(|n| format!("VALUE_{n}")).collect();
    let masked: String = names
        .iter()
        .map(|n| said(&format!("$KARYI{{{n}}}")))
        .collect();
    let letters: Vec<char> = answer.chars().collect();
    for size in 1..=20 {
        let chat = Chat::new();
        for (name, value) in names.iter().zip(VALUES) {
            let value = SecretValue::new(value.to_owned());
            chat.secrets
                .insert(SecretName::parse(name).unwrap(), value)
                .unwrap();
        }
        let pieces = letters
            .chunks(size)
            .map(|piece| piece.iter().collect::<String>());
        let mut steps: Vec<Step> = pieces
            .clone()
            .map(|piece| Step::reasoning(&piece))
            .collect();
        steps.extend(pieces.map(|piece| Step::text(&piece)));
        steps.push(Step::stop(StopReason::End));
        let mut seen = Seen::default();
        let (report, _) = chat.turn(ScriptedModel::new(vec![steps]), &mut seen);
        assert_eq!(report.end, TurnEnd::Done);
        assert_eq!(seen.text, masked, "{size}");
        assert_eq!(seen.reasoning, masked, "{size}");
    }
}

#[test]
fn text_that_may_start_a_value_is_shown_at_the_next_call_and_masked_where_an_answer_breaks() {
    let block = "\n<tools><command>true</command></tools>\n";
    for (rest, shown) in [(block, "It is kP7-vQ2"), ("", "It is [KARYI:TOKEN:part]")] {
        let chat = Chat::new();
        let value = SecretValue::new(VALUE.to_owned());
        chat.secrets
            .insert(SecretName::parse("TOKEN").unwrap(), value)
            .unwrap();
        let mut first = vec![
            Step::text("It is kP7-"),
            Step::text("vQ2"),
            Step::text(rest),
        ];
        if !rest.is_empty() {
            first.push(Step::stop(StopReason::End));
        }
        let mut seen = Seen::default();
        let done = vec![Step::text(" Done."), Step::stop(StopReason::End)];
        chat.turn(ScriptedModel::new(vec![first, done]), &mut seen);
        assert!(seen.text.starts_with(shown), "{}", seen.text);
    }
}
