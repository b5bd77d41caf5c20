//! `[disk]`: a writer beside the load that writes to the disk as fast as it can.
//!
//! Main: [`DISK`] and [`read_disk`]. Invariant: without the section there is no such writer. `block = "none"` keeps the
//! other settings and writes nothing, so that it can be a level for comparison: the undisturbed load.

use crate::fault::fault;
use crate::trial::{DiskSettings, DiskSync, Settings};
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::Table;
use crate::written::{Absent, Kind, Part, Setting};

const NONE: &str = "none";
const DIRECT_MULTIPLE: u64 = 4096;

/// The settings of the section.
pub static DISK: Part = Part {
    name: "disk",
    help: "A thread that writes beside the load, as fast as it can, to the disk with the database's files. Without the section there is none.",
    settings: &[
        Setting::new(
            "block",
            Kind::Size(512, 64 << 20, &[NONE]),
            Absent::Text("1MiB"),
            "Bytes per write. `none` writes nothing, as a level to compare the others with.",
        )
        .factor(|settings| {
            let block = settings.disk.as_ref().map(|disk| disk.block_bytes).filter(|bytes| *bytes > 0);
            Some(block.map_or_else(|| NONE.into(), Into::into))
        }),
        Setting::new(
            "sync",
            Kind::OneOf(&["each", "none", "direct"]),
            Absent::Text("each"),
            "When a block must be on the disk: before the next one is written (`each`), whenever the operating system decides (`none`), or at once and without the page cache (`direct`).",
        )
        .factor(|settings| serde_json::to_value(settings.disk.as_ref()?.sync).ok()),
        Setting::new(
            "file",
            Kind::Size(1 << 20, 64 << 30, &[]),
            Absent::Text("1GiB"),
            "Size of all files together. At the end they are written again from their start.",
        )
        .factor(|settings| Some(disk(settings)?.file_bytes.into())),
        Setting::new("writers", Kind::Whole(1, 64), Absent::Whole(1), "Number of threads that write, each with its own file.")
            .factor(|settings| Some(disk(settings)?.writers.into())),
    ],
};

fn disk(settings: &Settings) -> Option<&DiskSettings> {
    settings.disk.as_ref()
}

/// Reads the section; `None` if it is not written.
pub fn read_disk(root: &Table, errors: &mut Errors) -> Option<DiskSettings> {
    root.get("disk")?;
    let section = Section::open(root, &DISK, errors);
    let disk = DiskSettings {
        block_bytes: section.read("block", errors),
        sync: section.read("sync", errors),
        file_bytes: section.read("file", errors),
        writers: section.read("writers", errors),
    };
    if let (DiskSync::Direct, false, Some(entry)) =
        (disk.sync, disk.block_bytes.is_multiple_of(DIRECT_MULTIPLE), section.get("block"))
    {
        let must = "with sync = \"direct\" it must be a multiple of 4 KiB";
        errors.push(entry.node.place, fault!("disk.block is {}", entry.node; "{must}"));
    }
    Some(disk)
}
