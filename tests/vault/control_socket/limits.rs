//! Names that a session takes from outside.

use serde_json::{Value, json};

use super::{Running, VALUE};
use crate::vault::home::Home;

fn change_index(home: &Home, change: impl FnOnce(&mut Value)) {
    let mut index = serde_json::from_slice(&std::fs::read(home.index()).unwrap()).unwrap();
    change(&mut index);
    std::fs::write(home.index(), index.to_string()).unwrap();
}

#[test]
fn a_name_whose_removal_broke_off_is_not_taken() {
    let home = Home::new();
    home.set("STORED", "value-in-the-store", &[]);
    change_index(&home, |index| {
        index["names"]["STORED"]["is_going"] = json!(true);
    });
    // Its value may be there still, in a store that this one has not opened.
    let mut run = Running::with(&home, &["--vault", "memory"]);
    for name in ["STORED", "stored"] {
        let refused = home.give(name, VALUE, &[]).exit(2);
        refused.error("bad_arguments");
    }
    assert_eq!(
        run.command("echo $KARYI{STORED}")["code"],
        "undefined_variable"
    );
    run.end();
}

#[test]
fn nothing_is_taken_while_nobody_knows_what_is_stored() {
    let home = Home::new();
    home.set("STORED", "value-in-the-store", &[]);
    let index = std::fs::read(home.index()).unwrap();
    let run = Running::with(&home, &["--vault", "memory"]);
    std::fs::write(home.index(), "{").unwrap();
    home.give("STORED", VALUE, &[]).exit(1).error("bad_vault");
    home.give("OTHER", VALUE, &[]).exit(1).error("bad_vault");
    std::fs::write(home.index(), index).unwrap();
    home.give("OTHER", VALUE, &[]).exit(0);
    run.end();
}
