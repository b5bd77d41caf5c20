//! The closed loop: N clients that think, one server (machine repairman).
//!
//! Main type: [`Repairman`]. Invariant: mean-value analysis adds positive terms only, so it is exact for any number of clients.

use super::search::quantile_of_tail;

/// N clients; each thinks for an exponential time, then waits for the one exponential server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Repairman {
    /// Clients N, 1 or more.
    pub clients: u32,
    /// Mean think time Z in seconds, 0 or more.
    pub think_s: f64,
    /// Mean service time D in seconds, above 0.
    pub service_s: f64,
}

/// The result of mean-value analysis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClosedState {
    /// Operations completed per second.
    pub throughput_per_s: f64,
    /// Mean response time in seconds.
    pub response_s: f64,
    /// Mean number of clients at the server.
    pub at_server: f64,
}

impl Repairman {
    /// Returns throughput and response time by exact mean-value analysis (Reiser and Lavenberg 1980): R_n = D (1 + Q_(n-1)),
    /// X_n = n / (Z + R_n), Q_n = X_n R_n.
    pub fn state(&self) -> ClosedState {
        self.states().last().unwrap_or(ClosedState { throughput_per_s: 0.0, response_s: 0.0, at_server: 0.0 })
    }

    /// Returns the states with 1, 2, ... N clients.
    pub fn states(&self) -> impl Iterator<Item = ClosedState> {
        let Repairman { clients, think_s, service_s } = *self;
        (1..=clients).scan(0.0, move |at_server, n| {
            let response_s = service_s * (1.0 + *at_server);
            let throughput_per_s = f64::from(n) / (think_s + response_s);
            *at_server = throughput_per_s * response_s;
            Some(ClosedState { throughput_per_s, response_s, at_server: *at_server })
        })
    }

    /// Returns the throughputs with 1, 2, ... N clients per second, as long as the server is ever idle: with more clients than are listed, the throughput is the last.
    pub fn throughputs_per_s(&self) -> Vec<f64> {
        /// Share of idleness below which more clients do not change the throughput.
        const NEVER_IDLE: f64 = 1e-14;
        let mut listed = Vec::new();
        for state in self.states() {
            listed.push(state.throughput_per_s);
            if 1.0 - state.throughput_per_s * self.service_s < NEVER_IDLE {
                break;
            }
        }
        listed
    }

    /// Returns P(k at the server) for k = 0..=N, from p_k proportional to N! / (N - k)! (D / Z)^k, in logarithms (Kleinrock 1975,
    /// chapter 3). Without think time all clients are at the server.
    pub fn distribution(&self) -> Vec<f64> {
        let count = self.clients as usize;
        if self.think_s <= 0.0 {
            let mut all = vec![0.0; count + 1];
            all[count] = 1.0;
            return all;
        }
        let ratio = (self.service_s / self.think_s).ln();
        let mut weights = vec![0.0];
        for k in 0..self.clients {
            weights.push(weights[k as usize] + ratio + f64::from(self.clients - k).ln());
        }
        let largest = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        weights.iter_mut().for_each(|weight| *weight = (*weight - largest).exp());
        let total: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / total).collect()
    }

    /// Returns a quantile in (0, 1) of response time in seconds, first come first served; `None` for another quantile. An arrival
    /// finds the state of the loop without itself (Sevcik and Mitrani 1981) and stays for one service more.
    pub fn quantile_s(&self, quantile: f64) -> Option<f64> {
        if !(quantile > 0.0 && quantile < 1.0 && self.clients > 0) {
            return None;
        }
        let found = Repairman { clients: self.clients - 1, ..*self }.distribution();
        let tail = |time_s: f64| {
            let mean = time_s / self.service_s;
            let mut ln_term = -mean;
            let mut more_found = 1.0;
            let mut sum = 0.0;
            for (j, found) in found.iter().enumerate() {
                sum += ln_term.exp() * more_found;
                more_found -= found;
                ln_term += mean.ln() - ((j + 1) as f64).ln();
            }
            sum
        };
        Some(quantile_of_tail(quantile, self.service_s, tail))
    }

    /// Returns the lowest and the highest throughput that any system with this think and service time can have, per second: N / (N D + Z) and
    /// min(1 / D, N / (D + Z)) (Lazowska et al. 1984, chapter 5).
    pub fn bounds_per_s(&self) -> (f64, f64) {
        let clients = f64::from(self.clients);
        let low = clients / (clients * self.service_s + self.think_s);
        (low, (1.0 / self.service_s).min(clients / (self.service_s + self.think_s)))
    }

    /// Returns the number of clients at which the two upper bounds meet: (D + Z) / D. More clients have to queue.
    pub fn knee(&self) -> f64 {
        (self.service_s + self.think_s) / self.service_s
    }

    /// Returns the largest number of clients whose mean response time stays at or below a bound in seconds; `None` when one client is too many. Ignores
    /// [`Repairman::clients`]; at most 100 million.
    pub fn clients_limit(&self, bound_s: f64) -> Option<u32> {
        let many = Repairman { clients: 100_000_000, ..*self };
        let within = many.states().take_while(|state| state.response_s <= bound_s).count();
        (within > 0).then_some(within as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_lies_between_its_bounds_for_any_number_of_clients() {
        for clients in [1, 2, 11, 100, 10_000] {
            let repairman = Repairman { clients, think_s: 0.01, service_s: 0.001 };
            let (low, high) = repairman.bounds_per_s();
            let throughput_per_s = repairman.state().throughput_per_s;
            assert!(low <= throughput_per_s * (1.0 + 1e-12) && throughput_per_s <= high * (1.0 + 1e-12), "{clients}");
        }
    }

    #[test]
    fn the_distribution_agrees_with_the_means() {
        let repairman = Repairman { clients: 10_000, think_s: 10.0, service_s: 0.001 };
        let distribution = repairman.distribution();
        let mean: f64 = distribution.iter().enumerate().map(|(k, p)| k as f64 * p).sum();
        assert!((mean / repairman.state().at_server - 1.0).abs() < 1e-9, "{mean}");
    }

    #[test]
    fn the_limit_of_clients_is_the_inverse_of_the_response_time() {
        let repairman = Repairman { clients: 1, think_s: 0.01, service_s: 0.001 };
        let limit = repairman.clients_limit(0.005).unwrap();
        let response_s = |clients| Repairman { clients, ..repairman }.state().response_s;
        assert!(response_s(limit) <= 0.005 && response_s(limit + 1) > 0.005);
        assert_eq!(repairman.clients_limit(0.0005), None);
    }

    #[test]
    fn one_client_never_waits_and_its_times_are_exponential() {
        let alone = Repairman { clients: 1, think_s: 0.01, service_s: 0.001 };
        assert_eq!(alone.state().response_s, 0.001);
        assert!((alone.quantile_s(0.9).unwrap() / (0.001 * 10.0_f64.ln()) - 1.0).abs() < 1e-12);
        assert_eq!(alone.quantile_s(0.0), None);
    }
}
