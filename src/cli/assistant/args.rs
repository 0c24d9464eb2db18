//! Arguments of `karyi chat`.

use std::ffi::OsString;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};

use crate::approval::Mode;
use crate::cli::session_args::SessionArgs;

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
    /// Go on with this chat; `karyi chats list` lists them
    #[arg(long, short, value_name = "CHAT", conflicts_with = "is_continued")]
    pub(in crate::cli) resume: Option<String>,
    /// Print lines only, and move no cursor; so it is with TERM=dumb
    #[arg(long)]
    pub(in crate::cli) plain: bool,
    #[command(flatten)]
    pub(in crate::cli) session: SessionArgs,
}

/// Options of karyi without a command, as other assistants have them.
#[derive(Debug, Args, Default)]
pub(in crate::cli) struct StartArgs {
    /// Ask this and print the answer, as `karyi ask`
    #[arg(short = 'p', long = "print", value_name = "TEXT")]
    print: Option<String>,
    /// Go on with the last chat of this directory, as `karyi chat --continue`
    #[arg(long = "continue", short = 'c', conflicts_with_all = ["print", "resume"])]
    is_continued: bool,
    /// Go on with this chat, as `karyi chat --resume`
    #[arg(long, short, value_name = "CHAT", conflicts_with = "print")]
    resume: Option<String>,
    /// Model of the conversation or the answer
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
}

impl StartArgs {
    /// Returns true when one of them is given.
    pub(in crate::cli) fn is_given(&self) -> bool {
        let Self {
            print,
            is_continued,
            resume,
            model,
        } = self;
        *is_continued || [print, resume, model].iter().any(|value| value.is_some())
    }

    /// Returns the arguments of `karyi ask`, when an answer is to be printed.
    pub(in crate::cli) fn as_ask(&self) -> Option<Vec<OsString>> {
        let text = self.print.as_ref()?;
        let mut arguments: Vec<OsString> = vec!["karyi".into(), "ask".into()];
        if let Some(model) = &self.model {
            arguments.extend(["--model".into(), model.into()]);
        }
        arguments.extend(["--".into(), text.into()]);
        Some(arguments)
    }

    /// Returns the arguments of `karyi chat`.
    pub(in crate::cli) fn into_chat(self) -> ChatArgs {
        ChatArgs {
            is_continued: self.is_continued,
            resume: self.resume,
            model: self.model,
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
