//! What can be wrong with a block, [`BlockError`], and with a key, [`KeyError`].

/// Why a block is refused: at which step, and what was found there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// There is no signature before the ciphertext.
    #[error("form: {0}")]
    Form(String),
    /// The signature does not hold, or is of nobody who may sign for this camera.
    #[error("signature: {0}")]
    Signature(String),
    /// It cannot be decrypted with any of the keys, or the ciphertext is damaged.
    #[error("encryption: {0}")]
    Encryption(String),
    /// It cannot be decompressed within the bounds.
    #[error("compression: {0}")]
    Compression(String),
    /// The archive is not one of just the two files.
    #[error("archive: {0}")]
    Archive(String),
    /// The record is not what it should be.
    #[error("violation.xml: {0}")]
    Record(String),
    /// The image is not what it should be.
    #[error("image.jpg: {0}")]
    Image(String),
}

/// Why a key or a list of keys cannot be used. A sentence with place, value and remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeyError(pub String);
