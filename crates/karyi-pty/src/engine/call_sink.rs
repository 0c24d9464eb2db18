//! The sink of a call, taken out of the state so that the state is not locked while output is written.

use crate::engine::pending_call::{PendingCall, Sink};
use crate::engine::state::{Shared, State};

/// A call's sink while it is out of the state.
pub(crate) struct CallSink {
    number: u64,
    pub(crate) sink: Sink,
    earlier_output: Vec<u8>,
}

impl CallSink {
    pub(crate) fn from_call(call: &mut PendingCall) -> Option<Self> {
        Some(Self {
            number: call.number,
            sink: call.sink.take()?,
            earlier_output: std::mem::take(&mut call.earlier_output),
        })
    }

    /// Sends the output before a new call to its sink.
    pub(crate) fn begin_call(shared: &Shared) {
        let taken = shared.lock().call.as_mut().and_then(Self::from_call);
        if let Some(mut taken) = taken {
            taken.send_earlier_output();
            taken.put_back(&mut shared.lock());
        }
    }

    pub(crate) fn send_earlier_output(&mut self) {
        let earlier_output = std::mem::take(&mut self.earlier_output);
        if !earlier_output.is_empty() {
            (self.sink)(&earlier_output);
        }
    }

    pub(crate) fn put_back(self, state: &mut State) {
        let call = state.call.as_mut();
        if let Some(call) = call.filter(|call| call.number == self.number) {
            call.sink = Some(self.sink);
        }
    }
}
