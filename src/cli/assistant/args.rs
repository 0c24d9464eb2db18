//! Arguments of `karyi chat`.

use std::ffi::{OsStr, OsString};

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use crate::approval::Mode;
use crate::cli::session_args::SessionArgs;
use crate::cli::usage;
use crate::render::paint::safe_line;
use karyi_core::shell_word;
use karyi_core::similar_names::similar_names;

/// Keys and exit status, for the help of `karyi chat`.
const CHAT_HELP: &str = "\
Keys:
  Enter sends, Alt+Enter or Ctrl+J breaks the line, Esc interrupts, Ctrl+C opens the menu,
  Ctrl+D quits, Ctrl+R finds an earlier input, Ctrl+G opens the editor, Ctrl+O shows the
  whole chat; /help lists the commands

Exit status:
  0    ended by the user
  2    wrong usage
  4    no model could be used
  129, 143  ended by a signal
  255  a bug in karyi";

/// Arguments of `karyi chat`.
#[derive(Debug, Args, Default)]
#[command(after_help = CHAT_HELP)]
pub(in crate::cli) struct ChatArgs {
    /// The first request
    #[arg(value_name = "TEXT")]
    pub(in crate::cli) text: Vec<String>,
    /// Model: a name of [models] in config.toml, or PROVIDER:MODEL [default: $KARYI_MODEL, else
    /// `model` in config.toml]
    #[arg(long, value_name = "MODEL")]
    pub(in crate::cli) model: Option<String>,
    /// Calls that run without asking [default: `mode` of [approval] in config.toml, else ask]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(in crate::cli) mode: Option<Mode>,
    /// Go on with the last chat of this directory
    #[arg(long = "continue", short = 'c')]
    pub(in crate::cli) is_continued: bool,
    /// Go on with this chat, or one picked from a list; `karyi chats list` lists them, too
    #[arg(long, short, value_name = "CHAT", num_args = 0..=1, default_missing_value = "")]
    #[arg(conflicts_with = "is_continued")]
    pub(in crate::cli) resume: Option<String>,
    /// Print lines only, and move no cursor; so it is with TERM=dumb
    #[arg(long)]
    pub(in crate::cli) plain: bool,
    #[command(flatten)]
    pub(in crate::cli) session: SessionArgs,
}

impl ChatArgs {
    /// Returns true when an earlier chat is to be picked from a list.
    pub(in crate::cli) fn is_resumed_from_list(&self) -> bool {
        self.resume.as_deref() == Some("")
    }
}

/// Options of karyi without a command, as other assistants have them.
#[derive(Debug, Args, Default)]
pub(in crate::cli) struct StartArgs {
    /// The first request of the assistant, in quotes
    #[arg(value_name = "TEXT")]
    text: Vec<String>,
    /// Ask this and print the answer, as `karyi ask`; without a text standard input is the request
    #[arg(short = 'p', long = "print", value_name = "TEXT", num_args = 0..=1)]
    print: Option<Option<String>>,
    /// With --print: print one JSON object at the end
    // Of its own name: commands have a global option of the same spelling.
    #[arg(id = "start_json", long = "json", requires = "print")]
    json: bool,
    /// Go on with the last chat of this directory, as `karyi chat --continue`
    #[arg(long = "continue", short = 'c', conflicts_with_all = ["print", "resume"])]
    is_continued: bool,
    /// Go on with this chat, or one picked from a list, as `karyi chat --resume`
    #[arg(long, short, value_name = "CHAT", num_args = 0..=1, default_missing_value = "")]
    #[arg(conflicts_with = "print")]
    resume: Option<String>,
    /// Model of the conversation or the answer
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Calls that run without asking; with --print only `ask` or `full` [default: `mode` of [approval]
    /// in config.toml, else ask]
    #[arg(long, value_enum, value_name = "MODE")]
    mode: Option<Mode>,
}

impl StartArgs {
    /// Returns true when one of them is given.
    pub(in crate::cli) fn is_given(&self) -> bool {
        let Self {
            text,
            print,
            json,
            is_continued,
            resume,
            model,
            mode,
        } = self;
        let is_named = resume.is_some() || model.is_some() || mode.is_some();
        *is_continued || *json || print.is_some() || is_named || !text.is_empty()
    }

    /// Checks that the text is one argument and no command with a mistake in it.
    ///
    /// # Errors
    /// The message for the user. It repeats no word but the first: the others may be a value.
    pub(in crate::cli) fn check_text(&self, program: fn() -> clap::Command) -> Result<(), String> {
        let Some(first) = self.text.first() else {
            return Ok(());
        };
        if let Some(message) = usage::misplaced_file(first) {
            return Err(message);
        }
        let is_word = !first.contains(char::is_whitespace);
        let program = program();
        let commands = program.get_subcommands().map(clap::Command::get_name);
        let near = similar_names(first, commands);
        if let Some(near) = near.first().filter(|_| is_word) {
            let word = safe_line(&shell_word::word(OsStr::new(first))).into_owned();
            return Err(format!(
                "usage: expected a command, found {word}\n\
                 hint: did you mean '{near}'? `karyi chat {word}` sends it to the model"
            ));
        }
        match self.text.len() {
            1 => Ok(()),
            count => Err(format!(
                "usage: expected a command, or a text for the model in quotes, found {count} words\n\
                 hint: `karyi help` lists the commands; `karyi \"why does the build fail?\"` asks the model"
            )),
        }
    }

    /// Returns the arguments of `karyi ask`, when an answer is to be printed.
    ///
    /// # Errors
    /// The mode needs a person.
    pub(in crate::cli) fn as_ask(&self) -> Result<Option<Vec<OsString>>, String> {
        let Some(text) = &self.print else {
            return Ok(None);
        };
        let mut arguments: Vec<OsString> = vec!["karyi".into(), "ask".into()];
        if let Some(model) = &self.model {
            arguments.extend(["--model".into(), model.into()]);
        }
        match self.mode {
            None | Some(Mode::Ask) => {}
            Some(Mode::Full) => arguments.push("--approve=full".into()),
            Some(mode) => {
                let mode = mode.as_str();
                return Err(format!(
                    "expected the mode ask or full with --print, found {mode}\nhint: `karyi policy add` allows calls"
                ));
            }
        }
        if self.json {
            arguments.push("--json".into());
        }
        arguments.push("--".into());
        arguments.extend(text.iter().chain(&self.text).map(OsString::from));
        Ok(Some(arguments))
    }

    /// Returns the arguments of `karyi chat`.
    pub(in crate::cli) fn into_chat(self) -> ChatArgs {
        ChatArgs {
            is_continued: self.is_continued,
            resume: self.resume,
            model: self.model,
            mode: self.mode,
            text: self.text,
            ..ChatArgs::default()
        }
    }
}

impl ValueEnum for Mode {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::CHOICES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Nothing => return None,
            Self::ReadOnly => "Those that only read; all others are refused",
            Self::Ask => "Those that only read, and those that a rule allows",
            Self::Edits => "The same, and changes of files in the project",
            Self::Full => "All but those that a rule denies or asks about",
        };
        Some(PossibleValue::new(self.as_str()).help(help))
    }
}
