//! The share of a load that one of several processes drives. Main type: [`Share`].
//!
//! Invariant: the shares of all processes together are the load, with no client and no counted operation in two of them.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::trial::Length;

/// One of several equal shares of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Number of this share, from 0.
    pub place: u32,
    /// Number of shares, at least 1.
    pub of: u32,
}

impl Share {
    /// The whole of a load.
    pub const WHOLE: Share = Share { place: 0, of: 1 };

    /// Returns the numbers of this share's clients, among all clients of the load.
    pub fn clients(self, all: u32) -> Range<u32> {
        let until = |place: u32| {
            let until = u64::from(all) * u64::from(place) / u64::from(self.of.max(1));
            u32::try_from(until).unwrap_or(all)
        };
        until(self.place)..until(self.place + 1)
    }

    /// Returns this share's part of a number of arrivals per second: independent Poisson processes of these rates add up to one of the whole rate.
    pub fn rate_per_s(self, all_per_s: f64) -> f64 {
        all_per_s / f64::from(self.of.max(1))
    }

    /// Returns the length of this share's measured phase: the same time, or its part of the operations.
    pub fn length(self, all: Length) -> Length {
        let (place, of) = (u64::from(self.place), u64::from(self.of.max(1)));
        match all {
            Length::Operations(count) => Length::Operations(count / of + u64::from(place < count % of)),
            other => other,
        }
    }

    /// Returns whether an arrival, counted from 0, belongs to this share: arrivals at fixed times are dealt out in turn.
    #[inline]
    pub fn has(self, arrival: u64) -> bool {
        arrival % u64::from(self.of.max(1)) == u64::from(self.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_are_the_whole_and_nothing_twice(of in 1_u32..40, clients in 1_u32..5_000, count in 1_u64..100_000) {
            let shares: Vec<Share> = (0..of).map(|place| Share { place, of }).collect();
            let dealt: Vec<u32> = shares.iter().flat_map(|share| share.clients(clients)).collect();
            prop_assert_eq!(dealt, (0..clients).collect::<Vec<_>>());
            let sizes = || shares.iter().map(|share| share.clients(clients).len());
            prop_assert!(sizes().max().unwrap() - sizes().min().unwrap() <= 1);
            let operations = |share: &Share| match share.length(Length::Operations(count)) {
                Length::Operations(count) => count,
                _ => 0,
            };
            prop_assert_eq!(shares.iter().map(operations).sum::<u64>(), count);
            for arrival in 0..100 {
                prop_assert_eq!(shares.iter().filter(|share| share.has(arrival)).count(), 1);
            }
            let rate_per_s: f64 = shares.iter().map(|share| share.rate_per_s(1e6)).sum();
            prop_assert!((rate_per_s - 1e6).abs() < 1e-3);
        }
    }

    #[test]
    fn the_whole_is_one_share_and_a_time_is_the_same_for_all() {
        assert_eq!(Share::WHOLE.clients(7), 0..7);
        assert_eq!(Share { place: 2, of: 3 }.length(Length::Seconds(4.0)), Length::Seconds(4.0));
        assert_eq!(Share { place: 2, of: 3 }.length(Length::OperationsPerClient(4)), Length::OperationsPerClient(4));
    }
}
