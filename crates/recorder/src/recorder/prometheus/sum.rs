//! A sum that loses no small numbers beside large ones. Main type: [`Sum`] (Neumaier, "Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen", 1974).

/// A sum and its compensation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    /// Adds a number.
    pub(super) fn add(&mut self, number: f64) {
        let sum = self.sum + number;
        if sum.is_finite() {
            self.lost +=
                if self.sum.abs() >= number.abs() { (self.sum - sum) + number } else { (number - sum) + self.sum };
        }
        self.sum = sum;
    }

    /// Returns the sum of all numbers.
    pub(super) fn total(self) -> f64 {
        self.sum + self.lost
    }
}

impl FromIterator<f64> for Sum {
    fn from_iter<I: IntoIterator<Item = f64>>(numbers: I) -> Self {
        let mut sum = Sum::default();
        numbers.into_iter().for_each(|number| sum.add(number));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_beside_large_ones_are_not_lost() {
        assert_eq!([1.0, 1e100, 1.0, -1e100].into_iter().collect::<Sum>().total(), 2.0);
        assert_eq!([f64::MAX, f64::MAX, 1.0].into_iter().collect::<Sum>().total(), f64::INFINITY);
        assert_eq!(Sum::default().total(), 0.0);
    }
}
