//! Making a block, as a camera does. Main type: [`Sealer`].

use super::age::{self, Recipient};
use super::ssh::SigningKey;
use super::{BlockError, archive, image, signature, xml};
use crate::data::violation::Violation;

/// The least of zstd's levels: images are compressed already, and a camera's processor is small.
const LEVEL: i32 = 1;

/// Makes blocks of one camera for one data centre.
pub struct Sealer {
    recipient: Recipient,
    key: SigningKey,
}

impl Sealer {
    /// Encrypts to the data centre, signs with the camera's key.
    pub fn new(recipient: Recipient, key: SigningKey) -> Self {
        Sealer { recipient, key }
    }

    /// A block of a record and its image.
    ///
    /// # Errors
    /// When the system has no random numbers, or the image is none.
    pub fn seal(&self, violation: &Violation, image: &[u8]) -> Result<Vec<u8>, BlockError> {
        image::check(image, u64::MAX)?;
        self.seal_files(xml::write(violation).as_bytes(), image, violation.time_ns)
    }

    /// A block of two files, whatever they are: what an opener refuses can be made as well.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn seal_files(&self, record: &[u8], image: &[u8], time_ns: i64) -> Result<Vec<u8>, BlockError> {
        let unix_s = u64::try_from(time_ns / 1_000_000_000).unwrap_or(0);
        self.seal_archive(&archive::write(record, image, unix_s))
    }

    /// A block of an archive.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn seal_archive(&self, archive: &[u8]) -> Result<Vec<u8>, BlockError> {
        let compressed = zstd::bulk::compress(archive, LEVEL);
        self.seal_compressed(&compressed.map_err(|error| BlockError::Compression(error.to_string()))?)
    }

    /// A block of something compressed.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn seal_compressed(&self, compressed: &[u8]) -> Result<Vec<u8>, BlockError> {
        let ciphertext = age::encrypt(compressed, &self.recipient)?;
        let mut block = signature::sign(&ciphertext, &self.key).into_bytes();
        block.extend_from_slice(&ciphertext);
        Ok(block)
    }
}
