//! Makes the study's own tables with the study's own statements, and fills them.
//!
//! Main function: [`make_own`]. Invariant: a table that already exists is left alone, and a table that was made is noted before it is filled, so that it is
//! removed whatever happens.

use std::time::Instant;

use anyhow::{Context, bail};

use super::asked::{answers_to, read_files};
use super::fixture::{Fixture, OwnTable, asks_whether_there};
use super::stage::Current;
use crate::data::Parameters;
use crate::database::{Database, Session, dialect};
use crate::fault::{Fault, fault};
use crate::record::{Cells, ColumnKind};
use crate::server::interrupted;
use crate::statement::{Expect, Program, Request, Statement, Step, TableColumn};
use crate::study::subject::Subject;
use crate::trial::{ColumnFill, Settings, TableSettings};

/// Largest number of rows in a transaction.
const ROWS_MOST: u64 = 1_000;
/// Approximate limit of the bytes of a transaction's values, unless a single row has more: a server with little memory reads the text of all rows into it.
const BYTES_MOST: usize = 512 << 10;
/// The column kind of every inserted value: values are sent as text, which the database converts to the column's type.
const KIND: ColumnKind = ColumnKind::Text(1 << 20);

/// Makes a case's own tables, one after the other, each with its rows and the statements that follow them. `filling` is called with the
/// number of rows so far and in total.
///
/// # Errors
/// Fails if the database refuses a statement; the sentence names the table and the SQL.
pub fn make_own(
    settings: &Settings,
    current: &mut Current,
    session: &mut dyn Session,
    filling: &dyn Fn(u64, u64),
) -> anyhow::Result<()> {
    let all: u64 = settings.tables.iter().map(|table| table.rows).sum();
    let mut before = 0;
    for table in &settings.tables {
        let place = format!("[[tables]], table \"{}\"", table.name);
        let begun = Instant::now();
        make(table, current, session).context(place.clone())?;
        if table.rows > 0 {
            let told = |rows: u64| filling(before + rows, all);
            fill(table, settings, current.database()?, &told).context(place.clone())?;
        }
        for sql in &table.then {
            session.run_change(sql).with_context(|| format!("{place}, then: {sql}"))?;
        }
        current.took.add(Subject::own_table(&settings.database, table), table.rows, begun);
        before += table.rows;
    }
    Ok(())
}

fn make(table: &TableSettings, current: &mut Current, session: &mut dyn Session) -> anyhow::Result<()> {
    let name = session.dialect().quote(&table.name);
    match session.query(&asks_whether_there(&name)) {
        Ok(_) => {
            let remedy = "drop it if it is not needed, or give the table another name";
            return Err(anyhow::Error::new(
                fault!("there is a table of that name already, which is left alone"; "{remedy}"),
            ));
        }
        Err(error) if !error.is_refusal() => return Err(error.into()),
        Err(_) => {}
    }
    let drop = match table.drop.is_empty() {
        true => vec![dialect::drop_table(session.dialect(), &table.name)],
        false => table.drop.clone(),
    };
    let own = OwnTable { name: table.name.clone(), drop };
    for (number, sql) in table.create.iter().enumerate() {
        session.run_change(sql).with_context(|| format!("create: {sql}"))?;
        if number == 0 {
            current.fixture.get_or_insert_with(Fixture::empty).own.push(own.clone());
        }
    }
    if let Err(error) = session.query(&asks_whether_there(&name)) {
        let remedy = "name it as its CREATE TABLE does, in small letters where the database makes them small";
        let fault = fault!("its SQL was executed, and there is no table {name}"; "{remedy}");
        return Err(anyhow::Error::new(error).context(fault.to_string()));
    }
    Ok(())
}

fn fill(table: &TableSettings, settings: &Settings, database: &dyn Database, told: &dyn Fn(u64)) -> anyhow::Result<()> {
    let mut session = database.connect()?;
    let fills = || table.columns.iter().map(|column| &column.fill);
    let mut asked = answers_to(fills(), &mut *session, "the source of a column")?;
    read_files(fills(), "the source of a column", &mut asked)?;
    let parameters = Parameters::new(fills(), &asked).map_err(|why| anyhow::Error::new(Fault::from(why)))?;
    session.prepare(&program(table))?;
    let width = table.columns.len();
    let mut request = Request::default();
    let mut next = 0;
    while next < table.rows {
        if interrupted() {
            bail!("interrupted while it was being filled");
        }
        request.clear();
        let first = next;
        while next < table.rows && next - first < ROWS_MOST && (next == first || bytes_of(&request.cells) < BYTES_MOST)
        {
            parameters.fill(settings.record.seed, next, 0, &mut request.cells);
            next += 1;
        }
        let rows = (next - first) as u32;
        request.steps.push(Step { statement: 0, rows, first_cell: 0, expect: Expect::Anything });
        session.execute(&request, None).with_context(|| {
            format!(
                "filling it, rows {} to {next} of {}: {}",
                first + 1,
                table.rows,
                example(&request.cells, width, &table.columns)
            )
        })?;
        told(next);
    }
    Ok(())
}

/// Returns the insert, with values as text: a prepared insert would need the types of the columns, which only the database knows.
fn program(table: &TableSettings) -> Program {
    let column = |column: &ColumnFill| TableColumn { name: column.name.clone(), kind: KIND, nullable: true };
    let insert = Statement::Insert { table: table.name.clone(), columns: table.columns.iter().map(column).collect() };
    Program { statements: vec![insert], rows_max: ROWS_MOST as usize, as_text: true, ..Program::default() }
}

/// Returns the approximate number of bytes of the values.
fn bytes_of(cells: &Cells) -> usize {
    cells.text_bytes() + 8 * cells.len()
}

/// Returns the first row as text, so that the reader of a refusal sees what was to be stored.
fn example(cells: &Cells, width: usize, columns: &[ColumnFill]) -> String {
    let values = cells.as_slice().iter().take(width).zip(columns);
    let shown: Vec<String> =
        values.map(|(cell, column)| format!("{} = {}", column.name, cells.to_json(*cell))).collect();
    let mut text = format!("the first is {}", shown.join(", "));
    if let Some((cut, _)) = text.char_indices().nth(400) {
        text.truncate(cut);
        text.push_str(" ...");
    }
    text
}
