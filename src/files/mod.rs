//! Reading, matching, writing and searching files.
