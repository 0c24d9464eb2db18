//! Creates the parts of a session: its files, its engine, the state shared with callers.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use crate::engine::Engine;
use crate::engine::alarm::Alarm;
use crate::engine::background_finder::BackgroundFinder;
use crate::engine::job_watch::JobWatch;
use crate::engine::launcher::ShellLauncher;
use crate::engine::output::Output;
use crate::engine::state::{Shared, State};
use crate::host::error_hints::MissingResource;
use crate::session::options::{SessionOptions, StartupFiles};
use crate::shell::choice::ShellChoice;
use crate::shell::snapshot::SnapshotCollector;
use crate::teardown::{registry, sweep};
use crate::terminal::spawn::SpawnConfig;

/// Creates the files of a session, its shared state and its engine.
pub(super) fn prepare(options: SessionOptions, choice: ShellChoice) -> io::Result<Engine> {
    let ShellChoice { shell, fallback } = choice;
    let directory = tempfile::Builder::new()
        .prefix(sweep::PREFIX)
        .tempdir_in(&options.runtime_dir)?;
    // Programs of the session can read the tag, so the nonce is another word.
    let tag = make_nonce()?;
    let alarm = Alarm::new()?;
    let stamp = registry::register_session(directory.path(), &tag, random()?)?;
    let spawn_config = SpawnConfig {
        shell,
        bootstrap: options.bootstrap,
        env: options.env,
        overrides: options.overrides,
        directory: directory.path().to_owned(),
        nonce: make_nonce()?,
        tag: tag.clone(),
        stamp,
    };
    // Registered from here on; whoever ends the session unregisters it.
    let script = spawn_config
        .write_files()
        .inspect_err(|_| registry::unregister(&spawn_config.tag))?;
    let fork_state = options.fork_state.as_ref();
    let cwd = fork_state.map_or(options.cwd, |fork_state| fork_state.cwd.clone());
    let state = State::new(cwd, script, options.secrets);
    let shared = Arc::new(Shared::new(
        state,
        alarm,
        &spawn_config.shell,
        fallback,
        tag,
    ));
    let rc_limit = match options.rc {
        StartupFiles::User(limit) => {
            let fork_state = options.fork_state.as_ref();
            Some(limit).filter(|_| !fork_state.is_some_and(|state| state.skips_rc))
        }
        StartupFiles::None => None,
    };
    Ok(Engine {
        running: None,
        output: Output::new(&spawn_config.nonce, directory.path()),
        watch: JobWatch::new(),
        snapshots: SnapshotCollector::new(&spawn_config.nonce),
        background: BackgroundFinder::new(&shared.tag),
        reaped_at: Instant::now(),
        is_done: false,
        launcher: ShellLauncher::new(spawn_config, rc_limit, options.fork_state, directory),
        shared,
    })
}

/// Returns a random word.
fn make_nonce() -> io::Result<String> {
    Ok(format!("{:016x}", random()?))
}

fn random() -> io::Result<u64> {
    use std::io::Read as _;
    let mut bytes = [0; 8];
    let mut source = File::open("/dev/urandom").map_err(MissingResource::of_random)?;
    source
        .read_exact(&mut bytes)
        .map_err(MissingResource::of_random)?;
    Ok(u64::from_ne_bytes(bytes))
}
