//! How fast a large message is parsed, beside quick-xml's plain event loop over the same bytes.

#![allow(
    clippy::print_stdout,
    reason = "a benchmark's result is what it prints"
)]
#![allow(
    clippy::panic,
    reason = "a benchmark of a refused message means nothing"
)]

use std::hint::black_box;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use divan::Bencher;
use divan::counter::BytesCount;
use karyi::syntax::grammar::Grammar;
use karyi::syntax::{Event, Mode, Parser};

mod gate;

/// Size of the message.
const MESSAGE_BYTES: usize = 8 << 20;
/// What one read of a pipe gives at most.
const PIPE_BYTES: usize = 64 << 10;
/// Least speed beside quick-xml's events alone, which copy nothing.
const LEAST_OF_EVENTS: f64 = 0.1;
/// Least speed beside quick-xml with names, attributes and unescaped text as owned strings.
const LEAST_OF_OWNED: f64 = 0.2;
/// Runs of which the fastest counts.
const RUNS: usize = 15;

static MESSAGE: LazyLock<String> = LazyLock::new(message);
static GRAMMAR: LazyLock<Arc<Grammar>> =
    LazyLock::new(|| Arc::new(karyi::tools::registry().grammar()));

fn main() {
    let mut gate = gate::Gate::default();
    print_ratios(&mut gate);
    divan::main();
    gate.close();
}

/// Prints the speed beside that of quick-xml: its events as they are, and its events turned into
/// owned names, attributes and unescaped texts, which is what a call consists of.
fn print_ratios(gate: &mut gate::Gate) {
    let message = MESSAGE.as_bytes();
    let plain = fastest(|| quick_xml_events(message));
    let owned = fastest(|| quick_xml_owned(message));
    for (name, mode) in [("repair", Mode::Repair), ("strict", Mode::Strict)] {
        let parsed = fastest(|| parse(mode, message, PIPE_BYTES));
        let rate = message.len() as f64 / parsed.as_secs_f64() / 1e6;
        let ratio = |other: Duration| other.as_secs_f64() / parsed.as_secs_f64();
        println!("{name}: {rate:.0} MB/s");
        gate.check(
            &format!("{name} / quick-xml's event loop"),
            ratio(plain),
            LEAST_OF_EVENTS..,
        );
        gate.check(
            &format!("{name} / quick-xml with owned text"),
            ratio(owned),
            LEAST_OF_OWNED..,
        );
    }
}

fn fastest(run: impl Fn() -> usize) -> Duration {
    let times = (0..RUNS).map(|_| {
        let start = Instant::now();
        black_box(run());
        start.elapsed()
    });
    times.min().unwrap_or_default()
}

/// Reads every event and counts them.
fn quick_xml_events(message: &[u8]) -> usize {
    let mut reader = quick_xml::Reader::from_reader(message);
    let mut count = 0;
    loop {
        match reader.read_event() {
            Ok(quick_xml::events::Event::Eof) => return count,
            Ok(event) => {
                black_box(&event);
                count += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Reads every event and keeps what it says, one call's worth at a time.
fn quick_xml_owned(message: &[u8]) -> usize {
    use quick_xml::events::Event;
    let mut reader = quick_xml::Reader::from_reader(message);
    let (mut kept, mut count): (Vec<String>, usize) = (Vec::new(), 0);
    loop {
        match reader.read_event() {
            Ok(Event::Eof) => return count,
            Ok(Event::Start(tag) | Event::Empty(tag)) => {
                kept.push(tag.name().as_ref().to_owned());
                for attribute in tag.attributes().flatten() {
                    kept.push(attribute.key.as_ref().to_owned());
                    kept.extend(
                        attribute
                            .normalized_value(quick_xml::XmlVersion::Implicit1_0)
                            .map(|value| value.into_owned()),
                    );
                }
                kept.push(String::new());
            }
            Ok(Event::Text(text)) => {
                if let Some(last) = kept.last_mut() {
                    last.push_str(&text.xml10_content());
                }
            }
            Ok(Event::GeneralRef(name)) => {
                if let Some(last) = kept.last_mut() {
                    let known = quick_xml::escape::resolve_xml_entity(&name);
                    last.push_str(known.unwrap_or_default());
                }
            }
            Ok(Event::End(tag)) => {
                if matches!(tag.name().as_ref(), "command" | "read" | "edit") {
                    black_box(&kept);
                    kept.clear();
                    count += 1;
                }
            }
            Ok(_) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Parses in chunks and counts the calls.
fn parse(mode: Mode, message: &[u8], chunk: usize) -> usize {
    let mut parser = Parser::new(Arc::clone(&GRAMMAR), mode);
    let (mut events, mut count) = (Vec::new(), 0);
    for piece in message.chunks(chunk) {
        parser.feed(piece, &mut events);
        count += events.drain(..).map(check).count();
    }
    parser.finish(&mut events);
    count + events.into_iter().map(check).count()
}

fn check(event: Event) {
    if let Event::Error(diagnostic) = event {
        panic!("{diagnostic:?}");
    }
}

#[divan::bench]
fn quick_xml_event_loop(bencher: Bencher<'_, '_>) {
    let message = MESSAGE.as_bytes();
    bencher
        .counter(BytesCount::of_slice(message))
        .bench(|| quick_xml_events(message));
}

#[divan::bench]
fn quick_xml_with_owned_text(bencher: Bencher<'_, '_>) {
    let message = MESSAGE.as_bytes();
    bencher
        .counter(BytesCount::of_slice(message))
        .bench(|| quick_xml_owned(message));
}

#[divan::bench(args = [64, PIPE_BYTES, MESSAGE_BYTES * 2])]
fn repair(bencher: Bencher<'_, '_>, chunk: usize) {
    let message = MESSAGE.as_bytes();
    bencher
        .counter(BytesCount::of_slice(message))
        .bench(|| parse(Mode::Repair, message, chunk));
}

#[divan::bench(args = [64, PIPE_BYTES, MESSAGE_BYTES * 2])]
fn strict(bencher: Bencher<'_, '_>, chunk: usize) {
    let message = MESSAGE.as_bytes();
    bencher
        .counter(BytesCount::of_slice(message))
        .bench(|| parse(Mode::Strict, message, chunk));
}

/// Makes one block of commands, reads, small edits and new files, as a model writes them when it
/// escapes its text.
fn message() -> String {
    let mut message = String::from("I will change the files one by one.\n\n<tools>\n");
    let mut number = 0;
    while message.len() < MESSAGE_BYTES {
        number += 1;
        message.push_str(&calls(number));
        message.push_str(&new_file(number));
    }
    message.push_str("</tools>\nDone.\n");
    message
}

/// A file of about 120 lines.
fn new_file(number: usize) -> String {
    let mut file = format!(
        "<edit>\n  <file src=\"services/billing-{number}/src/tax.rs\">\n    <find></find>\n"
    );
    file.push_str(
        "    <replace>//! Tax rates by country and day.\n\nuse std::collections::BTreeMap;\n",
    );
    for rate in 0..12 {
        file.push_str(&format!(
            r#"
/// Returns the rate of kind {rate} that is in force on a day.
///
/// Rates change at midnight of the country's own time zone, so the day is a local one.
pub fn rate_{rate}(country: Country, day: Day) -> Result&lt;Rate, TaxError> {{
    let rates = RATES[{rate}].get(country.code()).ok_or(TaxError::UnknownCountry)?;
    match rates.range(..=day).next_back() {{
        Some((_, rate)) => Ok(*rate),
        None => Err(TaxError::BeforeFirstRate {{ country, day }}),
    }}
}}
"#
        ));
    }
    file.push_str("</replace>\n  </file>\n</edit>\n");
    file
}

fn calls(number: usize) -> String {
    format!(
        r#"<command timeout="60">
  cd services/billing-{number} &amp;&amp; cargo test --workspace --all-features 2>&amp;1 | tail -n 40
  git diff --stat HEAD~1 -- src tests | sort -k3 -n -r | head -20
</command>
<read>
  <file src="services/billing-{number}/src/invoice.rs"/>
  <file src="services/billing-{number}/Cargo.toml" lines="1-40"/>
</read>
<edit>
  <file src="services/billing-{number}/src/invoice.rs">
    <find>
    pub fn total(&amp;self) -> Result&lt;Money, InvoiceError> {{
        let mut sum = Money::zero(self.currency);
        for line in self.lines.iter() {{
            sum = sum.checked_add(line.amount)?;
        }}
        Ok(sum)
    }}
    </find>
    <replace>
    /// Adds up all lines, refusing mixed currencies.
    pub fn total(&amp;self) -> Result&lt;Money, InvoiceError> {{
        let zero = Money::zero(self.currency);
        self.lines.iter().try_fold(zero, |sum, line| {{
            if line.amount.currency() != self.currency {{
                return Err(InvoiceError::MixedCurrencies {{ expected: self.currency }});
            }}
            sum.checked_add(line.amount)
        }})
    }}
    </replace>
    <find>use crate::money::Money;</find>
    <replace>use crate::money::{{Currency, Money}};</replace>
  </file>
  <file src="services/billing-{number}/README.md">
    <find># Billing {number}</find>
    <replace># Billing service {number}

This service keeps invoices and their lines. It answers questions about totals, taxes and open
amounts, and it never changes an invoice that was sent: corrections are invoices of their own.
Start it with `make run`, and look at http://localhost:8080/invoices for what it has.
    </replace>
  </file>
</edit>
"#
    )
}
