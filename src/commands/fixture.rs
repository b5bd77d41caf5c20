//! The fixture: the tables that loadline made, and what is in them.
//!
//! Main type: [`Fixture`]. Invariant: only tables that loadline has made are ever dropped, and a trial that reads finds what its
//! settings say.

use anyhow::{Context, bail};

use super::stage::{Current, entry_of};
use crate::database::{DatabaseError, Session, dialect};
use crate::operation::Operation;
use crate::server::{ServerError, interrupted};
use crate::statement::Request;
use crate::trial::{Settings, text_hash};
use crate::workload::{self, Work};

/// What the tables hold after the last trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Fixture {
    /// The trial's record and layout settings and the shape of the tables, as text.
    pub content: String,
    /// Names of the tables.
    pub tables: Vec<String>,
    /// Whether a trial has written to them since they were filled, so that they cannot serve another. Updates that leave keys,
    /// rows and the spread of values as they were do not count.
    pub is_changed: bool,
}

/// What tables of these settings hold before a trial, and their shape: a layout may add an index for what a case asks.
pub fn content_of(settings: &Settings, work: &Work) -> anyhow::Result<String> {
    let tables: Vec<_> = work.programs().iter().map(|program| &program.tables).collect();
    let tables = match tables[..] {
        [one] => format!("{one:?}"),
        _ => format!("{tables:?}"),
    };
    serde_json::to_string(&(&settings.record, &settings.layout, tables, is_analysed(settings)))
        .context("settings as text")
}

/// Whether the database is to look at the content before trials: plans of queries depend on what it knows.
fn is_analysed(settings: &Settings) -> bool {
    matches!(settings.workload.name.as_str(), "query" | "recent")
}

/// Fewer records than this are filled in faster than servers are stopped and started.
const KEPT_ROWS_MIN: u64 = 100_000;
/// Records that are looked at to tell whether the data is still made as it was.
const SAMPLED: u64 = 256;

/// All that decides what a filled fixture holds, as text, where it can be kept for other runs: trials with these settings only read,
/// it is large, and the database is loadline's own. None where it cannot.
///
/// # Errors
/// A sentence when the settings cannot be carried out.
pub fn identity_of(settings: &Settings) -> anyhow::Result<Option<String>> {
    let database = &settings.database;
    let is_own = database.url.is_none() && database.path.is_none() && database.name != "simulated";
    if !is_own || settings.record.rows < KEPT_ROWS_MIN || !workload::only_reads(settings) {
        return Ok(None);
    }
    let work = Work::new(settings).map_err(anyhow::Error::msg)?;
    let entry = entry_of(database)?;
    let binary = match entry.recipe {
        Some(recipe) => recipe.find_binary(database).map_err(ServerError::NotFound)?,
        None => Default::default(),
    };
    let made = std::fs::metadata(&binary).and_then(|file| Ok((file.len(), file.modified()?))).ok();
    let stored =
        (&database.name, &database.engine, &database.encryption, &database.config, format!("{binary:?} {made:?}"));
    let mut sample = String::new();
    for number in 0..SAMPLED {
        let mut request = Request::default();
        let first = number * (settings.record.rows - 1) / (SAMPLED - 1);
        work.bind(&Operation::Insert { first, records: 1 }, &mut request);
        for cell in request.cells.as_slice() {
            sample += &request.cells.to_json(*cell).to_string();
        }
    }
    let content = content_of(settings, &work)?;
    Ok(Some(serde_json::to_string(&(stored, content, text_hash(&sample))).context("settings as text")?))
}

/// Makes empty tables in the place of those of the last trial, unless these hold what is needed. Gives a connection.
///
/// # Errors
/// When the database refuses one, as it does when it has one of that name already.
pub fn make_tables(settings: &Settings, work: &Work, current: &mut Current) -> anyhow::Result<Box<dyn Session>> {
    let tables = || work.programs().iter().flat_map(|program| &program.tables);
    let content = content_of(settings, work)?;
    let is_there = |fixture: &Fixture| fixture.content == content && !fixture.is_changed;
    if tables().next().is_none() || current.fixture.as_ref().is_some_and(is_there) {
        return Ok(current.database.connect()?);
    }
    current.remove_tables()?;
    let mut session = current.database.connect()?;
    let dialect = current.database.dialect();
    for table in tables() {
        for sql in dialect::create_table(dialect, table) {
            session.run(&sql).map_err(|error| {
                // One that is there already is refused; a server that has ended says nothing about the table.
                let remedy = match error {
                    DatabaseError::Refused { .. } => {
                        ", and one that is there already is left alone; drop it if it is not needed, or name another with record.table"
                    }
                    _ => "",
                };
                anyhow::Error::new(error).context(format!("table \"{}\" cannot be made{remedy}", table.name))
            })?;
        }
        let empty = Fixture { content: String::new(), tables: Vec::new(), is_changed: true };
        current.fixture.get_or_insert(empty).tables.push(table.name.clone());
    }
    Ok(session)
}

/// Fills the tables that [`make_tables`] made anew, through a connection with the statements prepared. `filling` is told after
/// each transaction how many rows there are, of how many.
///
/// # Errors
/// When a record cannot be written.
pub fn fill(
    settings: &Settings,
    work: &Work,
    current: &mut Current,
    mut session: Box<dyn Session>,
    filling: &dyn Fn(u64, u64),
) -> anyhow::Result<()> {
    let Some(fixture) = current.fixture.as_mut().filter(|fixture| fixture.is_changed) else { return Ok(()) };
    if work.program().tables.is_empty() {
        return Ok(());
    }
    for other in work.programs().iter().skip(1).filter(|program| !program.first.steps.is_empty()) {
        let mut session = current.database.connect()?;
        session.prepare(other)?;
        session.execute(&other.first, None).context("filling the layout's own tables")?;
    }
    if !work.program().first.steps.is_empty() {
        session.execute(&work.program().first, None).context("filling the layout's own tables")?;
    }
    let mut request = Request::default();
    let mut preload = work.preload();
    while let Some(operation) = preload.next() {
        if interrupted() {
            bail!("interrupted while the tables were being filled");
        }
        request.clear();
        work.bind(&operation, &mut request);
        session.execute(&request, None).with_context(|| format!("filling the tables: {operation:?}"))?;
        filling(settings.record.rows - preload.left(), settings.record.rows);
    }
    for table in work.program().tables.iter().filter(|_| is_analysed(settings)) {
        if let Some(sql) = current.database.dialect().analyse(&table.name) {
            session.run(&sql).with_context(|| format!("analysing table \"{}\"", table.name))?;
        }
    }
    (fixture.content, fixture.is_changed) = (content_of(settings, work)?, false);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::super::execute::execute;
    use super::super::stage::Stage;
    use crate::study::Passwords;
    use crate::trial::{Case, Length, Levels, Settings, Trial};

    #[test]
    fn tables_are_filled_again_only_when_records_were_added_or_others_are_needed() {
        let directory = std::env::temp_dir().join(format!("loadline-fixture-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut stage = Stage::new(&directory, Passwords::default());
        let mut trial = |workload: &str, rows: u64, round: u32| {
            let mut settings = Settings::default();
            settings.database.name = "sqlite".to_owned();
            settings.record.type_name = "wisconsin".to_owned();
            settings.record.table = "wisconsin".to_owned();
            (settings.record.rows, settings.record.per_measurement) = (rows, 1);
            settings.layout.name = "wide".to_owned();
            settings.workload.name = workload.to_owned();
            settings.workload.batch = 1;
            settings.workload.mix = [("select".to_owned(), 1.0), ("update".to_owned(), 1.0)].into();
            (settings.load.clients, settings.load.length) = (1, Length::Operations(3));
            settings.load.drain_s = 5.0;
            let trial = Trial::new(Case::new(Levels::new(), settings), round, 1);
            let told = RefCell::new(Vec::new());
            let current = stage.enter_for(&trial.case.settings);
            let executed = execute(&trial, 0, current, &|rows, of| told.borrow_mut().push((rows, of)));
            assert_eq!(executed.measurement.invalid_because, []);
            told.into_inner()
        };
        assert_eq!(trial("select", 25_000, 0), [(10_000, 25_000), (20_000, 25_000), (25_000, 25_000)]);
        for (round, workload) in (1..).zip(["select", "update", "mix", "read", "select"]) {
            assert_eq!(trial(workload, 25_000, round), [], "{workload} is served by the tables that are there");
        }
        assert_eq!(trial("write", 25_000, 6), [], "writes begin behind them");
        assert_eq!(trial("select", 25_000, 7).len(), 3, "written records are gone for the next trial");
        assert_eq!(trial("select", 100, 8), [(100, 100)]);
        drop(stage);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
