//! Prints the stable code, class, hint and exit status of an error, and the names in a template.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example prints its results"
)]

use std::io;
use std::path::Path;
use std::process::ExitCode;

use karyi_core::error::{ErrorClass, ToolError};
use karyi_core::outcome::ReportStatus;
use karyi_core::secret::Template;

fn main() -> ExitCode {
    let missing = io::Error::from_raw_os_error(2);
    let error = ToolError::from_io(Path::new("notes.txt"), &missing);
    println!("{}: {}", error.code.as_str(), error.message);
    println!("hint: {}", error.hint);
    let status = match error.code.class() {
        ErrorClass::Failed => ReportStatus::Failed,
        ErrorClass::Refused => ReportStatus::Refused,
        ErrorClass::NeedsUser => ReportStatus::NeedsInput,
    };
    println!("exit status of a run with it: {}", status.exit_code());

    let template = Template::new("curl -u $KARYI{USER}:$KARYI{TOKEN} https://example.com");
    match template.names() {
        Ok(names) => {
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            println!("names in the template: {}", names.join(", "));
            ExitCode::SUCCESS
        }
        Err(bad) => {
            eprintln!("malformed placeholder at byte {}", bad.offset);
            ExitCode::FAILURE
        }
    }
}
