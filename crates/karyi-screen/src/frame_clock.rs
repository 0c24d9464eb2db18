//! Limits how often a screen is drawn.

use std::time::Instant;

use karyi_core::limits;

/// Decides when the next frame is drawn.
#[derive(Debug, Default)]
pub struct FrameClock {
    last: Option<Instant>,
    held_until: Option<Instant>,
    is_wanted: bool,
}

impl FrameClock {
    /// Asks for a frame.
    pub fn want(&mut self) {
        self.is_wanted = true;
    }

    /// Asks for a frame, and holds all frames back until then.
    pub fn hold(&mut self, until: Instant) {
        self.held_until = Some(until);
        self.is_wanted = true;
    }

    /// Returns the time of the next frame, if one is wanted.
    #[must_use]
    pub fn due(&self, now: Instant) -> Option<Instant> {
        let next = self.last.map(|last| last + limits::FRAME_INTERVAL);
        let next = next.max(self.held_until);
        self.is_wanted.then(|| next.unwrap_or(now).max(now))
    }

    /// Returns true when a frame is to be drawn now, and counts it as drawn.
    pub fn take(&mut self, now: Instant) -> bool {
        let is_due = self.due(now) == Some(now);
        if is_due {
            self.last = Some(now);
            self.is_wanted = false;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_keep_their_distance() {
        let start = Instant::now();
        let mut clock = FrameClock::default();
        assert_eq!(clock.due(start), None);
        clock.want();
        assert!(clock.take(start) && !clock.take(start));
        clock.want();
        let next = start + limits::FRAME_INTERVAL;
        assert_eq!(clock.due(start), Some(next));
        assert!(!clock.take(start) && clock.take(next));
        let later = next + 5 * limits::FRAME_INTERVAL;
        clock.hold(later);
        clock.want();
        assert_eq!(clock.due(next), Some(later));
        assert!(clock.take(later));
    }
}
