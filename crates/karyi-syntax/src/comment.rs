//! Comments between elements: skipped as they come, so that none is too long.

use memchr::memmem;

use super::block::{Block, Token};
use super::chars;
use super::common_faults::{bad_byte, unclosed_tag};
use super::context::{Context, Progress};
use super::event::Mode;
use super::fault::{Fault, Outcome};
use karyi_core::error::Code;

impl Block {
    /// Looks at a `<!`, `at` bytes ahead: a comment starts, or it may not stand here.
    pub(super) fn bang(&mut self, cx: &mut Context<'_, '_>, at: usize) -> Outcome<Progress> {
        let rest = cx.view.rest().get(at..).unwrap_or_default();
        if rest.starts_with(b"<!--") {
            cx.view.consume(at);
            self.token = Token::Comment(cx.view.mark(4));
            cx.view.consume(4);
            return Ok(Progress::Again);
        }
        if b"<!--".starts_with(rest) {
            return match cx.is_last() {
                true => Err(unclosed_tag(rest.len(), at)),
                false => Ok(Progress::More),
            };
        }
        // The words do not depend on bytes that may not be here yet.
        let message = "CDATA and declarations may not stand between elements";
        Err(Fault::ahead(Code::UnexpectedMarkup, at, 2, message))
    }

    /// Goes on in a comment.
    pub(super) fn comment(&mut self, cx: &mut Context<'_, '_>) -> Outcome<Progress> {
        let Token::Comment(mark) = &self.token else {
            return Ok(Progress::Again);
        };
        let rest = cx.view.rest();
        let Some(dashes) = memmem::find(rest, b"--") else {
            let checked = chars::check_cut(rest).map_err(|bad| bad_byte(&bad, 0))?;
            if cx.is_last() {
                chars::check(rest).map_err(|bad| bad_byte(&bad, 0))?;
                return Err(Fault::at(
                    Code::UnclosedComment,
                    mark,
                    "the comment has no -->",
                ));
            }
            let dash = usize::from(rest.last() == Some(&b'-'));
            cx.view.consume(checked.min(rest.len() - dash));
            return Ok(Progress::More);
        };
        chars::check(rest.get(..dashes).unwrap_or_default()).map_err(|bad| bad_byte(&bad, 0))?;
        match rest.get(dashes + 2) {
            Some(b'>') => {
                cx.view.consume(dashes + 3);
                self.token = Token::Between;
            }
            None if cx.is_last() => {
                return Err(Fault::at(
                    Code::UnclosedComment,
                    mark,
                    "the comment has no -->",
                ));
            }
            None => {
                cx.view.consume(dashes);
                return Ok(Progress::More);
            }
            Some(_) if cx.mode == Mode::Strict => {
                return Err(Fault::at(
                    Code::BadComment,
                    mark,
                    "`--` stands in a comment",
                ));
            }
            Some(_) => cx.view.consume(dashes + 1),
        }
        Ok(Progress::Again)
    }
}
