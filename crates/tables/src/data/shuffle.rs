//! A shuffled order of the numbers 0 to n - 1 in which each place is computed at the same small cost: [`Shuffle`].
//!
//! A Feistel network permutes all numbers with as many bits as n; a number that is not below n is passed through the network again until
//! it is (Black and Rogaway 2002, "cycle walking"), less than twice on average. The functions of the rounds are [`mix`] of a key and the
//! other half. Four rounds are enough for large halves (Luby and Rackoff 1988), but not for halves of a few bits: with four, numbers
//! of 1,000 that stand 64 apart have twice the correlation that chance gives them. Therefore there are eight.
//!
//! In a random order of n numbers, neighbours correlate by about 1/√n, by chance alone: by more than 0.05 in one of nine orders of 1,000.
//! If n is small, the network therefore takes the first of the seed's keys with which neighbours correlate less.
//!
//! Invariant: the number at a place is a pure function of n, the seed and the place, and every number below n stands at exactly one place.

use crate::random::{derive, mix};

/// Bound of the correlation of neighbours from 5 numbers on; no order of 3 or 4 numbers stays below it.
const CORRELATION_BELOW: f64 = 0.05;

/// Largest n whose orders are checked: 0.05 is 6.4 standard deviations there.
const LOOKED_AT_MOST: u64 = 1 << 14;

/// Number of rounds of the network.
const ROUNDS: usize = 8;

/// Number of keys that are tried for a small n.
const KEYS: u64 = 256;

/// An order of the numbers 0 to n - 1.
#[derive(Debug)]
pub(super) struct Shuffle {
    n: u64,
    /// Bits of the lower half; the upper half has as many or one less.
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    keys: [u64; ROUNDS],
}

impl Shuffle {
    /// Creates a seed's order of 0 to `n` - 1; of one number if `n` is 0.
    pub(super) fn new(n: u64, seed: u64) -> Self {
        let n = n.max(1);
        if n > LOOKED_AT_MOST {
            return Shuffle::keyed(n, derive(seed, 0));
        }
        let mut best = (f64::INFINITY, 0);
        for number in 0..KEYS {
            let correlation = Shuffle::keyed(n, derive(seed, number)).correlation().abs();
            if correlation < best.0 {
                best = (correlation, number);
            }
            if correlation < CORRELATION_BELOW {
                break;
            }
        }
        Shuffle::keyed(n, derive(seed, best.1))
    }

    fn keyed(n: u64, key: u64) -> Self {
        let bits = (u64::BITS - (n - 1).leading_zeros()).max(2);
        let (high_bits, low_bits) = (bits / 2, bits - bits / 2);
        let (low_mask, high_mask) = ((1 << low_bits) - 1, (1 << high_bits) - 1);
        Shuffle { n, low_bits, low_mask, high_mask, keys: std::array::from_fn(|round| derive(key, round as u64)) }
    }

    /// Returns the number at a place; places from n on count from the beginning again.
    #[inline]
    pub(super) fn at(&self, place: u64) -> u64 {
        let mut number = place % self.n;
        loop {
            number = self.network(number);
            if number < self.n {
                return number;
            }
        }
    }

    #[inline]
    fn network(&self, number: u64) -> u64 {
        let (mut high, mut low) = (number >> self.low_bits, number & self.low_mask);
        for keys in self.keys.as_chunks::<2>().0 {
            high ^= mix(keys[0] ^ low) & self.high_mask;
            low ^= mix(keys[1] ^ high) & self.low_mask;
        }
        high << self.low_bits | low
    }

    /// Returns Pearson's correlation of the numbers with their successors; 0 with fewer than two pairs.
    fn correlation(&self) -> f64 {
        correlation_of(&(0..self.n).map(|place| self.at(place) as f64).collect::<Vec<_>>(), 1)
    }
}

/// Returns Pearson's correlation of numbers with those that stand `lag` places behind them; 0 without two pairs that differ.
pub(super) fn correlation_of(numbers: &[f64], lag: usize) -> f64 {
    let pairs = numbers.len().saturating_sub(lag);
    let (first, second) = (&numbers[..pairs], &numbers[numbers.len() - pairs..]);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / pairs.max(1) as f64;
    let (first_mean, second_mean) = (mean(first), mean(second));
    let (mut both, mut of_first, mut of_second) = (0.0, 0.0, 0.0);
    for (a, b) in first.iter().zip(second) {
        let (a, b) = (a - first_mean, b - second_mean);
        both += a * b;
        of_first += a * a;
        of_second += b * b;
    }
    if of_first * of_second > 0.0 { both / (of_first * of_second).sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(n: u64, seed: u64) -> Vec<f64> {
        let shuffle = Shuffle::new(n, seed);
        (0..n).map(|place| shuffle.at(place) as f64).collect()
    }

    #[test]
    fn from_five_numbers_on_neighbours_correlate_below_five_hundredths_at_every_size() {
        let sizes = (5..=300).chain([511, 512, 513, 1000, 2047, 3000, 10_000, 16_384, 16_385, 30_000, 65_537, 100_000]);
        for n in sizes {
            for seed in [1, 2, 3] {
                let correlation = correlation_of(&order(n, seed), 1);
                assert!(correlation.abs() < CORRELATION_BELOW, "{n} rows, seed {seed}: {correlation}");
            }
        }
    }

    #[test]
    fn numbers_that_stand_farther_apart_correlate_as_those_of_random_orders() {
        // The correlation of a random order is normal with a standard deviation of 1/√pairs, about: over many seeds its mean square
        // times the pairs has the mean 1 and the standard deviation √(2/seeds).
        let seeds = 40;
        for n in [1000_u64, 4097, 20_000] {
            let orders: Vec<_> = (0..seeds).map(|seed| order(n, seed)).collect();
            for lag in [2, 3, 4, 8, 64] {
                let squares = orders.iter().map(|order| correlation_of(order, lag).powi(2));
                let mean = squares.sum::<f64>() / seeds as f64 * (n as usize - lag) as f64;
                let spread = (2.0 / seeds as f64).sqrt();
                assert!((mean - 1.0).abs() < 4.5 * spread, "{n} rows, {lag} apart: {mean} instead of 1");
            }
        }
    }

    #[test]
    fn a_number_is_anywhere_with_the_same_probability() {
        // 4,000 seeds' orders of 20 numbers: χ² of 20 × 20 counts of 200 each, with 361 degrees of freedom.
        let mut counts = [[0_u32; 20]; 20];
        for seed in 0..4000 {
            let shuffle = Shuffle::new(20, seed);
            (0..20).for_each(|place| counts[place as usize][shuffle.at(place) as usize] += 1);
        }
        let chi2: f64 = counts.iter().flatten().map(|count| (f64::from(*count) - 200.0).powi(2) / 200.0).sum();
        assert!((chi2 - 361.0).abs() < 5.0 * (2.0_f64 * 361.0).sqrt(), "{chi2}");
    }

    #[test]
    fn correlations_are_pearsons() {
        assert_eq!(correlation_of(&[1.0, 2.0, 3.0, 4.0], 1), 1.0);
        assert_eq!(correlation_of(&[1.0, 2.0, 1.0, 2.0], 1), -1.0);
        // Pairs (1, 3), (3, 2), (2, 4): by hand -0.5.
        assert!((correlation_of(&[1.0, 3.0, 2.0, 4.0], 1) + 0.5).abs() < 1e-12);
        assert_eq!((correlation_of(&[5.0], 1), correlation_of(&[], 1)), (0.0, 0.0));
    }
}
