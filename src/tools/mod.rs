//! The list of tools in documentation order; the typed [`Call`], the registry and the dispatch are
//! generated from it.

pub mod assistant;
pub mod core;
pub mod offer;
#[cfg(feature = "serve")]
pub mod site;
pub mod supervisor;

use crate::tool::registry::{self, Entry, Lazy, Registry};
use crate::tool::schema::ArgumentSchema;
use crate::tool::spec::Family;
use crate::tool::{
    Answer, Context, CountedTexts, Effect, Fields, Seconds, Spec, Tool, ToolSettings, Use,
};
use karyi_core::error::ToolError;
use karyi_core::head_tail::Cap;
use karyi_core::secret::{SecretName, Template};
use karyi_vault::redact::Redacted;

/// Generates the typed call, the registry and the dispatch from the list of tools.
macro_rules! tools {
    ($($(#[$cfg:meta])* $variant:ident: $tool:ty,)*) => {
        /// A call with typed arguments.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Call {
            $(
                $(#[$cfg])*
                #[doc = concat!("A call of [`", stringify!($tool), "`].")]
                $variant(<$tool as Tool>::Args),
            )*
        }

        /// Returns all tools, including those that scripts cannot call.
        #[must_use]
        pub fn all() -> Registry<Call> {
            Registry::new(Vec::from([$(
                $(#[$cfg])*
                Entry {
                    spec: <$tool as Tool>::SPEC,
                    title: registry::title(<$tool as Tool>::TITLE, <$tool as Tool>::SPEC.name),
                    schema: Lazy::new(Box::new(ArgumentSchema::of::<<$tool as Tool>::Args>)),
                    output_schema: Lazy::new(Box::new(<$tool as Tool>::output_schema)),
                    service: <$tool as Tool>::SERVICE,
                    from_json: |value| serde_json::from_value(value).map(Call::$variant),
                    note_sources: |call, element| {
                        if let Call::$variant(args) = call {
                            <$tool as Tool>::note_sources(args, element);
                        }
                    },
                },
            )*]))
        }

        /// Returns the texts of a tool's result that a report may shorten; none for an unknown tool.
        #[must_use]
        pub fn counted_texts(tool: &str) -> &'static [CountedTexts] {
            $(
                $(#[$cfg])*
                if tool == <$tool as Tool>::SPEC.name {
                    return <$tool as Tool>::COUNTED;
                }
            )*
            &[]
        }

        impl Call {
            /// Returns the declaration of the tool.
            #[must_use]
            pub fn spec(&self) -> Spec {
                match self { $($(#[$cfg])* Self::$variant(_) => <$tool as Tool>::SPEC,)* }
            }

            /// Returns the name of the tool for which policies of secrets allow the call.
            #[must_use]
            pub fn policy_name(&self) -> &'static str {
                match self { $($(#[$cfg])* Self::$variant(_) => <$tool as Tool>::POLICY_NAME,)* }
            }

            /// Returns the resources the call may touch.
            #[must_use]
            pub fn effect(&self) -> Effect {
                match self { $($(#[$cfg])* Self::$variant(args) => <$tool as Tool>::effect(args),)* }
            }

            /// Returns a title of the call for people.
            #[must_use]
            pub fn title(&self) -> String {
                match self { $($(#[$cfg])* Self::$variant(args) => <$tool as Tool>::title(args),)* }
            }

            /// Returns the name of the secret that a successful call provides.
            #[must_use]
            pub fn provides(&self) -> Option<SecretName> {
                match self { $($(#[$cfg])* Self::$variant(args) => <$tool as Tool>::provides(args),)* }
            }

            /// Returns the id of the job that the call names.
            #[must_use]
            pub fn job(&self) -> Option<&str> {
                match self { $($(#[$cfg])* Self::$variant(args) => <$tool as Tool>::job(args),)* }
            }

            /// Returns the time limit that the call sets.
            #[must_use]
            pub fn timeout(&self) -> Option<Seconds> {
                match self { $($(#[$cfg])* Self::$variant(args) => <$tool as Tool>::timeout(args),)* }
            }

            /// Returns the limit of the output that the call prints, when no session collects it.
            #[must_use]
            pub fn output_cap(&self, settings: &ToolSettings) -> Option<Cap> {
                match self { $($(#[$cfg])* Self::$variant(_) => <$tool as Tool>::output_cap(settings),)* }
            }

            /// Returns true when the call ends its job, in the foreground or background.
            #[must_use]
            pub fn ends_job(&self) -> bool {
                match self { $($(#[$cfg])* Self::$variant(args) => <$tool as Tool>::ends_job(args),)* }
            }

            /// Checks for errors that can be found before any call of the block runs.
            ///
            /// # Errors
            /// The call can never run.
            pub fn check(&self) -> Result<(), ToolError> {
                match self { $($(#[$cfg])* Self::$variant(args) => <$tool as Tool>::check(args),)* }
            }

            /// Visits every text that may contain a placeholder.
            pub fn templates(&mut self, visit: &mut dyn FnMut(Use, &mut Template)) {
                match self { $($(#[$cfg])* Self::$variant(args) => <$tool as Tool>::templates(args, visit),)* }
            }

            /// Runs the call; returns the tool's answer with its fields, masked, in the requested representation.
            ///
            /// # Errors
            /// The call failed.
            pub async fn run<F: Fields>(self, context: &Context) -> Result<Answer<Redacted<F>>, ToolError> {
                context.settings.check_enabled(self.spec().name)?;
                match self {
                    $($(#[$cfg])* Self::$variant(args) => {
                        // Boxed separately: the smallest future must not take the size of the largest.
                        let answer = Box::pin(<$tool as Tool>::run(args, context)).await?;
                        Ok(Answer {
                            status: answer.status,
                            output: F::of(&answer.output, &context.redactor)?,
                            problem: answer.problem,
                        })
                    })*
                }
            }
        }
    };
}

tools! {
    Command: core::command::Command,
    Edit: core::edit::Edit,
    Read: core::read::Read,
    GetValue: core::get_value::GetValue,
    Input: core::input::Input,
    Ctrl: core::ctrl::Ctrl,
    Plan: core::plan::Plan,
    ReadFile: assistant::read_file::ReadFile,
    WriteFile: assistant::write_file::WriteFile,
    Bash: assistant::bash::Bash,
    UrlFetch: assistant::url_fetch::UrlFetch,
    WebSearch: assistant::web_search::WebSearch,
    TodoUpdate: assistant::todo_update::TodoUpdate,
    PlanCreate: assistant::plan_create::PlanCreate,
    Delegate: supervisor::delegate::Delegate,
    Reply: supervisor::reply::Reply,
    Remember: supervisor::remember::Remember,
    GetRecentHistory: supervisor::get_recent_history::GetRecentHistory,
    GetHistoryByTime: supervisor::get_history_by_time::GetHistoryByTime,
    SearchMemory: supervisor::search_memory::SearchMemory,
    AskUser: supervisor::ask_user::AskUser,
    Schedule: supervisor::schedule::Schedule,
    ListTasks: supervisor::list_tasks::ListTasks,
    CancelTask: supervisor::cancel_task::CancelTask,
    #[cfg(feature = "serve")]
    GetNpcProfile: site::get_npc_profile::GetNpcProfile,
    #[cfg(feature = "serve")]
    SearchContent: site::search_content::SearchContent,
    #[cfg(feature = "serve")]
    GetSiteMap: site::get_site_map::GetSiteMap,
    #[cfg(feature = "serve")]
    CreateDraftContent: site::create_draft_content::CreateDraftContent,
    #[cfg(feature = "serve")]
    LogUserEvent: site::log_user_event::LogUserEvent,
    #[cfg(feature = "serve")]
    GetPromptActive: site::get_prompt_active::GetPromptActive,
}

/// Returns the tools that scripts can call.
#[must_use]
pub fn for_scripts() -> Registry<Call> {
    all().only(|entry| entry.spec.family.is_for_scripts())
}

/// Returns the tools that scripts can call unless other ones were chosen. It remembers the names of those.
#[must_use]
pub fn registry() -> Registry<Call> {
    for_scripts().offering(|entry| entry.spec.family == Family::Core)
}
