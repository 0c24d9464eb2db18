//! Secrets in streams of every kind never get through the redactor, and nothing else changes.

mod commands;
mod frame;
mod limits;
mod process;
pub mod reference;
mod streams;

use streams::Dice;

/// Streams of one run: the long count is that of the vault's goal.
fn count() -> u64 {
    if std::env::var_os("KARYI_FULL").is_some() {
        100_000
    } else {
        120
    }
}

#[test]
fn no_part_of_a_planted_value_is_seen() {
    let given = std::env::var("KARYI_SEED").ok();
    let seed: u64 = given.map_or(1, |seed| seed.parse().unwrap());
    let mut planted = 0;
    for number in 0..count() {
        let own = seed.wrapping_add(number);
        match streams::check(&mut Dice::random(own)) {
            Ok(values) => planted += values,
            Err(what) => panic!("{what}\nagain with KARYI_SEED={own}"),
        }
    }
    println!("{} streams, {planted} planted values", count());
    assert!(planted > count() / 2, "only {planted} values were planted");
}

#[test]
fn text_without_a_value_stays_as_it_is() {
    let seed = std::env::var("KARYI_SEED").map_or(1, |seed| seed.parse().unwrap());
    for number in 0..count() {
        let own = u64::wrapping_add(seed, number);
        if let Err(what) = streams::check_benign(&mut Dice::random(own)) {
            panic!("{what}\nagain with KARYI_SEED={own}");
        }
    }
}

/// As many values as anybody has, and more text than anybody reads: not a byte of it changes.
#[test]
fn much_text_stays_as_it_is_beside_a_hundred_values() {
    let full = std::env::var_os("KARYI_FULL").is_some();
    let bytes = if full { 64 << 20 } else { 1 << 20 };
    let secrets = karyi::vault::session::Secrets::default();
    for number in 0..100_u64 {
        let name = karyi::secret::SecretName::parse(&format!("KEY_{number}")).unwrap();
        let value = (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let value = karyi::secret::SecretValue::new(format!("tok-{value:016x}"));
        secrets.insert(name, value).unwrap();
    }
    let redactor = karyi::vault::redact::Redactor::new(&secrets);
    let source = include_str!("../../crates/karyi-core/src/limits.rs");
    let mut stream = redactor.stream();
    let mut pushed = 0;
    while pushed < bytes {
        let mut out = karyi::vault::redact::Redacted::default();
        stream.push(source, &mut out);
        stream.flush(&mut out);
        assert_eq!(out.as_str(), source);
        pushed += source.len();
    }
}
