//! Load-dependent service behind N workers: each operation present makes all of them slower by the factor 1 + p.
//!
//! Main type: [`LoadDependent`] (Kihl et al. 2011, eq. 2: x_n = x (1 + p)^(n - 1)). Invariant: weights are held as logarithms,
//! so that neither 10,000 workers nor large p overflow.

use std::collections::VecDeque;

use super::queue::{Queue, Timer};
use super::search::last_that_holds;
use crate::statistics::random::Random;

/// A birth-death process: at most N of the operations present are at the server, the others wait in one queue before the
/// workers. With k at the server they are completed at mu_k = min(k, m) / (x (1 + p)^(k - 1)).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadDependent {
    /// Service time of an operation alone, in seconds, above 0.
    pub service_s: f64,
    /// Load dependency p, 0 or more.
    pub growth: f64,
    /// Workers N, 1 or more.
    pub workers: u32,
    /// Operations served at the same time m: 1 is the serial variant, N the parallel one.
    pub parallel: u32,
    /// Constant delay in seconds, 0 or more; that a worker is busy during the delay is neglected.
    pub delta_s: f64,
    /// The event at which times begin.
    pub timer: Timer,
}

/// Distance of a weight's logarithm from that of the largest weight beyond which the weight does not change a sum.
const NEGLIGIBLE: f64 = 80.0;

/// The stationary state of the system.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Occupancy {
    /// Probability that the system is empty.
    pub empty: f64,
    /// Probability that all workers are busy, so that an arrival has to wait for one.
    pub wait: f64,
    /// Mean number of operations present, waiting for a worker or at the server.
    pub present: f64,
    /// Mean number of operations at the server.
    pub at_server: f64,
}

/// The stationary state of the system without a queue before the workers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loss {
    /// Share of arrivals that find all workers busy and are lost.
    pub lost: f64,
    /// Mean number of operations present.
    pub present: f64,
    /// Mean time of the operations that are served, in seconds.
    pub mean_s: f64,
}

impl LoadDependent {
    /// Returns ln of the completion rate with `count` operations present, 1 or more.
    fn ln_rate(&self, count: u32) -> f64 {
        let at_server = count.min(self.workers);
        let ln_served = if self.parallel == 1 { 0.0 } else { f64::from(at_server.min(self.parallel)).ln() };
        ln_served - self.service_s.ln() - f64::from(at_server - 1) * self.growth.ln_1p()
    }

    /// Returns the completion rate with `count` operations present, per second; 0 when the system is empty.
    pub fn rate_per_s(&self, count: u32) -> f64 {
        if count == 0 { 0.0 } else { self.ln_rate(count).exp() }
    }

    /// Returns the relative weights of 0..=N operations present, the largest being 1. They end early where they have become negligible and only fall
    /// from there on: the steps ln(lambda / mu_k) fall and then rise with k, so between two falling steps all fall.
    fn weights(&self, arrival_rate_per_s: f64) -> Vec<f64> {
        let ln_arrival = arrival_rate_per_s.ln();
        let is_falling_last = ln_arrival < self.ln_rate(self.workers);
        let (ln_service, ln_growth) = (self.service_s.ln(), self.growth.ln_1p());
        let mut weights = vec![0.0];
        let (mut ln_weight, mut largest) = (0.0, 0.0_f64);
        for count in 1..=self.workers {
            let ln_served = if self.parallel == 1 { 0.0 } else { f64::from(count.min(self.parallel)).ln() };
            let step = ln_arrival + ln_service + f64::from(count - 1) * ln_growth - ln_served;
            ln_weight += step;
            weights.push(ln_weight);
            largest = largest.max(ln_weight);
            if is_falling_last && step < 0.0 && ln_weight < largest - NEGLIGIBLE {
                break;
            }
        }
        weights.iter_mut().for_each(|weight| *weight = (*weight - largest).exp());
        weights
    }

    /// Returns the stationary state; `None` when overloaded or without arrivals. Above N the weights are geometric with ratio
    /// lambda / mu_N, which is summed in closed form.
    pub fn occupancy(&self, arrival_rate_per_s: f64) -> Option<Occupancy> {
        let ratio = self.utilisation(arrival_rate_per_s);
        if !(arrival_rate_per_s > 0.0 && ratio < 1.0) {
            return None;
        }
        let weights = self.weights(arrival_rate_per_s);
        let all_busy = weights.get(self.workers as usize).map_or(0.0, |weight| weight / (1.0 - ratio));
        let below: f64 = weights.iter().take(self.workers as usize).sum();
        let held: f64 = (0_u32..self.workers).zip(&weights).map(|(count, weight)| f64::from(count) * weight).sum();
        let total = below + all_busy;
        let at_server = (held + f64::from(self.workers) * all_busy) / total;
        let waiting = all_busy / total * ratio / (1.0 - ratio);
        Some(Occupancy { empty: weights[0] / total, wait: all_busy / total, present: at_server + waiting, at_server })
    }

    /// Returns the stationary state when arrivals that find all workers busy are lost; without arrivals the system is empty.
    pub fn loss(&self, arrival_rate_per_s: f64) -> Loss {
        if arrival_rate_per_s <= 0.0 {
            return Loss { lost: 0.0, present: 0.0, mean_s: self.delta_s + self.service_s };
        }
        let weights = self.weights(arrival_rate_per_s);
        let total: f64 = weights.iter().sum();
        let present = (0_u32..).zip(&weights).map(|(count, weight)| f64::from(count) * weight).sum::<f64>() / total;
        let served: f64 = weights.iter().take(self.workers as usize).sum::<f64>() / total;
        let lost = weights.get(self.workers as usize).map_or(0.0, |weight| weight / total);
        Loss { lost, present, mean_s: self.delta_s + present / (arrival_rate_per_s * served) }
    }

    /// Returns the number at the server above which completions no longer keep up with the arrivals, if there were no bound on the
    /// workers: the upper solution of mu_k = lambda. From there the backlog feeds itself. `None` with p = 0, and when
    /// completions keep up at no number.
    pub fn critical_count(&self, arrival_rate_per_s: f64) -> Option<f64> {
        let per_operation = self.growth.ln_1p();
        if per_operation <= 0.0 || arrival_rate_per_s <= 0.0 {
            return None;
        }
        let ln_surplus = |count: f64| {
            let served = count.min(f64::from(self.parallel));
            (served / (arrival_rate_per_s * self.service_s)).ln() - (count - 1.0) * per_operation
        };
        let peak = (1.0 / per_operation).clamp(1.0, f64::from(self.parallel));
        if ln_surplus(peak) < 0.0 {
            return None;
        }
        let served_alone = f64::from(self.parallel) / (arrival_rate_per_s * self.service_s);
        let beyond = 1.0 + served_alone.ln() / per_operation;
        if beyond >= f64::from(self.parallel) {
            return Some(beyond);
        }
        Some(last_that_holds(peak, f64::from(self.parallel), |count| ln_surplus(count) >= 0.0))
    }

    /// Returns the mean time from an empty system until `count` are present for the first time, in seconds: how long a metastable system
    /// looks healthy. Infinite when it cannot be expressed; 0 for a count of 0. First-passage times h_k from k to k + 1 follow
    /// h_k = (1 + mu_k h_(k-1)) / lambda (Keilson 1979).
    pub fn escape_s(&self, arrival_rate_per_s: f64, count: u32) -> f64 {
        let mut step_s = 0.0;
        let mut total_s = 0.0;
        for present in 0..count {
            step_s = (1.0 + self.rate_per_s(present) * step_s) / arrival_rate_per_s;
            total_s += step_s;
        }
        total_s
    }
}

impl Queue for LoadDependent {
    /// mu_N: the completion rate with N operations at the server. With p above 0, fewer operations could be completed faster.
    fn capacity_per_s(&self) -> f64 {
        self.rate_per_s(self.workers)
    }

    fn delay_s(&self) -> f64 {
        self.delta_s
    }

    /// Little's law for all operations present, or for those at the server.
    fn stable_mean_s(&self, arrival_rate_per_s: f64) -> f64 {
        let Some(occupancy) = self.occupancy(arrival_rate_per_s) else { return self.delta_s + self.service_s };
        let count = match self.timer {
            Timer::Intended => occupancy.present,
            Timer::Sent => occupancy.at_server,
        };
        self.delta_s + count / arrival_rate_per_s
    }

    /// Without load dependency and in series the model is M/M/1, whose quantiles are known; otherwise there are none.
    fn stable_quantile_s(&self, arrival_rate_per_s: f64, quantile: f64) -> Option<f64> {
        if self.growth > 0.0 || self.parallel > 1 {
            return None;
        }
        let (mu_per_s, delta_s, workers) = (1.0 / self.service_s, self.delta_s, self.workers);
        match self.timer {
            Timer::Intended => super::mm1::Mm1 { mu_per_s, delta_s }.stable_quantile_s(arrival_rate_per_s, quantile),
            Timer::Sent => {
                super::mm1::Mm1Workers { mu_per_s, delta_s, workers }.stable_quantile_s(arrival_rate_per_s, quantile)
            }
        }
    }

    /// Simulates operations in the order of their arrival, all timed from the intended time; served one at a time in series, any of them in parallel.
    fn simulated_quantile_s(&self, arrival_rate_per_s: f64, quantile: f64) -> Option<f64> {
        let is_asked = quantile > 0.0 && quantile < 1.0 && self.timer == Timer::Intended;
        (is_asked && self.is_stable(arrival_rate_per_s)).then(|| simulate(self, arrival_rate_per_s.max(1e-9), quantile))
    }

    /// All workers are at the server: N / mu_N.
    fn overloaded_mean_s(&self) -> Option<f64> {
        let residence_s = self.delta_s + f64::from(self.workers) / self.capacity_per_s();
        (self.timer == Timer::Sent).then_some(residence_s)
    }
}

/// Number of operations that a simulation completes, after a tenth as many for the warm-up.
const SIMULATED: usize = 60_000;

/// Returns a quantile of the simulated response times: between two events the state does not change, so that each takes an exponential time at the
/// sum of both rates (Gillespie 1977).
fn simulate(queue: &LoadDependent, arrival_rate_per_s: f64, quantile: f64) -> f64 {
    let mut random = Random::new(1);
    let mut present: VecDeque<f64> = VecDeque::new();
    let mut times_s = Vec::with_capacity(SIMULATED);
    let rates: Vec<f64> = (0..=queue.workers).map(|count| queue.rate_per_s(count)).collect();
    let (mut now_s, mut skipped) = (0.0, 0);
    while times_s.len() < SIMULATED {
        let at_server = present.len().min(queue.workers as usize);
        let completions = rates[at_server];
        let both = arrival_rate_per_s + completions;
        now_s -= (1.0 - random.unit()).ln() / both;
        if random.unit() * both < arrival_rate_per_s {
            present.push_back(now_s);
            continue;
        }
        let served = at_server.min(queue.parallel as usize).max(1);
        let begun_s = present.remove(random.below(served)).unwrap_or(now_s);
        if skipped < SIMULATED / 10 {
            skipped += 1;
        } else {
            times_s.push(now_s - begun_s);
        }
    }
    let place = ((quantile * SIMULATED as f64) as usize).min(SIMULATED - 1);
    let (_, value_s, _) = times_s.select_nth_unstable_by(place, f64::total_cmp);
    queue.delta_s + *value_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::mmc::Mmc;

    fn serial(growth: f64, workers: u32) -> LoadDependent {
        LoadDependent { service_s: 0.001, growth, workers, parallel: 1, delta_s: 0.0, timer: Timer::Intended }
    }

    #[test]
    fn ten_thousand_workers_neither_overflow_nor_lose_digits() {
        let without = serial(0.0, 10_000);
        assert!((without.mean_s(999.0).unwrap() - 1.0).abs() < 1e-9);
        assert!((without.mean_s(1e-6).unwrap() - 0.001).abs() < 1e-11);
        let servers = LoadDependent { parallel: 10_000, ..without };
        let erlang = Mmc { mu_per_s: 1000.0, servers: 10_000, delta_s: 0.0 };
        let (found, expected) = (servers.mean_s(9_990_000.0).unwrap(), erlang.mean_s(9_990_000.0).unwrap());
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    }

    #[test]
    fn a_load_dependency_that_stops_the_server_is_overload_and_no_error() {
        let stopped = serial(1.0, 10_000);
        assert_eq!(stopped.capacity_per_s(), 0.0);
        assert_eq!(stopped.mean_s(1.0), None);
        assert!((0.0..=1.0).contains(&stopped.loss(1.0).lost), "a probability");
    }

    #[test]
    fn simulated_quantiles_are_those_of_the_models_that_have_them() {
        use crate::queueing::mm1::Mm1;
        let mm1 = Mm1 { mu_per_s: 1000.0, delta_s: 0.0 };
        let mmc = Mmc { mu_per_s: 1000.0, servers: 4, delta_s: 0.0 };
        let parallel = LoadDependent { parallel: 4, ..serial(0.0, 4) };
        for quantile in [0.5, 0.9, 0.99] {
            let serial = serial(0.0, 4);
            let (found, exact) = (serial.simulated_quantile_s(700.0, quantile), mm1.quantile_s(700.0, quantile));
            assert!((found.unwrap() / exact.unwrap() - 1.0).abs() < 0.08, "{quantile}: {found:?} {exact:?}");
            let (found, exact) = (parallel.simulated_quantile_s(2800.0, quantile), mmc.quantile_s(2800.0, quantile));
            assert!((found.unwrap() / exact.unwrap() - 1.0).abs() < 0.08, "{quantile}: {found:?} {exact:?}");
        }
        assert_eq!(serial(0.1, 4).simulated_quantile_s(1000.0, 0.99), None, "overloaded");
    }

    #[test]
    fn nobody_there_means_the_service_time_alone() {
        assert_eq!(serial(0.1, 8).mean_s(0.0), Some(0.001));
        assert_eq!(serial(0.1, 8).loss(0.0).mean_s, 0.001);
        assert_eq!(serial(0.1, 8).escape_s(100.0, 0), 0.0);
    }

    #[test]
    fn the_critical_count_is_where_completions_equal_arrivals() {
        let parallel = LoadDependent { parallel: 64, workers: 64, ..serial(0.05, 64) };
        let rate = 5000.0;
        let count = parallel.critical_count(rate).unwrap();
        let completions = count.min(64.0) / (0.001 * 1.05_f64.powf(count - 1.0));
        assert!((completions / rate - 1.0).abs() < 1e-9, "{count}: {completions}");
        assert!(count > 1.0 / 1.05_f64.ln(), "the upper solution");
        assert_eq!(serial(0.0, 8).critical_count(500.0), None);
        assert_eq!(serial(0.1, 8).critical_count(2000.0), None);
    }
}
