//! Tools of a site: content and characters of a place for visitors.
//!
//! They run only in a server, each call for one tenant and one site.

pub mod create_draft_content;
pub mod get_npc_profile;
pub mod get_prompt_active;
pub mod get_site_map;
pub mod log_user_event;
pub mod search_content;
