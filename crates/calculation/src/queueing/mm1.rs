//! M/M/1 with a constant delay, and the same system as the timer of a worker sees it.
//!
//! Main types: [`Mm1`] (Kihl et al. 2011, eq. 1 and 3), [`Mm1Scaled`], [`Mm1Workers`]; [`estimate_mu_per_s`] is section 6.1's
//! estimator. Invariant: with ever more workers [`Mm1Workers`] becomes [`Mm1`].

use statrs::function::gamma::gamma_ur;

use super::queue::Queue;
use super::search::quantile_of_tail;

/// M/M/1, first come first served, behind a constant delay: T = delta + 1 / (mu - lambda).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mm1 {
    /// Service rate, per second, above 0.
    pub mu_per_s: f64,
    /// Constant delay in seconds, 0 or more.
    pub delta_s: f64,
}

impl Queue for Mm1 {
    fn capacity_per_s(&self) -> f64 {
        self.mu_per_s
    }

    fn delay_s(&self) -> f64 {
        self.delta_s
    }

    /// Kihl et al. 2011, eq. 3.
    fn stable_mean_s(&self, arrival_rate_per_s: f64) -> f64 {
        self.delta_s + 1.0 / (self.mu_per_s - arrival_rate_per_s)
    }

    /// The sojourn time is exponential with rate mu - lambda (Kleinrock 1975, chapter 5).
    fn stable_quantile_s(&self, arrival_rate_per_s: f64, quantile: f64) -> Option<f64> {
        Some(self.delta_s - (-quantile).ln_1p() / (self.mu_per_s - arrival_rate_per_s))
    }
}

/// T = delta + a / (mu - lambda): the mean of every single server with Poisson arrivals whose variability is expressed by
/// one number. M/M/1 has a = 1, M/D/1 a = 1/2 and M/G/1 a = (1 + cv²) / 2 (each with its delta shifted by (1 - a) / mu);
/// a server that stalls at random has a = 1 + alpha mu / (alpha + beta)². So means alone cannot tell these apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mm1Scaled {
    /// Capacity, per second, above 0.
    pub mu_per_s: f64,
    /// The limit of the curve far below the capacity, in seconds, without a / mu.
    pub delta_s: f64,
    /// Scale, above 0, without unit.
    pub scale: f64,
}

impl Queue for Mm1Scaled {
    fn capacity_per_s(&self) -> f64 {
        self.mu_per_s
    }

    fn delay_s(&self) -> f64 {
        self.delta_s
    }

    fn stable_mean_s(&self, arrival_rate_per_s: f64) -> f64 {
        self.delta_s + self.scale / (self.mu_per_s - arrival_rate_per_s)
    }
}

/// M/M/1 behind N workers, timed from the moment when a worker sends, as Kihl et al. measured. The time does not include waiting for a free worker,
/// so the naive curve of [`Mm1`] fitted to such times overestimates mu.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mm1Workers {
    /// Service rate, per second, above 0.
    pub mu_per_s: f64,
    /// Constant delay in seconds, 0 or more; that a worker is busy during the delay is neglected.
    pub delta_s: f64,
    /// Number of workers, 1 or more.
    pub workers: u32,
}

impl Queue for Mm1Workers {
    fn capacity_per_s(&self) -> f64 {
        self.mu_per_s
    }

    fn delay_s(&self) -> f64 {
        self.delta_s
    }

    /// E(min(n, N)) / lambda = (1 - rho^N) / (mu - lambda), by Little's law for the operations that the workers hold.
    fn stable_mean_s(&self, arrival_rate_per_s: f64) -> f64 {
        let idle_per_s = self.mu_per_s - arrival_rate_per_s;
        let ln_utilisation = (-idle_per_s / self.mu_per_s).ln_1p();
        let seen = -(f64::from(self.workers) * ln_utilisation).exp_m1();
        self.delta_s + seen / idle_per_s
    }

    /// An operation that is sent finds K - 1 others at the server, P(K > j) = rho^j for j < N, and stays for K services:
    /// P(T > t) = sum over j < N of Poisson(j; mu t) rho^j = exp(-(mu - lambda) t) Q(N, lambda t), with Q the upper incomplete
    /// gamma function.
    fn stable_quantile_s(&self, arrival_rate_per_s: f64, quantile: f64) -> Option<f64> {
        let idle_per_s = self.mu_per_s - arrival_rate_per_s;
        let tail = |time_s: f64| {
            let held = arrival_rate_per_s * time_s;
            let seen = if held > 0.0 { gamma_ur(f64::from(self.workers), held) } else { 1.0 };
            (-idle_per_s * time_s).exp() * seen
        };
        Some(self.delta_s + quantile_of_tail(quantile, 1.0 / self.mu_per_s, tail))
    }

    /// All N workers wait at the server: N / mu.
    fn overloaded_mean_s(&self) -> Option<f64> {
        Some(self.delta_s + f64::from(self.workers) / self.mu_per_s)
    }
}

/// Estimates the service rate from the mean response time at a low arrival rate and the constant delay, as in Kihl et al. 2011, section
/// 6.1: mu = 1 / (r0 - delta), which takes that arrival rate to be zero. With `low_rate_per_s` above 0 it is corrected for that rate,
/// from eq. 3: mu = lambda0 + 1 / (r0 - delta). `None` unless r0 is above delta.
pub fn estimate_mu_per_s(low_mean_s: f64, delta_s: f64, low_rate_per_s: f64) -> Option<f64> {
    (low_mean_s > delta_s).then(|| low_rate_per_s + 1.0 / (low_mean_s - delta_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::Target;

    #[test]
    fn with_many_workers_the_timer_sees_all_of_the_response_time() {
        let all = Mm1 { mu_per_s: 1000.0, delta_s: 0.001 };
        let seen = Mm1Workers { mu_per_s: 1000.0, delta_s: 0.001, workers: 10_000 };
        for rate in [0.0, 1e-9, 500.0, 990.0] {
            assert!((seen.mean_s(rate).unwrap() / all.mean_s(rate).unwrap() - 1.0).abs() < 1e-12, "{rate}");
            let (a, b) = (seen.quantile_s(rate, 0.99).unwrap(), all.quantile_s(rate, 0.99).unwrap());
            assert!((a / b - 1.0).abs() < 1e-9, "{rate}: {a} {b}");
        }
    }

    #[test]
    fn the_workers_timer_goes_over_into_overload_without_a_step() {
        let seen = Mm1Workers { mu_per_s: 1000.0, delta_s: 0.0, workers: 10 };
        let close = seen.mean_s(1000.0 * (1.0 - 1e-12)).unwrap();
        assert!((close / seen.mean_s(1000.0).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(seen.mean_s(5000.0), Some(0.01));
        assert_eq!(seen.limit_per_s(Target::Mean, 1.0), Some(1000.0), "no rate reaches the bound");
    }

    #[test]
    fn a_bound_below_the_idle_response_time_has_no_arrival_rate() {
        let queue = Mm1 { mu_per_s: 1000.0, delta_s: 0.002 };
        assert_eq!(queue.limit_per_s(Target::Mean, 0.0025), None);
        assert_eq!(queue.mean_s(1000.0), None);
        assert_eq!(queue.quantile_s(500.0, 1.0), None);
    }

    #[test]
    fn the_estimator_needs_a_response_time_above_the_delay() {
        assert_eq!(estimate_mu_per_s(0.001, 0.001, 0.0), None);
        assert_eq!(estimate_mu_per_s(0.002, 0.001, 50.0), Some(1050.0));
    }
}
