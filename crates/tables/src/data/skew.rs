//! The skew of YCSB: ranks by the method of J. Gray and others, "Quickly generating billion-record synthetic databases", SIGMOD
//! 1994 (section 3.2), with YCSB's exponent 0.99. Main type: [`Skew`].
//!
//! The method draws the first two ranks exactly and approximates the others by a power law. Users compare with what
//! YCSB draws, so the approximation is kept as it is; `Zipf` beside it is exact.
//!
//! Invariant: the same u gives the same rank as YCSB's generator, to the last bit of the power function.

/// The exponent θ.
pub const EXPONENT: f64 = 0.99;

/// Number of terms of ζ that are added one by one; the rest is a series whose error is below 1e-18 from here on.
const SUMMED: u64 = 64;

/// Ranks 0 to `items` - 1, the first the most frequent.
#[derive(Debug, Clone)]
pub struct Skew {
    /// Number of items when the generator was made: YCSB computes η from it even if items are added.
    items: f64,
    /// Number of items that `zeta` sums over.
    count: u64,
    zeta: f64,
    eta: f64,
    /// ζ(2, θ) = 1 + 2^-θ.
    zeta_two: f64,
    /// 1 / (1 - θ).
    alpha: f64,
}

impl Skew {
    /// Creates a skew over at least one item.
    pub fn new(items: u64) -> Self {
        Self::with_zeta(items, zeta(items.max(1)))
    }

    /// Creates a skew with ζ(items, θ) given, as YCSB gives it for ten thousand million items.
    pub fn with_zeta(items: u64, zeta: f64) -> Self {
        let zeta_two = 1.0 + 0.5_f64.powf(EXPONENT);
        let count = items.max(1);
        let mut skew = Skew { items: count as f64, count, zeta, eta: 0.0, zeta_two, alpha: 1.0 / (1.0 - EXPONENT) };
        skew.eta = skew.eta_of(zeta);
        skew
    }

    /// Returns η = (1 - (2/n)^(1-θ)) / (1 - ζ(2)/ζ(n)).
    fn eta_of(&self, zeta: f64) -> f64 {
        (1.0 - (2.0 / self.items).powf(1.0 - EXPONENT)) / (1.0 - self.zeta_two / zeta)
    }

    /// Returns ζ(n, θ) of the current items.
    pub fn zeta(&self) -> f64 {
        self.zeta
    }

    /// Returns η, with which the ranks from the third on are drawn.
    pub fn eta(&self) -> f64 {
        self.eta
    }

    /// Sets a larger number of items. A smaller one is ignored, as in YCSB.
    #[inline]
    pub fn grow(&mut self, items: u64) {
        if items > self.count {
            self.zeta = zeta(items);
            self.count = items;
            self.eta = self.eta_of(self.zeta);
        }
    }

    /// Returns the rank of a number `u` in [0, 1).
    #[inline]
    pub fn rank(&self, u: f64) -> u64 {
        let scaled = u * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < self.zeta_two {
            return 1;
        }
        let rank = (self.count as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha)) as u64;
        // The largest u below 1 would reach one rank too far.
        rank.min(self.count - 1)
    }

    /// Returns the least u whose rank is at least this one: the distribution function, for tests against theory.
    #[cfg(test)]
    pub fn begin_of(&self, rank: u64) -> f64 {
        match rank {
            0 => 0.0,
            1 => 1.0 / self.zeta,
            rank => {
                let power = (rank as f64 / self.count as f64).powf(1.0 - EXPONENT);
                ((power - 1.0 + self.eta) / self.eta).clamp(self.zeta_two / self.zeta, 1.0)
            }
        }
    }
}

/// Returns ζ(n, θ), the sum of k^-θ for k from 1 to n. From [`SUMMED`] terms on, the Euler-Maclaurin series replaces the sum: YCSB
/// adds all terms, which takes minutes for a hundred million and differs in the twelfth digit.
fn zeta(n: u64) -> f64 {
    let sum = |terms: u64| (1..=terms).map(|k| (k as f64).powf(-EXPONENT)).sum::<f64>();
    if n <= SUMMED {
        return sum(n);
    }
    sum(SUMMED) + integral(n as f64) - integral(SUMMED as f64)
}

/// Returns the Euler-Maclaurin series of the sum up to x, without its constant.
fn integral(x: f64) -> f64 {
    let theta = EXPONENT;
    let term = x.powf(-theta);
    let third = theta * (theta + 1.0) * (theta + 2.0);
    let fifth = third * (theta + 3.0) * (theta + 4.0);
    x * term / (1.0 - theta) + term / 2.0 - theta * term / (12.0 * x) + third * term / (720.0 * x.powi(3))
        - fifth * term / (30_240.0 * x.powi(5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_of_zeta_is_the_sum() {
        for n in [1, 2, 63, 64, 65, 100, 1000, 100_000] {
            let sum: f64 = (1..=n).map(|k| (k as f64).powf(-EXPONENT)).sum();
            assert!((zeta(n) / sum - 1.0).abs() < 1e-12, "{n}: {} and {sum}", zeta(n));
        }
    }

    #[test]
    fn zeta_of_ten_thousand_million_is_the_constant_of_ycsb() {
        assert!((zeta(10_000_000_000) / 26.469_028_201_783_02 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_skew_that_has_grown_keeps_the_eta_of_its_first_size() {
        let (mut grown, large) = (Skew::new(1000), Skew::new(2000));
        grown.grow(2000);
        assert_eq!(grown.zeta, large.zeta);
        assert_ne!(grown.eta, large.eta);
        let before = grown.clone();
        grown.grow(1500);
        assert_eq!((grown.count, grown.zeta), (before.count, before.zeta), "items do not go away");
    }

    #[test]
    fn ranks_stay_within_the_items() {
        for items in [1, 2, 3, 10, 1_000_000] {
            let skew = Skew::new(items);
            for u in [0.0, 0.1, 0.5, 0.999, 1.0 - f64::EPSILON / 2.0] {
                assert!(skew.rank(u) < items, "{items} items, u = {u}: {}", skew.rank(u));
            }
        }
    }
}
