//! The encodings that are promised to be masked, written a second time and as plainly as can be.

/// Returns a text in every promised encoding; `before` stands before it where that changes digits.
pub fn encodings(value: &str, before: &str) -> Vec<String> {
    let joined = format!("{before}{value}");
    let mut forms = vec![
        value.to_owned(),
        digits(&joined, 6, STANDARD),
        digits(&joined, 6, URL_SAFE),
        each_byte(value, |byte| format!("{byte:02x}")),
        each_byte(value, |byte| format!("{byte:02X}")),
        each_byte(value, |byte| format!("\\x{byte:02x}")),
        each_byte(value, |byte| format!("\\{byte:03o}")),
        each_byte(value, |byte| format!("\\0{byte:03o}")),
        each_unit(value, |unit| format!("%u{unit:04x}")),
        each_unit(value, |unit| format!("%u{unit:04X}")),
        percent(value, |byte| format!("%{byte:02X}")),
        percent(value, |byte| format!("%{byte:02x}")),
        each_character(value, |c| format!("&#{};", u32::from(c))),
        each_character(value, |c| format!("&#x{:x};", u32::from(c))),
        each_character(value, |c| format!("&#x{:X};", u32::from(c))),
        each_character(value, |c| format!("&#X{:x};", u32::from(c))),
        each_character(value, |c| format!("&#X{:X};", u32::from(c))),
        each_character(value, |c| format!("&#{:03};", u32::from(c))),
        each_character(value, |c| format!("&#{:04};", u32::from(c))),
        each_character(value, |c| format!("&#x{:04x};", u32::from(c))),
        each_character(value, |c| format!("&#x{:04X};", u32::from(c))),
        each_byte(value, |byte| format!("%{byte:02x}")),
        each_byte(value, |byte| format!("%{byte:02X}")),
        each_unit(value, |unit| format!("\\u{unit:04x}")),
        each_unit(value, |unit| format!("\\u{unit:04X}")),
        value.replace('\'', "'\\''"),
        value.replace('\'', "'\"'\"'"),
        xml(value),
        backslashed(value),
        // Encoders that escape more than they must, or less.
        escaped(value, "_-.~%!#$&'()*+,/:;=?@ ", |c| {
            format!("%{:02X}", u32::from(c))
        }),
        escaped(value, "%\"<>^`{|} ", |c| format!("%{:02x}", u32::from(c))),
        escaped(value, "&<>\"'", |c| format!("&#{};", u32::from(c))),
        escaped(value, "&<>\"'/=`", |c| format!("&#x{:X};", u32::from(c))),
        escaped(value, "\\!*()", |c| format!("\\{c}")),
        escaped(value, "\\\"'-+ ", |c| format!("\\x{:02x}", u32::from(c))),
        escaped(value, "\\!@#$%^&*()", |c| format!("\\{:03o}", u32::from(c))),
    ];
    let json = serde_json::to_string(value).unwrap();
    let nested = serde_json::to_string(&json).unwrap();
    forms.push(json[1..json.len() - 1].to_owned());
    forms.push(nested[3..nested.len() - 3].to_owned());
    forms
}

const STANDARD: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn escaped(value: &str, characters: &str, form: impl Fn(char) -> String) -> String {
    let each = value.chars().map(|c| match characters.contains(c) {
        true => form(c),
        false => c.to_string(),
    });
    each.collect()
}

fn each_byte(value: &str, form: impl Fn(u8) -> String) -> String {
    value.bytes().map(form).collect()
}

fn each_unit(value: &str, form: impl Fn(u16) -> String) -> String {
    value.encode_utf16().map(form).collect()
}

fn each_character(value: &str, form: impl Fn(char) -> String) -> String {
    value.chars().map(form).collect()
}

/// The digits of a text as a string of bits; those of an unfinished last digit are left out.
fn digits(text: &str, width: usize, alphabet: &[u8]) -> String {
    let bits: Vec<bool> = text
        .bytes()
        .flat_map(|byte| (0..8).rev().map(move |place| byte >> place & 1 == 1))
        .collect();
    let number = |bits: &[bool]| bits.iter().fold(0, |n, bit| n << 1 | usize::from(*bit));
    let groups = bits.chunks_exact(width);
    groups
        .map(|bits| char::from(alphabet[number(bits)]))
        .collect()
}

fn percent(value: &str, form: impl Fn(u8) -> String) -> String {
    each_byte(value, |byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            char::from(byte).to_string()
        } else {
            form(byte)
        }
    })
}

fn xml(value: &str) -> String {
    each_character(value, |c| match c {
        '&' => "&amp;".into(),
        '<' => "&lt;".into(),
        '>' => "&gt;".into(),
        '"' => "&quot;".into(),
        '\'' => "&#x27;".into(),
        other => other.into(),
    })
}

/// As `printf %q` prints ASCII.
fn backslashed(value: &str) -> String {
    each_character(value, |c| {
        if c.is_ascii() && !c.is_ascii_alphanumeric() && !"_-./:@%+=".contains(c) {
            format!("\\{c}")
        } else {
            c.into()
        }
    })
}
