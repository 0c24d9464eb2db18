//! Creates the parts of a session: its files, its engine, the state shared with callers.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use karyi_core::limits;

use crate::engine::Engine;
use crate::engine::alarm::Alarm;
use crate::engine::background::ProcessClaims;
use crate::engine::screen_tracker::ScreenTracker;
use crate::engine::state::{Shared, State};
use crate::host::error_hints::MissingResource;
use crate::session::options::{ForkState, SessionOptions, StartupFiles};
use crate::shell::choice::ShellChoice;
use crate::shell::snapshot::SnapshotCollector;
use crate::teardown::{registry, sweep};
use crate::terminal::mark_fifo::MarkFifo;
use crate::terminal::marks::MarkExtractor;
use crate::terminal::output_hints::HintReader;
use crate::terminal::spawn::SpawnConfig;
use crate::wait::{Scanner, Watch};

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
    Ok(new_engine(
        shared,
        spawn_config,
        options.rc,
        options.fork_state,
        directory,
    ))
}

/// Creates the engine of a session without a shell.
fn new_engine(
    shared: Arc<Shared>,
    spawn_config: SpawnConfig,
    startup_files: StartupFiles,
    fork_state: Option<ForkState>,
    directory: tempfile::TempDir,
) -> Engine {
    let now = Instant::now();
    Engine {
        claims: ProcessClaims::new(&shared.tag),
        mark_extractor: MarkExtractor::new(&spawn_config.nonce),
        collector: SnapshotCollector::new(&spawn_config.nonce),
        shared,
        spawn_config,
        rc_limit: match startup_files {
            StartupFiles::User(limit) => {
                let skips = fork_state.as_ref().is_some_and(|state| state.skips_rc);
                Some(limit).filter(|_| !skips)
            }
            StartupFiles::None => None,
        },
        known_children: HashSet::new(),
        followed: Vec::new(),
        fork_state,
        running: None,
        tracker: ScreenTracker::new(directory.path()),
        buffer: vec![0; limits::TERMINAL_READ_BYTES],
        has_input_thief: false,
        mark_fifo: MarkFifo::default(),
        watch: Watch::new(),
        scanner: Scanner::default(),
        hint_reader: HintReader::default(),
        watched: (0, 0),
        next_scan: now,
        lost_input_scans: (0, now),
        unsaved_since: None,
        ended_at: now,
        reaped_at: now,
        is_done: false,
        directory: Some(directory),
    }
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
