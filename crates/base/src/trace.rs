//! Traces: statements that ran on a database, each with its time, session and values, as `loadline capture` writes them and the workload `replay`
//! sends them.
//!
//! Main types: [`Trace`], what a file has, and [`Replay`], what of it is sent over which connection. Invariant: the statements of a session are sent in
//! their order over one connection, and no connection has those of two sessions at once.

mod form;
mod select;
mod values;

use crate::record::Cells;

pub use form::{End, Head, Named, Sum, VERSION};
pub use select::{KINDS_MOST, PREPARED_MOST, Replay, Sent};
pub use values::{Value, append_value};

/// Different statements of a trace, at most.
pub const STATEMENTS_MOST: usize = 20_000;
/// Statements that ran, at most.
pub const EVENTS_MOST: usize = 50_000_000;
/// Bytes of all values together, at most.
pub const VALUES_BYTES_MOST: usize = 4 << 30;
/// Bytes of a line of the file, at most.
pub const LINE_BYTES_MOST: usize = 4 << 20;

/// What a statement does, as far as a replay has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Does {
    /// It reads.
    Reads,
    /// It changes or locks rows.
    Writes,
    /// It begins a transaction.
    Begins,
    /// It ends one.
    Ends,
    /// It makes a point within a transaction, or goes back to one.
    Marks,
}

impl Does {
    /// Whether it is about a transaction, and asks for nothing itself.
    pub fn is_control(self) -> bool {
        matches!(self, Does::Begins | Does::Ends | Does::Marks)
    }
}

/// A statement, whatever its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedStatement {
    /// What it is called in results.
    pub name: String,
    /// Its text, with `?` for each value.
    pub sql: String,
    /// How many values it has.
    pub parameters: u32,
    /// What it does.
    pub does: Does,
}

/// One statement that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When it was sent, in microseconds from the beginning of the trace.
    pub at_us: u64,
    /// In which session.
    pub session: u32,
    /// Which statement.
    pub statement: u16,
    /// Where its values begin.
    pub values_at: u64,
}

/// Statements that ran, in the order of their times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// All different statements.
    pub statements: Vec<TracedStatement>,
    /// Those that ran.
    pub events: Vec<Event>,
    /// The values of all, as [`append_value`] writes them.
    values: Vec<u8>,
    /// A sum over the file, by which traces are told apart.
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
