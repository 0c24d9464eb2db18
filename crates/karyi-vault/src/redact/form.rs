//! Names of the encoded forms.

/// Encoding of a value, the plainest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Form {
    /// The value itself.
    Raw,
    /// JSON string escapes.
    Json,
    /// References of XML and HTML.
    Xml,
    /// Shell quoting.
    Shell,
    /// Percent-encoding.
    Percent,
    /// Base64 of any text that contains it.
    Base64,
    /// Hexadecimal digits.
    Hex,
    /// Backslashes of shells and languages.
    Escaped,
}

impl Form {
    /// Every form, by its number.
    const ALL: [Self; 8] = [
        Self::Raw,
        Self::Json,
        Self::Xml,
        Self::Shell,
        Self::Percent,
        Self::Base64,
        Self::Hex,
        Self::Escaped,
    ];

    /// Returns the form with a number; `form as u32` is its number.
    pub(super) fn of_number(number: u32) -> Self {
        let form = Self::ALL.get(number as usize).copied();
        form.unwrap_or(Self::Raw)
    }

    /// Returns the word of the marker.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Raw => "part",
            Self::Json => "json",
            Self::Xml => "xml",
            Self::Shell => "shell",
            Self::Percent => "percent",
            Self::Base64 => "base64",
            Self::Hex => "hex",
            Self::Escaped => "escaped",
        }
    }

    /// Returns true when a text is the word of a marker.
    pub(super) fn is_word(text: &str) -> bool {
        Self::ALL.iter().any(|form| form.as_str() == text)
    }

    /// Returns true when large values are searched in this form, too.
    pub(super) fn is_plain(self) -> bool {
        matches!(self, Self::Raw | Self::Json | Self::Base64)
    }
}
