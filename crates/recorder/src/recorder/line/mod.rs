//! InfluxDB line protocol, as clients send it: `measurement,tag=a field=1.5,count=3i 1700000000000000000`.
//!
//! Main types: [`Parser`], which goes through a batch, and [`Point`], one line of it. The parser accepts what the
//! InfluxDB reference describes: escapes, quoted strings that may hold line ends, the five kinds of field values, time stamps in
//! six precisions, comments, empty lines and lines ended by CR LF.
//!
//! Invariant: any bytes are either points or errors with line and column; nothing panics, a bad line never hides the good ones
//! behind it, and the work is linear in the bytes.

mod bounds;
mod error;
mod number;
mod parse;
mod precision;
mod text;
mod write;

pub use bounds::LineBounds;
pub use error::LineError;
pub use parse::{Parser, Point, whole_lines};
pub use precision::Precision;
pub use text::Text;
pub use write::{OwnedPoint, OwnedValue, write_point};

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// `1.5`, always finite.
    Float(f64),
    /// `3i`
    Int(i64),
    /// `3u`
    Unsigned(u64),
    /// `t`, `true`, `f`, `false` and their capital forms.
    Boolean(bool),
    /// `"text"`, with its escapes.
    Text(Text<'a>),
}

impl Value<'_> {
    /// Returns the name of the kind in messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Float(_) => "float",
            Value::Int(_) => "integer",
            Value::Unsigned(_) => "unsigned integer",
            Value::Boolean(_) => "boolean",
            Value::Text(_) => "text",
        }
    }
}
