//! Figures over the values of readings, and whether those of a database are equal to them: [`Figures`].
//!
//! Whole numbers must be equal. The sum of floating-point numbers depends on their order: it may differ by what adding them in any order can (Higham, *Accuracy and
//! Stability of Numerical Algorithms*, section 4.2: n units in the last place of the sum of their magnitudes), and a mean by the n-th part of that.

use crate::question::Figure;
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

/// Figures over several values.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Figures {
    pub count: u64,
    whole: i128,
    real: f64,
    /// Error of `real` so far (Kahan's compensation), so that the right answer is more exact than any database's.
    error: f64,
    magnitudes: f64,
    range: Option<(Number, Number)>,
    is_real: bool,
}

impl Figures {
    pub(super) fn add(&mut self, value: Number) {
        self.count += 1;
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
        })
    }

    /// Returns by how much a database's figure may differ from this one.
    pub(super) fn tolerance(&self, figure: Figure) -> f64 {
        let count = self.count as f64;
        match figure {
            Figure::Min | Figure::Max => 0.0,
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
            (Some(right), Some(found)) if self.tolerance(figure) == 0.0 => right.is(found),
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
        let mut figures = Figures::default();
        values.iter().for_each(|value| figures.add(*value));
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
    fn decimal_numbers_in_texts_are_read() {
        let mut cells = Cells::new();
        cells.text("7");
        cells.text("2.3333333333333335");
        cells.text("seven");
        let numbers: Vec<_> = cells.as_slice().iter().map(|cell| Number::of(*cell, &cells)).collect();
        assert_eq!(numbers, [Some(Number::Whole(7)), Some(Number::Real(7.0 / 3.0)), None]);
    }
}
