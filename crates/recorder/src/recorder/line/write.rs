//! Writing points as lines: for quarantined records that are to be read again, and for tests. Main function: [`write_point`].

use std::fmt::Write;

/// A point that owns its values.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OwnedPoint {
    /// The name of the measurement; not empty.
    pub measurement: String,
    /// The tags; keys and values are not empty.
    pub tags: Vec<(String, String)>,
    /// The fields; at least one, keys not empty.
    pub fields: Vec<(String, OwnedValue)>,
    /// The time stamp, in units of the batch.
    pub time: Option<i64>,
}

/// The value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum OwnedValue {
    /// A finite number.
    Float(f64),
    /// A whole number.
    Int(i64),
    /// An unsigned whole number.
    Unsigned(u64),
    /// A boolean.
    Boolean(bool),
    /// Text.
    Text(String),
}

/// Appends a point as a line, with its line end.
pub fn write_point(point: &OwnedPoint, out: &mut String) {
    escape(&point.measurement, ", ", out);
    for (key, value) in &point.tags {
        out.push(',');
        escape(key, ",= ", out);
        out.push('=');
        escape(value, ",= ", out);
    }
    for (place, (key, value)) in point.fields.iter().enumerate() {
        out.push(if place == 0 { ' ' } else { ',' });
        escape(key, ",= ", out);
        out.push('=');
        // Writing to a string never fails.
        let _ = match value {
            OwnedValue::Float(value) => write!(out, "{value}"),
            OwnedValue::Int(value) => write!(out, "{value}i"),
            OwnedValue::Unsigned(value) => write!(out, "{value}u"),
            OwnedValue::Boolean(value) => write!(out, "{value}"),
            OwnedValue::Text(text) => {
                out.push('"');
                escape(text, "\"\\", out);
                out.write_char('"')
            }
        };
    }
    if let Some(time) = point.time {
        let _ = write!(out, " {time}");
    }
    out.push('\n');
}

fn escape(text: &str, escapable: &str, out: &mut String) {
    for character in text.chars() {
        if escapable.contains(character) {
            out.push('\\');
        }
        out.push(character);
    }
}
