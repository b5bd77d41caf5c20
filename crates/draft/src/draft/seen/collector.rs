//! Counts statements by their shape, and keeps a sample of their values.
//!
//! Main type: [`Collector`].

use std::collections::HashMap;

use super::Seen;
use crate::draft::catalogue::MARK;
use crate::draft::sql::{Grammar, Literal, Shape, shape_of, verb_of};
use crate::random::Stream;

/// The most shapes that are kept; only the calls of further shapes are counted.
const SHAPES_MOST: usize = 2_000;
/// The most texts per shape that differ in the lengths of their lists.
const VARIANTS_MOST: usize = 8;
/// The most samples of a statement's values.
pub const SAMPLES_MOST: usize = 2_000;
/// The most bytes of a statement that is examined.
pub const STATEMENT_BYTES_MOST: usize = 256 << 10;

/// A statement that ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// The text, with `?` for each value.
    pub text: String,
    /// The literals of the most recent call.
    pub literals: Vec<Literal>,
    /// The number of calls.
    pub calls: f64,
    /// Rows that all calls together returned or changed, if known.
    pub rows: Option<f64>,
    /// Seconds that all calls together took, if known.
    pub seconds: Option<f64>,
    /// The values of some of the calls.
    pub samples: Vec<Sample>,
    /// The reason for which the statement cannot be executed as it is, if there is one.
    pub broken: Option<String>,
}

/// The values of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The value of each `?`; `None` if it is null or unknown.
    pub values: Vec<Option<String>>,
    /// The time of the call, in microseconds since 1970, if known.
    pub at_us: Option<i64>,
}

/// A call, as a log records it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Call<'a> {
    /// The text of the statement.
    pub sql: &'a str,
    /// The values of its numbered parameters, if it has any.
    pub parameters: &'a [Option<String>],
    /// The time of the call, in microseconds since 1970.
    pub at_us: Option<i64>,
    /// Rows that it returned or changed.
    pub rows: Option<f64>,
    /// The duration in seconds. If it is known, the time is that of the call's end, otherwise of its beginning.
    pub seconds: Option<f64>,
    /// The session in which it ran; empty if the log does not record it.
    pub session: &'a str,
    /// The database on which it ran; empty if the log does not record it.
    pub database: &'a str,
}

/// A receiver of the calls that logs record.
pub trait Takes {
    /// Returns the grammar of the statements.
    fn grammar(&self) -> Grammar;

    /// Notes that the log has reached this time.
    fn pass_time(&mut self, at_us: Option<i64>);

    /// Takes in one call.
    fn take(&mut self, call: &Call<'_>);
}

impl Takes for Collector {
    fn grammar(&self) -> Grammar {
        self.grammar
    }

    fn pass_time(&mut self, at_us: Option<i64>) {
        Collector::pass_time(self, at_us);
    }

    fn take(&mut self, call: &Call<'_>) {
        Collector::take(self, call);
    }
}

/// Takes in statements, and counts them by their shape.
#[derive(Debug)]
pub struct Collector {
    grammar: Grammar,
    shapes: HashMap<String, Vec<Ran>>,
    passed_over: HashMap<&'static str, f64>,
    first_us: Option<i64>,
    last_us: Option<i64>,
    stream: Stream,
}

/// The name of the statements that are passed over because a study does not contain their kind.
pub const OTHER_KIND: &str = "settings, transactions and changes of tables";
const TOO_LONG: &str = "statements of more than 256 KiB";
const TOO_MANY: &str = "statements of further shapes";

impl Collector {
    /// Creates an empty collector.
    pub fn new(grammar: Grammar) -> Self {
        let (shapes, passed_over) = (HashMap::new(), HashMap::new());
        Collector { grammar, shapes, passed_over, first_us: None, last_us: None, stream: Stream::seeded(1) }
    }

    /// Returns the grammar of its statements.
    pub fn grammar(&self) -> Grammar {
        self.grammar
    }

    /// Counts calls that are passed over for a reason.
    pub fn pass_over(&mut self, why: &'static str, calls: f64) {
        *self.passed_over.entry(why).or_default() += calls;
    }

    /// Notes that the log has reached this time.
    pub fn pass_time(&mut self, at_us: Option<i64>) {
        let Some(at_us) = at_us else { return };
        self.first_us = Some(self.first_us.map_or(at_us, |first| first.min(at_us)));
        self.last_us = Some(self.last_us.map_or(at_us, |last| last.max(at_us)));
    }

    /// Takes in one call.
    pub fn take(&mut self, call: &Call<'_>) {
        self.pass_time(call.at_us);
        if call.sql.contains(MARK) {
            return;
        }
        if call.sql.len() > STATEMENT_BYTES_MOST {
            return self.pass_over(TOO_LONG, 1.0);
        }
        if verb_of(call.sql).is_none() {
            return self.pass_over(OTHER_KIND, 1.0);
        }
        let shape = shape_of(call.sql, self.grammar);
        let values = shape.literals.iter().map(|literal| match literal {
            Literal::Parameter(Some(number)) => {
                (*number as usize).checked_sub(1).and_then(|place| call.parameters.get(place).cloned().flatten())
            }
            literal => literal.value().map(str::to_owned),
        });
        let sample = Sample { values: values.collect(), at_us: call.at_us };
        let ran = Ran {
            text: String::new(),
            literals: Vec::new(),
            calls: 1.0,
            rows: call.rows,
            seconds: call.seconds,
            samples: vec![sample],
            broken: None,
        };
        self.add(shape, ran);
    }

    /// Takes in a statement with its number of calls.
    pub fn add(&mut self, shape: Shape, ran: Ran) {
        let key = shape.key();
        let is_full = self.shapes.len() >= SHAPES_MOST;
        if is_full && !self.shapes.contains_key(&key) {
            return self.pass_over(TOO_MANY, ran.calls);
        }
        let variants = self.shapes.entry(key).or_default();
        let own = variants.iter().position(|variant| variant.text == shape.text);
        let Some(own) = own.or_else(|| (variants.len() >= VARIANTS_MOST).then_some(0)) else {
            variants.push(Ran { text: shape.text, literals: shape.literals, ..ran });
            return;
        };
        let variant = &mut variants[own];
        let before = variant.calls;
        variant.calls += ran.calls;
        variant.rows = sum(variant.rows, ran.rows);
        variant.seconds = sum(variant.seconds, ran.seconds);
        for sample in ran.samples.into_iter().filter(|sample| sample.values.len() == variant.literals.len()) {
            if variant.samples.len() < SAMPLES_MOST {
                variant.samples.push(sample);
                continue;
            }
            // Each call is kept with the same probability: Vitter's algorithm R.
            let place = self.stream.below(before as u64 + 1) as usize;
            if let Some(kept) = variant.samples.get_mut(place) {
                *kept = sample;
            }
        }
    }

    /// Returns all statements, the most frequent first. Of texts that differ only in the lengths of their lists, the most frequent represents all.
    pub fn seen(self) -> Seen {
        let one = |mut variants: Vec<Ran>| {
            variants.sort_by(|a, b| b.calls.total_cmp(&a.calls));
            let total = |of: fn(&Ran) -> Option<f64>| variants.iter().map(of).sum::<Option<f64>>();
            let (calls, rows, seconds) =
                (variants.iter().map(|ran| ran.calls).sum(), total(|ran| ran.rows), total(|ran| ran.seconds));
            let first = variants.into_iter().next()?;
            Some(Ran { calls, rows, seconds, ..first })
        };
        let mut statements: Vec<Ran> = self.shapes.into_values().filter_map(one).collect();
        statements.sort_by(|a, b| b.calls.total_cmp(&a.calls).then_with(|| a.text.cmp(&b.text)));
        let mut passed_over: Vec<(&'static str, f64)> = self.passed_over.into_iter().collect();
        passed_over.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
        let span = self.first_us.zip(self.last_us).map(|(first, last)| last.saturating_sub(first) as f64 / 1e6);
        Seen { statements, seconds: span.filter(|seconds| *seconds > 0.0), passed_over, notes: Vec::new() }
    }
}

fn sum(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    Some(one? + other?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(sql: &str) -> Call<'_> {
        Call { sql, rows: Some(2.0), ..Call::default() }
    }

    #[test]
    fn calls_are_counted_by_shape_with_their_values() {
        let mut collector = Collector::new(Grammar::MYSQL);
        for id in 0..10 {
            collector.take(&call(&format!("SELECT a FROM t WHERE id = {id}")));
        }
        collector.take(&call("SELECT a FROM t WHERE id IN (1, 2)"));
        collector.take(&call("select a from t where id in (1, 2, 3)"));
        collector.take(&call("SELECT a FROM t WHERE id IN (1, 2)"));
        collector.take(&call("BEGIN"));
        let seen = collector.seen();
        assert_eq!(seen.statements.len(), 3);
        assert_eq!(
            (seen.statements[0].text.as_str(), seen.statements[0].calls),
            ("SELECT a FROM t WHERE id = ?", 10.0)
        );
        assert_eq!(seen.statements[0].rows, Some(20.0));
        assert_eq!(seen.statements[0].samples[3].values, [Some("3".to_owned())]);
        assert_eq!(
            (seen.statements[1].text.as_str(), seen.statements[1].calls),
            ("SELECT a FROM t WHERE id IN (?, ?)", 2.0)
        );
        assert_eq!(seen.passed_over, [(OTHER_KIND, 1.0)]);
    }

    #[test]
    fn numbered_parameters_have_the_values_that_the_log_tells() {
        let mut collector = Collector::new(Grammar::POSTGRES);
        let parameters = [Some("7".to_owned()), None];
        collector.take(&Call { parameters: &parameters, at_us: Some(1), ..call("SELECT $2, $1, 5, $3") });
        collector.take(&Call { parameters: &parameters, at_us: Some(3_000_001), ..call("SELECT $2, $1, 5, $3") });
        let seen = collector.seen();
        let values = |texts: [Option<&str>; 4]| texts.map(|text| text.map(str::to_owned)).to_vec();
        assert_eq!(seen.statements[0].samples[0].values, values([None, Some("7"), Some("5"), None]));
        assert_eq!(seen.seconds, Some(3.0));
    }

    #[test]
    fn what_is_kept_does_not_grow() {
        let mut collector = Collector::new(Grammar::MYSQL);
        for number in 0..SHAPES_MOST + 10 {
            collector.take(&call(&format!("SELECT a{number} FROM t")));
        }
        for number in 0..SAMPLES_MOST * 3 {
            collector.take(&call(&format!("SELECT a0 FROM t WHERE id = {number}")));
            collector.take(&call(&format!("SELECT a1 FROM t WHERE id = {number}")));
        }
        let seen = collector.seen();
        assert_eq!(seen.statements.len(), SHAPES_MOST);
        assert!(seen.statements.iter().all(|ran| ran.samples.len() <= SAMPLES_MOST));
        assert_eq!(seen.passed_over, [(TOO_MANY, 10.0 + 2.0 * SAMPLES_MOST as f64 * 3.0)]);
    }

    #[test]
    fn every_call_is_as_likely_to_be_kept() {
        let mut collector = Collector::new(Grammar::MYSQL);
        (0..10_000).for_each(|number| collector.take(&call(&format!("SELECT a FROM t WHERE id = {number}"))));
        let kept: Vec<u64> = collector.seen().statements[0]
            .samples
            .iter()
            .map(|sample| sample.values[0].as_ref().unwrap().parse().unwrap())
            .collect();
        let parts: Vec<f64> = (0..5).map(|part| kept.iter().filter(|id| **id / 2_000 == part).count() as f64).collect();
        let chi2: f64 = parts.iter().map(|count| (count - 400.0).powi(2) / 400.0).sum();
        assert!(chi2 < 23.5, "chi-square {chi2} of {parts:?}; 23.5 with 4 degrees has a probability of 0.0001");
    }
}
