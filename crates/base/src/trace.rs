//! Traces: statements that ran on a database, each with its time, session and values, as `loadline capture` writes them and the workload `replay`
//! sends them.
//!
//! Main types: [`Trace`], the content of a file, and [`Replay`], the part of it that is sent, by connection. Invariant: the statements of a session are sent
//! in their order over one connection, and no connection carries two sessions at once.

mod form;
mod select;
mod values;

use crate::record::Cells;

pub use form::{End, Head, Named, Sum, VERSION};
pub use select::{KINDS_MOST, PREPARED_MOST, Replay, Sent};
pub use values::{Value, append_value};

/// Largest number of different statements in a trace.
pub const STATEMENTS_MOST: usize = 20_000;
/// Largest number of executed statements in a trace.
pub const EVENTS_MOST: usize = 50_000_000;
/// Largest size of all values together, in bytes.
pub const VALUES_BYTES_MOST: usize = 4 << 30;
/// Largest length of a line of the file, in bytes.
pub const LINE_BYTES_MOST: usize = 4 << 20;

/// The effect of a statement, as far as a replay has to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Does {
    /// The statement reads.
    Reads,
    /// The statement changes or locks rows.
    Writes,
    /// The statement begins a transaction.
    Begins,
    /// The statement ends a transaction.
    Ends,
    /// The statement sets a savepoint within a transaction, or goes back to one.
    Marks,
}

impl Does {
    /// Returns whether the statement only controls a transaction and asks for no data itself.
    pub fn is_control(self) -> bool {
        matches!(self, Does::Begins | Does::Ends | Does::Marks)
    }
}

/// A statement without its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedStatement {
    /// Name in results.
    pub name: String,
    /// Text, with `?` for each value.
    pub sql: String,
    /// Number of values.
    pub parameters: u32,
    /// Effect of the statement.
    pub does: Does,
}

/// One execution of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Time at which it was sent, in microseconds from the beginning of the trace.
    pub at_us: u64,
    /// Number of the session.
    pub session: u32,
    /// Index in [`Trace::statements`].
    pub statement: u16,
    /// Offset at which its values begin.
    pub values_at: u64,
}

/// Executed statements, in the order of their times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// All different statements.
    pub statements: Vec<TracedStatement>,
    /// The executed statements.
    pub events: Vec<Event>,
    /// The values of all executed statements, as [`append_value`] writes them.
    values: Vec<u8>,
    /// A checksum of the file, which distinguishes traces.
    pub sum: String,
}

impl Trace {
    /// Appends the values of an event to those of a request.
    #[inline]
    pub fn append_values(&self, event: &Event, to: &mut Cells) {
        let count = self.statements.get(usize::from(event.statement)).map_or(0, |statement| statement.parameters);
        values::read(self.values.get(event.values_at as usize..).unwrap_or_default(), count, to);
    }
}
