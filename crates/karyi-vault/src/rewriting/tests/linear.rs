//! Processor time is linear in the length of a script, and no script causes a panic.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

use super::*;

/// Largest allowed ratio of the times of a doubled and a single script.
const MOST: f64 = 2.5;
/// Number of measurements of a ratio.
const ATTEMPTS: usize = 12;

/// Parts of a script: before, repeated unit, after; `@` is a placeholder.
#[rustfmt::skip]
const FAMILIES: &[(&str, &str, &str)] = &[
    ("r @\n", "echo \"$x\" 'a' b # c\n", ""),
    ("", "curl -H \"A: @\" -d '@' h\n", ""),
    ("r @ ", "(", ""), ("r @ ", "$(", ""), ("r @ ", "((", ""), ("r @ ", "$((", ""), ("r @ ", "<(", ""),
    ("r @ ", "'", ""), ("r @ ", "\"", ""), ("r @ ", "`", ""), ("r @ ", "\\`", ""), ("r @ ", "${", ""), ("r @ ", "${x:-", ""),
    ("r @ ", "{", ""), ("r @ ", "[", ""), ("r @ ", "x[", ""), ("r ", "$x[", "@"), ("r ", "$x[", "\n@"), ("r @ ", "\\", ""), ("r @ ", "=", ""),
    ("r @\n", "((a) b)\n", ""), ("r @\n", "(( '", ""), ("r @\n", "(( a )) ", ""), ("r @\n", "f() { :; }\n", ""),
    ("r @ ", "<<E ", ""), ("r @ ", "<<E\n", ""), ("", "cat <<'E'\n@ $x\nE\n", ""), ("", "cat <<E\n@ $x\n", ""), ("r @\n", "<<E\nE\n", ""),
    ("cat <<'E'\n@\n", "KARYI_EOF\n", "E\n"), ("r @ ", "<<", ""), ("r @ ", "a(b)", ""), ("r @\n", "a", "="), ("aaaa", "=", "@"), ("aa-", "=", "@"),
    ("r ", "@ ", ""), ("r ", "@", ""), ("r ", "$(r @) ", ""), ("r ", "@ $(r @) ", ""), ("sh -c ", "@ ", ""), ("", "sh ", "@"), ("", "sh -c @ ", ""),
    ("awk -v ", "@ ", ""), ("xargs ", "awk @ ", ""), ("ssh ", "ssh ", "<<< @"), ("ssh h ", "ssh h ", "<<< @"), ("declare ", "-x @ ", ""), ("", "command ", "@"), ("sudo ", "env ", "sh -c @"),
    ("", "eval 'r @'\n", ""), ("alias ", "x='r @' ", ""), ("trap '", "r @;", "'"), ("eval '", "r @ (", "'"),
    ("r @ # ", "@ ", ""), ("", "# @\n", ""), ("case x in ", "@) r @;; ", "esac"), ("r @\n", "case x in ", ""), ("[[ ", "@ == @ && ", "a ]]"),
    ("a=(", "@ ", ")"), ("", "x=@ ", ""), ("", "x[@]=@ ", "r"), ("r ", "$'\\n@' ", ""), ("r ", "$$KARYI{A} ", ""), ("r @", "\0", ""), ("r ", "$KARYI{", ""),
];

fn used() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    Duration::from(time).as_secs_f64()
}

fn script((before, unit, after): (&str, &str, &str), length: usize) -> String {
    let text = [before, &unit.repeat(length.div_ceil(unit.len())), after].concat();
    text.replace('@', "$KARYI{K}")
}

fn time(script: &str) -> f64 {
    let value_of = |_: &SecretName| Some(SecretValue::new(NUMBER.to_owned()));
    let start = used();
    let found = rewrite(script, &value_of);
    let time = used() - start;
    if let Err(error) = found {
        assert!(
            !error.message.is_empty() && !error.message.contains('\n'),
            "{error:?}"
        );
    }
    time
}

/// Returns the ratio of the times, where it exceeds the linear one.
fn problem(family: (&str, &str, &str)) -> Option<String> {
    let is_full = std::env::var_os("KARYI_FULL").is_some();
    let mut length = if is_full { 20_000 } else { 4_000 };
    let mut one = script(family, length);
    while time(&one) < 2e-3 {
        if length > 1 << 20 {
            // Refused at its start.
            return None;
        }
        length *= 2;
        one = script(family, length);
    }
    let two = script(family, 2 * length);
    let (mut times, mut long, mut ratio) = (Vec::new(), f64::MAX, f64::MAX);
    for _ in 0..ATTEMPTS {
        times.push(time(&one));
        times.sort_by(f64::total_cmp);
        long = long.min(time(&two));
        ratio = long / times[times.len() / 2];
        if ratio <= MOST {
            return None;
        }
    }
    let short = times[times.len() / 2];
    Some(format!(
        "{family:?}: {:.1} ms for {length} bytes, {ratio:.2} times that for twice as much",
        1e3 * short
    ))
}

#[test]
fn scripts_take_linear_time() {
    let is_full = std::env::var_os("KARYI_FULL").is_some();
    for family in FAMILIES.iter().filter(|_| is_full) {
        time(&script(*family, 10 << 20));
    }
    let problems: Vec<String> = FAMILIES.iter().copied().filter_map(problem).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// A sign that is consumed together with the start of a placeholder must not cause an endless loop.
#[test]
fn scripts_of_random_signs_are_read_to_their_end() {
    const SIGNS: &[&str] = &[
        "@", "@", "@", "${", "$(", "$((", "${(", "((", "(", ")", "}", "{", "[", "]", "$", "`", "'",
        "\"", "$'", "\\", "<", "<<", ">", "|", "&", ";", "=", ":", "/", "#", "~", "+", "-", "%",
        "^", "!", "?", "*", ",", " ", "\n", "a", "x", "1", "\0", "é", "case ", "eval ", "f() ",
        "[[ ", "<<E\n",
    ];
    let value_of = |_: &SecretName| Some(SecretValue::new(TOKEN.to_owned()));
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut roll = |sides: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % sides as u64).unwrap()
    };
    for _ in 0..60_000 {
        let count = 1 + roll(9);
        let script: String = (0..count).map(|_| SIGNS[roll(SIGNS.len())]).collect();
        let script = script.replace('@', "$KARYI{K}");
        if let Err(error) = rewrite(&script, &value_of) {
            assert!(!error.message.contains('\n'), "{script:?}: {error:?}");
        }
    }
}
