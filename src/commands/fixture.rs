//! The fixture: the tables that loadline made, and what is in them.
//!
//! Main type: [`Fixture`]. Invariant: only tables that loadline has made are ever dropped, and a trial that reads finds what its
//! settings say.

use anyhow::{Context, bail};

use super::stage::Current;
use crate::database::{Session, dialect};
use crate::server::interrupted;
use crate::statement::Request;
use crate::trial::Settings;
use crate::workload::Work;

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
fn content_of(settings: &Settings, work: &Work) -> anyhow::Result<String> {
    let tables = format!("{:?}", work.program().tables);
    serde_json::to_string(&(&settings.record, &settings.layout, tables)).context("settings as text")
}

/// Makes empty tables in the place of those of the last trial, unless these hold what is needed. Gives a connection.
///
/// # Errors
/// When the database refuses one, as it does when it has one of that name already.
pub fn make_tables(settings: &Settings, work: &Work, current: &mut Current) -> anyhow::Result<Box<dyn Session>> {
    let tables = &work.program().tables;
    let content = content_of(settings, work)?;
    let is_there = |fixture: &Fixture| fixture.content == content && !fixture.is_changed;
    if tables.is_empty() || current.fixture.as_ref().is_some_and(is_there) {
        return Ok(current.database.connect()?);
    }
    current.remove_tables()?;
    let mut session = current.database.connect()?;
    let dialect = current.database.dialect();
    for table in tables {
        for sql in dialect::create_table(dialect, table) {
            session.run(&sql).with_context(|| {
                let remedy = "drop it if it is not needed, or name another with record.table";
                format!(
                    "table \"{}\" cannot be made, and one that is there already is left alone; {remedy}",
                    table.name
                )
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
            let current = stage.enter(&trial.case.settings.database);
            let executed = execute(&trial, 0, current, &|rows, of| told.borrow_mut().push((rows, of)));
            assert_eq!(executed.measurement.invalid_because, Vec::<String>::new());
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
