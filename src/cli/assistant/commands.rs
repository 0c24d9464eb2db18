//! The commands that a user types after a slash.

use karyi_core::similar_names::similar_names;

/// A command that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlashCommand {
    Help,
    Model,
    Mode,
    Clear,
    Compact,
    Resume,
    Rename,
    Todo,
    Cost,
    Status,
    Jobs,
    Tools,
    Vars,
    Undo,
    Diff,
    Quit,
}

/// Commands with their names and what they do.
pub(super) const COMMANDS: &[(SlashCommand, &str, &str)] = &[
    (SlashCommand::Help, "help", "list the commands and keys"),
    (
        SlashCommand::Model,
        "model",
        "show the model, or change it: /model NAME",
    ),
    (
        SlashCommand::Mode,
        "mode",
        "show the mode of approval, or change it: /mode ask",
    ),
    (
        SlashCommand::Clear,
        "clear",
        "start a new conversation; the shell stays as it is",
    ),
    (SlashCommand::Clear, "new", "the same as /clear"),
    (
        SlashCommand::Compact,
        "compact",
        "let the model sum the conversation up: /compact [FOCUS]",
    ),
    (
        SlashCommand::Resume,
        "resume",
        "list earlier chats, or go on with one: /resume ID",
    ),
    (SlashCommand::Rename, "rename", "give the chat a title"),
    (SlashCommand::Todo, "todo", "show the plan of the model"),
    (SlashCommand::Cost, "cost", "show tokens and cost"),
    (
        SlashCommand::Status,
        "status",
        "show model, directory, shell and tokens",
    ),
    (SlashCommand::Jobs, "jobs", "list the jobs of the shell"),
    (SlashCommand::Tools, "tools", "list the tools of the model"),
    (
        SlashCommand::Vars,
        "vars",
        "list the secrets that calls may use by name",
    ),
    (SlashCommand::Undo, "undo", "undo the last change of files"),
    (
        SlashCommand::Diff,
        "diff",
        "show the changes of files of this session",
    ),
    (SlashCommand::Quit, "quit", "end the session"),
];

/// Finds a command by its text: the name without its slash, and what follows it.
///
/// # Errors
/// A message that names the nearest command.
pub(super) fn parse(text: &str) -> Result<(SlashCommand, &str), String> {
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let found = COMMANDS.iter().find(|(_, known, _)| *known == name);
    if let Some((command, _, _)) = found {
        return Ok((*command, rest.trim()));
    }
    let known = COMMANDS.iter().map(|(_, known, _)| *known);
    Err(match similar_names(name, known).first() {
        Some(near) => format!("no command /{name}; did you mean /{near}?"),
        None => format!("no command /{name}; /help lists the commands"),
    })
}

/// Returns the help.
pub(super) fn help() -> String {
    let mut text = String::new();
    for (_, name, summary) in COMMANDS {
        text.push_str(&format!("/{name:<8} {summary}\n"));
    }
    text.push_str(
        "!COMMAND  run a command in the shell of the session; !!COMMAND does not tell the model\n\
         @PATH     name a file; Tab completes it\n\
         Keys: Enter sends · Alt+Enter, Ctrl+J or \\ and Enter break the line · Esc interrupts · Ctrl+C menu · \
         Ctrl+R earlier input · Ctrl+G editor · Ctrl+Z suspend · Ctrl+D quit",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_by_name() {
        assert_eq!(parse("model tiny x"), Ok((SlashCommand::Model, "tiny x")));
        assert_eq!(parse("quit"), Ok((SlashCommand::Quit, "")));
        let unknown = |text| parse(text).unwrap_err();
        assert_eq!(unknown("modle"), "no command /modle; did you mean /model?");
        assert_eq!(
            unknown("zzzzzzzz"),
            "no command /zzzzzzzz; /help lists the commands"
        );
    }
}
