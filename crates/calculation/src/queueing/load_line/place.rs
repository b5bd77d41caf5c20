//! Chooses the rate and the length of the next trial, by a curve fitted to the trials so far.
//!
//! Invariant: the curve decides where and for how long trials are made, never the conclusion.

use super::Bound;
use super::evidence::Rate;

/// Number of capacities tried for a curve, and the largest of them as a multiple of the highest rate answered.
const CAPACITIES: i32 = 60;
const CAPACITY_MOST: f64 = 30.0;
/// Operations above the bound that a trial should show where the bound is barely kept: in a deciding trial, and in one that only shows the way.
const ABOVE_LEAST: f64 = 10.0;
const ABOVE_GLANCE: f64 = 2.0;
/// Shortest length of a deciding trial in relaxation times of the queue: a shorter one begins with an empty queue and never sees a full one.
const RELAXATIONS: f64 = 30.0;
/// Largest capacity that is assumed, as a multiple of the lowest rate that lost the bound: short trials make the capacity look higher.
const CAPACITY_ABOVE_LOST: f64 = 1.1;
/// Factor by which a trial may be longer than the study asks for.
const LONGER_MOST: f64 = 10.0;
/// Share of the gap between two rates by which a trial between them stays away from either.
const MARGIN: f64 = 0.15;

/// The length of the study's own trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TrialLength {
    /// A number of seconds.
    Seconds(f64),
    /// The time in which this many operations arrive.
    Operations(f64),
}

impl TrialLength {
    fn seconds(self, rate_per_s: f64) -> f64 {
        match self {
            TrialLength::Seconds(seconds) => seconds,
            TrialLength::Operations(operations) => operations / rate_per_s,
        }
    }
}

/// The length that trials at a rate must have to decide on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Length {
    pub least_s: f64,
    /// Whether the number of operations alone requires a trial that is too long, whatever the queue requires.
    pub is_for_count: bool,
    own_s: f64,
}

impl Length {
    pub fn of(bound: &Bound, curve: Option<Curve>, lost_per_s: f64, rate_per_s: f64) -> Self {
        let count_s = ABOVE_LEAST / (bound.tolerated() * rate_per_s);
        let most_per_s = CAPACITY_ABOVE_LOST * lost_per_s;
        let relax_s = curve.map_or(0.0, |curve| relaxation_s(curve.capacity_per_s.min(most_per_s), rate_per_s));
        let relax_s = RELAXATIONS * relax_s;
        let own_s = bound.length.seconds(rate_per_s);
        Length { least_s: count_s.max(relax_s), is_for_count: count_s > LONGER_MOST * own_s, own_s }
    }

    pub fn is_too_long(&self) -> bool {
        self.least_s > LONGER_MOST * self.own_s
    }

    /// Returns the length of a deciding trial in seconds, where it is more than the study asks for.
    pub fn longer_s(&self) -> Option<f64> {
        longer(self.least_s, self.own_s)
    }

    /// Returns the length in seconds of a trial that only shows the way, where it is more than the study asks for.
    pub fn glance_s(bound: &Bound, rate_per_s: f64) -> Option<f64> {
        longer(ABOVE_GLANCE / (bound.tolerated() * rate_per_s), bound.length.seconds(rate_per_s))
    }
}

fn longer(wanted_s: f64, own_s: f64) -> Option<f64> {
    // Tenths of a second read well.
    (wanted_s > own_s).then(|| (10.0 * wanted_s.min(LONGER_MOST * own_s)).ceil() / 10.0)
}

/// Returns the relaxation time of an M/M/1 queue of this capacity (Cohen 1982): 1 / (µ (1 - √ρ)²). 0 at or above capacity, where there is no steady state.
fn relaxation_s(capacity_per_s: f64, rate_per_s: f64) -> f64 {
    let used = rate_per_s / capacity_per_s;
    if used >= 1.0 || !capacity_per_s.is_finite() {
        return 0.0;
    }
    1.0 / (capacity_per_s * (1.0 - used.sqrt()).powi(2))
}

/// Rounds to three significant digits, so that rates are repeated exactly and read well.
pub(super) fn rounded(rate_per_s: f64) -> f64 {
    let unit = 10_f64.powf(rate_per_s.log10().floor() - 2.0);
    if unit >= 1.0 {
        (rate_per_s / unit).round() * unit
    } else {
        // Dividing by a whole number keeps decimals exact.
        (rate_per_s / unit).round() / (1.0 / unit).round()
    }
}

/// Returns a rate between one that seems to keep the bound and one that seems to lose it: near where the curve puts the line, or in the middle.
pub(super) fn inside(bound: &Bound, curve: Option<Curve>, rates: &[Rate], [keeps, loses]: [&Rate; 2]) -> f64 {
    let (low, high) = (keeps.rate_per_s, loses.rate_per_s);
    let width = high - low;
    let middle = (low * high).sqrt();
    // A curve may be wrong at a cliff; every second time the gap is halved regardless of the curve.
    let fitted = curve.filter(|_| rates.len().is_multiple_of(2)).and_then(|curve| curve.limit_per_s(bound.below_s));
    let wanted = fitted.map_or(middle, |limit| {
        let (below, above) = (limit * (1.0 - bound.within / 2.0), limit * (1.0 + bound.within / 2.0));
        if below > low { below } else { above }
    });
    wanted.clamp(low + MARGIN * width, high - MARGIN * width)
}

/// The quantile of response time of an M/M/1 queue with a delay, both scaled: delay + scale / (capacity - rate).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Curve {
    pub capacity_per_s: f64,
    delay_s: f64,
    scale: f64,
}

impl Curve {
    /// Returns the curve that fits the quantiles of all rates best, by their relative errors; `None` for fewer than two rates.
    pub fn of(rates: &[Rate]) -> Option<Curve> {
        let points: Vec<(f64, f64)> = rates
            .iter()
            .map(|rate| (rate.rate_per_s, rate.quantile_s()))
            .filter(|(_, quantile_s)| quantile_s.is_finite() && *quantile_s > 0.0)
            .collect();
        let highest = points.iter().map(|(rate, _)| *rate).fold(0.0, f64::max);
        if points.len() < 2 {
            return None;
        }
        let capacities = (1..=CAPACITIES).map(|step| {
            let share = f64::from(step) / f64::from(CAPACITIES);
            // Capacities are dense close to the highest rate, where they matter most.
            highest * (1.0 + CAPACITY_MOST * share.powi(4))
        });
        let fits = capacities.filter_map(|capacity| Curve::with(capacity, &points));
        fits.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(curve, _)| curve)
    }

    /// Returns the curve with a capacity, by linear least squares of relative errors, and its sum of squares.
    fn with(capacity_per_s: f64, points: &[(f64, f64)]) -> Option<(Curve, f64)> {
        let mut sums = [0.0; 5];
        for (rate, quantile_s) in points {
            // delay × a + scale × b should be 1.
            let (a, b) = (1.0 / quantile_s, 1.0 / (capacity_per_s - rate) / quantile_s);
            for (sum, term) in sums.iter_mut().zip([a * a, a * b, b * b, a, b]) {
                *sum += term;
            }
        }
        let [aa, ab, bb, a, b] = sums;
        let determinant = aa * bb - ab * ab;
        let (delay_s, scale) = ((a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant);
        // Neither can be below zero: without a delay only the scale is fitted.
        let (delay_s, scale) = if delay_s < 0.0 { (0.0, b / bb) } else { (delay_s, scale) };
        let curve = Curve { capacity_per_s, delay_s, scale };
        let misfit = points.iter().map(|(rate, seen)| (curve.quantile_s(*rate) / seen - 1.0).powi(2)).sum::<f64>();
        (scale > 0.0 && misfit.is_finite()).then_some((curve, misfit))
    }

    fn quantile_s(&self, rate_per_s: f64) -> f64 {
        self.delay_s + self.scale / (self.capacity_per_s - rate_per_s)
    }

    /// Returns the arrival rate at which the quantile reaches the bound; `None` where it is above the bound everywhere.
    fn limit_per_s(&self, below_s: f64) -> Option<f64> {
        let limit = self.capacity_per_s - self.scale / (below_s - self.delay_s);
        (below_s > self.delay_s && limit > 0.0).then_some(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_read_well() {
        assert_eq!([123_456.0, 769.74, 12.345, 1.0, 0.123_45].map(rounded), [123_000.0, 770.0, 12.3, 1.0, 0.123]);
    }

    #[test]
    fn a_curve_finds_the_line_of_the_points_that_it_was_fitted_to() {
        let points: Vec<(f64, f64)> =
            [100.0, 400.0, 700.0, 850.0].map(|rate| (rate, 1e-3 + 2.3 / (1000.0 - rate))).to_vec();
        let (curve, misfit) = Curve::with(1000.0, &points).unwrap();
        assert!(misfit < 1e-12 && (curve.limit_per_s(0.011).unwrap() - 770.0).abs() < 1e-6, "{curve:?}");
        assert_eq!(curve.limit_per_s(0.0005), None);
    }

    #[test]
    fn a_queue_near_its_capacity_relaxes_slowly() {
        assert!((relaxation_s(1000.0, 810.0) - 0.1).abs() < 1e-9, "1 / (1000 × 0.1²)");
        assert_eq!(relaxation_s(1000.0, 1000.0), 0.0);
    }
}
