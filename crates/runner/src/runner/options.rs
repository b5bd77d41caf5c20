//! Requirements of a case beyond statements: options of queries, plans, and read-only use of a database that is not loadline's own.
//!
//! Main function: [`check_options`]. Invariant: an option that a database does not know is refused, never ignored.

use std::collections::BTreeMap;

use crate::database::{self, Capability, DatabaseError, Entry, Level, Session};
use crate::load::cpu_count;
use crate::monitor::read_address;
use crate::operation::Operation;
use crate::server::CpuList;
use crate::statement::{Program, Request};
use crate::trial::{DatabaseSettings, EventPath, Poll, RetireBy, RunAs, Settings};
use crate::workload::{self, Work};

/// Checks the requirements of a case against the capabilities of its database.
///
/// # Errors
/// Fails with a sentence that names the setting, what is missing and the remedy.
pub fn check_options(settings: &Settings, work: &Work) -> Result<(), String> {
    let program = work.program();
    let Some(entry) = database::find(&settings.database.name) else { return Ok(()) };
    check_loops(settings)?;
    if let Some(watch) = &settings.database.watch {
        read_address(watch).map_err(|fault| fault.about("database.watch").to_string())?;
    }
    check_library(entry)?;
    check_level(entry, &settings.database)?;
    for need in needs(settings, program) {
        check_need(entry, &need)?;
    }
    check_program(entry, settings, program)?;
    check_rows(entry, settings, work)?;
    let is_on = || settings.database.config.get("query_cache_type").is_some_and(|kind| kind != "0" && kind != "OFF");
    for query in settings.workload.queries.iter().filter(|query| query.cache == Some(true)) {
        if settings.database.url.is_none() && !is_on() {
            let remedy = "write database.config = { query_cache_type = 2, query_cache_size = 67108864 }";
            let at = format!("workload.queries, query \"{}\"", query.name);
            return Err(format!("{at}: cache = true, and the query cache of a private server is off; {remedy}"));
        }
    }
    Ok(())
}

/// Returns why a valid case cannot be carried out here: the server is not installed, or the database lacks a capability.
pub fn cannot(settings: &Settings) -> Option<String> {
    let entry = database::find(&settings.database.name)?;
    let DatabaseSettings { url, binary, base, .. } = &settings.database;
    if let (Some(recipe), None, None, None) = (entry.recipe, url, binary, base)
        && let Err(fault) = recipe.find_binary(&settings.database)
    {
        return Some(fault.to_string());
    }
    if let Err(why) = check_library(entry).and_then(|()| check_level(entry, &settings.database)) {
        return Some(why);
    }
    if settings.recorded().is_some() {
        return check_recorded(settings).err();
    }
    // Errors in the case itself are reported elsewhere.
    let work = Work::new(settings).ok()?;
    let missing = needs(settings, work.program()).iter().find_map(|need| check_need(entry, need).err());
    let missing = missing.or_else(|| check_program(entry, settings, work.program()).err());
    missing.or_else(|| check_rows(entry, settings, &work).err())
}

/// Checks that a database that has all capabilities can execute the statements of a case.
fn check_program(entry: &Entry, settings: &Settings, program: &Program) -> Result<(), String> {
    let Some(why) = entry.refuses.and_then(|refuses| refuses(program, &settings.database)) else { return Ok(()) };
    let (name, layout, workload) = (entry.name, &settings.layout.name, &settings.workload.name);
    Err(format!(
        "workload.name is \"{workload}\" on layout.name = \"{layout}\", and {name} cannot do that: {why}; take another workload or layout, or another database"
    ))
}

/// The number of records that are shown to a database that does not store every value.
const SHOWN_RECORDS: u32 = 1_000;

/// Checks that a database that does not store every value can store the first records of a case.
fn check_rows(entry: &Entry, settings: &Settings, work: &Work) -> Result<(), String> {
    let Some(refuses) = entry.refuses_rows.filter(|_| work.generator().is_some()) else { return Ok(()) };
    let mut request = Request::default();
    work.bind(&Operation::Insert { first: 0, records: SHOWN_RECORDS }, &mut request);
    let Some(why) = refuses(work.program(), &request) else { return Ok(()) };
    let (name, record) = (entry.name, &settings.record.type_name);
    Err(format!(
        "record.type is \"{record}\", and {name} cannot store its records: {why}; take other records, or another database"
    ))
}

/// Checks that the library that a database is loaded from is here.
fn check_library(entry: &Entry) -> Result<(), String> {
    let missing = entry.library.and_then(|find| find().err());
    missing.map_or(Ok(()), |fault| Err(fault.about(format!("database.name is \"{}\"", entry.name)).to_string()))
}

/// Checks that a database can provide the requested level of durability.
fn check_level(entry: &Entry, settings: &DatabaseSettings) -> Result<(), String> {
    let Some(level) = settings.durability.as_deref().and_then(Level::of_name) else { return Ok(()) };
    let (asked, name) = (level.name(), entry.name);
    if entry.settings_for(level).is_none() {
        let others = database::REGISTRY.iter().filter(|other| other.settings_for(level).is_some());
        let others = others.map(|other| other.name).collect::<Vec<_>>().join(", ");
        return Err(format!(
            "database.durability is \"{asked}\", and no settings of {name} give it; leave it out, or take database.name = {others}"
        ));
    }
    match entry.level(settings, &BTreeMap::new(), true) {
        Some(had) if had != level => {
            let engine =
                settings.engine.as_deref().map_or(String::new(), |engine| format!(" with the engine {engine}"));
            let had = had.name();
            Err(format!(
                "database.durability is \"{asked}\", and {name}{engine} has \"{had}\"; take another engine, or leave database.durability out"
            ))
        }
        _ => Ok(()),
    }
}

/// Checks that a recorder can store into the database of a case.
///
/// # Errors
/// Fails with a sentence that names what is missing and the databases that have it.
pub fn check_recorded(settings: &Settings) -> Result<(), String> {
    let Some(entry) = database::find(&settings.database.name) else { return Ok(()) };
    let asked_by = "a recorder stores what it takes in".to_owned();
    let instead = "send to the database itself";
    [Capability::Sql, Capability::DryRuns]
        .into_iter()
        .try_for_each(|capability| check_need(entry, &Need { capability, asked_by: asked_by.clone(), instead }))
}

/// A capability that a case needs of its database.
struct Need {
    capability: Capability,
    /// The setting that needs it, as in `load.pipeline is true`.
    asked_by: String,
    /// What to write instead.
    instead: &'static str,
}

/// Returns what throwing old readings away needs, and partitions: the capability, the setting that needs it, and what to write instead.
fn need_of_retention(settings: &Settings) -> Option<(Capability, &'static str, &'static str)> {
    match settings.retention.as_ref().map(|retention| retention.by) {
        Some(RetireBy::Delete) => {
            Some((Capability::Sql, "retention.by is \"delete\"", "write by = \"drop\" or leave [retention] out"))
        }
        Some(RetireBy::Drop) => Some((Capability::Partitions, "retention.by is \"drop\"", "write by = \"delete\"")),
        _ => {
            settings.layout.partition_ns.map(|_| (Capability::Partitions, "layout.partition is given", "leave it out"))
        }
    }
}

fn needs(settings: &Settings, program: &Program) -> Vec<Need> {
    let workload = &settings.workload;
    let mut found = Vec::new();
    let mut need = |capability, asked_by: String, instead| found.push(Need { capability, asked_by, instead });
    let in_sql = [
        (!settings.tables.is_empty(), "[[tables]] are given"),
        (settings.record.existing, "record.existing is true"),
        (workload.replay.is_some(), "workload.trace is given"),
        (workload::has_statements(settings), "workload.statements are given"),
        (!workload.set_up.is_empty(), "workload.set_up is given"),
        (!workload.clean_up.is_empty(), "workload.clean_up is given"),
    ];
    if let Some((_, asked_by)) = in_sql.into_iter().find(|(is_asked, _)| *is_asked) {
        need(Capability::Sql, asked_by.to_owned(), "leave it out");
    }
    if let Some((capability, asked_by, instead)) = need_of_retention(settings) {
        need(capability, asked_by.to_owned(), instead);
    }
    for capability in database::needs_of(program).into_iter().filter(|needed| *needed != Capability::Sql) {
        let (layout, workload) = (&settings.layout.name, &workload.name);
        let asked_by = format!("workload.name is \"{workload}\" on layout.name = \"{layout}\"");
        need(capability, asked_by, "take another workload or layout");
    }
    if workload.batch > 1 {
        need(Capability::BrokenBatches, format!("workload.batch is {}", workload.batch), "write workload.batch = 1");
    }
    if workload.evolve_s.is_some() {
        need(Capability::SchemaChanges, "workload.evolve is given".to_owned(), "leave it out");
    }
    if workload.explain {
        need(Capability::Plans, "workload.explain is true".to_owned(), "leave it out");
    }
    if settings.load.statements_as_text {
        need(Capability::Text, "load.statements is \"text\"".to_owned(), "leave it out");
    }
    if settings.load.pipeline {
        need(Capability::Pipeline, "load.pipeline is true".to_owned(), "leave it out");
    }
    for query in &workload.queries {
        let at = format!("workload.queries, query \"{}\"", query.name);
        if query.straight_join {
            need(Capability::StraightJoin, format!("{at}: straight_join is true"), "leave it out");
        }
        if query.cache == Some(true) {
            need(Capability::QueryCache, format!("{at}: cache is true"), "leave it out");
        }
    }
    if let Some(freshness) = &settings.freshness {
        if freshness.path.publishes() {
            let asked_by = "freshness.path publishes events, which a process of its own stores,".to_owned();
            need(Capability::Processes, asked_by, "write path = \"database\"");
        } else if freshness.run_as == RunAs::Processes {
            let asked_by = "freshness.run_as is \"processes\"".to_owned();
            need(Capability::Processes, asked_by, "write run_as = \"threads\"");
        }
    }
    let freshness = settings.freshness.as_ref().filter(|freshness| freshness.poll == Poll::Notify);
    if let Some(freshness) = freshness {
        let (setting, other) = match freshness.path {
            EventPath::Notify => ("freshness.path", "write path = \"database\""),
            _ => ("freshness.poll", "write poll = \"key\" or \"window\""),
        };
        need(Capability::Notifications, format!("{setting} is \"notify\""), other);
    }
    found
}

fn check_need(entry: &Entry, need: &Need) -> Result<(), String> {
    let Need { capability, asked_by, instead } = need;
    if entry.capabilities.has(*capability) {
        return Ok(());
    }
    let why = match (capability, entry.recipe) {
        (Capability::Pipeline, None) => "has no round trips to save".to_owned(),
        (Capability::Pipeline, Some(_)) => {
            "goes on after a statement that failed, so that what is sent ahead of its answer may be committed by halves"
                .to_owned()
        }
        _ => format!("has no {}", capability.name()),
    };
    let instead = match (capability, entry.name) {
        (Capability::StraightJoin, "postgres") => {
            "leave it out (with database.config = { join_collapse_limit = 1 } it always joins as named)"
        }
        _ => instead,
    };
    let others = database::with(*capability);
    let others = others.map_or(String::new(), |names| format!(", or take database.name = {names}"));
    Err(format!("{asked_by} and {} {why}; {instead}{others}", entry.name))
}

/// Checks that every load thread can have its own CPU: threads that take turns only delay each other's answers.
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

/// Returns whether a case may not change its database: the database is not loadline's own, and the study does not permit writes.
pub fn is_read_only(settings: &Settings) -> bool {
    let is_foreign = settings.database.url.is_some() || settings.database.path.is_some();
    workload::has_foreign_statements(settings) && settings.record.rows == 0 && is_foreign && !settings.workload.writes
}

/// Makes a connection read-only if the case may not change anything.
///
/// # Errors
/// Returns the database's error.
pub fn restrict(session: &mut dyn Session, settings: &Settings) -> Result<(), DatabaseError> {
    if is_read_only(settings) { session.make_read_only() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Capabilities, Opens};

    fn refused(capabilities: Capabilities, change: impl Fn(&mut Settings)) -> Vec<String> {
        let mut settings = Settings::default();
        "qos".clone_into(&mut settings.record.type_name);
        "star".clone_into(&mut settings.layout.name);
        "shop".clone_into(&mut settings.record.table);
        (settings.record.rows, settings.record.per_measurement) = (100, 10);
        (settings.workload.batch, settings.load.clients) = (1, 1);
        "write".clone_into(&mut settings.workload.name);
        change(&mut settings);
        let entry = Entry { name: "shop", capabilities, ..entry() };
        let program = Work::new(&settings).unwrap().program().clone();
        needs(&settings, &program).iter().filter_map(|need| check_need(&entry, need).err()).collect()
    }

    fn entry() -> Entry {
        Entry { opens: Opens::Store(|_, _| Err(DatabaseError::NoFile)), ..*database::REGISTRY[0] }
    }

    #[test]
    fn what_a_database_cannot_do_is_named_with_what_asks_for_it_and_who_can() {
        let read = |settings: &mut Settings| "read".clone_into(&mut settings.workload.name);
        assert_eq!(refused(Capabilities::SQL, read), Vec::<String>::new());
        let without = Capabilities::SQL.without(Capability::Joins);
        let told = refused(without, read);
        assert_eq!(
            told,
            [
                "workload.name is \"read\" on layout.name = \"star\" and shop has no joins; take another workload or layout, \
              or take database.name = \"sqlite\", \"mariadb\", \"mysql\", \"postgres\", \"duckdb\" or \"odbc\""
            ]
        );
        // A load that only writes needs no reads.
        assert_eq!(refused(without, |_| ()), Vec::<String>::new());
        // A table of whole records needs neither capability.
        let without = without.without(Capability::Updates).without(Capability::Deletes);
        assert_eq!(refused(without, |settings| "wide".clone_into(&mut settings.layout.name)), Vec::<String>::new());
        let batches = |settings: &mut Settings| settings.workload.batch = 10;
        let told = refused(Capabilities::SQL.without(Capability::Batches), batches);
        assert!(told[0].starts_with("workload.batch is 10 and shop has no batches"), "{told:?}");
        let updates = |settings: &mut Settings| "update".clone_into(&mut settings.workload.name);
        let told = refused(Capabilities::SQL.without(Capability::Updates), updates);
        assert!(told.len() == 1 && told[0].contains("has no updates"), "{told:?}");
    }
}
