//! `[disk]`: a writer beside the load that writes to the disk as fast as it can.
//!
//! Main function: [`read_disk`]. Invariant: without the section there is no such writer. `block = "none"` has the other settings and
//! writes nothing, so that it can be a level beside theirs: what the load does undisturbed.

use super::place::Errors;
use super::section::Section;
use super::tree::Table;
use crate::trial::{DiskSettings, DiskSync, Settings};
use crate::units::parse_bytes;

const KEYS: &[&str] = &["block", "sync", "file", "writers"];
const NONE: &str = "none";
const BLOCK_BYTES: std::ops::RangeInclusive<u64> = 512..=64 << 20;
const FILE_BYTES: std::ops::RangeInclusive<u64> = 1 << 20..=64 << 30;
const DIRECT_MULTIPLE: u64 = 4096;

/// The settings of the section; none where it is not written. What is missing or wrong has its default.
pub fn read_disk(root: &Table, errors: &mut Errors) -> Option<DiskSettings> {
    root.get("disk")?;
    let section = Section::open(root, "disk", KEYS, errors);
    let sync = match section.one_of("sync", &["each", "none", "direct"], errors) {
        Some("none") => DiskSync::None,
        Some("direct") => DiskSync::Direct,
        _ => DiskSync::Each,
    };
    let block_bytes = read_bytes(&section, "block", 1 << 20, BLOCK_BYTES, errors);
    let file_bytes = read_bytes(&section, "file", 1 << 30, FILE_BYTES, errors)?;
    let writers = section.count("writers", 1, 64, errors).unwrap_or(1);
    let block_bytes = block_bytes.unwrap_or(0);
    if let (DiskSync::Direct, false, Some(entry)) =
        (sync, block_bytes.is_multiple_of(DIRECT_MULTIPLE), section.get("block"))
    {
        let must = "with sync = \"direct\" it must be a multiple of 4 KiB";
        errors.push(entry.node.place, format!("disk.block is {}; {must}", entry.node));
    }
    Some(DiskSettings { block_bytes, sync, file_bytes, writers })
}

/// A size; none where it is `none`.
fn read_bytes(
    section: &Section,
    key: &str,
    default: u64,
    range: std::ops::RangeInclusive<u64>,
    errors: &mut Errors,
) -> Option<u64> {
    let Some(text) = section.text(key, errors) else { return Some(default) };
    let place = section.get(key)?.node.place;
    match parse_bytes(text) {
        _ if text == NONE && key == "block" => None,
        Ok(bytes) if range.contains(&bytes) => Some(bytes),
        Ok(_) => {
            let (low, high) = (range.start() >> 10, range.end() >> 10);
            errors.push(place, format!("disk.{key} is \"{text}\"; it must be from {low} KiB to {high} KiB"));
            Some(default)
        }
        Err(sentence) => {
            errors.push(place, format!("disk.{key}: {sentence}"));
            Some(default)
        }
    }
}

/// The value of a setting of the section, as a study file states it: sizes in bytes.
pub fn value(settings: &Settings, setting: &str) -> Option<serde_json::Value> {
    let disk = settings.disk.as_ref();
    match setting {
        "disk.block" => {
            Some(disk.filter(|disk| disk.block_bytes > 0).map_or_else(|| NONE.into(), |disk| disk.block_bytes.into()))
        }
        "disk.sync" => Some(match disk?.sync {
            DiskSync::Each => "each".into(),
            DiskSync::None => "none".into(),
            DiskSync::Direct => "direct".into(),
        }),
        "disk.file" => Some(disk?.file_bytes.into()),
        "disk.writers" => Some(disk?.writers.into()),
        _ => None,
    }
}
