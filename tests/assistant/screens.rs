//! The pictures of the assistant in the documentation: screens of tmux, captured here. `KARYI_BLESS=1` writes them anew.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::assistant;
use super::tmux::Tmux;
use crate::ask::server::{ModelServer, Reply};
use crate::harness::skip;

const COLUMNS: u16 = 84;
/// So many that nothing scrolls: how far it does depends on which frames were drawn.
const ROWS: u16 = 40;
/// Width of a column and height of a row of a picture.
const CELL: (usize, usize) = (9, 20);
const MARGIN: usize = 20;

/// Style sheet of a picture.
const STYLE: &str = "text{font:14px/20px ui-monospace,Menlo,Consolas,monospace;fill:#d8dee9;white-space:pre}\
.b{font-weight:bold}.d{fill:#7b8599}.r{fill:#e06c75}.g{fill:#98c379}.y{fill:#e5c07b}.a{fill:#88c0d0}.m{fill:#b48ead}";

/// Draws lines with colours as a terminal shows them.
fn svg(title: &str, lines: &[&str]) -> String {
    let width = usize::from(COLUMNS) * CELL.0 + 2 * MARGIN;
    let height = lines.len() * CELL.1 + 2 * MARGIN;
    let mut page = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\">\n<title>{title}</title>\n<style>{STYLE}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#1f2430\"/>\n"
    );
    for (number, line) in lines.iter().enumerate() {
        let y = MARGIN + number * CELL.1 + 14;
        let text = coloured(line);
        writeln!(
            page,
            "<text x=\"{MARGIN}\" y=\"{y}\" xml:space=\"preserve\">{text}</text>"
        )
        .unwrap();
    }
    page + "</svg>\n"
}

/// Returns a line with spans in place of its colours.
fn coloured(line: &str) -> String {
    let (mut text, mut classes) = (String::new(), [None, None]);
    for (number, part) in line.split('\u{1b}').enumerate() {
        let Some((codes, rest)) = part.strip_prefix('[').and_then(|part| part.split_once('m'))
        else {
            assert_eq!(number, 0, "{line:?}");
            text.push_str(&escaped(part));
            continue;
        };
        for code in codes.split(';') {
            match code {
                "" | "0" => classes = [None, None],
                "1" | "7" => classes[0] = Some("b"),
                "39" => classes[1] = None,
                // No background has a colour.
                "49" => {}
                "2" | "90" => classes[1] = Some("d"),
                "31" | "91" => classes[1] = Some("r"),
                "32" | "92" => classes[1] = Some("g"),
                "33" | "93" => classes[1] = Some("y"),
                "34" | "36" | "94" | "96" => classes[1] = Some("a"),
                "35" | "95" => classes[1] = Some("m"),
                other => panic!("no colour for {other} in {line:?}"),
            }
        }
        let names: Vec<&str> = classes.into_iter().flatten().collect();
        match (names.is_empty(), rest.is_empty()) {
            (_, true) => {}
            (true, _) => text.push_str(&escaped(rest)),
            (false, _) => write!(
                text,
                "<tspan class=\"{}\">{}</tspan>",
                names.join(" "),
                escaped(rest)
            )
            .unwrap(),
        }
    }
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Compares a picture with the last lines of the screen, or writes it.
#[track_caller]
fn check(name: &str, title: &str, screen: &str, (work, most): (&Path, usize)) {
    let screen = screen.replace(work.to_str().unwrap(), "~/shop");
    let lines: Vec<&str> = screen.trim_end().lines().map(str::trim_end).collect();
    let picture = svg(title, &lines[lines.len().saturating_sub(most)..]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs")
        .join(name);
    if std::env::var_os("KARYI_BLESS").is_some() {
        fs::write(&path, picture).unwrap();
        return;
    }
    let known = fs::read_to_string(&path).unwrap();
    assert_eq!(known, picture, "KARYI_BLESS=1 writes {name} anew");
}

#[test]
fn the_pictures_of_the_assistant_show_what_it_shows() {
    let block = "The port stands in `app.conf`. I change it and look at the result.\n\n\
        <tools>\n<edit><file src=\"app.conf\"><find>port = 80</find><replace>port = 8080</replace></file></edit>\n\
        <command>grep port app.conf && ./restart</command>\n</tools>\n";
    let end = "The server now listens on **port 8080**:\n\n- `app.conf` has the new port\n- `./restart` went well\n";
    let server = ModelServer::start(vec![Reply::text(block), Reply::text(end)]);
    let karyi = assistant(&server, &[])
        .env("NO_COLOR", "")
        .file("app.conf", "host = \"shop\"\nport = 80\n")
        .file("restart", "#!/bin/sh\necho restarted\n");
    let work = karyi.work();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(work.join("restart"), mode).unwrap();
    let Some(tmux) = Tmux::start(karyi, COLUMNS, ROWS) else {
        return skip("tmux is not installed");
    };
    tmux.wait(|screen| screen.contains("openai_chat:tiny"));
    tmux.text("let the server listen on port 8080");
    tmux.key("Enter");
    tmux.wait(|screen| screen.contains("(1 of 2)?") && screen.contains("y yes"));
    let title = "The assistant asks before it edits a file and runs a command";
    check(
        "assistant-question.svg",
        title,
        &tmux.in_colour(),
        (&work, 24),
    );
    tmux.text("Y");
    tmux.wait(|screen| screen.contains("went well") && screen.contains("240 tokens"));
    tmux.key("C-c");
    tmux.wait(|screen| screen.contains("t  take over the shell"));
    tmux.text("t");
    tmux.wait(|screen| screen.contains("Ctrl+] returns"));
    tmux.text("ls -1; false");
    tmux.key("Enter");
    tmux.wait(|screen| screen.contains("exit 1 ·"));
    let title = "The shell of the conversation, taken over by the user";
    check("assistant-shell.svg", title, &tmux.in_colour(), (&work, 9));
}
