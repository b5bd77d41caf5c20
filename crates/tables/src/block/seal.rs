//! Making a block, as a camera does. Main type: [`Sealer`].

use super::age::{self, Recipient};
use super::ssh::SigningKey;
use super::{BlockError, archive, image, signature, xml};
use crate::data::violation::Violation;

/// The lowest level of zstd: images are already compressed, and a camera's processor is small.
const LEVEL: i32 = 1;

/// Makes the blocks of one camera for one data centre.
pub struct Sealer {
    recipient: Recipient,
    key: SigningKey,
}

impl Sealer {
    /// Creates a sealer that encrypts for the data centre and signs with the camera's key.
    pub fn new(recipient: Recipient, key: SigningKey) -> Self {
        Sealer { recipient, key }
    }

    /// Makes a block of a record and its image.
    ///
    /// # Errors
    /// If the system has no random numbers, or the image is invalid.
    pub fn seal(&self, violation: &Violation, image: &[u8]) -> Result<Vec<u8>, BlockError> {
        image::check(image, u64::MAX)?;
        self.seal_files(xml::write(violation).as_bytes(), image, violation.time_ns)
    }

    /// Makes a block of any two files, including ones that an opener refuses.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn seal_files(&self, record: &[u8], image: &[u8], time_ns: i64) -> Result<Vec<u8>, BlockError> {
        let unix_s = u64::try_from(time_ns / 1_000_000_000).unwrap_or(0);
        self.seal_archive(&archive::write(record, image, unix_s))
    }

    /// Makes a block of an archive.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn seal_archive(&self, archive: &[u8]) -> Result<Vec<u8>, BlockError> {
        let compressed = zstd::bulk::compress(archive, LEVEL);
        self.seal_compressed(&compressed.map_err(|error| BlockError::Compression(error.to_string()))?)
    }

    /// Makes a block of compressed bytes.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn seal_compressed(&self, compressed: &[u8]) -> Result<Vec<u8>, BlockError> {
        let ciphertext = age::encrypt(compressed, &self.recipient)?;
        let mut block = signature::sign(&ciphertext, &self.key).into_bytes();
        block.extend_from_slice(&ciphertext);
        Ok(block)
    }
}
