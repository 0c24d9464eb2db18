//! Values that are given for one run, and what opens a store without anybody to ask.

use std::fs;

use super::home::Home;

const VALUE: &str = "S3cr3t-T0ken/Val+ue_AbCdEf0123456789xyz";

#[test]
fn values_come_by_descriptor() {
    let home = Home::new();
    let script = "<tools><command>printf %s \"$KARYI{A}\" | wc -c; echo given-value-b; \
         ls -l /proc/self/fd | grep -c descriptor</command></tools>";
    let args = ["run", "--no-interactive", "--vars-fd", "3", "-c", script];
    let ran = home.karyi_with_fd(&args, b"A\0given-value-a\0B\0given-value-b\0");
    let ran = ran.hides("given-value");
    assert!(ran.stdout.contains("13\n$KARYI{B}\n0\n"), "{}", ran.stdout);
    for (bytes, code) in [
        (b"A".as_slice(), "bad_arguments"),
        (b"A\0given-value", "bad_arguments"),
        (b"A B\0given-value\0", "bad_arguments"),
        (b"A\0abc\0", "bad_value"),
        (b"A\0given-value\0a\0given-value\0", "bad_arguments"),
    ] {
        let ran = home.karyi_with_fd(&args, bytes);
        ran.exit(2).error(code).hides("given-value");
    }
    let nothing = home.karyi(&["run", "--vars-fd", "77", "-c", script], "");
    nothing.exit(2).error("bad_arguments");
    let set = [
        "var",
        "set",
        "A",
        "--stdin",
        "--vault",
        "age",
        "--age-passphrase-fd",
    ];
    home.karyi(&[&set[..], &["77"]].concat(), "long-enough")
        .exit(2)
        .error("bad_arguments");
}

#[test]
fn values_come_by_environment_and_leave_it() {
    let home = Home::new()
        .env("KARYI_VAR_A", "given-value-a")
        .env("KARYI_VAR_B", "given-value-b");
    let script = "<tools><command>printf %s \"$KARYI{A}\" | wc -c; echo given-value-b; env | grep -c KARYI_VAR; \
         tr '\\0' '\\n' &lt; /proc/$PPID/environ | grep -c given</command></tools>";
    let run = ["run", "--no-interactive", "--vault", "env", "-c", script];
    let ran = home.karyi(&run, "").hides("given-value");
    assert!(
        ran.stdout.contains("13\n$KARYI{B}\n0\n0\n"),
        "{}",
        ran.stdout
    );

    let unused = home.karyi(
        &[
            "run",
            "--no-interactive",
            "-c",
            "<tools><command>env | grep -c KARYI_VAR</command></tools>",
        ],
        "",
    );
    assert!(unused.stdout.contains(">0\n"), "{}", unused.stdout);
    assert!(unused.stderr.contains("--vault env"), "{}", unused.stderr);

    let bad = Home::new().env("KARYI_VAR_1X", "given-value-a");
    bad.karyi(&run, "")
        .error("bad_arguments")
        .hides("given-value");
    let set = ["var", "set", "A", "--stdin", "--vault", "env"];
    home.karyi(&set, "long-enough")
        .exit(1)
        .error("vault_read_only");
}

#[test]
fn what_opens_the_vault_is_no_output() {
    let passphrase = "a passphrase of this test";
    let home = Home::new();
    home.import_locked("TOKEN", VALUE, passphrase);
    // Its file, and the descriptor it came by, of karyi and of what karyi runs.
    let script = "<tools><read><file src=\"/proc/self/fd/3\"/></read><read><file src=\"../descriptor\"/></read>\
        <command>cat ../descriptor; cat /proc/$PPID/fd/3; cat <&3</command></tools>";
    let run = ["run", "--json", "--age-passphrase-fd", "3", "-c", script];
    let ran = home
        .karyi_with_fd(&run, passphrase.as_bytes())
        .hides(passphrase);
    let masked = ran.stdout.matches("$KARYI{KARYI_PASSPHRASE}").count();
    assert_eq!(masked, 2, "{}", ran.stdout);

    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    let identity = fs::read_to_string(home.identity()).unwrap();
    let script = "<tools><command>cat ../identity</command></tools>";
    let ran = home.karyi(&["run", "-"], script).exit(0).hides(&identity);
    assert!(
        ran.stdout.contains("$KARYI{KARYI_IDENTITY}"),
        "{}",
        ran.stdout
    );
}

#[test]
fn values_that_came_by_a_descriptor_are_there_no_more() {
    let home = Home::new();
    let pairs = format!("TOKEN\0{VALUE}\0");
    let script = "<tools><command>wc -c < /proc/$PPID/fd/3; test -e /dev/fd/3 || echo none</command></tools>";
    let run = ["run", "--format", "text", "--vars-fd", "3", "-c", script];
    let ran = home.karyi_with_fd(&run, pairs.as_bytes()).exit(0);
    assert!(ran.stdout.contains("0\nnone\n"), "{}", ran.stdout);
}

#[test]
fn a_passphrase_opens_the_file() {
    let home = Home::new();
    let set = [
        "var",
        "set",
        "TOKEN",
        "--keep-value",
        "--vault",
        "age",
        "--age-passphrase-fd",
        "3",
    ];
    home.karyi_with_fd(&set, b"pass phrase\n")
        .exit(2)
        .error("undefined_variable");
    let file = home.path().join("p.env");
    fs::write(&file, format!("TOKEN={VALUE}\n")).unwrap();
    let import = [
        "var",
        "import",
        file.to_str().unwrap(),
        "--all",
        "--vault",
        "age",
        "--age-passphrase-fd",
        "3",
    ];
    home.karyi_with_fd(&import, b"pass phrase\n")
        .exit(0)
        .hides(VALUE);
    fs::remove_file(file).unwrap();
    home.assert_nowhere(VALUE);

    let script = "<tools><command>printf %s \"$KARYI{TOKEN}\" | wc -c</command></tools>";
    let run = [
        "run",
        "--no-interactive",
        "--age-passphrase-fd",
        "3",
        "-c",
        script,
    ];
    let ran = home.karyi_with_fd(&run, b"pass phrase").exit(0);
    assert!(ran.stdout.contains(">39\n"), "{}", ran.stdout);
    let wrong = home.karyi_with_fd(&run, b"another").exit(3);
    assert!(wrong.stdout.contains("wrong_key"), "{}", wrong.stdout);
    let nobody = home.script(script).exit(3);
    assert!(
        nobody.stdout.contains("secret_prompt_unavailable"),
        "{}",
        nobody.stdout
    );
    // The list asks nobody.
    let listed = home.karyi(&["var", "list"], "").exit(0);
    assert!(listed.stdout.contains("TOKEN"), "{}", listed.stdout);
}

/// A second of work on each guess is what protects a short passphrase; the other tests set the variable.
#[test]
fn a_passphrase_takes_a_second_of_work() {
    let home = Home::new().env("KARYI_TEST_PASSPHRASE_WORK", "");
    home.import_locked("TOKEN", VALUE, "pass phrase");
    let file = fs::read(home.path().join("karyi/data/vault.age")).unwrap();
    let header = String::from_utf8_lossy(&file[..100]).into_owned();
    let recipient = header.lines().nth(1).unwrap();
    let words: Vec<&str> = recipient.split(' ').collect();
    let [arrow, kind, _salt, work] = words[..] else {
        panic!("{recipient}");
    };
    assert_eq!([arrow, kind, work], ["->", "scrypt", "18"]);
}

/// Every way values come in has the same least length, and names the variable and nothing else.
#[test]
fn values_too_short_to_be_masked_are_refused_at_every_door() {
    let home = Home::new();
    let calls = "<tools><command>echo $KARYI{TOKEN}</command></tools>";
    for value in ["pw1!z", "p w 1 ! z", "abc", "        "] {
        let pairs = format!("TOKEN\0{value}\0");
        let refused = |ran: super::home::Ran| {
            let ran = ran.exit(2).error("bad_value").hides(value);
            assert!(
                ran.stderr.contains("TOKEN") && ran.stdout.is_empty(),
                "{}",
                ran.stderr
            );
        };
        refused(home.karyi_with_fd(&["run", "--vars-fd", "3", "-c", calls], pairs.as_bytes()));
        let given = Home::new().env("KARYI_VAR_TOKEN", value);
        refused(given.karyi(&["run", "--vault", "env", "-c", calls], ""));
    }
    for (value, shown) in [("pw1!z", "$KARYI{TOKEN}"), ("        ", "")] {
        let pairs = format!("TOKEN\0{value}\0");
        let args = ["run", "--allow-short", "--vars-fd", "3", "-c", calls];
        let ran = home.karyi_with_fd(&args, pairs.as_bytes());
        match shown {
            "" => drop(ran.exit(2).error("bad_value")),
            shown => assert!(ran.exit(0).stdout.contains(shown)),
        }
    }
}

#[test]
fn a_name_that_is_given_twice_is_refused() {
    let home = Home::new();
    let script = "<tools><command>echo fine</command></tools>";
    let given = b"TWICE\0first-value-1\0TWICE\0second-value-2\0";
    home.karyi_with_fd(&["run", "--vars-fd", "3", "-c", script], given)
        .exit(2)
        .error("bad_arguments")
        .hides("first-value-1")
        .hides("second-value-2");
}
