//! The six tools of ToolsXML v1.0.

pub mod command;
pub mod ctrl;
pub mod edit;
pub mod get_value;
pub mod input;
pub mod read;
