//! Decides which calls may start. Pure: it reads effects and starts nothing.
//!
//! A session call runs alone among calls that touch files, since a script may touch any file and change
//! the directory. Between two session calls the directory is stable, so paths are resolved when their
//! group's turn has come: reads share, a write excludes others on an equal, ancestor or descendant path.
//! A call that reaches outside keeps its place among commands and writes; two that only look share, and one that
//! changes something runs alone. Calls with no observable effect start at once.

use std::collections::VecDeque;
use std::path::Path;

use crate::tool::Effect;
use crate::tool::effect::Access;
use karyi_core::limits;
use karyi_files::path_identity::PathIdentity;

/// Number of queued calls considered for one decision.
const WINDOW: usize = 64;

/// A path in use by a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Resolved identity of the path.
    pub place: PathIdentity,
    /// True when the call writes it.
    pub is_write: bool,
}

impl Claim {
    /// Resolves the paths a call may touch, relative to the directory of their base, and the directories that are
    /// searched for similar names when a path does not exist.
    #[must_use]
    pub fn of(access: &Access, directory: &Path) -> Vec<Self> {
        let touched = PathIdentity::touched(&directory.join(access.path.source()));
        let searched = touched.iter().filter_map(PathIdentity::searched_for);
        let searched = searched.map(|place| Self {
            place,
            is_write: false,
        });
        let mut claims: Vec<Self> = searched.collect();
        claims.extend(touched.into_iter().map(|place| Self {
            place,
            is_write: access.is_write,
        }));
        claims
    }

    fn conflicts_with(&self, other: &Self) -> bool {
        (self.is_write || other.is_write) && self.place.overlaps(&other.place)
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Footprint {
    Session,
    Files(Vec<Claim>),
    /// Files, and something outside that is not changed.
    Look(Vec<Claim>),
    Alone,
    /// The only call, and it only reads: its paths are resolved when another call arrives.
    OnlyReader(Effect),
}

impl Footprint {
    fn conflicts_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Alone, _) | (_, Self::Alone) => false,
            // Nothing runs beside it, so nothing conflicts.
            (Self::OnlyReader(_), _) | (_, Self::OnlyReader(_)) => false,
            (Self::Session, _) | (_, Self::Session) => true,
            (Self::Look(_), Self::Files(files)) | (Self::Files(files), Self::Look(_))
                if files.iter().any(|claim| claim.is_write) =>
            {
                true
            }
            (Self::Files(left) | Self::Look(left), Self::Files(right) | Self::Look(right)) => left
                .iter()
                .any(|a| right.iter().any(|b| a.conflicts_with(b))),
        }
    }
}

/// A call that waits to be started.
#[derive(Debug)]
struct QueuedCall {
    index: usize,
    effect: Effect,
    /// Its footprint since the session's directory became stable. Calls that run until it starts cannot
    /// change the directory; [`Planner::finish`] drops footprints that a write may have changed.
    settled: Option<Footprint>,
}

impl QueuedCall {
    fn footprint(
        &mut self,
        is_settled: bool,
        resolve: &dyn Fn(&Access) -> Vec<Claim>,
    ) -> Footprint {
        if !is_settled {
            return footprint(&self.effect, false, resolve);
        }
        let settled = self
            .settled
            .get_or_insert_with(|| footprint(&self.effect, true, resolve));
        settled.clone()
    }
}

/// Orders the calls of one block.
#[derive(Debug)]
pub struct Planner {
    is_sequential: bool,
    queue: VecDeque<QueuedCall>,
    active: Vec<(usize, Footprint)>,
}

impl Planner {
    /// Creates a planner for calls that may overlap.
    #[must_use]
    pub fn overlapping() -> Self {
        Self {
            is_sequential: false,
            queue: VecDeque::new(),
            active: Vec::new(),
        }
    }

    /// Creates a planner for calls that run one after another.
    #[must_use]
    pub fn sequential() -> Self {
        Self {
            is_sequential: true,
            ..Self::overlapping()
        }
    }

    /// Adds the next call in document order.
    pub fn push(&mut self, index: usize, effect: Effect) {
        self.queue.push_back(QueuedCall {
            index,
            effect,
            settled: None,
        });
    }

    /// Marks a started call as finished. Paths that conflict with its own are resolved again, since it may
    /// have written a link or a directory on them.
    pub fn finish(&mut self, index: usize) {
        let position = self.active.iter().position(|(active, _)| *active == index);
        let Some((_, ended)) = position.map(|at| self.active.remove(at)) else {
            return;
        };
        for waiting in &mut self.queue {
            waiting.settled = waiting
                .settled
                .take()
                .filter(|own| !own.conflicts_with(&ended));
        }
    }

    /// Removes a call that has not started; a started one stays.
    pub fn withdraw(&mut self, index: usize) {
        // Calls are queued in the order of their numbers.
        if let Ok(at) = self.queue.binary_search_by_key(&index, |call| call.index) {
            self.queue.remove(at);
        }
    }

    /// Returns the number of calls that wait to be started.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Returns true when no call waits or runs.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.queue.is_empty() && self.active.is_empty()
    }

    /// Marks the calls that may start now as started and returns them. `resolve` resolves a path as written;
    /// it is called only while the session's directory is stable.
    pub fn startable(&mut self, resolve: &dyn Fn(&Access) -> Vec<Claim>) -> Vec<usize> {
        if self.is_sequential {
            return self.next_in_line();
        }
        if let Some(index) = self.take_only_reader() {
            return vec![index];
        }
        self.settle_reader(resolve);
        let mut started = Vec::new();
        let mut held: Vec<Footprint> = Vec::new();
        let mut position = 0;
        let last = self.first_open() + limits::MAX_CALLS_AHEAD;
        while position < self.queue.len().min(WINDOW)
            && self.active.len() < limits::MAX_PARALLEL_CALLS
        {
            let is_settled = !self.has_session_call() && !held.contains(&Footprint::Session);
            let waiting = &mut self.queue[position];
            if waiting.index >= last {
                break;
            }
            let footprint = waiting.footprint(is_settled, resolve);
            let conflicts = |other: &Footprint| footprint.conflicts_with(other);
            if held.iter().any(conflicts) || self.active.iter().any(|(_, f)| conflicts(f)) {
                held.push(footprint);
                position += 1;
            } else {
                started.push(waiting.index);
                self.active.push((waiting.index, footprint));
                self.queue.remove(position);
            }
        }
        started
    }

    /// Starts the waiting call when it only reads and nothing else waits or runs.
    fn take_only_reader(&mut self) -> Option<usize> {
        let is_reader = |waiting: &QueuedCall| match &waiting.effect {
            Effect::Files(accesses) => accesses.iter().all(|access| !access.is_write),
            Effect::Session | Effect::Alone | Effect::Outside { .. } => false,
        };
        if !self.active.is_empty() || self.queue.len() != 1 || !self.queue.iter().all(is_reader) {
            return None;
        }
        let waiting = self.queue.pop_front()?;
        let footprint = Footprint::OnlyReader(waiting.effect);
        self.active.push((waiting.index, footprint));
        Some(waiting.index)
    }

    /// Resolves the paths of the only reader, now that another call waits.
    fn settle_reader(&mut self, resolve: &dyn Fn(&Access) -> Vec<Claim>) {
        if self.queue.is_empty() {
            return;
        }
        for (_, active) in &mut self.active {
            if let Footprint::OnlyReader(effect) = active {
                let settled = footprint(effect, true, resolve);
                *active = settled;
            }
        }
    }

    /// Returns the first call that has not finished.
    fn first_open(&self) -> usize {
        let waiting = self.queue.iter().map(|waiting| waiting.index).take(1);
        let active = self.active.iter().map(|(index, _)| *index);
        waiting.chain(active).min().unwrap_or(0)
    }

    fn next_in_line(&mut self) -> Vec<usize> {
        if !self.active.is_empty() {
            return Vec::new();
        }
        let Some(waiting) = self.queue.pop_front() else {
            return Vec::new();
        };
        self.active.push((waiting.index, Footprint::Session));
        vec![waiting.index]
    }

    fn has_session_call(&self) -> bool {
        self.active
            .iter()
            .any(|(_, f)| matches!(f, Footprint::Session))
    }
}

/// Returns the footprint of an effect. Before the directory is stable, a relative path could mean anything,
/// so the call conflicts with every path; it could not start then anyway.
fn footprint(
    effect: &Effect,
    is_settled: bool,
    resolve: &dyn Fn(&Access) -> Vec<Claim>,
) -> Footprint {
    let claims = |access: &Access| match is_settled && !access.path.has_placeholder() {
        true => resolve(access),
        false => vec![Claim {
            place: PathIdentity::everywhere(),
            is_write: access.is_write,
        }],
    };
    let all = |accesses: &[Access]| match accesses.len() > limits::MAX_CLAIMED_PATHS {
        // Resolving and comparing so many paths would take longer than waiting.
        true => vec![Claim {
            place: PathIdentity::everywhere(),
            is_write: accesses.iter().any(|access| access.is_write),
        }],
        false => accesses.iter().flat_map(claims).collect(),
    };
    match effect {
        Effect::Session | Effect::Outside { is_write: true, .. } => Footprint::Session,
        Effect::Alone => Footprint::Alone,
        Effect::Files(accesses) => Footprint::Files(all(accesses)),
        Effect::Outside { files, .. } => Footprint::Look(all(files)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::effect::PathBase;
    use karyi_core::secret::Template;
    use proptest::prelude::*;

    fn effect(word: &str) -> Effect {
        let access = |path: &str, is_write| {
            vec![Access {
                base: PathBase::Session,
                path: Template::new(path),
                is_write,
            }]
        };
        let outside = |is_write, files| Effect::Outside { is_write, files };
        match word.split_once(' ') {
            Some(("r", path)) => Effect::Files(access(path, false)),
            Some(("w", path)) => Effect::Files(access(path, true)),
            Some(("get", path)) => outside(false, access(path, true)),
            _ if word == "ask" => Effect::Alone,
            _ if word == "look" => outside(false, Vec::new()),
            _ if word == "post" => outside(true, Vec::new()),
            _ => Effect::Session,
        }
    }

    /// Resolves paths as if all of them existed.
    fn absolute(access: &Access) -> Vec<Claim> {
        let touched = PathIdentity::touched(&Path::new("/base").join(access.path.source()));
        let claim = |place| Claim {
            place,
            is_write: access.is_write,
        };
        touched.into_iter().map(claim).collect()
    }

    /// Starts the startable calls and finishes the oldest running one, repeatedly; returns the waves.
    fn waves(mut planner: Planner, words: &[&str]) -> Vec<Vec<usize>> {
        for (index, word) in words.iter().enumerate() {
            planner.push(index, effect(word));
        }
        let mut waves = Vec::new();
        while !planner.is_done() {
            let started = planner.startable(&absolute);
            if !started.is_empty() {
                waves.push(started);
            }
            let oldest = planner.active[0].0;
            planner.finish(oldest);
        }
        waves
    }

    fn check(words: &[&str], expected: &[&[usize]]) {
        assert_eq!(waves(Planner::overlapping(), words), expected, "{words:?}");
    }

    #[test]
    fn reads_share_and_writes_exclude() {
        check(&["r a", "r b", "r a"], &[&[0, 1, 2]]);
        check(&["w a", "r b", "w c"], &[&[0, 1, 2]]);
        check(&["w a", "r a"], &[&[0], &[1]]);
        check(&["r a", "w a"], &[&[0], &[1]]);
        check(&["w a", "w a", "w b"], &[&[0, 2], &[1]]);
    }

    #[test]
    fn a_lone_read_is_resolved_when_another_call_arrives() {
        let mut planner = Planner::overlapping();
        planner.push(0, effect("r a"));
        let nowhere = |_: &Access| -> Vec<Claim> { unreachable!("nothing to compare with") };
        assert_eq!(planner.startable(&nowhere), [0]);
        assert!(planner.startable(&nowhere).is_empty());
        planner.push(1, effect("w a"));
        assert!(planner.startable(&absolute).is_empty());
        planner.push(2, effect("w b"));
        assert_eq!(planner.startable(&absolute), [2]);
        planner.finish(0);
        assert_eq!(planner.startable(&absolute), [1]);
        planner.finish(1);
        planner.finish(2);
        assert!(planner.is_done());
    }

    #[test]
    fn a_missing_path_waits_for_new_names() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("other")).unwrap();
        for name in ["there", "other/there"] {
            std::fs::write(home.path().join(name), "").unwrap();
        }
        let conflicts = |left: &str, right: &str| {
            let claims = |word: &str| {
                let resolve = |access: &Access| Claim::of(access, home.path());
                footprint(&effect(word), true, &resolve)
            };
            claims(left).conflicts_with(&claims(right))
        };
        assert!(conflicts("w report", "r reprt"));
        assert!(conflicts("w there", "r reprt"));
        assert!(conflicts("w there", "r new/reprt"));
        assert!(!conflicts("w other/report", "r there"));
        assert!(!conflicts("r report", "r reprt"));
        assert!(!conflicts("w other/there", "w there"));
    }

    #[test]
    fn ancestors_and_descendants_conflict() {
        check(&["w d/x", "r d"], &[&[0], &[1]]);
        check(&["r d", "w d/x"], &[&[0], &[1]]);
        check(&["w d", "r dx"], &[&[0, 1]]);
        check(&["w /elsewhere", "r a"], &[&[0, 1]]);
    }

    #[test]
    fn the_session_is_ordered_against_files() {
        check(&["r a", "cmd", "r a"], &[&[0], &[1], &[2]]);
        check(&["cmd", "cmd"], &[&[0], &[1]]);
        check(
            &["r a", "r b", "cmd", "w a", "r b"],
            &[&[0, 1], &[2], &[3, 4]],
        );
    }

    #[test]
    fn calls_that_reach_outside_keep_their_place() {
        check(&["look", "look", "r a"], &[&[0, 1, 2]]);
        check(&["w a", "look", "r b"], &[&[0, 2], &[1]]);
        check(&["cmd", "look", "look", "cmd"], &[&[0], &[1, 2], &[3]]);
        check(&["look", "post", "look"], &[&[0], &[1], &[2]]);
        check(&["r a", "post", "r a"], &[&[0], &[1], &[2]]);
        check(&["get a", "look", "get b"], &[&[0, 1, 2]]);
        check(&["get a", "r a", "r b"], &[&[0, 2], &[1]]);
        check(&["get a", "get a"], &[&[0], &[1]]);
    }

    #[test]
    fn calls_without_effects_start_at_once() {
        check(&["cmd", "ask", "cmd", "ask"], &[&[0, 1, 3], &[2]]);
    }

    #[test]
    fn unknown_paths_conflict_with_everything() {
        check(&["w $KARYI{DIR}/a", "r b"], &[&[0], &[1]]);
        check(&["r $KARYI{DIR}/a", "r b"], &[&[0, 1]]);
    }

    #[test]
    fn a_call_with_many_paths_is_not_compared_path_by_path() {
        let many = |is_write| {
            let access = |at: usize| Access {
                base: PathBase::Session,
                path: Template::new(format!("f{at}")),
                is_write: is_write && at == 0,
            };
            Effect::Files((0..=limits::MAX_CLAIMED_PATHS).map(access).collect())
        };
        let no_look = |_: &Access| -> Vec<Claim> { panic!("a path was looked up") };
        let everywhere = |is_write| {
            let place = PathIdentity::everywhere();
            Footprint::Files(vec![Claim { place, is_write }])
        };
        for is_write in [false, true] {
            let found = footprint(&many(is_write), true, &no_look);
            assert_eq!(found, everywhere(is_write));
        }
    }

    #[test]
    fn sequential_blocks_run_one_by_one() {
        let expected: Vec<Vec<usize>> = vec![vec![0], vec![1], vec![2]];
        assert_eq!(
            waves(Planner::sequential(), &["r a", "ask", "r a"]),
            expected
        );
    }

    proptest! {
        /// Conflicting calls start in document order, the second one after the first has finished.
        #[test]
        fn conflicting_calls_never_overlap(picks in proptest::collection::vec(0..11usize, 1..60), order in proptest::collection::vec(0..100usize, 200)) {
            let words = ["r a", "w a", "r d", "w d/x", "cmd", "ask", "r b", "w $KARYI{X}", "look", "post", "get a"];
            let effects: Vec<Effect> = picks.iter().map(|p| effect(words[*p])).collect();
            let mut planner = Planner::overlapping();
            for (index, effect) in effects.iter().enumerate() {
                planner.push(index, effect.clone());
            }
            let mut ended = vec![false; effects.len()];
            let mut running: Vec<usize> = Vec::new();
            let mut picks = order.into_iter().cycle();
            while !planner.is_done() {
                for started in planner.startable(&absolute) {
                    let own = footprint(&effects[started], true, &absolute);
                    for earlier in (0..started).filter(|e| !ended[*e]) {
                        let other = footprint(&effects[earlier], true, &absolute);
                        prop_assert!(!own.conflicts_with(&other), "{started} overtook {earlier}");
                    }
                    running.push(started);
                }
                prop_assert!(!running.is_empty(), "nothing runs and something waits");
                let end = running.swap_remove(picks.next().unwrap_or(0) % running.len());
                ended[end] = true;
                planner.finish(end);
            }
        }
    }
}
