//! Runs two closures in parallel, for work that waits for the disk.

use std::thread::Builder;

/// Runs both closures in parallel, or one after the other when no thread can be started.
pub(super) fn join<A, B: Send>(first: impl FnOnce() -> A, second: impl Fn() -> B + Sync) -> (A, B) {
    join_with(Builder::new(), first, second)
}

fn join_with<A, B: Send>(
    builder: Builder,
    first: impl FnOnce() -> A,
    second: impl Fn() -> B + Sync,
) -> (A, B) {
    std::thread::scope(|scope| {
        let started = builder.spawn_scoped(scope, &second);
        let first = first();
        let Ok(started) = started else {
            return (first, second());
        };
        match started.join() {
            Ok(second) => (first, second),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_closures_run_with_and_without_a_thread() {
        // No address space is this large.
        for builder in [Builder::new(), Builder::new().stack_size(1 << 60)] {
            assert_eq!(join_with(builder, || 1, || 2), (1, 2));
        }
    }
}
