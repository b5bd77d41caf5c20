//! Queries for figures, at one time or at the end of each bucket. Main type: [`Query`].

use super::answer::Reads;
use super::metricsql::{Span, Text, append_time, int};
use super::rules::RULES;
use crate::record::Cells;

/// The times that a query looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct When {
    /// Whether the first of its values is a source.
    pub has_source: bool,
    /// Whether its next two values are the first time and the one behind the last, in nanoseconds. Otherwise it looks at all times.
    pub has_span: bool,
    /// The length of a bucket, where it has buckets.
    pub bucket_ms: Option<i64>,
}

/// A query for figures.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Query {
    text: Text,
    pub reads: Reads,
    when: When,
}

impl Query {
    pub(super) fn new(text: &str, reads: Reads, when: When) -> Self {
        Query { text: Text::new(text), reads, when }
    }

    /// Returns whether it has a row for each bucket.
    pub(super) fn has_buckets(&self) -> bool {
        self.when.bucket_ms.is_some()
    }

    /// Appends the body of the request, with the values from `first` on.
    ///
    /// # Errors
    /// A sentence: a value cannot be written.
    pub(super) fn append(&self, cells: &Cells, first: usize, out: &mut Vec<u8>) -> Result<(), String> {
        let When { has_source, has_span, bucket_ms } = self.when;
        let source = if has_source { int(cells, first)? } else { 0 };
        let first = first + usize::from(has_source);
        let (from_ns, to_ns) =
            if has_span { (int(cells, first)?, int(cells, first + 1)?) } else { (i64::MIN, i64::MAX) };
        let next_ms =
            |time_ns: i64| time_ns.div_euclid(RULES.unit_ns) + i64::from(time_ns.rem_euclid(RULES.unit_ns) > 0);
        let span = Span { least_ms: next_ms(from_ns), most_ms: next_ms(to_ns) - 1 }.within(Span::ALL);
        out.extend_from_slice(b"query=");
        let Some(bucket_ms) = bucket_ms else {
            self.text.append(span.window_ms(), source, out);
            out.extend_from_slice(b"&time=");
            append_time(span.most_ms, out);
            return Ok(());
        };
        let bucket_ns = bucket_ms * RULES.unit_ns;
        if from_ns % RULES.unit_ns != 0 || to_ns.saturating_sub(from_ns) % bucket_ns != 0 {
            return Err("a span is not made of whole buckets that begin with a millisecond".to_owned());
        }
        self.text.append(bucket_ms, source, out);
        out.extend_from_slice(format!("&step={bucket_ms}ms&start=").as_bytes());
        // A window looks back from the last time of a bucket.
        append_time(span.least_ms + bucket_ms - 1, out);
        out.extend_from_slice(b"&end=");
        append_time(span.most_ms, out);
        // A query that may be answered from a cache has its times moved to multiples of its step.
        out.extend_from_slice(b"&nocache=1");
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::answer::Form;
    use super::*;
    use crate::question::{Ask, Figure};
    use crate::record::ColumnKind;
    use crate::statement::{
        Again, Apart, Asking, ColumnRef, Program, SourceIndex, Statement, Table, TableColumn, TimeColumn,
    };

    /// A program with a table of readings: a number, a source, a time and a number that is measured.
    pub fn readings(again: Option<Again>) -> Program {
        let column = |name: &str, kind| TableColumn { name: name.to_owned(), kind, nullable: name == "v" };
        let columns = vec![
            column("id", ColumnKind::Int64),
            column("source", ColumnKind::Int32),
            column("at", ColumnKind::Int64),
            column("v", ColumnKind::Float64),
        ];
        let table = Table {
            name: "t".to_owned(),
            columns: columns.clone(),
            primary_key: vec!["id".to_owned()],
            numbered: false,
            unique: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            time: Some(TimeColumn { name: "at".to_owned(), partitions: None }),
        };
        let apart = Apart { table: "t".to_owned(), source: Some("source".to_owned()), again };
        let statements = vec![Statement::Insert { table: "t".to_owned(), columns }];
        Program { tables: vec![table], apart: vec![apart], statements, rows_max: 10, ..Program::default() }
    }

    pub fn asking(ask: Ask, all_sources: bool, has_span: bool) -> Asking {
        let at = |name: &str| ColumnRef { table: "t".to_owned(), column: name.to_owned() };
        Asking {
            ask,
            from: "t".to_owned(),
            joins: Vec::new(),
            source: at("source"),
            time: at("at"),
            least_time: None,
            columns: vec![(at("v"), ColumnKind::Float64)],
            all_sources,
            source_index: SourceIndex::None,
            has_span,
            bucket: 7_000_000_000,
            most: 3,
            by: Figure::Max,
            figures: if ask == Ask::Buckets { Figure::OF_BUCKETS.to_vec() } else { Figure::OF_AGGREGATES.to_vec() },
        }
    }

    /// Returns the source 1, if there is one, and fourteen seconds.
    pub fn values(has_source: bool) -> Cells {
        let mut cells = Cells::new();
        if has_source {
            cells.int(1);
        }
        cells.int(1_700_000_000_002_000_000);
        cells.int(1_700_000_014_002_000_000);
        cells
    }

    /// Returns the body of a request, decoded.
    pub fn body(append: impl FnOnce(&mut Vec<u8>) -> Result<(), String>) -> String {
        let mut out = Vec::new();
        append(&mut out).unwrap();
        let (mut bytes, mut rest) = (Vec::new(), out.iter());
        while let Some(byte) = rest.next() {
            bytes.push(match byte {
                b'%' => {
                    let digits = [*rest.next().unwrap(), *rest.next().unwrap()];
                    u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
                }
                byte => *byte,
            });
        }
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn buckets_that_are_not_whole_are_refused() {
        let reads = Reads { form: Form::Aggregate, outs: Vec::new(), source: None, round: None };
        let query = Query::new("1", reads, When { has_source: false, has_span: true, bucket_ms: Some(7_000) });
        let (mut cells, mut out) = (Cells::new(), Vec::new());
        cells.int(1_700_000_000_000_000_000);
        cells.int(1_700_000_010_000_000_000);
        assert!(query.append(&cells, 0, &mut out).unwrap_err().contains("whole buckets"));
    }
}
