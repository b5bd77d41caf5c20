//! Tables of p-values as tables 8.1 and 8.2 of the KTH study: a row per case, a column per pair of alternatives, one table per
//! machine.
//!
//! Main type: [`PTable`]. Invariant: every comparison stands in exactly one cell.

use super::outcome::{Comparison, Comparisons};

/// The p-values of one machine and factor.
#[derive(Debug, Clone, PartialEq)]
pub struct PTable<'a> {
    /// The machine.
    pub machine: &'a str,
    /// The factor; empty for summaries.
    pub factor: &'a str,
    /// The metric of all rows; none where they differ.
    pub metric: Option<&'static str>,
    /// The alternatives of each column.
    pub pairs: Vec<(&'a str, &'a str)>,
    /// The rows.
    pub rows: Vec<Row<'a>>,
}

/// A case.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<'a> {
    /// The case.
    pub case: &'a str,
    /// The metric.
    pub metric: &'static str,
    /// The comparison of each pair, with its mark; none where the case lacks an alternative.
    pub cells: Vec<Option<(&'a Comparison, Option<CellMark>)>>,
}

/// What another machine says about a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellMark {
    /// `contradicts`, `direction`, `both` or `unconfirmed`.
    pub word: &'static str,
    /// Whether it stands however the printed figures were rounded.
    pub is_certain: bool,
}

/// All tables, in the order of the comparisons.
pub fn tables(found: &Comparisons) -> Vec<PTable<'_>> {
    let mut tables: Vec<PTable<'_>> = Vec::new();
    for comparison in &found.comparisons {
        let place = tables
            .iter()
            .position(|table| table.machine == comparison.machine && table.factor == comparison.factor)
            .unwrap_or_else(|| {
                tables.push(PTable {
                    machine: &comparison.machine,
                    factor: &comparison.factor,
                    metric: Some(comparison.metric),
                    pairs: Vec::new(),
                    rows: Vec::new(),
                });
                tables.len() - 1
            });
        tables[place].push(comparison, mark_of(found, comparison));
    }
    tables
}

impl<'a> PTable<'a> {
    fn push(&mut self, comparison: &'a Comparison, mark: Option<CellMark>) {
        let pair = (comparison.a.as_str(), comparison.b.as_str());
        let column = self.pairs.iter().position(|known| *known == pair).unwrap_or_else(|| {
            self.pairs.push(pair);
            self.pairs.len() - 1
        });
        let is_own = |row: &Row<'_>| row.case == comparison.case && row.metric == comparison.metric;
        let row = self.rows.iter().position(is_own).unwrap_or_else(|| {
            self.rows.push(Row { case: &comparison.case, metric: comparison.metric, cells: Vec::new() });
            self.rows.len() - 1
        });
        if self.metric != Some(comparison.metric) {
            self.metric = None;
        }
        for row in &mut self.rows {
            row.cells.resize(self.pairs.len(), None);
        }
        self.rows[row].cells[column] = Some((comparison, mark));
    }
}

/// The mark of a comparison, if it has one.
fn mark_of(found: &Comparisons, comparison: &Comparison) -> Option<CellMark> {
    let is_pair = |a: &str, b: &str| {
        let own = (comparison.a.as_str(), comparison.b.as_str());
        own == (a, b) || own == (b, a)
    };
    let mark = found.marks.iter().find(|mark| {
        mark.case == comparison.case
            && mark.metric == comparison.metric
            && mark.machines.contains(&comparison.machine)
            && is_pair(&mark.a, &mark.b)
    });
    let unconfirmed = found.unconfirmed.iter().find(|one| {
        one.case == comparison.case
            && one.metric == comparison.metric
            && one.machines.contains(&comparison.machine)
            && is_pair(&one.a, &one.b)
    });
    match (mark, unconfirmed) {
        (Some(mark), _) => Some(CellMark {
            word: match mark.mark {
                super::MarkWord::Contradicts => "contradicts",
                super::MarkWord::Direction => "direction",
                super::MarkWord::Both => "both",
            },
            is_certain: mark.certain,
        }),
        (None, Some(_)) => Some(CellMark { word: "unconfirmed", is_certain: true }),
        (None, None) => None,
    }
}

/// What the marks mean, those that occur.
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
