//! Errors of the inbox: [`InboxError`].

/// The reason why an upload is refused, or the inbox is unusable. A sentence with place, value and remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InboxError {
    /// The name of a block or camera is not allowed as the name of a file.
    #[error("{0}")]
    Name(String),
    /// A block of this name waits already, with other content.
    #[error("a block named \"{0}\" waits already and has other content; give every block a name of its own")]
    Exists(String),
    /// The block is larger than `inbox.block` allows.
    #[error("the block has more than {0} bytes; make smaller ones")]
    TooLarge(u64),
    /// There is no room now, for this camera or for all; the block can be sent again later.
    #[error("{0}")]
    Full(String),
    /// A sync failed: nothing is acknowledged any more, until a new process has read what is on the disk.
    #[error("the inbox is broken: {0}; look after the disk and start again")]
    Broken(String),
    /// The folder cannot be created, read or locked.
    #[error("inbox {path}: {reason}")]
    Unusable {
        /// The path.
        path: String,
        /// The reason.
        reason: String,
    },
}

impl InboxError {
    /// Returns whether sending the same block again later may help.
    pub fn is_temporary(&self) -> bool {
        matches!(self, InboxError::Full(_) | InboxError::Broken(_) | InboxError::Unusable { .. })
    }
}
