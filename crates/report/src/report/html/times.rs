//! Draws the figures that need the trials themselves: the distribution of response times, and throughput within trials.
//!
//! Main functions: [`distributions`] and [`courses`]. Invariant: a stall shorter than a drawn step still shows, because each step is drawn
//! with its slowest and fastest interval.

use maud::{Markup, html};

use super::figures::{direct_label, legend};
use super::frame::{Frame, Placed};
use super::plot::{Line, Plot, Point, Stroke};
use super::scale::{Scale, nines_of};
use super::unit::Unit;
use crate::finding::CaseFinding;
use crate::histogram::Histogram;
use crate::measurement::Measurement;
use crate::report::factors::show_level;
use crate::statistics::summary::median;
use crate::units::{NS_PER_S, show_number, show_seconds};

/// The size of a panel.
const SMALL: (f64, f64) = (340.0, 230.0);
/// The most steps in which a trial's course is drawn.
const STEPS: usize = 50;
/// The percentiles that have a marker, a tip, and a place in the table.
pub const MARKED: [(f64, &str); 5] = [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9"), (0.9999, "p99.99")];

/// Returns the title of a panel for each level of the axis; empty without an axis.
fn panel_title(frame: &Frame<'_>, cases: &[&Placed<'_>]) -> String {
    let level = |axis: &str| cases.first().and_then(|placed| placed.case.levels.get(axis)).map(show_level);
    frame
        .axis
        .as_ref()
        .map_or(String::new(), |axis| format!("{} = {}", axis.setting, level(&axis.setting).unwrap_or_default()))
}

/// Returns the best panel's cases by level of the axis.
fn by_level<'f, 'a>(frame: &'f Frame<'a>) -> Vec<Vec<&'f Placed<'a>>> {
    let shown = |x: f64| frame.cases.iter().filter(move |placed| placed.panel == frame.best_panel && placed.x == x);
    frame.levels().into_iter().map(|x| shown(x).collect()).filter(|cases: &Vec<_>| !cases.is_empty()).collect()
}

/// Draws response times by percentile, with a panel per level of the axis and a line per series.
pub fn distributions(frame: &Frame<'_>, times: &dyn Fn(&CaseFinding) -> Histogram) -> Markup {
    let levels = by_level(frame);
    let histograms: Vec<Vec<(&Placed<'_>, Histogram)>> = levels
        .iter()
        .map(|cases| {
            cases.iter().map(|placed| (*placed, times(placed.case))).filter(|(_, all)| all.count() > 0).collect()
        })
        .collect();
    let all = || histograms.iter().flatten().map(|(_, times)| times);
    let most = all().map(Histogram::count).max().unwrap_or(0);
    let nines = nines_shown(most);
    let seconds = |ns: u64| ns as f64 / NS_PER_S;
    let share_last = 1.0 - 10_f64.powf(-nines);
    let ends = all().flat_map(|times| [seconds(times.quantile_ns(0.02)), seconds(times.quantile_ns(share_last))]);
    let scale = Scale::of_times(ends.collect::<Vec<f64>>().into_iter());
    let wide = levels.len() == 1;
    let size = if wide { (1000.0, 360.0) } else { SMALL };
    html! {
        @if levels.iter().any(|cases| cases.len() > 1) { (legend(frame)) }
        div class=(if wide { "wide" } else { "panels" }) {
            @for (cases, histograms) in levels.iter().zip(&histograms) {
                (Plot {
                    title: if wide { "Response time by percentile".to_owned() } else { panel_title(frame, cases) },
                    description: "Response time below which a share of operations stayed, logarithmic.".to_owned(),
                    size,
                    x: Scale::of_percentiles(nines),
                    x_title: "share of operations at most as long".to_owned(),
                    y: scale.clone(),
                    lines: histograms.iter().map(|(placed, times)| percentile_line(frame, placed, times, nines, size)).collect(),
                    marks: Vec::new(),
                }.draw())
            }
        }
    }
}

/// Returns the highest percentile that rests on at least ten operations, in nines; between 1 and 4.
fn nines_shown(count: u64) -> f64 {
    (count.max(1) as f64 / 10.0).log10().floor().clamp(1.0, 4.0)
}

fn percentile_line(frame: &Frame<'_>, placed: &Placed<'_>, times: &Histogram, nines: f64, size: (f64, f64)) -> Line {
    let name = &frame.series[placed.series];
    let at = |share: f64| times.quantile_ns(share) as f64 / NS_PER_S;
    let last = nines.min(nines_shown(times.count()));
    let steps = 40;
    let mut points: Vec<Point> = (0..=steps)
        .map(|step| last * f64::from(step) / f64::from(steps))
        .map(|x| Point { x, y: at((1.0 - 10_f64.powf(-x)).max(0.02)), interval: None, tip: String::new() })
        .collect();
    for (share, title) in MARKED.into_iter().filter(|(share, _)| nines_of(*share) <= last + 1e-9) {
        let lead = if name.is_empty() { String::new() } else { format!("{name}, ") };
        let tip = format!("{lead}{title}: {}", show_seconds(at(share)));
        points.push(Point { x: nines_of(share), y: at(share), interval: None, tip });
    }
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    let label = direct_label(&frame.series, placed.series, size);
    Line { label, style: placed.series, points, band: Vec::new(), stroke: Stroke::Solid }
}

/// Draws throughput within trials, with a panel per case.
pub fn courses<'m>(frame: &Frame<'_>, trials: &dyn Fn(&CaseFinding) -> Vec<&'m Measurement>) -> Markup {
    let levels = by_level(frame);
    let single = levels.len() == 1 && levels[0].len() == 1;
    html! {
        div class=(if single { "wide" } else { "panels" }) {
            @for cases in &levels {
                @let courses: Vec<(&Placed<'_>, Course)> = cases.iter().filter_map(|placed| Some((*placed, Course::of(&trials(placed.case))?))).collect();
                @let highest = courses.iter().flat_map(|(_, course)| &course.steps).map(|step| step.high).fold(0.0, f64::max);
                @let longest = courses.iter().flat_map(|(_, course)| &course.steps).map(|step| step.end_s).fold(0.0, f64::max);
                @for (placed, course) in &courses {
                    @let name = &frame.series[placed.series];
                    @let level = panel_title(frame, cases);
                    @let title = [name.as_str(), level.as_str()].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
                    (Plot {
                        title: if title.is_empty() { "the only case".to_owned() } else { title },
                        description: format!("Operations per second over time in {} trials: median, slowest and fastest.", course.trials),
                        size: if single { (1000.0, 300.0) } else { SMALL },
                        x: Scale::to_end(longest, Unit::Seconds),
                        x_title: format!("time into the measured phase, {}", Scale::to_end(longest, Unit::Seconds).unit),
                        y: Scale::from_zero(highest, Unit::Rate("operations/s")),
                        lines: vec![course.line(placed.series)],
                        marks: Vec::new(),
                    }.draw())
                }
            }
        }
    }
}

/// The course of a case's trials, in equal steps.
pub struct Course {
    trials: usize,
    steps: Vec<Step>,
}

/// One step of a course, over all trials, in operations per second.
struct Step {
    end_s: f64,
    low: f64,
    median: f64,
    high: f64,
}

impl Course {
    /// Returns the course of these trials; `None` if they kept no series.
    pub fn of(trials: &[&Measurement]) -> Option<Course> {
        // (end of the interval, operations per second)
        let mut rates: Vec<(f64, f64)> = Vec::new();
        for trial in trials {
            let mut begin_s = 0.0;
            let length_s = trial.series.first().map_or(0.0, |interval| interval.end_s);
            for interval in &trial.series {
                let own_s = interval.end_s - begin_s;
                // The last interval may be cut short, and its rate is then unreliable.
                if own_s > 0.3 * length_s {
                    rates.push((interval.end_s, interval.completed as f64 / own_s));
                }
                begin_s = interval.end_s;
            }
        }
        let longest = rates.iter().map(|(end_s, _)| *end_s).fold(0.0, f64::max);
        let most = trials.iter().map(|trial| trial.series.len()).max().unwrap_or(0);
        let count = most.min(STEPS);
        let mut steps: Vec<Vec<f64>> = vec![Vec::new(); count];
        for (end_s, rate) in rates {
            let place = (end_s / longest * count as f64 - 1e-6).floor().max(0.0) as usize;
            steps.get_mut(place)?.push(rate);
        }
        let step = |(place, rates): (usize, &Vec<f64>)| {
            Some(Step {
                end_s: longest * (place + 1) as f64 / count as f64,
                low: rates.iter().copied().fold(f64::INFINITY, f64::min),
                median: median(rates)?,
                high: rates.iter().copied().fold(0.0, f64::max),
            })
        };
        let steps: Vec<Step> = steps.iter().enumerate().filter_map(step).collect();
        (!steps.is_empty()).then_some(Course { trials: trials.len(), steps })
    }

    /// Returns the slowest, median and fastest interval, for the table.
    pub fn extremes(&self) -> Vec<String> {
        let medians: Vec<f64> = self.steps.iter().map(|step| step.median).collect();
        let low = self.steps.iter().map(|step| step.low).fold(f64::INFINITY, f64::min);
        let high = self.steps.iter().map(|step| step.high).fold(0.0, f64::max);
        [low, median(&medians).unwrap_or(f64::NAN), high].map(show_number).to_vec()
    }

    fn line(&self, style: usize) -> Line {
        let point = |step: &Step| Point { x: step.end_s, y: step.median, interval: None, tip: String::new() };
        Line {
            label: String::new(),
            style,
            points: self.steps.iter().map(point).collect(),
            band: self.steps.iter().map(|step| (step.end_s, step.low, step.high)).collect(),
            stroke: Stroke::Solid,
        }
    }
}
