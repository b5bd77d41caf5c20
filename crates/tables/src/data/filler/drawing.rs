//! Values drawn from streams of random numbers, independent of the column or parameter that they are for.

use crate::random::{Stream, below32};
use crate::trial::Times;
use crate::units::times::write_time;

/// Appends a time from a random interval between neighbouring bounds: a whole second if all bounds are.
pub fn time_between(times: &Times, stream: &mut Stream, out: &mut Vec<u8>) {
    const SECOND_US: i64 = 1_000_000;
    let stretch = stream.below(times.bounds_us.len() as u64 - 1) as usize;
    let (low, high) = (times.bounds_us[stretch], times.bounds_us[stretch + 1]);
    let is_whole = times.bounds_us.iter().all(|bound| bound % SECOND_US == 0);
    let step = if is_whole { SECOND_US } else { 1 };
    let is_last = u64::from(stretch + 2 == times.bounds_us.len() || high == low);
    let steps = stream.below(high.abs_diff(low) / step as u64 + is_last) as i64;
    write_time(low.saturating_add(steps * step), !is_whole, &times.zone, out);
}

/// Returns the present time in microseconds since 1970.
pub fn now_us() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as i64)
}

/// Returns a random number below a count; a count of 0 stands for all 2^64.
pub fn count_below(stream: &mut Stream, count: u64) -> u64 {
    if count == 0 { stream.word() } else { stream.below(count) }
}

/// Returns one of the two values of the Box-Muller transform, so that a value stays a function of its own stream.
pub fn standard_normal(stream: &mut Stream) -> f64 {
    let radius = (-2.0 * (1.0 - stream.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * stream.unit()).cos()
}

/// Fills bytes with random letters and digits.
pub fn letters(stream: &mut Stream, bytes: &mut [u8]) {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    for pair in bytes.chunks_mut(2) {
        let (first, second) = stream.pair();
        for (byte, word) in pair.iter_mut().zip([first, second]) {
            *byte = LETTERS[below32(word, 62) as usize];
        }
    }
}

/// Fills bytes with random bytes.
pub fn noise(stream: &mut Stream, bytes: &mut [u8]) {
    for chunk in bytes.chunks_mut(8) {
        chunk.copy_from_slice(&stream.word().to_le_bytes()[..chunk.len()]);
    }
}
