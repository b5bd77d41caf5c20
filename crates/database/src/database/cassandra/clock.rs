//! The clock from which rows have their time of writing. Main function: [`now_us`].
//!
//! Invariant: within a process it never goes back, however the machine's clock is set: of two writes the later one would be lost.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Returns the time in microseconds since 1970.
pub(super) fn now_us() -> i64 {
    static BEGUN: OnceLock<(Instant, i64)> = OnceLock::new();
    let (begun, then_us) = BEGUN.get_or_init(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (Instant::now(), since.as_micros() as i64)
    });
    then_us + begun.elapsed().as_micros() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_machines_time_and_never_goes_back() {
        let real_us = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as i64;
        let (first, second) = (now_us(), now_us());
        assert!(second >= first && (first - real_us).abs() < 3_600_000_000, "{first} and {second} at {real_us}");
    }
}
