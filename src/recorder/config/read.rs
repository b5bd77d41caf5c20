//! Reads a configuration file. Main function: [`read()`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::access::read_access;
use super::blocks::read_inbox;
use super::intake::read_intake;
use super::limits::read_limits;
use super::log::read_log;
use super::metrics::read_metrics;
use super::nats::read_forward;
use super::processing::{read_office, read_processing};
use super::{AdmissionConfig, Config, LAYOUTS, LayoutConfig, NewColumns, SchemaConfig, SpoolConfig, WriterConfig};
use crate::database;
use crate::study::StudyErrors;
use crate::study::place::{Errors, Source};
use crate::study::section::Section;
use crate::study::tree::{Content, Node, Table};
use crate::trial::DatabaseSettings;
use crate::units::parse_bytes;

const SECTIONS: &[&str] = &[
    "database",
    "layout",
    "spool",
    "quarantine",
    "intake",
    "access",
    "limits",
    "schema",
    "writer",
    "ready",
    "admission",
    "inbox",
    "processing",
    "forward",
    "office",
    "log",
    "metrics",
];

/// Reads a configuration; `file` is its name in messages.
///
/// # Errors
/// Everything that is wrong with it, one line each: place, value, remedy.
pub fn read(text: &str, file: &str) -> Result<Config, StudyErrors> {
    let mut errors = Errors::default();
    let root = Table::parse(text, &mut errors);
    if !errors.is_empty() {
        // What a half-read file lacks is no error of its own.
        errors.into_result(&Source { file: file.to_owned(), arguments: Vec::new() })?;
        errors = Errors::default();
    }
    Section::top(&root, SECTIONS, &mut errors);
    let intake = read_intake(&root, &mut errors);
    let mut no_errors = Errors::default();
    // Blocks need no database to be taken in.
    let has_lines = intake.http.is_some() || intake.tcp.is_some() || intake.nats.is_some();
    let has_blocks =
        intake.ftp.is_some() || intake.put.is_some() || intake.store.is_some() || root.get("forward").is_some();
    let reads_blocks = root.get("processing").is_some() || root.get("office").is_some();
    let needs_database = has_lines || root.get("database").is_some() || reads_blocks || !has_blocks;
    let database = read_database(&root, if needs_database { &mut errors } else { &mut no_errors });
    let layout = read_layout(&root, &mut errors);
    let processing = read_processing(&root, &layout.name, &mut errors);
    let inbox = read_inbox(&root, &mut errors);
    let config = Config {
        spool: read_spool(&root, &mut errors),
        quarantine_bound_bytes: read_quarantine(&root, &mut errors),
        office: read_office(&root, &layout.name, processing.as_ref(), &mut errors),
        processing,
        layout,
        metrics: read_metrics(&root, &mut errors),
        forward: read_forward(&root, intake.store.as_ref(), inbox.bounds.block, &mut errors),
        access: read_access(&root, &intake, &mut errors),
        limits: read_limits(&root, &mut errors),
        log: read_log(&root, &mut errors),
        intake,
        inbox,
        schema: read_schema(&root, &mut errors),
        writer: read_writer(&root, database.name == "sqlite", &mut errors),
        ready_within: read_ready(&root, &mut errors),
        admission: read_admission(&root, &mut errors),
        database,
    };
    errors.into_result(&Source { file: file.to_owned(), arguments: Vec::new() })?;
    Ok(config)
}

const DATABASE_KEYS: &[&str] = &["name", "engine", "url", "path", "binary", "base", "socket", "cpus", "config"];

fn read_database(root: &Table, errors: &mut Errors) -> DatabaseSettings {
    let section = Section::open(root, "database", DATABASE_KEYS, errors);
    let names: Vec<_> = database::REGISTRY.iter().map(|entry| entry.name).filter(|name| *name != "simulated").collect();
    let name = section.one_of("name", &names, errors).unwrap_or("sqlite");
    let text = |key: &str, errors: &mut Errors| section.text(key, errors).map(str::to_owned);
    let settings = DatabaseSettings {
        name: name.to_owned(),
        engine: text("engine", errors),
        url: text("url", errors),
        path: text("path", errors),
        binary: text("binary", errors),
        base: text("base", errors),
        socket: section.one_of("socket", &["unix", "tcp"], errors).map(str::to_owned),
        encryption: None,
        cpus: text("cpus", errors),
        config: read_server_config(&section, errors),
    };
    if let Some(entry) = database::find(name) {
        check_database(entry, &settings, &section, errors);
    }
    settings
}

fn read_server_config(section: &Section<'_>, errors: &mut Errors) -> BTreeMap<String, String> {
    let mut config = BTreeMap::new();
    let Some(entry) = section.get("config") else { return config };
    let Content::Table(table) = &entry.node.content else {
        errors.push(entry.place, format!("database.config is {}; it must be a table {{ name = value }}", entry.node));
        return config;
    };
    for entry in &table.entries {
        let value = match &entry.node.content {
            Content::Text(text) => text.clone(),
            Content::Integer(number) => number.to_string(),
            Content::Float(number) => number.to_string(),
            Content::Boolean(truth) => truth.to_string(),
            _ => {
                let must = "it must be text, a number, or true or false";
                errors.push(entry.node.place, format!("database.config.{} is {}; {must}", entry.key, entry.node));
                continue;
            }
        };
        config.insert(entry.key.clone(), value);
    }
    config
}

/// What does not go together.
fn check_database(entry: &database::Entry, settings: &DatabaseSettings, section: &Section<'_>, errors: &mut Errors) {
    let place = |key: &str| section.get(key).map_or(section.place, |entry| entry.place);
    let name = entry.name;
    let is_embedded = entry.read_url.is_none();
    match (&settings.path, is_embedded) {
        (None, true) => {
            errors.push(
                section.place,
                format!("database.path is missing; name the file for {name}, as in path = \"measurements.db\""),
            );
        }
        (Some(_), false) => {
            let remedy = "leave it out; database.url names a server that exists";
            errors.push(place("path"), format!("database.path is a file and {name} is a server; {remedy}"));
        }
        _ => {}
    }
    match (&settings.url, entry.read_url) {
        (Some(_), None) => {
            errors.push(
                place("url"),
                format!("database.url is for servers and {name} is none; use database.path for its file"),
            );
        }
        (Some(url), Some(read_url)) => {
            if let Err(sentence) = read_url(url) {
                errors.push(place("url"), format!("database.url: {sentence}"));
            }
        }
        (None, _) => {}
    }
    if let Some(engine) = &settings.engine {
        if entry.engines.is_empty() {
            errors.push(place("engine"), format!("{name} has no engines; leave database.engine out"));
        } else if !engine.eq_ignore_ascii_case("innodb") {
            let remedy =
                "write \"innodb\" or leave it out: a record and its ledger must be stored together or not at all";
            errors.push(place("engine"), format!("database.engine \"{engine}\" has no transactions; {remedy}"));
        }
    }
    if is_embedded
        && let Some(value) = settings.config.get("synchronous")
        && !["full", "extra", "2", "3"].contains(&value.to_ascii_lowercase().as_str())
    {
        let remedy = "write \"full\" or leave it out: what is acknowledged must be on the disk";
        errors.push(place("config"), format!("database.config.synchronous is \"{value}\"; {remedy}"));
    }
    for key in ["binary", "base", "socket", "cpus", "config"] {
        if section.get(key).is_none() {
            continue;
        }
        if settings.url.is_some() {
            let remedy = "leave one of them out";
            errors.push(
                place(key),
                format!("database.{key} is for a private server and database.url names one that exists; {remedy}"),
            );
        } else if is_embedded && key != "config" {
            errors.push(place(key), format!("database.{key} is for servers and {name} is none; leave it out"));
        }
    }
}

fn read_layout(root: &Table, errors: &mut Errors) -> LayoutConfig {
    let section = Section::open(root, "layout", &["name", "hot"], errors);
    let name = section.one_of("name", LAYOUTS, errors).unwrap_or("star").to_owned();
    let hot = read_texts(&section, "hot", errors);
    if name == "star-hot" && hot.is_empty() && section.get("hot").is_none() {
        let remedy = "list the fields of the main table, as in hot = [\"rtt_ms\"], or take \"star\"";
        errors.push(section.place, format!("layout.hot is missing for \"star-hot\"; {remedy}"));
    }
    if let Some(entry) = section.get("hot").filter(|_| name != "star-hot") {
        errors.push(entry.place, format!("layout.hot is for \"star-hot\" and layout.name is \"{name}\"; leave it out"));
    }
    LayoutConfig { name, hot }
}

fn read_spool(root: &Table, errors: &mut Errors) -> SpoolConfig {
    let section = Section::open(root, "spool", &["path", "bound", "remember"], errors);
    SpoolConfig {
        path: PathBuf::from(section.text("path", errors).unwrap_or("spool")),
        bound_bytes: read_bytes(&section, "bound", 1 << 20, 1 << 50, errors).unwrap_or(4 << 30),
        remember: read_duration(&section, "remember", 0.0, 366.0 * 86_400.0, errors)
            .unwrap_or(Duration::from_secs(86_400)),
    }
}

fn read_quarantine(root: &Table, errors: &mut Errors) -> u64 {
    let section = Section::open(root, "quarantine", &["bound"], errors);
    read_bytes(&section, "bound", 1 << 20, 1 << 50, errors).unwrap_or(1 << 30)
}

fn read_schema(root: &Table, errors: &mut Errors) -> SchemaConfig {
    let keys = ["new_columns", "columns_max", "measurements_max", "identities_max", "ends_every"];
    let section = Section::open(root, "schema", &keys, errors);
    let new_columns = match section.one_of("new_columns", &["add", "json", "refuse"], errors) {
        Some("json") => NewColumns::Json,
        Some("refuse") => NewColumns::Refuse,
        _ => NewColumns::Add,
    };
    SchemaConfig {
        new_columns,
        columns_max: section.count("columns_max", 8, 900, errors).unwrap_or(500),
        measurements_max: section.count("measurements_max", 1, 10_000, errors).unwrap_or(500),
        identities_max: section.count("identities_max", 1, 10_000_000, errors).unwrap_or(100_000),
        ends_every: read_duration(&section, "ends_every", 0.0, 3600.0, errors).unwrap_or(Duration::from_secs(1)),
    }
}

fn read_writer(root: &Table, is_sqlite: bool, errors: &mut Errors) -> WriterConfig {
    let section =
        Section::open(root, "writer", &["count", "batch", "within", "drain", "keep", "statement_timeout"], errors);
    let count = section.count("count", 1, 16, errors).unwrap_or(1);
    if is_sqlite && count > 1 {
        let place = section.get("count").map_or(section.place, |entry| entry.place);
        errors.push(
            place,
            format!("writer.count is {count} and SQLite takes one writer at a time; write 1 or leave it out"),
        );
    }
    if let Some(entry) = section.get("keep").filter(|_| is_sqlite) {
        let remedy = "leave it out; SQLite answers after its own sync, and needs no spool";
        errors.push(entry.place, format!("writer.keep is for servers that may forget what they commit: {remedy}"));
    }
    if let Some(entry) = section.get("statement_timeout").filter(|_| is_sqlite) {
        let remedy = "leave it out; SQLite is no server that could be silent";
        errors.push(entry.place, format!("writer.statement_timeout is for servers: {remedy}"));
    }
    WriterConfig {
        statement_timeout: read_duration(&section, "statement_timeout", 1.0, 86_400.0, errors)
            .unwrap_or(Duration::from_secs(30)),
        keep: read_duration(&section, "keep", 0.1, 86_400.0, errors),
        count,
        batch: section.count("batch", 1, 100_000, errors).unwrap_or(5_000),
        within: read_duration(&section, "within", 0.0, 60.0, errors).unwrap_or(Duration::from_millis(5)),
        drain: read_duration(&section, "drain", 0.0, 86_400.0, errors).unwrap_or(Duration::from_secs(10)),
    }
}

fn read_ready(root: &Table, errors: &mut Errors) -> Duration {
    let section = Section::open(root, "ready", &["within"], errors);
    read_duration(&section, "within", 1.0, 86_400.0, errors).unwrap_or(Duration::from_secs(60))
}

fn read_admission(root: &Table, errors: &mut Errors) -> AdmissionConfig {
    let section = Section::open(root, "admission", &["model", "quantile", "below"], errors);
    AdmissionConfig {
        model: section.text("model", errors).map(PathBuf::from),
        quantile: section.number("quantile", 0.5..=0.9999, errors).unwrap_or(0.99),
        below: read_duration(&section, "below", 0.0001, 3600.0, errors).unwrap_or(Duration::from_millis(100)),
    }
}

/// A size within bounds, in bytes: a number, or text with a unit.
pub(super) fn read_bytes(section: &Section<'_>, key: &str, least: u64, most: u64, errors: &mut Errors) -> Option<u64> {
    let entry = section.get(key)?;
    let read = match &entry.node.content {
        Content::Text(text) => parse_bytes(text).map_err(|sentence| format!("{}: {sentence}", section.path(key))),
        Content::Integer(number) => Ok(u64::try_from(*number).unwrap_or(0)),
        _ => Err(format!("{} is {}; it must be a size, as in \"4GiB\"", section.path(key), entry.node)),
    };
    let shown = |bytes: u64| crate::units::show_bytes(bytes as f64);
    match read {
        Ok(bytes) if (least..=most).contains(&bytes) => Some(bytes),
        Ok(_) => {
            let range = format!("from {} to {}", shown(least), shown(most));
            errors
                .push(entry.node.place, format!("{} is {}; it must be a size {range}", section.path(key), entry.node));
            None
        }
        Err(sentence) => {
            errors.push(entry.node.place, sentence);
            None
        }
    }
}

/// A duration within bounds in seconds.
pub(super) fn read_duration(
    section: &Section<'_>,
    key: &str,
    least_s: f64,
    most_s: f64,
    errors: &mut Errors,
) -> Option<Duration> {
    let seconds = section.seconds(key, errors)?;
    if (least_s..=most_s).contains(&seconds) {
        return Some(Duration::from_secs_f64(seconds));
    }
    let entry = section.get(key)?;
    let shown = crate::units::show_seconds;
    let range = format!("from {} to {}", shown(least_s), shown(most_s));
    errors.push(entry.node.place, format!("{} is {}; it must be a duration {range}", section.path(key), entry.node));
    None
}

/// A list of texts that are not empty.
pub(super) fn read_texts(section: &Section<'_>, key: &str, errors: &mut Errors) -> Vec<String> {
    let mut texts = Vec::new();
    for Node { place, content } in section.list(key, errors) {
        match content {
            Content::Text(text) if !text.is_empty() => texts.push(text.clone()),
            _ => errors.push(*place, format!("{} must be a list of texts that are not empty", section.path(key))),
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contract's own example.
    const EXAMPLE: &str = r#"
[database]
name = "sqlite"
path = "measurements.db"
[layout]
name = "star"
[spool]
path = "spool"
bound = "4GiB"
[quarantine]
bound = "2GiB"
[intake.http]
listen = "127.0.0.1:8086"
tokens = []
[intake.tcp]
listen = "127.0.0.1:8094"
[intake.nats]
url = "nats://127.0.0.1:4222"
stream = "measurements"
consumer = "loadline"
[schema]
new_columns = "add"
[admission]
model = "runs/x"
quantile = 0.99
below = "100ms"
"#;

    #[test]
    fn the_example_of_the_contract_is_read() {
        let config = read(EXAMPLE, "c.toml").unwrap();
        assert_eq!((config.spool.bound_bytes, config.quarantine_bound_bytes), (4 << 30, 2 << 30));
        assert_eq!(config.intake.http.unwrap().listen.port(), 8086);
        assert_eq!(config.intake.nats.unwrap().stream, "measurements");
        assert_eq!(config.admission.below, Duration::from_millis(100));
        assert_eq!(config.writer.count, 1);
    }

    #[test]
    fn everything_wrong_is_said_at_once_with_line_and_remedy() {
        let text = r#"
[databse]
[database]
name = "sqlit"
url = "mysql://a@h/d"
[layout]
name = "eva"
[spool]
bound = "4 gigs"
[intake.http]
listen = "0.0.0.0:8086"
[intake.tcp]
listen = "8094"
[schema]
new_columns = "ad"
[writer]
count = 0
[admission]
below = 100
"#;
        let errors = read(text, "c.toml").unwrap_err().to_string();
        let expected = [
            "c.toml:2: unknown key \"databse\"; did you mean \"database\"?",
            "c.toml:4: unknown database.name \"sqlit\"; did you mean \"sqlite\"?",
            "c.toml:7: unknown layout.name \"eva\"; did you mean \"eav\"?",
            "c.toml:9: spool.bound: \"4 gigs\" is not a size",
            "c.toml:11: intake.http.listen is \"0.0.0.0:8086\" and there is no token",
            "c.toml:13: intake.tcp.listen is \"8094\"; it must be an address and a port",
            "c.toml:15: unknown schema.new_columns \"ad\"; did you mean \"add\"?",
            "c.toml:17: writer.count is 0; it must be",
            "c.toml:19: admission.below is 100; it must be a duration",
        ];
        for line in expected {
            assert!(errors.contains(line), "{line} is missing in:\n{errors}");
        }
    }

    #[test]
    fn settings_that_do_not_go_together_are_refused() {
        let intake = "[intake.http]\nlisten = \"127.0.0.1:0\"\n";
        let cases = [
            ("", "database.path is missing"),
            ("[database]\nname = \"mariadb\"\nengine = \"aria\"", "has no transactions"),
            ("[database]\nname = \"mariadb\"\nurl = \"mysql://h\"", "database.url: "),
            ("[database]\nname = \"postgres\"\npath = \"x\"", "database.path is a file"),
            ("[database]\npath = \"x\"\n[writer]\ncount = 2", "one writer at a time"),
            ("[database]\npath = \"x\"\n[writer]\nstatement_timeout = \"30s\"", "statement_timeout is for servers"),
            ("[database]\nname = \"postgres\"\n[writer]\nstatement_timeout = \"0.5s\"", "writer.statement_timeout is"),
            ("[database]\npath = \"x\"\n[layout]\nhot = [\"a\"]", "layout.hot is for"),
        ];
        for (text, expected) in cases {
            let error = read(&format!("{text}\n{intake}"), "c.toml").unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let error = read("[database]\npath = \"x\"\n", "c.toml").unwrap_err().to_string();
        assert!(error.contains("no intake"), "{error}");
        assert!(read(&format!("[database]\npath = \"x\"\n{intake}"), "c.toml").is_ok());
    }
}
