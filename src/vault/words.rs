//! The words of a command, and what a place demands of a value.

/// Which program, or word of the shell, reads a value as code, as far as that is known. It is only told: demands are
/// the same whoever makes them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct By(pub(super) Option<&'static str>);

impl PartialEq for By {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for By {}

/// What a value must be like to stand at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Demands {
    /// A whole number: the shell calculates with it.
    pub(super) number: bool,
    /// The shell looks up the names in it, so that no other variable may hold what could be code, unless it is made
    /// of digits.
    pub(super) calculated: bool,
    /// The same, where the shell is zsh.
    pub(super) calculated_in_zsh: bool,
    /// Characters that mean nothing to a shell.
    pub(super) shell: bool,
    /// A shell of this machine reads it as code, and has the variables of the script.
    pub(super) local: bool,
    /// Letters, digits and underscores: they mean nothing to any language inside its strings.
    pub(super) program: bool,
    /// Neither `%` nor a backslash, nor a dash at the start: it is the format of `printf`.
    pub(super) format: bool,
    /// No parenthesis at the start: some builtins read that as the elements of an array.
    pub(super) list: bool,
    /// No backslash, where the shell is zsh: its `echo` and `print` read those.
    pub(super) echo: bool,
    /// No backslash: what stands before it may tell `echo` to read those.
    pub(super) backslash: bool,
    /// No sign at the start with which a program takes an argument for an option or a command.
    pub(super) operand: bool,
    /// No value, since programs run the text of the variable, or load code from there.
    pub(super) code_variable: bool,
    /// Characters that mean nothing to a shell, where the shell is zsh.
    pub(super) zsh: bool,
    /// No value, where the shell is zsh.
    pub(super) not_in_zsh: bool,
    /// What is demanded for the shell comes of an expansion that may become several words.
    pub(super) unquoted: bool,
    /// An expansion without quotes brings it there: it is one word only as long as `IFS` is as always.
    pub(super) split: bool,
    /// Nothing at which a shell parts words, or that it takes for a file pattern.
    pub(super) whole: bool,
    /// The script puts other text into it before.
    pub(super) changed: bool,
    /// It runs when the value of a placeholder is gone; a variable of the script may hold one still.
    pub(super) in_function: bool,
    /// No value may stand here, and why.
    pub(super) forbidden: Option<&'static str>,
    /// Who reads it as code.
    pub(super) by: By,
}

impl Demands {
    pub(super) const NONE: Self = Self {
        number: false,
        calculated: false,
        calculated_in_zsh: false,
        shell: false,
        local: false,
        program: false,
        format: false,
        list: false,
        echo: false,
        backslash: false,
        operand: false,
        code_variable: false,
        zsh: false,
        not_in_zsh: false,
        unquoted: false,
        split: false,
        whole: false,
        changed: false,
        in_function: false,
        forbidden: None,
        by: By(None),
    };
    pub(super) const FORMAT: Self = Self {
        format: true,
        ..Self::NONE
    };
    pub(super) const LIST: Self = Self {
        list: true,
        ..Self::NONE
    };
    pub(super) const ECHO: Self = Self {
        echo: true,
        ..Self::NONE
    };
    pub(super) const BACKSLASH: Self = Self {
        backslash: true,
        ..Self::NONE
    };
    pub(super) const OPERAND: Self = Self {
        operand: true,
        ..Self::NONE
    };
    /// One word without quotes, whatever it is.
    pub(super) const WHOLE: Self = Self {
        whole: true,
        split: true,
        ..Self::NONE
    };
    pub(super) const CODE_VARIABLE: Self = Self {
        code_variable: true,
        ..Self::NONE
    };
    pub(super) const NOT_IN_ZSH: Self = Self {
        zsh: true,
        not_in_zsh: true,
        ..Self::NONE
    };
    pub(super) const ZSH: Self = Self {
        zsh: true,
        ..Self::NONE
    };
    pub(super) const NUMBER: Self = Self {
        number: true,
        calculated: true,
        calculated_in_zsh: true,
        ..Self::NONE
    };
    /// A number with which nothing is calculated.
    pub(super) const DIGITS: Self = Self {
        number: true,
        ..Self::NONE
    };
    /// A number that only zsh takes for an expression, as in `[ n -eq 1 ]`.
    pub(super) const PLAIN_NUMBER: Self = Self {
        number: true,
        calculated_in_zsh: true,
        ..Self::NONE
    };
    /// What zsh calculates, where another shell takes a number or nothing.
    pub(super) const ZSH_NUMBER: Self = Self {
        zsh: true,
        calculated_in_zsh: true,
        ..Self::NONE
    };
    pub(super) const SHELL: Self = Self {
        shell: true,
        ..Self::NONE
    };
    /// A program and its words.
    pub(super) const COMMAND: Self = Self {
        unquoted: true,
        ..Self::NONE
    };
    /// Code of a shell that has the variables of the script.
    pub(super) const LOCAL: Self = Self {
        local: true,
        ..Self::NONE
    };
    pub(super) const IN_FUNCTION: Self = Self {
        in_function: true,
        ..Self::NONE
    };
    /// An expansion before the value may name a shell.
    pub(super) const UNQUOTED: Self = Self {
        shell: true,
        unquoted: true,
        ..Self::NONE
    };
    pub(super) const PROGRAM: Self = Self {
        program: true,
        ..Self::NONE
    };
    /// Whatever reads the value is not known.
    pub(super) const ANY_CODE: Self = Self {
        shell: true,
        program: true,
        ..Self::NONE
    };

    /// What names a variable, whose index is calculated.
    pub(super) const VARIABLE_NAME: Self = Self {
        calculated: true,
        calculated_in_zsh: true,
        ..Self::forbidden("in the place of a variable's name")
    };

    pub(super) const fn forbidden(why: &'static str) -> Self {
        Self {
            forbidden: Some(why),
            ..Self::NONE
        }
    }

    /// Returns what of these another place demands, too.
    pub(super) fn only(self, other: Self) -> Self {
        Self {
            number: self.number && other.number,
            calculated: self.calculated && other.calculated,
            calculated_in_zsh: self.calculated_in_zsh && other.calculated_in_zsh,
            ..Self::NONE
        }
    }

    /// Returns what is demanded of a value that is not calculated with itself.
    pub(super) fn uncalculated(self) -> Self {
        Self {
            number: false,
            calculated: false,
            calculated_in_zsh: false,
            ..self
        }
    }

    /// Returns the strictest of what the shells demand: which of them reads the value is not known.
    pub(super) fn in_any_shell(self) -> Self {
        Self {
            shell: self.shell || self.zsh,
            number: self.number || self.not_in_zsh,
            ..self
        }
    }

    /// Whether the value is read as code.
    pub(super) fn is_code(self) -> bool {
        self.shell || self.program
    }

    /// Notes who reads the value as code, if something does and nobody is known yet.
    pub(super) fn read_by(self, name: Option<&'static str>) -> Self {
        let by = match self.is_code() {
            true => By(self.by.0.or(name)),
            false => self.by,
        };
        Self { by, ..self }
    }

    /// Returns who makes both demands: the stricter one, if they differ.
    fn by_both(self, other: Self) -> By {
        match (self.program, other.program) {
            (true, false) => self.by,
            (false, true) => other.by,
            _ => By(self.by.0.or(other.by.0)),
        }
    }

    /// Returns both demands together.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            number: self.number || other.number,
            calculated: self.calculated || other.calculated,
            calculated_in_zsh: self.calculated_in_zsh || other.calculated_in_zsh,
            shell: self.shell || other.shell,
            local: self.local || other.local,
            program: self.program || other.program,
            format: self.format || other.format,
            list: self.list || other.list,
            echo: self.echo || other.echo,
            backslash: self.backslash || other.backslash,
            operand: self.operand || other.operand,
            code_variable: self.code_variable || other.code_variable,
            zsh: self.zsh || other.zsh,
            not_in_zsh: self.not_in_zsh || other.not_in_zsh,
            unquoted: self.unquoted || other.unquoted,
            split: self.split || other.split,
            whole: self.whole || other.whole,
            changed: self.changed || other.changed,
            in_function: self.in_function || other.in_function,
            forbidden: self.forbidden.or(other.forbidden),
            by: self.by_both(other),
        }
    }
}

/// One word of a command, as far as it is known without running anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// Its literal characters, quotes removed; long words are cut.
    pub(super) text: String,
    /// Whether it also holds an expansion or a placeholder.
    pub(super) is_dynamic: bool,
    /// Whether a part of it is quoted.
    pub(super) is_quoted: bool,
    /// Whether it starts with `NAME=`.
    pub(super) is_assignment: bool,
    /// Whether it holds a pattern of file names or braces, so that it may become other words.
    pub(super) is_pattern: bool,
    /// Whether an expansion in it may become several words, or none.
    pub(super) is_split: bool,
    /// Whether an expansion in it is a list: `$@`, all elements of an array.
    pub(super) is_list: bool,
    /// Whether it holds flags of a file pattern of zsh, `(#i)`: what they do to the rest is not known.
    pub(super) has_flags: bool,
    /// Whether it is the variable that names the user's shell.
    pub(super) names_shell: bool,
    /// Whether the shell makes characters of others in it, `$'\\x41'`.
    pub(super) is_made: bool,
    /// Whether a substitution in it prints text of the script that may be more than one plain word.
    pub(super) is_told: bool,
    /// Whether characters at its end were cut.
    pub(super) is_cut: bool,
    /// Whether the script has a function of that name.
    pub(super) is_function: bool,
    /// How much of the text stands before its last expansion.
    pub(super) expanded_at: usize,
    /// The same for each of them, as far as they are looked at.
    pub(super) expansions: Vec<usize>,
    /// Where it begins and ends in the script.
    pub(super) span: (usize, usize),
    /// How many places stand before it, and before its end.
    pub(super) first_place: usize,
    pub(super) places: usize,
}

impl Word {
    /// No name or option that matters is longer, and hardly a script after `-c` that reads its input.
    const MAX_BYTES: usize = 1024;
    /// Expansions of one word that are looked at.
    const MAX_EXPANSIONS: usize = 64;

    pub(super) fn push(&mut self, byte: u8) {
        if self.text.len() < Self::MAX_BYTES {
            // Only ASCII matters to the tables.
            self.text.push(if byte.is_ascii() {
                char::from(byte)
            } else {
                '\u{FFFD}'
            });
        } else {
            self.is_cut = true;
        }
    }

    /// Notes an expansion, or whatever else becomes text that is not known, at the end.
    pub(super) fn expands(&mut self) {
        self.is_dynamic = true;
        self.expanded_at = self.text.len();
        match self.expansions.len() < Self::MAX_EXPANSIONS {
            true => self.expansions.push(self.expanded_at),
            false => self.is_cut = true,
        }
    }

    /// Returns the text as code that another shell gets, where an expansion of this one may be any word.
    pub(super) fn code(&self) -> String {
        let mut code = String::with_capacity(self.text.len() + self.expansions.len() * 4);
        let mut at = 0;
        if self.is_dynamic && self.expansions.is_empty() {
            code.push_str("${1}");
        }
        for end in self.expansions.iter().copied() {
            code.push_str(self.text.get(at..end).unwrap_or_default());
            code.push_str("${1}");
            at = end;
        }
        code.push_str(self.text.get(at..).unwrap_or_default());
        code
    }

    /// Notes an unquoted character that is about to be added.
    pub(super) fn note_pattern(&mut self, byte: u8) {
        let has = |open: char| self.text.contains(open);
        self.is_pattern |= match byte {
            b'*' | b'?' => true,
            // With `extendedglob` of zsh.
            b'^' | b'#' => true,
            b']' => !self.text.is_empty() && has('[') && self.text != "[",
            b',' => has('{'),
            b'.' => has('{') && self.text.ends_with('.'),
            _ => false,
        };
    }

    /// Whether it is an expansion that may become an option.
    pub(super) fn may_be_option(&self) -> bool {
        self.is_dynamic && !self.text.contains('=')
    }

    /// Whether it may become more than one word, or none.
    pub(super) fn may_split(&self) -> bool {
        self.is_pattern || self.is_split || self.is_list
    }

    /// Whether nothing can be said about the program it names: the last part of its path is not
    /// all there.
    pub(super) fn is_unknown_program(&self) -> bool {
        let known = self.text.get(self.expanded_at..).unwrap_or_default();
        self.is_any() || self.is_dynamic && !known.contains('/')
    }

    /// Whether it may be whichever words: a pattern, a list, or more than is looked at.
    pub(super) fn is_any(&self) -> bool {
        self.is_pattern || self.is_list || self.is_cut
    }

    /// Whether it may become options: it is only an expansion, or its dash is all that is known.
    pub(super) fn may_be_flags(&self) -> bool {
        self.may_split() || self.is_dynamic && matches!(self.text(), "" | "-" | "--")
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the shell takes the word for the keyword or operator `text`.
    pub(super) fn is_plain(&self, text: &str) -> bool {
        self.text == text && !self.is_quoted && !self.is_dynamic
    }

    /// Whether the word so far is a variable's name.
    pub(super) fn is_name(&self) -> bool {
        !self.is_dynamic && !self.is_quoted && is_name(&self.text)
    }

    pub(super) fn program(&self) -> &str {
        let name = self.text.rsplit('/').next().unwrap_or_default();
        // `=bash` is its path in zsh.
        // `\\builtin` is a builtin in ksh.
        name.trim_start_matches(['=', '\\'])
    }

    /// Whether it is an address, `https://host/node`, which is no path of a program. Images of containers are called so, too.
    pub(super) fn is_address(&self) -> bool {
        const IMAGES: &[&str] = &["docker", "oras", "library", "shub"];
        let scheme = self.text.split_once("://").map_or("", |(scheme, _)| scheme);
        !scheme.is_empty() && !IMAGES.iter().any(|image| scheme.ends_with(image))
    }

    /// Whether it may be a program that gets these arguments: an address is none, unless an option follows, which might say
    /// what is code.
    pub(super) fn may_run(&self, arguments: &[Self]) -> bool {
        let may_be_option = |word: &Self| word.is_dynamic || word.text.starts_with(['-', '+']);
        !self.is_address() || arguments.iter().any(may_be_option)
    }

    /// Whether it stands for a compound command.
    pub(super) fn is_nothing(&self) -> bool {
        self.text.is_empty() && !self.is_dynamic && !self.is_quoted
    }

    pub(super) fn is_unknown(&self) -> bool {
        self.is_dynamic && self.text.is_empty()
    }

    /// Whether it is an option like `-lc` that holds the letter.
    pub(super) fn has_option(&self, letter: char) -> bool {
        self.text.starts_with('-') && !self.text.starts_with("--") && self.text.contains(letter)
    }
}

pub(super) fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    let first = bytes.next();
    first.is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
