//! The Universal Scalability Law: throughput against clients.
//!
//! Main type: [`Usl`] (Gunther 2007, chapter 4, with gamma for the throughput of one client). Invariant: with alpha and beta 0
//! throughput is proportional to the clients.

/// X(N) = gamma N / (1 + alpha (N - 1) + beta N (N - 1)).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usl {
    /// Throughput of one client, per second, above 0.
    pub gamma_per_s: f64,
    /// Contention, 0 to 1.
    pub alpha: f64,
    /// Coherency, 0 or more.
    pub beta: f64,
}

impl Usl {
    /// Returns the throughput with a number of clients, per second.
    pub fn throughput_per_s(&self, clients: f64) -> f64 {
        self.gamma_per_s * clients / (1.0 + self.alpha * (clients - 1.0) + self.beta * clients * (clients - 1.0))
    }

    /// Returns the mean response time with a number of clients that do not think, in seconds, by Little's law: N / X.
    pub fn response_s(&self, clients: f64) -> f64 {
        clients / self.throughput_per_s(clients)
    }

    /// Returns the number of clients with the highest throughput, sqrt((1 - alpha) / beta); `None` when throughput keeps growing.
    pub fn clients_at_peak(&self) -> Option<f64> {
        (self.beta > 0.0 && self.alpha < 1.0).then(|| ((1.0 - self.alpha) / self.beta).sqrt())
    }

    /// Returns the smallest number of clients that reaches a throughput; `None` when none does. The smaller solution of
    /// beta X N² - (gamma - (alpha - beta) X) N + (1 - alpha) X = 0, in the form that does not cancel.
    pub fn clients_for_throughput(&self, throughput_per_s: f64) -> Option<f64> {
        let quadratic = self.beta * throughput_per_s;
        let linear = self.gamma_per_s - (self.alpha - self.beta) * throughput_per_s;
        let constant = (1.0 - self.alpha) * throughput_per_s;
        let discriminant = linear * linear - 4.0 * quadratic * constant;
        (linear > 0.0 && discriminant >= 0.0).then(|| 2.0 * constant / (linear + discriminant.sqrt()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_contention_throughput_is_proportional() {
        let usl = Usl { gamma_per_s: 100.0, alpha: 0.0, beta: 0.0 };
        assert_eq!(usl.throughput_per_s(32.0), 3200.0);
        assert_eq!((usl.clients_at_peak(), usl.clients_for_throughput(3200.0)), (None, Some(32.0)));
    }

    #[test]
    fn throughput_beyond_the_peak_is_not_reached() {
        let usl = Usl { gamma_per_s: 100.0, alpha: 0.05, beta: 0.001 };
        let peak = usl.clients_at_peak().unwrap();
        let most = usl.throughput_per_s(peak);
        assert!((usl.clients_for_throughput(most * (1.0 - 1e-9)).unwrap() / peak - 1.0).abs() < 1e-3);
        assert_eq!(usl.clients_for_throughput(most * 1.001), None);
    }
}
