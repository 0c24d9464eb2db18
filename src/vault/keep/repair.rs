//! Makes the index say what the store holds.

use std::collections::BTreeSet;

use crate::error::{ErrorCode, ToolError};
use crate::secret::SecretName;
use crate::vault::index::{Index, Listed};
use crate::vault::keep::rows::{self, Row, State};
use crate::vault::keep::{Terms, Vault};
use crate::vault::store::Kind;
use crate::vault::store::record::Record;

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
        self.locked(|own, locked| {
            let kept = own.store.list()?;
            let mut index = locked.index().clone();
            let rows = rows::rows(&index, Some(own.chosen.kind), Some(&kept));
            let (mut added, mut removed) = (Vec::new(), Vec::new());
            for row in rows {
                match row.state {
                    State::Kept | State::Unknown | State::Elsewhere => {}
                    State::MissingValue => {
                        index.names.remove(row.name.as_str());
                        removed.push(row.name);
                    }
                    State::Untracked => {
                        let record = match own.get(&row.name) {
                            Ok(record) => record,
                            Err(error) if error.code == ErrorCode::BadVault => continue,
                            Err(error) => return Err(error),
                        };
                        own.list_again(&mut index, &row, record);
                        added.push(row.name);
                    }
                }
            }
            // What was going when a removal broke off, and is gone.
            let kept: BTreeSet<&str> = kept.iter().map(SecretName::as_str).collect();
            let is_gone = |name: &str, listed: &Listed| {
                let is_own = listed.store == own.chosen.kind;
                listed.is_going && is_own && !kept.contains(name)
            };
            index.names.retain(|name, listed| !is_gone(name, listed));
            // A file that could be read and holds no name is listed, too.
            if own.chosen.kind == Kind::Age {
                index.store.get_or_insert_with(|| own.chosen.clone());
            }
            if index != *locked.index() || locked.index().settled().is_none() {
                locked.around(index.clone(), index, || Ok(()))?;
            }
            Ok((added, removed))
        })
    }

    /// Lists what the store has, with the note and the dates of its record; where that has none, with those of a
    /// removal that broke off.
    fn list_again(&self, index: &mut Index, row: &Row, record: Record) {
        let listed = row.listed.as_ref();
        let known = record
            .facts
            .or(listed.map(Listed::facts).unwrap_or_default());
        let terms = Terms {
            note: None,
            policy: record.policy,
        };
        let updated = known.updated;
        self.list_in(index, &row.name, &terms, known);
        if let Some(new) = index.names.get_mut(row.name.as_str()) {
            new.updated = updated.unwrap_or(new.updated);
            new.used = listed.and_then(|old| old.used);
        }
    }
}
