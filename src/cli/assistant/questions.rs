//! Questions about secrets: those for values have the terminal to themselves while the screen steps aside, and those for
//! consent are asked on the screen.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use crate::cli::assistant::approval_screen::ScreenApprover;
use crate::cli::prompt::Terminal;
use crate::tool::context::{ApprovalRequest, Boxed, Consent, Prompter, Question, Reply};

/// A request for the terminal: the answer has a switch whose end gives it back.
pub(super) type TerminalRequest = oneshot::Sender<oneshot::Sender<()>>;

/// Asks questions once the screen has stepped aside.
pub(super) struct ScreenQuestions {
    terminal: Terminal,
    requests: mpsc::Sender<TerminalRequest>,
    approver: ScreenApprover,
}

impl ScreenQuestions {
    /// Creates the prompter of a screen that reads the requests.
    pub(super) fn new(
        terminal: Terminal,
        requests: mpsc::Sender<TerminalRequest>,
        approver: ScreenApprover,
    ) -> Arc<Self> {
        Arc::new(Self {
            terminal,
            requests,
            approver,
        })
    }

    /// Waits for the terminal; nothing once the screen has ended.
    async fn take(&self) -> Option<oneshot::Sender<()>> {
        let (grant, granted) = oneshot::channel();
        self.requests.send(grant).await.ok()?;
        granted.await.ok()
    }
}

impl Prompter for ScreenQuestions {
    fn is_available(&self) -> bool {
        self.terminal.is_available()
    }

    fn ask<'a>(&'a self, question: &'a Question) -> Boxed<'a, Reply> {
        Box::pin(async move {
            match self.take().await {
                Some(_turn) => self.terminal.ask(question).await,
                None => Reply::Unavailable,
            }
        })
    }

    fn unavailable_reason(&self) -> Option<&str> {
        self.terminal.unavailable_reason()
    }

    fn approve<'a>(&'a self, request: &'a ApprovalRequest) -> Boxed<'a, Consent> {
        Box::pin(self.approver.consent(request))
    }
}
