//! The examples of the ToolsXML v1.0 document, as written there, with stand-ins for `npm` and
//! `curl`.

use crate::harness::Karyi;

/// Returns one example of the document.
fn example(name: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cases/seed")
        .join(format!("{name}.xml"));
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_root_element() {
    Karyi::new().stdin(example("root")).run().exit(0);
}

#[test]
fn command() {
    Karyi::new()
        .program("npm", "#!/bin/sh\necho \"npm $*\"\n")
        .stdin(example("command"))
        .stdout_xml(
            r#"<results>
              <result id="1" tool="command" status="ok"><output>npm install
npm run build
</output></result>
            </results>"#,
        )
        .exit(0);
}

#[test]
fn edit() {
    Karyi::new()
        .file(
            "src/config.ts",
            "// urls\nconst API_URL = \"http://localhost:3000\";\n",
        )
        .file(
            "README.md",
            "# Project Alpha\n\nThis is a private project.\n",
        )
        .stdin(example("edit"))
        .run()
        .exit(0)
        .file(
            "src/config.ts",
            "// urls\nconst API_URL = \"https://api.production.com\";\n",
        )
        .file(
            "README.md",
            "# Project Karyi\n\nThis is an open-source project.\n",
        );
}

#[test]
fn read() {
    let report = Karyi::new()
        .file("package.json", "{\n  \"name\": \"x\"\n}\n")
        .file("src/main.ts", "")
        .file("src/lib/a.ts", "")
        .arg("--json")
        .stdin(example("read"))
        .run()
        .exit(0)
        .json();
    let files = &report["results"][0]["files"];
    assert_eq!(files[0]["output"], "{\n  \"name\": \"x\"\n}\n");
    assert_eq!(
        (&files[0]["first_line"], &files[0]["total_lines"]),
        (&1.into(), &3.into())
    );
    assert_eq!(files[1]["kind"], "directory");
    let listing = files[1]["output"].as_str().unwrap();
    assert!(
        listing.contains("lib/") && listing.contains("main.ts"),
        "{listing}"
    );
}

#[test]
fn get_value_then_the_secret_in_a_command() {
    let karyi = Karyi::with_args(&[
        "run",
        "--format",
        "xml",
        "ask.xml",
        "get_value.xml",
        "secret.xml",
    ])
    .program(
        "curl",
        "#!/bin/sh\nfor a in \"$@\"; do echo \"<$a>\"; done\n",
    )
    .file(
        "ask.xml",
        "<tools><get_value key=\"GITHUB_TOKEN\" reason=\"to dispatch\"/></tools>",
    )
    .file("get_value.xml", example("get_value"))
    .file("secret.xml", example("secret"));
    let mut terminal = karyi.on_terminal();
    terminal
        .expect("asks for GITHUB_TOKEN")
        .expect("value (hidden")
        .answer("ghp_0123456789");
    terminal
        .expect("asks for NPM_TOKEN")
        .expect("需要认证才能将 package 发布到 npm registry。");
    terminal.answer("npm_abcdefgh");
    let (screen, status) = terminal.end();
    assert!(
        screen.contains("<Authorization: Bearer $KARYI{GITHUB_TOKEN}>"),
        "{screen}"
    );
    assert!(
        screen.contains("<{\"event_type\": \"deploy\"}>"),
        "{screen}"
    );
    assert!(
        screen.contains("<https://api.github.com/repos/user/repo/dispatches>"),
        "{screen}"
    );
    assert!(
        !screen.contains("ghp_0123456789") && !screen.contains("npm_abcdefgh"),
        "{screen}"
    );
    assert_eq!(status, 0);
}

#[test]
fn input() {
    let report = Karyi::new()
        .file("ask.xml", "<tools><command>read -p 'Are you sure? (y/n) ' a; echo \"answer: $a\"</command></tools>")
        .file("input.xml", example("input"))
        .args(&["--json", "ask.xml", "input.xml"])
        .run()
        .exit(0)
        .stdout();
    let last: serde_json::Value = serde_json::from_str(report.lines().last().unwrap()).unwrap();
    assert_eq!(last["results"][0]["output"], "y\nanswer: y\n");
}

#[test]
fn ctrl() {
    let report = Karyi::new()
        .file(
            "serve.xml",
            "<tools><command timeout=\"0.2\">sleep 100</command></tools>",
        )
        .file("ctrl.xml", example("ctrl"))
        .args(&["--json", "serve.xml", "ctrl.xml"])
        .run()
        .exit(0)
        .stdout();
    let last: serde_json::Value = serde_json::from_str(report.lines().last().unwrap()).unwrap();
    assert_eq!(last["results"][0]["exit_code"], 130);
}
