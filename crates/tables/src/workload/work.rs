//! [`Work`]: the state that all clients of a trial share.

use std::sync::{Arc, OnceLock};

use super::freshness::{self, Events};
use super::questions::Asked;
use super::retention::Retirement;
use super::stored::Stored;
use super::{
    Client, Preload, Workload, background, build, has_statements, indexes, inserts_nothing, known, only_adds,
    only_reads, replay, retention, sql, ycsb,
};
use crate::fault::{Fault, fault};
use crate::layout::Access;
use crate::operation::Operation;
use crate::query::count_found;
use crate::record::{Cells, Column, Generator};
use crate::statement::{Evolution, Expect, Program, Request, SqlForm, Statement, Step};
use crate::trial::Settings;

/// The tables, statements and data of a trial, and how its operations become requests.
///
/// The workload `sql` on tables that exist already (`record.rows` is 0) has no tables, layout or generator.
pub struct Work {
    settings: Settings,
    /// The settings of the background clients; `None` without a background load.
    background: Option<Settings>,
    stored: Option<Stored>,
    /// Tables of events that are read while they are written; `None` for other workloads.
    events: Option<Arc<Events>>,
    program: Program,
    /// The programs that the clients' connections prepare, if they differ from `program`: one for all, or one for each client.
    of_clients: Vec<Program>,
    /// The study's own operations.
    sql: Vec<sql::OwnSteps>,
    /// The questions about sources and times; `None` where there are none.
    asked: Option<Asked>,
    /// Number of rows that each query must return; unset until it has been counted.
    found: OnceLock<Vec<u64>>,
    /// Whether records may be added during the trial, so that queries may return more rows.
    grows: bool,
    /// What is thrown away of the readings while others come in; `None` where all stay.
    retirement: Option<Retirement>,
    /// The existing records, if clients insert some that others ask for.
    keys: Option<Arc<ycsb::KeySpace>>,
}

/// Replaces inserts by a harmless query, since preparing an insert requires the right to insert. Applies to foreign tables that are not filled, under a workload
/// that inserts nothing; the other statements keep their numbers.
fn leave_out_inserts(program: &mut Program, settings: &Settings) {
    if inserts_nothing(settings) {
        let nothing = Statement::Sql { sql: "SELECT 1".to_owned(), allow_empty: false, form: SqlForm::Prepared };
        let inserts = |statement: &&mut Statement| matches!(statement, Statement::Insert { .. });
        program.statements.iter_mut().filter(inserts).for_each(|statement| *statement = nothing.clone());
    }
}

/// Adds the indexes and the partitions that the settings ask for to the tables of a layout. Returns what is thrown away of the readings; `None` where all stay.
///
/// # Errors
/// A sentence that names the setting, its value and the remedy.
fn index_and_divide(program: &mut Program, settings: &Settings) -> Result<Option<Retirement>, String> {
    if let (true, Some(column)) = (settings.record.existing, settings.layout.indexes.first()) {
        let remedy = "leave one of them out";
        return Err(format!(
            "layout.indexes names \"{column}\" and record.existing says that the tables are there; {remedy}"
        ));
    }
    for column in &settings.layout.indexes {
        indexes::add(program, column, &settings.layout.name)?;
    }
    if let Some(index) = settings.layout.time_index {
        indexes::add_times(program, index, &settings.layout.name)?;
    }
    if let Some(span_ns) = settings.layout.partition_ns {
        retention::divide(program, settings, span_ns)?;
    }
    Retirement::new(settings, program)
}

impl Work {
    /// Creates the work that the settings describe. After that, making the workloads of clients cannot fail.
    ///
    /// # Errors
    /// A sentence that names the setting, its value and the remedy.
    pub fn new(settings: &Settings) -> Result<Self, String> {
        Work::asking(settings, &Access::default())
    }

    /// Creates the work for a caller that also reads single records, whatever the workload does: [`Operation::Read`] can be bound.
    ///
    /// # Errors
    /// As for [`Work::new`].
    pub fn with_reads(settings: &Settings) -> Result<Self, String> {
        Work::asking(settings, &Access { read: true, ..Access::default() })
    }

    /// Creates the work that the settings describe, with the access that `besides` asks for in addition.
    fn asking(settings: &Settings, besides: &Access) -> Result<Self, String> {
        if settings.layout.tables_per_client {
            return Work::with_tables_of_clients(settings, besides);
        }
        let needs_tables = known(settings)?.needs_tables || settings.record.rows > 0;
        build(settings, Client { number: 0, of: 1, seed: 0 })?;
        let background = background::settings(settings)?;
        if let Some(background) = &background {
            let of_workload = |why: String| why.replace("workload.", "background.");
            build(background, Client { number: 0, of: 1, seed: 0 }).map_err(of_workload)?;
        }
        let needs_tables = needs_tables || background.is_some();
        let mut stored = if needs_tables { Some(Stored::new(settings, background.as_ref(), besides)?) } else { None };
        let mut program = stored.as_ref().map_or_else(Program::default, |stored| stored.layout.program().clone());
        program.rows_max = program.rows_max.max(1);
        let retirement = index_and_divide(&mut program, settings)?;
        if settings.record.existing {
            program.tables.clear();
            program.first = Request::default();
            leave_out_inserts(&mut program, settings);
        }
        let mut sql = Vec::new();
        let transactions = sql::program(&settings.workload.statements);
        for own in transactions.take(if has_statements(settings) { usize::MAX } else { 0 }) {
            let mut steps = Vec::with_capacity(own.statements.len());
            for (statement, expect, parameters) in own.statements {
                steps.push((program.statements.len() as u16, expect, parameters as u32));
                program.statements.push(statement);
            }
            sql.push(sql::OwnSteps { steps, carries: own.carries });
        }
        replay::add_statements(settings, &mut program, &mut sql);
        let is_events = settings.workload.name == freshness::FRESHNESS.name;
        let events = if is_events { Some(Arc::new(Events::new(settings)?)) } else { None };
        if let Some(events) = &events {
            program = events.program.clone();
        }
        let asked = stored.as_mut().and_then(|stored| {
            let statements = std::mem::take(&mut stored.questions);
            Asked::new(settings, statements, stored.layout.packing(), &*stored.generator)
        });
        let keys = ycsb::key_space(settings);
        let as_text = settings.load.statements_as_text;
        let pipelines = settings.load.pipeline || program.pipelines;
        let own = Program { as_text, pipelines, ..program.clone() };
        let of_clients = if as_text || pipelines { vec![own] } else { Vec::new() };
        let (settings, found) = (settings.clone(), OnceLock::new());
        let grows = !only_reads(&settings);
        let shared = Work {
            settings,
            background,
            stored,
            events,
            program,
            of_clients,
            sql,
            asked,
            found,
            grows,
            retirement,
            keys,
        };
        Ok(shared)
    }

    /// Creates the work for clients with tables of their own: a trial has as many sets of tables as clients, whose statements
    /// differ only in the names of the tables, so that a request fits each of them.
    fn with_tables_of_clients(settings: &Settings, besides: &Access) -> Result<Self, String> {
        let of_client = |client: u32| {
            let mut own = settings.clone();
            own.layout.tables_per_client = false;
            own.record.table = format!("{}_{}", settings.record.table, client + 1);
            Work::asking(&own, besides)
        };
        let mut work = of_client(0)?;
        let mut of_clients = Vec::with_capacity(settings.load.clients as usize);
        for client in 0..settings.load.clients.max(1) {
            let program = of_client(client)?.program;
            let (as_text, pipelines) = (settings.load.statements_as_text, settings.load.pipeline);
            of_clients.push(Program { as_text, pipelines, ..program });
        }
        work.of_clients = of_clients;
        Ok(work)
    }

    /// Computes the right answers to the questions, and counts the rows that each query must return, by generating all records: from now on an answer with another number of rows is a failed
    /// operation or, if records are added meanwhile, one with fewer rows. Before that, and if records change during the trial, any number
    /// of rows is right.
    ///
    /// # Errors
    /// A sentence if a query does not find as many records as the study states.
    pub fn count_rows(&self) -> Result<(), Fault> {
        let (settings, Some(stored)) = (&self.settings, &self.stored) else { return Ok(()) };
        if let Some(asked) = &self.asked {
            asked.prepare(&*stored.generator)?;
        }
        let queries = &settings.workload.queries;
        let is_known = only_reads(settings) || only_adds(settings);
        if queries.is_empty() || !is_known || self.found.get().is_some() {
            return Ok(());
        }
        let counts = count_found(queries, &*stored.generator, settings.record.rows);
        for (query, count) in queries.iter().zip(&counts) {
            if let Some(rows) =
                query.rows.filter(|rows| rows != count && settings.record.scale.is_none_or(|s| s == 1.0))
            {
                let name = &query.name;
                return Err(fault!(
                    "workload.queries, query \"{name}\": finds {count} records and rows = {rows}";
                    "correct rows, or the conditions"
                ));
            }
        }
        // No other thread can have set it: nobody else has the work yet.
        let _ = self.found.set(counts);
        Ok(())
    }

    /// Returns the number of rows that each query must return; empty before [`Work::count_rows`] and if the numbers cannot be known.
    pub fn rows_found(&self) -> &[u64] {
        self.found.get().map_or(&[], Vec::as_slice)
    }

    /// Returns the right answer to a query. A window moves with the records that are added, and may hold any number of matching records.
    fn expected(&self, query: usize) -> Expect {
        match self.rows_found().get(query) {
            Some(rows) if !self.grows => Expect::RowCount(*rows),
            Some(rows) if self.settings.workload.queries[query].window.is_none() => Expect::RowsAtLeast(*rows),
            _ => Expect::Anything,
        }
    }

    /// Returns the tables to create, and the statements that each connection prepares.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the program that the connection of a client prepares.
    pub fn program_of(&self, client: u32) -> &Program {
        let last = self.of_clients.len().saturating_sub(1);
        self.of_clients.get((client as usize).min(last)).unwrap_or(&self.program)
    }

    /// Returns the programs that have tables of their own: one, or one for each client.
    pub fn programs(&self) -> &[Program] {
        if self.of_clients.len() > 1 { &self.of_clients } else { std::slice::from_ref(&self.program) }
    }

    /// Returns the generator of the records; `None` without records.
    pub fn generator(&self) -> Option<&dyn Generator> {
        self.stored.as_ref().map(|stored| &*stored.generator)
    }

    /// Returns the tables of events that are read while they are written; `None` for other workloads.
    pub fn events(&self) -> Option<&Arc<Events>> {
        self.events.as_ref()
    }

    /// Returns the table that holds one row for each record; `None` without records. If each client has tables of its own, this is the first client's.
    pub fn record_table(&self) -> Option<&str> {
        self.stored.as_ref().and_then(|stored| stored.layout.record_table())
    }

    /// Returns all tables that hold a row for each record.
    pub fn record_tables(&self) -> Vec<&str> {
        let place = |name| self.program.tables.iter().position(|table| table.name == name);
        let Some(name) = self.record_table() else { return Vec::new() };
        let Some(place) = place(name) else { return vec![name] };
        self.programs().iter().map(|program| program.tables[place].name.as_str()).collect()
    }

    /// Returns how records get a further field while they are in use; `None` without records.
    pub fn evolution(&self, field: &Column) -> Option<Evolution> {
        self.stored.as_ref().map(|stored| stored.layout.evolution(field))
    }

    /// Returns the number of rows of [`Work::record_table`] that a record has.
    pub fn rows_per_record(&self) -> u64 {
        self.stored.as_ref().map_or(1, |stored| stored.layout.rows_per_record())
    }

    /// Returns what is thrown away of the readings while others come in; `None` where all stay.
    pub fn retirement(&self) -> Option<&Retirement> {
        self.retirement.as_ref()
    }

    /// Returns the inserts that fill the tables with `record.rows` rows.
    pub fn preload(&self) -> Preload {
        let chunk = self.stored.as_ref().map_or(1, |stored| stored.chunk);
        Preload::new(self.settings.record.rows, self.settings.record.per_measurement, chunk)
    }

    /// Makes the workload of a client.
    ///
    /// # Errors
    /// As for [`Work::new`], which has already found all of them.
    pub fn workload(&self, client: Client) -> Result<Box<dyn Workload>, String> {
        let mut workload = build(&self.settings, client)?;
        if let Some(keys) = &self.keys {
            workload.join(keys);
        }
        Ok(workload)
    }

    /// Makes the workload of a background client.
    ///
    /// # Errors
    /// A missing background load; otherwise as for [`Work::new`], which has already found all of them.
    pub fn background(&self, client: Client) -> Result<Box<dyn Workload>, String> {
        let settings = self.background.as_ref().ok_or("there is no load in the background")?;
        build(settings, client)
    }

    /// Appends the steps of an operation to a request whose cells hold only the operation's parameters.
    #[inline]
    pub fn bind(&self, operation: &Operation, request: &mut Request) {
        match *operation {
            Operation::Statement { statement } | Operation::Replayed { statement, .. } => {
                let Some(own) = self.sql.get(usize::from(statement)) else { return };
                let mut first_cell = 0;
                for (statement, expect, parameters) in &own.steps {
                    request.steps.push(Step { statement: *statement, rows: 1, first_cell, expect: *expect });
                    first_cell += parameters;
                }
                request.carries.extend_from_slice(&own.carries);
            }
            Operation::Query { query } => {
                if let Some(stored) = &self.stored {
                    stored.layout.bind(operation, &*stored.generator, request);
                }
                if let Some(step) = request.steps.last_mut() {
                    step.expect = self.expected(usize::from(query));
                }
            }
            Operation::Ask { question, draw } => {
                if let Some(asked) = &self.asked {
                    asked.bind(question, draw, request);
                }
            }
            _ => {
                if let (Some(retirement), Operation::Insert { first, records }) = (&self.retirement, operation) {
                    retirement.note(request.client, first + u64::from(*records));
                }
                if let Some(stored) = &self.stored {
                    stored.layout.bind(operation, &*stored.generator, request);
                }
            }
        }
    }

    /// Returns whether rows hold several records each, whose number the column [`READINGS`](crate::layout::gorilla::READINGS) says.
    pub fn packs(&self) -> bool {
        self.stored.as_ref().is_some_and(|stored| stored.layout.packing().is_some())
    }

    /// Makes the answer to an operation from rows of several readings, and returns its number of rows; `None` where the rows are the answer.
    ///
    /// # Errors
    /// As a sentence, that a row cannot be unpacked.
    pub fn unpack(&self, operation: &Operation, rows: &mut Cells) -> Result<Option<u64>, String> {
        match (operation, &self.asked) {
            (Operation::Ask { question, draw }, Some(asked)) => asked.unpack(*question, *draw, rows),
            _ => Ok(None),
        }
    }

    /// Checks the rows of the answer to an operation, value by value. The answers to other operations than [`Operation::Ask`] are right.
    ///
    /// # Errors
    /// What is wrong, as a sentence that says what was asked.
    pub fn check(&self, operation: &Operation, rows: &Cells) -> Result<(), String> {
        match (operation, &self.asked, &self.stored) {
            (Operation::Ask { question, draw }, Some(asked), Some(stored)) => {
                asked.check(*question, *draw, rows, &*stored.generator)
            }
            _ => Ok(()),
        }
    }

    /// Fills an empty request with the next operation of a client, and returns the operation.
    #[inline]
    pub fn next(&self, workload: &mut dyn Workload, request: &mut Request) -> Operation {
        let operation = workload.next(&mut request.cells);
        self.bind(&operation, request);
        operation
    }

    /// Tells a client's workload that its operation has ended, and fills the request with the operation that follows at once, if any.
    #[inline]
    pub fn done(&self, workload: &mut dyn Workload, succeeded: bool, request: &mut Request) -> Option<Operation> {
        let operation = workload.done(succeeded)?;
        request.clear();
        self.bind(&operation, request);
        Some(operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::Statement;
    use crate::trial::{Fill, SqlStatement};

    fn settings(workload: &str, rows: u64) -> Settings {
        let mut settings = Settings::default();
        settings.record.type_name = "qos".to_owned();
        settings.record.table = "qos".to_owned();
        settings.record.per_measurement = 10;
        settings.record.rows = rows;
        settings.layout.name = "star".to_owned();
        settings.workload.name = workload.to_owned();
        settings.workload.batch = 5;
        let sql = "SELECT * FROM t WHERE id = ?".to_owned();
        let params = vec![Fill::Uniform(1.0, 9.0)];
        settings.workload.statements = vec![SqlStatement {
            name: None,
            sql,
            weight: 1.0,
            params,
            allow_empty: false,
            rows: None,
            then: Vec::new(),
        }];
        settings
    }

    #[test]
    fn own_statements_stand_behind_the_layouts_and_have_their_parameters() {
        for (rows, tables) in [(0, 0), (100, 2)] {
            let work = Work::new(&settings("sql", rows)).unwrap();
            assert_eq!(work.program().tables.len(), tables);
            let mut workload = work.workload(Client { number: 0, of: 1, seed: 1 }).unwrap();
            let mut request = Request::default();
            work.next(&mut *workload, &mut request);
            let [step] = request.steps[..] else { panic!("{request:?}") };
            assert!(matches!(work.program().statements[usize::from(step.statement)], Statement::Sql { .. }));
            assert_eq!((step.expect, request.cells.len()), (Expect::Rows, 1));
        }
    }

    #[test]
    fn only_measurements_of_several_records_need_a_statement_that_notes_their_end() {
        for layout in ["star", "star-hot"] {
            for (per_measurement, updates) in [(1, 0), (2, 1), (10, 1)] {
                let mut settings = settings("write", 0);
                settings.layout.name = layout.to_owned();
                settings.record.per_measurement = per_measurement;
                settings.workload.batch = 1;
                let work = Work::new(&settings).unwrap();
                let is_update = |statement: &&Statement| matches!(statement, Statement::Update { .. });
                let found = work.program().statements.iter().filter(is_update).count();
                assert_eq!(found, updates, "{layout} with {per_measurement} records a measurement");
            }
        }
    }

    #[test]
    fn requests_have_no_more_rows_than_the_program_says() {
        for (workload, rows) in [("write", 0), ("write", 2500), ("read", 2500)] {
            let work = Work::new(&settings(workload, rows)).unwrap();
            let mut workload = work.workload(Client { number: 0, of: 1, seed: 1 }).unwrap();
            let measured: Vec<_> = (0..20).map(|_| workload.next(&mut Default::default())).collect();
            for operation in work.preload().chain(measured) {
                let mut request = Request::default();
                work.bind(&operation, &mut request);
                assert!(!request.steps.is_empty());
                assert!(request.steps.iter().all(|step| step.rows as usize <= work.program().rows_max));
            }
        }
    }

    #[test]
    fn what_is_wrong_with_any_part_is_said_at_once() {
        let refusal = |change: fn(&mut Settings)| {
            let mut settings = settings("write", 0);
            change(&mut settings);
            Work::new(&settings).err().unwrap()
        };
        assert!(refusal(|settings| settings.workload.name = "wirte".to_owned()).contains("unknown workload.name"));
        assert!(refusal(|settings| settings.layout.name = "eva".to_owned()).contains("unknown layout.name"));
        assert!(refusal(|settings| settings.record.type_name = "x".to_owned()).contains("unknown record.type"));
        assert!(refusal(|settings| settings.workload.batch = 3).contains("workload.batch = 3"));
    }
}
