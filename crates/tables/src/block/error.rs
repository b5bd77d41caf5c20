//! Errors of a block, [`BlockError`], and of a key, [`KeyError`].

/// Why a block is refused: the step at which it failed, and what was found there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// There is no signature before the ciphertext.
    #[error("form: {0}")]
    Form(String),
    /// The signature does not hold, or belongs to nobody who may sign for this camera.
    #[error("signature: {0}")]
    Signature(String),
    /// The block cannot be decrypted with any of the keys, or the ciphertext is damaged.
    #[error("encryption: {0}")]
    Encryption(String),
    /// The content cannot be decompressed within the bounds.
    #[error("compression: {0}")]
    Compression(String),
    /// The archive does not consist of exactly the two files.
    #[error("archive: {0}")]
    Archive(String),
    /// The record is invalid.
    #[error("violation.xml: {0}")]
    Record(String),
    /// The image is invalid.
    #[error("image.jpg: {0}")]
    Image(String),
}

/// Why a key or a list of keys cannot be used: a sentence with place, value and remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeyError(pub String);
