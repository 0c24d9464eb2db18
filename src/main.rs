//! Entry point.

use std::io::Write as _;
use std::process::ExitCode;

use karyi::pty::bootstrap;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    // The shell of a session starts through this program; no argument parser may stand before it.
    if arguments
        .next()
        .is_some_and(|first| first == bootstrap::ARGUMENT)
    {
        let error = bootstrap::bootstrap(arguments);
        let _ = writeln!(std::io::stderr(), "karyi: starting the shell: {error}");
        return ExitCode::from(127);
    }
    ExitCode::SUCCESS
}
