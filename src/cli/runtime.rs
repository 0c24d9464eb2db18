//! The runtime of servers and clients, and the signals that end them.

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::interrupts;

/// Creates the runtime of the server or of a client.
pub(super) fn runtime(is_parallel: bool) -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = match is_parallel {
        true => tokio::runtime::Builder::new_multi_thread(),
        false => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = builder
        .enable_all()
        .build()
        .context("starting the runtime")?;
    interrupts::outlive_file_limit(&runtime);
    Ok(runtime)
}

/// Returns a function that waits until the server is told to stop, or told again.
pub(super) fn stopped() -> anyhow::Result<impl AsyncFnMut()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("catching signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("catching signals")?;
    Ok(async move || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
