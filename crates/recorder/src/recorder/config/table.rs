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
use super::query::QUERY;
use super::retention::RETENTION;
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
    help: "What `loadline record` takes in, how it keeps the data, and where it writes them.",
    settings: &[
        table("database", &database::DATABASE, USUAL, "Where measurement data go."),
        table("layout", &LAYOUT, USUAL, "How measurements become tables."),
        table("spool", &SPOOL, USUAL, "The durable queue in front of the database."),
        table("quarantine", &QUARANTINE, USUAL, "Records that the database refuses."),
        table(
            "intake",
            &INTAKE,
            Absent::Means("none: it must be given, unless there is `processing`, `office`, `forward` or `query`"),
            "What is taken in.",
        ),
        Setting::new(
            "access",
            Kind::Parts(&ACCESS),
            Absent::Means("none"),
            "Senders, each with a token. Tokens in an intake's `tokens` remain valid and may do everything.",
        ),
        table(
            "limits",
            &LIMITS,
            USUAL,
            "Limits of one line. A line beyond a limit is refused with its place and the setting.",
        ),
        table("schema", &SCHEMA, USUAL, "How tables change with the data that are sent."),
        table("writer", &WRITER, USUAL, "How records are written into the database."),
        table("ready", &READY, USUAL, "When the recorder says that it is ready."),
        table("admission", &ADMISSION, USUAL, "How many records are written at a time."),
        table("inbox", &INBOX, USUAL, "The folder between the intake of blocks and their processing."),
        table("processing", &PROCESSING, OFF, "How blocks are processed."),
        table("forward", &FORWARD, OFF, "Blocks are forwarded to another recorder."),
        table("office", &OFFICE, OFF, "Who may read what was stored from blocks."),
        table("log", &LOG, USUAL, "What the log says."),
        table(
            "metrics",
            &METRICS,
            Absent::Means("intakes that speak HTTP answer `/metrics`"),
            "A separate address for `/metrics`.",
        ),
        table("query", &QUERY, OFF, "Questions about what is stored, as Grafana asks them."),
        table(
            "retention",
            &RETENTION,
            Absent::Means("readings are kept for ever"),
            "How long readings are kept; older ones are deleted.",
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
            "The fields to keep in the main table.",
        )
        .only("`name = \"star-hot\"`"),
        Setting::new(
            "time_index",
            Kind::Truth,
            Absent::Truth(true),
            "Whether tables that are made new get an index on source and time (`wide`: on the time). Tables that exist keep the indexes that they have.",
        ),
    ],
};

/// `[spool]`
pub static SPOOL: Part = Part {
    name: "spool",
    help: "The durable queue in front of the database. From 50 % of its bound on, the sources that send most get 429, so that all together send less. From 90 % on, all sources get 503, except those that send less than an equal share while another one sends more, until 75 % are reached again.",
    settings: &[
        Setting::new("path", Kind::Text, Absent::Text("spool"), "Its directory."),
        Setting::new("bound", Kind::Bytes(1 << 20, 1 << 50), Absent::Text("4GiB"), "Maximum size of what waits in it."),
        Setting::new(
            "remember",
            Kind::Duration(Span::Within(0.0, 366.0 * DAY_S)),
            Absent::Text("24h"),
            "How long ids of messages are remembered, so that repeated messages are recognised.",
        ),
        Setting::new(
            "compress",
            Kind::Truth,
            Absent::Truth(false),
            "Whether waiting requests are compressed (zstd). Several times as many requests of many lines then fit within the bound, for more CPU time.",
        ),
    ],
};

/// `[quarantine]`
pub static QUARANTINE: Part = Part {
    name: "quarantine",
    help: "Records that the database refuses, with the reason; senders share it fairly.",
    settings: &[Setting::new(
        "bound",
        Kind::Bytes(1 << 20, 1 << 50),
        Absent::Text("1GiB"),
        "Maximum size of its content.",
    )],
};

/// `[schema]`
pub static SCHEMA: Part = Part {
    name: "schema",
    help: "How tables change with the data that are sent.",
    settings: &[
        Setting::new(
            "new_columns",
            Kind::OneOf(&["add", "json", "refuse"]),
            Absent::Text("add"),
            "What happens to a field or tag that a measurement did not have before: the table gets a column (`add`), the value is stored in the table's JSON column (`json`), or the record is refused (`refuse`).",
        ),
        Setting::new(
            "columns_max",
            Kind::Whole(8, 900),
            Absent::Whole(500),
            "Maximum number of columns of a table that is extended.",
        ),
        Setting::new(
            "measurements_max",
            Kind::Whole(1, 10_000),
            Absent::Whole(500),
            "Maximum number of measurements for which tables are made.",
        ),
        Setting::new(
            "identities_max",
            Kind::Whole(1, 10_000_000),
            Absent::Whole(100_000),
            "Maximum number of identities kept in memory.",
        ),
        Setting::new(
            "ends_every",
            Kind::Duration(Span::Within(0.0, 3600.0)),
            Absent::Text("1s"),
            "How often the stored ends of measurements are updated.",
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
            "Number of writers, each with its own connection. A source always has the same writer. SQLite permits one.",
        ),
        Setting::new("batch", Kind::Whole(1, 100_000), Absent::Whole(5_000), "Maximum number of rows per transaction."),
        Setting::new(
            "within",
            Kind::Duration(Span::Within(0.0, 60.0)),
            Absent::Text("5ms"),
            "Maximum wait until a batch that is not full is written.",
        ),
        Setting::new(
            "drain",
            Kind::Duration(Span::Within(0.0, DAY_S)),
            Absent::Text("10s"),
            "Maximum time for which the recorder continues to write when it is asked to stop.",
        ),
        Setting::new(
            "keep",
            Kind::Duration(Span::Within(0.1, DAY_S)),
            Absent::Means("none: a database that may forget commits is refused"),
            "Minimum time for which the spool keeps records that are committed in a database that may still forget them.",
        )
        .only("servers"),
        Setting::new(
            "statement_timeout",
            Kind::Duration(Span::Within(1.0, DAY_S)),
            Absent::Text("30s"),
            "Maximum time of a server to answer a statement. After it, the connection is closed and a new one is made; it must be longer than any commit takes. Creating tables may take 20 times as long.",
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
        "Maximum wait of the oldest record. If it waits longer, `/ready` answers 503.",
    )],
};

/// `[admission]`
pub static ADMISSION: Part = Part {
    name: "admission",
    help: "How many records are written at a time, so that commit times stay below a bound.",
    settings: &[
        Setting::new(
            "model",
            Kind::Text,
            Absent::Means("none: the window of rows follows commit times only"),
            "The directory of a run with `load.arrivals = \"poisson\"` whose only factor is `load.rate`, or that has a `[goal]`. What the run says about the quantile determines the rate.",
        ),
        Setting::new(
            "quantile",
            Kind::Number(0.5, 0.9999),
            Absent::Number(0.99),
            "The quantile of commit times to keep below the bound.",
        ),
        Setting::new(
            "below",
            Kind::Duration(Span::Within(0.0001, 3600.0)),
            Absent::Text("100ms"),
            "Its bound, which determines the window of rows.",
        ),
    ],
};
