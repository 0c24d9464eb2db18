//! The stamp of a session: a number that every process of it inherits and that none loses.
//!
//! A process can clear its environment, leave its session and outlive its parent. A resource limit is inherited from
//! the first moment on and survives all that. Linux still has, and shows to everybody, a limit of file locks without
//! effect since version 2.4.25: its value can be any number. An unprivileged process can only lower the hard limit. So
//! an inner session keeps the hard limit of the outer one, which still identifies the processes as its own, and has
//! its own number in the soft limit.

use std::fmt;

use crate::process;

/// Name of the limit in `/proc/PID/limits`.
const LIMIT: &str = "Max file locks";

/// The smallest stamp: no limit set for another purpose is as large.
const MIN_NAME: u64 = 1 << 60;

/// A stamp, as a soft and a hard limit; they are equal unless the session is inside another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    soft: u64,
    hard: u64,
}

/// The limits of a process.
pub(crate) type Limits = (u64, u64);

impl Stamp {
    /// Creates a stamp from a random number; returns `None` where the system has no such limit, or where it is in use.
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    pub(crate) fn new(random: u64) -> Option<Self> {
        use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
        let (_, hard) = getrlimit(Resource::RLIMIT_LOCKS).ok()?;
        Self::below(random, (hard != RLIM_INFINITY).then_some(hard))
    }

    /// Returns `None`: the system has no such limit.
    #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
    pub(crate) fn new(_random: u64) -> Option<Self> {
        None
    }

    /// Creates a stamp under the hard limit of an outer session.
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    fn below(random: u64, around: Option<u64>) -> Option<Self> {
        match around {
            None => {
                let hard = MIN_NAME + (1 << 61) + random % (1 << 61);
                Some(Self { soft: hard, hard })
            }
            Some(hard) => {
                let room = hard
                    .checked_sub(MIN_NAME)
                    .filter(|room| *room >= MIN_NAME)?;
                let soft = MIN_NAME + random % room;
                Some(Self { soft, hard })
            }
        }
    }

    /// Puts the stamp on this process and on all it will start.
    #[cfg(target_os = "linux")]
    pub(crate) fn put_on(self) {
        use nix::sys::resource::{Resource, setrlimit};
        // If that fails, environment and ancestors still identify a process.
        let _ = setrlimit(Resource::RLIMIT_LOCKS, self.soft, self.hard);
    }

    /// Does nothing: the system has no such limit.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn put_on(self) {}

    /// Returns true if a process with these limits belongs to this session, or to one inside it.
    pub(crate) fn is_on(self, limits: Limits) -> bool {
        if self.soft == self.hard {
            limits.1 == self.hard
        } else {
            limits == (self.soft, self.hard)
        }
    }

    /// Parses the output of `Display`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (soft, hard) = text.split_once(':')?;
        let (soft, hard) = (soft.parse().ok()?, hard.parse().ok()?);
        (soft <= hard).then_some(Self { soft, hard })
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.soft, self.hard)
    }
}

/// Returns true if this process carries a stamp.
pub(crate) fn is_on_this_process() -> bool {
    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    {
        use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
        let limits = getrlimit(Resource::RLIMIT_LOCKS);
        limits.is_ok_and(|(_, hard)| hard >= MIN_NAME && hard != RLIM_INFINITY)
    }
    #[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
    false
}

/// Returns whether a process carries a stamp; `None` if its limits cannot be read.
pub(crate) fn is_on_process(pid: i32) -> Option<bool> {
    let (_, hard) = process::limits_of(pid, LIMIT)?;
    Some(hard.is_some_and(|hard| hard >= MIN_NAME))
}

/// Returns a stamp as an argument of the bootstrap: empty for none.
pub(crate) fn stamp_argument(stamp: Option<Stamp>) -> String {
    stamp.map(|stamp| stamp.to_string()).unwrap_or_default()
}

/// Returns the limits of a process, if both are set.
pub(crate) fn limits_of(pid: i32) -> Option<Limits> {
    let (soft, hard) = process::limits_of(pid, LIMIT)?;
    Some((soft?, hard?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(target_os = "linux", target_pointer_width = "64"))]
    #[test]
    fn a_stamp_covers_its_session_and_inner_ones() {
        let outer = Stamp::below(7, None).unwrap();
        let other = Stamp::below(8, None).unwrap();
        let inner = Stamp::below(u64::MAX, Some(outer.hard)).unwrap();
        let sibling = Stamp::below(9, Some(outer.hard)).unwrap();
        let known =
            |stamp: Stamp| [outer, other, inner, sibling].map(|of| stamp.is_on((of.soft, of.hard)));
        assert_eq!(known(outer), [true, false, true, true]);
        assert_eq!(known(other), [false, true, false, false]);
        assert_eq!(known(inner), [false, false, true, false]);
        assert_eq!(known(sibling), [false, false, false, true]);
        assert_eq!(Stamp::below(7, Some(1 << 60)), None);
        assert!(Stamp::below(u64::MAX, None).unwrap().hard < u64::MAX);
    }

    #[test]
    fn a_stamp_can_be_written_and_read() {
        let stamp = Stamp { soft: 3, hard: 9 };
        assert_eq!(stamp.to_string(), "3:9");
        assert_eq!(Stamp::parse("3:9"), Some(stamp));
        for text in ["", "3", "9:3", "3:", ":3", "a:b", "3:9:1", "-1:3"] {
            assert_eq!(Stamp::parse(text), None, "{text:?}");
        }
    }
}
