//! The tools of ToolsXML v1.0, and `plan`.

pub mod command;
pub mod ctrl;
pub mod edit;
pub mod get_value;
pub mod input;
pub mod plan;
pub mod read;
