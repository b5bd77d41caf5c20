//! `[recorder]`: what records go through on their way to the database.
//!
//! Main function: [`read_recorder`]. Invariant: without the section nothing is between the load and the database, and what was
//! acknowledged is not kept.

use super::place::Errors;
use super::section::Section;
use super::tree::Table;
use crate::trial::{RecorderPath, RecorderSettings, Settings};

const KEYS: &[&str] = &["path", "writers", "batch"];

/// The settings of the section; none where it is not written. What is missing or wrong has its default.
pub fn read_recorder(root: &Table, errors: &mut Errors) -> Option<RecorderSettings> {
    root.get("recorder")?;
    let section = Section::open(root, "recorder", KEYS, errors);
    let names = RecorderPath::ALL.map(|(_, name)| name);
    Some(RecorderSettings {
        path: section.one_of("path", &names, errors).and_then(RecorderPath::named).unwrap_or(RecorderPath::Http),
        writers: section.count("writers", 1, 16, errors).unwrap_or(1),
        batch: section.count("batch", 1, 100_000, errors),
    })
}

/// The value of a setting of the section, as a study file states it.
pub fn value(settings: &Settings, setting: &str) -> Option<serde_json::Value> {
    let recorder = settings.recorder.as_ref()?;
    match setting {
        "recorder.path" => Some(recorder.path.name().into()),
        "recorder.writers" => Some(recorder.writers.into()),
        "recorder.batch" => recorder.batch.map(Into::into),
        _ => None,
    }
}
