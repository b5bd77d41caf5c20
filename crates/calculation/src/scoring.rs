//! Scoring: points for writing and reading decide among alternatives, after Ruottinen 2015, section 5.3.
//!
//! Main types: [`Evidence`] (the measurements) and [`Scores`] (the points). Invariant: alternatives are compared on the same
//! cases only; a case that one of them lacks is refused, because its points would be relative to others.

mod csv;
mod sensitivity;
mod uncertainty;

pub use csv::evidence_from_csv;
pub use sensitivity::{BreakEven, LISTED_MAX, Reversal, Span, break_even, first_between, reversals, spans};
pub use uncertainty::{Uncertainty, uncertainty};

use crate::statistics::mean;

/// Largest number of points that an alternative can get for writing, for a case, and so for reading.
const POINTS_MOST: f64 = 10.0;

/// Largest number of alternatives.
pub const ALTERNATIVES_MAX: usize = 1_000;

/// The measurements of several alternatives.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Evidence {
    /// Names of the alternatives.
    pub alternatives: Vec<String>,
    /// Throughput in any unit, the same for all.
    pub writing: Vec<Measured>,
    /// Execution times in any unit, the same within a case.
    pub reading: Vec<Measured>,
}

/// One case of writing, or of a query.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measured {
    /// The query; empty for writing.
    pub query: String,
    /// The case.
    pub case: String,
    /// Values of each alternative, in their order, one per trial.
    pub values: Vec<Vec<f64>>,
}

/// The weighting of the cases of several queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weighting {
    /// Every query weighs the same, as in equation 10.
    #[default]
    ByQuery,
    /// Every case weighs the same, whatever its query.
    ByCase,
}

/// The points of all alternatives, in their order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scores {
    /// Names.
    pub alternatives: Vec<String>,
    /// For writing, 0..10 (equation 5).
    pub writing: Vec<f64>,
    /// For reading, 0..10 (equation 10).
    pub reading: Vec<f64>,
    /// Queries with their points (equation 9).
    pub queries: Vec<(String, Vec<f64>)>,
}

/// The reason why there are no points.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScoreError {
    /// Fewer than two alternatives.
    #[error("there is nothing to choose between: {}; give two alternatives or more", if .0.is_empty() { "no alternative".to_owned() } else { format!("only {}", .0.join(", ")) })]
    TooFew(Vec<String>),
    /// More alternatives than can be scored.
    #[error(
        "there are {0} alternatives, and at most {ALTERNATIVES_MAX} can be scored; leave out those that are out of the question"
    )]
    TooMany(usize),
    /// No case of writing or of reading.
    #[error("there is nothing of {0}; give values of {0} for every alternative")]
    Nothing(&'static str),
    /// An alternative lacks a case.
    #[error(
        "{alternative} has no value of {what}; points compare all alternatives on the same cases, so measure it, or leave the case out"
    )]
    Missing {
        /// The alternative.
        alternative: String,
        /// The case.
        what: String,
    },
    /// A value that cannot be scored.
    #[error("{alternative} has {value} as a value of {what}; it must be above 0")]
    Value {
        /// The alternative.
        alternative: String,
        /// The case.
        what: String,
        /// The value.
        value: f64,
    },
}

impl Measured {
    /// Returns the name for messages: `writing`, or `query 1, case a`.
    fn name(&self) -> String {
        let case = if self.case.is_empty() { String::new() } else { format!(", case {}", self.case) };
        if self.query.is_empty() { format!("writing{case}") } else { format!("query {}{case}", self.query) }
    }

    /// Returns the mean of each alternative's trials (equations 4 and 6); not a number without any trial.
    fn means(&self) -> Vec<f64> {
        self.values.iter().map(|trials| mean(trials).unwrap_or(f64::NAN)).collect()
    }
}

impl Evidence {
    /// Checks that every alternative has a value above 0 in every case.
    ///
    /// # Errors
    /// The first missing or invalid value.
    pub fn check(&self) -> Result<(), ScoreError> {
        if self.alternatives.len() < 2 {
            return Err(ScoreError::TooFew(self.alternatives.clone()));
        }
        if self.alternatives.len() > ALTERNATIVES_MAX {
            return Err(ScoreError::TooMany(self.alternatives.len()));
        }
        for (cases, what) in [(&self.writing, "writing"), (&self.reading, "reading")] {
            if cases.is_empty() {
                return Err(ScoreError::Nothing(what));
            }
            for measured in cases {
                for (place, alternative) in self.alternatives.iter().enumerate() {
                    let trials = measured.values.get(place).map_or(&[][..], Vec::as_slice);
                    let (alternative, what) = (alternative.clone(), measured.name());
                    if trials.is_empty() {
                        return Err(ScoreError::Missing { alternative, what });
                    }
                    if let Some(value) = trials.iter().find(|value| !(value.is_finite() && **value > 0.0)) {
                        return Err(ScoreError::Value { alternative, what, value: *value });
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns the evidence without one alternative.
    pub fn without(&self, place: usize) -> Evidence {
        let mut rest = self.clone();
        rest.alternatives.remove(place);
        for measured in rest.writing.iter_mut().chain(&mut rest.reading) {
            measured.values.remove(place);
        }
        rest
    }

    /// Returns the points.
    ///
    /// # Errors
    /// As [`Evidence::check`].
    pub fn scores(&self, weighting: Weighting) -> Result<Scores, ScoreError> {
        self.check()?;
        let means = |cases: &[Measured]| cases.iter().map(Measured::means).collect::<Vec<_>>();
        Ok(self.scores_of(&means(&self.writing), &means(&self.reading), weighting))
    }

    /// Returns the points for given means per case and alternative.
    fn scores_of(&self, writing: &[Vec<f64>], reading: &[Vec<f64>], weighting: Weighting) -> Scores {
        let count = self.alternatives.len();
        let points: Vec<Vec<f64>> = reading.iter().map(|times| case_points(times)).collect();
        let mut queries: Vec<(String, Vec<&Vec<f64>>)> = Vec::new();
        for (measured, points) in self.reading.iter().zip(&points) {
            match queries.iter_mut().find(|(query, _)| *query == measured.query) {
                Some((_, cases)) => cases.push(points),
                None => queries.push((measured.query.clone(), vec![points])),
            }
        }
        let queries: Vec<(String, Vec<f64>)> =
            queries.into_iter().map(|(query, cases)| (query, averages(&cases, count))).collect();
        let reading = match weighting {
            Weighting::ByQuery => averages(&queries.iter().map(|(_, points)| points).collect::<Vec<_>>(), count),
            Weighting::ByCase => averages(&points.iter().collect::<Vec<_>>(), count),
        };
        let throughputs = averages(&writing.iter().collect::<Vec<_>>(), count);
        Scores { alternatives: self.alternatives.clone(), writing: writing_points(&throughputs), reading, queries }
    }
}

impl Scores {
    /// Returns the totals of all alternatives: points for writing times the weight, plus points for reading.
    pub fn totals(&self, write_weight: f64) -> Vec<f64> {
        self.writing.iter().zip(&self.reading).map(|(writing, reading)| write_weight * writing + reading).collect()
    }

    /// Returns the indexes of the alternatives, the highest total first; equal totals stay in the order of the alternatives.
    pub fn ranking(&self, write_weight: f64) -> Vec<usize> {
        let totals = self.totals(write_weight);
        let mut places: Vec<usize> = (0..totals.len()).collect();
        places.sort_by(|a, b| totals[*b].total_cmp(&totals[*a]));
        places
    }

    /// Returns the names of alternatives by their indexes.
    pub fn names(&self, places: &[usize]) -> Vec<String> {
        places.iter().map(|place| self.alternatives[*place].clone()).collect()
    }
}

/// Returns the points for writing (equation 5): the highest mean throughput gets ten, the others in proportion.
pub fn writing_points(throughputs: &[f64]) -> Vec<f64> {
    let highest = throughputs.iter().copied().fold(0.0, f64::max);
    throughputs.iter().map(|throughput| throughput / highest * POINTS_MOST).collect()
}

/// Returns the points of a case of reading (equations 7 and 8), from mean execution times: the shortest gets ten, the longest as many as
/// the shortest has in M.
pub fn case_points(times: &[f64]) -> Vec<f64> {
    let longest = times.iter().copied().fold(0.0, f64::max);
    let scaled: Vec<f64> = times.iter().map(|time| time / longest * POINTS_MOST).collect();
    let (most, least) =
        scaled.iter().fold((0.0, f64::INFINITY), |(most, least), m| (f64::max(most, *m), f64::min(least, *m)));
    scaled.iter().map(|m| most + least - m).collect()
}

/// Returns the mean of each alternative over rows (equations 4, 9 and 10).
fn averages(rows: &[&Vec<f64>], count: usize) -> Vec<f64> {
    let sum = |place: usize| rows.iter().map(|row| row[place]).sum::<f64>();
    (0..count).map(|place| sum(place) / rows.len() as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(query: &str, case: &str, values: &[f64]) -> Measured {
        let values = values.iter().map(|value| vec![*value]).collect();
        Measured { query: query.to_owned(), case: case.to_owned(), values }
    }

    fn evidence() -> Evidence {
        Evidence {
            alternatives: ["wide", "star", "star-hot"].map(str::to_owned).to_vec(),
            writing: vec![measured("", "1", &[97.0, 100.0, 68.0])],
            reading: vec![
                measured("1", "a", &[2.0, 4.0, 5.0]),
                measured("1", "b", &[1.0, 1.5, 1.2]),
                measured("2", "a", &[1.0, 1.0, 1.0]),
            ],
        }
    }

    #[test]
    fn queries_weigh_the_same_unless_cases_are_to() {
        let by_query = evidence().scores(Weighting::ByQuery).unwrap();
        assert_eq!(by_query.queries[0].0, "1");
        assert!((by_query.queries[0].1[1] - (6.0 + 6.666_666_666_7) / 2.0).abs() < 1e-9);
        assert!((by_query.reading[2] - ((4.0 + 8.666_666_666_7) / 2.0 + 10.0) / 2.0).abs() < 1e-9);
        let by_case = evidence().scores(Weighting::ByCase).unwrap();
        assert!((by_case.reading[2] - (4.0 + 8.666_666_666_7 + 10.0) / 3.0).abs() < 1e-9);
        assert_eq!(by_query.writing, [9.7, 10.0, 6.800_000_000_000_001]);
    }

    #[test]
    fn the_unit_of_times_does_not_matter() {
        let scaled: Vec<f64> = [2.0, 4.0, 5.0].iter().map(|time| time * 1e-6).collect();
        for (a, b) in case_points(&scaled).iter().zip(case_points(&[2.0, 4.0, 5.0])) {
            assert!((a - b).abs() < 1e-12);
        }
    }

    #[test]
    fn what_cannot_be_scored_is_said() {
        let mut lacking = evidence();
        lacking.reading[1].values[2].clear();
        assert!(
            lacking
                .scores(Weighting::ByQuery)
                .unwrap_err()
                .to_string()
                .starts_with("star-hot has no value of query 1, case b;")
        );
        let mut zero = evidence();
        zero.writing[0].values[0] = vec![0.0];
        assert!(zero.scores(Weighting::ByQuery).unwrap_err().to_string().contains("it must be above 0"));
        let nothing = Evidence { writing: Vec::new(), ..evidence() };
        assert_eq!(nothing.check(), Err(ScoreError::Nothing("writing")));
        let alone = evidence().without(0).without(0);
        assert!(alone.check().unwrap_err().to_string().contains("only star-hot"));
    }
}
