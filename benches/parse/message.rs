//! The message that is parsed: what a model writes when it changes many files.

/// Makes one block of commands, reads, small edits and new files, as a model writes them when it
/// escapes its text.
pub(crate) fn message(bytes: usize) -> String {
    let mut message = String::from("I will change the files one by one.\n\n<tools>\n");
    let mut number = 0;
    while message.len() < bytes {
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
