//! What values can never do, and what the documents must say.

use std::fmt::Debug;

use karyi::secret::{Binding, ResolvedText, SecretValue};
use serde::Serialize;

/// Fails to compile when a type has a trait it must not have.
macro_rules! has_none_of {
    ($type:ty: $($forbidden:path),*) => {
        $({
            trait Unless<A> {
                fn holds() {}
            }
            struct Found;
            impl<T> Unless<()> for T {}
            impl<T: $forbidden> Unless<Found> for T {}
            <$type as Unless<_>>::holds();
        })*
    };
}

#[test]
fn values_cannot_be_printed_copied_or_sent() {
    has_none_of!(SecretValue: Debug, Clone, Serialize, std::fmt::Display);
    has_none_of!(Binding: Debug, Clone, Serialize);
    has_none_of!(ResolvedText: Debug, Clone, Serialize);
}

#[test]
fn the_document_names_every_limit() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/security.md"));
    let text = text.unwrap().replace('\n', " ").to_lowercase();
    let limits = [
        "rot13",
        "gzip",
        "sha256",
        "sed 's/./&-/g'",
        "upper case",
        "fewer than 12 characters",
        "yes or no",
        "guess",
        "numbers",
        "same user",
        "argv",
        "a hash of a short secret",
        "swap",
        "ulimit -c",
        "net, not a wall",
    ];
    let missing: Vec<&&str> = limits
        .iter()
        .filter(|limit| !text.contains(**limit))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/security.md does not name {missing:?}"
    );
}
