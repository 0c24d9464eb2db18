//! A keyring that hangs: nobody waits for it twice, and whoever waits at a terminal is told why.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::bus::{Bus, Provider};
use super::home::Home;
use crate::harness::Karyi;
use crate::harness::process::{state, wait_until};
use crate::harness::terminal::Terminal;

const VALUE: &str = "S3cr3t-T0ken/Val+ue_AbCdEf0123456789xyz";
const USE: &str = "<tools><command>printf %s \"$KARYI{TOKEN}\" | wc -c</command></tools>\n";
const WAITING: &str = "karyi: waiting for the keyring to answer (60 s at most; Ctrl+C ends)";

/// How long nobody at hand waits.
const DEADLINE: Duration = Duration::from_secs(3);

/// The time a busy machine gets for what takes a moment.
const SLACK: Duration = Duration::from_secs(20);

/// A home whose TOKEN is in a keyring, and the bus with that keyring.
fn kept(bus_home: &Home) -> Option<(Home, Bus)> {
    let bus = Bus::start(bus_home.path(), Provider::Unlocked)?;
    let home = Home::new().env("DBUS_SESSION_BUS_ADDRESS", &bus.address);
    let set = ["var", "set", "TOKEN", "--stdin", "--vault", "os"];
    home.karyi(&set, VALUE).exit(0);
    Some((home, bus))
}

/// The same, with a program in the place of the keyring that never answers.
fn hanging(bus_home: &Home) -> Option<(Home, Bus)> {
    let (home, bus) = kept(bus_home)?;
    drop(bus);
    let bus = Bus::start(bus_home.path(), Provider::Hangs)?;
    let home = home.env("DBUS_SESSION_BUS_ADDRESS", &bus.address);
    Some((home, bus))
}

/// Halts a keyring; whatever is asked of it waits.
fn halt(bus: &Bus) -> Pid {
    let keyring = bus.keyring().unwrap();
    kill(keyring, Signal::SIGSTOP).unwrap();
    wait_until(|| state(keyring) == Some('T'));
    keyring
}

fn start(home: &Home, bus: &Bus, args: &[&str]) -> Terminal {
    Karyi::with_args(args)
        .env("KARYI_HOME", home.path().join("karyi"))
        .env("DBUS_SESSION_BUS_ADDRESS", bus.address.as_str())
        .on_terminal()
}

#[test]
fn a_run_waits_once_for_a_keyring_that_hangs() {
    let bus_home = Home::new();
    let Some((home, _bus)) = hanging(&bus_home) else {
        return;
    };
    let start = Instant::now();
    let ran = home.script(&USE.repeat(20)).exit(3);
    let took = start.elapsed();
    println!("20 blocks: {} ms", took.as_millis());
    assert_eq!(ran.stdout.matches("did not answer within 3 s").count(), 21);
    assert!(took >= DEADLINE && took < DEADLINE + SLACK, "{took:?}");
}

#[test]
fn a_doctor_waits_once_for_a_keyring_that_hangs() {
    let bus_home = Home::new();
    let Some((home, _bus)) = hanging(&bus_home) else {
        return;
    };
    for (args, exit, lines) in [(&["var", "doctor"][..], 1, 1), (&["doctor"], 0, 2)] {
        let timed = |home: &Home| {
            let start = Instant::now();
            (home.karyi(args, ""), start.elapsed())
        };
        let (_, without) = timed(&Home::new());
        let (ran, took) = timed(&home);
        println!(
            "{args:?}: {} ms, without a keyring {} ms",
            took.as_millis(),
            without.as_millis()
        );
        let ran = ran.exit(exit);
        let told = ran.stdout.matches("keyring_timeout: ").count();
        assert_eq!(told, lines, "{}", ran.stdout);
        // Twice would be a deadline more.
        assert!(took < without + DEADLINE * 9 / 5, "{took:?} {without:?}");
    }
}

#[test]
fn whoever_waits_at_a_terminal_is_told_and_goes_on() {
    let bus_home = Home::new();
    let Some((home, bus)) = kept(&bus_home) else {
        return;
    };
    let run = ["run", "--format", "xml", "-c", USE];
    for (args, at_last) in [
        (&run[..], "<output>39"),
        (&["var", "set", "OTHER"], "Esc gives up): "),
    ] {
        let keyring = halt(&bus);
        let mut terminal = start(&home, &bus, args);
        terminal.expect(WAITING);
        kill(keyring, Signal::SIGCONT).unwrap();
        terminal.expect(at_last);
        assert_eq!(terminal.screen().matches(WAITING).count(), 1);
    }
}

#[test]
fn whoever_waits_at_a_terminal_can_end_it() {
    let bus_home = Home::new();
    let Some((home, bus)) = kept(&bus_home) else {
        return;
    };
    halt(&bus);
    for args in [&["run", "-c", USE][..], &["var", "set", "OTHER"]] {
        let mut terminal = start(&home, &bus, args);
        terminal.expect(WAITING).keys("\x03");
        assert_eq!(terminal.echo_at_end(), (true, 130), "{args:?}");
    }
}
