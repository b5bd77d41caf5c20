//! Questions about sources and times, over the tables of a layout. Main type: [`Asking`].

use super::{ColumnRef, Join};
use crate::question::{Ask, Figure};
use crate::record::ColumnKind;

/// A question as a layout states it. Its values are, in this order: the source, where it concerns one; the first time and the time behind the last
/// one, where it has a span; the bound, for [`Ask::Above`].
///
/// The answer has these columns. Readings: the source, where it concerns all; the time; then the columns read. Aggregates: the number of readings; then the figures
/// of each column. Buckets: the beginning of the bucket; then the same. Ranks: the source, and its figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Asking {
    /// What is asked.
    pub ask: Ask,
    /// The table with a row for each record.
    pub from: String,
    /// Tables joined to it.
    pub joins: Vec<Join>,
    /// The column with the source.
    pub source: ColumnRef,
    /// The column with the time, or with the largest one where a row holds several readings.
    pub time: ColumnRef,
    /// The column with the least time, where a row holds several readings; `None` where it holds one.
    pub least_time: Option<ColumnRef>,
    /// Columns that are read or aggregated, with their types.
    pub columns: Vec<(ColumnRef, ColumnKind)>,
    /// Whether it concerns all sources.
    pub all_sources: bool,
    /// The index on source and time.
    pub source_index: SourceIndex,
    /// Whether it has a span.
    pub has_span: bool,
    /// Length of a bucket, in the unit of the time column; 0 without buckets.
    pub bucket: i64,
    /// Largest number of ranks; 0 without ranks.
    pub most: u64,
    /// The figure by which sources are ranked.
    pub by: Figure,
    /// The figures of each column of an aggregate or a bucket.
    pub figures: Vec<Figure>,
}

/// An index on source and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SourceIndex {
    /// There is none.
    #[default]
    None,
    /// It begins with the time, and finds a source's reading of a known time.
    ByTime,
    /// It begins with the source, and finds the readings of a source in the order of time. It lies beside the table, and its entries say where the rows are.
    BySource,
    /// The same with everything that questions name, so that no row must be looked up.
    CoveringBySource,
    /// It begins with the source and is the primary key, in whose order some databases keep the table.
    KeyBySource,
}

impl SourceIndex {
    /// Returns whether it finds the readings of a source in the order of time.
    pub fn is_by_source(self) -> bool {
        matches!(self, SourceIndex::BySource | SourceIndex::CoveringBySource | SourceIndex::KeyBySource)
    }
}

impl Asking {
    /// Returns whether it asks for the value of a first or last reading.
    pub fn has_ends(&self) -> bool {
        self.figures.iter().any(|figure| matches!(figure, Figure::First | Figure::Last))
    }

    /// Returns whether it asks for a quantile.
    pub fn has_quantiles(&self) -> bool {
        self.figures.iter().any(|figure| matches!(figure, Figure::Quantile(_)))
    }

    /// Returns the kinds of its values, in their order.
    pub fn kinds(&self) -> Vec<ColumnKind> {
        let source = (!self.all_sources).then_some(ColumnKind::Int32);
        let span = if self.has_span { vec![ColumnKind::Int64; 2] } else { Vec::new() };
        let bound =
            (self.ask == Ask::Above).then(|| self.columns.first().map_or(ColumnKind::Float64, |(_, kind)| *kind));
        source.into_iter().chain(span).chain(bound).collect()
    }

    /// Returns the kinds of the columns of its answer, in their order.
    pub fn answer_kinds(&self) -> Vec<ColumnKind> {
        let source = self.all_sources.then_some(ColumnKind::Int32);
        let of_figures = || -> Vec<ColumnKind> {
            let of = |(_, kind): &(ColumnRef, ColumnKind)| {
                self.figures.iter().map(|figure| figure.kind(*kind)).collect::<Vec<_>>()
            };
            self.columns.iter().flat_map(of).collect()
        };
        match self.ask {
            Ask::Range | Ask::Newest | Ask::Above => {
                let read = self.columns.iter().map(|(_, kind)| *kind);
                source.into_iter().chain([ColumnKind::Int64]).chain(read).collect()
            }
            Ask::Aggregate => [vec![ColumnKind::Int64], of_figures()].concat(),
            Ask::Buckets => [vec![ColumnKind::Int64; 2], of_figures()].concat(),
            Ask::Top => {
                let kind = self.columns.first().map_or(ColumnKind::Float64, |(_, kind)| self.by.kind(*kind));
                vec![ColumnKind::Int32, kind]
            }
        }
    }
}

/// The column with the time of a row's reading, in nanoseconds since 1970, by which a database made for time keeps the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeColumn {
    /// Column name.
    pub name: String,
    /// The partitions of the table by this column; `None` for a table that is one piece.
    pub partitions: Option<Partitions>,
}

/// The partitions of a table by time when it is made. A partition's number is the number of spans since 1970: number p holds the times from p · span to before (p + 1) · span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partitions {
    /// Length of each, in nanoseconds, at least 1.
    pub span_ns: i64,
    /// Number of the first.
    pub first: i64,
    /// Number of the one behind the last.
    pub end: i64,
}

impl Partitions {
    /// Returns the number of the partition that holds a time.
    pub fn of(&self, time_ns: i64) -> i64 {
        time_ns.div_euclid(self.span_ns.max(1))
    }

    /// Returns the first time of a partition, in nanoseconds since 1970.
    pub fn begin_ns(&self, partition: i64) -> i64 {
        partition.saturating_mul(self.span_ns)
    }
}
