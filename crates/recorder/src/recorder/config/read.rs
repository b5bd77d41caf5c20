//! Reads a configuration file. Main function: [`read()`].

use super::access::read_access;
use super::blocks::read_inbox;
use super::database::read_database;
use super::intake::read_intake;
use super::limits::read_limits;
use super::log::read_log;
use super::metrics::read_metrics;
use super::nats::read_forward;
use super::processing::{read_office, read_processing};
use super::query::read_query;
use super::retention::read_retention;
use super::{AdmissionConfig, Config, LayoutConfig, NewColumns, SchemaConfig, SpoolConfig, WriterConfig, table};
use crate::fault::fault;
use crate::written::StudyErrors;
use crate::written::place::{Errors, Source};
use crate::written::section::Section;
use crate::written::tree::Table;

/// Reads a configuration; `file` is its name in messages.
///
/// # Errors
/// All errors of the file, one line each: place, value, remedy.
pub fn read(text: &str, file: &str) -> Result<Config, StudyErrors> {
    let mut errors = Errors::default();
    let root = Table::parse(text, &mut errors);
    if !errors.is_empty() {
        // What is missing in a half-read file is no error of its own.
        errors.into_result(&Source { file: file.to_owned(), arguments: Vec::new() })?;
        errors = Errors::default();
    }
    Section::top(&root, &table::RECORDER_FILE, &mut errors);
    let intake = read_intake(&root, &mut errors);
    let mut no_errors = Errors::default();
    // Accepting blocks needs no database.
    let has_lines = intake.http.is_some() || intake.tcp.is_some() || intake.nats.is_some();
    let has_blocks =
        intake.ftp.is_some() || intake.put.is_some() || intake.store.is_some() || root.get("forward").is_some();
    let reads_blocks = root.get("processing").is_some() || root.get("office").is_some() || root.get("query").is_some();
    let needs_database = has_lines || root.get("database").is_some() || reads_blocks || !has_blocks;
    let database = read_database(&root, if needs_database { &mut errors } else { &mut no_errors });
    let layout = read_layout(&root, &mut errors);
    let processing = read_processing(&root, &layout.name, &mut errors);
    let inbox = read_inbox(&root, &mut errors);
    let config = Config {
        spool: read_spool(&root, &mut errors),
        quarantine_bound_bytes: Section::open(&root, &table::QUARANTINE, &mut errors).read("bound", &mut errors),
        office: read_office(&root, &layout.name, processing.as_ref(), &mut errors),
        processing,
        query: read_query(&root, &layout.name, &mut errors),
        retention: read_retention(&root, has_lines, &mut errors),
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
        ready_within: Section::open(&root, &table::READY, &mut errors).read("within", &mut errors),
        admission: read_admission(&root, &mut errors),
        database,
    };
    check_shared(&root, &config, &mut errors);
    errors.into_result(&Source { file: file.to_owned(), arguments: Vec::new() })?;
    Ok(config)
}

/// Refuses what does not go together with a shared stream.
fn check_shared(root: &Table, config: &Config, errors: &mut Errors) {
    let Some(shared) = config.intake.nats.as_ref().and_then(|nats| nats.shared) else { return };
    let Some(place) = root.get("intake").map(|entry| entry.place) else { return };
    if config.database.name == "sqlite" {
        let remedy = "name a server in [database], as in name = \"postgres\", or leave out shared";
        errors.push(place, fault!("intake.nats.shared is true and SQLite is written by one process only"; "{remedy}"));
    }
    let others = [("http", config.intake.http.is_some()), ("tcp", config.intake.tcp.is_some())];
    let Some((other, _)) = others.into_iter().find(|(_, is_there)| *is_there && !shared.publishes) else { return };
    if config.admission.model.is_some() {
        let remedy = "write intake.nats.publish = true, which brings them into the stream";
        let says = format!(
            "intake.nats.shared and admission.model divide the load line by the parts of the stream, in which records of intake.{other} have no share"
        );
        errors.push(place, fault!("{says}"; "{remedy}"));
    }
}

fn read_layout(root: &Table, errors: &mut Errors) -> LayoutConfig {
    let section = Section::open(root, &table::LAYOUT, errors);
    let name: String = section.read("name", errors);
    let hot = section.texts("hot", errors);
    if name == "star-hot" && hot.is_empty() && section.get("hot").is_none() {
        let remedy = "list the fields of the main table, as in hot = [\"rtt_ms\"], or take \"star\"";
        errors.push(section.place, fault!("layout.hot is missing for \"star-hot\""; "{remedy}"));
    }
    if let Some(entry) = section.get("hot").filter(|_| name != "star-hot") {
        errors
            .push(entry.place, fault!("layout.hot is for \"star-hot\" and layout.name is \"{name}\""; "leave it out"));
    }
    LayoutConfig { name, hot, time_index: section.read("time_index", errors) }
}

fn read_spool(root: &Table, errors: &mut Errors) -> SpoolConfig {
    let section = Section::open(root, &table::SPOOL, errors);
    SpoolConfig {
        path: section.read("path", errors),
        bound_bytes: section.read("bound", errors),
        remember: section.read("remember", errors),
        compress: section.read("compress", errors),
    }
}

fn read_schema(root: &Table, errors: &mut Errors) -> SchemaConfig {
    let section = Section::open(root, &table::SCHEMA, errors);
    let new_columns = match section.find("new_columns", errors) {
        Some("json") => NewColumns::Json,
        Some("refuse") => NewColumns::Refuse,
        _ => NewColumns::Add,
    };
    SchemaConfig {
        new_columns,
        columns_max: section.read("columns_max", errors),
        measurements_max: section.read("measurements_max", errors),
        identities_max: section.read("identities_max", errors),
        ends_every: section.read("ends_every", errors),
    }
}

fn read_writer(root: &Table, is_sqlite: bool, errors: &mut Errors) -> WriterConfig {
    let section = Section::open(root, &table::WRITER, errors);
    let count = section.read("count", errors);
    if is_sqlite && count > 1 {
        let place = section.get("count").map_or(section.place, |entry| entry.place);
        errors.push(
            place,
            fault!("writer.count is {count} and SQLite takes one writer at a time"; "write 1 or leave it out"),
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
        statement_timeout: section.read("statement_timeout", errors),
        keep: section.read("keep", errors),
        count,
        batch: section.read("batch", errors),
        within: section.read("within", errors),
        drain: section.read("drain", errors),
    }
}

fn read_admission(root: &Table, errors: &mut Errors) -> AdmissionConfig {
    let section = Section::open(root, &table::ADMISSION, errors);
    AdmissionConfig {
        model: section.read("model", errors),
        quantile: section.read("quantile", errors),
        below: section.read("below", errors),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The example of the contract.
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
