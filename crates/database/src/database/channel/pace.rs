//! Kinds of requests by the time that their answers may take. Main type: [`Pace`].

/// The kind of a request, which determines the limit for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// A step of the login.
    Login,
    /// An ordinary statement.
    Usual,
    /// A statement that changes a table or deletes many rows.
    Change,
}
