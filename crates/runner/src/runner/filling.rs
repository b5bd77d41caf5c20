//! Makes the tables of a trial and fills them, unless they already hold the right data. Main functions: [`make_tables`] and [`fill`].

use std::time::Instant;

use anyhow::{Context, bail};

use super::entry::as_session;
use super::fixture::Fixture;
use super::own_tables::make_own;
use super::stage::Current;
use crate::database::TargetSession;
use crate::server::interrupted;
use crate::statement::Request;
use crate::study::content::{content_of, is_analysed};
use crate::study::subject::Subject;
use crate::trial::Settings;
use crate::workload::Work;

/// Makes empty tables that replace those of the last trial, and the study's own tables with their rows, unless the existing tables hold the right
/// data. Returns a connection. `filling` is called with the number of rows in the study's own tables so far and in total.
///
/// # Errors
/// Fails if the database refuses a table, as it does if a table of that name already exists.
pub fn make_tables(
    settings: &Settings,
    work: &Work,
    current: &mut Current,
    filling: &dyn Fn(u64, u64),
) -> anyhow::Result<Box<dyn TargetSession>> {
    let tables = || work.programs().iter().flat_map(|program| &program.tables);
    let content = content_of(settings, work)?;
    let is_there = |fixture: &Fixture| fixture.content == content && !fixture.is_changed;
    let has_any = tables().next().is_some() || !settings.tables.is_empty();
    if !has_any || current.fixture.as_ref().is_some_and(is_there) {
        return Ok(current.target.open()?);
    }
    current.remove_tables()?;
    let mut session = current.target.open()?;
    for table in tables() {
        session.create_table(table).map_err(|error| {
            // The database refuses a table that already exists; a server that has ended says nothing about the table.
            let remedy = match error.is_refusal() {
                true => {
                    ", and one that is there already is left alone; drop it if it is not needed, or name another with record.table"
                }
                false => "",
            };
            anyhow::Error::new(error).context(format!("table \"{}\" cannot be made{remedy}", table.name))
        })?;
        current.fixture.get_or_insert_with(Fixture::empty).tables.push(table.name.clone());
    }
    if !settings.tables.is_empty() {
        make_own(settings, current, as_session(&mut *session)?, filling)?;
    }
    Ok(session)
}

/// Fills the tables that [`make_tables`] made anew, through a connection with the statements prepared. `filling` is called after
/// each transaction with the number of rows so far and in total.
///
/// # Errors
/// Fails if a record cannot be written.
pub fn fill(
    settings: &Settings,
    work: &Work,
    current: &mut Current,
    mut session: Box<dyn TargetSession>,
    filling: &dyn Fn(u64, u64),
) -> anyhow::Result<()> {
    let Some(fixture) = current.fixture.as_mut().filter(|fixture| fixture.is_changed) else { return Ok(()) };
    if work.program().tables.is_empty() && settings.tables.is_empty() {
        return Ok(());
    }
    for other in work.programs().iter().skip(1).filter(|program| !program.first.steps.is_empty()) {
        let mut session = current.target.open()?;
        session.prepare(other)?;
        session.execute(&other.first, None).context("filling the layout's own tables")?;
    }
    if !work.program().first.steps.is_empty() {
        session.execute(&work.program().first, None).context("filling the layout's own tables")?;
    }
    let begun = Instant::now();
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
        session.analyse_table(&table.name).with_context(|| format!("analysing table \"{}\"", table.name))?;
    }
    (fixture.content, fixture.is_changed) = (content_of(settings, work)?, false);
    if settings.record.rows > 0 {
        current.took.add(Subject::filling(settings), settings.record.rows, begun);
    }
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
