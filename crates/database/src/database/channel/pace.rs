//! How long answers may take. Main type: [`Pace`].

/// What the other side is asked for, which says how long it may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// To let us in.
    Login,
    /// The answer to a statement.
    Usual,
    /// To change a table, or to delete much.
    Change,
}
