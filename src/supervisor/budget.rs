//! Tokens of the day: counted after every answer of a model, and kept over restarts.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use jiff::civil::Date;
use karyi_core::error::ToolError;
use karyi_tasks::spending::{self, day_of};
use karyi_tasks::state_directory::StateDirectory;

/// Tokens that may be used on a day, in UTC.
#[derive(Debug)]
pub struct Budget {
    state: Arc<StateDirectory>,
    most: u64,
    today: Mutex<Option<Today>>,
}

#[derive(Debug, Clone, Copy)]
struct Today {
    day: Date,
    tokens: u64,
}

impl Budget {
    /// Makes the budget of a state directory.
    #[must_use]
    pub fn new(state: Arc<StateDirectory>, most: u64) -> Self {
        Self {
            state,
            most,
            today: Mutex::default(),
        }
    }

    /// Returns the most tokens of a day.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.most
    }

    /// Returns the tokens that are left today.
    ///
    /// # Errors
    /// The system fails.
    pub fn left(&self, now: Timestamp) -> Result<u64, ToolError> {
        let mut today = self.today.lock().unwrap_or_else(PoisonError::into_inner);
        let day = day_of(now);
        let known = today.filter(|known| known.day == day);
        let tokens = match known {
            Some(known) => known.tokens,
            None => spending::spent(&self.state, now)?,
        };
        *today = Some(Today { day, tokens });
        Ok(self.most.saturating_sub(tokens))
    }

    /// Counts tokens; returns false when none is left.
    ///
    /// # Errors
    /// They could not be written down; they count until the supervisor ends.
    pub fn spend(&self, tokens: u64, now: Timestamp) -> Result<bool, ToolError> {
        if tokens == 0 {
            return Ok(self.left(now)? > 0);
        }
        let mut today = self.today.lock().unwrap_or_else(PoisonError::into_inner);
        let day = day_of(now);
        let known = today.filter(|known| known.day == day);
        let counted = known.map_or(0, |known| known.tokens).saturating_add(tokens);
        *today = Some(Today {
            day,
            tokens: counted,
        });
        let all = spending::spend(&self.state, tokens, now)?;
        *today = Some(Today { day, tokens: all });
        Ok(all < self.most)
    }
}
