//! `[blocks]`: what cameras upload, where `recorder.path` is a way to upload blocks.
//!
//! Main functions: [`read_blocks`], [`check_blocks`]. Invariant: the section is read only where it is written; without it an upload has its
//! defaults.

use super::place::Errors;
use super::section::Section;
use super::tree::Table;
use crate::trial::{BlocksSettings, Settings};
use crate::units::parse_bytes;

const KEYS: &[&str] = &["size", "rate", "process", "bound"];
/// What stands for no limit.
const NONE: &str = "none";
/// A block has a signature and a header at least, and one of more than the recorder takes would be refused.
const BLOCK_BYTES: std::ops::RangeInclusive<u64> = 4 << 10..=32 << 20;
const RATE_BYTES: std::ops::RangeInclusive<u64> = 16 << 10..=100 << 30;
const BOUND_BYTES: std::ops::RangeInclusive<u64> = 64 << 20..=1 << 40;

/// The settings of the section; none where it is not written. What is missing or wrong has its default.
pub fn read_blocks(root: &Table, errors: &mut Errors) -> Option<BlocksSettings> {
    root.get("blocks")?;
    let section = Section::open(root, "blocks", KEYS, errors);
    let defaults = BlocksSettings::default();
    let rate = section.get("rate").and_then(|_| read_bytes(&section, "rate", &RATE_BYTES, errors));
    Some(BlocksSettings {
        bytes: read_bytes(&section, "size", &BLOCK_BYTES, errors).unwrap_or(defaults.bytes),
        rate_bytes_per_s: rate.map(|rate| rate as f64),
        process: section.truth("process", errors).unwrap_or(defaults.process),
        bound_bytes: read_bytes(&section, "bound", &BOUND_BYTES, errors).unwrap_or(defaults.bound_bytes),
    })
}

/// A size, or a size a second; none where it is missing, wrong or `none`.
fn read_bytes(section: &Section, key: &str, range: &std::ops::RangeInclusive<u64>, errors: &mut Errors) -> Option<u64> {
    let text = section.text(key, errors).filter(|text| *text != NONE || key != "rate")?;
    let place = section.get(key)?.node.place;
    match parse_bytes(text) {
        Ok(bytes) if range.contains(&bytes) => return Some(bytes),
        Ok(_) => {
            let (low, high) = (range.start() >> 10, range.end() >> 10);
            errors.push(place, format!("blocks.{key} is \"{text}\"; it must be from {low} KiB to {high} KiB"));
        }
        Err(sentence) => {
            let or = if key == "rate" { "; or write \"none\"" } else { "" };
            errors.push(place, format!("blocks.{key}: {sentence}{or}"));
        }
    }
    None
}

/// What blocks cannot be combined with: the settings that speak against it, and why.
pub fn check_blocks(settings: &Settings, names_records: bool) -> Vec<(&'static [&'static str], String)> {
    let mut wrong: Vec<(&'static [&'static str], String)> = Vec::new();
    let path = settings.recorder.as_ref().map(|recorder| recorder.path).filter(|path| path.is_upload());
    let Some(path) = path else {
        if settings.blocks.is_some() && settings.recorder.is_none() {
            let remedy = "add [recorder] with path = \"ftp\", or leave the section out";
            wrong.push((&["blocks.size"], format!("[blocks] is given and nobody takes blocks in; {remedy}")));
        }
        return wrong;
    };
    let name = path.name();
    let mut say = |settings: &'static [&'static str], what: String| {
        wrong.push((settings, format!("recorder.path is \"{name}\": {what}")));
    };
    if settings.record.type_name != "violation" {
        let found = &settings.record.type_name;
        say(
            &["record.type", "recorder.path"],
            format!("blocks carry violations; take record.type = \"violation\" instead of \"{found}\""),
        );
    }
    if !["wide", "star"].contains(&settings.layout.name.as_str()) {
        say(
            &["layout.name", "recorder.path"],
            "violations are stored in layout \"star\" or \"wide\"; take one of them".to_owned(),
        );
    }
    if settings.workload.batch > 1 {
        say(&["workload.batch", "recorder.path"], "a block has one record; leave workload.batch out".to_owned());
    }
    if names_records {
        say(
            &["record.table", "recorder.path"],
            "the tables of violations have fixed names; leave record.table out".to_owned(),
        );
    }
    wrong
}

/// The value of a setting of the section, as a study file states it: sizes in bytes.
pub fn value(settings: &Settings, setting: &str) -> Option<serde_json::Value> {
    let blocks = settings.blocks.as_ref()?;
    match setting {
        "blocks.size" => Some(blocks.bytes.into()),
        "blocks.rate" => Some(blocks.rate_bytes_per_s.map_or_else(|| NONE.into(), Into::into)),
        "blocks.process" => Some(blocks.process.into()),
        "blocks.bound" => Some(blocks.bound_bytes.into()),
        _ => None,
    }
}
