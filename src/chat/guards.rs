//! Guards against a model that does not get on.

use crate::chat::call_results::AnswerResults;

/// Number of equal failures, answers or refusals in a row that end a turn.
const MOST_IN_A_ROW: u32 = 3;

/// Counts what repeats itself.
#[derive(Debug, Default)]
pub(super) struct Guards {
    /// The last call that failed, and how often in a row.
    failed: Option<(String, u32)>,
    /// Calls and report of the last answer, and how often in a row.
    answer: Option<(Vec<String>, String, u32)>,
    refused: u32,
}

impl Guards {
    /// Takes the results of an answer; returns why the turn must end.
    pub(super) fn check(&mut self, results: &AnswerResults) -> Option<String> {
        for call in &results.calls {
            self.failed = match (self.failed.take(), call.is_failure) {
                (_, false) => None,
                (Some((text, count)), true) if text == call.text => Some((text, count + 1)),
                (_, true) => Some((call.text.clone(), 1)),
            };
            if let Some((_, MOST_IN_A_ROW)) = self.failed {
                return Some(format!("the same call failed {MOST_IN_A_ROW} times"));
            }
        }
        self.refused = match results.is_refused {
            true => self.refused + 1,
            false => 0,
        };
        if self.refused == MOST_IN_A_ROW {
            return Some(format!("{MOST_IN_A_ROW} blocks in a row were refused"));
        }
        let calls: Vec<String> = results.calls.iter().map(|call| call.text.clone()).collect();
        let report = results.report.as_ref().map_or("", |report| report.as_str());
        let count = match self.answer.take() {
            Some((last, told, count)) if last == calls && told == report => count + 1,
            _ => 1,
        };
        self.answer = Some((calls, report.to_owned(), count));
        (count == MOST_IN_A_ROW)
            .then(|| format!("{MOST_IN_A_ROW} answers had the same calls and the same results"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::call_results::CallResult;

    fn answer(calls: &[(&str, bool)]) -> AnswerResults {
        let result = |(text, is_failure): &(&str, bool)| CallResult {
            text: (*text).to_owned(),
            is_failure: *is_failure,
            needs_approval: false,
        };
        AnswerResults {
            calls: calls.iter().map(result).collect(),
            ..AnswerResults::default()
        }
    }

    #[test]
    fn what_repeats_itself_three_times_ends_the_turn() {
        let failing = answer(&[("a", true)]);
        let looking = answer(&[("b", false)]);
        let refused = AnswerResults {
            is_refused: true,
            ..answer(&[])
        };
        let ends = |answers: &[&AnswerResults]| {
            let mut guards = Guards::default();
            let mut reasons = answers.iter().map(|results| guards.check(results));
            reasons.find_map(|reason| reason)
        };
        assert_eq!(
            ends(&[&failing, &failing, &looking, &failing, &failing]),
            None
        );
        let reason = ends(&[&failing, &failing, &failing]);
        assert_eq!(reason.as_deref(), Some("the same call failed 3 times"));
        let reason = ends(&[&looking, &looking, &looking]);
        let expected = "3 answers had the same calls and the same results";
        assert_eq!(reason.as_deref(), Some(expected));
        let reason = ends(&[&refused, &refused, &refused]);
        assert_eq!(reason.as_deref(), Some("3 blocks in a row were refused"));
        assert_eq!(ends(&[&refused, &refused, &looking, &refused]), None);
    }
}
