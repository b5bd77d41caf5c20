//! What a case asks of its database besides statements: options of queries, plans, and that somebody else's database is only read.
//!
//! Main functions: [`check_options`], [`plans`]. Invariant: an option that a database does not know is refused, never ignored.

use std::collections::BTreeMap;

use crate::database::{self, Database, DatabaseError, Session, dialect};
use crate::load::cpu_count;
use crate::server::CpuList;
use crate::trial::{EventPath, Poll, Settings};
use crate::workload::{self, Work};

/// Checks the options of a case's queries against its database.
///
/// # Errors
/// A sentence that names the query, the option and the remedy.
pub fn check_options(settings: &Settings) -> Result<(), String> {
    let Some(entry) = database::find(&settings.database.name) else { return Ok(()) };
    if settings.load.statements_as_text && !entry.query_options.as_text {
        let name = entry.name;
        return Err(format!(
            "load.statements is \"text\" and {name} reads no text; leave it out, or take another database.name"
        ));
    }
    check_loops(settings)?;
    if settings.load.pipeline && !entry.query_options.pipeline {
        let why = if entry.recipe.is_none() {
            "has no round trips to save"
        } else {
            "goes on after a statement that failed, so that what is sent ahead of its answer may be committed by halves"
        };
        let remedy = "leave it out, or take database.name = \"postgres\"";
        return Err(format!("load.pipeline is true and {} {why}; {remedy}", entry.name));
    }
    for query in &settings.workload.queries {
        let at = format!("workload.queries, query \"{}\"", query.name);
        if query.straight_join && !entry.query_options.straight_join {
            let remedy = match entry.name {
                "postgres" => {
                    "leave it out; with database.config = { join_collapse_limit = 1 } it always joins as named"
                }
                _ => "leave it out",
            };
            return Err(format!("{at}: straight_join cannot be asked of {}; {remedy}", entry.name));
        }
        if query.cache == Some(true) && !entry.query_options.cache {
            return Err(format!("{at}: {} has no query cache; leave cache out", entry.name));
        }
        let is_on =
            || settings.database.config.get("query_cache_type").is_some_and(|kind| kind != "0" && kind != "OFF");
        if query.cache == Some(true) && settings.database.url.is_none() && !is_on() {
            let remedy = "write database.config = { query_cache_type = 2, query_cache_size = 67108864 }";
            return Err(format!("{at}: cache = true, and the query cache of a private server is off; {remedy}"));
        }
    }
    let freshness = settings.freshness.as_ref();
    if !entry.has_notifications && freshness.is_some_and(|freshness| freshness.poll == Poll::Notify) {
        let is_path = freshness.is_some_and(|freshness| freshness.path == EventPath::Notify);
        let (setting, other) = if is_path {
            ("freshness.path", "write path = \"database\"")
        } else {
            ("freshness.poll", "write poll = \"key\" or \"window\"")
        };
        let remedy = format!("{other}, or take database.name = \"postgres\"");
        return Err(format!("{setting} is \"notify\" and {} has no notifications; {remedy}", entry.name));
    }
    Ok(())
}

/// Checks that every load thread can have a CPU of its own: those that take turns only delay each other's answers.
fn check_loops(settings: &Settings) -> Result<(), String> {
    let listed = settings.load.cpus.as_ref().and_then(|cpus| CpuList::parse(cpus).ok());
    let cpus = listed.map_or_else(cpu_count, |cpus| cpus.as_slice().len());
    match settings.load.loops {
        Some(loops) if loops as usize > cpus => Err(format!(
            "load.loops is {loops} and the load may use {cpus} CPUs; write load.loops = {cpus}, or leave it out"
        )),
        _ => Ok(()),
    }
}

/// Whether a case may not change its database: that is somebody else's, and the study does not say that it may.
pub fn is_read_only(settings: &Settings) -> bool {
    let is_foreign = settings.database.url.is_some() || settings.database.path.is_some();
    workload::has_statements(settings) && settings.record.rows == 0 && is_foreign && !settings.workload.writes
}

/// Makes a connection refuse to change anything, where the case may not.
///
/// # Errors
/// As the database answers.
pub fn restrict(session: &mut dyn Session, database: &dyn Database, settings: &Settings) -> Result<(), DatabaseError> {
    match database.dialect().read_only().filter(|_| is_read_only(settings)) {
        Some(sql) => session.run(sql),
        None => Ok(()),
    }
}

/// The database's plans of the case's queries, by kind of operation; empty where the study does not ask for them.
///
/// # Errors
/// As the database answers.
pub fn plans(
    settings: &Settings,
    work: &Work,
    database: &dyn Database,
    session: &mut dyn Session,
) -> Result<BTreeMap<String, Vec<String>>, DatabaseError> {
    let mut plans = BTreeMap::new();
    if !settings.workload.explain {
        return Ok(plans);
    }
    let dialect = database.dialect();
    for query in 0..settings.workload.queries.len() as u16 {
        let operation = crate::operation::Operation::Query { query };
        let mut request = crate::statement::Request::default();
        work.bind(&operation, &mut request);
        let mut lines = Vec::new();
        for step in &request.steps {
            let Some(statement) = work.program().statements.get(usize::from(step.statement)) else { continue };
            let first = step.first_cell as usize;
            let Some(text) = dialect::query_with_values(dialect, statement, &request.cells, first) else { continue };
            let rows = session.query(&dialect.explain(&text))?;
            lines.extend(rows.iter().map(|row| dialect.plan_line(row)));
        }
        plans.insert(operation.kind().to_string(), lines);
    }
    Ok(plans)
}
