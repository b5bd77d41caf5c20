//! The statements in SQL for a program. Main type: [`Plan`].
//!
//! A statement that QuestDB does not execute at once is refused here, and already during planning.

use super::dialect::QuestdbDialect;
use super::value::{Guard, oid};
use crate::database::dialect::statement_text;
use crate::database::{DatabaseError, Dialect};
use crate::record::ColumnKind;
use crate::statement::{Asking, Program, Select, Statement, Table};

/// A statement as it is prepared.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    /// The text, with a placeholder for each value.
    pub text: String,
    /// The types of the values.
    pub types: Vec<u32>,
    /// What each value of a row that is inserted must be; `None` for a statement that reads.
    pub guards: Option<Vec<Guard>>,
}

impl Plan {
    /// Returns the statements for a program's.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] for a statement that QuestDB does not have.
    pub(super) fn of(program: &Program) -> Result<Vec<Plan>, DatabaseError> {
        if program.as_text {
            return Err(refused("its statements are prepared, and not sent as text"));
        }
        let dialect = QuestdbDialect::of(&program.tables);
        program.statements.iter().map(|statement| plan(statement, program, &dialect)).collect()
    }
}

fn plan(statement: &Statement, program: &Program, dialect: &QuestdbDialect) -> Result<Plan, DatabaseError> {
    let table_of = |name: &str| {
        let found = program.tables.iter().find(|table| table.name == name);
        let table = found.ok_or_else(|| refused(&format!("the table {name} is none of the study's")))?;
        if table.numbered { Err(refused("it does not number rows itself")) } else { Ok(table) }
    };
    match statement {
        Statement::Insert { table, columns } if !columns.is_empty() => {
            let table = table_of(table)?;
            let guards: Vec<_> = columns
                .iter()
                .map(|column| Guard::of(column, table.time.as_ref().map(|time| time.name.as_str())))
                .collect();
            let types = guards.iter().map(Guard::oid).collect();
            Ok(Plan { text: insert(table, statement, dialect), types, guards: Some(guards) })
        }
        Statement::Select(select) => {
            check_select(select)?;
            table_of(&select.from)?;
            read(statement_text(dialect, statement, 1), &statement.kinds())
        }
        Statement::SelectGroups { table, .. } => {
            table_of(table)?;
            read(statement_text(dialect, statement, 1), &statement.kinds())
        }
        Statement::Ask(asking) => {
            check_question(asking, table_of(&asking.from)?)?;
            read(statement_text(dialect, statement, 1), &statement.kinds())
        }
        Statement::Update { .. } | Statement::Delete { .. } => {
            Err(refused("it changes rows some time later and removes none, and neither is told"))
        }
        _ => Err(refused("it has no statement of this kind")),
    }
}

/// Returns the statement that inserts a row. The server gives the time of its arrival to a row that has no time of its own.
fn insert(table: &Table, statement: &Statement, dialect: &QuestdbDialect) -> String {
    let text = statement_text(dialect, statement, 1);
    let Some(arrival) = arrival_of(table) else { return text };
    let arrival = dialect.quote(&arrival);
    text.replacen(") VALUES (", &format!(", {arrival}) VALUES ("), 1).trim_end_matches(')').to_owned()
        + ", systimestamp())"
}

/// Returns the name of the column with the time at which a row has arrived; `None` where rows have a time of their own.
pub(super) fn arrival_of(table: &Table) -> Option<String> {
    if table.time.is_some() {
        return None;
    }
    let mut name = "timestamp".to_owned();
    while table.columns.iter().any(|column| column.name.eq_ignore_ascii_case(&name)) {
        name.push('_');
    }
    Some(name)
}

fn read(text: String, kinds: &[Option<ColumnKind>]) -> Result<Plan, DatabaseError> {
    let types: Option<Vec<u32>> = kinds.iter().map(|kind| kind.map(oid)).collect();
    let types = types.ok_or_else(|| refused("a value has no type of its own"))?;
    Ok(Plan { text, types, guards: None })
}

fn check_select(select: &Select) -> Result<(), DatabaseError> {
    match select {
        Select { joins, .. } if !joins.is_empty() => Err(refused("it reads rows of one table at a time here")),
        Select { for_update: true, .. } => Err(refused("it locks no rows")),
        _ => Ok(()),
    }
}

fn check_question(asking: &Asking, table: &Table) -> Result<(), DatabaseError> {
    if !asking.joins.is_empty() {
        return Err(refused("it reads rows of one table at a time here"));
    }
    if asking.has_quantiles() {
        return Err(refused("its quantiles are approximate; leave them out of the question's figures"));
    }
    if asking.has_ends() && asking.all_sources {
        return Err(refused(
            "it does not say which of several readings at the same time is the first; ask for the first or last reading of one source",
        ));
    }
    if asking.has_ends() && table.time.is_none() {
        return Err(refused("it has first and last readings in tables in the order of time, and this one has no time"));
    }
    Ok(())
}

pub(super) fn refused(why: &str) -> DatabaseError {
    DatabaseError::refused("questdb", why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::{Ask, Figure};
    use crate::statement::{ColumnRef, Comparison, Condition, SourceIndex, TableColumn, TimeColumn};

    fn table(time: Option<&str>) -> Table {
        let column = |name: &str| TableColumn { name: name.to_owned(), kind: ColumnKind::Int64, nullable: false };
        Table {
            name: "t".to_owned(),
            columns: ["source", "at"].map(column).into(),
            primary_key: vec!["at".to_owned()],
            numbered: false,
            unique: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            time: time.map(|name| TimeColumn { name: name.to_owned(), partitions: None }),
        }
    }

    fn at(name: &str) -> ColumnRef {
        ColumnRef { table: "t".to_owned(), column: name.to_owned() }
    }

    fn text(time: Option<&str>, statement: Statement) -> String {
        let program = Program { tables: vec![table(time)], statements: vec![statement], ..Program::default() };
        Plan::of(&program).unwrap().remove(0).text
    }

    #[test]
    fn rows_without_a_time_have_that_of_their_arrival() {
        let insert = || Statement::Insert { table: "t".to_owned(), columns: table(None).columns };
        assert_eq!(text(Some("at"), insert()), "INSERT INTO \"t\" (\"source\", \"at\") VALUES ($1, $2)");
        let right = "INSERT INTO \"t\" (\"source\", \"at\", \"timestamp\") VALUES ($1, $2, systimestamp())";
        assert_eq!(text(None, insert()), right);
    }

    #[test]
    fn times_are_read_as_whole_numbers_and_compared_as_they_are() {
        let condition = Condition { column: at("at"), kind: ColumnKind::Int64, comparison: Comparison::GreaterOrEqual };
        let columns = vec![at("source"), at("at")];
        let select = Select { columns, from: "t".to_owned(), conditions: vec![condition], ..Select::default() };
        let right = "SELECT \"t\".\"source\", CAST(\"t\".\"at\" AS LONG) FROM \"t\" WHERE \"t\".\"at\" >= $1";
        assert_eq!(text(Some("at"), Statement::Select(select)), right);
    }

    fn asking(ask: Ask, bucket: i64) -> Asking {
        Asking {
            ask,
            from: "t".to_owned(),
            joins: Vec::new(),
            source: at("source"),
            time: at("at"),
            least_time: None,
            columns: Vec::new(),
            all_sources: true,
            source_index: SourceIndex::None,
            has_span: false,
            bucket,
            most: 0,
            by: Figure::Mean,
            figures: Vec::new(),
        }
    }

    #[test]
    fn questions_are_asked_in_the_way_of_questdb() {
        let asked = |ask, bucket| text(Some("at"), Statement::Ask(asking(ask, bucket)));
        let newest = asked(Ask::Newest, 0);
        assert!(newest.ends_with(" FROM \"t\" LATEST ON \"at\" PARTITION BY \"source\""), "{newest}");
        let buckets = asked(Ask::Buckets, 5_000_000_000);
        assert!(buckets.contains(" FROM \"t\" SAMPLE BY 5s ALIGN TO CALENDAR) ORDER BY"), "{buckets}");
        let elsewhere = text(None, Statement::Ask(asking(Ask::Newest, 0)));
        assert!(elsewhere.contains("JOIN (SELECT \"source\", MAX(\"at\")"), "a table in another order: {elsewhere}");
        let odd = asked(Ask::Buckets, 5_000_000_001);
        assert!(odd.contains("GROUP BY (CAST(\"t\".\"at\" AS LONG) / 5000000001) * 5000000001"), "{odd}");
    }

    #[test]
    fn figures_that_it_does_not_give_exactly_are_refused() {
        let refusal = |time: Option<&str>, figures: &[Figure], all_sources| {
            let asking = Asking { figures: figures.to_vec(), all_sources, ..asking(Ask::Aggregate, 0) };
            let statements = vec![Statement::Ask(asking)];
            let program = Program { tables: vec![table(time)], statements, ..Program::default() };
            Plan::of(&program).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let ends = [Figure::First, Figure::Last];
        assert_eq!(refusal(Some("at"), &ends, false), "");
        assert!(refusal(Some("at"), &ends, true).contains("reading of one source"));
        assert!(refusal(None, &ends, false).contains("has no time"));
        assert!(refusal(Some("at"), &[Figure::Quantile(500_000)], false).contains("approximate"));
    }

    #[test]
    fn what_it_cannot_do_is_refused_with_the_reason() {
        let key = table(None).columns;
        let delete = Statement::Delete { table: "t".to_owned(), key };
        let program = Program { tables: vec![table(None)], statements: vec![delete], ..Program::default() };
        assert!(Plan::of(&program).unwrap_err().to_string().contains("removes none"));
    }
}
