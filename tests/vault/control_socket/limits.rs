//! Names that a session takes from outside.

use super::{VALUE, WaitingRun};
use crate::vault::home::Home;

#[test]
fn nothing_is_taken_while_nobody_knows_what_is_stored() {
    let home = Home::new();
    home.set("STORED", "value-in-the-store", &[]);
    let index = std::fs::read(home.index()).unwrap();
    let run = WaitingRun::with(&home, &["--vault", "memory"]);
    std::fs::write(home.index(), "{").unwrap();
    home.give("STORED", VALUE, &[]).exit(1).error("bad_vault");
    home.give("OTHER", VALUE, &[]).exit(1).error("bad_vault");
    std::fs::write(home.index(), index).unwrap();
    home.give("OTHER", VALUE, &[]).exit(0);
    run.end();
}
