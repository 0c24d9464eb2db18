//! The program `karyi`: arguments to runtime to exit status.

use std::process::ExitCode;

/// Gives memory out: in a server, one thread gives back what another one took, and often.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    karyi::cli::main(std::env::args_os().collect())
}
