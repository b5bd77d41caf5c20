//! One server with non-exponential service: M/G/1 first come first served, M/D/1, and processor sharing.
//!
//! Main types: [`Mg1`], [`Md1`], [`Sharing`]. Invariant: M/G/1 with cv² = 1 has the mean of M/M/1, with cv² = 0 that of M/D/1.

use super::queue::Queue;
use super::search::last_that_holds;

/// M/G/1, first come first served, behind a constant delay. It gives no quantiles, which depend on more than two moments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mg1 {
    /// Service rate, per second, above 0.
    pub mu_per_s: f64,
    /// Constant delay in seconds, 0 or more.
    pub delta_s: f64,
    /// Squared coefficient of variation of the service time, 0 or more.
    pub cv2: f64,
}

impl Queue for Mg1 {
    fn capacity_per_s(&self) -> f64 {
        self.mu_per_s
    }

    fn delay_s(&self) -> f64 {
        self.delta_s
    }

    /// Pollaczek-Khinchine (Kleinrock 1975, chapter 5): T = delta + 1 / mu + rho (1 + cv²) / (2 (mu - lambda)).
    fn stable_mean_s(&self, arrival_rate_per_s: f64) -> f64 {
        let utilisation = arrival_rate_per_s / self.mu_per_s;
        let wait_s = utilisation * (1.0 + self.cv2) / (2.0 * (self.mu_per_s - arrival_rate_per_s));
        self.delta_s + 1.0 / self.mu_per_s + wait_s
    }
}

/// M/D/1: every service takes the same time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Md1 {
    /// Service rate, per second, above 0.
    pub mu_per_s: f64,
    /// Constant delay in seconds, 0 or more.
    pub delta_s: f64,
}

impl Queue for Md1 {
    fn capacity_per_s(&self) -> f64 {
        self.mu_per_s
    }

    fn delay_s(&self) -> f64 {
        self.delta_s
    }

    fn stable_mean_s(&self, arrival_rate_per_s: f64) -> f64 {
        Mg1 { mu_per_s: self.mu_per_s, delta_s: self.delta_s, cv2: 0.0 }.stable_mean_s(arrival_rate_per_s)
    }

    /// The quantile of waiting, from `DeterministicWait`, plus one service.
    fn stable_quantile_s(&self, arrival_rate_per_s: f64, quantile: f64) -> Option<f64> {
        let wait = DeterministicWait::new(arrival_rate_per_s / self.mu_per_s, quantile);
        Some(self.delta_s + (1.0 + wait.quantile(quantile)) / self.mu_per_s)
    }
}

/// Waiting time of M/D/1 in units of the service time.
struct DeterministicWait {
    utilisation: f64,
    /// P(at most j wait), j = 0, 1, ...
    queue_at_most: Vec<f64>,
    /// P(j present) / P(j - 1 present) of the last j, where the ratio is constant from there on: the waiting time's tail falls by this factor from one service
    /// to the next.
    decay: Option<f64>,
}

/// Longest queue that is computed. The tail is geometric long before that, after some 30 even where the server is almost saturated.
const QUEUE_MAX: usize = 100_000;

/// Largest relative change of the ratio of two neighbours where the tail counts as geometric.
const GEOMETRIC_WITHIN: f64 = 1e-14;
/// Number of consecutive ratios that must change by less than that.
const GEOMETRIC_RUN: usize = 4;

impl DeterministicWait {
    /// Computes queue lengths as far as they are needed for the quantile, or until their tail is geometric. The number present follows
    /// p_j (1 - b_0) = b_(j-1) p_0 + sum over 0 < k < j of b_(j-k) p_k with b_n = P(Poisson(rho) > n) (Tijms 2003, chapter
    /// 9): only sums of positive terms, so nothing cancels.
    fn new(utilisation: f64, quantile: f64) -> Self {
        let above = poisson_above(utilisation);
        let mut present = vec![1.0 - utilisation];
        let mut queue_at_most = Vec::new();
        let mut at_most = present[0];
        let (mut last_ratio, mut alike) = (0.0_f64, 0);
        for j in 1..QUEUE_MAX {
            let recent = (j.saturating_sub(above.len()) + 1).max(1)..j;
            let mut sum: f64 = recent.map(|k| above.get(j - k).copied().unwrap_or(0.0) * present[k]).sum();
            sum += above.get(j - 1).copied().unwrap_or(0.0) * present[0];
            let probability = sum / (1.0 - above[0]);
            present.push(probability);
            // With one server the queue is at most j - 1 long when at most j are present.
            at_most += probability;
            queue_at_most.push(at_most.min(1.0));
            if at_most > quantile + (1.0 - quantile) * 0.999 && j > 1 {
                break;
            }
            let ratio = probability / present[j - 1];
            alike = if (ratio / last_ratio - 1.0).abs() < GEOMETRIC_WITHIN { alike + 1 } else { 0 };
            last_ratio = ratio;
            if alike >= GEOMETRIC_RUN && j > above.len() {
                return DeterministicWait { utilisation, queue_at_most, decay: Some(ratio) };
            }
        }
        DeterministicWait { utilisation, queue_at_most, decay: None }
    }

    /// Returns P(W <= x), x in services: exp(-rho (k - x)) times the sum over j < k of Q_(k-1-j) (rho (k - x))^j / j!, with
    /// k - 1 <= x < k and Q_i = P(at most i wait) (Franx 2001, for one server).
    fn at_most(&self, services: f64) -> f64 {
        let k = services.floor() as usize + 1;
        let missing = self.utilisation * (k as f64 - services);
        let mut term = (-missing).exp();
        let mut sum = 0.0;
        for j in 0..k {
            sum += term * self.queue_at_most.get(k - 1 - j).copied().unwrap_or(1.0);
            term *= missing / (j + 1) as f64;
            if term < 1e-20 {
                break;
            }
        }
        sum
    }

    fn quantile(&self, quantile: f64) -> f64 {
        let longest = self.queue_at_most.len() as f64;
        if let Some(decay) = self.decay {
            let last = longest - 1.0;
            let above = 1.0 - self.at_most(last);
            if above > 1.0 - quantile {
                return last + ((1.0 - quantile) / above).ln() / decay.ln();
            }
        }
        last_that_holds(0.0, longest, |services| self.at_most(services) < quantile)
    }
}

/// Returns P(Poisson(mean) > n) for n = 0, 1, ... until it vanishes; by summing the tail, which keeps its digits.
fn poisson_above(mean: f64) -> Vec<f64> {
    let mut terms = vec![(-mean).exp()];
    while terms.len() < 60 {
        terms.push(terms[terms.len() - 1] * mean / terms.len() as f64);
    }
    let mut above: Vec<f64> = terms
        .iter()
        .rev()
        .scan(0.0, |sum, term| {
            let beyond = *sum;
            *sum += term;
            Some(beyond)
        })
        .collect();
    above.reverse();
    above.truncate(above.iter().position(|tail| *tail < 1e-25).unwrap_or(above.len()).max(1));
    above
}

/// M/G/1 with processor sharing behind a constant delay: the mean of M/M/1 whatever the service times (Kleinrock 1976, chapter
/// 4), which is why the M/M/1 curve holds for such servers too (Kihl et al. 2011, section 3.1). No quantiles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sharing {
    /// Service rate, per second, above 0.
    pub mu_per_s: f64,
    /// Constant delay in seconds, 0 or more.
    pub delta_s: f64,
}

impl Queue for Sharing {
    fn capacity_per_s(&self) -> f64 {
        self.mu_per_s
    }

    fn delay_s(&self) -> f64 {
        self.delta_s
    }

    fn stable_mean_s(&self, arrival_rate_per_s: f64) -> f64 {
        self.delta_s + 1.0 / (self.mu_per_s - arrival_rate_per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queueing::mm1::Mm1;

    #[test]
    fn the_special_cases_agree() {
        let mm1 = Mm1 { mu_per_s: 1000.0, delta_s: 0.002 };
        let general = Mg1 { mu_per_s: 1000.0, delta_s: 0.002, cv2: 1.0 };
        assert!((general.mean_s(800.0).unwrap() / mm1.mean_s(800.0).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!((general.quantile_s(800.0, 0.9), general.has_quantiles()), (None, false));
    }

    /// Crommelin's series alternates and is exact where it is short: P(W <= x) = (1 - rho) sum (-r)^j/j! exp(r), r = rho (x - j).
    #[test]
    fn waiting_of_md1_agrees_with_crommelins_series() {
        for utilisation in [0.1, 0.5, 0.8] {
            let wait = DeterministicWait::new(utilisation, 1.0 - 1e-14);
            for services in [0.0, 0.3, 1.0, 1.7, 3.2, 5.5] {
                let mut expected = 0.0;
                let mut factorial = 1.0;
                for j in 0..=services as usize {
                    let r = utilisation * (services - j as f64);
                    factorial *= if j > 0 { j as f64 } else { 1.0 };
                    expected += (-r).powi(j as i32) / factorial * r.exp();
                }
                expected *= 1.0 - utilisation;
                let found = wait.at_most(services);
                assert!((found - expected).abs() < 1e-10, "{utilisation} {services}: {found} {expected}");
            }
        }
    }

    /// Compares the tail where it is geometric with the whole recursion.
    #[test]
    fn the_tail_of_md1_is_that_of_the_whole_recursion() {
        for utilisation in [0.3, 0.7, 0.9, 0.99, 0.999] {
            let whole = |quantile: f64| {
                let above = poisson_above(utilisation);
                let mut present = vec![1.0 - utilisation];
                let (mut queue_at_most, mut at_most) = (Vec::new(), present[0]);
                while at_most < quantile + (1.0 - quantile) * 0.9999 {
                    let j = present.len();
                    let recent = (1..j).map(|k| above.get(j - k).copied().unwrap_or(0.0) * present[k]).sum::<f64>();
                    let first = above.get(j - 1).copied().unwrap_or(0.0) * present[0];
                    present.push((recent + first) / (1.0 - above[0]));
                    at_most += present[j];
                    queue_at_most.push(at_most);
                }
                queue_at_most.push(1.0);
                DeterministicWait { utilisation, queue_at_most, decay: None }.quantile(quantile)
            };
            for quantile in [0.5, 0.9, 0.99, 0.999] {
                let wait = DeterministicWait::new(utilisation, quantile);
                let (found, expected) = (wait.quantile(quantile), whole(quantile));
                assert!(
                    (found - expected).abs() <= 1e-8 * expected.max(1.0),
                    "{utilisation} {quantile}: {found} {expected}"
                );
                assert!(wait.queue_at_most.len() < 200, "{} lengths were computed", wait.queue_at_most.len());
            }
        }
    }

    #[test]
    fn quantiles_of_md1_near_saturation_follow_the_exponential_tail() {
        let queue = Md1 { mu_per_s: 1.0, delta_s: 0.0 };
        let (p99, p9999) = (queue.quantile_s(0.99, 0.99).unwrap(), queue.quantile_s(0.99, 0.9999).unwrap());
        // Heavy traffic: W is exponential with mean rho / (2 (1 - rho)), so two decades are ln 100 of them.
        let expected = 100.0_f64.ln() * 0.99 / (2.0 * 0.01);
        assert!(((p9999 - p99) / expected - 1.0).abs() < 0.01, "{p99} {p9999} {expected}");
    }

    #[test]
    fn an_idle_server_answers_after_one_service() {
        let queue = Md1 { mu_per_s: 100.0, delta_s: 0.0 };
        assert_eq!(queue.mean_s(0.0), Some(0.01));
        assert_eq!(queue.quantile_s(0.0, 0.99), Some(0.01));
    }
}
