//! What can go wrong with the inbox: [`InboxError`].

/// Why an upload is not taken in, or the inbox cannot be worked on. A sentence with place, value and remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InboxError {
    /// The name of a block or camera would not do as the name of a file.
    #[error("{0}")]
    Name(String),
    /// A block of this name waits already and has other content.
    #[error("a block named \"{0}\" waits already and has other content; give every block a name of its own")]
    Exists(String),
    /// The block is larger than blocks may be.
    #[error("the block has more than {0} bytes; make smaller ones")]
    TooLarge(u64),
    /// There is no room now, for this camera or for all: to be sent again later.
    #[error("{0}")]
    Full(String),
    /// A sync failed: nothing is acknowledged any more, until a new process has looked at what is on the disk.
    #[error("the inbox is broken: {0}; look after the disk and start again")]
    Broken(String),
    /// The folder cannot be made, read or locked.
    #[error("inbox {path}: {reason}")]
    Unusable {
        /// Where.
        path: String,
        /// Why.
        reason: String,
    },
}

impl InboxError {
    /// Whether sending the same again later may help.
    pub fn is_temporary(&self) -> bool {
        matches!(self, InboxError::Full(_) | InboxError::Broken(_) | InboxError::Unusable { .. })
    }
}
