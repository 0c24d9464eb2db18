//! A supervisor that is killed at any instant loses nothing and doubles nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use karyi_tasks::inbox;

use super::home::Home;
use super::role_server::{Asked, RoleServer};

/// Kills of one round.
const KILLS: usize = 24;
/// Plans that are asked for.
const PLANS: usize = 8;

fn play(asked: &Asked) -> Option<String> {
    let (first, told) = (asked.is_first(), asked.told());
    let text = match (asked.role(), first) {
        ("teller", true) => {
            let messages = told.split_once("# Messages of the user\n\n");
            let lines = messages.map_or("", |(_, messages)| messages).lines();
            let calls = lines.map(|line| {
                let prompt = line.split_once(") ").unwrap().1;
                format!("<delegate><prompt>{prompt}</prompt></delegate>")
            });
            let calls: String = calls.collect();
            match calls.is_empty() {
                true => "Nothing to do.".to_owned(),
                false => format!("<tools>{calls}</tools>"),
            }
        }
        ("planner", true) => {
            let (_, task) = told.split_once("# Task\n\n").unwrap();
            let task = task.trim();
            format!(
                "<tools><delegate><prompt>{task} a.</prompt></delegate>\
                 <delegate><prompt>{task} b.</prompt></delegate></tools>"
            )
        }
        ("planner", false) => "{\"status\":\"done\"}".to_owned(),
        ("teller", false) => "Done.".to_owned(),
        _ => "worked".to_owned(),
    };
    Some(text)
}

/// Numbers that look random and are the same in each run.
fn random(seed: &mut u64, most: u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed % most
}

#[test]
fn nothing_is_lost_and_nothing_is_doubled_when_it_is_killed_at_random_instants() {
    let rounds = match std::env::var_os("KARYI_FULL") {
        Some(_) => 84,
        None => 1,
    };
    let mut seed = 0x9e37_79b9_7f4a_7c15;
    for _ in 0..rounds {
        round(&mut seed);
    }
}

fn round(seed: &mut u64) {
    let server = RoleServer::start(play);
    let mut home = Home::new(&server, &["--worker", "read-only", "--once"], "");
    for number in 0..PLANS {
        inbox::add(&home.state, &format!("plan {number}"), Timestamp::now()).unwrap();
    }
    for _ in 0..KILLS {
        let mut child = home.spawn();
        // The time is the point: the instant of the kill.
        std::thread::sleep(Duration::from_micros(random(seed, 500_000)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    home.run_well();
    for folder in [
        "inbox",
        "events",
        "triggers",
        "corrupt",
        "worker/queue",
        "worker/running",
    ] {
        assert_eq!(home.names(folder), [""; 0], "{folder}");
    }
    let mut works: BTreeMap<String, usize> = BTreeMap::new();
    for name in home.names("worker/results") {
        let result = home.json(&format!("worker/results/{name}"));
        let attempts = result["task"]["attempts"].as_u64().unwrap();
        assert!((1..=2).contains(&attempts), "{result}");
        let prompt = result["task"]["prompt"].as_str().unwrap().to_owned();
        *works.entry(prompt).or_default() += 1;
    }
    assert!(works.values().all(|count| *count == 1), "{works:?}");
    let plans = home.names("planner/results");
    assert_eq!(plans.len(), PLANS);
    let mut expected = Vec::new();
    for name in plans {
        let result = home.json(&format!("planner/results/{name}"));
        let prompt = result["task"]["prompt"].as_str().unwrap();
        // A Planner that was cut twice has failed, and its plan is no plan.
        if result["status"] == "done" {
            expected.extend([format!("{prompt} a."), format!("{prompt} b.")]);
        }
    }
    expected.sort();
    assert_eq!(works.keys().cloned().collect::<Vec<_>>(), expected);
    // No task was given to a model more than twice; one that was cut twice before that was given to none.
    for prompt in works.keys() {
        let asked = server.asked("worker");
        let runs = asked
            .iter()
            .filter(|one| one.told().contains(&format!("\n{prompt}\n")))
            .count();
        assert!(runs <= 2, "{prompt} ran {runs} times");
    }
    home.plan("after all", None, None);
    home.run_well();
    assert_eq!(home.names("worker/results").len(), expected.len() + 1);
}
