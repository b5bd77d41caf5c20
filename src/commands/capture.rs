//! `loadline capture`: makes a trace from logs, which the workload `replay` sends.
//!
//! Main function: [`run`]. Invariants: an existing file is not overwritten, and a file that could not be written completely is removed.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::json;

use super::output::{print, print_json};
use super::{Failure, Refusal, Status};
use crate::cli::CaptureArguments;
use crate::draft::seen::{LogError, LogForm, TOLD_BY_BYTES, read_log};
use crate::draft::sql::Grammar;
use crate::draft::traced::{Traced, TracedError, Tracer};
use crate::report::terminal::listed;
use crate::runner::execute::now_utc;
use crate::units::{show_number, show_seconds};

/// Reads the logs and writes the trace.
///
/// # Errors
/// [`Failure::Usage`] for a log that cannot be read or yields no trace, or an output file that already exists.
pub fn run(arguments: &CaptureArguments, is_json: bool) -> Result<Status, Failure> {
    let out = arguments.out.display().to_string();
    if arguments.out.exists() {
        let remedy = "name another one with --out, or remove it";
        return Err(Failure::refused(Refusal::at(out, "the file is there already", remedy)));
    }
    let mut tracer: Option<(Tracer, Grammar)> = None;
    let database = arguments.database.as_deref().unwrap_or_default();
    for path in &arguments.logs {
        read(path, database, &mut tracer)?;
    }
    let Some((tracer, grammar)) = tracer else { return Err(Failure::refused("no log is named")) };
    let traced = tracer.finish().map_err(|why| not_traced(&arguments.logs[0], why))?;
    let from: Vec<String> = arguments.logs.iter().map(|path| path.display().to_string()).collect();
    write(&arguments.out, &traced, &from)?;
    tell(&out, &traced, grammar == Grammar::POSTGRES, is_json)
}

/// Adds the statements of a log to the trace.
fn read(path: &Path, database: &str, tracer: &mut Option<(Tracer, Grammar)>) -> Result<(), Failure> {
    let refuse = |what: String, remedy: &str| Failure::refused(Refusal::at(path.display().to_string(), what, remedy));
    let unreadable = |error: std::io::Error| refuse(format!("it cannot be read: {error}"), "name a log of statements");
    let mut file = BufReader::with_capacity(TOLD_BY_BYTES, File::open(path).map_err(unreadable)?);
    let form = LogForm::of(&String::from_utf8_lossy(file.fill_buf().map_err(unreadable)?));
    let grammar = match form {
        LogForm::PostgresCsv | LogForm::PostgresJson | LogForm::PostgresText => Grammar::POSTGRES,
        LogForm::MySqlSlow | LogForm::MySqlGeneral => Grammar::MYSQL,
        LogForm::Script => {
            let what =
                "it is read as a file of SQL, which says neither when nor in which session a statement ran".to_owned();
            return Err(refuse(what, "name a log of PostgreSQL, MySQL or MariaDB; loadline draft takes files of SQL"));
        }
    };
    if tracer.as_ref().is_some_and(|(_, known)| *known != grammar) {
        let what = format!("it is a {}, and the log before it is of another database system", form.name());
        return Err(refuse(what, "capture each by itself"));
    }
    let (tracer, _) = tracer.get_or_insert_with(|| (Tracer::new(grammar), grammar));
    match read_log(&mut file, database, tracer) {
        Ok(_) => Ok(()),
        Err(LogError::Io(error)) => Err(unreadable(error)),
        Err(LogError::Empty(form)) => {
            Err(refuse(format!("it is read as a {}, and no statement is in it", form.name()), LOGGING))
        }
    }
}

const LOGGING: &str = "have the server log its statements: log_min_duration_statement = 0 in PostgreSQL, long_query_time = 0 in MySQL and MariaDB";

fn not_traced(log: &Path, why: TracedError) -> Failure {
    let (what, remedy) = match why {
        TracedError::TooMuch => (
            "more ran than a trace can have: 20,000,000 statements, 1,000,000 sessions, 2 GiB of values".to_owned(),
            "capture a shorter time",
        ),
        TracedError::Nothing => ("nothing is in it that could be sent again".to_owned(), LOGGING),
        TracedError::NoSessions => (
            "it does not say in which session a statement ran".to_owned(),
            "write log_line_prefix = '%m [%p] ' into postgresql.conf, or log as CSV or JSON",
        ),
        TracedError::Databases(names) => {
            (format!("it is of several databases: {}", names.join(", ")), "choose one with --database NAME")
        }
    };
    Failure::refused(Refusal::at(log.display().to_string(), what, remedy))
}

/// Writes the trace, readable by its owner only because it contains values.
fn write(out: &Path, traced: &Traced, from: &[String]) -> Result<(), Failure> {
    let refused = |error: std::io::Error| {
        let what = format!("it cannot be written: {error}");
        Failure::refused(Refusal::at(out.display().to_string(), what, "name another file with --out"))
    };
    let file = File::options().write(true).create_new(true).mode(0o600).open(out).map_err(refused)?;
    let mut buffered = BufWriter::with_capacity(1 << 20, file);
    let written = traced.write(from, &now_utc(), &mut buffered).and_then(|()| buffered.get_ref().sync_all());
    written.map_err(|error| {
        // A partly written trace is useless and would block the next attempt.
        let _ = std::fs::remove_file(out);
        refused(error)
    })
}

fn tell(out: &str, traced: &Traced, is_postgres: bool, is_json: bool) -> Result<Status, Failure> {
    let (events, seconds) = (traced.events(), traced.seconds());
    let rate_per_s = (seconds > 0.0).then(|| events as f64 / seconds);
    if is_json {
        let left_out: Vec<_> = traced.left_out().map(|(what, count)| json!({ "what": what, "count": count })).collect();
        print_json(&json!({
            "trace": out, "statements": events, "different_statements": traced.statements(), "changing_statements": traced.writes(),
            "sessions": traced.sessions(), "sessions_at_once": traced.at_once, "seconds": seconds, "rate_per_s": rate_per_s,
            "time_unit_s": traced.unit_us as f64 / 1e6, "left_out": left_out
        }))?;
        return Ok(Status::Valid);
    }
    let number = |count: usize| show_number(count as f64);
    let rate = rate_per_s.map_or(String::new(), |rate| format!(", {} a second", show_number(rate)));
    let mut text = listed(&format!(
        "{} statements over {}{rate}: {} different ones, in {} sessions, {} of them at once.",
        number(events),
        show_seconds(seconds),
        number(traced.statements()),
        number(traced.sessions()),
        number(traced.at_once)
    ));
    if traced.writes() > 0 {
        text += &listed(&format!(
            "{} of them change something: they are sent to a database that is not loadline's own where workload.writes = true alone.",
            number(traced.writes())
        ));
    }
    for (what, count) in traced.left_out() {
        text += &listed(&format!("Left out: {} {what}.", show_number(count as f64)));
    }
    if traced.unit_us > 1 {
        text += &listed(&format!(
            "The log's times are whole {}: statements of the same one are spread evenly over it.",
            if traced.unit_us == 1_000 { "milliseconds" } else { "seconds" }
        ));
    }
    let name = if is_postgres { "postgres" } else { "mysql" };
    text += &format!(
        "\n{out} is written, with the values of all statements. Send it with a study that says:\n\n  [database]\n  name = \"{name}\"\n  \
         url  = \"{name}://me@localhost/shop\"\n\n  [workload]\n  name  = \"replay\"\n  trace = \"{out}\"\n\n  [factors]\n  \
         \"workload.speed\" = [0.5, 1, 2, 4]\n\nor, for the highest speed at which 99 % are answered within 20 ms, instead of [factors]:\n\n  \
         [goal]\n  quantile = 0.99\n  below    = \"20ms\"\n"
    );
    print(&text)?;
    Ok(Status::Valid)
}
