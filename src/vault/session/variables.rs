//! The shell variables that stood for secrets in scripts. A shell names them where it shows what it runs: who reads that
//! wrote placeholders, and knows no such names.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::limits;
use crate::secret::{Holds, SecretName};

/// How the names of these variables begin; so many hexadecimal digits follow.
pub(in crate::vault) const PREFIX: &str = "__karyi_";
pub(in crate::vault) const DIGITS: usize = 32;

/// Fewest digits of a name that a shell has cut.
pub(in crate::vault) const LEAST_DIGITS: usize = 8;

/// The latest variables.
#[derive(Default)]
pub(super) struct Variables {
    are_there: AtomicBool,
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    /// What each stood for, by its digits.
    names: BTreeMap<u128, (SecretName, Holds)>,
    /// Their digits, the oldest first.
    ages: VecDeque<u128>,
}

impl Variables {
    /// Whether there was any.
    #[inline]
    pub(super) fn are_there(&self) -> bool {
        self.are_there.load(Ordering::Acquire)
    }

    /// Takes note of a variable; the oldest is forgotten when there are too many.
    pub(super) fn note(&self, variable: &str, name: &SecretName, holds: Holds) {
        let digits = variable.strip_prefix(PREFIX).unwrap_or_default();
        let Ok(number) = u128::from_str_radix(digits, 16) else {
            return;
        };
        // A poisoned lock only means that another thread panicked between two changes.
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.names.insert(number, (name.clone(), holds)).is_none() {
            known.ages.push_back(number);
        }
        if known.ages.len() > limits::MAX_KNOWN_VARIABLES
            && let Some(oldest) = known.ages.pop_front()
        {
            known.names.remove(&oldest);
        }
        self.are_there.store(true, Ordering::Release);
    }

    /// Returns the placeholder, as text, that a variable with these digits stood for; the last ones may be cut off.
    pub(super) fn placeholder(&self, digits: &str) -> Option<String> {
        let missing = DIGITS.checked_sub(digits.len())?;
        if digits.len() < LEAST_DIGITS {
            return None;
        }
        let number = u128::from_str_radix(digits, 16).ok()?;
        let bits = u32::try_from(missing * 4).ok()?;
        let (least, span) = (number.checked_shl(bits)?, (1_u128 << bits) - 1);
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let (_, (name, holds)) = known.names.range(least..=least | span).next()?;
        let path = match holds {
            Holds::Value => "",
            Holds::Path => "|file",
        };
        Some(format!("$$KARYI{{{name}{path}}}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_known_by_their_first_digits() {
        let variables = Variables::default();
        let (a, b) = ("ab".repeat(16), "ac".repeat(16));
        assert!(!variables.are_there());
        for (digits, name, holds) in [(&a, "A", Holds::Value), (&b, "B", Holds::Path)] {
            let name = SecretName::parse(name).unwrap();
            variables.note(&format!("{PREFIX}{digits}"), &name, holds);
        }
        assert!(variables.are_there());
        let check = |digits: &str, expected: Option<&str>| {
            assert_eq!(
                variables.placeholder(digits).as_deref(),
                expected,
                "{digits}"
            );
        };
        check(&a, Some("$$KARYI{A}"));
        check(&b, Some("$$KARYI{B|file}"));
        check(&a[..8], Some("$$KARYI{A}"));
        check(&b[..31], Some("$$KARYI{B|file}"));
        check(&a[..7], None);
        check(&"ad".repeat(16), None);
        check("abababac", None);
        check(&"ab".repeat(17), None);
        check("", None);
        check("not-digits", None);
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let variables = Variables::default();
        let name = SecretName::parse("A").unwrap();
        let digits = |number: usize| format!("{number:032x}");
        for number in 0..=limits::MAX_KNOWN_VARIABLES {
            variables.note(&format!("{PREFIX}{}", digits(number)), &name, Holds::Value);
        }
        assert_eq!(variables.placeholder(&digits(0)), None);
        let last = digits(limits::MAX_KNOWN_VARIABLES);
        assert!(variables.placeholder(&digits(1)).is_some());
        assert!(variables.placeholder(&last).is_some());
    }
}
