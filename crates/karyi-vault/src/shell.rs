//! Lets a shell script refer to secrets without containing them.
//!
//! Each placeholder becomes a quoted reference to a variable; the values reach the shell separately.

use zeroize::Zeroizing;

use super::rewriting::{self, RewrittenScript};
use super::session::Secrets;
use super::substitute;
use karyi_core::error::ToolError;
use karyi_core::secret::{Binding, ByteSet, ResolvedText};

/// Replaces the placeholders of a script by references to variables.
///
/// # Errors
/// `bad_placeholder`; `undefined_variable` with all names without a value; `unsafe_context` and `unsafe_nested_parse`
/// for an unsafe placeholder.
pub fn substitute_script(text: &str, secrets: &Secrets) -> Result<ResolvedText, ToolError> {
    let script = rewritten(text, secrets)?;
    let bindings = script.secrets.into_iter().map(|(name, holds)| {
        let missing = || substitute::undefined(std::slice::from_ref(&name));
        let value = secrets.get(&name).ok_or_else(missing)?;
        Ok(Binding { name, value, holds })
    });
    Ok(ResolvedText {
        bindings: bindings.collect::<Result<_, ToolError>>()?,
        text: Zeroizing::new(script.text),
        values: ByteSet::EMPTY,
    })
}

/// Checks that every placeholder of a script is safe in its context.
///
/// # Errors
/// As [`substitute_script`].
pub fn check_script(text: &str, secrets: &Secrets) -> Result<(), ToolError> {
    rewritten(text, secrets).map(drop)
}

fn rewritten(text: &str, secrets: &Secrets) -> Result<RewrittenScript, ToolError> {
    let missing = substitute::undefined_names(text, secrets)?;
    if !missing.is_empty() {
        return Err(substitute::undefined(&missing));
    }
    rewriting::rewrite(text, &|name| secrets.get(name))
}
