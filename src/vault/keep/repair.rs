//! Makes the index say what the store holds.

use crate::error::{ErrorCode, ToolError};
use crate::secret::SecretName;
use crate::vault::index::Index;
use crate::vault::keep::rows::{self, Row, State};
use crate::vault::keep::{Terms, Vault};

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

    /// Makes the index say what the store holds. Returns the names that were added and removed; what is damaged
    /// stays as it is.
    ///
    /// # Errors
    /// What the store or the system says.
    pub fn repair(&self) -> Result<(Vec<SecretName>, Vec<SecretName>), ToolError> {
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        for row in self.rows()? {
            match row.state {
                State::Kept | State::Unknown | State::Elsewhere => {}
                State::MissingValue => {
                    self.remove(&row.name)?;
                    removed.push(row.name);
                }
                State::Untracked => {
                    let policy = match self.get(&row.name) {
                        Ok(record) => record.policy,
                        Err(error) if error.code == ErrorCode::BadVault => continue,
                        Err(error) => return Err(error),
                    };
                    let terms = Terms { note: None, policy };
                    Index::change(&self.directory, |index| {
                        self.list_in(index, &row.name, &terms);
                        Ok(())
                    })?;
                    added.push(row.name);
                }
            }
        }
        Ok((added, removed))
    }
}
