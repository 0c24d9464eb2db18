//! Questions of conditions: one request to a model for all of them, and its answer.

use crate::supervisor::told::one_line;
use karyi_tasks::evaluation::ConditionQuestion;
use serde::Deserialize;

/// Entry of the answer.
#[derive(Deserialize)]
struct Verdict {
    id: usize,
    result: bool,
}

/// Returns the list of questions for the model.
#[must_use]
pub fn questions_text(questions: &[ConditionQuestion]) -> String {
    let lines = questions.iter().zip(1..);
    let lines =
        lines.map(|(question, number)| format!("{number}. {}\n", one_line(&question.prompt)));
    format!("# Questions\n\n{}", lines.collect::<String>())
}

/// Reads the answer. A question without a readable answer counts as false; `None` when there is no list at all.
#[must_use]
pub fn read_verdicts(
    questions: &[ConditionQuestion],
    answer: &str,
) -> Option<Vec<(ConditionQuestion, bool)>> {
    let list = answer.get(answer.find('[')?..=answer.rfind(']')?)?;
    let verdicts: Vec<Verdict> = serde_json::from_str(list).ok()?;
    let verdict = |number: usize| {
        verdicts
            .iter()
            .find(|verdict| verdict.id == number)
            .is_some_and(|verdict| verdict.result)
    };
    let all = questions.iter().cloned().zip(1..);
    Some(
        all.map(|(question, number)| (question, verdict(number)))
            .collect(),
    )
}

/// Returns the answer "no" to each question.
#[must_use]
pub fn no_verdicts(questions: &[ConditionQuestion]) -> Vec<(ConditionQuestion, bool)> {
    questions.iter().cloned().map(|one| (one, false)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use karyi_tasks::task_id::TaskId;

    #[test]
    fn answers_belong_to_questions_by_number() {
        let question = |prompt: &str| ConditionQuestion {
            trigger: TaskId::derived(prompt, 1),
            place: String::new(),
            prompt: prompt.to_owned(),
        };
        let asked = [question("is it\nlate?"), question("is it done?")];
        assert_eq!(
            questions_text(&asked),
            "# Questions\n\n1. is it late?\n2. is it done?\n"
        );
        let read = |answer: &str| {
            let verdicts = read_verdicts(&asked, answer)?;
            Some(verdicts.iter().map(|(_, is_true)| *is_true).collect())
        };
        let cases: [(&str, Option<Vec<bool>>); 5] = [
            ("[{\"id\":2,\"result\":true}]", Some(vec![false, true])),
            (
                "Yes.\n```json\n[{\"id\":1,\"result\":true},{\"id\":2,\"result\":false}]\n```",
                Some(vec![true, false]),
            ),
            ("[]", Some(vec![false, false])),
            ("true", None),
            ("[{\"id\":1,\"result\":\"true\"}]", None),
        ];
        for (answer, expected) in cases {
            assert_eq!(read(answer), expected, "{answer}");
        }
    }
}
