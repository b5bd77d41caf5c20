//! Arranges p-values in tables like tables 8.1 and 8.2 of the KTH study: a row per case, a column per pair of alternatives, one table per
//! machine.
//!
//! Main type: [`PTable`]. Invariant: every comparison stands in exactly one cell.

use std::collections::HashMap;

use super::outcome::{Comparison, Comparisons, MarkWord};

/// The p-values of one machine and factor.
#[derive(Debug, Clone, PartialEq)]
pub struct PTable<'a> {
    /// The machine.
    pub machine: &'a str,
    /// The factor; empty for summaries.
    pub factor: &'a str,
    /// The metric of all rows; `None` if they differ.
    pub metric: Option<&'static str>,
    /// The pair of alternatives of each column.
    pub pairs: Vec<(&'a str, &'a str)>,
    /// The rows.
    pub rows: Vec<Row<'a>>,
}

/// The row of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<'a> {
    /// The case.
    pub case: &'a str,
    /// The metric.
    pub metric: &'static str,
    /// The comparison of each pair, with its mark; `None` if the case lacks an alternative.
    pub cells: Vec<Option<(&'a Comparison, Option<CellMark>)>>,
}

/// The result of another machine on a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellMark {
    /// `contradicts`, `direction`, `both` or `unconfirmed`.
    pub word: &'static str,
    /// Whether it holds however the printed figures were rounded.
    pub is_certain: bool,
}

/// Returns all tables, in the order of the comparisons.
pub fn tables(found: &Comparisons) -> Vec<PTable<'_>> {
    let mut tables: Vec<PTable<'_>> = Vec::new();
    let marks = marks_of(found);
    let mut places: HashMap<(&str, &str), usize> = HashMap::new();
    let mut columns: HashMap<(usize, &str, &str), usize> = HashMap::new();
    let mut rows: HashMap<(usize, &str, &str), usize> = HashMap::new();
    for comparison in &found.comparisons {
        let (machine, factor, metric) = (comparison.machine.as_str(), comparison.factor.as_str(), comparison.metric);
        let place = *places.entry((machine, factor)).or_insert_with(|| {
            tables.push(PTable { machine, factor, metric: Some(metric), pairs: Vec::new(), rows: Vec::new() });
            tables.len() - 1
        });
        let (table, pair) = (&mut tables[place], (comparison.a.as_str(), comparison.b.as_str()));
        let column = *columns.entry((place, pair.0, pair.1)).or_insert_with(|| {
            table.pairs.push(pair);
            table.pairs.len() - 1
        });
        let row = *rows.entry((place, comparison.case.as_str(), metric)).or_insert_with(|| {
            table.rows.push(Row { case: &comparison.case, metric, cells: Vec::new() });
            table.rows.len() - 1
        });
        if table.metric != Some(metric) {
            table.metric = None;
        }
        let cells = &mut table.rows[row].cells;
        cells.resize(cells.len().max(column + 1), None);
        cells[column] = Some((comparison, marks.get(&key(comparison)).copied()));
    }
    for table in &mut tables {
        let columns = table.pairs.len();
        table.rows.iter_mut().for_each(|row| row.cells.resize(columns, None));
    }
    tables
}

/// The identity of a marked comparison: case, metric, machine, and the two alternatives in the order of their names.
type Key<'a> = (&'a str, &'static str, &'a str, &'a str, &'a str);

fn key(comparison: &Comparison) -> Key<'_> {
    let (a, b) = (comparison.a.as_str(), comparison.b.as_str());
    (&comparison.case, comparison.metric, &comparison.machine, a.min(b), a.max(b))
}

/// Returns the mark of each comparison that has one. If there are several, the first counts, and a mark precedes `unconfirmed`.
fn marks_of(found: &Comparisons) -> HashMap<Key<'_>, CellMark> {
    let mut marks = HashMap::new();
    for mark in &found.marks {
        let word = match mark.mark {
            MarkWord::Contradicts => "contradicts",
            MarkWord::Direction => "direction",
            MarkWord::Both => "both",
        };
        let (a, b) = (mark.a.as_str(), mark.b.as_str());
        for machine in &mark.machines {
            let key = (mark.case.as_str(), mark.metric, machine.as_str(), a.min(b), a.max(b));
            marks.entry(key).or_insert(CellMark { word, is_certain: mark.certain });
        }
    }
    for one in &found.unconfirmed {
        let (a, b) = (one.a.as_str(), one.b.as_str());
        for machine in &one.machines {
            let key = (one.case.as_str(), one.metric, machine.as_str(), a.min(b), a.max(b));
            marks.entry(key).or_insert(CellMark { word: "unconfirmed", is_certain: true });
        }
    }
    marks
}

/// Returns the meaning of each mark that occurs.
pub fn legend(found: &Comparisons) -> Vec<(&'static str, &'static str)> {
    let words = [
        ("contradicts", "the p of the two machines differ by more than 50 points"),
        ("direction", "the difference has another direction on the other machine"),
        ("both", "both of these"),
        ("unconfirmed", "p is below the level on one machine only, and none of the other marks shows it"),
    ];
    let occurs = |word: &str| match word {
        "unconfirmed" => !found.unconfirmed.is_empty(),
        _ => found.marks.iter().any(|mark| mark.mark.to_string() == word),
    };
    words.into_iter().filter(|(word, _)| occurs(word)).collect()
}
