//! What the random tests are made of: bytes that decide, and runs that can be repeated.
//!
//! Whatever is generated is a function of a list of bytes, so that a failure shrinks by itself, and
//! bytes from anywhere (a fuzzer, too) make a valid document.

use std::fmt::Debug;
use std::time::{SystemTime, UNIX_EPOCH};

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

/// Bytes that decide; when they are used up every decision is the first one.
pub(crate) struct Choices<'b> {
    rest: &'b [u8],
}

impl<'b> Choices<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns a number below `limit`, which is at most 256.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let Some((first, rest)) = self.rest.split_first() else {
            return 0;
        };
        self.rest = rest;
        usize::from(*first) % limit
    }

    /// Returns true in about so many of a hundred cases.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        // The first choice is the simple one.
        self.below(100) >= 100 - percent
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Brings a list into any order.
    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            let other = at - self.below(at + 1);
            list.swap(at, other);
        }
    }
}

/// Tells whether the long counts are wanted.
pub(crate) fn is_full() -> bool {
    std::env::var_os("KARYI_FULL").is_some()
}

/// Returns the seed of this run: `KARYI_SEED`; else always the same, and another every time where the
/// long counts look for what is new.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("KARYI_SEED").ok();
    let given = given.and_then(|text| text.parse().ok());
    given.unwrap_or_else(|| match is_full() {
        true => now(),
        false => 1,
    })
}

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::from(now.subsec_nanos()) ^ (now.as_secs() << 20)
}

/// Checks `cases` values, or `full` of them when the long counts are wanted.
pub(crate) fn check_all<S: Strategy>(
    (cases, full): (u32, u32),
    strategy: &S,
    check: impl Fn(&S::Value) -> Result<(), TestCaseError>,
) where
    S::Value: Debug,
{
    let seed = seed();
    let config = Config {
        cases: if is_full() { full } else { cases },
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(seed),
        max_shrink_iters: 10_000,
        ..Config::default()
    };
    match TestRunner::new(config).run(strategy, |value| check(&value)) {
        Ok(()) => {}
        Err(TestError::Fail(reason, value)) => {
            panic!("{reason}\nfor {value:?}\nagain with KARYI_SEED={seed}")
        }
        Err(TestError::Abort(reason)) => panic!("{reason}\nagain with KARYI_SEED={seed}"),
    }
}
