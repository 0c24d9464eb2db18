//! Ends the processes of sessions, including those whose program was killed.

pub(crate) mod registry;
mod session_record;
pub(crate) mod stamp;
pub(crate) mod sweep;
