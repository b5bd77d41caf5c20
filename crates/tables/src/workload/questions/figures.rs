//! Figures over the values of readings, and whether those of a database are equal to them: [`Figures`].
//!
//! Whole numbers must be equal. The sum of floating-point numbers depends on their order: it may differ by what adding them in any order can (Higham, *Accuracy and
//! Stability of Numerical Algorithms*, section 4.2: n units in the last place of the sum of their magnitudes), and a mean by the n-th part of that.

use crate::question::{Figure, MILLIONTHS, share};
use crate::record::{Cell, Cells};

/// The values of a numeric column, by record.
#[derive(Debug)]
pub(super) enum Numbers {
    /// Whole numbers.
    Whole(Vec<i64>),
    /// Floating-point numbers.
    Real(Vec<f64>),
}

/// A number of an answer or of a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Whole(i128),
    Real(f64),
}

impl Number {
    /// Returns the number in a cell of an answer; some databases give decimal numbers as texts.
    pub(super) fn of(cell: Cell, cells: &Cells) -> Option<Self> {
        match cell {
            Cell::Int(value) => Some(Number::Whole(i128::from(value))),
            Cell::Float(value) => Some(Number::Real(value)),
            Cell::Text(span) => {
                let text = std::str::from_utf8(cells.bytes_of(span)).ok()?;
                text.parse().map(Number::Whole).or_else(|_| text.parse().map(Number::Real)).ok()
            }
            Cell::Null | Cell::Blob(_) => None,
        }
    }

    pub(super) fn real(self) -> f64 {
        match self {
            Number::Whole(value) => value as f64,
            Number::Real(value) => value,
        }
    }

    /// Returns whether both are the same number, as a stored value must be.
    pub(super) fn is(self, other: Number) -> bool {
        match (self, other) {
            (Number::Whole(mine), Number::Whole(others)) => mine == others,
            _ => self.real() == other.real(),
        }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Number::Whole(value) => value.fmt(f),
            Number::Real(value) => value.fmt(f),
        }
    }
}

impl Numbers {
    /// Returns the number of a record.
    pub(super) fn get(&self, record: u64) -> Number {
        match self {
            Numbers::Whole(values) => Number::Whole(values.get(record as usize).copied().map_or(0, i128::from)),
            Numbers::Real(values) => Number::Real(values.get(record as usize).copied().unwrap_or(f64::NAN)),
        }
    }
}

/// When a reading was made, and its source: the order of readings.
pub(super) type At = (i64, i64);

/// The values of a column, which are all whole or all not, in eight bytes each.
#[derive(Debug, Clone, Default)]
struct Values {
    whole: Vec<i64>,
    reals: Vec<f64>,
}

/// Figures over several values.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    pub count: u64,
    whole: i128,
    real: f64,
    /// Error of `real` so far (Kahan's compensation), so that the right answer is more exact than any database's.
    error: f64,
    magnitudes: f64,
    range: Option<(Number, Number)>,
    /// The first and the last value, with their readings.
    ends: Option<[(At, Number); 2]>,
    /// All values, where quantiles are asked for.
    values: Option<Values>,
    is_real: bool,
}

impl Figures {
    /// Returns figures over nothing yet, from which these can be had.
    pub(super) fn of(figures: &[Figure]) -> Self {
        let has_quantiles = figures.iter().any(|figure| matches!(figure, Figure::Quantile(_)));
        Figures { values: has_quantiles.then(Values::default), ..Figures::default() }
    }

    /// Adds the value of a reading.
    pub(super) fn add(&mut self, value: Number, at: At) {
        self.count += 1;
        self.values.iter_mut().for_each(|values| match value {
            Number::Whole(value) => values.whole.push(value as i64),
            Number::Real(value) => values.reals.push(value),
        });
        self.ends = Some(match self.ends {
            None => [(at, value); 2],
            Some([first, last]) => {
                [if at < first.0 { (at, value) } else { first }, if at > last.0 { (at, value) } else { last }]
            }
        });
        let real = value.real();
        self.magnitudes += real.abs();
        match value {
            Number::Whole(value) => self.whole += value,
            Number::Real(value) => {
                self.is_real = true;
                let corrected = value - self.error;
                let sum = self.real + corrected;
                self.error = (sum - self.real) - corrected;
                self.real = sum;
            }
        }
        self.range = Some(match self.range {
            None => (value, value),
            Some((least, most)) => {
                (if real < least.real() { value } else { least }, if real > most.real() { value } else { most })
            }
        });
    }

    /// Returns a figure; `None` where there are no values.
    pub(super) fn get(&self, figure: Figure) -> Option<Number> {
        let (least, most) = self.range?;
        Some(match figure {
            Figure::Min => least,
            Figure::Max => most,
            Figure::Sum if !self.is_real => Number::Whole(self.whole),
            Figure::Sum => Number::Real(self.real),
            Figure::Mean if !self.is_real => Number::Real(self.whole as f64 / self.count as f64),
            Figure::Mean => Number::Real(self.real / self.count as f64),
            Figure::First => self.ends?[0].1,
            Figure::Last => self.ends?[1].1,
            Figure::Quantile(millionths) => {
                let exact = u128::from(self.count) * u128::from(millionths);
                self.ranked(exact.div_ceil(u128::from(MILLIONTHS)) as usize)?
            }
        })
    }

    /// Returns the value with this rank, from 1, among the values in rising order.
    fn ranked(&self, rank: usize) -> Option<Number> {
        let place = rank.checked_sub(1).filter(|place| (*place as u64) < self.count)?;
        let values = self.values.as_ref()?;
        if self.is_real {
            let mut reals = values.reals.clone();
            return Some(Number::Real(*reals.select_nth_unstable_by(place, f64::total_cmp).1));
        }
        Some(Number::Whole(i128::from(*values.whole.clone().select_nth_unstable(place).1)))
    }

    /// Returns the quantile of a database that takes the share as a floating-point number: where share · count is a whole number but for rounding, the rank may be one more.
    fn rounded(&self, figure: Figure) -> Option<Number> {
        let Figure::Quantile(millionths) = figure else { return None };
        self.ranked((share(millionths) * self.count as f64).ceil() as usize)
    }

    /// Returns by how much a database's figure may differ from this one.
    pub(super) fn tolerance(&self, figure: Figure) -> f64 {
        let count = self.count as f64;
        match figure {
            Figure::Min | Figure::Max | Figure::First | Figure::Last | Figure::Quantile(_) => 0.0,
            Figure::Sum if !self.is_real => 0.0,
            Figure::Sum => (count + 2.0) * 0.5 * f64::EPSILON * self.magnitudes,
            Figure::Mean => (count + 4.0) * 0.5 * f64::EPSILON * self.magnitudes / count.max(1.0),
        }
    }

    /// Checks a figure of an answer.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn check(&self, figure: Figure, cell: Cell, cells: &Cells) -> Result<(), String> {
        let right = self.get(figure);
        let found = Number::of(cell, cells);
        let is_right = match (right, found) {
            (None, None) => true,
            (Some(right), Some(found)) if self.tolerance(figure) == 0.0 => {
                right.is(found) || self.rounded(figure).is_some_and(|rounded| rounded.is(found))
            }
            (Some(right), Some(found)) => (right.real() - found.real()).abs() <= self.tolerance(figure),
            _ => false,
        };
        if is_right { Ok(()) } else { Err(format!("{} instead of {}", told(found), told(right))) }
    }
}

/// Returns a number as a message says it.
pub(super) fn told(number: Option<Number>) -> String {
    number.map_or("null".to_owned(), |number| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[Number]) -> Figures {
        let mut figures = Figures::of(&[Figure::Quantile(1)]);
        (0..).zip(values).for_each(|(time_ns, value)| figures.add(*value, (time_ns, 0)));
        figures
    }

    fn accepts(figures: &Figures, figure: Figure, cell: Cell) -> bool {
        figures.check(figure, cell, &Cells::new()).is_ok()
    }

    #[test]
    fn whole_numbers_must_be_equal() {
        let figures = of(&[Number::Whole(3), Number::Whole(-1), Number::Whole(5)]);
        assert!(accepts(&figures, Figure::Sum, Cell::Int(7)) && !accepts(&figures, Figure::Sum, Cell::Int(8)));
        assert!(accepts(&figures, Figure::Min, Cell::Int(-1)) && accepts(&figures, Figure::Max, Cell::Int(5)));
        assert!(accepts(&figures, Figure::Mean, Cell::Float(7.0 / 3.0)));
        assert!(!accepts(&figures, Figure::Mean, Cell::Float(2.3333)), "four places are not enough");
        assert!(!accepts(&figures, Figure::Sum, Cell::Null) && accepts(&Figures::default(), Figure::Sum, Cell::Null));
    }

    #[test]
    fn the_order_of_a_sum_does_not_matter_and_a_missing_value_does() {
        let values: Vec<f64> = (0..100_000).map(|n| f64::from(n).sin() * 1e3 + 0.1).collect();
        let figures = of(&values.iter().map(|value| Number::Real(*value)).collect::<Vec<_>>());
        let backwards: f64 = values.iter().rev().sum();
        let without: f64 = values[1..].iter().sum();
        assert!(accepts(&figures, Figure::Sum, Cell::Float(backwards)));
        assert!(!accepts(&figures, Figure::Sum, Cell::Float(without)));
        assert!(accepts(&figures, Figure::Mean, Cell::Float(backwards / 1e5)));
        let single = of(&[Number::Real(0.1)]);
        assert!(!accepts(&single, Figure::Max, Cell::Float(0.100_000_000_1)), "a stored value is exactly itself");
    }

    #[test]
    fn ends_are_those_of_time_and_then_of_the_source() {
        let mut figures = Figures::default();
        for (at, value) in [((5, 2), 1), ((3, 9), 2), ((3, 4), 3), ((8, 1), 4), ((8, 7), 5), ((6, 6), 6)] {
            figures.add(Number::Whole(value), at);
        }
        assert_eq!(figures.get(Figure::First), Some(Number::Whole(3)));
        assert_eq!(figures.get(Figure::Last), Some(Number::Whole(5)));
    }

    #[test]
    fn a_quantile_is_the_value_whose_rank_is_the_share_rounded_up() {
        // By the definition: the least value to which at least that share is equal or less.
        let by_definition = |values: &[i128], millionths: u32| {
            let share = |value: i128| values.iter().filter(|other| **other <= value).count() * MILLIONTHS as usize;
            let enough = |value: &&i128| share(**value) >= millionths as usize * values.len();
            Number::Whole(*values.iter().filter(enough).min().unwrap())
        };
        for count in 1..60_i128 {
            let values: Vec<i128> = (0..count).map(|number| number * 37 % 23).collect();
            let figures = of(&values.iter().map(|value| Number::Whole(*value)).collect::<Vec<_>>());
            for millionths in [1, 250_000, 500_000, 550_000, 900_000, 950_000, 999_999] {
                let right = by_definition(&values, millionths);
                assert_eq!(figures.get(Figure::Quantile(millionths)), Some(right), "{millionths} of {values:?}");
            }
        }
        // 0.07 · 100 is 7, and a little more in floating-point numbers.
        let figures = of(&(1..=100).map(Number::Whole).collect::<Vec<_>>());
        let accepted = |millionths: u32| -> Vec<i64> {
            (1..=100).filter(|value| accepts(&figures, Figure::Quantile(millionths), Cell::Int(*value))).collect()
        };
        assert_eq!((accepted(70_000), accepted(71_000), accepted(950_000)), (vec![7, 8], vec![8], vec![95]));
    }

    #[test]
    fn decimal_numbers_in_texts_are_read() {
        let mut cells = Cells::new();
        cells.text("7");
        cells.text("2.3333333333333335");
        cells.text("seven");
        let numbers: Vec<_> = cells.as_slice().iter().map(|cell| Number::of(*cell, &cells)).collect();
        assert_eq!(numbers, [Some(Number::Whole(7)), Some(Number::Real(7.0 / 3.0)), None]);
    }
}
