//! Sees to it that the server knows what the store of its secrets holds now: whatever is checked,
//! answered, logged or recorded is masked by what is known.

use tokio::sync::Mutex;

use crate::exec::{message, resolve};
use crate::service::log::{Line, Log};
use crate::tool::context::blocking;
use karyi_vault::session::{Lack, Need, Secrets};

/// Looks after the secrets of a server.
pub(super) struct Lookout {
    secrets: Secrets,
    /// Whose turn it is to read the store, and what was told last of what it lacks.
    told: Mutex<Vec<Lack>>,
}

impl Lookout {
    /// Looks after secrets. What they lack now is told at the first look.
    pub(super) fn new(secrets: &Secrets) -> Self {
        Self {
            secrets: secrets.clone(),
            told: Mutex::default(),
        }
    }

    /// Reads the store when it may have changed, or is to be tried again. One of all who find that out reads, and the
    /// others wait for it.
    pub(super) async fn look(&self, log: &Log) {
        if self.secrets.is_behind() {
            // Seldom, and large.
            Box::pin(self.catch_up(log)).await;
        }
    }

    /// Does so, and tells in the log what is lacking since the last time.
    pub(super) async fn catch_up(&self, log: &Log) {
        let mut told = self.told.lock().await;
        // Whoever had the turn before may have done it.
        if self.secrets.is_behind() {
            resolve::refresh(&self.secrets, Need::Listed).await;
        }
        if !self.secrets.has_source() {
            return;
        }
        let secrets = self.secrets.clone();
        // Somebody who reads the store keeps what it lacks locked.
        let Ok(lacks) = blocking(move || Ok(secrets.lacks())).await else {
            return;
        };
        for lack in lacks.iter().filter(|lack| !told.contains(lack)) {
            let (code, message) = message::lack_in_words(lack);
            log.write(&Line {
                event: code.as_str(),
                message: Some(&message),
                ..Line::default()
            });
        }
        *told = lacks;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;
    use karyi_core::error::{ErrorCode, ToolError};
    use karyi_vault::session::{LackKind, Source};

    /// A store that counts who reads it.
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

        fn lacks(&self) -> Vec<Lack> {
            let error = ToolError::new(ErrorCode::KeyringTimeout, "it did not answer");
            let lack = Lack {
                kind: LackKind::Unread,
                error,
                names: Vec::new(),
            };
            let reads = self.reads.load(Ordering::SeqCst);
            std::iter::repeat_n(lack, reads.min(1)).collect()
        }

        fn lack_of(&self, _: &str) -> Option<Lack> {
            None
        }
    }

    #[tokio::test]
    async fn one_of_many_reads_and_tells() {
        let (secrets, source) = (Secrets::default(), Arc::new(Counting::default()));
        secrets.attach(Arc::clone(&source) as Arc<dyn Source>);
        let lookout = Arc::new(Lookout::new(&secrets));
        let (log, lines) = Log::new();
        for round in 1..=2 {
            let looks: Vec<_> = (0..20)
                .map(|_| {
                    let (lookout, log) = (Arc::clone(&lookout), log.clone());
                    tokio::spawn(async move { lookout.look(&log).await })
                })
                .collect();
            for look in looks {
                look.await.unwrap();
            }
            assert_eq!(source.reads.load(Ordering::SeqCst), round);
            source.is_read.store(false, Ordering::SeqCst);
        }
        drop(log);
        let mut text = Vec::new();
        lines.take(&mut text);
        let text = String::from_utf8(text).unwrap();
        let message =
            "values in the store are not known and not masked: keyring_timeout: it did not answer";
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(
            text.starts_with("{\"event\":\"redaction_incomplete\"") && text.contains(message),
            "{text}"
        );
    }
}
