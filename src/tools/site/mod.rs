//! The tools of a site: what services and models ask about a place for visitors.
//!
//! They run in a server only, each for one tenant and one site.

pub mod create_draft_content;
pub mod get_npc_profile;
pub mod get_prompt_active;
pub mod get_site_map;
pub mod log_user_event;
pub mod search_content;
