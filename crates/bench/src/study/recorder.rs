//! `[recorder]`: the recorder through which records pass on their way to the database.
//!
//! Main: [`RECORDER`] and [`read_recorder`]. Invariant: without the section nothing is between the load and the
//! database, and acknowledged records are not kept.

use crate::trial::{RECORDERS_MAX, RecorderBuffer, RecorderPath, RecorderSettings, Settings};
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::Table;
use crate::written::{Absent, Kind, Part, Setting};

/// Maximum number of parts of a stream, as in the recorder's own file.
const PARTS_MAX: i64 = 256;

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
            "count",
            Kind::Whole(1, RECORDERS_MAX as i64),
            Absent::Whole(1),
            "Number of recorders, each a process with a spool of its own. Client 1 sends to recorder 1, client 2 to recorder 2, and so on in turn. All recorders write into the same tables.",
        )
        .only("`path = \"http\"`")
        .factor(|settings| Some(recorder(settings)?.recorders().into())),
        Setting::new(
            "through",
            Kind::OneOf(&["spool", "stream"]),
            Absent::Text("spool"),
            "What acknowledged records wait in: the spool of the recorder that took them in, or a stream of a private NATS server, which all recorders share in parts. To compare numbers of recorders on a stream, write `stream` for one recorder, too.",
        )
        .only("`path = \"http\"`")
        .factor(|settings| Some(recorder(settings)?.through.name().into())),
        Setting::new(
            "parts",
            Kind::Whole(1, PARTS_MAX),
            Absent::Means("as in the recorder's own `intake.nats.partitions`"),
            "Number of parts of the stream. Each part has one writer with its own connection to the database, in one of the recorders.",
        )
        .only("`through = \"stream\"`")
        .factor(|settings| recorder(settings)?.parts.map(Into::into)),
        Setting::new(
            "hosts",
            Kind::OneOf(&["one", "own"]),
            Absent::Text("one"),
            "Hosts of the recorders: `one` is that of the database. With `own`, each recorder, the clients, and the database with the NATS server have a host of their own, which is a network namespace of this machine, and a switch joins the hosts. The links are those of `[link]`. It needs root.",
        )
        .only("`path = \"http\"`")
        .factor(|settings| Some(if recorder(settings)?.has_own_hosts { "own" } else { "one" }.into())),
        Setting::new(
            "writers",
            Kind::Whole(1, 16),
            Absent::Whole(1),
            "Number of writers of each recorder, each with its own connection to the database.",
        )
        .only("`through = \"spool\"`")
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
    // One recorder, the spool and one host are the same case whether they are written or not.
    let count = section.find("count", errors).filter(|count| *count != 1);
    let is_shared = section.find("through", errors) == Some("stream");
    let has_own_hosts = section.find("hosts", errors) == Some("own");
    // Leaving it out and writing `none` are the same case.
    let tls: Option<String> = section.find("tls", errors).filter(|name| name != "none");
    Some(RecorderSettings {
        path: path.and_then(RecorderPath::named).unwrap_or_default(),
        count,
        through: if is_shared { RecorderBuffer::Stream } else { RecorderBuffer::Spool },
        parts: section.find("parts", errors),
        has_own_hosts,
        writers: section.read("writers", errors),
        batch: section.read("batch", errors),
        tls,
    })
}
