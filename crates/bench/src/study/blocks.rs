//! `[blocks]`: the blocks that cameras upload, if `recorder.path` is a way to upload blocks.
//!
//! Main: [`BLOCKS`], [`read_blocks`] and [`check_blocks`]. Invariant: the section is read only if it is written;
//! without it an upload has its defaults.

use super::clash::Clash;
use crate::fault::{Fault, fault};
use crate::trial::{BlocksSettings, Settings};
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::Table;
use crate::written::{Absent, Kind, Part, Setting};

/// The value for no limit.
const NONE: &str = "none";

/// The settings of the section.
pub static BLOCKS: Part = Part {
    name: "blocks",
    help: "What cameras upload if `recorder.path` is `ftp`, `ftps` or `put`, and what the recorder does with it.",
    settings: &[
        // A block has at least a signature and a header, and one larger than the recorder's limit would be refused.
        Setting::new("size", Kind::Size(4 << 10, 32 << 20, &[]), Absent::Text("1MiB"), "Size of a block.")
            .factor(|settings| Some(blocks(settings)?.bytes.into())),
        Setting::new(
            "rate",
            Kind::Size(16 << 10, 100 << 30, &[NONE]),
            Absent::Text(NONE),
            "Maximum bytes that the recorder takes in per second; `none` means no limit.",
        )
        .factor(|settings| Some(blocks(settings)?.rate_bytes_per_s.map_or_else(|| NONE.into(), Into::into))),
        Setting::new(
            "process",
            Kind::Truth,
            Absent::Truth(true),
            "Whether blocks are real ones, which the recorder verifies, decrypts and stores. Otherwise they are random bytes that stay in its inbox.",
        )
        .factor(|settings| Some(blocks(settings)?.process.into())),
        Setting::new(
            "bound",
            Kind::Size(64 << 20, 1 << 40, &[]),
            Absent::Text("4GiB"),
            "Maximum size of the recorder's inbox.",
        )
        .factor(|settings| Some(blocks(settings)?.bound_bytes.into())),
    ],
};

fn blocks(settings: &Settings) -> Option<&BlocksSettings> {
    settings.blocks.as_ref()
}

/// Reads the section; `None` if it is not written.
pub fn read_blocks(root: &Table, errors: &mut Errors) -> Option<BlocksSettings> {
    root.get("blocks")?;
    let section = Section::open(root, &BLOCKS, errors);
    Some(BlocksSettings {
        bytes: section.read("size", errors),
        rate_bytes_per_s: section.read("rate", errors),
        process: section.read("process", errors),
        bound_bytes: section.read("bound", errors),
    })
}

/// Returns the settings that blocks cannot be combined with, and why.
pub fn check_blocks(settings: &Settings, names_records: bool) -> Vec<Clash> {
    let mut wrong: Vec<Clash> = Vec::new();
    let path = settings.recorder.as_ref().map(|recorder| recorder.path).filter(|path| path.is_upload());
    let Some(path) = path else {
        if settings.blocks.is_some() && settings.recorder.is_none() {
            let remedy = "add [recorder] with path = \"ftp\", or leave the section out";
            wrong.push((&["blocks.size"], fault!("[blocks] is given and nobody takes blocks in"; "{remedy}")));
        }
        return wrong;
    };
    let name = path.name();
    let mut say = |settings: &'static [&'static str], what: Fault| {
        wrong.push((settings, what.about(format_args!("recorder.path is \"{name}\""))));
    };
    if settings.record.type_name != "violation" {
        let found = &settings.record.type_name;
        say(
            &["record.type", "recorder.path"],
            fault!("blocks carry violations"; "take record.type = \"violation\" instead of \"{found}\""),
        );
    }
    if !["wide", "star"].contains(&settings.layout.name.as_str()) {
        say(
            &["layout.name", "recorder.path"],
            fault!("violations are stored in layout \"star\" or \"wide\""; "take one of them"),
        );
    }
    if settings.workload.batch > 1 {
        say(&["workload.batch", "recorder.path"], fault!("a block has one record"; "leave workload.batch out"));
    }
    if names_records {
        say(
            &["record.table", "recorder.path"],
            fault!("the tables of violations have fixed names"; "leave record.table out"),
        );
    }
    wrong
}
