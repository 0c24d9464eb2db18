//! A transcript for other programs: Markdown and JSON.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use crate::chat::transcript::file::Transcript;
use crate::chat::transcript::record::{Record, TimedRecord};
use crate::chat::transcript::store::summary;
use crate::tool::plan_board::PlanStep;
use crate::tools;
use karyi_syntax::grammar::Grammar;
use karyi_syntax::{Mode, Parser};

/// Grammar of all tools.
static GRAMMAR: OnceLock<Arc<Grammar>> = OnceLock::new();

/// Returns a chat as one JSON object: its facts, and all records as they stand in the file.
#[must_use]
pub fn json(id: &str, transcript: &Transcript) -> Value {
    let facts = summary(id.to_owned(), transcript);
    let record = |timed: &TimedRecord| timed.record.to_json(timed.at);
    json!({
        "version": transcript.start.version,
        "id": id,
        "title": facts.title,
        "cwd": facts.cwd,
        "model": facts.model,
        "started": facts.started.to_string(),
        "changed": facts.changed.to_string(),
        "turns": facts.turns,
        "records": transcript.records.iter().map(record).collect::<Vec<_>>(),
    })
}

/// Returns a chat as Markdown: texts and answers as they are, reports of calls as code.
#[must_use]
pub fn markdown(id: &str, transcript: &Transcript) -> String {
    let facts = summary(id.to_owned(), transcript);
    let title = match facts.title.as_str() {
        "" => id,
        title => title,
    };
    let mut page = format!(
        "# {title}\n\n- chat {id}, started {}\n- directory {}\n- model {}\n",
        facts.started.strftime("%Y-%m-%d %H:%M UTC"),
        facts.cwd,
        facts.model,
    );
    for timed in &transcript.records {
        if let Some(section) = section(&timed.record) {
            page.push('\n');
            page.push_str(section.trim_end());
            page.push('\n');
        }
    }
    page
}

/// Returns a chat for a person: texts and answers, with a line for each call.
#[must_use]
pub fn text(id: &str, transcript: &Transcript) -> String {
    let facts = summary(id.to_owned(), transcript);
    let mut text = format!(
        "chat {id}: {}\n{}, {}, started {}\n",
        facts.title,
        facts.cwd,
        facts.model,
        facts.started.strftime("%Y-%m-%d %H:%M UTC"),
    );
    // A call is recorded at its end, which may come before that of its answer.
    let mut calls = String::new();
    for timed in &transcript.records {
        let part = match &timed.record {
            Record::User { text, .. } => {
                let text = text.as_str().replace('\n', "\n> ");
                format!("{}\n> {text}\n\n", std::mem::take(&mut calls))
            }
            Record::Answer(text) => {
                let text = without_blocks(text.as_str());
                format!("{text}\n{}", std::mem::take(&mut calls))
            }
            Record::Call(call) => {
                calls.push_str(&format!(
                    "[{} {}: {}]\n",
                    call.tool, call.title, call.status
                ));
                continue;
            }
            Record::Compaction(_) => "\n(summed up)\n".to_owned(),
            Record::CompactionUndo => "\n(the summary was taken back)\n".to_owned(),
            Record::Rewind(turn) => {
                format!(
                    "\n(text {} and what follows was taken back)\n",
                    turn.saturating_add(1)
                )
            }
            Record::Start(_)
            | Record::Told(_)
            | Record::Changes(_)
            | Record::Report(_)
            | Record::Usage(_)
            | Record::Shortening
            | Record::Title(_)
            | Record::Plan(_)
            | Record::Model(_)
            | Record::TurnEnd(_) => continue,
        };
        text.push_str(&part);
    }
    text + &calls
}

/// Returns an answer without its blocks.
#[must_use]
pub fn without_blocks(answer: &str) -> String {
    let kept = pieces(answer).into_iter().filter(|(_, is_block)| !is_block);
    let kept: String = kept.map(|(text, _)| text).collect();
    kept.trim().to_owned()
}

/// Returns the section of a record; nothing for one that a reader does not need.
fn section(record: &Record) -> Option<String> {
    Some(match record {
        Record::User { text, attached } if attached.is_empty() => format!("## User\n\n{text}"),
        Record::User { text, attached } => {
            format!("## User\n\n{text}\n\n{}", fenced(attached.as_str()))
        }
        Record::Answer(text) => format!("## Model\n\n{}", with_code(text.as_str())),
        Record::Changes(text) => format!("### Changes\n\n{}", fenced(text.as_str())),
        Record::Report(text) => format!("### Results\n\n{}", fenced(text.as_str())),
        Record::Told(text) => format!("### Told to the model\n\n{}", fenced(text.as_str())),
        Record::Compaction(text) => format!("## Summary of what came before\n\n{text}"),
        Record::CompactionUndo => "*The summary was taken back.*".to_owned(),
        Record::Rewind(turn) => format!(
            "*Text {} and what follows was taken back.*",
            turn.saturating_add(1)
        ),
        Record::Title(text) => format!("*Renamed to {text}.*"),
        Record::Model(name) => format!("*Model {name} from here on.*"),
        Record::Plan(steps) => plan(steps),
        Record::Start(_)
        | Record::Call(_)
        | Record::Usage(_)
        | Record::Shortening
        | Record::TurnEnd(_) => return None,
    })
}

fn plan(steps: &[PlanStep]) -> String {
    let line = |step: &PlanStep| format!("- {} {}\n", step.state.mark(), step.text);
    let lines: String = steps.iter().map(line).collect();
    format!("### Plan\n\n{lines}")
}

/// Returns an answer with its blocks as code.
fn with_code(answer: &str) -> String {
    let shown = |(text, is_block): (&str, bool)| match is_block {
        true => format!("{}\n", fenced(text)),
        false => text.to_owned(),
    };
    pieces(answer).into_iter().map(shown).collect()
}

/// Returns the pieces of an answer, and whether each is a block. The line break after a block belongs to neither.
fn pieces(answer: &str) -> Vec<(&str, bool)> {
    let grammar = GRAMMAR.get_or_init(|| Arc::new(tools::all().grammar()));
    let (mut parser, mut events) = (Parser::new(Arc::clone(grammar), Mode::Repair), Vec::new());
    parser.run_at_once();
    parser.feed(answer.as_bytes(), &mut events);
    parser.finish(&mut events);
    let place = |offset| usize::try_from(offset).unwrap_or(usize::MAX);
    let (mut pieces, mut at) = (Vec::new(), 0);
    for stretch in parser.take_prose().stretches {
        let (start, end) = (place(stretch.start), place(stretch.end));
        let block = answer.get(at..start).unwrap_or_default();
        let prose = answer.get(start..end).unwrap_or_default();
        let prose = match block {
            "" => prose,
            _ => prose.strip_prefix('\n').unwrap_or(prose),
        };
        pieces.extend([(block, true), (prose, false)]);
        at = end;
    }
    pieces.push((answer.get(at..).unwrap_or_default(), true));
    pieces.retain(|(text, _)| !text.is_empty());
    pieces
}

/// Returns a text as a code block that no line of it ends.
fn fenced(text: &str) -> String {
    let longest = text
        .lines()
        .map(|line| line.trim_start())
        .map(|line| line.len() - line.trim_start_matches('`').len())
        .max();
    let fence = "`".repeat(longest.unwrap_or_default().max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_code_block() {
        assert_eq!(fenced("a\n"), "```\na\n```");
        assert_eq!(fenced("```sh\nls\n```"), "````\n```sh\nls\n```\n````");
        assert_eq!(fenced(" `````"), "``````\n `````\n``````");
    }

    #[test]
    fn blocks_of_an_answer_are_code() {
        let answer = "I look.\n<tools>\n<command>ls</command>\n</tools>\nThen `<tools>`.\n<tools>\n<command>cut";
        let expected = "I look.\n```\n<tools>\n<command>ls</command>\n</tools>\n```\nThen `<tools>`.\n```\n<tools>\n<command>cut\n```\n";
        assert_eq!(with_code(answer), expected);
        assert_eq!(with_code("plain"), "plain");
        assert_eq!(without_blocks(answer), "I look.\nThen `<tools>`.");
        // A block that holds its own end tag as text, and one that is quoted.
        let answer = "<tools>\n<command>echo '</tools>'</command>\n</tools>\nSo:\n```\n<tools>\n</tools>\n```\n";
        assert_eq!(without_blocks(answer), "So:\n```\n<tools>\n</tools>\n```");
    }
}
