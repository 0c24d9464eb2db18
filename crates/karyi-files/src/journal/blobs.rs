//! Content-addressed store of the journal: each content is stored once under its hash.
//!
//! Contents are compressed and, with a key, encrypted. With a key the hash is keyed, too: otherwise the name
//! of a content would confirm a guess of it. The nonce is a part of that hash, so it only repeats for the
//! same content. Blobs that undo needs are synced; after a power loss others may be damaged, which their hash
//! reveals.

use std::fs::{File, FileTimes};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use tempfile::NamedTempFile;

use crate::state_file;
use karyi_core::limits;

/// First byte of a compressed blob.
const PLAIN: u8 = 1;
/// First byte of a compressed and encrypted blob.
const ENCRYPTED: u8 = 2;
/// Compression level: the lowest is fast and shrinks text well.
const LEVEL: i32 = 1;

/// Size from which speed counts more than compression.
const LARGE_BYTES: usize = 8 << 20;
/// Compression level of large contents: twice as fast.
const LEVEL_OF_LARGE: i32 = -3;

/// Bytes of a large content compressed between two cancellation checks.
const PART_BYTES: usize = 1 << 20;

/// Failure that a stored blob survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Durability {
    /// The end of the process.
    Process,
    /// A power loss, too.
    PowerLoss,
}

/// Blob ready to be stored. Dropping it leaves nothing behind.
#[derive(Debug)]
pub(in super::super) struct PreparedBlob {
    name: String,
    path: PathBuf,
    size: u64,
    state: BlobState,
}

#[derive(Debug)]
enum BlobState {
    /// The blob is already in the store.
    Existing(File),
    /// A temporary file without its final name.
    Written(NamedTempFile),
}

impl PreparedBlob {
    /// Returns the size of the content.
    pub(super) fn size(&self) -> u64 {
        self.size
    }
}

/// Blobs in one directory.
pub(super) struct Blobs {
    directory: PathBuf,
    keys: Option<Keys>,
}

/// Hexadecimal digits in the name of a key.
const KEY_NAME_DIGITS: usize = 16;

/// Keys derived from the key of the journal.
struct Keys {
    name: String,
    naming: [u8; 32],
    cipher: XChaCha20Poly1305,
}

impl Blobs {
    /// Opens a store in an existing directory.
    pub(super) fn new(directory: PathBuf, key: Option<&[u8; 32]>) -> Self {
        let keys = key.map(|key| Keys {
            name: key_name(key),
            naming: blake3::derive_key("karyi journal names of contents", key),
            cipher: XChaCha20Poly1305::new(
                &blake3::derive_key("karyi journal contents", key).into(),
            ),
        });
        Self { directory, keys }
    }

    /// Returns the name of the key, which reveals nothing else about it.
    pub(super) fn key_name(&self) -> Option<&str> {
        self.keys.as_ref().map(|keys| keys.name.as_str())
    }

    /// Tells whether contents are encrypted.
    pub(super) fn is_encrypted(&self) -> bool {
        self.keys.is_some()
    }

    /// Returns the name of a content.
    pub(super) fn name(&self, bytes: &[u8]) -> String {
        self.hash(bytes).to_hex().to_string()
    }

    fn hash(&self, bytes: &[u8]) -> blake3::Hash {
        match &self.keys {
            Some(keys) => blake3::keyed_hash(&keys.naming, bytes),
            None => blake3::hash(bytes),
        }
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        let is_name = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (start, rest) = name.split_at_checked(2).filter(|_| is_name)?;
        Some(self.directory.join(start).join(rest))
    }

    /// Compresses and encrypts a content into a temporary file while `is_live` holds; [`Self::store`]
    /// completes it.
    pub(super) fn prepare(
        &self,
        bytes: &[u8],
        is_live: &dyn Fn() -> bool,
    ) -> io::Result<PreparedBlob> {
        let hash = self.hash(bytes);
        let name = hash.to_hex().to_string();
        let path = self.path(&name).ok_or(io::ErrorKind::InvalidInput)?;
        let state = match self.existing(&path, &name, bytes) {
            Some(file) => BlobState::Existing(file),
            None => BlobState::Written(write(&path, &self.seal(&hash, bytes, is_live)?)?),
        };
        let size = bytes.len() as u64;
        Ok(PreparedBlob {
            name,
            path,
            size,
            state,
        })
    }

    /// Stores a prepared blob; returns its name.
    pub(super) fn store(
        &self,
        prepared: PreparedBlob,
        durability: Durability,
    ) -> io::Result<String> {
        let (file, is_new) = match prepared.state {
            BlobState::Existing(file) => (file, false),
            BlobState::Written(file) => (file.persist(&prepared.path)?, true),
        };
        if durability == Durability::PowerLoss {
            file.sync_data()?;
            if let Some(directory) = prepared.path.parent().filter(|_| is_new) {
                super::sync_directory(directory);
                super::sync_directory(&self.directory);
            }
        }
        Ok(prepared.name)
    }

    /// Tells whether a blob of this name exists and is not empty.
    pub(super) fn exists(&self, name: &str) -> bool {
        let found = self.path(name).and_then(|path| path.metadata().ok());
        found.is_some_and(|found| found.len() > 1)
    }

    /// Opens the blob of a content that is already stored intact.
    fn existing(&self, path: &Path, name: &str, bytes: &[u8]) -> Option<File> {
        let file = state_file::open_to_read(path).ok()?;
        // Pruning may be about to remove an unreferenced blob; it spares recent ones.
        let now = FileTimes::new().set_modified(SystemTime::now());
        file.set_times(now).ok()?;
        self.get(name, bytes.len() as u64)
            .is_ok_and(|existing| existing == bytes)
            .then_some(file)
    }

    /// Returns a blob as it is written: its first byte, and the rest.
    fn seal(
        &self,
        hash: &blake3::Hash,
        bytes: &[u8],
        is_live: &dyn Fn() -> bool,
    ) -> io::Result<(u8, Vec<u8>)> {
        let compressed = compress(bytes, is_live)?;
        let Some(keys) = &self.keys else {
            return Ok((PLAIN, compressed));
        };
        let sealed = keys.cipher.encrypt(&nonce(hash)?, compressed.as_slice());
        Ok((ENCRYPTED, sealed.map_err(|_| io::ErrorKind::Other)?))
    }

    /// Returns a content, which should have this size.
    ///
    /// # Errors
    /// It is missing, encrypted with another key, or damaged.
    pub(super) fn get(&self, name: &str, size: u64) -> io::Result<Vec<u8>> {
        let path = self.path(name).ok_or(io::ErrorKind::InvalidInput)?;
        let mut stored = Vec::new();
        let most = limits::MAX_EDIT_FILE_BYTES + limits::MAX_EDIT_FILE_BYTES / 8;
        state_file::open_to_read(&path)?
            .take(most)
            .read_to_end(&mut stored)?;
        let broken = || io::Error::from(io::ErrorKind::InvalidData);
        let (kind, body) = stored.split_first().ok_or_else(broken)?;
        let opened;
        let compressed = match (*kind, &self.keys) {
            (PLAIN, _) => body,
            (ENCRYPTED, Some(keys)) => {
                let hash = blake3::Hash::from_hex(name).map_err(|_| broken())?;
                let plain = keys.cipher.decrypt(&nonce(&hash)?, body);
                opened = plain.map_err(|_| broken())?;
                &opened
            }
            _ => return Err(broken()),
        };
        let bytes = decompress(compressed, size)?;
        let is_same = self.name(&bytes) == name || blake3::hash(&bytes).to_hex().as_str() == name;
        if is_same { Ok(bytes) } else { Err(broken()) }
    }

    /// Lists all stored blobs.
    pub(super) fn list(&self) -> Vec<StoredBlob> {
        let read = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten();
        let mut existing = Vec::new();
        for start in read(&self.directory) {
            for entry in read(&start.path()) {
                let Ok(found) = entry.metadata() else {
                    continue;
                };
                let name = [start.file_name(), entry.file_name()]
                    .map(|part| part.to_string_lossy().into_owned())
                    .concat();
                existing.push(StoredBlob {
                    name,
                    path: entry.path(),
                    bytes: found.len(),
                    changed: found.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                });
            }
        }
        existing
    }
}

/// Stored blob.
pub(super) struct StoredBlob {
    /// Name.
    pub(super) name: String,
    /// File.
    pub(super) path: PathBuf,
    /// Bytes on the disk.
    pub(super) bytes: u64,
    /// Time of its last use.
    pub(super) changed: SystemTime,
}

fn key_name(key: &[u8; 32]) -> String {
    let derived = blake3::derive_key("karyi journal name of the key", key);
    let digits = blake3::Hash::from_bytes(derived).to_hex();
    digits.chars().take(KEY_NAME_DIGITS).collect()
}

fn nonce(hash: &blake3::Hash) -> io::Result<XNonce> {
    let part = hash.as_bytes().get(..24).ok_or(io::ErrorKind::Other)?;
    let part: [u8; 24] = part.try_into().map_err(|_| io::ErrorKind::Other)?;
    Ok(part.into())
}

/// Writes a blob to a temporary file beside its final path.
fn write(path: &Path, (kind, body): &(u8, Vec<u8>)) -> io::Result<NamedTempFile> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    super::super::locks::make_private(directory)?;
    let mut file = NamedTempFile::new_in(directory)?;
    file.write_all(&[*kind])?;
    file.write_all(body)?;
    Ok(file)
}

fn compress(bytes: &[u8], is_live: &dyn Fn() -> bool) -> io::Result<Vec<u8>> {
    if bytes.len() < LARGE_BYTES {
        return zstd::bulk::compress(bytes, LEVEL);
    }
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), LEVEL_OF_LARGE)?;
    for part in bytes.chunks(PART_BYTES) {
        if !is_live() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        encoder.write_all(part)?;
    }
    encoder.finish()
}

/// Allocates the expected size at once: growing would copy the data and triple the peak memory.
fn decompress(compressed: &[u8], size: u64) -> io::Result<Vec<u8>> {
    let size = size.min(limits::MAX_EDIT_FILE_BYTES);
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    zstd::stream::read::Decoder::new(compressed)?
        .take(limits::MAX_EDIT_FILE_BYTES + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(blobs: &Blobs, bytes: &[u8]) -> String {
        let prepared = blobs.prepare(bytes, &|| true).unwrap();
        blobs.store(prepared, Durability::PowerLoss).unwrap()
    }

    #[test]
    fn a_cancelled_preparation_leaves_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(temp.path().into(), None);
        let bytes = vec![b'x'; LARGE_BYTES + 1];
        let checks = std::cell::Cell::new(0);
        let is_live = || {
            checks.set(checks.get() + 1);
            checks.get() < 3
        };
        let error = blobs.prepare(&bytes, &is_live).unwrap_err();
        assert_eq!(
            (error.kind(), checks.get()),
            (io::ErrorKind::Interrupted, 3)
        );
        drop(blobs.prepare(&bytes, &|| true).unwrap());
        assert!(blobs.list().is_empty());
        let name = put(&blobs, &bytes);
        assert_eq!(blobs.get(&name, 0).unwrap(), bytes);
    }

    #[test]
    fn contents_are_returned_intact_or_not_at_all() {
        let temp = tempfile::tempdir().unwrap();
        let (plain, key) = (Blobs::new(temp.path().into(), None), [7; 32]);
        let sealed = Blobs::new(temp.path().into(), Some(&key));
        for bytes in [&b""[..], b"one", &[b'x'; 100_000]] {
            let store = |blobs: &Blobs| put(blobs, bytes);
            let (a, b) = (store(&plain), store(&sealed));
            assert_ne!(a, b);
            assert_eq!(plain.get(&a, 0).unwrap(), bytes);
            // Plain blobs stay readable once there is a key.
            assert_eq!(sealed.get(&a, 5).unwrap(), bytes);
            assert_eq!(sealed.get(&b, 0).unwrap(), bytes);
            assert!(plain.get(&b, 0).is_err());
            let other = Blobs::new(temp.path().into(), Some(&[8; 32]));
            assert!(other.get(&b, 0).is_err());
        }
        let name = put(&plain, b"broken");
        for broken in [&[][..], &[PLAIN], &[PLAIN, 1, 2, 3]] {
            std::fs::write(plain.path(&name).unwrap(), broken).unwrap();
            assert!(plain.get(&name, 6).is_err());
            // Storing it again repairs it.
            assert_eq!(put(&plain, b"broken"), name);
            assert_eq!(plain.get(&name, 6).unwrap(), b"broken");
        }
        assert!(plain.get("../../etc/passwd", 0).is_err());
    }

    #[test]
    fn encrypted_blobs_do_not_contain_the_text() {
        let temp = tempfile::tempdir().unwrap();
        let sealed = Blobs::new(temp.path().into(), Some(&[7; 32]));
        let text = b"a short secret";
        let name = put(&sealed, text);
        let stored = std::fs::read(sealed.path(&name).unwrap()).unwrap();
        assert!(
            !stored
                .windows(6)
                .any(|part| text.windows(6).any(|t| t == part))
        );
        assert_ne!(name, blake3::hash(text).to_hex().as_str());
    }
}
