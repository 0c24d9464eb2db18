//! Keeps a server's secrets up to date with their store, so that everything it checks, logs and
//! records is masked.

use tokio::sync::Mutex;

use crate::exec::{message_runner, resolve};
use crate::tool::context::blocking;
use karyi_vault::session::{LoadIssue, Need, Secrets};

/// Reads the secret store again when it has changed.
pub struct SecretRefresher {
    secrets: Secrets,
    /// Lock for reading the store, with the problems that were logged last.
    reported: Mutex<Vec<LoadIssue>>,
}

impl SecretRefresher {
    /// Creates a refresher. The first refresh logs the problems of the store.
    #[must_use]
    pub fn new(secrets: &Secrets) -> Self {
        Self {
            secrets: secrets.clone(),
            reported: Mutex::default(),
        }
    }

    /// Reads the store if it has changed or a retry is due. One task reads; the others wait for it.
    /// Front ends call this before they check, log or record anything of a request.
    pub async fn refresh_if_stale(&self) {
        if self.secrets.is_behind() {
            // Boxed to keep this future small.
            Box::pin(self.refresh()).await;
        }
    }

    /// Reads the store if it has changed, and logs problems that are new since the last time.
    pub async fn refresh(&self) {
        let mut reported = self.reported.lock().await;
        // The task that held the lock before may have read it.
        if self.secrets.is_behind() {
            resolve::refresh(&self.secrets, Need::Listed).await;
        }
        if !self.secrets.has_source() {
            return;
        }
        let secrets = self.secrets.clone();
        // A thread that reads the store holds the lock on its problems.
        let Ok(lacks) = blocking(move || Ok(secrets.load_issues())).await else {
            return;
        };
        for lack in lacks.iter().filter(|lack| !reported.contains(lack)) {
            let (code, message) = message_runner::describe_load_issue(lack);
            tracing::info!(event = code.as_str(), message);
        }
        *reported = lacks;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;
    use crate::service::log::JsonLog;
    use karyi_core::error::{ErrorCode, ToolError};
    use karyi_vault::session::{LoadIssueKind, Source};

    /// Store that counts reads.
    #[derive(Default)]
    struct Counting {
        is_read: AtomicBool,
        reads: AtomicUsize,
    }

    impl Source for Counting {
        fn refresh(&self, _: &Secrets, _: Need) {
            self.reads.fetch_add(1, Ordering::SeqCst);
            self.is_read.store(true, Ordering::SeqCst);
        }

        fn is_behind(&self) -> bool {
            !self.is_read.load(Ordering::SeqCst)
        }

        fn load_issues(&self) -> Vec<LoadIssue> {
            let error = ToolError::new(ErrorCode::KeyringTimeout, "it did not answer");
            let lack = LoadIssue {
                kind: LoadIssueKind::Unread,
                error,
                names: Vec::new(),
            };
            let reads = self.reads.load(Ordering::SeqCst);
            std::iter::repeat_n(lack, reads.min(1)).collect()
        }

        fn load_issue_of(&self, _: &str) -> Option<LoadIssue> {
            None
        }
    }

    #[tokio::test]
    async fn one_task_reads_and_logs() {
        let (secrets, source) = (Secrets::default(), Arc::new(Counting::default()));
        secrets.attach(Arc::clone(&source) as Arc<dyn Source>);
        let refresher = Arc::new(SecretRefresher::new(&secrets));
        let (log, mut lines) = JsonLog::new();
        let logging = tracing::subscriber::set_default(log);
        for round in 1..=2 {
            let tasks: Vec<_> = (0..20)
                .map(|_| {
                    let refresher = Arc::clone(&refresher);
                    tokio::spawn(async move { refresher.refresh_if_stale().await })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
            assert_eq!(source.reads.load(Ordering::SeqCst), round);
            source.is_read.store(false, Ordering::SeqCst);
        }
        drop(logging);
        let text = String::from_utf8(lines.take()).unwrap();
        let message =
            "values in the store are not known and not masked: keyring_timeout: it did not answer";
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(
            text.starts_with("{\"event\":\"redaction_incomplete\"") && text.contains(message),
            "{text}"
        );
    }
}
