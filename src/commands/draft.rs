//! `loadline draft`: drafts a study from an existing database.
//!
//! Main function: [`run`]. Invariants: nothing is executed that writes, each query ends within seconds (SQLite knows no such limit), and no file is overwritten.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use serde_json::json;

use super::init::write_new;
use super::output::{note, print, print_json};
use super::{Failure, Refusal, Status};
use crate::cli::DraftArguments;
use crate::data::Parameters;
use crate::database::{self, Database, DatabaseError, Endpoint, Entry, Session};
use crate::draft::catalogue::{Catalogue, MARK, Server, Writer, read_catalogue, settings_of};
use crate::draft::fit::{Fitted, Fitter, Place};
use crate::draft::private::{Described, describe};
use crate::draft::seen::{Collector, Counters, CountersError, LogError, Seen, grammar_of, read_log};
use crate::draft::sql::Known;
use crate::draft::written::{rows_text, study_text};
use crate::draft::{Drafted, Origin, Trier, draft, known, lookups};
use crate::fault::fault;
use crate::record::{Cell, Cells};
use crate::report::terminal::listed;
use crate::runner::entry::open_sql_within_limits;
use crate::runner::execute::now_utc;
use crate::runner::opening::endpoint_of;
use crate::server::interrupted;
use crate::statement::{Expect, Program, Request, SqlForm, Statement, Step};
use crate::study::{self, Names, Patience, without_password};
use crate::trial::{Asked, DatabaseSettings, Fill};
use crate::units::{parse_duration, show_number};

/// Longest time for the answer to a query, in seconds.
const ANSWER_S: u64 = 5;
/// Largest number of calls that try a statement, and their total time.
const CALLS_MOST: u64 = 300;
const TRIED_FOR: Duration = Duration::from_millis(500);
/// Sources of statements other than a file.
const COUNTERS: [&str; 2] = ["pg_stat_statements", "performance_schema"];

/// The database found at an address.
struct Found {
    entry: &'static Entry,
    settings: DatabaseSettings,
    endpoint: Option<Endpoint>,
    server: Server,
    /// The address without its password, or the path.
    address: String,
    /// Name of the database.
    name: String,
}

/// Drafts the study and writes it.
///
/// # Errors
/// [`Failure::Usage`] for an address that does not lead to a database, a log that cannot be read, or an output file that already exists.
pub fn run(arguments: &DraftArguments, is_json: bool, names: &Names) -> Result<Status, Failure> {
    let period = arguments.period.as_deref().map(parse_duration).transpose();
    let period = period.map_err(|fault| Failure::refused(fault.about("--for")))?;
    let mut found = find(&arguments.database)?;
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.toml", file_name(&found.name))));
    if out.exists() {
        let why = "the file is there already, and may have been changed by hand";
        return Err(Failure::refused(Refusal::at(
            out.display().to_string(),
            why,
            "name another one with --out, or remove it",
        )));
    }
    let database = open(&mut found)?;
    let mut session = connect(&*database, found.server).map_err(Failure::usage)?;
    let dialect = database.dialect();
    let (quote, literal) = (|name: &str| dialect.quote(name), |text: &str| dialect.literal(text));
    let writer = Writer { quote: &quote, literal: &literal };
    // The counters are read first, so that later queries of this session are not counted.
    let counted = Counters::read(found.server, &mut *session);
    let catalogue = read_catalogue(found.server, &mut *session, &writer)
        .context("looking at the tables")
        .map_err(Failure::usage)?;
    if catalogue.tables.is_empty() {
        let remedy = "name the database that has them, and a user who may read them";
        return Err(Failure::refused(Refusal::at(&found.address, "it has no tables that this user may read", remedy)));
    }
    let known = known(&catalogue);
    let seen = statements(arguments, &found, (&mut *session, counted), &known, period)?;
    if let (Some(period), true) = (period, seen.statements.is_empty()) {
        let what = format!("no statement ran within {} s", show_number(period.as_secs_f64()));
        let remedy = "count for longer, or leave --for out to take what ran before";
        return Err(Failure::refused(Refusal::at(&found.address, what, remedy)));
    }
    let (now_us, offset_s) = clock(found.server, &mut *session).map_err(Failure::usage)?;
    let place = Place { server: found.server, writer: &writer, now_us, offset_s, keeps_values: arguments.values };
    let fitter = Fitter { catalogue: &catalogue, known: &known, grammar: grammar_of(found.server), place };
    let is_guess =
        arguments.statements.is_empty() && !seen.statements.iter().any(|ran| !fitter.is_of_server(&ran.text));
    let seen = if is_guess { fallback(&catalogue, &quote, seen) } else { with_number(seen, &fitter) };
    let mut trier = OnDatabase { database: &*database, server: found.server, lost: None };
    let mut drafted = draft(&fitter, seen, &mut trier);
    if let Some(error) = trier.lost {
        return Err(Failure::usage(anyhow::Error::new(error)));
    }
    let described = arguments.private.then(|| describe(&fitter, &mut drafted));
    if drafted.statements.is_empty() {
        return Err(Failure::refused(nothing_understood(&found.address, &drafted)));
    }
    let (time, file) = (now_utc(), out.display().to_string());
    let (settings, journal) = set_to(found.server, &mut *session).map_err(Failure::usage)?;
    let origin = Origin {
        address: &found.address,
        is_file: found.server == Server::Sqlite,
        database: found.entry.name,
        journal: journal.as_deref(),
        settings: &settings,
        name: &found.name,
        file: &file,
        time: &time,
    };
    let text = study_text(&origin, &catalogue, &drafted, described.as_deref());
    if let Err(errors) = study::load_text(&file, &text, &[], None, false, names) {
        return Err(Failure::broken(anyhow::anyhow!(
            "the study that was drawn cannot be read again, which is a fault of loadline: {errors}"
        )));
    }
    write_new(&out, &text)?;
    tell(&file, (&drafted, described.as_deref()), is_guess, is_json)
}

/// Pairs of name and value.
type Values = Vec<(String, String)>;

/// Returns the settings of a server, and the journal mode of a SQLite file.
fn set_to(server: Server, session: &mut dyn Session) -> Result<(Values, Option<String>), DatabaseError> {
    let settings = settings_of(server, session)?;
    let rows = if server == Server::Sqlite { session.query("PRAGMA journal_mode")? } else { Vec::new() };
    Ok((settings, rows.into_iter().next().and_then(|row| row.into_iter().next()?)))
}

/// Returns the database that an address or a path leads to.
fn find(address: &str) -> Result<Found, Failure> {
    let refuse = |what: &str, remedy: &str| Failure::refused(Refusal::at(without_password(address), what, remedy));
    let Some((scheme, rest)) = address.split_once("://") else {
        if !Path::new(address).is_file() {
            return Err(refuse(
                "there is no such file",
                "name a file of SQLite, or an address as in postgres://me@localhost/shop",
            ));
        }
        let name = Path::new(address).file_stem().map_or("draft".into(), |stem| stem.to_string_lossy());
        let settings = DatabaseSettings {
            name: "sqlite".to_owned(),
            path: Some(address.to_owned()),
            ..DatabaseSettings::default()
        };
        let entry =
            database::find("sqlite").ok_or_else(|| refuse("SQLite is not in this build", "take another build"))?;
        let name = name.into_owned();
        return Ok(Found {
            entry,
            settings,
            endpoint: None,
            server: Server::Sqlite,
            address: address.to_owned(),
            name,
        });
    };
    let (name, server) = match scheme {
        "postgres" | "postgresql" => ("postgres", Server::Postgres),
        "mysql" => ("mysql", Server::MySql),
        "mariadb" => ("mariadb", Server::MariaDb),
        "sqlite" => return find(rest),
        _ => {
            return Err(refuse(
                &format!("{scheme}:// is no database that can be looked at"),
                "write postgres://, mysql://, mariadb://, or the path of a file of SQLite",
            ));
        }
    };
    let entry =
        database::find(name).ok_or_else(|| refuse("this database is not in this build", "take another build"))?;
    let read_url = entry.read_url.ok_or_else(|| refuse("it has no address", "name a file"))?;
    let endpoint = endpoint_of(address, read_url).map_err(|error| Failure::refused(format!("{error:#}")))?;
    let settings =
        DatabaseSettings { name: name.to_owned(), url: Some(without_password(address)), ..DatabaseSettings::default() };
    let name = endpoint.database.clone();
    Ok(Found { entry, settings, endpoint: Some(endpoint), server, address: without_password(address), name })
}

/// Opens the database; MySQL and MariaDB share a protocol, so the server's answer decides between them.
fn open(found: &mut Found) -> Result<Arc<dyn Database>, Failure> {
    let open = |found: &Found| {
        open_sql_within_limits(found.entry, &found.settings, found.endpoint.as_ref(), Some(Patience(60.0)))
            .map_err(Failure::usage)
    };
    let database = open(found)?;
    if !matches!(found.server, Server::MySql | Server::MariaDb) {
        return Ok(database);
    }
    let version =
        database.connect().and_then(|mut session| session.query("SELECT VERSION()")).map_err(Failure::usage)?;
    let is_mariadb =
        version.first().and_then(|row| row.first()?.as_deref()).is_some_and(|version| version.contains("MariaDB"));
    let (name, server) = if is_mariadb { ("mariadb", Server::MariaDb) } else { ("mysql", Server::MySql) };
    found.server = server;
    found.entry = database::find(name).unwrap_or(found.entry);
    name.clone_into(&mut found.settings.name);
    open(found)
}

/// Opens a read-only connection whose queries end within [`ANSWER_S`]; SQLite knows no such limit.
fn connect(database: &dyn Database, server: Server) -> Result<Box<dyn Session>, DatabaseError> {
    let mut session = connect_to_read(database)?;
    let limit = match server {
        Server::Postgres => format!("SET statement_timeout = '{ANSWER_S}s'"),
        Server::MariaDb => format!("SET SESSION max_statement_time = {ANSWER_S}"),
        Server::MySql => format!("SET SESSION max_execution_time = {}", 1000 * ANSWER_S),
        Server::Sqlite => return Ok(session),
    };
    session.run(&limit)?;
    Ok(session)
}

/// Opens a read-only connection.
fn connect_to_read(database: &dyn Database) -> Result<Box<dyn Session>, DatabaseError> {
    let mut session = database.connect()?;
    if let Some(sql) = database.dialect().read_only() {
        session.run(sql)?;
    }
    Ok(session)
}

/// Returns the statements that ran, from the source that the arguments name.
fn statements(
    arguments: &DraftArguments,
    found: &Found,
    (session, counted): (&mut dyn Session, Result<Counters, CountersError>),
    known: &[Known],
    period: Option<Duration>,
) -> Result<Seen, Failure> {
    let (counters, files): (Vec<&String>, Vec<&String>) =
        arguments.statements.iter().partition(|source| COUNTERS.contains(&source.as_str()));
    if let (Some(period), true) = (period, !files.is_empty()) {
        let what = format!("--for is {} s, and the statements come from a file", period.as_secs_f64());
        return Err(Failure::refused(fault!("{what}"; "leave one of the two out")));
    }
    if !counters.is_empty() && !files.is_empty() {
        return Err(Failure::refused(fault!("--statements names {} and a file", counters[0]; "name one of them")));
    }
    if !files.is_empty() {
        return read_files(&files, found);
    }
    let is_asked = match counters.first().map(|name| (name.as_str(), found.server)) {
        Some(("pg_stat_statements", server)) if server != Server::Postgres => Err("PostgreSQL"),
        Some(("performance_schema", Server::Postgres | Server::Sqlite)) => Err("MySQL and MariaDB"),
        named => Ok(named.is_some()),
    };
    let is_asked = is_asked
        .map_err(|whose| Failure::refused(fault!("--statements {} is for {whose}", counters[0]; "leave it out")))?;
    match counted.and_then(|counted| read_counters(found, session, (&counted, known), period)) {
        Ok(seen) => Ok(seen),
        Err(CountersError::Absent(why)) if is_asked || period.is_some() => Err(Failure::refused(Refusal::new(why))),
        Err(CountersError::Absent(why)) => {
            Ok(Seen { notes: vec![format!("Nothing tells which statements run here: {why}.")], ..Seen::default() })
        }
        Err(CountersError::Database(error)) => Err(Failure::usage(error)),
    }
}

fn read_counters(
    found: &Found,
    session: &mut dyn Session,
    (first, known): (&Counters, &[Known]),
    period: Option<Duration>,
) -> Result<Seen, CountersError> {
    let source = if found.server == Server::Postgres { "pg_stat_statements" } else { "performance_schema" };
    let Some(period) = period else {
        let seen = first.since(None, 0.0, found.server, known);
        let told = format!("The statements are those of {source}, since it began to count.");
        return Ok(with_note(seen, told));
    };
    note(&format!("counting what runs for {} s", show_number(period.as_secs_f64())));
    let first = Counters::read(found.server, session)?;
    let begun = Instant::now();
    while begun.elapsed() < period && !interrupted() {
        std::thread::sleep(Duration::from_millis(50).min(period.saturating_sub(begun.elapsed())));
    }
    let seconds = begun.elapsed().as_secs_f64();
    let seen = Counters::read(found.server, session)?.since(Some(&first), seconds, found.server, known);
    let told = format!("The statements are those that {source} counted within {} s.", show_number(seconds));
    Ok(with_note(seen, told))
}

fn with_note(mut seen: Seen, told: String) -> Seen {
    seen.notes.insert(0, told);
    seen
}

/// Adds a note on how often the users' statements ran; statements about the server itself do not count.
fn with_number(mut seen: Seen, fitter: &Fitter<'_>) -> Seen {
    let own: Vec<f64> =
        seen.statements.iter().filter(|ran| !fitter.is_of_server(&ran.text)).map(|ran| ran.calls).collect();
    let calls: f64 = own.iter().sum();
    let rate = seen.seconds.map_or(String::new(), |seconds| format!(", {} a second", show_number(calls / seconds)));
    seen.notes.push(format!("They ran {} times{rate}; different ones: {}.", show_number(calls), own.len()));
    seen
}

fn read_files(files: &[&String], found: &Found) -> Result<Seen, Failure> {
    let mut collector = Collector::new(grammar_of(found.server));
    let database = found.endpoint.as_ref().map_or("", |endpoint| endpoint.database.as_str());
    let mut forms = Vec::new();
    for path in files {
        let refuse = |what: String, remedy: &str| Failure::refused(Refusal::at(path.as_str(), what, remedy));
        let file = std::fs::File::open(path).map_err(|error| {
            refuse(
                format!("it cannot be read: {error}"),
                "name pg_stat_statements, performance_schema, or a log or file of SQL that is there",
            )
        })?;
        match read_log(&mut BufReader::new(file), database, &mut collector) {
            Ok(form) => forms.push(format!("{path} ({})", form.name())),
            Err(LogError::Io(error)) => return Err(refuse(format!("it cannot be read: {error}"), "name a file")),
            Err(LogError::Empty(form)) => {
                let what = format!("it is read as a {}, and has no statement for this database", form.name());
                let remedy = "have the server log its statements: log_statement = 'all' or log_min_duration_statement = 0 in PostgreSQL, \
                     long_query_time = 0 in MySQL and MariaDB";
                return Err(refuse(what, remedy));
            }
        }
    }
    Ok(with_note(collector.seen(), format!("The statements are those of {}.", forms.join(", "))))
}

/// Returns look-ups of rows by their keys, used if no statements ran.
fn fallback(catalogue: &Catalogue, quote: &dyn Fn(&str) -> String, seen: Seen) -> Seen {
    let mut own = lookups(catalogue, quote);
    own.notes = seen.notes;
    own.notes.push("The statements below only look rows up by their keys, as a beginning: name yours, or a log of them, with --statements.".to_owned());
    own
}

/// Returns the server's current time in microseconds since 1970, and the offset from UTC of its times without a time zone.
fn clock(server: Server, session: &mut dyn Session) -> Result<(i64, i64), DatabaseError> {
    let sql = match server {
        Server::Postgres => {
            "SELECT (extract(epoch FROM now()) * 1000000)::bigint AS loadline_drawn, extract(timezone FROM now())::bigint"
        }
        Server::MySql | Server::MariaDb => {
            "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED) AS loadline_drawn, TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), NOW())"
        }
        Server::Sqlite => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            return Ok((since.as_micros() as i64, 0));
        }
    };
    let rows = session.query(sql)?;
    let number = |place: usize| rows.first().and_then(|row| row.get(place)?.as_deref()?.parse().ok()).unwrap_or(0);
    Ok((number(0), number(1)))
}

/// Tries statements on the database itself.
struct OnDatabase<'d> {
    database: &'d dyn Database,
    server: Server,
    /// Why the database cannot be reached any more; `None` while it can.
    lost: Option<DatabaseError>,
}

impl OnDatabase<'_> {
    /// Opens a new connection with the statement prepared, as the study's clients will. Nothing is executed; `writes` asks for a connection that may write,
    /// because MySQL and MariaDB prepare no writing statement on a read-only one.
    fn prepared(&self, sql: String, writes: bool) -> Result<Box<dyn Session>, DatabaseError> {
        let statement = Statement::Sql { sql, allow_empty: true, form: SqlForm::Prepared };
        let program = Program { statements: vec![statement], rows_max: 1, ..Program::default() };
        let mut session = if writes { self.database.connect()? } else { connect(self.database, self.server)? };
        session.prepare(&program)?;
        Ok(session)
    }

    fn rows(&self, fitted: &Fitted) -> anyhow::Result<f64> {
        // The query has its own alias, so that the server does not count it together with the users' statements.
        let sql = format!("SELECT count(*) FROM ({}) AS {MARK}", fitted.sql);
        let mut session = self.prepared(sql, false)?;
        let mut asked = Asked::default();
        for sql in fitted.fills.iter().flat_map(Fill::parts).filter_map(Fill::query) {
            asked.0.insert(sql.to_owned(), Arc::new(session.query(sql)?));
        }
        let parameters = Parameters::new(fitted.fills.iter(), &asked).map_err(anyhow::Error::msg)?;
        let (begun, mut calls, mut counted) = (Instant::now(), 0, Cells::new());
        let mut request = Request::default();
        while calls < CALLS_MOST && (calls == 0 || begun.elapsed() < TRIED_FOR) {
            request.clear();
            parameters.fill(1, calls, 0, &mut request.cells);
            request.steps.push(Step { statement: 0, first_cell: 0, rows: 1, expect: Expect::Anything });
            session.execute(&request, Some(&mut counted))?;
            calls += 1;
        }
        let count = |cell: &Cell| if let Cell::Int(count) = cell { *count } else { 0 };
        Ok(counted.as_slice().iter().map(count).sum::<i64>() as f64 / calls as f64)
    }
}

impl Trier for OnDatabase<'_> {
    fn prepare(&mut self, fitted: &Fitted) -> Result<(), String> {
        match self.prepared(fitted.sql.clone(), fitted.writes) {
            Ok(_) => Ok(()),
            Err(DatabaseError::Refused { message, .. }) => Err(message.lines().next().unwrap_or_default().to_owned()),
            Err(error) => {
                let told = error.to_string();
                self.lost.get_or_insert(error);
                Err(told)
            }
        }
    }

    fn rows_of_call(&mut self, fitted: &Fitted) -> Option<f64> {
        self.rows(fitted).ok()
    }
}

fn nothing_understood(address: &str, drafted: &Drafted) -> Refusal {
    let why = drafted.left_out.first().map_or(String::new(), |first| format!(": {}", first.because));
    let count = drafted.left_out.len();
    if count == 0 {
        let remedy = "name a log, or a file of SQL, that has some with --statements";
        return Refusal::at(address, "no SELECT, INSERT, UPDATE or DELETE is among what ran", remedy);
    }
    let remedy = "name other statements with --statements; those that are left out are understood when written into a study by hand";
    Refusal::at(address, format!("of {count} statements none can be drawn{why}"), remedy)
}

/// Returns a name for a file: letters, digits, `-`, `_` and `.`.
fn file_name(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|letter| if letter.is_alphanumeric() || "-_.".contains(letter) { letter } else { '-' })
        .collect();
    let plain = plain.trim_start_matches(['.', '-']);
    if plain.is_empty() { "draft".to_owned() } else { plain.to_owned() }
}

fn tell(
    file: &str,
    (drafted, described): (&Drafted, Option<&[Described]>),
    is_guess: bool,
    is_json: bool,
) -> Result<Status, Failure> {
    if is_json {
        let statement = |one: &crate::draft::DraftedStatement| {
            json!({
                "name": one.fitted.name, "sql": one.fitted.sql, "share": one.share, "rows_per_call": one.rows,
                "response_time_s": one.seconds, "writes": one.fitted.writes, "remarks": one.fitted.remarks
            })
        };
        let left_out =
            |one: &crate::draft::LeftOut| json!({ "sql": one.sql, "share": one.share, "because": one.because });
        let table = |one: &Described| json!({ "name": one.table.name, "rows": one.table.rows, "remarks": one.remarks });
        let tables = described.map(|described| described.iter().map(table).collect::<Vec<_>>());
        print_json(&json!({
            "study": file, "tables": tables, "rate_per_s": drafted.rate_per_s, "statements_are_seen": !is_guess, "origin": drafted.origin,
            "statements": drafted.statements.iter().map(statement).collect::<Vec<_>>(),
            "left_out": drafted.left_out.iter().map(left_out).collect::<Vec<_>>()
        }))?;
        return Ok(Status::Valid);
    }
    let mut out = String::new();
    drafted.origin.iter().for_each(|line| out += &listed(line));
    out.push('\n');
    for one in &drafted.statements {
        let rows = one.rows.map_or(String::new(), |rows| format!(", {}", rows_text(rows)));
        let writes = match (one.fitted.writes, described) {
            (true, None) => ", changes data: left out until workload.writes = true",
            (true, Some(_)) => ", changes data",
            (false, _) => "",
        };
        out += &format!("{:>8} %  {}{rows}{writes}\n", show_number(100.0 * one.share), one.fitted.name);
    }
    for one in &drafted.left_out {
        let told = format!(
            "left out, {} %: {}: {}",
            show_number(100.0 * one.share),
            crate::statement::shortened(&one.sql, 60),
            one.because
        );
        out += &listed(&told);
    }
    for Described { table, remarks, .. } in described.unwrap_or_default() {
        let is_view = table.create.last().is_some_and(|sql| sql.starts_with("CREATE VIEW"));
        let rows = if is_view { "a view".to_owned() } else { format!("{} rows", show_number(table.rows as f64)) };
        out += &format!("{rows:>17}  {}\n", table.name);
        remarks.iter().for_each(|remark| out += &listed(&format!("{}: {remark}", table.name)));
    }
    out += &format!("\n{file} is written. Read it, and run it with: loadline run {file}\n");
    print(&out)?;
    Ok(Status::Valid)
}
