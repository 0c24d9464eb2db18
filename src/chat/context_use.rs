//! How much of the model's context a conversation takes.

use karyi_model::{ModelRequest, Usage};

/// Bytes of a token, where the server counts none.
const BYTES_OF_A_TOKEN: usize = 4;

/// Percentage of the context from which on a conversation is compacted.
const FULL_PERCENT: u64 = 80;

/// Part of the context that a conversation takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextUse {
    /// Tokens.
    pub tokens: u64,
    /// Tokens that the context has, when that is known.
    pub window: Option<u64>,
    /// True when a part of the tokens is an estimate.
    pub is_estimate: bool,
}

impl ContextUse {
    /// Returns the percentage; nothing when the context is unknown.
    #[must_use]
    pub fn percent(&self) -> Option<u64> {
        let window = self.window.filter(|window| *window > 0)?;
        Some(self.tokens.saturating_mul(100) / window)
    }

    /// Returns true when the conversation should be compacted.
    #[must_use]
    pub fn is_nearly_full(&self) -> bool {
        self.percent()
            .is_some_and(|percent| percent >= FULL_PERCENT)
    }
}

/// Count of tokens that a server gave with an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct TokenCount {
    tokens: u64,
    /// Number of messages that it covers.
    messages: usize,
}

impl TokenCount {
    /// Takes the count of an answer to a request of so many messages.
    pub(super) fn of_answer(usage: Usage, messages: usize) -> Option<Self> {
        let tokens = usage.input?.saturating_add(usage.output.unwrap_or(0));
        Some(Self {
            tokens,
            messages: messages + 1,
        })
    }
}

/// Returns an estimate of the tokens of a text.
#[must_use]
pub fn tokens_of(text: &str) -> u64 {
    (text.len() / BYTES_OF_A_TOKEN) as u64
}

/// Returns the part that a request takes: what the server counted, and an estimate of the rest.
pub(super) fn context_use(
    request: &ModelRequest,
    count: Option<TokenCount>,
    window: Option<u64>,
) -> ContextUse {
    let estimate = |bytes: usize| (bytes / BYTES_OF_A_TOKEN) as u64;
    let (known, counted, system) = match count {
        Some(count) => (count.tokens, count.messages, 0),
        None => (0, 0, request.system.as_str().len()),
    };
    let rest = request.messages.iter().skip(counted);
    let bytes: usize = rest.map(|message| message.text.as_str().len()).sum();
    ContextUse {
        tokens: known.saturating_add(estimate(bytes + system)),
        window,
        is_estimate: bytes + system > 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use karyi_model::Message;
    use karyi_vault::redact::Redactor;
    use karyi_vault::session::Secrets;

    #[test]
    fn what_no_server_counted_is_estimated() {
        let redactor = Redactor::new(&Secrets::default());
        let text = |bytes: usize| redactor.redact(&"a".repeat(bytes));
        let mut request = ModelRequest {
            system: text(400),
            messages: vec![Message::user(text(40))],
            ..ModelRequest::default()
        };
        let found = context_use(&request, None, Some(200));
        let expected = ContextUse {
            tokens: 110,
            window: Some(200),
            is_estimate: true,
        };
        assert_eq!(found, expected);
        assert_eq!((found.percent(), found.is_nearly_full()), (Some(55), false));
        let usage = Usage {
            input: Some(120),
            output: Some(30),
            ..Usage::default()
        };
        let count = TokenCount::of_answer(usage, request.messages.len());
        request.messages.push(Message::assistant(text(99)));
        let found = context_use(&request, count, Some(200));
        assert_eq!((found.tokens, found.is_estimate), (150, false));
        request.messages.push(Message::user(text(40)));
        let found = context_use(&request, count, Some(200));
        assert_eq!((found.tokens, found.percent()), (160, Some(80)));
        assert!(found.is_estimate && found.is_nearly_full());
        let most = TokenCount {
            tokens: u64::MAX,
            messages: 0,
        };
        let found = context_use(&request, Some(most), Some(200));
        assert_eq!(found.tokens, u64::MAX);
        let unknown = context_use(&request, count, None);
        assert_eq!((unknown.percent(), unknown.is_nearly_full()), (None, false));
    }
}
