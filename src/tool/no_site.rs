//! Placeholder for site access in builds without the feature `serve`.

/// Site access, which such builds never have.
#[derive(Clone)]
pub enum SiteAccess {}
