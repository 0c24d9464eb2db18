//! The sink of a call while it is used: the state is not held meanwhile.

use super::call::{Call, Sink};
use super::state::Shared;

/// A call's sink, out for use while the state is not held.
pub(super) struct TakenSink {
    number: u64,
    pub(super) sink: Sink,
    earlier: Vec<u8>,
}

impl TakenSink {
    pub(super) fn from_call(call: &mut Call) -> Option<Self> {
        Some(Self {
            number: call.number,
            sink: call.sink.take()?,
            earlier: std::mem::take(&mut call.earlier),
        })
    }

    pub(super) fn pass_on_earlier(&mut self) {
        let earlier = std::mem::take(&mut self.earlier);
        if !earlier.is_empty() {
            (self.sink)(&earlier);
        }
    }

    pub(super) fn put_back(self, shared: &Shared, shows_screen: bool) {
        let mut state = shared.lock();
        state.shows_screen = shows_screen;
        if let Some(call) = state
            .call
            .as_mut()
            .filter(|call| call.number == self.number)
        {
            call.sink = Some(self.sink);
        }
    }
}
