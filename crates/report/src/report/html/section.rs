//! Defines a section of the page, and the data for all sections. Main types: [`Section`] and [`Page`].

use std::collections::HashMap;

use maud::Markup;

use super::frame::Frame;
use crate::finding::{CaseFinding, Findings, TimeFinding};
use crate::histogram::Histogram;
use crate::imported::TimeKind;
use crate::measurement::{Environment, Measurement};
use crate::report::case_trials::{CaseTrials, time_finding};
use crate::report::compare::Comparisons;
use crate::study::Study;

/// A section: an entry of `SECTIONS`.
pub struct Section {
    /// The anchor of the section, unique in a page.
    pub id: &'static str,
    /// Returns the title of the section in the contents.
    pub title: fn(&Page<'_>) -> &'static str,
    /// Returns whether the page has the section.
    pub is_shown: fn(&Page<'_>) -> bool,
    /// Draws the section.
    pub draw: fn(&Page<'_>) -> Markup,
}

/// The data from which sections are made.
pub struct Page<'a> {
    pub findings: &'a Findings,
    pub study: &'a Study,
    pub environment: &'a Environment,
    pub measurements: &'a [Measurement],
    /// The trials of each case.
    pub groups: &'a [CaseTrials<'a>],
    /// The places where cases are drawn.
    pub frame: Frame<'a>,
    /// The comparisons of alternatives; `None` if there are none to show.
    pub compared: Option<Comparisons>,
    /// The drawing of the kinds of operation; `None` if there is only one kind.
    pub operations: Option<Markup>,
    /// The kind of time that is shown for operations.
    pub time: TimeKind,
    of_case: HashMap<&'a str, &'a CaseTrials<'a>>,
    /// The histogram of each case, merged once for all figures, and packed, because there may be thousands of cases.
    merged: HashMap<&'a str, Histogram>,
}

impl<'a> Page<'a> {
    /// Creates the page of a run.
    pub fn new(
        findings: &'a Findings,
        study: &'a Study,
        environment: &'a Environment,
        (measurements, groups): (&'a [Measurement], &'a [CaseTrials<'a>]),
        (compared, operations): (Option<Comparisons>, Option<Markup>),
    ) -> Self {
        let of_case: HashMap<&str, &CaseTrials<'_>> =
            groups.iter().map(|group| (group.case.id.as_str(), group)).collect();
        let time = time_kind(&findings.cases);
        let merged = of_case.iter().map(|(id, group)| (*id, merged_times(group, time))).collect();
        let frame = Frame::of(study, findings);
        Page { findings, study, environment, measurements, groups, frame, compared, operations, time, of_case, merged }
    }

    /// Returns all cases.
    pub fn cases(&self) -> &'a [CaseFinding] {
        &self.findings.cases
    }

    /// Returns whether there is anything to draw.
    pub fn has_cases(&self) -> bool {
        !self.findings.cases.is_empty()
    }

    /// Returns the times of all valid trials of a case together.
    pub fn times(&self, case: &CaseFinding) -> Histogram {
        self.merged.get(case.id.as_str()).cloned().unwrap_or_default()
    }

    /// Returns the mean and the quantiles of all valid trials of a case together.
    pub fn time_finding(&self, case: &CaseFinding) -> TimeFinding {
        time_finding(&self.times(case))
    }

    /// Returns the valid trials of a case.
    pub fn trials(&self, case: &CaseFinding) -> Vec<&'a Measurement> {
        self.of_case.get(case.id.as_str()).map(|group| group.valid().collect()).unwrap_or_default()
    }

    /// Returns whether times were measured, and not only stated by another tool.
    pub fn has_counted_times(&self) -> bool {
        let has_any = |case: &CaseFinding| self.merged.get(case.id.as_str()).is_some_and(|times| times.count() > 0);
        self.has_cases() && (self.cases().iter().any(has_any) || self.findings.imported_from.is_none())
    }

    /// Returns the axis of figures as the end of a heading; empty without an axis.
    pub fn against(&self) -> String {
        self.frame.axis.as_ref().map_or(String::new(), |axis| format!(" against {}", axis.setting))
    }
}

/// Merges the times of all valid trials of a case.
fn merged_times(group: &CaseTrials<'_>, kind: TimeKind) -> Histogram {
    let mut all = Histogram::new();
    group.valid().for_each(|trial| all.merge(&trial.times(kind)));
    all.packed()
}

/// Returns response times, unless another tool measured that states only residence times.
fn time_kind(cases: &[CaseFinding]) -> TimeKind {
    let kinds = || cases.iter().filter(|case| case.valid_trials > 0).map(CaseFinding::time_kind);
    let is_residence = kinds().next().is_some() && kinds().all(|kind| kind == TimeKind::ResidenceTime);
    if is_residence { TimeKind::ResidenceTime } else { TimeKind::ResponseTime }
}
