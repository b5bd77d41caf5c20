//! A section of the page, and what all of them are made from. Main types: [`Section`] and [`Page`].

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

/// A section: a line of `SECTIONS`.
pub struct Section {
    /// Its anchor, of which a page has one.
    pub id: &'static str,
    /// What the contents call it.
    pub title: fn(&Page<'_>) -> &'static str,
    /// Whether the page has it.
    pub is_shown: fn(&Page<'_>) -> bool,
    /// The section itself.
    pub draw: fn(&Page<'_>) -> Markup,
}

/// What sections are made from.
pub struct Page<'a> {
    pub findings: &'a Findings,
    pub study: &'a Study,
    pub environment: &'a Environment,
    pub measurements: &'a [Measurement],
    /// The trials of each case.
    pub groups: &'a [CaseTrials<'a>],
    /// Where each case is drawn.
    pub frame: Frame<'a>,
    /// How alternatives compare; none where that is not asked.
    pub compared: Option<Comparisons>,
    /// What is drawn of kinds of operation; none where there is one kind alone.
    pub operations: Option<Markup>,
    /// Which time is shown of operations.
    pub time: TimeKind,
    of_case: HashMap<&'a str, &'a CaseTrials<'a>>,
    /// Merged once, however many figures ask for them, and packed, because there may be thousands of cases.
    merged: HashMap<&'a str, Histogram>,
}

impl<'a> Page<'a> {
    /// A page about a run.
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

    /// All cases.
    pub fn cases(&self) -> &'a [CaseFinding] {
        &self.findings.cases
    }

    /// Whether there is anything to draw.
    pub fn has_cases(&self) -> bool {
        !self.findings.cases.is_empty()
    }

    /// The times of all valid trials of a case together.
    pub fn times(&self, case: &CaseFinding) -> Histogram {
        self.merged.get(case.id.as_str()).cloned().unwrap_or_default()
    }

    /// Their mean and quantiles.
    pub fn time_finding(&self, case: &CaseFinding) -> TimeFinding {
        time_finding(&self.times(case))
    }

    /// The valid trials of a case.
    pub fn trials(&self, case: &CaseFinding) -> Vec<&'a Measurement> {
        self.of_case.get(case.id.as_str()).map(|group| group.valid().collect()).unwrap_or_default()
    }

    /// Whether times were counted, and not only stated by another tool.
    pub fn has_counted_times(&self) -> bool {
        let has_any = |case: &CaseFinding| self.merged.get(case.id.as_str()).is_some_and(|times| times.count() > 0);
        self.has_cases() && (self.cases().iter().any(has_any) || self.findings.imported_from.is_none())
    }

    /// What figures are drawn against, as the end of a heading; empty without an axis.
    pub fn against(&self) -> String {
        self.frame.axis.as_ref().map_or(String::new(), |axis| format!(" against {}", axis.setting))
    }
}

/// The times of all valid trials of a case together.
fn merged_times(group: &CaseTrials<'_>, kind: TimeKind) -> Histogram {
    let mut all = Histogram::new();
    group.valid().for_each(|trial| all.merge(&trial.times(kind)));
    all.packed()
}

/// Response times, unless another tool measured that tells residence times alone.
fn time_kind(cases: &[CaseFinding]) -> TimeKind {
    let kinds = || cases.iter().filter(|case| case.valid_trials > 0).map(CaseFinding::time_kind);
    let is_residence = kinds().next().is_some() && kinds().all(|kind| kind == TimeKind::ResidenceTime);
    if is_residence { TimeKind::ResidenceTime } else { TimeKind::ResponseTime }
}
