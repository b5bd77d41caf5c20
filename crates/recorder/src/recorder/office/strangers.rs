//! Rate of lines in the audit file about clients without a token: it must record readers, and strangers could fill its disk. Main type:
//! [`Strangers`].

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Instant;

/// The most lines of one address at once, and then per second.
const ADDRESS_LINES: f64 = 10.0;
const ADDRESS_PER_S: f64 = 1.0;
/// The most lines of all addresses together at once, and then per second: a few MB a day.
const ALL_LINES: f64 = 100.0;
const ALL_PER_S: f64 = 0.1;
/// The most addresses that are counted separately; further ones get no lines until some are forgotten.
const ADDRESSES_MAX: usize = 1_000;

/// A budget of lines, which refills with time.
#[derive(Debug, Clone, Copy)]
struct Lines {
    left: f64,
    at: Instant,
}

impl Lines {
    fn refill(&mut self, most: f64, per_s: f64, now: Instant) -> f64 {
        self.left = (self.left + now.duration_since(self.at).as_secs_f64() * per_s).min(most);
        self.at = now;
        self.left
    }
}

/// The budgets of strangers, and the number of lines that were left out.
#[derive(Debug)]
pub(super) struct Strangers {
    all: Lines,
    by_address: HashMap<IpAddr, Lines>,
    left_out: u64,
}

impl Strangers {
    pub(super) fn new(now: Instant) -> Self {
        Strangers { all: Lines { left: ALL_LINES, at: now }, by_address: HashMap::new(), left_out: 0 }
    }

    /// Returns whether this refusal gets a line. Refusals without one are counted.
    pub(super) fn is_written(&mut self, address: IpAddr, now: Instant) -> bool {
        let is_full = |lines: &mut Lines| lines.refill(ADDRESS_LINES, ADDRESS_PER_S, now) >= ADDRESS_LINES;
        if self.by_address.len() >= ADDRESSES_MAX && !self.by_address.contains_key(&address) {
            // An address with a full budget is equal to one that never came.
            self.by_address.retain(|_, lines| !is_full(lines));
        }
        let has_place = self.by_address.len() < ADDRESSES_MAX || self.by_address.contains_key(&address);
        let is_written = has_place && self.all.refill(ALL_LINES, ALL_PER_S, now) >= 1.0 && {
            let lines = self.by_address.entry(address).or_insert(Lines { left: ADDRESS_LINES, at: now });
            let is_written = lines.refill(ADDRESS_LINES, ADDRESS_PER_S, now) >= 1.0;
            lines.left -= f64::from(u8::from(is_written));
            is_written
        };
        self.all.left -= f64::from(u8::from(is_written));
        self.left_out += u64::from(!is_written);
        is_written
    }

    /// Returns how many lines were left out since the last call.
    pub(super) fn take_left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }

    /// Takes back a number that could not be written.
    pub(super) fn give_back(&mut self, left_out: u64) {
        self.left_out += left_out;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn strangers_get_few_lines_and_all_are_counted() {
        let begun = Instant::now();
        let mut strangers = Strangers::new(begun);
        let address = |number: u32| IpAddr::from(number.to_be_bytes());
        let mut written = 0;
        for tenth in 0..1_000 {
            written += u32::from(strangers.is_written(address(1), begun + Duration::from_millis(100 * tenth)));
        }
        assert!((100..=115).contains(&written), "10 at once, 1 a second, and not more than all may: {written}");
        assert_eq!(strangers.take_left_out(), 1_000 - u64::from(written));
        let later = begun + Duration::from_secs(86_400);
        let written = (0..100_000).filter(|number| strangers.is_written(address(*number), later)).count();
        assert_eq!((written, strangers.take_left_out()), (100, 99_900));
        assert!(strangers.by_address.len() <= ADDRESSES_MAX);
        strangers.give_back(3);
        assert_eq!(strangers.take_left_out(), 3);
    }
}
