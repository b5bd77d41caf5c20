//! `[recorder]`: the recorder through which records pass on their way to the database.
//!
//! Main: [`RECORDER`] and [`read_recorder`]. Invariant: without the section nothing is between the load and the
//! database, and acknowledged records are not kept.

use crate::trial::{RecorderPath, RecorderSettings, Settings};
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::Table;
use crate::written::{Absent, Kind, Part, Setting};

/// The settings of the section.
pub static RECORDER: Part = Part {
    name: "recorder",
    help: "A private recorder between the load and the database. Without the section, clients write into the database directly.",
    settings: &[
        Setting::new(
            "path",
            Kind::Listed(|| RecorderPath::ALL.map(|(_, name)| name).to_vec()),
            Absent::Text("http"),
            "The way of records: directly into the database, to a recorder that takes line protocol over HTTP, to NATS with a recorder behind it, or to a recorder that takes blocks of cameras over FTP, FTP with TLS, or HTTP PUT.",
        )
        .factor(|settings| Some(recorder(settings)?.path.name().into())),
        Setting::new(
            "writers",
            Kind::Whole(1, 16),
            Absent::Whole(1),
            "Number of the recorder's writers, each with its own connection to the database.",
        )
        .factor(|settings| Some(recorder(settings)?.writers.into())),
        Setting::new(
            "batch",
            Kind::Whole(1, 100_000),
            Absent::Means("as in the recorder's own `writer.batch`"),
            "Maximum number of rows per transaction of a writer.",
        )
        .factor(|settings| recorder(settings)?.batch.map(Into::into)),
        Setting::new(
            "tls",
            Kind::OneOf(&["none", "verify"]),
            Absent::Text("none"),
            "How the clients' connections to the recorder are protected, or the clients' and the recorder's connections to the NATS server: `verify` is TLS with a certificate that is made for the trial and verified.",
        )
        .only("`path = \"http\"` and `path = \"nats\"`")
        .factor(|settings| Some(recorder(settings)?.tls.as_deref().unwrap_or("none").into())),
    ],
};

fn recorder(settings: &Settings) -> Option<&RecorderSettings> {
    settings.recorder.as_ref()
}

/// Reads the section; `None` if it is not written.
pub fn read_recorder(root: &Table, errors: &mut Errors) -> Option<RecorderSettings> {
    root.get("recorder")?;
    let section = Section::open(root, &RECORDER, errors);
    let path: Option<&str> = section.find("path", errors);
    // Leaving it out and writing `none` are the same case.
    let tls: Option<String> = section.find("tls", errors).filter(|name| name != "none");
    Some(RecorderSettings {
        path: path.and_then(RecorderPath::named).unwrap_or_default(),
        writers: section.read("writers", errors),
        batch: section.read("batch", errors),
        tls,
    })
}
