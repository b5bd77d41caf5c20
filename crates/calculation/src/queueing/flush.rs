//! M/M/1 whose server stalls: breaks down at random, as a database does that flushes its log or its pages.
//!
//! Main type: [`Flush`]. Invariant: without breakdowns it is M/M/1.

use super::queue::Queue;
use super::search::quantile_of_tail;

/// An on/off server: while on it serves at mu and stalls at rate alpha, busy or not; while off it recovers at rate beta, and
/// work goes on where it stopped. First come first served, behind a constant delay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flush {
    /// Service rate while on, per second, above 0.
    pub mu_per_s: f64,
    /// Constant delay in seconds, 0 or more.
    pub delta_s: f64,
    /// Stalls per second of being on (alpha), 0 or more.
    pub stall_per_s: f64,
    /// Recoveries per second of being stalled (beta), above 0.
    pub recovery_per_s: f64,
}

impl Flush {
    /// Returns the factor that the curve of means has over that of M/M/1 with the same capacity: 1 + alpha mu / (alpha + beta)².
    pub fn scale(&self) -> f64 {
        let change_per_s = self.stall_per_s + self.recovery_per_s;
        1.0 + self.stall_per_s * self.mu_per_s / (change_per_s * change_per_s)
    }
}

impl Queue for Flush {
    /// mu times the share of time for which the server is on.
    fn capacity_per_s(&self) -> f64 {
        self.mu_per_s * self.recovery_per_s / (self.stall_per_s + self.recovery_per_s)
    }

    fn delay_s(&self) -> f64 {
        self.delta_s
    }

    /// T = ((alpha + beta)² + alpha mu) / ((alpha + beta) (beta mu - lambda (alpha + beta))) (White and Christie 1958).
    fn stable_mean_s(&self, arrival_rate_per_s: f64) -> f64 {
        self.delta_s + self.scale() / (self.capacity_per_s() - arrival_rate_per_s)
    }

    /// The generating function of the number present, P(z), gives the transform of the sojourn time at z = 1 - s / lambda
    /// (Keilson and Servi 1988: Poisson arrivals, first come first served). Solving the two balance equations:
    /// S*(s) = K (s + alpha + beta) / (s² + s (alpha + beta + mu - lambda) + K (alpha + beta)), with
    /// K = C - lambda and C (alpha + beta) = mu beta: a sum of two exponentials.
    fn stable_quantile_s(&self, arrival_rate_per_s: f64, quantile: f64) -> Option<f64> {
        let change_per_s = self.stall_per_s + self.recovery_per_s;
        let spare_per_s = self.capacity_per_s() - arrival_rate_per_s;
        let sum = change_per_s + self.mu_per_s - arrival_rate_per_s;
        let product = spare_per_s * change_per_s;
        let root = (sum * sum - 4.0 * product).max(0.0).sqrt();
        let fast = (sum + root) / 2.0;
        let slow = product / fast;
        if fast - slow <= 1e-9 * fast {
            // Two equal rates occur only without breakdowns, at mu - lambda = beta: one exponential is left.
            let only = -(-quantile).ln_1p() / spare_per_s;
            return Some(self.delta_s + only);
        }
        let slow_weight = spare_per_s * (change_per_s - slow) / (fast - slow) / slow;
        let fast_weight = spare_per_s * (fast - change_per_s) / (fast - slow) / fast;
        let tail = |time_s: f64| slow_weight * (-slow * time_s).exp() + fast_weight * (-fast * time_s).exp();
        Some(self.delta_s + quantile_of_tail(quantile, 1.0 / slow, tail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::mm1::Mm1;

    #[test]
    fn without_stalls_it_is_mm1() {
        let mm1 = Mm1 { mu_per_s: 1000.0, delta_s: 0.001 };
        for recovery_per_s in [50.0, 200.0, 5000.0] {
            let flush = Flush { mu_per_s: 1000.0, delta_s: 0.001, stall_per_s: 0.0, recovery_per_s };
            let (a, b) = (flush.quantile_s(800.0, 0.99).unwrap(), mm1.quantile_s(800.0, 0.99).unwrap());
            assert!((a / b - 1.0).abs() < 1e-9, "{recovery_per_s}: {a} {b}");
            assert_eq!(flush.mean_s(800.0), mm1.mean_s(800.0));
        }
    }

    #[test]
    fn the_distribution_has_the_mean_of_the_formula() {
        let flush = Flush { mu_per_s: 1000.0, delta_s: 0.0, stall_per_s: 5.0, recovery_per_s: 50.0 };
        // The mean is the integral of the quantile function.
        let n = 200_000;
        let sum: f64 = (0..n).map(|i| flush.quantile_s(300.0, (i as f64 + 0.5) / n as f64).unwrap()).sum();
        assert!((sum / n as f64 / flush.mean_s(300.0).unwrap() - 1.0).abs() < 1e-4);
    }
}
