//! Changes of one vault by several programs at once, and by programs that are killed.

use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use super::home::Home;
use super::var::VALUE;
use crate::harness::program;

/// What programs do with the encrypted file of a home.
fn arguments(home: &Home, args: &[&str]) -> Vec<String> {
    let identity = home.identity().to_str().unwrap().to_owned();
    let own = ["--vault", "age", "--age-identity"];
    let all = args.iter().chain(&own).map(|arg| (*arg).to_owned());
    all.chain([identity]).collect()
}

fn names(home: &Home) -> Vec<String> {
    let listed = home.karyi(&["var", "list", "--json"], "").exit(0).json();
    let secrets = listed["secrets"].as_array().unwrap();
    let names = secrets.iter().map(|secret| &secret["name"]);
    names
        .map(|name| name.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn six_values_that_are_kept_at_once_are_all_there() {
    let home = Home::new();
    let keys = ["A", "B", "C", "D", "E", "F"];
    std::thread::scope(|scope| {
        for key in keys {
            let home = &home;
            scope.spawn(move || home.set(key, &format!("{VALUE}-{key}"), &[]));
        }
    });
    assert_eq!(names(&home), keys);
    let exec = ["var", "exec", "A", "B", "C", "D", "E", "F", "--"];
    let print = ["sh", "-c", "printf '%s ' $A $B $C $D $E $F"];
    let ran = home.karyi(&[&exec[..], &print].concat(), "").exit(0);
    let expected: String = keys.map(|key| format!("{VALUE}-{key} ")).concat();
    assert_eq!(ran.stdout, expected);
}

#[test]
fn whenever_a_change_is_killed_nothing_is_lost_and_nothing_is_in_the_clear() {
    let home = Home::new();
    home.set("FIRST", VALUE, &["--note", "n0te"]);
    let killed = "S3cr3t-0f-the-killed/0ne";
    for round in 0..24_u64 {
        let args = match round % 3 {
            2 => arguments(&home, &["var", "rename", "LATER", "LATEST"]),
            _ => arguments(&home, &["var", "set", "LATER", "--stdin"]),
        };
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut child = home
            .command(program(), &args)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let _ = pipe.write_all(killed.as_bytes());
        drop(pipe);
        std::thread::sleep(Duration::from_millis(round * 7));
        let _ = child.kill();
        let _ = child.wait();
        home.assert_nowhere(killed);
        home.assert_nowhere(VALUE);
    }
    let used = "<tools><command>printf %s $KARYI{FIRST} | wc -c</command></tools>";
    let ran = home
        .karyi(&["run", "--require-vault", "-c", used], "")
        .exit(0);
    assert!(
        ran.stdout.contains(&VALUE.len().to_string()),
        "{}",
        ran.stdout
    );
    assert!(names(&home).contains(&"FIRST".to_owned()));
    home.karyi(&["var", "doctor"], "").exit(0);
    home.set("LAST", "the-last-of-all-values", &[]);
    assert!(names(&home).contains(&"LAST".to_owned()));
}
