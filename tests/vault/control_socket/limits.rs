//! What a session takes from outside: under which names, and how much.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};

use super::{Running, VALUE, said};
use crate::vault::home::Home;

/// Gives a value without the program that does so, and returns what is said to that.
fn sent(door: &Path, name: &str, value: &str) -> Value {
    let mut stream = UnixStream::connect(door).unwrap();
    assert_eq!(said(&mut stream)["hello"]["what"], "run");
    let policy = json!({
        "tools": ["command"], "hosts": [], "commands": null, "dirs": null, "use": "session", "output": "redact",
        "write": false, "expires": null, "allow_short": false,
    });
    let head = json!({"version": 1, "name": name, "policy": policy}).to_string();
    let message = [head.as_bytes(), b"\0", value.as_bytes()].concat();
    let length = u32::try_from(message.len()).unwrap();
    stream.write_all(&length.to_be_bytes()).unwrap();
    stream.write_all(&message).unwrap();
    said(&mut stream)
}

#[test]
fn so_many_values_are_taken_and_no_more() {
    let home = Home::new();
    let mut run = Running::start(&home);
    let door = home.door();
    for number in 0..100 {
        let name = format!("NAME_{number}");
        assert_eq!(sent(&door, &name, &format!("value-{number:04}")), "taken");
        // One that is refused takes no place.
        assert_eq!(
            sent(&door, &name, VALUE)["refused"]["code"],
            "bad_arguments"
        );
    }
    let message = "the session has been given 100 values, and takes no more";
    let expected = json!({"refused": {
        "code": "bad_arguments",
        "message": message,
        "hint": "keep it with `karyi var set NAME`: a session that runs has what is kept from the next block on",
    }});
    assert_eq!(sent(&door, "ONE_MORE", VALUE), expected);
    let told = home.give("ONE_MORE", VALUE, &[]).exit(2);
    assert!(told.stderr.contains(message), "{}", told.stderr);
    assert_eq!(
        run.command("printf %s $KARYI{NAME_99} | wc -c")["output"],
        "10\n"
    );
    run.end();
}

#[test]
fn so_many_bytes_are_taken_and_no_more() {
    let home = Home::new();
    let run = Running::start(&home);
    let door = home.door();
    for number in 0..17 {
        let value = format!("{number:02}").repeat(30 << 10);
        assert_eq!(sent(&door, &format!("LONG_{number}"), &value), "taken");
    }
    let refused = sent(&door, "ONE_MORE", &"18".repeat(30 << 10));
    let message =
        "the session has been given values of 1044480 bytes, and takes 1048576 of them together";
    assert_eq!(refused["refused"]["message"], message, "{refused}");
    assert_eq!(sent(&door, "SHORTER", VALUE), "taken");
    run.end();
}

/// Changes the index as another program may.
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
