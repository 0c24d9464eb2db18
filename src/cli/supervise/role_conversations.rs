//! Conversations of the roles: each with its model, its tools, and a session of its own.

use std::sync::Arc;

use crate::chat::conversation::Conversation;
use crate::chat::history::History;
use crate::cli::chat_setup::{self, ChatSetup};
use crate::cli::config::{ChosenModel, Settings, chosen_model, model_of_setting};
use crate::cli::model;
use crate::cli::session_args::SessionArgs;
use crate::exec::policy_gate::PolicyGate;
use crate::reference::prompt;
use crate::supervisor::conversations::{Conversations, SessionKind, SessionStart};
use crate::tool::Registry;
use crate::tool::context::Boxed;
use crate::tool::supervision::SessionRole;
use crate::tools::offer::Offer;
use crate::tools::{self, Call};
use karyi_core::error::{ErrorCode, ToolError};
use karyi_model::Model;
use karyi_vault::session::Secrets;

/// Models of the roles as they were chosen; those of Planner and Worker only where they are others.
pub(super) struct RoleModels {
    teller: ChosenModel,
    others: OtherModels,
}

/// Models of Planner and Worker, where they are not the Teller's.
pub(super) struct OtherModels {
    planner: Option<ChosenModel>,
    worker: Option<ChosenModel>,
}

impl RoleModels {
    /// Chooses the models: that of the flag, else those of the settings.
    ///
    /// # Errors
    /// None is chosen, or the settings of one are wrong.
    pub(super) fn choose(settings: &Settings, flag: Option<&str>) -> anyhow::Result<Self> {
        let choose = |role: &str| {
            let key = format!("{role}_model");
            match (flag, settings.supervise_text(&key)) {
                (None, Some(own)) => model_of_setting(settings, &["supervise", &key], own),
                (flag, _) => chosen_model(settings, flag),
            }
        };
        let teller = choose("teller")?;
        let other =
            |role: &str| choose(role).map(|other| Some(other).filter(|other| *other != teller));
        let others = OtherModels {
            planner: other("planner")?,
            worker: other("worker")?,
        };
        Ok(Self { teller, others })
    }

    /// Takes the Teller's model apart from the others.
    pub(super) fn split(self) -> (ChosenModel, OtherModels) {
        (self.teller, self.others)
    }
}

impl OtherModels {
    /// Opens the models with their keys; `teller` is open.
    ///
    /// # Errors
    /// A key has no value.
    pub(super) fn open(
        self,
        teller: Arc<dyn Model>,
        secrets: &Secrets,
    ) -> anyhow::Result<OpenModels> {
        let open = |chosen: Option<ChosenModel>| match chosen {
            Some(chosen) => model::open(&chosen, secrets),
            None => Ok(Arc::clone(&teller)),
        };
        Ok(OpenModels {
            planner: open(self.planner)?,
            worker: open(self.worker)?,
            teller,
        })
    }
}

/// Models that requests can be sent to.
pub(super) struct OpenModels {
    teller: Arc<dyn Model>,
    planner: Arc<dyn Model>,
    worker: Arc<dyn Model>,
}

/// Resources that the sessions of a role share.
struct Role {
    model: Arc<dyn Model>,
    registry: Arc<Registry<Call>>,
    /// Registry as the model sees it: without arguments that only another role may give.
    shown: Arc<Registry<Call>>,
    /// System text: the role, then its tools.
    system: String,
    policy_gate: PolicyGate,
}

/// Makes the conversations of a supervisor.
pub(super) struct RoleConversations {
    setup: Arc<ChatSetup>,
    teller: Role,
    planner: Role,
    worker: Role,
    judge: Role,
}

impl RoleConversations {
    /// Prepares the roles; Workers have the approvals of the set-up.
    ///
    /// # Errors
    /// A tool or the shell cannot be used.
    pub(super) fn new(
        session: &SessionArgs,
        setup: &Arc<ChatSetup>,
        models: OpenModels,
    ) -> anyhow::Result<Self> {
        let talking = |kind: SessionKind, role: SessionRole, model: &Arc<dyn Model>| {
            let offer = Offer::of_role(role);
            let shown = offer.registry().without_arguments(|a| !role.may_give(a));
            Role {
                model: Arc::clone(model),
                system: format!("{}\n{}", kind.text(), prompt::prompt(&shown, "")),
                registry: Arc::new(offer.registry()),
                shown: Arc::new(shown),
                policy_gate: PolicyGate::default(),
            }
        };
        let offer = Arc::new(session.offer.offer()?.registry());
        let none = Arc::new(tools::for_scripts().only(|_| false));
        let tools = chat_setup::system(session, &offer, "")?;
        Ok(Self {
            teller: talking(SessionKind::Teller, SessionRole::Teller, &models.teller),
            planner: talking(SessionKind::Planner, SessionRole::Planner, &models.planner),
            judge: Role {
                model: models.planner,
                registry: Arc::clone(&none),
                shown: none,
                system: SessionKind::Judge.text().to_owned(),
                policy_gate: PolicyGate::default(),
            },
            worker: Role {
                model: models.worker,
                registry: Arc::clone(&offer),
                shown: offer,
                system: format!("{}\n{tools}", SessionKind::Worker.text()),
                policy_gate: setup.policy_gate.clone(),
            },
            setup: Arc::clone(setup),
        })
    }

    async fn conversation(&self, start: SessionStart) -> Result<Conversation, ToolError> {
        let role = match start.kind {
            SessionKind::Teller => &self.teller,
            SessionKind::Planner => &self.planner,
            SessionKind::Worker => &self.worker,
            SessionKind::Judge => &self.judge,
        };
        let has_role = matches!(start.kind, SessionKind::Teller | SessionKind::Planner);
        if has_role && start.supervision.is_none() {
            // Its calls could not be held to the tools of the role.
            let message = format!("the session of a {} has no role", start.kind.as_str());
            return Err(ToolError::new(ErrorCode::Internal, message));
        }
        let (model, registry) = (Arc::clone(&role.model), Arc::clone(&role.registry));
        let redactor = &self.setup.redactor;
        let began = chat_setup::request(&role.system, redactor, &role.shown, model.as_ref());
        let (request, facts) = began.await;
        let window = model.config().context.or(facts.context);
        let policy_gate = role.policy_gate.clone();
        let runner =
            self.setup
                .separate_runner(registry, policy_gate, (&start.cancel, start.supervision));
        let history = History::new(request);
        let chat = Conversation::new(model, runner, history, start.limits, start.cancel);
        Ok(chat.with_window(window))
    }
}

impl Conversations for RoleConversations {
    fn begin(&self, start: SessionStart) -> Boxed<'_, Result<Conversation, ToolError>> {
        Box::pin(self.conversation(start))
    }
}
