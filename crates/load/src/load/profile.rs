//! Arrival rates that change within a trial.
//!
//! Main type: [`Profile`], pure. Invariant: over the measured phase the mean rate is the one that was asked for, whatever the shape.

/// A rate over time: linear between points.
///
/// Arrivals of a Poisson process whose rate is λ(t) come when Λ(t), the integral of λ, passes the times of a process of
/// rate 1 (Çinlar, "Introduction to Stochastic Processes", 1975, chapter 4: the inverse of the expectation function).
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Each stretch with its start in nanoseconds, and the rates at its ends in arrivals per nanosecond; the last one begins where the profile ends.
    stretches: Vec<Stretch>,
    /// Time from which on the next arrival is searched for.
    at_ns: f64,
    stretch: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Stretch {
    begin_ns: f64,
    end_ns: f64,
    from: f64,
    to: f64,
}

impl Profile {
    /// Makes a profile with the shape of these points (times and weights), stretched over the measured phase, and with
    /// this mean rate in it; before the phase, the rate is that of the first point.
    pub fn new(points: &[[f64; 2]], rate_per_s: f64, (start_ns, measure_ns, end_ns): (u64, u64, u64)) -> Self {
        let (start_ns, measure_ns, end_ns) = (start_ns as f64, measure_ns as f64, end_ns as f64);
        let (first, last) = (points.first().map_or(0.0, |point| point[0]), points.last().map_or(1.0, |point| point[0]));
        let time_ns = |time: f64| measure_ns + (time - first) / (last - first) * (end_ns - measure_ns);
        let scale = rate_per_s / 1e9 / mean(points);
        let mut stretches = Vec::with_capacity(points.len());
        if let Some([_, weight]) = points.first().filter(|_| start_ns < measure_ns) {
            let rate = weight * scale;
            stretches.push(Stretch { begin_ns: start_ns, end_ns: measure_ns, from: rate, to: rate });
        }
        for pair in points.windows(2).filter(|pair| pair[1][0] > pair[0][0]) {
            let [[begin, from], [end, to]] = [pair[0], pair[1]];
            let (from, to) = (from * scale, to * scale);
            stretches.push(Stretch { begin_ns: time_ns(begin), end_ns: time_ns(end), from, to });
        }
        Profile { stretches, at_ns: start_ns, stretch: 0 }
    }

    /// Returns the time by which `arrivals` more arrivals are expected after the previous time returned; infinite if no more come.
    pub fn after(&mut self, mut arrivals: f64) -> f64 {
        while let Some(stretch) = self.stretches.get(self.stretch) {
            let at_ns = self.at_ns.max(stretch.begin_ns);
            let slope = (stretch.to - stretch.from) / (stretch.end_ns - stretch.begin_ns);
            let rate = stretch.from + slope * (at_ns - stretch.begin_ns);
            let left = (rate + stretch.to) / 2.0 * (stretch.end_ns - at_ns);
            if arrivals < left {
                // This form of the root of rate · x + slope · x² / 2 = arrivals does not cancel where the slope is small.
                let root = (rate * rate + 2.0 * slope * arrivals).max(0.0).sqrt();
                self.at_ns = (at_ns + 2.0 * arrivals / (rate + root)).min(stretch.end_ns);
                return self.at_ns;
            }
            arrivals -= left.max(0.0);
            self.at_ns = stretch.end_ns;
            self.stretch += 1;
        }
        f64::INFINITY
    }
}

/// Returns the mean weight over the time of a profile.
fn mean(points: &[[f64; 2]]) -> f64 {
    let span = points.last().zip(points.first()).map_or(0.0, |(last, first)| last[0] - first[0]);
    let area: f64 = points.windows(2).map(|pair| (pair[1][0] - pair[0][0]) * (pair[0][1] + pair[1][1]) / 2.0).sum();
    area / span
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    const SECOND: u64 = 1_000_000_000;

    fn times(profile: &mut Profile, mut gap: impl FnMut() -> f64) -> Vec<f64> {
        std::iter::from_fn(|| Some(profile.after(gap())).filter(|time| time.is_finite())).collect()
    }

    #[test]
    fn arrivals_at_equal_distances_stand_where_the_integral_says() {
        // From 0 to twice the mean: the share of arrivals up to a time is the square of that time's share.
        let mut ramp = Profile::new(&[[0.0, 0.0], [1.0, 1.0]], 100.0, (0, 0, 10 * SECOND));
        let times = times(&mut ramp, || 1.0);
        assert!((998..=1000).contains(&times.len()), "{}", times.len());
        for (number, time_ns) in times.iter().enumerate() {
            let right_ns = ((number + 1) as f64 / 1000.0).sqrt() * 1e10;
            assert!((time_ns - right_ns).abs() < 1e3, "{number}: {time_ns} and not {right_ns}");
        }
    }

    #[test]
    fn each_part_has_its_share_and_the_mean_is_kept() {
        // A day in ten seconds: a step, a peak four times as high, nothing, and the rest of the day.
        let points = [
            [0.0, 1.0],
            [6.0, 1.0],
            [6.0, 2.0],
            [9.0, 8.0],
            [12.0, 2.0],
            [12.0, 0.0],
            [18.0, 0.0],
            [18.0, 1.0],
            [24.0, 1.0],
        ];
        let mut stream = Stream::seeded(5);
        let mut profile = Profile::new(&points, 20_000.0, (0, 0, 10 * SECOND));
        let times = times(&mut profile, || -(1.0 - stream.unit()).ln());
        let all = 200_000.0_f64;
        assert!((times.len() as f64 - all).abs() < 4.0 * all.sqrt(), "{}", times.len());
        // Areas of the parts: 6, 15, 15, 0 and 6.
        for (from_h, to_h, area) in
            [(0.0, 6.0, 6.0), (6.0, 9.0, 15.0), (9.0, 12.0, 15.0), (12.0, 18.0, 0.0), (18.0, 24.0, 6.0)]
        {
            let within = |time: &&f64| (from_h..to_h).contains(&(**time / 1e10 * 24.0));
            let (count, right) = (times.iter().filter(within).count() as f64, all * area / 42.0);
            assert!((count - right).abs() <= 4.0 * right.sqrt(), "{from_h} to {to_h}: {count} and not {right}");
        }
    }

    #[test]
    fn before_the_measured_phase_it_is_as_at_the_first_point() {
        let mut profile = Profile::new(&[[0.0, 1.0], [1.0, 3.0]], 200.0, (SECOND, 2 * SECOND, 4 * SECOND));
        let times = times(&mut profile, || 1.0);
        let before = times.iter().filter(|time| **time < 2e9).count();
        assert!((99..=101).contains(&before), "{before}");
        assert!((498..=501).contains(&times.len()), "{}", times.len());
    }
}
