//! Results fit context windows, count exactly what they leave out, and name the next call to make.

use serde_json::{Value, json};

use crate::harness::{Karyi, results};

fn run(karyi: Karyi, script: &str) -> Value {
    karyi.arg("--json").stdin(script).run().json()
}

fn numbered(count: usize, words: &str) -> String {
    (1..=count).map(|n| format!("line {n} {words}\n")).collect()
}

#[test]
fn a_command_shows_32_kb_and_where_the_rest_is() {
    let script = "<tools><command>seq 1 200000</command>\
        <read><file src=\"job:1\" lines=\"-2\"/></read></tools>";
    let report = run(Karyi::new(), script);
    let result = &results(&report)[0];
    let output = result["output"].as_str().unwrap();
    assert!(output.len() < 33 << 10, "{}", output.len());
    let omitted = result["omitted_bytes"].as_u64().unwrap();
    let (head, tail) = output.split_once("[... ").unwrap();
    let tail = tail.split_once(" omitted ...]\n").unwrap().1;
    let whole: usize = (1..=200_000).map(|n: u32| n.to_string().len() + 1).sum();
    let head = head
        .strip_suffix('\n')
        .map_or(head, |_| head.trim_end_matches('\n'));
    let kept = whole as u64 - omitted;
    // A line break may belong to the mark.
    assert!(kept - (head.len() + tail.len()) as u64 <= 1, "{kept}");
    assert_eq!(
        result["hint"],
        "write long output to a file, and `read` or search it"
    );
    assert_eq!(result["output_file"], Value::Null);
    assert_eq!(
        results(&report)[1]["files"][0]["output"],
        "199999\n200000\n"
    );
}

#[test]
fn the_file_of_an_output_is_named_when_it_stays() {
    let script = "<tools><command>seq 1 20000</command></tools>";
    let report = run(Karyi::new().arg("--keep"), script);
    let result = &results(&report)[0];
    assert!(result["output_file"].is_string());
    let hint = "`read` the `output_file` with lines=\"-50\", or search it";
    assert_eq!(result["hint"], hint);
}

#[test]
fn a_read_shows_2000_lines_and_names_the_rest() {
    let script = "<tools><read><file src=\"a\"/></read><read><file src=\"a\" lines=\"2001-\"/></read></tools>";
    let report = run(Karyi::new().file("a", numbered(3000, "x")), script);
    let first = &results(&report)[0]["files"][0];
    assert_eq!(first["output"], numbered(2000, "x"));
    assert_eq!(first["omitted_lines"], 1000);
    assert_eq!(first["omitted_bytes"], 1000 * "line 1000 x\n".len());
    assert_eq!(first["hint"], "lines=\"2001-\" shows more");
    let second = &results(&report)[1]["files"][0];
    assert_eq!(second["omitted_lines"], Value::Null);
    assert_eq!(second["first_line"], 2001);
    let report = run(
        Karyi::new()
            .file("a", numbered(3000, "x"))
            .args(&["--max-lines", "3000"]),
        script,
    );
    let all = &results(&report)[0]["files"][0];
    assert_eq!(all["output"], numbered(3000, "x"));
}

#[test]
fn a_read_shows_60_kb_unless_more_is_asked_for() {
    let text = numbered(1000, &"x".repeat(100));
    let script = "<tools><read><file src=\"a\"/></read><read><file src=\"a\" max_bytes=\"90000\"/></read></tools>";
    let report = run(
        Karyi::new()
            .file("a", &text)
            .args(&["--max-report", "999999"]),
        script,
    );
    let sizes: Vec<usize> = results(&report)
        .iter()
        .map(|result| result["files"][0]["output"].as_str().unwrap().len())
        .collect();
    assert!((61_000..=61_440).contains(&sizes[0]), "{sizes:?}");
    assert!((89_500..=90_000).contains(&sizes[1]), "{sizes:?}");
    let first = &results(&report)[0]["files"][0];
    assert_eq!(
        sizes[0] as u64 + first["omitted_bytes"].as_u64().unwrap(),
        text.len() as u64
    );
}

#[test]
fn a_long_line_shows_its_start_and_its_rest_can_be_read() {
    let text = format!("a\n{}\nb\n", "x".repeat(5000));
    let script = "<tools><read><file src=\"a\"/></read>\
        <read><file src=\"a\" lines=\"2\" max_bytes=\"9999\"/></read></tools>";
    let report = run(Karyi::new().file("a", &text), script);
    let first = &results(&report)[0]["files"][0];
    let shown = format!("a\n{} [... 3000 bytes omitted ...]\nb\n", "x".repeat(2000));
    assert_eq!(first["output"], shown);
    assert_eq!(first["omitted_bytes"], 3000);
    let hint = "lines over 2000 bytes are cut: lines=\"2\" with max_bytes shows one whole";
    assert_eq!(first["hint"], hint);
    let second = &results(&report)[1]["files"][0];
    assert_eq!(second["output"], format!("{}\n", "x".repeat(5000)));
}

#[test]
fn a_report_has_100_kb() {
    let text = numbered(1000, &"x".repeat(40));
    let script = format!(
        "<tools>{}<command>seq 1 20000</command></tools>",
        "<read><file src=\"a\"/></read>".repeat(4)
    );
    for format in ["xml", "json", "jsonl"] {
        let ran = Karyi::new()
            .file("a", &text)
            .args(&["--format", format])
            .stdin(&script)
            .run();
        let report: usize = match format {
            // Events show the output as it comes.
            "jsonl" => ran
                .stdout()
                .lines()
                .filter(|line| line.contains("finished"))
                .map(str::len)
                .sum(),
            _ => ran.raw_stdout().len(),
        };
        assert!(report < 110 << 10, "{format}: {report}");
        assert!(report > 95 << 10, "{format}: {report}");
    }
    let report = run(Karyi::new().file("a", &text), &script);
    let second = &results(&report)[2]["files"][0];
    let shown = second["output"].as_str().unwrap().lines().count();
    assert!(shown < 1000);
    assert_eq!(second["omitted_lines"], 1000 - shown);
    assert_eq!(
        second["hint"],
        format!("lines=\"{}-\" shows more", shown + 1)
    );
}

#[test]
fn events_show_no_more_of_an_output_than_its_result() {
    let live = |args: &[&str], script: &str| {
        let ran = Karyi::new()
            .args(&["--format", "jsonl"])
            .args(args)
            .stdin(script)
            .run();
        let events: Vec<Value> = ran
            .stdout()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let outputs: Vec<&Value> = events
            .iter()
            .filter(|event| event["event"] == "output")
            .collect();
        let bytes: usize = outputs
            .iter()
            .map(|event| event["text"].as_str().unwrap().len())
            .sum();
        let cuts = outputs
            .iter()
            .filter(|event| event["is_cut"] == true)
            .count();
        assert!(cuts == 0 || outputs.last().unwrap()["is_cut"] == true);
        (bytes, cuts)
    };
    let one = "<tools><command>seq 1 20000</command></tools>";
    assert_eq!(live(&[], one), (32 << 10, 1));
    assert_eq!(live(&["--max-output", "999999"], one).1, 1);
    assert_eq!(
        live(&["--max-output", "999999", "--max-report", "999999"], one),
        (108_894, 0)
    );
    let script = "<tools><command>seq 1 10</command><command>seq 1 10</command></tools>";
    assert_eq!(live(&["--max-output", "20"], script), (40, 2));
}

#[test]
fn the_limits_are_settings_that_flags_override() {
    let text = format!("{}\n{}", "x".repeat(300), numbered(5, "x"));
    let script = "<tools><command>seq 1 1000</command><read><file src=\"a\"/><search pattern=\"x\"/></read></tools>";
    let ran = |settings: &str, args: &[&str]| {
        let karyi = Karyi::new()
            .file("a", &text)
            .file("home/config.toml", settings);
        let home = karyi.work().join("home");
        karyi
            .env("KARYI_HOME", home)
            .args(args)
            .arg("--json")
            .stdin(script)
            .run()
    };
    let settings = "max_output = 100\nmax_lines = 3\nmax_line = 20\nmax_read = 60\n";
    let report = ran(settings, &[]).json();
    let (output, read) = (&results(&report)[0], &results(&report)[1]);
    let kept = output["output"]
        .as_str()
        .unwrap()
        .split("[... ")
        .next()
        .unwrap()
        .len();
    // A line break may belong to the mark.
    assert!((50..=51).contains(&kept), "{kept}");
    let cut = format!("{} [... 280 bytes omitted ...]\nline 1 x\n", "x".repeat(20));
    assert_eq!(read["files"][0]["output"], cut);
    let search = read["searches"][0]["output"].as_str().unwrap();
    assert!(
        search.starts_with("a:1:xxxxxxxxxxxxxxxxxxxx[... 280 bytes"),
        "{search}"
    );
    assert_eq!(
        read["searches"][0]["hint"],
        "path, glob or a longer pattern narrow the search"
    );
    let flags = [
        "--max-line",
        "400",
        "--max-read",
        "9999",
        "--max-lines",
        "99",
    ];
    let report = ran(settings, &flags).json();
    let read = &results(&report)[1];
    assert_eq!(read["files"][0]["output"], text);
    assert_eq!(read["searches"][0]["omitted_matches"], Value::Null);
    let wrong = ran("max_read = \"60\"\n", &[]).exit(2).stderr_text();
    assert!(
        wrong.contains("expected a whole number from 0 for `max_read`, found a text"),
        "{wrong}"
    );
}

#[test]
fn a_search_that_finds_nothing_counts_it_as_a_regular_expression() {
    let hint = |pattern: &str| {
        let script = format!("<tools><read><search pattern=\"{pattern}\"/></read></tools>");
        let karyi = Karyi::new()
            .file("a", "foo(1)\nfoo(2)\n")
            .file("b", "foo(3)\n");
        run(karyi, &script)["results"][0]["searches"][0]["hint"].clone()
    };
    let many = "regex=\"true\" would find 3 matching lines in 2 files";
    assert_eq!(hint("foo.*\\d"), many);
    assert_eq!(hint("foo|bar"), many);
    assert_eq!(hint("3\\)$"), "regex=\"true\" would find 1 matching line");
    assert_eq!(hint("bar.*"), "no match as a regular expression either");
    // No regular expression, nothing to guess, or found.
    assert_eq!(hint("bar[("), Value::Null);
    assert_eq!(hint("bar()"), Value::Null);
    assert_eq!(hint("foo(1)"), Value::Null);
}

#[test]
fn what_was_asked_for_is_no_failure() {
    let script = "<tools><command timeout=\"1\">sleep 100</command><ctrl>c</ctrl></tools>";
    let ran = Karyi::new().arg("--json").stdin(script).run().exit(0);
    let report = ran.json();
    assert_eq!(report["status"], "ok");
    assert_eq!(results(&report)[1]["status"], "ok");
    assert_eq!(results(&report)[1]["exit_code"], json!(130));
    // What is lost at the end has gone wrong.
    let script = "<tools><command timeout=\"0.2\">sleep 100</command></tools>";
    let ran = Karyi::new().arg("--json").stdin(script).run().exit(1);
    assert_eq!(ran.json()["status"], "failed");
}
