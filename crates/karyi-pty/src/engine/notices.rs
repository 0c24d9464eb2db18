//! Notices of a shell that a background job has ended, such as `[1]+  Done  sleep 1`: output does not have them.

use std::borrow::Cow;
use std::mem;

/// States of ended jobs in the notices of shells.
const END_STATES: [&str; 8] = [
    "done",
    "terminated",
    "killed",
    "hangup",
    "interrupt",
    "quit",
    "aborted",
    "segmentation fault",
];

/// Removes notices from output that arrives in pieces.
pub(super) struct NoticeFilter {
    /// True if the shell may print notices now.
    is_on: bool,
    /// True if the next output begins a line.
    is_line_start: bool,
    /// A notice without its line end: busybox sh writes that apart.
    held: Vec<u8>,
}

impl NoticeFilter {
    /// Starts at the beginning of a line.
    pub(super) fn new(is_on: bool) -> Self {
        Self {
            is_on,
            is_line_start: true,
            held: Vec::new(),
        }
    }

    /// Returns output without notices. A full screen has none.
    pub(super) fn filter<'a>(
        &mut self,
        output: Cow<'a, [u8]>,
        is_full_screen: bool,
    ) -> Cow<'a, [u8]> {
        if !self.is_on || output.is_empty() {
            return output;
        }
        let whole = match self.take_held() {
            held if held.is_empty() => output,
            held => Cow::Owned([held.as_slice(), &output].concat()),
        };
        let begins_line = mem::replace(&mut self.is_line_start, whole.ends_with(b"\n"));
        let is_notice =
            |(index, line): &(usize, &[u8])| (*index > 0 || begins_line) && is_end_notice(line);
        let lines = || whole.split_inclusive(|byte| *byte == b'\n').enumerate();
        if is_full_screen || !whole.contains(&b'[') || !lines().any(|line| is_notice(&line)) {
            return whole;
        }
        let last = lines().last().filter(is_notice);
        if let Some((_, line)) = last.filter(|(_, line)| !line.ends_with(b"\n")) {
            self.held = line.to_vec();
            self.is_line_start = true;
        }
        let kept = lines().filter(|line| !is_notice(line));
        Cow::Owned(kept.flat_map(|(_, line)| line).copied().collect())
    }

    /// Takes what waits for its line end.
    pub(super) fn take_held(&mut self) -> Vec<u8> {
        mem::take(&mut self.held)
    }
}

/// Returns true for a line such as `[1]+  Done                    sleep 1`: the state is padded to a column.
fn is_end_notice(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line).to_lowercase();
    let Some((number, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return false;
    };
    let state = rest.trim_start_matches([' ', '+', '-']);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let Some((state, command)) = state.split_once("  ").filter(|_| is_number) else {
        return false;
    };
    let is_end = END_STATES.contains(&state)
        || state
            .strip_prefix("exit ")
            .is_some_and(|n| n.parse::<u8>().is_ok());
    is_end && !command.trim().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&str], expected: &str) {
        let mut filter = NoticeFilter::new(true);
        let mut found = Vec::new();
        for piece in pieces {
            found.extend_from_slice(&filter.filter(Cow::Borrowed(piece.as_bytes()), false));
        }
        found.extend(filter.take_held());
        assert_eq!(String::from_utf8_lossy(&found), expected, "{pieces:?}");
    }

    #[test]
    fn notices_of_ended_jobs_are_removed() {
        check(&["a\n[1]+  Done                    sleep 1\nb\n"], "a\nb\n");
        check(&["[2]-  Exit 3                  false\n"], "");
        check(&["[1] + Done                       sleep 0.1\n"], "");
        check(&["[12]   Terminated              sleep 60\n"], "");
        for other in [
            "[1] done building\n",
            "[1] done building   all\n",
            "[1]+  done\n",
            "[1]+  Stopped                 vim\n",
            "[1]+  Running                 sleep 9 &\n",
            "[x]+  Done                    sleep 1\n",
            "a [1]+  Done                    sleep 1\n",
            "[1]+  Done                    sleep 1",
        ] {
            check(&[other], other);
        }
    }

    #[test]
    fn a_notice_may_come_before_its_line_end() {
        let notice = "[1]+  Done                    sleep 1";
        check(&["a\n", notice, "\n", "b\n"], "a\nb\n");
        check(&[&format!("a\n{notice}"), "\nb\n"], "a\nb\n");
        check(&[notice, "\n", notice, "\n"], "");
        // In the middle of a line, or without a line end, it is output.
        check(&[notice, "0\n"], "");
        check(&["a ", notice, "\n"], &format!("a {notice}\n"));
        check(&["a\n", notice], &format!("a\n{notice}"));
    }
}
