//! Reads what stands inside of words: quotes, expansions, expressions, and comments.

use std::ops::Range;

use super::spelt;
use super::{Case, Closer, Quote, Reader, Role, Step};
use crate::limits;
use crate::vault::words::Demands;

/// Why a script is refused with a placeholder behind a backslash.
pub(in crate::vault) const AFTER_BACKSLASH: &str = "a backslash stands before a placeholder";

impl Reader<'_> {
    /// Whether a `#` here starts a comment: in tests it is mostly a character of a pattern.
    pub(super) fn starts_comment(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|at| self.bytes.get(at));
        let follows_blank = before.is_none_or(u8::is_ascii_whitespace);
        let opener = self.at.checked_sub(2).and_then(|at| self.bytes.get(at));
        let is_glob =
            opener.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"*?]".contains(byte));
        // `*(#qN)`
        if before == Some(&b'(') && is_glob {
            return false;
        }
        let in_pattern = self.frame.closer == Closer::Pattern;
        self.frame.word.is_none() && (follows_blank || !self.frame.in_test) && !in_pattern
    }

    pub(super) fn comment(&mut self) -> Step {
        let before = self.at.checked_sub(1).and_then(|at| self.bytes.get(at));
        // `(#i)` is no comment in zsh.
        let in_case = self.frame.cases.last() == Some(&Case::Pattern);
        let is_doubtful = self.frame.in_test || in_case || before == Some(&b'(');
        while self.peek(0).is_some_and(|byte| byte != b'\n') {
            if self.hole_at(self.at) {
                if is_doubtful {
                    return self.unreadable("a placeholder stands after # in a pattern");
                }
                self.hole(Quote::Comment, Demands::NONE);
            } else {
                self.at += 1;
            }
        }
        Ok(())
    }

    /// Passes a backslash and what it quotes.
    pub(super) fn escape(&mut self) -> Step {
        if self.hole_at(self.at + 1) {
            return self.unreadable(AFTER_BACKSLASH);
        }
        self.at += 1;
        match self.peek(0) {
            Some(b'\n') => self.at += 1,
            Some(_) => self.literal(),
            None => {}
        }
        Ok(())
    }

    pub(super) fn single(&mut self) -> Step {
        self.quoted(Quote::Single)
    }

    /// Reads a string in single quotes, with or without `$`.
    fn quoted(&mut self, quote: Quote) -> Step {
        self.at += if quote == Quote::Dollar { 2 } else { 1 };
        loop {
            if self.hole_at(self.at) {
                self.hole(quote, Demands::NONE);
                continue;
            }
            match self.peek(0) {
                None => return self.unreadable("a single quote is not closed"),
                Some(b'\'') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') if quote == Quote::Dollar => {
                    self.escape()?;
                    // It may be any character.
                    if let Some(word) = &mut self.frame.word {
                        word.expands();
                        word.is_made = true;
                    }
                }
                Some(_) => self.literal(),
            }
        }
    }

    pub(super) fn double(&mut self) -> Step {
        self.at += 1;
        loop {
            if self.hole_at(self.at) {
                self.hole(Quote::Double, Demands::NONE);
                continue;
            }
            match self.peek(0) {
                None => return self.unreadable("a double quote is not closed"),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    let is_sign = |byte: u8| b"$`\"\\\n".contains(&byte);
                    if self.peek(1).is_some_and(|byte| !is_sign(byte)) && !self.hole_at(self.at + 1)
                    {
                        // Here the backslash stays.
                        self.literal();
                    } else {
                        self.escape()?;
                    }
                }
                Some(b'$') => self.dollar(Quote::Double)?,
                Some(b'`') => self.backtick(Quote::Double)?,
                Some(_) => self.literal(),
            }
        }
    }

    /// Reads what starts with a dollar sign, inside of text quoted by `quote`.
    pub(super) fn dollar(&mut self, quote: Quote) -> Step {
        let is_bare = quote == Quote::Bare;
        if self.hole_at(self.at + 1) {
            self.literal();
            return Ok(());
        }
        if is_bare && self.peek(1) == Some(b'\'') {
            self.word().is_quoted = true;
            return self.quoted(Quote::Dollar);
        }
        if is_bare && self.peek(1) == Some(b'"') {
            self.word().is_quoted = true;
            self.at += 1;
            return self.double();
        }
        if self.continues_at(self.at + 1) {
            return self.unreadable("a line continuation stands after a dollar sign");
        }
        if let Some(word) = &mut self.frame.word {
            word.expands();
            word.is_split |= is_bare;
        }
        let start = self.at;
        let is_first = self
            .frame
            .word
            .as_ref()
            .is_some_and(|word| word.text().is_empty());
        self.note_subscript()?;
        let documents = self.frame.documents.len();
        self.expansion(quote)?;
        self.check_documents(documents)?;
        // `"$a[@]"` of zsh
        let is_all = self.starts_with(b"[@]") || self.starts_with(b"[*]");
        if let Some(word) = &mut self.frame.word {
            let text = self.bytes.get(start..self.at).unwrap_or_default();
            // `"$@"` and `"${a[@]}"` are several words, and so may be what flags of zsh make.
            let is_list = !text.starts_with(b"$(")
                && (text.contains(&b'@') || is_bare && text == b"$*" || is_all)
                || matches!(text, [b'$', b'{', b'(' | b'=' | b'^' | b'~', ..]);
            word.is_list |= is_list;
            word.names_shell = is_first && SHELL_VARIABLES.contains(&text);
        }
        Ok(())
    }

    /// Refuses a here-document that starts in a substitution and whose body comes after it: shells
    /// disagree about where.
    pub(super) fn check_documents(&self, before: usize) -> Step {
        if self.frame.documents.len() > before {
            return self
                .unreadable("a here-document starts in a substitution that ends on its line");
        }
        Ok(())
    }

    /// Notes the index after `$name` here, with which zsh calculates; to bash it is text.
    fn note_subscript(&mut self) -> Step {
        let rest = self.bytes.get(self.at + 1..self.limit).unwrap_or_default();
        let flags = rest
            .iter()
            .take_while(|byte| b"#+^=~!".contains(byte))
            .count();
        let name = rest.get(flags..).unwrap_or_default();
        let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let length = match name.iter().take_while(is_word).count() {
            0 => usize::from(name.first().is_some_and(|byte| b"@*?-$".contains(byte))),
            length => length,
        };
        let index = name.get(length..).unwrap_or_default();
        let start = self.limit - index.len();
        self.no_continued_name(start)?;
        // Inside of another its end is known. The last flag may be the name, as in `$#`.
        if length == 0 && flags == 0 || !index.starts_with(b"[") || self.subscript.contains(&start)
        {
            return Ok(());
        }
        let mut open = 0_usize;
        let mut bytes = index.iter().enumerate();
        let end = bytes.find(|(at, byte)| {
            match byte {
                b'[' => open += 1,
                b']' => open = open.saturating_sub(1),
                _ => {}
            }
            **byte == b']' && open == 0 && self.joined(start + at + 1).next() != Some(b'[')
        });
        let end = end.map_or(self.limit, |(at, _)| start + at + 1);
        self.subscript = start..end;
        let cut = end.min(start + limits::MAX_CLAUSE_BYTES);
        let text = self.bytes.get(start..cut).unwrap_or_default();
        let text = String::from_utf8_lossy(text).into_owned();
        self.calculates_with(&text, Demands::PLAIN_NUMBER);
        Ok(())
    }

    /// Passes an expansion at its dollar sign.
    fn expansion(&mut self, quote: Quote) -> Step {
        match self.peek(1) {
            Some(b'(') if self.peek(2) == Some(b'(') => {
                self.at += 3;
                self.expression(b"))")
            }
            Some(b'(') => {
                self.at += 2;
                self.substitution(Demands::NONE, |reader| reader.commands(Closer::Parenthesis))
            }
            Some(b'[') => {
                self.at += 2;
                self.expression(b"]")
            }
            Some(b'{') => self.parameter(quote),
            _ => {
                self.variable(quote)?;
                self.no_continued_name(self.at)
            }
        }
    }

    /// Passes `$name` or `$` and one special character.
    fn variable(&mut self, quote: Quote) -> Step {
        self.at += 1;
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        // `$~x`, `$=x` and `$^x` of zsh.
        let signs = (0..4).take_while(|at| self.peek(*at).is_some_and(|b| b"~=^".contains(&b)));
        let signs = signs.count();
        let has_signs = signs > 0 && self.peek(signs).is_some_and(is_word);
        let mut demands = Demands::NONE;
        if has_signs {
            self.at += signs;
            demands = Demands::ZSH;
        }
        let start = self.at;
        match self.peek(0) {
            Some(byte) if is_word(byte) => {
                while self.peek(0).is_some_and(is_word) && !self.hole_at(self.at) {
                    self.at += 1;
                }
            }
            Some(b'#' | b'?' | b'!' | b'@' | b'*' | b'-') => self.at += 1,
            _ => {}
        }
        self.uses(start..self.at, quote, demands);
        self.no_modifier()
    }

    /// Refuses a placeholder in `$name:s/text/text/`, where zsh takes the text as it is written.
    fn no_modifier(&self) -> Step {
        let rest = self.bytes.get(self.at..self.limit).unwrap_or_default();
        let (length, delimiter) = match rest {
            [b':', b's' | b'S', delimiter, ..] => (3, delimiter),
            [b':', b'g', b's' | b'S', delimiter, ..] => (4, delimiter),
            _ => return Ok(()),
        };
        let is_delimiter = delimiter.is_ascii_punctuation() && !b"$\"'\\`".contains(delimiter);
        let text = rest.get(length..).unwrap_or_default();
        let ends = text
            .iter()
            .enumerate()
            .filter(|(_, byte)| *byte == delimiter);
        let end = self.at + length + ends.map(|(at, _)| at).nth(1).unwrap_or(0);
        let hole = self.holes.get(self.passed);
        if is_delimiter && hole.is_some_and(|hole| hole.start < end) {
            return self.unreadable("a placeholder stands in a modifier of a variable");
        }
        Ok(())
    }

    /// Reads `${...}`.
    fn parameter(&mut self, quote: Quote) -> Step {
        self.at += 2;
        if matches!(self.peek(0), Some(b' ' | b'\t' | b'\n' | b'|')) {
            // `${ command; }`
            let start = self.at;
            let result = self.substitution(Demands::NONE, |reader| reader.commands(Closer::Brace));
            let text = self.text_from(start);
            self.note_given(&text);
            return result;
        }
        self.no_continuation()?;
        self.parameters += 1;
        let around = self.around_braces;
        self.around_braces = around.or(Some(self.inherited));
        let result = self.nested(Demands::NONE, |reader| reader.parameter_body(quote));
        self.around_braces = around;
        self.parameters -= 1;
        result
    }

    /// What assigning to the variable demands whose name began somewhere and ends here.
    fn name_demands(&self, start: usize) -> Demands {
        let name = self.bytes.get(start..self.at).unwrap_or_default();
        let name = std::str::from_utf8(name).unwrap_or_default();
        self.variable_demands(name, true)
    }

    fn parameter_body(&mut self, quote: Quote) -> Step {
        let opening = self.at;
        while self.peek(0).is_some_and(|byte| matches!(byte, b'!' | b'#'))
            && self.peek(1) != Some(b'}')
            && !self.hole_at(self.at)
        {
            self.at += 1;
        }
        let signs = self.bytes.get(opening..self.at).unwrap_or_default();
        let (is_length, is_indirect) = (signs.contains(&b'#'), signs.contains(&b'!'));
        if self.peek(0) == Some(b'(') {
            self.flags()?;
            let forbidden = Demands::forbidden("in an expansion with flags");
            self.inherited = self.inherited.and(forbidden);
        }
        let name = self.parameter_name()?;
        let assigned = self.name_demands(name.start);
        if name.is_empty() && self.peek(0).is_some_and(|byte| b"=^~+?-/%".contains(&byte)) {
            // `${+name[...]}` and the like of zsh.
            return self.expression(b"}");
        }
        let is_prompt = self.starts_with(b"@P");
        let is_used = !is_length && !self.starts_with(b"+") && !self.starts_with(b":+");
        let lists_names = ["[@]", "[*]", "@}", "*}"]
            .iter()
            .any(|text| self.starts_with(text.as_bytes()));
        if is_indirect && !lists_names {
            self.is_indirect();
            if self.bytes.get(name.clone()) == Some(b"#") {
                self.uses_arguments();
            }
        }
        if is_indirect && lists_names && self.may_list(name.clone()) {
            self.shows_variables(self.inherited);
        }
        if is_used {
            // The value names a variable, or is expanded once more.
            let demands = match is_indirect || is_prompt {
                true => Demands::ANY_CODE,
                false => Demands::NONE,
            };
            self.uses(name.clone(), quote, demands);
        }
        let used = self.places.len().checked_sub(1).filter(|_| is_used);
        if self.peek(0) == Some(b'[') {
            self.at += 1;
            self.expression(b"]")?;
            self.no_continuation()?;
        }
        self.operator(quote, name, assigned, used)
    }

    /// Passes the name of `${name...}`.
    fn parameter_name(&mut self) -> Step<Range<usize>> {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        self.no_continuation()?;
        if self.hole_at(self.at) {
            return self.unreadable("a placeholder stands in the place of a variable's name");
        }
        let start = self.at;
        if self.peek(0).is_some_and(is_word) {
            while self.peek(0).is_some_and(is_word) {
                self.at += 1;
            }
        } else if self.peek(0).is_some_and(|byte| b"@*?-$!#".contains(&byte))
            && !(self.starts_with(b"$") && self.is_expansion(self.at + 1))
        {
            self.at += 1;
        }
        if self.hole_at(self.at) {
            return self.unreadable("a placeholder stands in the place of a variable's name");
        }
        self.no_continuation()?;
        Ok(start..self.at)
    }

    /// Reads what follows the name of `${name...}`, and the brace.
    fn operator(
        &mut self,
        quote: Quote,
        name: Range<usize>,
        assigned: Demands,
        used: Option<usize>,
    ) -> Step {
        let (first, start) = (self.places.len(), self.at);
        match (self.peek(0), self.peek(1)) {
            // What only zsh has, or nobody: `${${...}[...]}`, `${+name[...]}`.
            (Some(byte), _) if !b"=:-?+/#%^,}".contains(&byte) => self.expression(b"}"),
            (Some(b'='), _) | (Some(b':'), Some(b'=')) => {
                self.inherited = self.inherited.and(assigned);
                let is_ignored = self
                    .frame
                    .words
                    .first()
                    .is_some_and(|word| word.text() == ":");
                if !is_ignored {
                    self.refuse_split(quote);
                }
                self.parameter_word(quote, false)?;
                let name = self.bytes.get(name).unwrap_or_default();
                let name = String::from_utf8_lossy(name).into_owned();
                self.assigns(&name, first..self.places.len());
                let text = spelt::literal_part(&self.text_from(start));
                let text = text.trim_start_matches([':', '=']).trim_end_matches('}');
                self.assigns_text(&name, text);
                self.note_given(text);
                Ok(())
            }
            (Some(b':'), Some(b'-' | b'?' | b'+')) | (Some(b'-' | b'?' | b'+'), _) => {
                self.default_text(quote, start)
            }
            (Some(b':'), _) => {
                self.is_piece(used);
                self.expression(b"}")
            }
            (Some(b'/'), _) => {
                self.is_piece(used);
                if self.pattern(quote)? {
                    // The text may be more than a value may hold.
                    if let Some(place) = self.places.get_mut(used.unwrap_or(usize::MAX)) {
                        place.is_changed = true;
                    }
                    let start = self.at;
                    self.parameter_word(quote, true)?;
                    let text = spelt::literal_part(&self.text_from(start));
                    self.note_given(text.trim_end_matches('}'));
                    Ok(())
                } else {
                    Ok(())
                }
            }
            (Some(b'}'), _) => self.parameter_word(quote, true),
            _ => {
                self.is_piece(used);
                self.parameter_word(quote, true)
            }
        }
    }

    /// Reads the text that stands in for the value of `${name-text}`, from its operator on.
    fn default_text(&mut self, quote: Quote, start: usize) -> Step {
        self.parameter_word(quote, false)?;
        let text = spelt::literal_part(&self.text_from(start + 1));
        let text = text
            .trim_start_matches(['-', '+', '?'])
            .trim_end_matches('}');
        let number = Demands::NUMBER.only(self.inherited);
        if number.number {
            self.calculates_with(text, number);
        }
        self.note_given(text);
        Ok(())
    }

    /// Notes that only a part of the variable is used that stands at a place.
    fn is_piece(&mut self, used: Option<usize>) {
        if let Some(place) = used.and_then(|at| self.places.get_mut(at)) {
            place.is_piece = true;
        }
    }

    /// Whether a dollar sign before the offset starts an expansion, and is no parameter itself.
    fn is_expansion(&self, offset: usize) -> bool {
        let starts = |byte: u8| byte.is_ascii_alphanumeric() || b"_({['\"#@*?$".contains(&byte);
        self.joined(offset).next().is_some_and(starts)
    }

    /// Passes the pattern of `${name/pattern/text}` and what ends it; the text comes next.
    fn pattern(&mut self, quote: Quote) -> Step<bool> {
        self.at += 1;
        if self.peek(0) == Some(b'/') && !self.hole_at(self.at) {
            self.at += 1;
        }
        let has_text = self.parameter_part(Quote::Bare, true)?;
        if has_text {
            self.refuse_split(quote);
        }
        Ok(has_text)
    }

    /// Refuses values in an expansion without quotes whose result is split into words.
    fn refuse_split(&mut self, quote: Quote) {
        let frame = &self.frame;
        let is_assignment = frame.word.as_ref().is_some_and(|word| word.is_assignment);
        let is_whole = is_assignment || frame.declares() || frame.in_test;
        if quote == Quote::Bare && !is_whole && frame.role != Role::HereString {
            let why = "in the text of an expansion that is split into words; put double quotes around the expansion";
            self.inherited = self.inherited.and(Demands::forbidden(why));
        }
    }

    /// Reads the word after an operator of `${...}`, up to the brace. In a pattern quotes quote,
    /// even inside double quotes.
    fn parameter_word(&mut self, quote: Quote, is_pattern: bool) -> Step {
        let own = if is_pattern { Quote::Bare } else { quote };
        self.parameter_part(own, false).map(drop)
    }

    /// Reads up to the brace, or to a slash where one ends the part; returns whether it was that.
    fn parameter_part(&mut self, own: Quote, ends_at_slash: bool) -> Step<bool> {
        loop {
            if self.hole_at(self.at) {
                self.hole(own, Demands::NONE);
                continue;
            }
            match self.peek(0) {
                None => return self.unreadable("a brace is not closed"),
                Some(byte) if byte == b'}' || ends_at_slash && byte == b'/' => {
                    self.at += 1;
                    return Ok(byte == b'/');
                }
                Some(b'\\') => self.escape()?,
                Some(b'\'') if own == Quote::Bare => self.single()?,
                Some(b'"') => self.double()?,
                Some(b'$') => self.dollar(own)?,
                Some(b'`') => self.backtick(own)?,
                Some(_) => self.at += 1,
            }
        }
    }

    /// Reads a command in backticks. They end at the first one without a backslash, whatever the
    /// quotes inside say.
    pub(super) fn backtick(&mut self, quote: Quote) -> Step {
        let start = self.at + 1;
        if let Some(word) = &mut self.frame.word {
            word.expands();
            word.is_split |= quote == Quote::Bare;
        }
        let Some(end) = self.backtick_end(start) else {
            return self.unreadable("a backtick is not closed");
        };
        let body = self.bytes.get(start..end).unwrap_or_default();
        let has = |text: &[u8]| memchr::memmem::find(body, text).is_some();
        let is_requoted = quote != Quote::Bare && (has(b"\\\"") || has(b"$("));
        let demands = if has(b"\\`") || is_requoted || self.backticks > 0 {
            Demands::forbidden("in backticks that hold more quotes or substitutions")
        } else {
            Demands::NONE
        };
        let limit = std::mem::replace(&mut self.limit, end);
        self.at = start;
        self.backticks += 1;
        let result = self.substitution(demands, |reader| reader.commands(Closer::End));
        self.backticks -= 1;
        self.limit = limit;
        self.at = end + 1;
        result
    }

    fn backtick_end(&self, start: usize) -> Option<usize> {
        let mut at = start;
        while at < self.limit {
            match self.bytes.get(at)? {
                b'`' => return Some(at),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        None
    }
}

/// Expansions that are the name of a shell.
const SHELL_VARIABLES: &[&[u8]] = &[b"$SHELL", b"${SHELL}", b"$BASH", b"${BASH}"];
