//! The text that teaches a model to use the tools.

use crate::reference::help;
use crate::tool::registry::Registry;
use crate::tool::spec::{Family, Form};
use karyi_core::secret::{self, SecretName};

/// Text before the tools.
const INTRODUCTION: &str = "\
You can act through tools. Write a block like this in your answer; it runs when your answer ends,
and the results come back as <results> in the next message:

<tools>
  <command>ls -la</command>
</tools>

Rules:
- <tools> must be the first text of its line and not inside a code fence. Several blocks are allowed.
- Texts of <command>, <input>, <find>, <replace> and <content> are taken as written: do not escape < or
  &. Wrap a text with its own end tag, or XML escapes to keep, in <![CDATA[ ... ]]>.
- Calls of a block behave as if they ran one after another in the order written, also after one that
  failed. With <tools on_error=\"stop\"> the calls after a failed one are skipped.
- Relative paths start in the session's directory.
- Every result has a status. With an error, read its <hint>, mend the call and send it again.
";

/// Returns the text for a model's system prompt about one family of tools; `shell` is a sentence about the shell.
#[must_use]
pub fn prompt<C>(registry: &Registry<C>, family: Family, shell: &str) -> String {
    let mut text = String::from(INTRODUCTION);
    if !shell.is_empty() {
        text.push_str(&format!("- {shell}\n"));
    }
    for entry in registry.family(family) {
        let spec = &entry.spec;
        text.push_str(&format!(
            "\n<{}>: {}. {}\n",
            spec.name,
            spec.summary,
            one_line(spec.details)
        ));
        let parameter = match spec.form {
            Form::Text { parameter, .. } => Some(parameter),
            Form::Attributes | Form::Parameters => None,
        };
        help::parameters(&mut text, entry.schema.annotated(), parameter, 0);
        if let Some(example) = spec.examples.first() {
            text.push_str(&format!("{}\n", example.xml));
        }
    }
    text
}

/// Returns the part of the prompt about usable secrets: names and notes; `None` when there are none.
#[must_use]
pub fn secrets(known: &[(SecretName, Option<String>)]) -> String {
    if known.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "\nValues you can use without seeing them: write $KARYI{NAME} anywhere in a command, quoted or not; it arrives \
         as one literal piece.\nIn code that another program reads (sh -c, ssh, python -c, SQL), write \
         X=$KARYI{NAME} before the program and read X there; $KARYI{NAME|file} is the path of a file with the value.\n",
    );
    for (name, note) in known {
        let note = note
            .as_deref()
            .map(one_line)
            .filter(|note| !note.is_empty());
        match note {
            Some(note) => text.push_str(&format!("- {name}: {}\n", secret::escape(&note))),
            None => text.push_str(&format!("- {name}\n")),
        }
    }
    text
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_listed_by_name_and_note() {
        let known = |name: &str, note: Option<&str>| {
            (SecretName::parse(name).unwrap(), note.map(Into::into))
        };
        assert_eq!(secrets(&[]), "");
        let text = secrets(&[known("A", None), known("B", Some("for\n  deploys"))]);
        assert!(text.ends_with("\n- A\n- B: for deploys\n"), "{text}");
    }
}
