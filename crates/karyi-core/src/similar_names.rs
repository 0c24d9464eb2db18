//! Names that a misspelt one was probably meant to be.

/// Characters of a name that are compared; longer names are cut.
const MAX_NAME_CHARS: usize = 64;

/// Returns up to three of `known` that `name` may be a misspelling of, nearest first.
pub fn similar_names<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> Vec<&'k str> {
    let name: Vec<char> = name.chars().take(MAX_NAME_CHARS).collect();
    let most = 1 + name.len() / 3;
    let mut found: Vec<(usize, &str)> = known
        .map(|word| (distance(&name, word), word))
        .filter(|(distance, _)| *distance <= most)
        .collect();
    found.sort_by_key(|(distance, _)| *distance);
    found.into_iter().take(3).map(|(_, word)| word).collect()
}

/// Counts the insertions, deletions, replacements and swaps that turn one word into the other.
fn distance(name: &[char], word: &str) -> usize {
    let word: Vec<char> = word.chars().take(MAX_NAME_CHARS).collect();
    let mut before: Vec<usize> = vec![0; word.len() + 1];
    let mut above: Vec<usize> = (0..=word.len()).collect();
    let is_same = |a: Option<&char>, b: Option<&char>| match (a, b) {
        (Some(a), Some(b)) => a.eq_ignore_ascii_case(b),
        (Some(_) | None, _) => false,
    };
    let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
    for i in 1..=name.len() {
        let mut row = vec![i];
        for j in 1..=word.len() {
            let (a, b) = (name.get(i - 1), word.get(j - 1));
            let replaced = at(&above, j - 1) + usize::from(!is_same(a, b));
            let mut best = replaced.min(at(&above, j) + 1).min(at(&row, j - 1) + 1);
            let is_swap =
                i > 1 && j > 1 && is_same(a, word.get(j - 2)) && is_same(name.get(i - 2), b);
            if is_swap {
                best = best.min(at(&before, j - 2) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut above, row);
    }
    at(&above, word.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expected: &[&str]) {
        let known = ["command", "edit", "read", "get_value", "input", "ctrl"];
        assert_eq!(similar_names(name, known.into_iter()), expected, "{name}");
    }

    #[test]
    fn slips_are_recognised() {
        check("comand", &["command"]);
        check("Command", &["command"]);
        check("edti", &["edit"]);
        check("raed", &["read"]);
        check("get-value", &["get_value"]);
        check("zzz", &[]);
        check("", &[]);
        check(&"x".repeat(1000), &[]);
    }
}
