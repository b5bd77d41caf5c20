//! Values that change slowly from reading to reading, as temperatures, levels and loads do: [`Drift`].
//!
//! A value is a sum of three value noises: random numbers at every 64th, 512th and 4096th reading, joined by smooth curves (3t² - 2t³), which have a tenth, three
//! tenths and six tenths of the range. Invariant: the value is a pure function of seed, column, track and position, whatever was made before.

use crate::random::{derive, mix};

/// Readings between the random numbers of a noise, and the share of the range that it has.
const NOISES: [(u64, f64); 3] = [(64, 0.1), (512, 0.3), (4096, 0.6)];

/// The positions of a track; an index holds the track's number above them.
const POSITIONS: u64 = 1 << 32;

/// Returns the index of a position in a track: a measurement or a source, whose values wander on their own.
#[inline]
pub fn index_in_track(track: u64, position: u64) -> u64 {
    track * POSITIONS + position % POSITIONS
}

/// Values between two numbers, in steps.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Drift {
    low: f64,
    step: f64,
    /// Number of steps from the lowest value to the highest.
    steps: f64,
    /// Steps in 1, where that is a whole number: dividing by it gives the number nearest to a decimal, as a sensor's text would be read.
    in_one: Option<f64>,
}

impl Drift {
    /// Takes the lowest and the highest value, and the step between values.
    ///
    /// # Errors
    /// A sentence that names the value and the remedy.
    pub(super) fn new(low: f64, high: f64, step: f64) -> Result<Self, String> {
        let steps = ((high - low) / step * (1.0 + 1e-12)).floor();
        if !(low.is_finite() && high.is_finite() && step > 0.0 && (1.0..=1e15).contains(&steps)) {
            return Err(format!(
                "drift = [{low}, {high}, {step}] has no values; write the lowest one, the highest one and the step between them"
            ));
        }
        let in_one = (1.0 / step).round();
        let is_whole = in_one >= 1.0 && ((1.0 / step) / in_one - 1.0).abs() < 1e-9;
        Ok(Drift { low, step, steps, in_one: is_whole.then_some(in_one) })
    }

    /// Returns the value at an index; different columns of the same seed wander apart.
    #[inline]
    pub(super) fn value(&self, seed: u64, column: u64, index: u64) -> f64 {
        let (track_seed, position) = (derive(derive(seed, column), index / POSITIONS), index % POSITIONS);
        let share: f64 = NOISES.iter().map(|(readings, share)| share * noise(track_seed, *readings, position)).sum();
        let step = (share.clamp(0.0, 1.0) * self.steps).round();
        match self.in_one {
            Some(in_one) => (self.low * in_one + step) / in_one,
            None => self.low + step * self.step,
        }
    }
}

/// Returns the noise with random numbers at every so many readings, 0 to 1.
#[inline]
fn noise(seed: u64, readings: u64, position: u64) -> f64 {
    let random = |place: u64| (mix(seed ^ mix(readings << 48 | place)) >> 11) as f64 * 2.0_f64.powi(-53);
    let (place, part) = (position / readings, (position % readings) as f64 / readings as f64);
    let (from, to) = (random(place), random(place + 1));
    from + (to - from) * part * part * (3.0 - 2.0 * part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(drift: &Drift, track: u64, count: u64) -> Vec<f64> {
        (0..count).map(|position| drift.value(7, 1, index_in_track(track, position))).collect()
    }

    #[test]
    fn values_wander_slowly_over_most_of_their_range() {
        let drift = Drift::new(-20.0, 30.0, 0.1).unwrap();
        for track in 0..20 {
            let wandered = values(&drift, track, 100_000);
            assert!(wandered.iter().all(|value| (-20.0..=30.0).contains(value)));
            // The curves are steepest in their middle, where they rise by 1.5 of their height over their length; a value is rounded to a step at both ends.
            let steepest = 50.0 * 1.5 * (0.1 / 64.0 + 0.3 / 512.0 + 0.6 / 4096.0) + 0.1;
            assert!(wandered.windows(2).all(|pair| (pair[0] - pair[1]).abs() <= steepest + 1e-9));
            let mean = wandered.iter().sum::<f64>() / wandered.len() as f64;
            let (low, high) =
                wandered.iter().fold((f64::MAX, f64::MIN), |(l, h), value| (l.min(*value), h.max(*value)));
            assert!((-5.0..15.0).contains(&mean) && low < -5.0 && high > 15.0, "{mean} {low} {high}");
        }
    }

    #[test]
    fn values_are_what_a_decimal_with_that_step_is_read_as() {
        for (step, digits) in [(0.1, 1), (0.25, 2), (0.001, 3), (0.5, 1), (1.0, 0)] {
            let drift = Drift::new(-3.0, 12.0, step).unwrap();
            for value in values(&drift, 3, 5000) {
                let text = format!("{value:.digits$}");
                assert_eq!(text.parse::<f64>().unwrap(), value, "{text} with step {step}");
            }
        }
    }

    #[test]
    fn tracks_and_columns_wander_apart() {
        let drift = Drift::new(0.0, 1e6, 1.0).unwrap();
        assert_ne!(values(&drift, 1, 50), values(&drift, 2, 50));
        assert_ne!(drift.value(7, 1, 9), drift.value(7, 2, 9));
        assert_ne!(drift.value(7, 1, 9), drift.value(8, 1, 9));
    }

    #[test]
    fn ranges_without_values_are_refused() {
        for (low, high, step) in
            [(1.0, 0.0, 0.1), (0.0, 1.0, 0.0), (0.0, 1.0, -1.0), (0.0, f64::NAN, 1.0), (0.0, 0.5, 1.0)]
        {
            assert!(Drift::new(low, high, step).unwrap_err().contains("has no values"), "{low} {high} {step}");
        }
    }
}
