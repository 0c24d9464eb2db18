//! Ends the processes of a session, also those of one whose program was killed.

pub(crate) mod registry;
mod session_record;
pub(crate) mod stamp;
pub(crate) mod sweep;
