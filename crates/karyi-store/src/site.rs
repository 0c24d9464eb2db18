//! Data of a site and the store for it.
//!
//! Every query names a [`Scope`] and never finds anything outside it.

use std::sync::Arc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Pending;

/// Site and deadline of a query.
#[derive(Debug, Clone)]
pub struct Scope {
    /// Tenant.
    pub tenant_id: Arc<str>,
    /// Site.
    pub site_id: Arc<str>,
    /// Time after which the result is useless.
    pub deadline: Instant,
}

/// Site.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// Tenant that owns the site.
    pub tenant_id: String,
    /// Identifier.
    pub site_id: String,
    /// Public name.
    pub name: String,
    /// Description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Character that visitors talk to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Identifier.
    pub npc_id: String,
    /// Version of the profile, from 1.
    #[serde(default = "one")]
    pub version: u32,
    /// True for the version in use.
    #[serde(default = "yes")]
    pub active: bool,
    /// Name.
    pub name: String,
    /// Displayed name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Kind of character.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npc_type: Option<String>,
    /// Identity, personality and constraints.
    #[serde(default)]
    pub persona: Map<String, Value>,
    /// Fields of knowledge.
    #[serde(default)]
    pub knowledge_domains: Vec<String>,
    /// Greetings.
    #[serde(default)]
    pub greeting_templates: Vec<String>,
    /// Answers when it does not know.
    #[serde(default)]
    pub fallback_responses: Vec<String>,
    /// Maximum length of an answer, in characters.
    #[serde(default = "five_hundred")]
    pub max_response_length: u32,
    /// True if it must cite its sources.
    #[serde(default = "yes")]
    pub must_cite_sources: bool,
}

fn one() -> u32 {
    1
}

fn five_hundred() -> u32 {
    500
}

fn yes() -> bool {
    true
}

/// Content of the site: knowledge, a story, a point of interest, a route.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// Identifier.
    pub id: String,
    /// Content type.
    pub content_type: String,
    /// Title.
    pub title: String,
    /// Summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Text.
    #[serde(default)]
    pub body: String,
    /// Category.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Fields of knowledge.
    #[serde(default)]
    pub domains: Vec<String>,
    /// Origin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Credibility, from 0 to 1.
    #[serde(default = "full")]
    pub credibility_score: f64,
    /// True if a person has verified it.
    #[serde(default)]
    pub verified: bool,
    /// `draft`, `review`, `published` or `offline`.
    #[serde(default = "published")]
    pub status: String,
    /// Any other data.
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

fn full() -> f64 {
    1.0
}

fn published() -> String {
    "published".into()
}

/// Handwritten prompt of a character.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    /// Character.
    pub npc_id: String,
    /// `system`, `greeting` or `fallback`.
    #[serde(default = "system")]
    pub prompt_type: String,
    /// Version of the prompt, from 1.
    #[serde(default = "one")]
    pub version: u32,
    /// True for the version in use.
    #[serde(default = "yes")]
    pub active: bool,
    /// Text.
    pub content: String,
    /// Any other data.
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

fn system() -> String {
    "system".into()
}

/// All data of one site, for import.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    /// Site.
    pub site: Site,
    /// Characters.
    pub profiles: Vec<Profile>,
    /// Contents, points and routes.
    pub contents: Vec<Content>,
    /// Prompts.
    pub prompts: Vec<Prompt>,
    /// Digest of everything above.
    pub digest: String,
}

/// Search query.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    /// Words to search for.
    pub text: String,
    /// Required content type.
    pub content_type: Option<String>,
    /// Tags of which one is required; empty for any.
    pub tags: Vec<String>,
    /// Required status.
    pub status: String,
    /// Maximum number of results.
    pub limit: u32,
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// Best contents.
    pub items: Vec<Content>,
    /// Number of all matches.
    pub total: u64,
}

/// Text to be reviewed before publication.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// Content; its status is always `draft`.
    pub content: Content,
    /// Author.
    pub author: String,
}

/// Action of a visitor.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Event type.
    pub event_type: String,
    /// Details.
    pub data: Map<String, Value>,
    /// Visitor.
    pub user_id: Option<String>,
    /// Visit.
    pub session_id: Option<String>,
    /// Trace of the call.
    pub trace_id: String,
}

/// Receipt of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteReceipt {
    /// New identifier.
    pub id: String,
    /// Time of the write.
    pub at: String,
}

/// Idempotency key of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatKey {
    /// Caller.
    pub principal: String,
    /// Tool.
    pub tool: String,
    /// Key chosen by the caller.
    pub key: String,
    /// Hash of the whole input.
    pub fingerprint: String,
}

/// State of an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// New, and claimed by this call.
    New,
    /// Completed with this response.
    Done(Vec<u8>),
    /// Begun, without a response.
    Begun,
    /// Used with another input.
    Other,
}

/// Store of the data of sites.
pub trait SiteStore: Send + Sync {
    /// Replaces the imported data of a site; returns true if anything changed.
    fn import(&self, bundle: Bundle, deadline: Instant) -> Pending<'_, bool>;

    /// Checks that the data can be read and written.
    fn probe(&self, deadline: Instant) -> Pending<'_, ()>;

    /// Returns the site.
    fn site(&self, scope: &Scope) -> Pending<'_, Option<Site>>;

    /// Returns the profile of a character: the given version, else the one in use.
    fn profile(
        &self,
        scope: &Scope,
        npc_id: &str,
        version: Option<u32>,
    ) -> Pending<'_, Option<Profile>>;

    /// Returns the prompt in use of a character.
    fn prompt(&self, scope: &Scope, npc_id: &str, prompt_type: &str)
    -> Pending<'_, Option<Prompt>>;

    /// Searches the contents.
    fn search(&self, scope: &Scope, query: Query) -> Pending<'_, SearchResult>;

    /// Returns the published contents of one type, in the order of the import.
    fn of_type(&self, scope: &Scope, content_type: &str) -> Pending<'_, Vec<Content>>;

    /// Stores a draft.
    fn add_draft(&self, scope: &Scope, draft: Draft) -> Pending<'_, WriteReceipt>;

    /// Stores an event.
    fn log_event(&self, scope: &Scope, event: Event) -> Pending<'_, WriteReceipt>;

    /// Claims a key for a call, or returns its state.
    fn claim(&self, scope: &Scope, key: RepeatKey) -> Pending<'_, Claim>;

    /// Stores the response of a call under its key.
    fn answer(&self, scope: &Scope, key: RepeatKey, answer: Vec<u8>) -> Pending<'_, ()>;

    /// Releases the key of a call that was not made.
    fn release(&self, scope: &Scope, key: RepeatKey) -> Pending<'_, ()>;
}
