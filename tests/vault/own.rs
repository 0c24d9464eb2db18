//! What is karyi's own: no tool reads, lists, finds or changes it, and policies that name nobody.

use std::fs;
#[cfg(target_os = "linux")]
use std::os::unix::fs::OpenOptionsExt;
#[cfg(target_os = "linux")]
use std::path::Path;
use std::path::PathBuf;

use super::home::{Home, Ran};
use crate::harness::program;

const VALUE: &str = "S3cr3t-T0ken/Val+ue_AbCdEf0123456789xyz";

fn run(home: &Home, args: &[&str], calls: &str) -> Ran {
    let mut all = vec!["run", "--no-interactive", "--json"];
    all.extend(args);
    all.push("-");
    home.karyi(&all, &format!("<tools>{calls}</tools>"))
}

#[test]
fn walks_leave_out_what_is_karyis_own() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &["--note", "for-deploys"]);
    fs::write(home.path().join("beside"), "for-deploys\n").unwrap();
    let calls = "<command>:</command>\
        <read><file src=\"..\" all=\"true\" depth=\"9\"/></read>\
        <read><search pattern=\"for-deploys\" path=\"..\" all=\"true\"/></read>\
        <read><search pattern=\"for-deploys\" path=\"..\" glob=\"*.json\" all=\"true\"/></read>";
    let ran = run(&home, &[], calls).exit(0);
    for own in ["vars.json", "vault.age", "vars.lock", "owner", "session-"] {
        assert!(!ran.stdout.contains(own), "{own}: {}", ran.stdout);
    }
    let report = ran.json();
    assert!(ran.stdout.contains("beside  12 bytes"), "{}", ran.stdout);
    let searches = |at: usize| report["results"][at]["searches"][0]["total_matches"].clone();
    assert_eq!(
        (searches(2), searches(3)),
        (1.into(), 0.into()),
        "{}",
        ran.stdout
    );
}

/// A hard link is a file of karyi under a path of the user.
#[test]
fn hard_links_to_what_is_karyis_own_are_its_own() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &["--note", "for-deploys"]);
    // The first run makes the key of the journal, and writes the index anew.
    run(&home, &[], "<command>:</command>").exit(0);
    for (own, link) in [(home.index(), "index"), (home.identity(), "key")] {
        fs::hard_link(own, home.work().join(link)).unwrap();
    }
    fs::write(home.work().join("one"), "for-deploys\n").unwrap();
    fs::hard_link(home.work().join("one"), home.work().join("two")).unwrap();
    let calls = "<command>:</command><read><file src=\"index\"/></read><read><file src=\"key\"/></read>\
        <edit><file src=\"index\"><find>TOKEN</find><replace>X</replace></file></edit>\
        <read><file src=\"two\"/></read><read><search pattern=\"for-deploys\"/><search pattern=\"AGE-SECRET\"/></read>\
        <read><search pattern=\"for-deploys\" path=\"index\"/></read>";
    let report = run(&home, &[], calls).json();
    let code = |at: usize| report["results"][at]["code"].clone();
    for denied in [1, 2, 3, 6] {
        assert_eq!(code(denied), "policy_denied", "{denied}: {report:#}");
    }
    assert_eq!(code(4), serde_json::Value::Null, "{report:#}");
    let found = |at: usize| &report["results"][5]["searches"][at]["total_matches"];
    assert_eq!((found(0), found(1)), (&2.into(), &0.into()), "{report:#}");
}

#[test]
fn what_is_karyis_own_is_neither_read_nor_changed() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    // The first run makes the key of the journal, and writes the index anew.
    run(&home, &[], "<command>:</command>").exit(0);
    let index = fs::read(home.index()).unwrap();
    std::os::unix::fs::symlink(home.path().join("karyi/data"), home.work().join("link")).unwrap();
    for path in [
        "../karyi",
        "../karyi/data/vars.json",
        "../karyi/data/vault.age",
        "link/vars.json",
        "/proc/self/cwd/link/vars.json",
        "../karyi/state",
        "../run/karyi",
        "../home/.local/share/karyi/vars.json",
        "../identity",
    ] {
        let calls = format!("<command>:</command><read><file src=\"{path}\"/></read>");
        let report = run(&home, &[], &calls).exit(1).json();
        assert_eq!(
            report["results"][1]["code"], "policy_denied",
            "{path}: {report:#}"
        );
    }
    for path in [
        "../karyi/new",
        "../karyi/data/vars.json",
        "link/new",
        "../karyi/state/output/new",
        "../run/karyi/new",
        "../home/.config/karyi/new",
        "../identity",
    ] {
        for edit in [
            format!("<file src=\"{path}\"><find></find><replace>x</replace></file>"),
            format!("<file src=\"{path}\" delete=\"true\"/>"),
            format!("<file src=\"mine\" to=\"{path}\"/>"),
        ] {
            fs::write(home.work().join("mine"), "mine\n").unwrap();
            let ran = run(&home, &[], &format!("<edit>{edit}</edit>")).exit(1);
            assert_eq!(
                ran.json()["results"][0]["code"],
                "policy_denied",
                "{edit}: {}",
                ran.stdout
            );
        }
    }
    assert_eq!(fs::read(home.index()).unwrap(), index);
    assert!(!home.path().join("karyi/new").exists() && home.identity().exists());
}

#[test]
fn a_home_that_is_named_from_here_is_karyis_own_too() {
    let home = Home::new().env("KARYI_HOME", "../karyi");
    home.set("TOKEN", VALUE, &[]);
    let calls = "<command>cd /</command><read><file src=\"WORK/../karyi/data/vars.json\"/></read>";
    let calls = calls.replace("WORK", home.work().to_str().unwrap());
    let report = run(&home, &[], &calls).exit(1).json();
    assert_eq!(report["results"][1]["code"], "policy_denied", "{report:#}");
}

#[test]
fn whole_outputs_are_read_and_not_changed() {
    let home = Home::new();
    let args = ["--keep", "--max-output", "100"];
    let report = run(&home, &args, "<command>seq 1 500</command>")
        .exit(0)
        .json();
    let file = report["results"][0]["output_file"]
        .as_str()
        .unwrap()
        .to_owned();
    let parent = PathBuf::from(&file).parent().unwrap().display().to_string();
    let calls = format!(
        "<read><file src=\"{file}\" lines=\"499-\"/></read><read><file src=\"{parent}\"/></read>\
         <read><search pattern=\"499\" path=\"{parent}\"/></read>\
         <edit><file src=\"{file}\"><find>499</find><replace>x</replace></file></edit>"
    );
    let report = run(&home, &[], &calls).exit(1).json();
    let result = |at: usize| &report["results"][at];
    assert_eq!(result(0)["files"][0]["output"], "499\n500\n", "{report:#}");
    assert_eq!(result(1)["status"], "ok", "{report:#}");
    assert_eq!(result(2)["searches"][0]["total_matches"], 1, "{report:#}");
    assert_eq!(result(3)["code"], "policy_denied", "{report:#}");
}

#[test]
fn a_policy_for_nobody_is_told() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    let policy = |text: &str| fs::write(home.work().join("p.toml"), text).unwrap();
    let used = "<command>touch ran; printf %s $KARYI{TOKEN} | wc -c</command>";
    policy("[secret.TOKN]\ntools = ['input']\n");
    let ran = run(&home, &["--policy", "p.toml"], used).exit(0);
    assert!(
        ran.stderr.contains("warning: the policy file names TOKN"),
        "{}",
        ran.stderr
    );
    assert_eq!(
        ran.json()["diagnostics"][0]["code"],
        "unknown_secret",
        "{}",
        ran.stdout
    );
    fs::remove_file(home.work().join("ran")).unwrap();

    policy("[secret.Token]\ntools = ['input']\n");
    let ran = run(&home, &["--policy", "p.toml"], used)
        .exit(2)
        .error("bad_policy");
    assert!(
        ran.stderr.contains("write [secret.TOKEN]"),
        "{}",
        ran.stderr
    );
    policy("[secret.TOKEN]\ntools = ['input']\n[secret.token]\nuse = 'ask'\n");
    run(&home, &["--policy", "p.toml"], used).exit(2);
    assert!(!home.work().join("ran").exists());

    policy("[secret.TOKEN]\ntools = ['input']\n");
    let ran = run(&home, &["--policy", "p.toml"], used)
        .exit(1)
        .error("policy_denied");
    assert_eq!(
        (ran.stderr.as_str(), home.work().join("ran").exists()),
        ("", false)
    );
    // A name from elsewhere is as good as one in the index.
    policy("[secret.GIVEN]\ntools = ['input']\n");
    let args = [
        "run",
        "--no-interactive",
        "--policy",
        "p.toml",
        "--vars-fd",
        "3",
        "-c",
        "<tools><command>echo $KARYI{GIVEN}</command></tools>",
    ];
    let ran = home
        .karyi_with_fd(&args, b"GIVEN\0given-value-a\0")
        .exit(1)
        .error("policy_denied");
    assert_eq!(ran.stderr, "");
}

#[test]
fn what_only_a_policy_file_forbids_names_that_file() {
    let home = Home::new();
    home.set("TOKEN", VALUE, &["--write"]);
    home.set("OWN", "own-77e1c0b2dd", &["--tools", "input"]);
    home.set("OLD", "old-5f2c9d81aa", &["--expires", "2020-01-01"]);
    let file = "the file p.toml of --policy says so";
    // What is kept is widened, whatever the file leaves of it.
    let own = "`karyi var set OWN --keep-value --tools input,command`";
    let command = "<command>printf %s $KARYI{NAME}</command>";
    let edit = "<edit><file src=\"f\"><find></find><replace>$KARYI{NAME}</replace></file></edit>";
    for (name, terms, calls, code, hint) in [
        ("TOKEN", "tools = ['input']", command, "policy_denied", file),
        (
            "TOKEN",
            "dirs = ['/nowhere']",
            command,
            "policy_denied",
            file,
        ),
        ("TOKEN", "write = false", edit, "policy_denied", file),
        (
            "TOKEN",
            "expires = '2020-01-01'",
            command,
            "secret_expired",
            file,
        ),
        ("OWN", "tools = ['read']", command, "policy_denied", own),
        (
            "OLD",
            "expires = '2020-01-01'",
            command,
            "secret_expired",
            "`karyi var rotate OLD --expires WHEN`",
        ),
    ] {
        fs::write(
            home.work().join("p.toml"),
            format!("[secret.{name}]\n{terms}\n"),
        )
        .unwrap();
        let calls = calls.replace("NAME", name);
        let report = run(&home, &["--policy", "p.toml"], &calls).exit(1).json();
        let result = &report["results"][0];
        assert_eq!(result["code"], code, "{terms}: {report:#}");
        let told = result["hint"].as_str().unwrap();
        assert!(told.contains(hint), "{terms}: {told}");
    }
}

/// Runs a program that may leave core files as large as the system lets it.
#[cfg(target_os = "linux")]
const WITH_CORES: &[&str] = &["-c", "ulimit -S -c \"$(ulimit -H -c)\"; exec \"$@\"", "sh"];

/// Returns the soft and the hard limit of core files.
#[cfg(target_os = "linux")]
fn cores(limits: &str) -> [String; 2] {
    let mut lines = limits.lines();
    let line = lines.find_map(|line| line.strip_prefix("Max core file size"));
    let mut words = line.unwrap().split_whitespace().map(str::to_owned);
    [(); 2].map(|()| words.next().unwrap())
}

/// `karyi var` writes no core file, and what it runs in its place may again. Where nobody may, nothing can be told.
#[cfg(target_os = "linux")]
#[test]
fn var_is_protected_and_the_program_of_exec_has_its_own_limit() {
    use std::process::Stdio;

    let home = Home::new();
    home.set("TOKEN", VALUE, &[]);
    let karyi = program().to_str().unwrap();
    let shell = Path::new("/bin/sh");
    let shown = [
        karyi,
        "var",
        "exec",
        "TOKEN",
        "--",
        "cat",
        "/proc/self/limits",
    ];
    let shown = home
        .spawn(shell, &[WITH_CORES, &shown].concat(), "")
        .exit(0);
    let [soft, hard] = cores(&shown.stdout);
    assert_eq!(soft, hard);
    // It reads the values when it has looked after itself.
    let fifo = home.work().join("values");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let import = [karyi, "var", "import", "values"];
    let mut command = home.command(shell, &[WITH_CORES, &import].concat());
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut options = fs::OpenOptions::new();
    options.write(true).custom_flags(nix::libc::O_NONBLOCK);
    let writer = loop {
        match options.open(&fifo) {
            Ok(writer) => break writer,
            Err(_) => assert_eq!(child.try_wait().unwrap(), None, "it ended before it read"),
        }
        std::thread::yield_now();
    };
    let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    assert_eq!(cores(&limits), ["0".to_owned(), hard]);
    drop(writer);
    assert!(child.wait().unwrap().success());
}
