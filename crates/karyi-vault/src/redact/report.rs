//! Masks the values that reports are made of. A new field must be named here.
//!
//! Placeholders in them are the model's own. The result of a tool is masked where it is made.

use std::borrow::Cow;

use super::{Redactable, Redactor};
use karyi_core::error::{Diagnostic, ToolError};
use karyi_core::outcome::{JobNews, Outcome};

impl Redactable for Outcome {
    fn mask(&mut self, redactor: &Redactor) {
        let Self {
            id,
            tool,
            status: _,
            error,
            fields,
            output,
            duration_ms: _,
            repairs: _,
            job_waits: _,
            title,
        } = self;
        redactor.redact_in_again(id);
        if let Some(title) = title {
            redactor.redact_in_again(title);
        }
        redactor.redact_in_again(tool);
        if let Some(ToolError {
            code: _,
            message,
            hint,
            is_hint_quoted: _,
            names: _,
        }) = error
        {
            redactor.redact_in_again(message);
            redactor.redact_in_again(hint);
        }
        for value in fields.values_mut() {
            redactor.redact_values_again(value);
        }
        if let Some(view) = output {
            redactor.redact_in_again(&mut view.text);
        }
    }
}

impl Redactable for JobNews {
    fn mask(&mut self, redactor: &Redactor) {
        let Self {
            id,
            command,
            state: _,
            is_background: _,
            exit_code: _,
            signal: _,
            age_ms: _,
            last_line,
        } = self;
        redactor.redact_in_again(id);
        redactor.redact_in_again(command);
        if let Some(line) = last_line {
            redactor.redact_in_again(line);
        }
    }
}

impl Redactable for Diagnostic {
    fn mask(&mut self, redactor: &Redactor) {
        let Self {
            code: _,
            position: _,
            is_in_json: _,
            message,
            hint,
            excerpt,
        } = self;
        redactor.redact_in_again(message);
        redactor.redact_in_again(hint);
        if let Some(excerpt) = excerpt
            && let Cow::Owned(line) = redactor.redact_again(&excerpt.line)
        {
            // The caret would point to the wrong place in a line of another length.
            excerpt.caret_start = 0;
            excerpt.caret_len = line.chars().count();
            excerpt.line = line;
        }
    }
}
