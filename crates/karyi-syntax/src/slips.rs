//! Harmless slips that repair mode takes: only one meaning is possible (rules R9 to R12).

use super::chars::is_same_name;

/// Finds the argument that a model means by `path` or `src`, or by `taskId` for `task_id`.
#[must_use]
pub fn other_name<'a>(written: &str, mut known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let other = counterpart(written);
    known.find(|name| other == Some(*name) || is_camel_case(written, name))
}

/// Tells whether a name is `declared` in camel case.
fn is_camel_case(written: &str, declared: &str) -> bool {
    let mut declared = declared.chars();
    let is_same = |sign: char| match declared.next() {
        Some('_') => {
            sign.is_ascii_uppercase() && declared.next() == Some(sign.to_ascii_lowercase())
        }
        other => other == Some(sign),
    };
    written.chars().all(is_same) && declared.next().is_none()
}

/// Returns the name that `path` or `src` stands for where the tool has no argument of that name.
fn counterpart(written: &str) -> Option<&'static str> {
    let names = [("path", "src"), ("src", "path")];
    let is_written = |name: &str| is_same_name(written.as_bytes(), name.as_bytes());
    let found = names.into_iter().find(|(name, _)| is_written(name))?;
    Some(found.1)
}

/// Returns true when an unknown attribute of this name only explains the call.
#[must_use]
pub fn is_explanation(name: &str) -> bool {
    let words = ["description", "reason"];
    words
        .iter()
        .any(|word| is_same_name(name.as_bytes(), word.as_bytes()))
}

/// Returns the plain number of seconds for a time with a unit, such as `1s` or `5 min`.
#[must_use]
pub fn seconds(value: &str) -> Option<String> {
    let value = value.trim();
    let at = value.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = value.split_at(at);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "ms" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        _ => return None,
    };
    let number: f64 = number.trim().parse().ok()?;
    Some((number * factor).to_string())
}

/// Returns the key in `Ctrl+C`, `ctrl-c`, `C-c` or `^C`, in lower case.
#[must_use]
pub fn control_key(text: &str) -> Option<String> {
    let text = text.trim().to_lowercase();
    let prefixes = ["ctrl", "control", "c", "^"];
    let rest = prefixes.iter().find_map(|prefix| {
        let rest = text.strip_prefix(prefix)?;
        match *prefix {
            "^" => Some(rest),
            "c" => rest.strip_prefix('-'),
            _ => Some(rest.trim_start_matches([' ', '+', '-', '_']))
                .filter(|key| key.len() < rest.len()),
        }
    })?;
    (rest.chars().count() == 1).then(|| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn camel_case_is_the_same_name() {
        for (written, declared, expected) in [
            ("taskId", "task_id", true),
            ("runAt", "run_at", true),
            ("taskid", "task_id", false),
            ("task_Id", "task_id", false),
            ("taskIdx", "task_id", false),
            ("task", "task_id", false),
            ("TaskId", "task_id", false),
        ] {
            assert_eq!(is_camel_case(written, declared), expected, "{written}");
        }
    }

    #[test]
    fn units_and_keys_have_one_meaning() {
        for (written, expected) in [
            ("1s", Some("1")),
            ("1.5 min", Some("90")),
            ("500ms", Some("0.5")),
            ("2H", Some("7200")),
            ("soon", None),
            ("1e3", None),
            ("5 apples", None),
            ("", None),
        ] {
            assert_eq!(seconds(written).as_deref(), expected, "{written}");
        }
        for (written, expected) in [
            ("Ctrl+C", Some("c")),
            ("control - d", Some("d")),
            ("C-z", Some("z")),
            ("^\\", Some("\\")),
            (" ctrl+[ ", Some("[")),
            ("ctrlc", None),
            ("ctrl+enter", None),
            ("strg", None),
        ] {
            assert_eq!(control_key(written).as_deref(), expected, "{written}");
        }
    }
}
