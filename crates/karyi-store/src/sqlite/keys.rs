//! Idempotency keys.
//!
//! A key is claimed durably before its call runs. If the server dies before the response, the key stays
//! claimed, since the effect of the call is unknown.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension};

use crate::StoreError;
use crate::site::{Claim, RepeatKey};
use karyi_core::limits;

/// Claims a key, or returns its state.
///
/// # Errors
/// The database cannot be written.
pub(super) fn claim(
    connection: &Connection,
    site: u64,
    key: &RepeatKey,
) -> Result<Claim, StoreError> {
    let now = Timestamp::now().as_second();
    let sql = "DELETE FROM repeat_keys WHERE created_second <= ?";
    connection
        .prepare_cached(sql)?
        .execute([now - limits::IDEMPOTENCY_SECONDS])?;
    let sql = "SELECT fingerprint, answer FROM repeat_keys \
        WHERE site = ? AND principal = ? AND tool = ? AND key = ?";
    let known = connection
        .prepare_cached(sql)?
        .query_row((site, &key.principal, &key.tool, &key.key), |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Option<Vec<u8>>>(1)?))
        })
        .optional()?;
    match known {
        Some((fingerprint, _)) if fingerprint != key.fingerprint => Ok(Claim::Other),
        Some((_, Some(answer))) => Ok(Claim::Done(answer)),
        Some((_, None)) => Ok(Claim::Begun),
        None => {
            let sql = "INSERT INTO repeat_keys (site, principal, tool, key, fingerprint, created_second) \
                VALUES (?, ?, ?, ?, ?, ?)";
            let row = (
                site,
                &key.principal,
                &key.tool,
                &key.key,
                &key.fingerprint,
                now,
            );
            connection.prepare_cached(sql)?.execute(row)?;
            Ok(Claim::New)
        }
    }
}

/// Stores the response of a call.
///
/// # Errors
/// The database cannot be written.
pub(super) fn answer(
    connection: &Connection,
    site: u64,
    key: &RepeatKey,
    answer: &[u8],
) -> Result<(), StoreError> {
    let sql = "UPDATE repeat_keys SET answer = ? \
        WHERE site = ? AND principal = ? AND tool = ? AND key = ?";
    let row = (answer, site, &key.principal, &key.tool, &key.key);
    connection.prepare_cached(sql)?.execute(row)?;
    Ok(())
}

/// Releases a key.
///
/// # Errors
/// The database cannot be written.
pub(super) fn release(
    connection: &Connection,
    site: u64,
    key: &RepeatKey,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM repeat_keys \
        WHERE site = ? AND principal = ? AND tool = ? AND key = ? AND answer IS NULL";
    let row = (site, &key.principal, &key.tool, &key.key);
    connection.prepare_cached(sql)?.execute(row)?;
    Ok(())
}
