//! Files of a project for an assistant: notes, skills and custom commands.
//!
//! Everything here takes paths and returns texts. A file outside the project is not read, also when a link leads there.
//! Nothing that a file says is run.

pub mod commands;
pub mod deeper_notes;
mod front_matter;
mod imports;
pub mod note_files;
mod project_file;
pub mod skills;
