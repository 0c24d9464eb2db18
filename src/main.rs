//! The program `karyi`: arguments to runtime to exit status.

use std::process::ExitCode;

fn main() -> ExitCode {
    karyi::cli::main(std::env::args_os().collect())
}
