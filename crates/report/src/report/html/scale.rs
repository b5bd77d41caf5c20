//! Defines scales and ticks: the mapping of values to places along an axis, with round numbers at the ticks.
//!
//! Main type: [`Scale`]. Invariant: every tick lies within the scale, and a linear scale of rates and times starts at zero.

use super::unit::Unit;

/// A tick on an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// The value at the tick.
    pub value: f64,
    /// The text beside it; empty for a line without text.
    pub label: String,
}

/// A mapping of values to places between 0 and 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// The ticks, lowest first.
    pub ticks: Vec<Tick>,
    /// The unit of the labels, for the axis title; empty if labels have their own.
    pub unit: String,
}

impl Scale {
    /// Creates a scale from zero to a round number above the largest value.
    pub fn from_zero(largest: f64, unit: Unit) -> Scale {
        let (divisor, name) = unit.of_axis(largest);
        let top = if largest > 0.0 && largest.is_finite() { largest / divisor } else { 1.0 };
        let step = round_step(top / 4.0);
        let count = (top / step - 1e-9).ceil().max(1.0) as usize;
        let shifted = |decimals: usize| step * 10_f64.powi(decimals as i32);
        let is_exact = |decimals: &usize| (shifted(*decimals) - shifted(*decimals).round()).abs() < 1e-6;
        let fewest = (-step.log10().floor()).max(0.0) as usize;
        let decimals = (fewest..fewest + 2).find(is_exact).unwrap_or(fewest);
        let label =
            |value: f64| if value >= 1000.0 { crate::units::show_number(value) } else { format!("{value:.decimals$}") };
        let ticks = (0..=count)
            .map(|place| place as f64 * step)
            .map(|value| Tick {
                value: value * divisor,
                label: if value == 0.0 { "0".to_owned() } else { label(value) },
            })
            .collect();
        Scale { low: 0.0, high: count as f64 * step * divisor, logarithmic: false, ticks, unit: name }
    }

    /// Creates a scale from zero to exactly the largest value: for time, which ends where the trial does.
    pub fn to_end(largest: f64, unit: Unit) -> Scale {
        let mut scale = Scale::from_zero(largest, unit);
        if largest > 0.0 && largest.is_finite() {
            scale.ticks.retain(|tick| tick.value <= largest * 1.000_001);
            scale.high = largest;
        }
        scale
    }

    /// Creates a logarithmic scale of times in seconds that encloses all values; ticks at powers of ten, with lines at 2 and 5 between if there
    /// is room. Values that are not above 0 are ignored.
    pub fn of_times(values: impl Iterator<Item = f64> + Clone) -> Scale {
        let positive = values.filter(|value| *value > 0.0 && value.is_finite());
        let smallest = positive.clone().fold(f64::INFINITY, f64::min);
        let largest = positive.fold(0.0, f64::max);
        let (smallest, largest) = if largest > 0.0 { (smallest, largest) } else { (1e-3, 1e-2) };
        let steps: Vec<f64> =
            (-10..5).flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10_f64.powi(power))).collect();
        let low = steps.iter().copied().rev().find(|step| *step <= smallest * 1.000_001).unwrap_or(smallest);
        let high = steps.iter().copied().find(|step| *step >= largest * 0.999_999).unwrap_or(largest);
        let high = if high <= low { low * 10.0 } else { high };
        let decades = (high / low).log10();
        let inside = steps.iter().copied().filter(|step| *step >= low * 0.999 && *step <= high * 1.001);
        let is_decade = |value: f64| (value.log10() - value.log10().round()).abs() < 1e-6;
        let ticks = inside
            .filter(|value| decades <= 3.2 || is_decade(*value))
            .map(|value| Tick {
                value,
                label: if decades <= 2.2 || is_decade(value) { Unit::Seconds.show(value) } else { String::new() },
            })
            .collect();
        Scale { low, high, logarithmic: true, ticks, unit: String::new() }
    }

    /// Creates a logarithmic scale of ratios that encloses 1 and all values; values that are not above 0 are ignored.
    pub fn of_ratios(values: impl Iterator<Item = f64>) -> Scale {
        let known = [1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1e3, 1e4, 1e6];
        let farthest = values
            .filter(|value| *value > 0.0 && value.is_finite())
            .map(|value| value.max(1.0 / value))
            .fold(1.01, f64::max);
        let end = known.into_iter().find(|step| *step >= farthest).unwrap_or(farthest);
        let inside = |value: &f64| *value <= end * 1.000_001;
        let show = |value: f64| if value < 1.1 { format!("{value:.2}") } else { format!("{value}") };
        let above = known.into_iter().filter(inside).map(|value| Tick { value, label: show(value) });
        let below = known.into_iter().filter(inside).map(|value| Tick {
            value: 1.0 / value,
            label: if value < 1.1 { format!("{:.2}", 1.0 / value) } else { format!("1/{value}") },
        });
        let mut ticks: Vec<Tick> = above.chain(below).collect();
        ticks.push(Tick { value: 1.0, label: "1".to_owned() });
        ticks.sort_by(|a, b| a.value.total_cmp(&b.value));
        Scale { low: 1.0 / end, high: end, logarithmic: true, ticks, unit: String::new() }
    }

    /// Creates a scale for the levels of a factor, with ticks at the levels: logarithmic if they span more than a factor of eight.
    pub fn of_levels(levels: &[f64]) -> Scale {
        let smallest = levels.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = levels.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let logarithmic = smallest > 0.0 && largest / smallest >= 8.0;
        let ticks = levels.iter().map(|level| Tick { value: *level, label: show_level(*level) }).collect();
        let mut scale = Scale { low: smallest, high: largest, logarithmic, ticks, unit: String::new() };
        if logarithmic {
            scale.low = smallest * (smallest / largest).powf(0.03);
            scale.high = largest * (largest / smallest).powf(0.03);
        } else {
            let margin = if largest > smallest { (largest - smallest) * 0.03 } else { 1.0 };
            (scale.low, scale.high) = (smallest - margin, largest + margin);
            if smallest >= 0.0 && smallest <= (largest - smallest) * 0.3 {
                scale.low = 0.0;
            }
        }
        scale
    }

    /// Creates a scale of shares of operations that were faster, on which each further nine takes the same room, up to `nines` of them, at least
    /// one.
    pub fn of_percentiles(nines: f64) -> Scale {
        let known =
            [(0.0, "0 %"), (0.5, "50 %"), (0.9, "90 %"), (0.99, "99 %"), (0.999, "99.9 %"), (0.9999, "99.99 %")];
        let high = nines.max(1.0);
        let ticks = known
            .iter()
            .map(|(share, label)| Tick { value: nines_of(*share), label: (*label).to_owned() })
            .filter(|tick| tick.value <= high + 1e-9)
            .collect();
        Scale { low: 0.0, high, logarithmic: false, ticks, unit: String::new() }
    }

    /// Returns whether each tick's label has room beside the ones before it, if the scale is `length` pixels long and a character takes
    /// `character` pixels.
    pub fn labels_with_room(&self, length: f64, character: f64) -> Vec<bool> {
        let mut free = f64::NEG_INFINITY;
        let room = |tick: &Tick| {
            let (at, half) = (self.place(tick.value) * length, tick.label.chars().count() as f64 * character / 2.0);
            let fits = at - half > free;
            if fits {
                free = at + half + 9.0;
            }
            fits
        };
        self.ticks.iter().map(room).collect()
    }

    /// Returns whether a value lies within the scale, so that its place is exact.
    pub fn holds(&self, value: f64) -> bool {
        let slack = (self.high - self.low) * 1e-9;
        value >= self.low - slack && value <= self.high + slack
    }

    /// Returns the place of a value: 0 at the low end, 1 at the high end; values outside are moved to the nearer end.
    pub fn place(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// Returns the number of nines of a share: 0.9 has one, 0.99 two.
pub fn nines_of(share: f64) -> f64 {
    -(1.0 - share).log10()
}

fn show_level(level: f64) -> String {
    if level.fract() == 0.0 && level.abs() < 1000.0 { format!("{level:.0}") } else { crate::units::show_number(level) }
}

/// Returns the smallest of 1, 2, 2.5 and 5 times a power of ten that is at least `step`.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let found = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|factor| factor * power >= step * (1.0 - 1e-9));
    found.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn rates_start_at_zero_and_have_round_ticks() {
        assert_eq!(
            labels(&Scale::from_zero(9_256.0, Unit::Rate("operations/s"))),
            ["0", "2,500", "5,000", "7,500", "10,000"]
        );
        assert_eq!(labels(&Scale::from_zero(0.0123, Unit::Seconds)), ["0", "5", "10", "15"]);
        assert_eq!(labels(&Scale::from_zero(9.5, Unit::Seconds)), ["0", "2.5", "5.0", "7.5", "10.0"]);
        assert_eq!(labels(&Scale::from_zero(0.9, Unit::Cpus)), ["0", "0.25", "0.50", "0.75", "1.00"]);
        assert_eq!(labels(&Scale::from_zero(0.7, Unit::Cpus)), ["0", "0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(labels(&Scale::from_zero(0.0, Unit::Cpus)).first(), Some(&"0"));
        assert_eq!(Scale::from_zero(0.0123, Unit::Seconds).unit, "ms");
    }

    #[test]
    fn times_on_a_logarithmic_scale_are_enclosed_by_ticks() {
        let scale = Scale::of_times([0.0004, 0.0119].into_iter());
        assert_eq!(labels(&scale), ["200 µs", "500 µs", "1 ms", "2 ms", "5 ms", "10 ms", "20 ms"]);
        assert_eq!((scale.place(0.0002), scale.place(0.02)), (0.0, 1.0));
        assert!(!Scale::of_times(std::iter::empty()).ticks.is_empty());
        assert!(Scale::of_times([0.001].into_iter()).place(0.001).is_finite());
    }

    #[test]
    fn a_ratio_and_its_inverse_are_as_far_from_one() {
        let scale = Scale::of_ratios([0.8, 1.1].into_iter());
        assert_eq!(scale.place(1.0), 0.5);
        assert!((scale.place(1.25) + scale.place(0.8) - 1.0).abs() < 1e-9);
        assert_eq!((labels(&scale).first(), labels(&scale).last()), (Some(&"1/1.5"), Some(&"1.5")));
        assert_eq!(labels(&Scale::of_ratios(std::iter::empty())), ["0.98", "1", "1.02"]);
    }

    #[test]
    fn levels_that_span_widely_get_a_logarithmic_scale() {
        let clients = Scale::of_levels(&[1.0, 2.0, 4.0, 8.0, 16.0]);
        let gap = clients.place(2.0) - clients.place(1.0);
        assert!((clients.place(16.0) - clients.place(8.0) - gap).abs() < 1e-9);
        let near = Scale::of_levels(&[1.0, 2.0, 3.0]);
        assert!((near.place(3.0) - near.place(2.0) - (near.place(2.0) - near.place(1.0))).abs() < 1e-9);
        assert!(Scale::of_levels(&[5.0]).place(5.0).is_finite());
    }

    #[test]
    fn each_further_nine_takes_the_same_room() {
        let scale = Scale::of_percentiles(3.0);
        assert_eq!(labels(&scale), ["0 %", "50 %", "90 %", "99 %", "99.9 %"]);
        assert!((scale.place(nines_of(0.99)) - 2.0 / 3.0).abs() < 1e-9);
    }
}
