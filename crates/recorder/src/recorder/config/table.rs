//! The table of the recorder's file: all its settings.
//!
//! Main: [`RECORDER_FILE`]. Invariant: all settings are declared here and in the tables that this one names, and nowhere else.

use super::access::ACCESS;
use super::blocks::INBOX;
use super::database;
use super::intake::INTAKE;
use super::limits::LIMITS;
use super::log::LOG;
use super::metrics::METRICS;
use super::nats::FORWARD;
use super::processing::{OFFICE, PROCESSING};
use crate::layout::recorded::Shape;
use crate::written::{Absent, Kind, Part, Setting, Span};

const USUAL: Absent = Absent::Means("see below");
const OFF: Absent = Absent::Means("off");
/// The upper bound of most durations: a day, in seconds.
const DAY_S: f64 = 86_400.0;

const fn table(key: &'static str, part: &'static Part, absent: Absent, help: &'static str) -> Setting {
    Setting::new(key, Kind::Part(part), absent, help)
}

/// The recorder's file.
pub static RECORDER_FILE: Part = Part {
    name: "",
    help: "What `loadline record` takes in, how it keeps it, and where it writes it.",
    settings: &[
        table("database", &database::DATABASE, USUAL, "Where measurement data go."),
        table("layout", &LAYOUT, USUAL, "How measurements become tables."),
        table("spool", &SPOOL, USUAL, "The durable queue in front of the database."),
        table("quarantine", &QUARANTINE, USUAL, "What the database refuses."),
        table(
            "intake",
            &INTAKE,
            Absent::Means("there must be one, or `processing`, `office` or `forward`"),
            "What is taken in.",
        ),
        Setting::new(
            "access",
            Kind::Parts(&ACCESS),
            Absent::Means("none"),
            "Senders with a token each. A token of an intake's `tokens` stays, and may do all.",
        ),
        table(
            "limits",
            &LIMITS,
            USUAL,
            "What one line may have; a line beyond is refused with its place and the setting.",
        ),
        table("schema", &SCHEMA, USUAL, "How tables follow what is sent."),
        table("writer", &WRITER, USUAL, "How records are written into the database."),
        table("ready", &READY, USUAL, "When the recorder says that it is ready."),
        table("admission", &ADMISSION, USUAL, "How many records are written at a time."),
        table("inbox", &INBOX, USUAL, "The folder between the intake of blocks and their processing."),
        table("processing", &PROCESSING, OFF, "What becomes of blocks."),
        table("forward", &FORWARD, OFF, "Blocks are brought to another recorder."),
        table("office", &OFFICE, OFF, "Who may look at what was stored of blocks."),
        table("log", &LOG, USUAL, "What the log says."),
        table(
            "metrics",
            &METRICS,
            Absent::Means("intakes that speak HTTP answer `/metrics`"),
            "An address of its own for `/metrics`.",
        ),
    ],
};

/// `[layout]`
pub static LAYOUT: Part = Part {
    name: "layout",
    help: "How measurements become tables.",
    settings: &[
        Setting::new("name", Kind::OneOf(Shape::NAMES), Absent::Text("star"), "The layout."),
        Setting::new(
            "hot",
            Kind::Texts,
            Absent::Means("none: it must be given"),
            "The fields that are kept in the main table.",
        )
        .only("`name = \"star-hot\"`"),
    ],
};

/// `[spool]`
pub static SPOOL: Part = Part {
    name: "spool",
    help: "The durable queue in front of the database. From 50 % of its bound on the sources that send most get 429, so that all together send less; \
           from 90 % on all get 503 but those that send less than an equal share beside one that sends more, until 75 % are reached again.",
    settings: &[
        Setting::new("path", Kind::Text, Absent::Text("spool"), "Its directory."),
        Setting::new("bound", Kind::Bytes(1 << 20, 1 << 50), Absent::Text("4GiB"), "The most that waits in it."),
        Setting::new(
            "remember",
            Kind::Duration(Span::Within(0.0, 366.0 * DAY_S)),
            Absent::Text("24h"),
            "How long the ids of messages are remembered, to recognise those that are sent again.",
        ),
        Setting::new(
            "compress",
            Kind::Truth,
            Absent::Truth(false),
            "Whether what waits is compressed (zstd): of requests of many lines several times as many wait within the bound, for more time of the processor.",
        ),
    ],
};

/// `[quarantine]`
pub static QUARANTINE: Part = Part {
    name: "quarantine",
    help: "Records that the database refuses, with the reason; senders share it fairly.",
    settings: &[Setting::new("bound", Kind::Bytes(1 << 20, 1 << 50), Absent::Text("1GiB"), "The most that it holds.")],
};

/// `[schema]`
pub static SCHEMA: Part = Part {
    name: "schema",
    help: "How tables follow what is sent.",
    settings: &[
        Setting::new(
            "new_columns",
            Kind::OneOf(&["add", "json", "refuse"]),
            Absent::Text("add"),
            "What happens to a field or tag that a measurement did not have before: the table gets a column, it goes to the table's column of JSON, or \
             the record is refused.",
        ),
        Setting::new(
            "columns_max",
            Kind::Whole(8, 900),
            Absent::Whole(500),
            "The most columns of a table that is extended.",
        ),
        Setting::new(
            "measurements_max",
            Kind::Whole(1, 10_000),
            Absent::Whole(500),
            "The most measurements that tables are made for.",
        ),
        Setting::new(
            "identities_max",
            Kind::Whole(1, 10_000_000),
            Absent::Whole(100_000),
            "The most identities kept in memory.",
        ),
        Setting::new(
            "ends_every",
            Kind::Duration(Span::Within(0.0, 3600.0)),
            Absent::Text("1s"),
            "How often the ends of measurements are brought up to date.",
        ),
    ],
};

/// `[writer]`
pub static WRITER: Part = Part {
    name: "writer",
    help: "How records are written into the database.",
    settings: &[
        Setting::new(
            "count",
            Kind::Whole(1, 16),
            Absent::Whole(1),
            "Writers, each with a connection; records of a source always go through the same one. SQLite takes one.",
        ),
        Setting::new("batch", Kind::Whole(1, 100_000), Absent::Whole(5_000), "The most rows of a transaction."),
        Setting::new(
            "within",
            Kind::Duration(Span::Within(0.0, 60.0)),
            Absent::Text("5ms"),
            "How long a batch that is not full is waited for.",
        ),
        Setting::new(
            "drain",
            Kind::Duration(Span::Within(0.0, DAY_S)),
            Absent::Text("10s"),
            "How long the recorder goes on writing when it is asked to stop.",
        ),
        Setting::new(
            "keep",
            Kind::Duration(Span::Within(0.1, DAY_S)),
            Absent::Means("none: a database that may forget what it commits is refused"),
            "How long the spool keeps, at least, what is committed in a database that may forget it for a while.",
        )
        .only("servers"),
        Setting::new(
            "statement_timeout",
            Kind::Duration(Span::Within(1.0, DAY_S)),
            Absent::Text("30s"),
            "How long a server may take to answer a statement before its connection is given up and another one is made; longer than any commit \
             takes. Making tables may take 20 times as long.",
        )
        .only("servers"),
    ],
};

/// `[ready]`
pub static READY: Part = Part {
    name: "ready",
    help: "When the recorder says that it is ready.",
    settings: &[Setting::new(
        "within",
        Kind::Duration(Span::Within(1.0, DAY_S)),
        Absent::Text("60s"),
        "`/ready` says 503 when the oldest record waits longer.",
    )],
};

/// `[admission]`
pub static ADMISSION: Part = Part {
    name: "admission",
    help: "How many records are written at a time: a bound on commit times is kept.",
    settings: &[
        Setting::new(
            "model",
            Kind::Text,
            Absent::Means("none: the window of rows follows the commit times alone"),
            "The directory of a run (`load.arrivals = \"poisson\"`, and `load.rate` the only factor or a `[goal]`): what it says of the quantile is the \
             rate.",
        ),
        Setting::new(
            "quantile",
            Kind::Number(0.5, 0.9999),
            Absent::Number(0.99),
            "The quantile of commit times that is bounded.",
        ),
        Setting::new(
            "below",
            Kind::Duration(Span::Within(0.0001, 3600.0)),
            Absent::Text("100ms"),
            "Its bound, which the window of rows follows.",
        ),
    ],
};
