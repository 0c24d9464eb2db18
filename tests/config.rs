//! `config.toml` and `karyi config`, through the program.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::harness::{Karyi, Ran, is_root, skip};

const RUN: &str = "<tools><command>echo hi</command></tools>";

/// A directory for `KARYI_HOME`.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn with(text: impl AsRef<[u8]>) -> Self {
        let home = Self::new();
        fs::create_dir(home.path("config")).unwrap();
        fs::write(home.path("config/config.toml"), text).unwrap();
        home
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn karyi(&self, args: &[&str]) -> Karyi {
        Karyi::with_args(args).env("KARYI_HOME", self.0.path())
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.karyi(args).run()
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path("config/config.toml")).unwrap()
    }

    fn shown(&self, text: &str) -> String {
        text.replace(&*self.0.path().to_string_lossy(), "HOME")
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn settings_are_set_shown_and_removed() {
    let home = Home::new();
    let file = home.path("config/config.toml");
    let path = home.run(&["config", "path"]).exit(0);
    assert_eq!(home.shown(&path.stdout()), "HOME/config/config.toml\n");
    home.run(&["config", "get", "shell"])
        .stdout_text("bash\n")
        .exit(0);
    for (key, value) in [
        ("models.local.provider", "ollama"),
        ("models.local.model", "qwen3:8b"),
        ("models.local.capabilities", "json,stop"),
        ("models.local.extra", "{ top_k = 5, effort = \"high\" }"),
        ("model", "local"),
    ] {
        home.run(&["config", "set", key, value]).stderr("").exit(0);
    }
    assert_eq!((mode(&file), mode(&home.path("config"))), (0o600, 0o700));
    let table = "[models.local]\nprovider = \"ollama\"\nmodel = \"qwen3:8b\"\ncapabilities = [\"json\", \"stop\"]\n\
                 extra = { top_k = 5, effort = \"high\" }\n";
    assert_eq!(home.text(), format!("model = \"local\"\n{table}"));
    let get = |key: &str, expected: &str| {
        home.run(&["config", "get", key])
            .stdout_text(expected)
            .exit(0);
    };
    get("models.local.model", "qwen3:8b\n");
    get("models.local.capabilities", "json,stop\n");
    get("models.local.extra.top_k", "5\n");
    get(
        "models.local.extra",
        "{ top_k = 5, effort = \"(not shown)\" }\n",
    );
    let missing = home.run(&["config", "get", "models.local.context"]).exit(1);
    missing.stderr("karyi: models.local.context has no value\n");
    let list = home
        .karyi(&["config", "list"])
        .env("KARYI_SHELL", "zsh")
        .run()
        .exit(0);
    let list = home.shown(&list.stdout());
    for line in [
        "shell = \"zsh\"                                # KARYI_SHELL\n",
        "max_lines = 2000                             # default\n",
        "model = \"local\"                              # HOME/config/config.toml:1:1\n",
        "# models.local.context                       # asked of the server\n",
    ] {
        assert!(list.contains(line), "{line:?} in {list}");
    }
    home.run(&["config", "unset", "models.local"])
        .stderr("")
        .exit(0);
    assert_eq!(home.text(), "model = \"local\"\n");
    let absent = home.run(&["config", "unset", "models.local"]).exit(0);
    absent.stderr("karyi: models.local was not in the file\n");
}

#[test]
fn the_list_is_also_json() {
    let home = Home::with("max_lines = 7\n");
    let list = home.run(&["config", "list", "--json"]).exit(0).json();
    let entry = &list.as_array().unwrap()[2];
    let place = home.path("config/config.toml:1:1");
    let expected = serde_json::json!({
        "key": "max_lines",
        "value": 7,
        "from": "file",
        "place": place.to_str(),
        "expected": "a whole number from 0",
        "default": "2000",
        "summary": "Lines that `read` shows of a file",
    });
    assert_eq!(*entry, expected);
}

/// The file of an earlier release stays where it is, and a person's link, mode and comments stay.
#[test]
fn a_persons_file_is_kept() {
    let home = Home::new();
    let text = "# mine\nmax_lines = 5 # few\n\n# a shell\nshell = 'bash'\n";
    fs::write(home.path("real.toml"), text).unwrap();
    fs::set_permissions(home.path("real.toml"), fs::Permissions::from_mode(0o644)).unwrap();
    symlink("real.toml", home.path("config.toml")).unwrap();
    home.run(&["config", "set", "max_lines", "6"]).exit(0);
    home.run(&["config", "unset", "shell"]).exit(0);
    let found = fs::read_to_string(home.path("real.toml")).unwrap();
    assert_eq!(found, "# mine\nmax_lines = 6 # few\n\n# a shell\n");
    assert_eq!(mode(&home.path("real.toml")), 0o644);
    assert!(home.path("config.toml").is_symlink());
    fs::create_dir(home.path("config")).unwrap();
    fs::write(home.path("config/config.toml"), "max_lines = 9").unwrap();
    home.run(&["config", "get", "max_lines"]).stdout_text("9\n");
}

#[test]
fn changes_at_the_same_time_are_all_kept() {
    let home = Home::new();
    let names: Vec<String> = (0..8).map(|n| format!("models.l{n}.model")).collect();
    let start = |name: &String| {
        let karyi = home.karyi(&["config", "set", name, "v"]);
        let child = karyi.command().spawn().unwrap();
        (karyi, child)
    };
    let children: Vec<_> = names.iter().map(start).collect();
    for (_karyi, mut child) in children {
        assert!(child.wait().unwrap().success());
    }
    for name in &names {
        home.run(&["config", "get", name])
            .stdout_text("v\n")
            .exit(0);
    }
    assert_eq!(mode(&home.path("config/config.lock")), 0o600);
}

#[test]
fn line_ends_of_a_persons_file_are_kept() {
    let text = "# mine\r\nmax_lines = 5 # few\r\n\n[models.a]\r\nmodel = 'x'\n";
    let home = Home::with(text);
    home.run(&["config", "set", "max_lines", "6"]).exit(0);
    assert_eq!(home.text(), text.replace('5', "6"));
    home.run(&["config", "set", "shell", "bash"]).exit(0);
    let with_shell = text
        .replace('5', "6")
        .replace("few\r\n", "few\r\nshell = \"bash\"\r\n");
    assert_eq!(home.text(), with_shell);
    home.run(&["config", "unset", "max_lines"]).exit(0);
    let without = with_shell.replace("max_lines = 6 # few\r\n", "");
    assert_eq!(home.text(), without);
    home.run(&["config", "set", "shell", "a\nb"]).exit(0);
    home.run(&["config", "get", "shell"])
        .stdout_text("a␊b\n")
        .exit(0);
}

#[test]
fn what_a_model_needs_is_not_removed() {
    let model = "[models.l]\nprovider = \"ollama\"\nmodel = \"x\"\n";
    let text = format!("{model}price = {{ input = 1, output = 2, cached = 1 }}\n");
    let home = Home::with(&text);
    for (key, expected) in [
        ("price.output", "price.output"),
        ("price.input", "price.input"),
        ("provider", "provider"),
        ("model", "model"),
    ] {
        let key = format!("models.l.{key}");
        let refused = home.run(&["config", "unset", &key]).exit(2);
        let (table, _) = key.rsplit_once('.').unwrap();
        let expected = format!(
            "karyi: HOME/config/config.toml:1:9: expected `{expected}` in [models.l], found none: `karyi config unset \
             {table}` removes the whole table\n"
        );
        assert_eq!(home.shown(&refused.stderr_text()), expected);
        assert_eq!(home.text(), text);
    }
    home.run(&["config", "unset", "models.l.price.cached"])
        .exit(0);
    home.run(&["config", "unset", "models.l.price"]).exit(0);
    assert_eq!(home.text(), model);
    // A model that is not complete loses what it has.
    home.run(&["config", "set", "models.l.price.input", "1"])
        .exit(0);
    home.run(&["config", "unset", "models.l.price.input"])
        .exit(0);
    home.run(&["config", "unset", "models.l"]).exit(0);
    let absent = home.run(&["config", "unset", "shell"]).exit(0);
    absent.stderr("karyi: shell was not in the file\n");
}

/// Nothing to change leaves nothing behind.
#[test]
fn a_refused_change_creates_no_directory() {
    let home = Home::new();
    home.run(&["config", "unset", "shell"]).exit(0);
    home.run(&["config", "set", "models.a.extra.token", "hunter2"])
        .exit(2);
    assert!(!home.path("config").exists());
}

#[test]
fn a_mistake_is_the_same_error_in_every_command() {
    let home = Home::with("# x\nmax_outptu = 1\n");
    let expected = "karyi: HOME/config/config.toml:2:1: expected a setting, found `max_outptu`; did you mean \
                    `max_output`?\n";
    let commands: [&[&str]; 4] = [
        &["run", "-c", RUN],
        &["mcp"],
        &["config", "list"],
        &["config", "get", "shell"],
    ];
    for command in commands {
        let ran = home.run(command).exit(2);
        assert_eq!(home.shown(&ran.stderr_text()), expected, "{command:?}");
        assert_eq!(ran.stdout(), "");
    }
    let refused = home.run(&["config", "set", "shell", "zsh"]).exit(2);
    assert_eq!(home.shown(&refused.stderr_text()), expected);
    home.run(&["config", "unset", "max_outptu"])
        .stderr("")
        .exit(0);
    assert_eq!(home.text(), "# x\n");
}

#[test]
fn anything_else_in_place_of_the_file_is_an_error() {
    let check = |home: &Home, expected: &str| {
        for command in [&["config", "list"][..], &["run", "-c", RUN]] {
            let ran = home.run(command).exit(2);
            let file = "karyi: HOME/config/config.toml";
            assert_eq!(
                home.shown(&ran.stderr_text()),
                format!("{file}{expected}\n")
            );
        }
    };
    let byte_order_mark =
        ":1:1: expected a setting, found a byte order mark: save the file as UTF-8 without it";
    check(&Home::with("\u{feff}shell = 'zsh'"), byte_order_mark);
    check(
        &Home::with(b"\n# caf\xe9"),
        ":2:6: expected UTF-8, found another encoding",
    );
    let large = vec![b'\n'; (1 << 20) + 1];
    check(
        &Home::with(large),
        ": expected a file with settings, found more than 1048576 bytes",
    );
    let put = |place: &dyn Fn(&Path)| {
        let home = Home::new();
        fs::create_dir(home.path("config")).unwrap();
        place(&home.path("config/config.toml"));
        home
    };
    let directory = put(&|file| fs::create_dir(file).unwrap());
    check(
        &directory,
        ": expected a file with settings, found a directory",
    );
    let pipe = put(&|file| nix::unistd::mkfifo(file, nix::sys::stat::Mode::S_IRWXU).unwrap());
    check(
        &pipe,
        ": expected a file with settings, found a pipe, socket or device",
    );
    let link = put(&|file| symlink("none.toml", file).unwrap());
    check(
        &link,
        ": expected a file, found a link to none.toml, which does not exist",
    );
    if !is_root() {
        return skip("only root can become another user");
    }
    let home = Home::with("");
    fs::set_permissions(home.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let file = home.path("config/config.toml");
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    let ran = home.karyi(&["config", "list"]).run_as(65534).run().exit(2);
    let expected = "karyi: HOME/config/config.toml: expected a file with settings, found one that cannot be read: \
                    Permission denied (os error 13)\n";
    assert_eq!(home.shown(&ran.stderr_text()), expected);
}

#[test]
fn a_key_is_refused_and_not_shown() {
    let home = Home::new();
    let values: [&[&str]; 5] = [
        &["sk-hunter2"],
        &["--hunter2"],
        &["hunter2", "-x"],
        &["$KARYI{hunter2"],
        &["{hunter2}"],
    ];
    for value in values {
        for key in ["models.a.key", "models.a.kye"] {
            let args = [&["config", "set", key], value].concat();
            let ran = home.run(&args).exit(2);
            assert!(
                !ran.stderr_text().contains("hunter2"),
                "{}",
                ran.stderr_text()
            );
            assert!(ran.stderr_text().contains(key), "{}", ran.stderr_text());
        }
    }
    assert!(!home.path("config/config.toml").exists());
    home.run(&["config", "set", "models.a.key", "$KARYI{A}"])
        .exit(0);
    home.run(&["config", "get", "models.a.key"])
        .stdout_text("$KARYI{A}\n");
    for text in [
        "models.a.key = 'hunter2'",
        "models.a.key = \"hunter2",
        "models.a.extra.headers = { Authorization = 'Bearer hunter2' }",
        "models.a.extra.other = ['hunter2']",
        "models.a.base_url = 'https://me:hunter2@host/'",
    ] {
        let home = Home::with(text);
        let commands: [&[&str]; 4] = [
            &["config", "list"],
            &["config", "list", "--json"],
            &["config", "get", "models.a"],
            &["config", "get", "models.a.extra.other"],
        ];
        for command in commands {
            let ran = home.run(command);
            let all = ran.stdout() + &ran.stderr_text();
            assert!(!all.contains("hunter2"), "{text}: {all}");
        }
    }
}

#[test]
fn an_edited_file_is_checked() {
    let edited = |home: &Home, script: &str| {
        let script = format!("#!/bin/sh\n{script}\n");
        let karyi = home
            .karyi(&["config", "edit"])
            .program("my-editor", &script);
        karyi.env("EDITOR", "my-editor --wait").run()
    };
    let home = Home::with("max_lines = 1\n");
    edited(&home, "[ $1 = --wait ] && echo 'max_line = 2' >> \"$2\"")
        .stderr("")
        .exit(0);
    assert_eq!(home.text(), "max_lines = 1\nmax_line = 2\n");
    let wrong = edited(&home, "echo 'shel = 2' >> \"$2\"").exit(2);
    let expected = "karyi: HOME/config/config.toml:3:1: expected a setting, found `shel`; did you mean `shell`?\n\
                    karyi: HOME/config/config.toml is as it was\n";
    assert_eq!(home.shown(&wrong.stderr_text()), expected);
    edited(&home, ": > \"$2\"; exit 3").exit(2);
    let other = format!(
        "echo 'max_line = 3' > '{}'; echo '#' >> \"$2\"",
        home.path("config/config.toml").display()
    );
    let refused = edited(&home, &other).exit(2).stderr_text();
    assert!(refused.contains("was changed meanwhile"), "{refused}");
    assert_eq!(home.text(), "max_line = 3\n");
    let kept = refused.trim_end().rsplit(' ').next().unwrap();
    assert_eq!(
        fs::read_to_string(kept).unwrap(),
        "max_lines = 1\nmax_line = 2\n#\n"
    );
    let none = home.run(&["config", "edit"]).exit(2);
    none.stderr("karyi: expected an editor in VISUAL or EDITOR, found none: EDITOR=nano karyi config edit\n");
}
