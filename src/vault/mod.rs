//! Names to values: the session's secrets, their way into commands and their way out of output.
