//! Draws freshness: histograms of each group of readers, as on slides 24 and 25 of the source, and quantiles against throughput.
//!
//! Item: [`SECTION`]. Invariant: the bars of a histogram stand on a logarithmic axis of time and have equal width; each group is drawn from
//! its own merged counts.

use maud::{Markup, html};

use super::plot::{Line, Plot, Point, Stroke};
use super::scale::Scale;
use super::section::Section;
use super::unit::Unit;
use crate::finding::{CaseFinding, Estimate, Findings, SightingFinding};
use crate::histogram::Histogram;
use crate::measurement::Measurement;
use crate::report::case_trials::CaseTrials;
use crate::report::factors::show_levels;
use crate::report::instruments::freshness::{HEADINGS, THROUGHPUT, groups, rows, short_levels};
use crate::units::{NS_PER_S, show_number, show_seconds};

const SMALL: (f64, f64) = (340.0, 230.0);
const WIDE: (f64, f64) = (1000.0, 360.0);
/// The number of bars of a histogram per power of ten.
const BARS_PER_DECADE: f64 = 8.0;
/// A figure of freshness, with its name.
type Quantile = (&'static str, fn(&SightingFinding) -> Option<f64>);
const QUANTILES: [Quantile; 3] =
    [("p50", |group| group.times.p50), ("p90", |group| group.times.p90), ("p99", |group| group.times.p99)];

/// The section, shown if events had readers.
pub const SECTION: Section = Section {
    id: "freshness",
    title: |_| "Freshness",
    is_shown: |page| page.cases().iter().any(|case| case.freshness_s.is_some()),
    draw: |page| section(page.findings, page.groups),
};

fn section(findings: &Findings, cases: &[CaseTrials<'_>]) -> Markup {
    html! {
        section #freshness {
            h2 { "Freshness" }
            p.about {
                "From the start of a write until a reader had the event, all valid trials together, by group of readers. “lost” and “double” \
                 are sightings that were missing at the end and sightings of events seen before; “rows read” is how many rows were \
                 read for each sighting. “stored”: until a historian had the event in the database."
            }
            div.scroll { table {
                thead { tr { @for heading in HEADINGS { th { (heading) } } } }
                tbody { @for row in rows(findings) {
                    tr { @for (place, cell) in row.iter().enumerate() {
                        @if place == 0 { th { (cell) } } @else { td { (cell) } }
                    } }
                } }
            } }
            (components(findings))
            div.panels { @for case in cases { (histogram(case)) } }
            (each_reader(cases))
            (against_throughput(findings))
        }
    }
}

/// Draws the CPUs of each part, if parts are measured separately.
fn components(findings: &Findings) -> Markup {
    let mut names: Vec<&String> = findings.cases.iter().flat_map(|case| case.cpus.keys()).collect();
    names.sort_unstable();
    names.dedup();
    html! {
        @if !names.is_empty() {
            h3 { "CPUs kept busy by each part" }
            div.scroll { table {
                thead { tr { th { "Case" } @for name in &names { th.number { (name) } } } }
                tbody { @for case in &findings.cases { tr {
                    th { (short_levels(&case.levels)) }
                    @for name in &names { td { (case.cpus.get(*name).map_or("-".to_owned(), |cpus| format!("{cpus:.2}"))) } }
                } } }
            } }
        }
    }
}

/// Draws the histograms of a case's groups, one over another.
fn histogram(case: &CaseTrials<'_>) -> Markup {
    let valid: Vec<&Measurement> = case.valid().collect();
    let merged = groups(&valid);
    let filled: Vec<(&String, &Histogram)> =
        merged.iter().map(|(name, group)| (name, &group.freshness)).filter(|(_, all)| all.count() > 0).collect();
    if filled.is_empty() {
        return html! {};
    }
    let lines = filled.iter().map(|(name, all)| (format!("group {name}"), *all)).collect();
    outlines(short_levels(&case.case.levels), lines, true)
}

/// Draws the histograms of every reader, as on the slides, with a frame for each group of each case.
fn each_reader(cases: &[CaseTrials<'_>]) -> Markup {
    let mut frames = Vec::new();
    for case in cases {
        let valid: Vec<&Measurement> = case.valid().collect();
        for (name, group) in groups(&valid).iter().filter(|(_, group)| group.each.len() > 1) {
            let seen = group.each.iter().filter(|(_, freshness)| freshness.count() > 0);
            let lines: Vec<(String, &Histogram)> =
                seen.map(|(reader, freshness)| (format!("reader {}", reader + 1), freshness)).collect();
            if !lines.is_empty() {
                frames.push(outlines(format!("{}, group {name}", short_levels(&case.case.levels)), lines, false));
            }
        }
    }
    html! {
        @if !frames.is_empty() {
            details {
                summary { "Histograms of each reader" }
                div.panels { @for frame in &frames { (frame) } }
            }
        }
    }
}

/// Draws histograms over each other.
fn outlines(title: String, named: Vec<(String, &Histogram)>, is_filled: bool) -> Markup {
    let steps: Vec<Vec<(f64, f64)>> = named.iter().map(|(_, all)| shares(all)).collect();
    let ends = steps.iter().flatten().flat_map(|(at_s, _)| [*at_s, at_s * step()]).collect::<Vec<f64>>();
    let most = steps.iter().flatten().map(|(_, share)| *share).fold(0.0, f64::max);
    let mut lines = Vec::new();
    for (style, ((name, all), steps)) in named.iter().zip(&steps).enumerate() {
        lines.push(outline(name, all, steps, style, is_filled));
    }
    html! {
        (Plot {
            title: if title.is_empty() { "Histogram of freshness".to_owned() } else { title },
            description: "Share of sightings by freshness, logarithmic, a line for each group of readers, or reader.".to_owned(),
            size: SMALL,
            x: Scale::of_times(ends.into_iter()),
            x_title: "freshness".to_owned(),
            y: Scale::from_zero(most, Unit::Share),
            lines,
            marks: Vec::new(),
        }.draw())
    }
}

/// Returns the ratio of the beginning of a bar to that of the one before.
fn step() -> f64 {
    10_f64.powf(1.0 / BARS_PER_DECADE)
}

/// Returns the beginnings of bars in seconds, with the share of sightings in each, from the first filled bar to the last.
fn shares(all: &Histogram) -> Vec<(f64, f64)> {
    let bar_of = |time_ns: u64| (BARS_PER_DECADE * (time_ns.max(1) as f64).log10()).floor() as i64;
    let (first, last) = (bar_of(all.min_ns()), bar_of(all.max_ns()));
    let mut counts = vec![0_u64; (last - first + 1).max(1) as usize];
    for (low_ns, high_ns, count) in all.buckets() {
        let place = (bar_of(u64::midpoint(low_ns, high_ns)) - first).clamp(0, last - first);
        counts[place as usize] += count;
    }
    let begin = |place: usize| 10_f64.powf((first + place as i64) as f64 / BARS_PER_DECADE) / NS_PER_S;
    counts.iter().enumerate().map(|(place, count)| (begin(place), *count as f64 / all.count() as f64)).collect()
}

/// Returns the outline of a histogram.
fn outline(name: &str, all: &Histogram, steps: &[(f64, f64)], style: usize, is_filled: bool) -> Line {
    let mut points = Vec::new();
    let mut band = Vec::new();
    let highest = steps.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    let mut tip = format!(
        "{name}: {} sightings, p90 {}",
        show_number(all.count() as f64),
        show_seconds(all.quantile_ns(0.9) as f64 / NS_PER_S)
    );
    for (place, (begin_s, share)) in steps.iter().enumerate() {
        // A bar ends exactly where the next one begins: edges that differ by rounding would make the outline go back and forth.
        let end_s = steps.get(place + 1).map_or(begin_s * step(), |(next_s, _)| *next_s);
        for at_s in [*begin_s, end_s] {
            let tip = if *share == highest { std::mem::take(&mut tip) } else { String::new() };
            points.push(Point { x: at_s, y: *share, interval: None, tip });
            if is_filled {
                band.push((at_s, 0.0, *share));
            }
        }
    }
    Line { label: name.to_owned(), style, points, band, stroke: Stroke::Solid }
}

/// Draws quantiles against the bytes of events written per second, a line for each quantile of each group, if there are several throughputs.
fn against_throughput(findings: &Findings) -> Markup {
    let throughput = |case: &CaseFinding| case.event_bytes_per_s.and_then(|bytes| bytes.mean);
    let most = findings.cases.iter().filter_map(throughput).fold(0.0, f64::max);
    let least = findings.cases.iter().filter_map(throughput).fold(f64::INFINITY, f64::min);
    if least.is_nan() || most < 1.5 * least || findings.cases.len() < 2 {
        return html! {};
    }
    let mut lines: Vec<Line> = Vec::new();
    let mut times = Vec::new();
    for series in series_of(findings) {
        for (name, figure) in QUANTILES {
            let of = |(bytes, group): &(Estimate, SightingFinding)| Some((*bytes, figure(group)?));
            let places: Vec<(Estimate, f64)> = series.1.iter().filter_map(of).collect();
            times.extend(places.iter().map(|(_, time_s)| *time_s));
            let tip = |(bytes, time_s): &(Estimate, f64)| {
                format!("{} {name}: {} at {} MB/s", series.0, show_seconds(*time_s), bytes.show_megabytes())
            };
            let point =
                |place: &(Estimate, f64)| Point { x: megabytes(&place.0), y: place.1, interval: None, tip: tip(place) };
            let points = places.iter().map(point).collect();
            let label = format!("{} {name}", series.0).trim().to_owned();
            lines.push(Line { label, style: lines.len() % 6, points, band: Vec::new(), stroke: Stroke::Solid });
        }
    }
    html! {
        div.wide {
            (Plot {
                title: "Freshness against throughput".to_owned(),
                description: "Quantiles of freshness, logarithmic, against megabytes of events written per second.".to_owned(),
                size: WIDE,
                x: Scale::to_end(most / 1e6, Unit::Rate("MB/s")),
                x_title: "events written, MB/s".to_owned(),
                y: Scale::of_times(times.into_iter()),
                lines,
                marks: Vec::new(),
            }.draw())
        }
    }
}

/// Returns the mean in millions of bytes; 0 if there is none.
fn megabytes(bytes: &Estimate) -> f64 {
    bytes.mean.unwrap_or(0.0) / 1e6
}

/// Returns cases that differ only in their throughput, in its order, with the figures of their worst group.
fn series_of(findings: &Findings) -> Vec<(String, Vec<(Estimate, SightingFinding)>)> {
    let mut found: Vec<(String, Vec<(Estimate, SightingFinding)>)> = Vec::new();
    for case in &findings.cases {
        let own = case.levels.iter().filter(|(setting, _)| !THROUGHPUT.contains(&setting.as_str()));
        let name = show_levels(&own.map(|(setting, level)| (setting.clone(), level.clone())).collect());
        let name = if name == show_levels(&Default::default()) { String::new() } else { name };
        let (Some(bytes), Some(groups)) = (case.event_bytes_per_s, &case.freshness_s) else { continue };
        let worst =
            groups.values().copied().max_by(|a, b| a.times.p90.unwrap_or(0.0).total_cmp(&b.times.p90.unwrap_or(0.0)));
        let Some(worst) = worst.filter(|worst| worst.times.p90.is_some()) else { continue };
        match found.iter_mut().find(|(known, _)| *known == name) {
            Some((_, places)) => places.push((bytes, worst)),
            None => found.push((name, vec![(bytes, worst)])),
        }
    }
    found.iter_mut().for_each(|(_, places)| places.sort_by(|a, b| megabytes(&a.0).total_cmp(&megabytes(&b.0))));
    found.retain(|(_, places)| places.len() > 1);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outline_of_a_histogram_never_goes_back() {
        let mut all = Histogram::new();
        (1..4_000_u64).for_each(|time| all.record(time * time * 37));
        let steps = shares(&all);
        assert!(steps.len() > 20);
        let line = outline("readers", &all, &steps, 0, true);
        let pairs: Vec<_> = line.points.windows(2).collect();
        assert!(pairs.iter().all(|pair| pair[0].x <= pair[1].x));
        let ups = pairs.iter().filter(|pair| pair[0].x == pair[1].x).count();
        assert_eq!(ups, steps.len() - 1, "one upright between two bars, at one place");
        assert_eq!(line.points.iter().filter(|point| !point.tip.is_empty()).count(), 1);
    }
}
