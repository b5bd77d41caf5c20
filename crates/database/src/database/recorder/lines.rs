//! Records as line protocol. Main type: [`Lines`].
//!
//! A record's time stamp is made from its number, so that it can be found where it is stored: nothing else in it identifies it.
//!
//! Invariant: a line has the record's columns and no others; the identity column that is filled in at the end of a measurement
//! is not a tag, because tags identify the source of a measurement and never change.

use std::io::Write;

use crate::record::{Cell, Cells, RecordType, time_of_number};
use crate::statement::Request;

/// The line format for the records of a type.
#[derive(Debug)]
pub struct Lines {
    /// The escaped name of the measurement.
    name: Vec<u8>,
    /// The indexes of the tags behind the record's number, with their escaped names.
    tags: Vec<(usize, Vec<u8>)>,
    fields: Vec<(usize, Vec<u8>)>,
    /// The number of cells of a record, including its number.
    width: usize,
    per_measurement: u64,
}

impl Lines {
    /// Creates the line format for a measurement of this name.
    pub fn new(name: &str, record_type: &RecordType, per_measurement: u64) -> Self {
        let escaped = |name: &str| {
            let mut out = Vec::new();
            escape(name.as_bytes(), b",= ", &mut out);
            out
        };
        let identity = record_type.identity.iter().enumerate();
        let (ends, tags): (Vec<_>, Vec<_>) = identity.partition(|(place, _)| record_type.identity_end == Some(*place));
        let values = record_type.values.iter().zip(record_type.identity.len()..).map(|(column, place)| (place, column));
        let named = |(place, column): (usize, &crate::record::Column)| (place + 1, escaped(&column.name));
        Lines {
            name: escaped(name),
            tags: tags.into_iter().map(named).collect(),
            fields: ends.into_iter().chain(values).map(named).collect(),
            width: 1 + record_type.identity.len() + record_type.values.len(),
            per_measurement: per_measurement.max(1),
        }
    }

    /// Appends the records of a request, each with its number in front. Returns the number of records.
    pub fn append(&self, request: &Request, out: &mut Vec<u8>) -> u64 {
        let mut records = 0;
        for step in &request.steps {
            let first = step.first_cell as usize;
            for row in request.cells.as_slice()[first..].chunks_exact(self.width).take(step.rows as usize) {
                self.line(&request.cells, row, out);
                records += 1;
            }
        }
        records
    }

    /// Returns the number of the measurement that a request's records belong to, which is their source.
    pub fn source(&self, request: &Request) -> u64 {
        let first = request.steps.first().map_or(0, |step| step.first_cell as usize);
        number(request.cells.as_slice().get(first).copied()) / self.per_measurement
    }

    fn line(&self, cells: &Cells, row: &[Cell], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.name);
        for (place, name) in &self.tags {
            let start = out.len();
            out.push(b',');
            out.extend_from_slice(name);
            out.push(b'=');
            let before = out.len();
            match row[*place] {
                Cell::Text(span) => escape(cells.bytes_of(span), b",= ", out),
                cell => plain(cell, out),
            }
            // The protocol has no empty tags.
            if out.len() == before {
                out.truncate(start);
            }
        }
        let mut separator = b' ';
        for (place, name) in &self.fields {
            let cell = row[*place];
            if matches!(cell, Cell::Null | Cell::Blob(_)) || matches!(cell, Cell::Float(value) if !value.is_finite()) {
                continue;
            }
            out.push(std::mem::replace(&mut separator, b','));
            out.extend_from_slice(name);
            out.push(b'=');
            match cell {
                Cell::Text(span) => {
                    out.push(b'"');
                    escape(cells.bytes_of(span), b"\"\\", out);
                    out.push(b'"');
                }
                Cell::Int(_) => {
                    plain(cell, out);
                    out.push(b'i');
                }
                cell => plain(cell, out),
            }
        }
        // Writing to a vector never fails.
        let _ = writeln!(out, " {}", time_of_number(number(row.first().copied())));
    }
}

fn number(cell: Option<Cell>) -> u64 {
    if let Some(Cell::Int(number)) = cell { number as u64 } else { 0 }
}

fn plain(cell: Cell, out: &mut Vec<u8>) {
    // Writing to a vector never fails.
    let _ = match cell {
        Cell::Int(value) => write!(out, "{value}"),
        Cell::Float(value) => write!(out, "{value}"),
        Cell::Null | Cell::Text(_) | Cell::Blob(_) => Ok(()),
    };
}

/// Appends bytes with a backslash before each special one. Line breaks, which only quoted texts may have, become spaces.
fn escape(bytes: &[u8], special: &[u8], out: &mut Vec<u8>) {
    let is_quoted = special.contains(&b'"');
    for byte in bytes {
        if special.contains(byte) || (!is_quoted && *byte == b'\n') {
            out.push(b'\\');
        }
        out.push(if !is_quoted && *byte == b'\n' { b' ' } else { *byte });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Column, ColumnKind, number_of_time};
    use crate::statement::{Expect, Step};

    fn column(name: &str, kind: ColumnKind) -> Column {
        Column { name: name.to_owned(), kind, nullable: true, hot: true }
    }

    fn record_type() -> RecordType {
        RecordType {
            name: "t".to_owned(),
            identity: vec![
                column("host", ColumnKind::Text(9)),
                column("port", ColumnKind::Int32),
                column("end", ColumnKind::Float64),
            ],
            identity_key: 1,
            identity_end: Some(2),
            series: None,
            key: None,
            values: vec![
                column("rtt ms", ColumnKind::Float64),
                column("lost", ColumnKind::Int16),
                column("note", ColumnKind::Text(9)),
            ],
        }
    }

    #[test]
    fn records_are_lines_with_tags_fields_and_a_time_that_tells_their_number() {
        let lines = Lines::new("my qos", &record_type(), 10);
        let mut request = Request::default();
        for number in [25, 26] {
            request.cells.int(number);
            request.cells.text("a b,c=d");
            request.cells.int(80);
            if number == 25 {
                request.cells.null()
            } else {
                request.cells.float(2.5)
            }
            request.cells.float(0.5);
            request.cells.int(-3);
            request.cells.text("say \"x\\y\"");
        }
        request.steps.push(Step { statement: 0, rows: 2, first_cell: 0, expect: Expect::Changed(2) });
        let mut out = Vec::new();
        assert_eq!(lines.append(&request, &mut out), 2);
        let text = String::from_utf8(out).unwrap();
        let first = "my\\ qos,host=a\\ b\\,c\\=d,port=80 rtt\\ ms=0.5,lost=-3i,note=\"say \\\"x\\\\y\\\"\" 1700000000025000000\n";
        let second = first.replace(" rtt", " end=2.5,rtt").replace("025000000", "026000000");
        assert_eq!(text, format!("{first}{second}"));
        assert_eq!(lines.source(&request), 2);
        assert_eq!(number_of_time(1_700_000_000_026_000_000), Some(26));
        assert_eq!((number_of_time(1_700_000_000_026_000_001), number_of_time(5)), (None, None));
    }
}
