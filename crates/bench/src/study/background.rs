//! `[background]`: a second load beside the one that the study asks about.
//!
//! Main: [`BACKGROUND`] and [`read_background`]. Invariant: without the section there is no such load, and nothing else changes.

use crate::trial::{BackgroundSettings, Settings};
use crate::workload::BACKGROUND_WORKLOADS;
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::Table;
use crate::written::{Absent, Kind, Part, Setting};

/// The settings of the section.
pub static BACKGROUND: Part = Part {
    name: "background",
    help: "A second load with its own rate and connections, which is reported separately. Without the section there is none.",
    settings: &[
        Setting::new("workload", Kind::OneOf(&BACKGROUND_WORKLOADS), Absent::Text("write"), "The work of its clients.")
            .factor(|settings| Some(background(settings)?.workload.as_str().into())),
        Setting::new("clients", Kind::Whole(1, 100_000), Absent::Whole(1), "Number of its connections.")
            .factor(|settings| Some(background(settings)?.clients.into())),
        Setting::new(
            "arrivals",
            Kind::OneOf(&["poisson", "constant"]),
            Absent::Text("poisson"),
            "When its operations are due: at random and independent of each other, or at equal intervals.",
        )
        .factor(|settings| serde_json::to_value(background(settings)?.arrivals).ok()),
        Setting::new(
            "rate",
            Kind::Number(1e-3, 1e9),
            Absent::Means("none: it must be given, or be a factor"),
            "Number of its operations per second.",
        )
        .factor(|settings| Some(background(settings)?.rate_per_s.into())),
        Setting::new("batch", Kind::Whole(1, 100_000), Absent::Whole(1), "Number of records per transaction.")
            .factor(|settings| Some(background(settings)?.batch.into())),
    ],
};

fn background(settings: &Settings) -> Option<&BackgroundSettings> {
    settings.background.as_ref()
}

/// Reads the section; `None` if it is not written.
pub fn read_background(root: &Table, errors: &mut Errors) -> Option<BackgroundSettings> {
    root.get("background")?;
    let section = Section::open(root, &BACKGROUND, errors);
    Some(BackgroundSettings {
        workload: section.read("workload", errors),
        clients: section.read("clients", errors),
        arrivals: section.read("arrivals", errors),
        // A missing rate is an error of its own; see `check`.
        rate_per_s: section.find("rate", errors).unwrap_or(1.0),
        batch: section.read("batch", errors),
    })
}
