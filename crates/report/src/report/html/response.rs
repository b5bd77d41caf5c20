//! Shows response times of all cases, their distribution, and throughput within trials. Items: [`SECTION`], [`DISTRIBUTION`], [`COURSE`].

use maud::{Markup, html};

use super::section::{Page, Section};
use super::{figures, operations, stated, times};
use crate::finding::TimeFinding;
use crate::imported::TimeKind;
use crate::units::{NS_PER_S, show_number, show_seconds};

/// The quantiles of the times, shown for every run with a case.
pub const SECTION: Section = Section { id: "response-time", title, is_shown: |page| page.has_cases(), draw: section };

/// The distribution of the times, shown if they were measured.
pub const DISTRIBUTION: Section = Section {
    id: "distribution",
    title: |_| "Distribution",
    is_shown: |page| page.has_counted_times(),
    draw: distribution,
};

/// Throughput over time, shown if a trial was long enough.
pub const COURSE: Section = Section {
    id: "course",
    title: |_| "Over time",
    is_shown: |page| page.cases().iter().any(|case| times::Course::of(&page.trials(case)).is_some()),
    draw: course,
};

/// Returns the name of the times.
fn title(page: &Page<'_>) -> &'static str {
    match page.time {
        TimeKind::ResidenceTime => "Residence time",
        _ => "Response time",
    }
}

/// Returns the description of the times' beginning and end.
fn begins(page: &Page<'_>) -> &'static str {
    match page.time {
        TimeKind::ResidenceTime => "From sending an operation to its answer",
        _ => "From the intended time of an operation to its answer",
    }
}

fn section(page: &Page<'_>) -> Markup {
    let begins = begins(page);
    html! {
        section #response-time {
            h2 { (title(page)) (page.against()) }
            @if page.has_counted_times() {
                p.about { (begins) ", all valid trials together." (page.frame.best_panel_remark()) (operations::few_remark()) }
                (figures::response_times(&page.frame, &|case| page.times(case)))
                (times_table(page))
            }
            (stated::table(page.groups, page.time, begins))
        }
    }
}

fn times_table(page: &Page<'_>) -> Markup {
    let headings = ["Mean", "p50", "p90", "p99", "p99.9", "Largest", "Operations"].map(str::to_owned);
    figures::folded_table(&format!("{}s as a table", title(page)), page.cases(), &headings, |case| {
        let count = page.times(case).count();
        let TimeFinding { mean, p50, p90, p99, p999, max } = page.time_finding(case);
        let plain = |time: Option<f64>| time.map_or("-".to_owned(), show_seconds);
        let quantiles = [(p50, 0.5), (p90, 0.9), (p99, 0.99), (p999, 0.999)];
        let quantiles = quantiles.map(|(time, quantile)| operations::show_quantile(time, quantile, count));
        let shown = [vec![plain(mean)], quantiles.to_vec(), vec![plain(max)]].concat();
        shown.into_iter().chain([show_number(count as f64)]).collect()
    })
}

fn distribution(page: &Page<'_>) -> Markup {
    html! {
        section #distribution {
            h2 { "Distribution of " (title(page).to_lowercase()) "s" }
            p.about { "The time below which a share of operations stayed; each further nine takes the same room, so rare slow \
                       operations show." (page.frame.best_panel_remark()) }
            (times::distributions(&page.frame, &|case| page.times(case)))
            (percentile_table(page))
        }
    }
}

fn percentile_table(page: &Page<'_>) -> Markup {
    let headings = times::MARKED.map(|(_, title)| title.to_owned());
    figures::folded_table("Percentiles as a table", page.cases(), &headings, |case| {
        let all = page.times(case);
        let show = |share: f64| match all.count() {
            0 => "-".to_owned(),
            _ => show_seconds(all.quantile_ns(share) as f64 / NS_PER_S),
        };
        times::MARKED.iter().map(|(share, _)| show(*share)).collect()
    })
}

fn course(page: &Page<'_>) -> Markup {
    let headings = ["Slowest interval, operations/s", "Median", "Fastest"].map(str::to_owned);
    html! {
        section #course {
            h2 { "Throughput within trials" }
            p.about { "The line is the median of the trials, the band reaches from the slowest to the fastest interval: a stall in \
                       a single trial pulls the band down." (page.frame.best_panel_remark()) }
            (times::courses(&page.frame, &|case| page.trials(case)))
            (figures::folded_table("Intervals as a table", page.cases(), &headings, |case| {
                times::Course::of(&page.trials(case)).map_or(vec!["-".to_owned(); 3], |course| course.extremes())
            }))
        }
    }
}
