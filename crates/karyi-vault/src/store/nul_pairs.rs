//! Pairs of texts as `NAME`, NUL, `VALUE`, NUL: the format of `--vars-fd` and of the encrypted file.

use zeroize::Zeroizing;

use karyi_core::secret::SecretValue;

/// Parses pairs.
///
/// # Errors
/// The problem, without any of the text.
pub fn read(bytes: &[u8]) -> Result<Vec<(String, SecretValue)>, &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "they are not UTF-8")?;
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let text = text
        .strip_suffix('\0')
        .ok_or("the last one access not end in NUL")?;
    let mut parts = text.split('\0');
    let mut pairs = Vec::new();
    while let Some(name) = parts.next() {
        let value = parts.next().ok_or("the last name has no value")?;
        pairs.push((name.to_owned(), SecretValue::new(value.to_owned())));
    }
    Ok(pairs)
}

/// Writes pairs. Neither names nor values may hold NUL.
#[must_use]
pub fn write<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Zeroizing<Vec<u8>> {
    let size = pairs
        .clone()
        .map(|(name, value)| name.len() + value.len() + 2);
    // Allocated once: growing would leave copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(size.sum()));
    for (name, value) in pairs {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(0);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: Result<&[(&str, &str)], &'static str>) {
        let found = read(bytes);
        let shown = found.as_ref().map(|pairs| {
            let texts = pairs
                .iter()
                .map(|(name, value)| (name.as_str(), value.expose()));
            texts.collect::<Vec<_>>()
        });
        assert_eq!(shown.map_err(|error| *error), expected.map(<[_]>::to_vec));
    }

    #[test]
    fn pairs_end_in_nul() {
        check(b"", Ok(&[]));
        check(b"A\0value\0", Ok(&[("A", "value")]));
        check(
            b"A\0\0B\0two\nlines\0",
            Ok(&[("A", ""), ("B", "two\nlines")]),
        );
        check(b"A", Err("the last one access not end in NUL"));
        check(b"A\0value", Err("the last one access not end in NUL"));
        check(b"A\0value\0B", Err("the last one access not end in NUL"));
        check(b"A\0", Err("the last name has no value"));
        check(b"A\0value\0B\0", Err("the last name has no value"));
        check(b"A\0\xff\0", Err("they are not UTF-8"));
    }

    #[test]
    fn written_content_is_read_back() {
        let pairs = [("A", "one\n"), ("B", ""), (".journal", "密码")];
        let bytes = write(pairs.into_iter());
        assert_eq!(bytes.capacity(), bytes.len());
        check(&bytes, Ok(&pairs));
    }
}
