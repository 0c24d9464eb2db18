//! What a site consists of, and the store of it.
//!
//! Every question names a [`Scope`]; nothing is ever found outside of it.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Pending;

/// Whose data is asked for, and until when.
#[derive(Debug, Clone)]
pub struct Scope {
    /// The tenant.
    pub tenant_id: Arc<str>,
    /// The site.
    pub site_id: Arc<str>,
    /// When the answer is of no use any more.
    pub deadline: Instant,
}

/// The site itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// The tenant it belongs to.
    pub tenant_id: String,
    /// Its identifier.
    pub site_id: String,
    /// Its name, as visitors know it.
    pub name: String,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// A character visitors can speak to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its identifier.
    pub npc_id: String,
    /// Version of the profile, from 1.
    #[serde(default = "one")]
    pub version: u32,
    /// True if it is the version in use.
    #[serde(default = "yes")]
    pub active: bool,
    /// Its name.
    pub name: String,
    /// Its name as shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// What kind of character it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub npc_type: Option<String>,
    /// Identity, personality and constraints.
    #[serde(default)]
    pub persona: Map<String, Value>,
    /// What it knows about.
    #[serde(default)]
    pub knowledge_domains: Vec<String>,
    /// How it may greet.
    #[serde(default)]
    pub greeting_templates: Vec<String>,
    /// What it says when it does not know.
    #[serde(default)]
    pub fallback_responses: Vec<String>,
    /// Longest answer, in characters.
    #[serde(default = "five_hundred")]
    pub max_response_length: u32,
    /// True if it must name its sources.
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

/// A text of the site: knowledge, a story, a point of interest, a route.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// Its identifier.
    pub id: String,
    /// What kind of text it is.
    pub content_type: String,
    /// Its title.
    pub title: String,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The text.
    #[serde(default)]
    pub body: String,
    /// Its category.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Its tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The fields of knowledge it belongs to.
    #[serde(default)]
    pub domains: Vec<String>,
    /// Where it is from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// How far it can be trusted, from 0 to 1.
    #[serde(default = "full")]
    pub credibility_score: f64,
    /// True if somebody has checked it.
    #[serde(default)]
    pub verified: bool,
    /// `draft`, `review`, `published` or `offline`.
    #[serde(default = "published")]
    pub status: String,
    /// Anything else.
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

fn full() -> f64 {
    1.0
}

fn published() -> String {
    "published".into()
}

/// A prompt of a character that was written by hand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    /// The character.
    pub npc_id: String,
    /// `system`, `greeting` or `fallback`.
    #[serde(default = "system")]
    pub prompt_type: String,
    /// Version of the prompt, from 1.
    #[serde(default = "one")]
    pub version: u32,
    /// True if it is the version in use.
    #[serde(default = "yes")]
    pub active: bool,
    /// The text.
    pub content: String,
    /// Anything else.
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

fn system() -> String {
    "system".into()
}

/// Everything of one site, as it is imported.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    /// The site.
    pub site: Site,
    /// Its characters.
    pub profiles: Vec<Profile>,
    /// Its texts, points and routes.
    pub contents: Vec<Content>,
    /// Its prompts.
    pub prompts: Vec<Prompt>,
    /// Changes when anything of it does.
    pub digest: String,
}

/// What to search for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Query {
    /// The words.
    pub text: String,
    /// Only this kind of content.
    pub content_type: Option<String>,
    /// Only contents with one of these tags; any when empty.
    pub tags: Vec<String>,
    /// Only contents with this status.
    pub status: String,
    /// Most contents to return.
    pub limit: u32,
}

/// A content that was read, with what is made of it to be shown: once, for as long as it is kept.
#[derive(Debug, Clone)]
pub struct CachedContent {
    content: Content,
    shown: OnceLock<Box<str>>,
}

impl CachedContent {
    /// Returns how the content is shown, which `show` makes of it when nobody asked before: always
    /// the same.
    pub fn shown(&self, show: impl FnOnce(&Content) -> Box<str>) -> &str {
        self.shown.get_or_init(|| show(&self.content))
    }
}

impl From<Content> for CachedContent {
    fn from(content: Content) -> Self {
        let shown = OnceLock::new();
        Self { content, shown }
    }
}

impl Deref for CachedContent {
    type Target = Content;

    fn deref(&self) -> &Content {
        &self.content
    }
}

impl PartialEq for CachedContent {
    fn eq(&self, other: &Self) -> bool {
        self.content == other.content
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResult {
    /// The best contents.
    pub items: Vec<Arc<CachedContent>>,
    /// How many there are in all.
    pub total: u64,
}

/// A text to be checked by somebody before it is published.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// What it says; its status is always that of a draft.
    pub content: Content,
    /// Who wrote it.
    pub author: String,
}

/// Something a visitor did.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// What it was.
    pub event_type: String,
    /// More about it.
    pub data: Map<String, Value>,
    /// The visitor.
    pub user_id: Option<String>,
    /// The visit.
    pub session_id: Option<String>,
    /// The trace of the call.
    pub trace_id: String,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteReceipt {
    /// Its new identifier.
    pub id: String,
    /// When.
    pub at: String,
}

/// A call that may be repeated without effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepeatKey {
    /// Who calls.
    pub principal: String,
    /// The tool.
    pub tool: String,
    /// The key the caller chose.
    pub key: String,
    /// Hash of the whole input.
    pub fingerprint: String,
}

/// What is known of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// It is new and belongs to this call now.
    New,
    /// The call was made; this was the answer.
    Done(Vec<u8>),
    /// The call was begun and has no answer.
    Begun,
    /// It was used for another input.
    Other,
}

/// Keeps the data of sites.
pub trait SiteStore: Send + Sync {
    /// Puts everything of a site in the place of what was imported of it before; returns whether
    /// anything was different.
    fn import(&self, bundle: Bundle, deadline: Instant) -> Pending<'_, bool>;

    /// Looks whether the data can be read and written now.
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
    fn search(&self, scope: &Scope, query: Query) -> Pending<'_, Arc<SearchResult>>;

    /// Returns the published contents of one type, by their order in the import.
    fn of_type(&self, scope: &Scope, content_type: &str) -> Pending<'_, Vec<Content>>;

    /// Keeps a draft.
    fn add_draft(&self, scope: &Scope, draft: Draft) -> Pending<'_, WriteReceipt>;

    /// Keeps an event.
    fn log_event(&self, scope: &Scope, event: Event) -> Pending<'_, WriteReceipt>;

    /// Takes a key for a call, or tells what it is taken for.
    fn claim(&self, scope: &Scope, key: RepeatKey) -> Pending<'_, Claim>;

    /// Keeps the answer of a call under its key.
    fn answer(&self, scope: &Scope, key: RepeatKey, answer: Vec<u8>) -> Pending<'_, ()>;

    /// Gives a key back: the call was not made.
    fn release(&self, scope: &Scope, key: RepeatKey) -> Pending<'_, ()>;
}
