//! Pages of the web: their characters, their text for a reader, and the results of search engines.
//!
//! Nothing here asks for a page; that is `karyi-net`.

pub mod charset;
mod layout;
pub mod page;
mod references;
pub mod search;
mod tokens;
