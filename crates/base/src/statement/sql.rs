//! How a study's own SQL is sent. Main type: [`SqlForm`].

/// How a statement written in SQL by the user is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SqlForm {
    /// Prepared once.
    #[default]
    Prepared,
    /// Prepared once, or sent as text with its values in it where the database does not prepare it.
    Either,
    /// Sent as text with its values in it.
    Text,
}
