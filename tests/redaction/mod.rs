//! Secrets in streams of every kind never get through the redactor, and nothing else changes.

mod commands;
mod limits;
mod process;
mod reference;
mod streams;

use streams::Dice;

/// Streams of one run: the long count is that of the vault's goal.
fn count() -> u64 {
    if std::env::var_os("KARYI_FULL").is_some() {
        100_000
    } else {
        400
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
