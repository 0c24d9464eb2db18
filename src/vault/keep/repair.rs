//! Makes the index say what the store holds.

use crate::error::{ErrorCode, ToolError};
use crate::secret::SecretName;
use crate::vault::index::Index;
use crate::vault::keep::rows::{self, Row, State};
use crate::vault::keep::{Terms, Vault};
use crate::vault::store::Kind;

impl Vault {
    /// Lists what index and store know, without reading a value.
    ///
    /// # Errors
    /// What the store or the system says.
    pub fn rows(&self) -> Result<Vec<Row>, ToolError> {
        let kept = self.store.list()?;
        let index = Index::read(&self.directory)?;
        Ok(rows::rows(&index, Some(self.chosen.kind), Some(&kept)))
    }

    /// Makes the index say what the store holds, and changes nothing in the store. Returns the names that were added
    /// and removed; what is damaged stays as it is.
    ///
    /// # Errors
    /// What the store or the system says.
    pub fn repair(&self) -> Result<(Vec<SecretName>, Vec<SecretName>), ToolError> {
        // Opened before the lock, and listed under it: what is kept meanwhile is no lost name.
        self.store.list()?;
        self.locked(|locked| {
            let kept = self.store.list()?;
            let mut index = locked.index().clone();
            let rows = rows::rows(&index, Some(self.chosen.kind), Some(&kept));
            let (mut added, mut removed) = (Vec::new(), Vec::new());
            for row in rows {
                match row.state {
                    State::Kept | State::Unknown | State::Elsewhere => {}
                    State::MissingValue => {
                        index.names.remove(row.name.as_str());
                        removed.push(row.name);
                    }
                    State::Untracked => {
                        let policy = match self.get(&row.name) {
                            Ok(record) => record.policy,
                            Err(error) if error.code == ErrorCode::BadVault => continue,
                            Err(error) => return Err(error),
                        };
                        let terms = Terms { note: None, policy };
                        self.list_in(&mut index, &row.name, &terms);
                        added.push(row.name);
                    }
                }
            }
            // What was going when a removal broke off, and is gone.
            index
                .names
                .retain(|name, listed| !listed.is_going || kept.iter().any(|k| k.as_str() == name));
            // A file that could be read and holds no name is listed, too.
            if self.chosen.kind == Kind::Age {
                index.store.get_or_insert_with(|| self.chosen.clone());
            }
            if index != *locked.index() || locked.index().settled().is_none() {
                locked.around(index.clone(), index, || Ok(()))?;
            }
            Ok((added, removed))
        })
    }
}
