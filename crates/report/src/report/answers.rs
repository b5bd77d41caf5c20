//! Compares the answers of queries: the times of queries can only be compared if the queries find what they were asked for, and the same.
//!
//! Main function: [`unlike`]. Invariant: cases without queries, and cases whose rows were not counted, count as answering alike.

use crate::measurement::Measurement;
use crate::units::show_number;

/// The mean number of rows per query below which queries mostly found nothing.
pub const ROWS_LEAST: f64 = 0.5;

/// The largest ratio of rows per query at which two cases answer alike; their parameters are drawn, so their rows differ somewhat.
const ROWS_APART: f64 = 1.5;

/// Returns the mean number of rows over all queries of these trials; `None` if rows were not counted.
pub fn rows_per_query(trials: &[&Measurement]) -> Option<f64> {
    // Answers whose values were checked are right, however many rows they have.
    let kinds = trials.iter().flat_map(|trial| trial.operations.values()).filter(|kind| kind.wrong.is_none());
    let counted = kinds.filter_map(|kind| Some((kind.rows?, kind.completed)));
    let (rows, queries) = counted.fold((0, 0), |(rows, all), (own, count)| (rows + own, all + count));
    (queries > 0).then(|| rows as f64 / queries as f64)
}

/// Returns whether queries mostly found nothing.
pub fn is_empty(rows: Option<f64>) -> bool {
    rows.is_some_and(|rows| rows < ROWS_LEAST)
}

/// Returns the reason for which two cases with these rows per query are not compared; `None` if they answer alike.
pub fn unlike(a: Option<f64>, b: Option<f64>) -> Option<String> {
    let (a, b) = (a?, b?);
    if is_empty(Some(a)) || is_empty(Some(b)) {
        return Some(format!("queries found nothing there ({} and {} rows each)", show(a), show(b)));
    }
    let is_apart = a.max(b) > ROWS_APART * a.min(b);
    is_apart.then(|| format!("their queries answered different things ({} and {} rows each)", show(a), show(b)))
}

fn show(rows: f64) -> String {
    if rows < 10.0 { format!("{rows:.2}") } else { show_number(rows.round()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_that_found_nothing_or_something_else_are_not_compared() {
        assert_eq!(unlike(Some(100.0), Some(98.0)), None);
        assert_eq!(unlike(None, Some(98.0)), None);
        assert_eq!(unlike(Some(0.0), Some(10.0)).unwrap(), "queries found nothing there (0.00 and 10 rows each)");
        assert!(unlike(Some(0.0), Some(0.0)).is_some());
        assert!(
            unlike(Some(10.0), Some(1_000.0))
                .unwrap()
                .starts_with("their queries answered different things (10 and 1,000")
        );
    }
}
