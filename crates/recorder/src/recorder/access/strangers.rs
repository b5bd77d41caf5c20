//! Refused clients: counted, and logged at a bounded rate. Main type: [`Strangers`].

use std::collections::HashSet;
use std::fmt::Write;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::recorder::log;

/// The shortest time between two log lines about one address.
const EVERY: Duration = Duration::from_secs(10);
/// The most log lines within that time, for all addresses.
const LINES_MAX: usize = 50;

/// The reason why a client was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// An unknown token, or none.
    Token,
    /// A source name that the sender may not use.
    Source,
    /// A measurement that the sender may not send.
    Measurement,
    /// The sender exceeds its rate.
    Rate,
}

const WHYS: [(Why, &str); 4] =
    [(Why::Token, "token"), (Why::Source, "source"), (Why::Measurement, "measurement"), (Why::Rate, "rate")];
/// The intakes whose refusals are counted here.
const INTAKES: [&str; 2] = ["http", "tcp"];

/// Counts of refusals, and the addresses logged recently.
#[derive(Debug, Default)]
pub struct Strangers(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    counts: [[u64; WHYS.len()]; INTAKES.len()],
    told: Told,
}

/// The addresses logged within the present interval.
#[derive(Debug, Default)]
struct Told {
    since: Option<Instant>,
    addresses: HashSet<IpAddr>,
}

impl Told {
    /// Returns whether an address is to be logged now.
    fn see(&mut self, address: IpAddr, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.saturating_duration_since(since) >= EVERY) {
            self.since = Some(now);
            self.addresses.clear();
        }
        self.addresses.len() < LINES_MAX && self.addresses.insert(address)
    }
}

impl Strangers {
    /// Counts a client that an intake refused.
    pub fn refuse(&self, intake: &str, why: Why, address: IpAddr) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (row, column) =
            (INTAKES.iter().position(|known| *known == intake), WHYS.iter().position(|(known, _)| *known == why));
        if let (Some(row), Some(column)) = (row, column) {
            state.counts[row][column] += 1;
        }
        let is_told = why == Why::Token && state.told.see(address.to_canonical(), Instant::now());
        drop(state);
        if is_told {
            let address = address.to_canonical().to_string();
            log::warning(
                "a client without a known token or password was refused",
                &[("intake", intake), ("address", &address)],
            );
        }
    }

    /// Returns the part of `/metrics`.
    pub fn page(&self) -> String {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner).counts;
        let mut page = String::from(
            "# HELP loadline_strangers_refused_total Requests of those who were not let in, by intake and reason\n\
             # TYPE loadline_strangers_refused_total counter\n",
        );
        for (intake, row) in INTAKES.iter().zip(counts) {
            for ((_, why), count) in WHYS.iter().zip(row) {
                let _ = writeln!(page, "loadline_strangers_refused_total{{intake=\"{intake}\",why=\"{why}\"}} {count}");
            }
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_is_counted_and_the_log_is_bounded() {
        let mut told = Told::default();
        let now = Instant::now();
        let address = |number: u32| IpAddr::from(number.to_be_bytes());
        assert!(told.see(address(1), now) && !told.see(address(1), now) && told.see(address(2), now));
        let lines = (0..10_000).filter(|number| told.see(address(*number), now)).count();
        assert_eq!(lines, 48);
        assert!(told.see(address(1), now + EVERY) && told.addresses.len() == 1);
        let strangers = Strangers::default();
        (0..3).for_each(|_| strangers.refuse("tcp", Why::Token, address(9)));
        strangers.refuse("http", Why::Source, address(9));
        let page = strangers.page();
        assert!(
            page.contains("{intake=\"tcp\",why=\"token\"} 3\n")
                && page.contains("{intake=\"http\",why=\"source\"} 1\n")
        );
    }
}
