//! The part of PromQL that is answered: selectors, functions over a range of time, and aggregations around them. Main types: [`Expression`] and [`Selector`];
//! the way in is [`parse()`].
//!
//! Everything else is refused with its place, and with a sentence that says what there is.

mod parse;
mod pattern;
mod tokens;

use crate::recorder::prometheus::labels::Labels;

#[cfg(test)]
pub(super) use parse::RANGE_NS_MAX;
pub(super) use parse::{duration_ns, parse, selector};
use pattern::Pattern;

/// The name of the label that holds a metric's name.
pub(super) const NAME: &str = "__name__";

/// A question.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    /// A number, as Grafana asks for when it tries a data source.
    Number(f64),
    /// The newest sample of each series.
    Newest(Selector),
    /// A function of the samples of each series within a range of time.
    Window {
        /// The function.
        function: Function,
        /// The series.
        selector: Selector,
        /// The range in nanoseconds, at least a millisecond.
        range_ns: i64,
    },
    /// Several series together.
    Group {
        /// The aggregation.
        fold: Fold,
        /// The labels that the series of a group have in common.
        by: Vec<String>,
        /// What is aggregated.
        inner: Box<Expression>,
    },
}

/// A function of the samples within a range of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    /// The mean.
    Average,
    /// The smallest.
    Least,
    /// The largest.
    Most,
    /// The sum.
    Sum,
    /// The number of samples.
    Count,
    /// The increase per second of a counter that may begin anew.
    Rate,
}

impl Function {
    const ALL: [(&'static str, Function); 6] = [
        ("avg_over_time", Function::Average),
        ("min_over_time", Function::Least),
        ("max_over_time", Function::Most),
        ("sum_over_time", Function::Sum),
        ("count_over_time", Function::Count),
        ("rate", Function::Rate),
    ];

    /// Returns the function with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(own, _)| *own == name).map(|(_, function)| function)
    }
}

/// An aggregation of several series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    /// The mean.
    Average,
    /// The smallest.
    Least,
    /// The largest.
    Most,
    /// The sum.
    Sum,
    /// The number of series.
    Count,
}

impl Fold {
    const ALL: [(&'static str, Fold); 5] =
        [("avg", Fold::Average), ("min", Fold::Least), ("max", Fold::Most), ("sum", Fold::Sum), ("count", Fold::Count)];

    /// Returns the aggregation with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(own, _)| *own == name).map(|(_, fold)| fold)
    }
}

/// Which series: all conditions must hold.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Selector {
    /// The conditions; that on the metric's name is one on [`NAME`].
    pub(super) matchers: Vec<Matcher>,
}

/// A condition on a label. A label that a series does not have is empty.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Matcher {
    /// The label.
    pub(super) label: String,
    /// What its value must be, or must not be.
    pub(super) test: Test,
}

/// What a label's value must be.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Test {
    /// This text.
    Equal(String),
    /// Another text.
    Unequal(String),
    /// A text of this form.
    Like(Pattern),
    /// A text of another form.
    Unlike(Pattern),
}

impl Test {
    fn holds(&self, value: &str) -> bool {
        match self {
            Test::Equal(text) => text == value,
            Test::Unequal(text) => text != value,
            Test::Like(pattern) => pattern.matches(value),
            Test::Unlike(pattern) => !pattern.matches(value),
        }
    }
}

impl Selector {
    /// Returns the selector of all series of a metric.
    pub(super) fn of_name(name: &str) -> Self {
        Selector { matchers: vec![Matcher { label: NAME.to_owned(), test: Test::Equal(name.to_owned()) }] }
    }

    /// Returns whether a metric's name meets the conditions on it.
    pub(super) fn takes_name(&self, name: &str) -> bool {
        self.matchers.iter().filter(|matcher| matcher.label == NAME).all(|matcher| matcher.test.holds(name))
    }

    /// Returns whether labels meet the conditions, except those on the metric's name.
    pub(super) fn takes(&self, labels: &Labels) -> bool {
        let others = self.matchers.iter().filter(|matcher| matcher.label != NAME);
        others.into_iter().all(|matcher| matcher.test.holds(labels.get(&matcher.label)))
    }

    /// Returns the text that a label must equal, where a condition says so and the text is not empty.
    pub(super) fn fixed(&self, label: &str) -> Option<&str> {
        self.matchers.iter().find_map(|matcher| match &matcher.test {
            Test::Equal(text) if matcher.label == label && !text.is_empty() => Some(text.as_str()),
            _ => None,
        })
    }
}
