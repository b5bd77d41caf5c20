//! M/M/c with a constant delay: c servers, one queue, first come first served.
//!
//! Main type: [`Mmc`]. Invariant: Erlang's formulas by their recurrence, which neither overflows nor cancels for any c.

use super::queue::Queue;
use super::search::quantile_of_tail;

/// M/M/c behind a constant delay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mmc {
    /// Service rate of one server, per second, above 0.
    pub mu_per_s: f64,
    /// Number of servers c, 1 or more.
    pub servers: u32,
    /// Constant delay in seconds, 0 or more.
    pub delta_s: f64,
}

impl Mmc {
    /// Returns the probability that an arrival has to wait (Erlang C); 1 when overloaded. From Erlang B by
    /// 1 / B_k = 1 + k / (a B_(k-1)) and C = B / (1 - rho (1 - B)), with a = lambda / mu (Cooper 1981, chapter 3).
    pub fn wait_probability(&self, arrival_rate_per_s: f64) -> f64 {
        let offered = arrival_rate_per_s / self.mu_per_s;
        if offered <= 0.0 {
            return 0.0;
        }
        let utilisation = offered / f64::from(self.servers);
        if utilisation >= 1.0 {
            return 1.0;
        }
        let inverse = (1..=self.servers).fold(1.0, |inverse, count| 1.0 + f64::from(count) / offered * inverse);
        // B / (1 - rho + rho B), with B = 1 / inverse.
        1.0 / (inverse * (1.0 - utilisation) + utilisation)
    }
}

impl Queue for Mmc {
    fn capacity_per_s(&self) -> f64 {
        self.mu_per_s * f64::from(self.servers)
    }

    fn delay_s(&self) -> f64 {
        self.delta_s
    }

    /// T = delta + 1 / mu + C / (c mu - lambda) (Cooper 1981, chapter 3).
    fn stable_mean_s(&self, arrival_rate_per_s: f64) -> f64 {
        let wait = self.wait_probability(arrival_rate_per_s);
        self.delta_s + 1.0 / self.mu_per_s + wait / (self.capacity_per_s() - arrival_rate_per_s)
    }

    /// The probability that waiting exceeds t is C exp(-theta t), theta = c mu - lambda; with the service after it
    /// P(T > t) = exp(-mu t) + C mu (exp(-mu t) - exp(-theta t)) / (theta - mu), which is exact at theta = mu too.
    fn stable_quantile_s(&self, arrival_rate_per_s: f64, quantile: f64) -> Option<f64> {
        let wait = self.wait_probability(arrival_rate_per_s);
        let theta_per_s = self.capacity_per_s() - arrival_rate_per_s;
        let (slow_per_s, apart_per_s) = (theta_per_s.min(self.mu_per_s), (theta_per_s - self.mu_per_s).abs());
        let tail = |time_s: f64| {
            let spread = apart_per_s * time_s;
            let mean_weight = if spread > 1e-12 { -(-spread).exp_m1() / spread } else { 1.0 };
            let waited = wait * self.mu_per_s * time_s * (-slow_per_s * time_s).exp() * mean_weight;
            (-self.mu_per_s * time_s).exp() + waited
        };
        Some(self.delta_s + quantile_of_tail(quantile, 1.0 / self.mu_per_s, tail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::mm1::Mm1;

    #[test]
    fn one_server_is_mm1() {
        let one = Mmc { mu_per_s: 1000.0, servers: 1, delta_s: 0.001 };
        let mm1 = Mm1 { mu_per_s: 1000.0, delta_s: 0.001 };
        for rate in [0.0, 10.0, 500.0, 999.0] {
            assert!((one.mean_s(rate).unwrap() / mm1.mean_s(rate).unwrap() - 1.0).abs() < 1e-12);
            let (a, b) = (one.quantile_s(rate, 0.9).unwrap(), mm1.quantile_s(rate, 0.9).unwrap());
            assert!((a / b - 1.0).abs() < 1e-12, "{rate}: {a} {b}");
        }
    }

    #[test]
    fn the_quantile_has_no_step_where_the_two_rates_are_equal() {
        let queue = Mmc { mu_per_s: 300.0, servers: 4, delta_s: 0.0 };
        let at = |rate: f64| queue.quantile_s(rate, 0.9).unwrap();
        assert!(at(899.999_999) < at(900.0) && at(900.0) < at(900.000_001));
        assert!((at(900.000_001) / at(899.999_999) - 1.0).abs() < 1e-7);
    }

    #[test]
    fn many_servers_at_light_load_let_nobody_wait() {
        let queue = Mmc { mu_per_s: 1.0, servers: 10_000, delta_s: 0.0 };
        assert_eq!(queue.wait_probability(10.0), 0.0);
        assert_eq!(queue.mean_s(10.0), Some(1.0));
        assert_eq!(queue.wait_probability(20_000.0), 1.0);
    }
}
