//! `[background]`: a second load beside the one that the study asks about.
//!
//! Main function: [`read_background`]. Invariant: without the section there is no such load, and nothing else changes.

use super::place::Errors;
use super::section::Section;
use super::tree::Table;
use crate::trial::{Arrivals, BackgroundSettings, Settings};
use crate::workload::BACKGROUND_WORKLOADS;

const KEYS: &[&str] = &["workload", "clients", "arrivals", "rate", "batch"];

/// The settings of the section; none where it is not written. What is missing or wrong has its default.
pub fn read_background(root: &Table, errors: &mut Errors) -> Option<BackgroundSettings> {
    root.get("background")?;
    let section = Section::open(root, "background", KEYS, errors);
    let arrivals = match section.one_of("arrivals", &["poisson", "constant"], errors) {
        Some("constant") => Arrivals::Constant,
        _ => Arrivals::Poisson,
    };
    Some(BackgroundSettings {
        workload: section.one_of("workload", &BACKGROUND_WORKLOADS, errors).unwrap_or("write").to_owned(),
        clients: section.count("clients", 1, 100_000, errors).unwrap_or(1),
        arrivals,
        rate_per_s: section.number("rate", 1e-3..=1e9, errors).unwrap_or(1.0),
        batch: section.count("batch", 1, 100_000, errors).unwrap_or(1),
    })
}

/// The value of a setting of the section, as a study file states it.
pub fn value(settings: &Settings, setting: &str) -> Option<serde_json::Value> {
    let background = settings.background.as_ref()?;
    let is_constant = background.arrivals == Arrivals::Constant;
    match setting {
        "background.workload" => Some(background.workload.as_str().into()),
        "background.clients" => Some(background.clients.into()),
        "background.arrivals" => Some(if is_constant { "constant" } else { "poisson" }.into()),
        "background.rate" => Some(background.rate_per_s.into()),
        "background.batch" => Some(background.batch.into()),
        _ => None,
    }
}
