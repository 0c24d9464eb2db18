//! Wakes of the loop: changed files, else the tick.

use std::path::PathBuf;
use std::time::Duration;

use karyi_core::error::ToolError;
#[cfg(target_os = "linux")]
use {
    karyi_core::limits, karyi_tasks::file_watch::FileWatch, std::os::fd::AsFd as _,
    tokio::net::unix::pipe::Receiver,
};

/// Watches directories where the system can; elsewhere the tick is enough.
#[derive(Default)]
pub(super) struct Wakes {
    #[cfg(target_os = "linux")]
    files: Option<(FileWatch, Receiver)>,
}

impl Wakes {
    /// Begins to watch nothing.
    ///
    /// # Errors
    /// The system cannot.
    #[cfg(target_os = "linux")]
    pub(super) fn new() -> Result<Self, ToolError> {
        let watch = FileWatch::new()?;
        let failed = |error: std::io::Error| ToolError::from_io("inotify".as_ref(), &error);
        let events = watch.as_fd().try_clone_to_owned().map_err(failed)?;
        // It is no pipe, and is read and waited for like one.
        let events = Receiver::from_owned_fd_unchecked(events).map_err(failed)?;
        Ok(Self {
            files: Some((watch, events)),
        })
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn new() -> Result<Self, ToolError> {
        Ok(Self::default())
    }

    /// Watches these directories and no others.
    ///
    /// # Errors
    /// The system watches no more of them.
    pub(super) fn watch(&mut self, paths: Vec<PathBuf>) -> Result<(), ToolError> {
        #[cfg(target_os = "linux")]
        if let Some((watch, _)) = &mut self.files {
            return watch.watch(paths);
        }
        drop(paths);
        Ok(())
    }

    /// Waits until a file changes, at most for `longest`.
    pub(super) async fn next(&mut self, longest: Duration) {
        // Both ends mean the same: look again.
        let _ = tokio::time::timeout(longest, self.changed()).await;
    }

    async fn changed(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some((_, events)) = &mut self.files
            && events.readable().await.is_ok()
        {
            // What changes at the same time is looked at together.
            tokio::time::sleep(limits::FILE_WAKE_PAUSE).await;
            let mut dropped = [0; 4096];
            while events.try_read(&mut dropped).is_ok_and(|count| count > 0) {}
            return;
        }
        std::future::pending::<()>().await;
    }
}
