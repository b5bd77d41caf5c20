//! Intervals of parameters. Main type: [`Range`].

use serde::{Serialize, Serializer};

/// An interval of a parameter; an end is infinite where the points determine none, which JSON shows as null.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Range {
    /// Creates the interval of one value.
    pub(super) fn at(value: f64) -> Self {
        Range { low: value, high: value }
    }

    /// Returns the smallest interval that contains both.
    pub(super) fn hull(self, other: Range) -> Self {
        Range { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    pub(super) fn times(self, factor: f64) -> Self {
        Range { low: self.low * factor, high: self.high * factor }
    }
}

impl Serialize for Range {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        [self.low, self.high].serialize(serializer)
    }
}
