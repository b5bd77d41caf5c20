//! MetricsQL: the names of series, and queries with places for their values. Main type: [`Text`].
//!
//! Invariant: everything in a query is encoded for a form, so that no value ends it.

use std::io::Write;

use super::rules::{LABEL, TIMES_MS};
use crate::database::http::request::encoded;
use crate::record::{Cell, Cells};

/// The time of queries that look at all times, in seconds: the last time that a point can have, and less than a millisecond.
pub(super) const END: &str = "4000000000.0004";
/// How far such queries look back: the first time that a point can have is the last one that they see.
pub(super) const ALL: &str = "3900000000001ms";

/// The marks for the length of a span and for a source: characters that are in no name of a program.
const SPAN: char = '\u{f8ff}';
const SOURCE: char = '\u{f8fe}';

/// Returns the place of a span's length in a query.
pub(super) fn span_mark() -> String {
    SPAN.to_string()
}

/// Returns the selector of all series of a table.
pub(super) fn of_table(table: &str) -> String {
    format!("{{{LABEL}={}}}", quoted(table))
}

/// Returns the name of the series with a column of a table.
pub(super) fn metric(table: &str, column: &str) -> String {
    format!("{table}_{column}")
}

/// Returns the selector of the series with a column of a table; those of one source, if there is a label for it.
pub(super) fn named(table: &str, column: &str, source: Option<&str>) -> String {
    let source = source.map_or(String::new(), |label| format!(",{label}=\"{SOURCE}\""));
    format!("{{__name__={},{LABEL}={}{source}}}", quoted(&metric(table, column)), quoted(table))
}

/// Returns a text in quotes.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns whether a name can be that of a label in a query.
pub(super) fn is_label(name: &str) -> bool {
    let is_first = |letter: char| letter.is_ascii_alphabetic() || letter == '_';
    name.starts_with(is_first) && name.chars().all(|letter| is_first(letter) || letter.is_ascii_digit())
}

/// Times that are asked for, in milliseconds since 1970, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub least_ms: i64,
    pub most_ms: i64,
}

impl Span {
    /// All times that a point can have.
    pub(super) const ALL: Span = Span { least_ms: *TIMES_MS.start(), most_ms: *TIMES_MS.end() };

    /// Returns the length of the window that ends with the last time and sees the first: a window does not see the time at which it begins.
    pub(super) fn window_ms(self) -> i64 {
        self.most_ms - self.least_ms + 1
    }

    /// Returns the times that are in both, or the time before all points where none is.
    pub(super) fn within(self, other: Span) -> Span {
        let (least_ms, most_ms) = (self.least_ms.max(other.least_ms), self.most_ms.min(other.most_ms));
        let none_ms = Span::ALL.least_ms - 1;
        if least_ms > most_ms { Span { least_ms: none_ms, most_ms: none_ms } } else { Span { least_ms, most_ms } }
    }
}

/// Appends a time in seconds, which the server multiplies by 1,000 and cuts: four tenths of a millisecond keep it from cutting to the one before.
pub(super) fn append_time(time_ms: i64, out: &mut Vec<u8>) {
    // Writing into a vector cannot fail.
    let _ = write!(out, "{}.{:03}4", time_ms / 1_000, time_ms % 1_000);
}

/// Returns the value in a place as a whole number.
///
/// # Errors
/// A sentence: it is none.
pub(super) fn int(cells: &Cells, place: usize) -> Result<i64, String> {
    match cells.get(place) {
        Cell::Int(value) => Ok(value),
        _ => Err("a source or a time is no whole number".to_owned()),
    }
}

/// A text in a form, cut at its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    /// Each is encoded, with the mark behind it.
    pieces: Vec<(Vec<u8>, Option<char>)>,
}

impl Text {
    /// Creates it from a text with marks in the places of its values.
    pub(super) fn new(text: &str) -> Self {
        let pieces = text.split_inclusive([SPAN, SOURCE]).map(|piece| {
            let mark = piece.chars().next_back().filter(|last| [SPAN, SOURCE].contains(last));
            (encoded(piece.trim_end_matches([SPAN, SOURCE])).into_bytes(), mark)
        });
        Text { pieces: pieces.collect() }
    }

    /// Appends it with its values.
    pub(super) fn append(&self, span_ms: i64, source: i64, out: &mut Vec<u8>) {
        for (piece, mark) in &self.pieces {
            out.extend_from_slice(piece);
            // Writing into a vector cannot fail.
            match *mark {
                Some(SPAN) => drop(write!(out, "{span_ms}ms")),
                Some(_) => drop(write!(out, "{source}")),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_places_in_a_text() {
        let selector = named("t \"1\\", "v", Some("source_id"));
        let text = Text::new(&format!("sum(count_over_time({selector}[{}])) by", span_mark()));
        let mut out = Vec::new();
        text.append(5_000, -7, &mut out);
        let right = encoded(
            "sum(count_over_time({__name__=\"t \\\"1\\\\_v\",loadline=\"t \\\"1\\\\\",source_id=\"-7\"}[5000ms])) by",
        );
        assert_eq!(String::from_utf8(out).unwrap(), right);
    }

    #[test]
    fn times_are_exact_and_spans_have_both_ends() {
        let mut out = Vec::new();
        append_time(1_700_000_003_003, &mut out);
        assert_eq!(out, b"1700000003.0034");
        let all = Span::ALL;
        assert_eq!((format!("{}ms", all.window_ms()), all.most_ms), (ALL.to_owned(), 4_000_000_000_000));
        let own = Span { least_ms: 0, most_ms: all.least_ms };
        assert_eq!(own.within(all), Span { least_ms: all.least_ms, most_ms: all.least_ms });
        assert_eq!(Span { most_ms: 5, ..own }.within(all).most_ms, all.least_ms - 1);
        assert!(is_label("source_id") && !is_label("so urce") && !is_label("1a") && !is_label(""));
    }
}
