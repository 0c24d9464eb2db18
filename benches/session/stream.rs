//! How fast output is taken in, and what each byte of it costs the program that takes it.
//!
//! Every contestant reads the same bytes from a terminal without output processing; only what it
//! does with them differs. The time of the processor is that of this whole process, so that nobody
//! hides work in a thread.

use std::fmt::Write as _;
use std::io::Read;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::term::test::TermSize;
use alacritty_terminal::term::{Config, Term};
use karyi::exec::output::{Ending, OutputPipeline};
use karyi::head_tail::Cap;
use karyi::secret::{SecretName, SecretValue};
use karyi::vault::redact::Redactor;
use karyi::vault::session::Secrets;
use nix::time::{ClockId, clock_gettime};

use crate::report::Report;
use crate::samples::median;
use crate::terminal::{DrivenSession, Modes, Terminal};

const TEXT_BYTES: usize = 32 << 20;
const ROUNDS: usize = 5;
/// Most times the processor's time of a bare read loop that the text of a result may cost. The aim is
/// 1.6; the bare loop's own time moves by a quarter from run to run.
const MOST_CPU: f64 = 2.0;
/// The same with ten secrets to look for. The aim is 4.
const MOST_CPU_WITH_SECRETS: f64 = 5.0;
/// Least share of the bare loop's speed. The aim is 0.8.
const LEAST_SPEED: f64 = 0.7;

/// What one run of a contestant took.
#[derive(Debug, Clone, Copy)]
struct Cost {
    wall: Duration,
    processor: Duration,
}

/// One way to take in a file that is printed.
struct Contestant {
    name: &'static str,
    take: Box<dyn FnMut(&Path)>,
}

/// The ratios of one contestant to the bare loop, text by text.
struct Ratios {
    name: &'static str,
    processor: Vec<f64>,
    speed: Vec<f64>,
}

/// Measures and reports.
pub(crate) fn measure(report: &mut Report) {
    let directory = tempfile::tempdir().unwrap();
    let texts = texts(directory.path());
    let mut contestants = contestants();
    let mut all: Vec<Ratios> = contestants
        .iter()
        .map(|contestant| Ratios {
            name: contestant.name,
            processor: Vec::new(),
            speed: Vec::new(),
        })
        .collect();
    let mut bare = vec!["bare loop itself".to_owned()];
    for (_, path) in &texts {
        let costs = race(&mut contestants, path);
        let own = costs.first().map_or(&[][..], Vec::as_slice);
        bare.push(absolute(own));
        for (ratios, costs) in all.iter_mut().zip(&costs) {
            let of = |part: fn(&Cost) -> Duration| {
                let pairs = costs.iter().zip(own);
                let each =
                    pairs.map(|(cost, own)| part(cost).as_secs_f64() / part(own).as_secs_f64());
                median(&each.collect::<Vec<_>>())
            };
            ratios.processor.push(of(|cost| cost.processor));
            ratios.speed.push(1.0 / of(|cost| cost.wall));
        }
    }
    let mut names = vec![String::new()];
    names.extend(texts.iter().map(|(name, _)| (*name).to_owned()));
    let title = "Processor time per byte of output ÷ bare read loop";
    let processor = rows(&all, |ratios| &ratios.processor);
    report.table(title, &[vec![names.clone(), bare], processor].concat());
    let speed = rows(&all, |ratios| &ratios.speed);
    let title = "Speed of output ÷ bare read loop";
    report.table(title, &[vec![names], speed].concat());
    check(report, &all);
}

fn race(contestants: &mut [Contestant], path: &Path) -> Vec<Vec<Cost>> {
    let mut costs = vec![Vec::new(); contestants.len()];
    for _ in 0..ROUNDS {
        for (contestant, costs) in contestants.iter_mut().zip(&mut costs) {
            let (start, busy) = (Instant::now(), processor_time());
            (contestant.take)(path);
            costs.push(Cost {
                wall: start.elapsed(),
                processor: processor_time() - busy,
            });
        }
    }
    costs
}

fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)
        .unwrap()
        .into()
}

/// Shows the speed and the processor's time per byte.
fn absolute(costs: &[Cost]) -> String {
    let of = |part: fn(&Cost) -> Duration| {
        let each: Vec<f64> = costs.iter().map(|cost| part(cost).as_secs_f64()).collect();
        median(&each)
    };
    let bytes = TEXT_BYTES as f64;
    let speed = bytes / of(|cost| cost.wall) / 1e6;
    let nanoseconds = of(|cost| cost.processor) / bytes * 1e9;
    format!("{speed:.0} MB/s, {nanoseconds:.2} ns/B")
}

fn rows(all: &[Ratios], part: fn(&Ratios) -> &Vec<f64>) -> Vec<Vec<String>> {
    let row = |ratios: &Ratios| {
        let shown = part(ratios).iter().map(|ratio| format!("{ratio:.2}"));
        [ratios.name.to_owned()].into_iter().chain(shown).collect()
    };
    // The first is the bare loop itself.
    all.iter().skip(1).map(row).collect()
}

fn check(report: &mut Report, all: &[Ratios]) {
    // Of all texts the one that costs most.
    let of = |name: &str, part: fn(&Ratios) -> &Vec<f64>| {
        let ratios = all.iter().find(|ratios| ratios.name == name);
        ratios.map(part).cloned().unwrap_or_default()
    };
    let most = |ratios: Vec<f64>| ratios.into_iter().reduce(f64::max).unwrap_or(f64::NAN);
    let least = |ratios: Vec<f64>| ratios.into_iter().reduce(f64::min).unwrap_or(f64::NAN);
    let processor = most(of(KARYI, |ratios| &ratios.processor));
    report.check("processor time / bare loop", processor, ..=MOST_CPU);
    let with_secrets = most(of(KARYI_WITH_SECRETS, |ratios| &ratios.processor));
    let what = "processor time with 10 secrets / bare loop";
    report.check(what, with_secrets, ..=MOST_CPU_WITH_SECRETS);
    let speed = least(of(KARYI, |ratios| &ratios.speed));
    report.check("speed / bare loop", speed, LEAST_SPEED..);
}

const KARYI: &str = "karyi";
const KARYI_WITH_SECRETS: &str = "karyi with 10 secrets";

fn contestants() -> Vec<Contestant> {
    let contestant = |name, take| Contestant { name, take };
    vec![
        contestant("bare loop", Box::new(|path| read(path, |_| {}))),
        contestant(KARYI, through_session(0)),
        contestant(KARYI_WITH_SECRETS, through_session(10)),
        contestant("vte, text only", Box::new(strip)),
        contestant("alacritty_terminal", Box::new(emulate)),
        contestant("vt100", Box::new(emulate_vt100)),
    ]
}

/// Reads what `cat` prints of a file.
fn read(path: &Path, mut take: impl FnMut(&[u8])) {
    let path = path.to_str().unwrap();
    let mut terminal = Terminal::start(Modes::PlainOutput, "cat", &[path]);
    let mut buffer = vec![0; karyi::limits::TERMINAL_READ_BYTES];
    let mut left = TEXT_BYTES;
    while left > 0 {
        let count = terminal.reader.read(&mut buffer).unwrap();
        left -= count;
        take(buffer.get(..count).unwrap_or_default());
    }
}

/// Reads it as the result of a command.
fn through_session(secrets: usize) -> Box<dyn FnMut(&Path)> {
    let driven = DrivenSession::start();
    let vault = Secrets::default();
    for number in 0..secrets {
        let name = SecretName::parse(&format!("KEY_{number}")).unwrap();
        let value = format!("sk-{number}-0a1B2c3D4e5F6g7H8i9J");
        vault.insert(name, SecretValue::new(value)).unwrap();
    }
    let redactor = Redactor::new(&vault);
    Box::new(move |path| {
        let output = OutputPipeline::new(&redactor, Cap::default(), None, None);
        let sink = output.sink(None);
        let progress = driven.command(&format!("cat {}", path.display()), sink);
        assert_eq!(progress.exit_code, Some(0));
        let (view, _) = output.detach(Ending::Whole);
        assert!(view.get().omitted_bytes > 0);
    })
}

/// Keeps the text alone, as the least a consumer does.
#[derive(Default)]
struct Text(String);

impl vte::Perform for Text {
    fn print(&mut self, character: char) {
        self.0.push(character);
    }

    fn execute(&mut self, byte: u8) {
        if matches!(byte, b'\n' | b'\t') {
            self.0.push(byte.into());
        }
    }
}

fn strip(path: &Path) {
    let mut parser = vte::Parser::new();
    let mut text = Text::default();
    read(path, |bytes| {
        parser.advance(&mut text, bytes);
        text.0.clear();
    });
}

fn emulate(path: &Path) {
    let config = Config {
        scrolling_history: 0,
        ..Config::default()
    };
    let mut term = Term::new(config, &TermSize::new(120, 40), VoidListener);
    let mut parser = alacritty_terminal::vte::ansi::Processor::<
        alacritty_terminal::vte::ansi::StdSyncHandler,
    >::new();
    read(path, |bytes| parser.advance(&mut term, bytes));
}

fn emulate_vt100(path: &Path) {
    let (rows, columns) = (NonZero::new(40).unwrap(), NonZero::new(120).unwrap());
    let mut parser = vt100::Parser::new(rows, columns, 0);
    read(path, |bytes| parser.process(bytes));
}

/// Adds the line of a number to a text.
type Line = fn(&mut String, usize);

/// Writes the texts to be printed, all of the same length.
fn texts(directory: &Path) -> Vec<(&'static str, PathBuf)> {
    let kinds: [(&str, Line); 4] = [
        ("build log", build_log),
        ("coloured", coloured),
        ("progress", progress),
        ("UTF-8", unicode),
    ];
    let write = |(name, line): (&'static str, Line)| {
        let mut text = String::with_capacity(TEXT_BYTES + 256);
        for number in 0.. {
            line(&mut text, number);
            if text.len() >= TEXT_BYTES {
                break;
            }
        }
        let path = directory.join(name.replace(' ', "-"));
        let bytes = text.as_bytes().get(..TEXT_BYTES).unwrap();
        std::fs::write(&path, bytes).unwrap();
        (name, path)
    };
    kinds.into_iter().map(write).collect()
}

fn build_log(text: &mut String, number: usize) {
    let _ = writeln!(
        text,
        "warning: unused variable: `x{number}` in src/module_{}.rs:{}:9",
        number % 97,
        number % 1000
    );
}

fn coloured(text: &mut String, number: usize) {
    let colour = 31 + number % 7;
    let _ = writeln!(
        text,
        "\x1b[1m\x1b[{colour}mwarning\x1b[0m\x1b[1m: unused variable `x{number}`\x1b[0m\n  \x1b[1m\x1b[34m--> \x1b[0msrc/lib.rs:{}:9",
        number % 1000
    );
}

fn progress(text: &mut String, number: usize) {
    let done = number % 101;
    let (bar, rest) = ("=".repeat(done / 4), " ".repeat(25 - done / 4));
    let end = if done == 100 { "\n" } else { "" };
    let _ = write!(
        text,
        "\r\x1b[K{done:>3}% [{bar}>{rest}] {number}/1000000{end}"
    );
}

fn unicode(text: &mut String, number: usize) {
    let _ = writeln!(
        text,
        "{number} 警告: 変数は使われていません — «не используется» été ✓ 🎉 façade"
    );
}
