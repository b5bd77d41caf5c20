//! Errors of lines, with their places.

use std::fmt;

/// An error in a line, which is therefore no point. Shown as `line 3, column 17: …`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct LineError {
    /// The line in the batch, from 1. A string may contain line ends, so this is where the error is, not always where the point began.
    pub line: usize,
    /// The column, in bytes from 1.
    pub column: usize,
    /// The message: what was found and what must be there.
    pub message: String,
}

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

/// Returns a few bytes of input for messages: printable, and shortened.
pub(super) fn shown(bytes: &[u8]) -> String {
    const BYTES_MAX: usize = 40;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(BYTES_MAX)]);
    let dots = if bytes.len() > BYTES_MAX { "…" } else { "" };
    format!("\"{}{dots}\"", text.escape_debug())
}
