//! The program `karyi`: arguments to runtime to exit status.

use std::process::ExitCode;

#[cfg(not(unix))]
compile_error!(
    "the program karyi runs on Unix only; what the library has for this system builds with `--lib`"
);

/// Gives memory out: in a server, one thread gives back what another one took, and often.
#[cfg(unix)]
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    karyi::cli::main(std::env::args_os().collect())
}
