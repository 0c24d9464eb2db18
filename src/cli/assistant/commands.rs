//! The commands that a user types after a slash: the one table of help, completion and dispatch.

use crate::chat::notes::commands::CustomCommand;
use karyi_core::similar_names::similar_names;

/// A command that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlashCommand {
    Help,
    Model,
    Effort,
    Mode,
    Plan,
    Clear,
    Compact,
    Context,
    Rewind,
    Resume,
    Rename,
    Export,
    Copy,
    Todo,
    Cost,
    Status,
    Shell,
    Jobs,
    Tools,
    Vars,
    Undo,
    Diff,
    Init,
    Notes,
    Config,
    Policy,
    Doctor,
    Quit,
}

/// Row of the table.
#[derive(Debug)]
pub(super) struct CommandRow {
    pub(super) command: SlashCommand,
    pub(super) name: &'static str,
    /// Arguments, for the help; empty without any.
    arguments: &'static str,
    pub(super) summary: &'static str,
}

/// Makes a row.
const fn row(
    command: SlashCommand,
    name: &'static str,
    arguments: &'static str,
    summary: &'static str,
) -> CommandRow {
    CommandRow {
        command,
        name,
        arguments,
        summary,
    }
}

/// All commands.
pub(super) const COMMANDS: &[CommandRow] = {
    use SlashCommand as Is;
    &[
        row(Is::Help, "help", "", "list the commands and keys"),
        row(
            Is::Model,
            "model",
            "[NAME]",
            "change the model: pick one, or name it",
        ),
        row(
            Is::Effort,
            "effort",
            "[LEVEL]",
            "show or change how much the model reasons: low, medium, high, default",
        ),
        row(
            Is::Mode,
            "mode",
            "[NAME]",
            "show or change the mode of approval",
        ),
        row(
            Is::Plan,
            "plan",
            "[TEXT]",
            "let the model plan first: mode read-only until /mode changes it",
        ),
        row(
            Is::Clear,
            "clear",
            "",
            "start a new conversation; the shell stays as it is",
        ),
        row(Is::Clear, "new", "", "the same as /clear"),
        row(
            Is::Compact,
            "compact",
            "[FOCUS]",
            "let the model sum the conversation up",
        ),
        row(
            Is::Context,
            "context",
            "",
            "show what takes the model's context",
        ),
        row(
            Is::Rewind,
            "rewind",
            "",
            "go back to an earlier text: talk, files, or both (also Esc Esc)",
        ),
        row(
            Is::Resume,
            "resume",
            "[ID]",
            "go on with an earlier chat, picked from a list or named",
        ),
        row(Is::Rename, "rename", "TITLE", "give the chat a title"),
        row(
            Is::Export,
            "export",
            "[FILE]",
            "write the chat to a file as Markdown",
        ),
        row(
            Is::Copy,
            "copy",
            "",
            "copy the last answer to the clipboard of the terminal",
        ),
        row(Is::Todo, "todo", "", "show the plan of the model"),
        row(Is::Cost, "cost", "", "show tokens and cost"),
        row(
            Is::Status,
            "status",
            "",
            "show model, directory, shell and tokens",
        ),
        row(
            Is::Shell,
            "shell",
            "",
            "take over the shell: your keyboard is its terminal",
        ),
        row(Is::Jobs, "jobs", "", "list the jobs of the shell"),
        row(Is::Tools, "tools", "", "list the tools of the model"),
        row(
            Is::Vars,
            "vars",
            "",
            "list the secrets that calls may use by name",
        ),
        row(Is::Undo, "undo", "", "undo the last change of files"),
        row(
            Is::Diff,
            "diff",
            "",
            "show the changes of files of this session",
        ),
        row(Is::Init, "init", "", "let the model write AGENTS.md"),
        row(Is::Notes, "notes", "", "show which notes the model gets"),
        row(
            Is::Config,
            "config",
            "",
            "show the settings and where each is from",
        ),
        row(
            Is::Policy,
            "policy",
            "",
            "show the mode and the rules of approval",
        ),
        row(Is::Doctor, "doctor", "", "check what works on this machine"),
        row(Is::Quit, "quit", "", "end the session"),
        row(Is::Quit, "exit", "", "the same as /quit"),
    ]
};

/// Command that was found by its name.
#[derive(Debug, PartialEq)]
pub(super) enum Found<'a> {
    /// One of the table.
    Own(SlashCommand),
    /// One of the project.
    Custom(&'a CustomCommand),
}

/// Finds a command by its text: the name without its slash, and what follows it.
///
/// # Errors
/// A message that names the nearest command.
pub(super) fn parse<'a>(
    text: &'a str,
    custom: &'a [CustomCommand],
) -> Result<(Found<'a>, &'a str), String> {
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    if let Some(row) = COMMANDS.iter().find(|row| row.name == name) {
        return Ok((Found::Own(row.command), rest));
    }
    if let Some(command) = custom.iter().find(|command| command.name == name) {
        return Ok((Found::Custom(command), rest));
    }
    let known = names(custom).map(|(known, _)| known);
    Err(match similar_names(name, known).first() {
        Some(near) => format!("no command /{name}; did you mean /{near}?"),
        None => format!("no command /{name}; /help lists the commands"),
    })
}

/// Returns the names of all commands, and what each does.
pub(super) fn names(custom: &[CustomCommand]) -> impl Iterator<Item = (&str, &str)> {
    let own = COMMANDS.iter().map(|row| (row.name, row.summary));
    let is_hidden = |name: &str| COMMANDS.iter().any(|row| row.name == name);
    let custom = custom
        .iter()
        .filter(move |command| !is_hidden(&command.name));
    own.chain(custom.map(|command| {
        let summary = match command.description.as_str() {
            "" => "a command of this project",
            description => description,
        };
        (command.name.as_str(), summary)
    }))
}

/// Returns the help.
pub(super) fn help(custom: &[CustomCommand]) -> String {
    let mut text = String::new();
    let own = COMMANDS.len();
    for (number, (name, summary)) in names(custom).enumerate() {
        if number == own {
            text.push_str("Commands of this project:\n");
        }
        let arguments = COMMANDS.get(number).map_or("", |row| row.arguments);
        let head = format!("/{name} {arguments}");
        text.push_str(&format!("{head:<17} {summary}\n"));
    }
    text.push_str(
        "!COMMAND  run a command in the shell of the session; !!COMMAND does not tell the model\n\
         @PATH     name a file; Tab completes it\n\
         Keys: Enter sends · Alt+Enter, Ctrl+J or \\ and Enter break the line · Esc interrupts · Ctrl+C menu · \
         Ctrl+R earlier input · Ctrl+G editor · Ctrl+O whole chat · Ctrl+B command to the jobs · Ctrl+Z suspend · Ctrl+D quit",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn custom(name: &str) -> CustomCommand {
        CustomCommand {
            name: name.into(),
            description: String::new(),
            path: "c.md".into(),
            prompt: "p".into(),
        }
    }

    #[test]
    fn commands_are_found_by_name() {
        let own = [custom("deploy"), custom("help")];
        let found = |text| parse(text, &own).unwrap();
        assert_eq!(
            found("model tiny x"),
            (Found::Own(SlashCommand::Model), "tiny x")
        );
        assert_eq!(found("quit"), (Found::Own(SlashCommand::Quit), ""));
        assert_eq!(found("help"), (Found::Own(SlashCommand::Help), ""));
        assert_eq!(found("deploy now "), (Found::Custom(&own[0]), "now"));
        let unknown = |text| parse(text, &own).unwrap_err();
        assert_eq!(unknown("modle"), "no command /modle; did you mean /model?");
        assert_eq!(
            unknown("deplay"),
            "no command /deplay; did you mean /deploy?"
        );
        assert_eq!(
            unknown("zzzzzzzz"),
            "no command /zzzzzzzz; /help lists the commands"
        );
    }

    #[test]
    fn the_help_lists_every_command_once() {
        let text = help(&[custom("deploy"), custom("quit")]);
        for row in COMMANDS {
            let lines = text.lines().filter(|line| {
                let name = line.split_whitespace().next();
                name == Some(&format!("/{}", row.name))
            });
            assert_eq!(lines.count(), 1, "{}", row.name);
        }
        assert!(
            text.contains("\nCommands of this project:\n/deploy "),
            "{text}"
        );
    }
}
