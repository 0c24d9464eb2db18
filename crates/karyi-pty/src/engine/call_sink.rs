//! The sink of a call, taken out of the state so that the state is not locked while output is written.

use crate::engine::pending_call::{PendingCall, Sink};
use crate::engine::state::Shared;

/// A call's sink while it is out of the state.
pub(crate) struct CallSink {
    number: u64,
    pub(crate) sink: Sink,
    earlier: Vec<u8>,
}

impl CallSink {
    pub(crate) fn from_call(call: &mut PendingCall) -> Option<Self> {
        Some(Self {
            number: call.number,
            sink: call.sink.take()?,
            earlier: std::mem::take(&mut call.earlier),
        })
    }

    pub(crate) fn pass_on_earlier(&mut self) {
        let earlier = std::mem::take(&mut self.earlier);
        if !earlier.is_empty() {
            (self.sink)(&earlier);
        }
    }

    pub(crate) fn put_back(self, shared: &Shared, shows_screen: bool) {
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
