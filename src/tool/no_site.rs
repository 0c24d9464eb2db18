//! Stands in for the access to a site in a build without the feature `serve`.

/// A site: there is none.
#[derive(Clone)]
pub enum SiteAccess {}
