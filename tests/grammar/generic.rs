//! Generic tools, of which the registry has none yet: every notation knows them.
