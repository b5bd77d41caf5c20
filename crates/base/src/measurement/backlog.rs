//! Open loops: whether the database kept up with the offered load, and the figure by which a case settles.
//!
//! Main function: [`is_growing`]. Invariant: a database is called overloaded only where its backlog grew by more than chance explains.

use super::Measurement;
use crate::imported::TimeKind;
use crate::units::NS_PER_S;

/// Share of the scheduled operations by which the backlog of an open loop must certainly grow for the database to count as overloaded.
const BACKLOG_SHARE: f64 = 0.02;
/// Standard deviations by which the growth must exceed that share: 1 % of a normal distribution lies above.
const BACKLOG_SIGMA: f64 = 2.33;
/// Quantile of response time that serves as the shortest time for which an operation is in work.
const IN_WORK: f64 = 0.05;

/// Largest share of a bound on a quantile of response time that the same quantile of the generator's own lateness may have.
const LATE_OF_BOUND: f64 = 0.1;

/// Returns whether the growth of a backlog is more than chance: more than 2 % of the scheduled operations, plus those always in
/// work, plus the spread of two Poisson counts, of arrivals and of completions.
pub fn is_growing(grown: f64, scheduled: f64, in_work: f64) -> bool {
    grown > BACKLOG_SHARE * scheduled + in_work + BACKLOG_SIGMA * (2.0 * scheduled).sqrt()
}

impl Measurement {
    /// Returns the growth of an open loop's backlog from the start of the measured phase to its end: operations scheduled in it and neither
    /// carried nor failed in it, since operations that waited at the start were carried too. 0 where it shrank, and for a closed loop.
    pub fn backlog(&self) -> u64 {
        self.carried.map_or(0, |carried| self.scheduled().saturating_sub(carried + self.failed()))
    }

    /// Returns the number of clients.
    pub fn client_count(&self) -> u32 {
        self.clients_left_out.saturating_add(u32::try_from(self.clients.len()).unwrap_or(u32::MAX))
    }

    /// Returns the number of operations of an open loop in work at any moment even where nothing waits, by Little's law from the shortest response times.
    pub fn in_work(&self) -> f64 {
        let shortest_s = self.response_times().quantile_ns(IN_WORK) as f64 / NS_PER_S;
        (self.offered_per_s() * shortest_s).min(f64::from(self.client_count()))
    }

    /// Returns whether the database of an open loop fell behind: operations were abandoned, or the backlog grew by more than chance explains.
    pub fn is_overloaded(&self) -> bool {
        let is_growing = || is_growing(self.backlog() as f64, self.scheduled() as f64, self.in_work());
        self.carried.is_some() && (self.abandoned() > 0 || is_growing())
    }

    /// Returns whether the generator's own lateness is more than a tenth of a bound on a quantile of response time, at that quantile. Response times count
    /// from the intended time, so that they contain the lateness.
    pub fn is_late_beside(&self, quantile: f64, below_s: f64) -> bool {
        self.generator_late.quantile_ns(quantile) as f64 / NS_PER_S > LATE_OF_BOUND * below_s
    }

    /// Returns the figure by which a case settles, in any unit: throughput in a closed loop, and with a recorder or readers of events. In other open loops
    /// throughput equals the offered rate and reflects only the chance of arrivals; there the figure is the rate of writing to the disk beside the load, or
    /// else the p99 of response time.
    pub fn settles_by(&self) -> f64 {
        if self.carried.is_none() || self.recorded.is_some() || self.freshness.is_some() {
            return self.throughput_per_s();
        }
        let written = self.disk.as_ref().map(|disk| disk.written_bytes_per_s).filter(|written| *written > 0.0);
        let p99_s = || self.quantile_s(TimeKind::ResponseTime, 0.99);
        written.or_else(p99_s).unwrap_or_else(|| self.throughput_per_s())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_are_not_used_hide_no_backlog() {
        assert!(is_growing(248.0, 1848.0, 5.0), "1,600 of 1,848 a second, with however many clients");
        assert!(!is_growing(100.0, 1848.0, 5.0), "the counts of one second spread as much");
        assert!(is_growing(740.0, 9240.0, 25.0), "over five seconds they do not");
        assert!(!is_growing(200.0, 200.0, 200.0), "answers that take as long as the phase, with nothing waiting");
    }
}
