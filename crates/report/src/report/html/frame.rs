//! Decides where each case is drawn: the ramp along the x axis, alternatives as series, everything else as small multiples.
//!
//! Main type: [`Frame`]. Invariant: every case of the findings has exactly one place.

use crate::finding::{CaseFinding, Findings};
use crate::report::factors::{Factors, QUERY, short_level, show_level};
use crate::study::{Factor, Study};
use crate::trial::Levels;

/// The most series in one plot that can be distinguished.
const SERIES_MOST: usize = 8;

/// The places at which cases are drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame<'a> {
    /// The names of the series; a single empty name if there are no alternatives.
    pub series: Vec<String>,
    /// The names of the panels; a single empty name if one plot shows all cases.
    pub panels: Vec<String>,
    /// The ramp along the x axis; `None` if bars are drawn.
    pub axis: Option<Factor>,
    /// The panel with the case of the highest throughput, for figures in which one panel must represent all.
    pub best_panel: usize,
    /// Every case with its place.
    pub cases: Vec<Placed<'a>>,
}

/// A case with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed<'a> {
    /// The case.
    pub case: &'a CaseFinding,
    /// The index of the series.
    pub series: usize,
    /// The index of the panel.
    pub panel: usize,
    /// The value along the axis; 0 without an axis.
    pub x: f64,
}

impl<'a> Frame<'a> {
    /// Places all cases of the findings.
    pub fn of(study: &Study, findings: &'a Findings) -> Self {
        let mut factors = Factors::of(study);
        let axis = factors.axis().cloned();
        let mut panel_factors: Vec<Factor> = factors.other_ramps().cloned().collect();
        // Queries are shown side by side; they are not alternatives.
        let is_query = |factor: &Factor| factor.setting == QUERY;
        panel_factors.splice(0..0, factors.choices.extract_if(.., |factor| is_query(factor)));
        let combinations: usize = factors.choices.iter().map(|factor| factor.levels.len()).product();
        if combinations > SERIES_MOST {
            panel_factors.splice(0..0, factors.choices.drain(1..));
        }
        let (mut series, mut panels) = (Vec::new(), Vec::new());
        let mut cases = Vec::new();
        for case in &findings.cases {
            let x = axis.as_ref().and_then(|axis| case.levels.get(&axis.setting)?.as_f64()).unwrap_or(0.0);
            let (series, panel) = (
                place_of(&mut series, factors.choice_label(&case.levels)),
                place_of(&mut panels, panel_label(&panel_factors, &case.levels)),
            );
            cases.push(Placed { case, series, panel, x });
        }
        let throughput =
            |placed: &&Placed<'_>| placed.case.records_per_s.mean.or(placed.case.throughput_per_s.mean).unwrap_or(0.0);
        let best = cases.iter().max_by(|a, b| throughput(a).total_cmp(&throughput(b)));
        let best_panel = best.map_or(0, |placed| placed.panel);
        Frame { series, panels, axis, best_panel, cases }
    }

    /// Returns the cases of a series in a panel, from left to right.
    pub fn line(&self, series: usize, panel: usize) -> Vec<&Placed<'a>> {
        let mut line: Vec<&Placed<'a>> =
            self.cases.iter().filter(|placed| placed.series == series && placed.panel == panel).collect();
        line.sort_by(|a, b| a.x.total_cmp(&b.x));
        line
    }

    /// Returns all values along the axis, from left to right.
    pub fn levels(&self) -> Vec<f64> {
        let mut levels: Vec<f64> = self.cases.iter().map(|placed| placed.x).collect();
        levels.sort_by(f64::total_cmp);
        levels.dedup();
        levels
    }

    /// Names the panel that represents all, with a leading space; empty if there is only one.
    pub fn best_panel_remark(&self) -> String {
        match self.panels.len() {
            0 | 1 => String::new(),
            _ => format!(" Shown for {}, where throughput is highest.", self.panels[self.best_panel]),
        }
    }
}

fn panel_label(factors: &[Factor], levels: &Levels) -> String {
    let label = |factor: &Factor| {
        let level = levels.get(&factor.setting)?;
        let number = level.is_number() && !factor.setting.starts_with("database.config.");
        Some(if number { format!("{} = {}", factor.setting, show_level(level)) } else { short_level(factor, level) })
    };
    factors.iter().filter_map(label).collect::<Vec<_>>().join(", ")
}

fn place_of(names: &mut Vec<String>, name: String) -> usize {
    names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}
