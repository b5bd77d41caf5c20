//! The workload `sql`: a study's own statements, single or several in a transaction, chosen by weight, with parameters filled anew
//! each time.

use super::{Client, Entry, Workload};
use crate::data::Parameters;
use crate::layout::Access;
use crate::operation::Operation;
use crate::random::Stream;
use crate::record::Cells;
use crate::statement::{Carry, Expect, SqlForm, Statement, parameters_of};
use crate::trial::{Fill, Settings, SqlPart, SqlStatement};

/// Registry entry.
pub(super) static SQL: Entry = Entry {
    name: "sql",
    summary: "statements of your own with ? parameters, alone or in transactions, chosen by weight",
    needs_tables: false,
    keeps_records: false,
    access: |_, _| Ok(Access::default()),
    build: |settings, client| Ok(Box::new(Sql::new(settings, client)?)),
};

/// Registry entry.
pub(super) static CONNECT: Entry = Entry {
    name: "connect",
    summary: "the same, each operation over a new connection: opened, asked (SELECT 1 unless statements are given), closed",
    ..SQL
};

/// Separates the random numbers that choose from those that fill.
const LANE: u64 = 0x7371_6c00;

struct Sql {
    statements: Vec<Prepared>,
    choice: Stream,
    client: Client,
}

/// A statement or transaction that is ready to be chosen.
struct Prepared {
    /// Share of all 64-bit words that choose this statement or one before it.
    below: u64,
    /// The parameters of all statements of the transaction, one after another.
    parameters: Parameters,
    executed: u64,
}

impl Sql {
    fn new(settings: &Settings, client: Client) -> Result<Self, String> {
        let statements = &settings.workload.statements;
        check(statements)?;
        check_answers(settings)?;
        let total: f64 = statements.iter().map(|statement| statement.weight).sum();
        let mut sum = 0.0;
        let mut prepared = Vec::with_capacity(statements.len());
        for (number, statement) in statements.iter().enumerate() {
            sum += statement.weight;
            // Conversion of a float stops at the largest word, which is where the last share ends.
            let below = (sum / total * 2.0_f64.powi(64)) as u64;
            let parameters = Parameters::new(statement.fills(), &settings.workload.asked);
            let parameters = parameters.map_err(|error| format!("{}: {error}", place(number)))?;
            prepared.push(Prepared { below, parameters, executed: 0 });
        }
        Ok(Sql { statements: prepared, choice: Stream::new(client.seed, u64::from(client.number), LANE), client })
    }
}

impl Workload for Sql {
    #[inline]
    fn next(&mut self, parameters: &mut Cells) -> Operation {
        let chosen = match self.statements.len() {
            1 => 0,
            count => {
                let word = self.choice.word();
                self.statements.partition_point(|statement| statement.below <= word).min(count - 1)
            }
        };
        let statement = &mut self.statements[chosen];
        // All clients together count through a sequence without a gap, as long as they are equally fast.
        let index = u64::from(self.client.number) + statement.executed * u64::from(self.client.of.max(1));
        statement.executed += 1;
        statement.parameters.fill(self.client.seed, index, (chosen as u64) << 32, parameters);
        Operation::Statement { statement: chosen as u16 }
    }
}

/// One of the study's own operations, as databases prepare it.
pub(super) struct OwnOperation {
    /// For each statement, what is prepared, the right answer, and the number of its parameters.
    pub(super) statements: Vec<(Statement, Expect, usize)>,
    /// The parameters, of all statements, whose values come from answers.
    pub(super) carries: Vec<Carry>,
}

/// One of the study's own operations: for each of its steps the statement in the program, the right answer, and the number of parameters; and
/// the parameters whose values come from answers.
#[derive(Default)]
pub(super) struct OwnSteps {
    pub(super) steps: Vec<(u16, Expect, u32)>,
    pub(super) carries: Vec<Carry>,
}

/// Returns the operations as databases prepare them. Statements that are not queries may change nothing.
pub(super) fn program(statements: &[SqlStatement]) -> impl Iterator<Item = OwnOperation> {
    statements.iter().map(|statement| {
        let carries = carries(statement);
        let is_carried_from = |step: usize| carries.iter().any(|carry| usize::from(carry.step) == step);
        let prepared = |(step, Part { sql, params, allow_empty, rows }): (usize, Part<'_>)| {
            let expect = match rows {
                Some(rows) if is_query(sql) => Expect::RowCount(rows),
                Some(rows) => Expect::Changed(rows),
                // A value that a later statement needs must be there.
                None if !allow_empty && is_carried_from(step) => Expect::RowsAtLeast(1),
                None if !allow_empty && is_query(sql) => Expect::Rows,
                None => Expect::Anything,
            };
            (Statement::Sql { sql: sql.to_owned(), allow_empty, form: SqlForm::Prepared }, expect, params.len())
        };
        let statements = parts(statement).enumerate().map(prepared).collect();
        OwnOperation { statements, carries }
    })
}

/// Returns the parameters whose values come from answers.
fn carries(statement: &SqlStatement) -> Vec<Carry> {
    let fills: Vec<&Fill> = statement.fills().collect();
    let carry = |cell: usize| {
        let (step, value) = Parameters::answer_of(&fills, cell)?;
        let from_zero = |number: u32| u16::try_from(number.saturating_sub(1)).unwrap_or(u16::MAX);
        Some(Carry { step: from_zero(step), column: from_zero(value), cell: cell as u32 })
    };
    (0..fills.len()).filter_map(carry).collect()
}

/// Checks that values from answers are available when they are needed.
fn check_answers(settings: &Settings) -> Result<(), String> {
    for (number, statement) in settings.workload.statements.iter().enumerate() {
        let carries = carries(statement);
        let ends = parts(statement).scan(0, |end, part| {
            *end += part.params.len();
            Some(*end)
        });
        let ends: Vec<usize> = ends.collect();
        for carry in &carries {
            let (at, named) = (format!("{}: params, number {}", place(number), carry.cell + 1), carry.step + 1);
            let own = ends.partition_point(|end| *end <= carry.cell as usize);
            if usize::from(carry.step) >= own {
                let remedy = "name an earlier one of its transaction, from 1";
                return Err(format!(
                    "{at}: answer_of names statement {named}, which is not answered before statement {}; {remedy}",
                    own + 1
                ));
            }
            if settings.load.pipeline {
                let remedy = "leave load.pipeline out";
                return Err(format!(
                    "{at}: answer_of needs the answer to statement {named}, and with load.pipeline = true all statements leave before \
                     anything is answered; {remedy}"
                ));
            }
        }
    }
    Ok(())
}

/// A statement, single or part of a transaction.
struct Part<'s> {
    sql: &'s str,
    params: &'s [Fill],
    allow_empty: bool,
    rows: Option<u64>,
}

/// Returns a statement and those that follow it in its transaction.
fn parts(statement: &SqlStatement) -> impl Iterator<Item = Part<'_>> {
    let SqlStatement { sql, params, allow_empty, rows, then, .. } = statement;
    let first = Part { sql, params, allow_empty: *allow_empty, rows: *rows };
    let then = then.iter().map(|part| {
        let SqlPart { sql, params, allow_empty, rows } = part;
        Part { sql, params, allow_empty: *allow_empty, rows: *rows }
    });
    std::iter::once(first).chain(then)
}

/// Returns the first statement that is not a query, judging by its text; `None` if all only read.
pub fn writing_statement(statements: &[SqlStatement]) -> Option<&str> {
    statements.iter().flat_map(parts).map(|part| part.sql).find(|sql| !is_query(sql))
}

/// Returns whether a statement answers with rows, judging by its first word and, after WITH, by whether it contains a word that changes something.
fn is_query(sql: &str) -> bool {
    let words = || sql.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let is_one_of = |word: &str, list: &[&str]| list.iter().any(|listed| word.eq_ignore_ascii_case(listed));
    match words().next() {
        Some(first) if is_one_of(first, &["with"]) => {
            !words().any(|word| is_one_of(word, &["insert", "update", "delete", "merge", "replace"]))
        }
        Some(first) => is_one_of(first, &["select", "values", "table", "show"]),
        None => false,
    }
}

fn check(statements: &[SqlStatement]) -> Result<(), String> {
    if statements.is_empty() {
        return Err("workload \"sql\" needs at least one statement in workload.statements".to_owned());
    }
    if statements.len() > usize::from(u16::MAX) {
        return Err(format!("workload.statements has {}; at most {} are allowed", statements.len(), u16::MAX));
    }
    for (number, statement) in statements.iter().enumerate() {
        let at = place(number);
        if !(statement.weight > 0.0 && statement.weight.is_finite()) {
            return Err(format!("{at}: weight is {}; write a number above 0", statement.weight));
        }
        let asked = statement.fills().flat_map(Fill::parts).filter_map(Fill::query);
        if let Some(sql) = asked.into_iter().find(|sql| !is_query(sql)) {
            return Err(format!("{at}: params: \"{sql}\" is no query; write one that begins with SELECT"));
        }
        for Part { sql, params, .. } in parts(statement) {
            if sql.trim().is_empty() {
                return Err(format!("{at}: sql is empty; write a statement"));
            }
            let (wanted, given) = (parameters_of(sql), params.len());
            if wanted != given {
                return Err(format!(
                    "{at}: the statement has {wanted} parameters (?) but params has {given}; each ? outside of quotes takes one"
                ));
            }
        }
    }
    Ok(())
}

fn place(number: usize) -> String {
    format!("workload.statements, number {}", number + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Cell;

    fn statement(sql: &str, weight: f64, params: Vec<Fill>) -> SqlStatement {
        SqlStatement {
            name: None,
            sql: sql.to_owned(),
            weight,
            params,
            allow_empty: false,
            rows: None,
            then: Vec::new(),
        }
    }

    fn sql(statements: Vec<SqlStatement>, number: u32) -> Result<Sql, String> {
        let mut settings = Settings::default();
        settings.workload.statements = statements;
        Sql::new(&settings, Client { number, of: 2, seed: 5 })
    }

    #[test]
    fn statements_are_chosen_by_weight() {
        let chosen = |weights: [f64; 3]| {
            let statements = weights.map(|weight| statement("SELECT 1", weight, Vec::new())).to_vec();
            let mut sql = sql(statements, 0).unwrap();
            let mut counts = [0.0_f64; 3];
            for _ in 0..30_000 {
                let Operation::Statement { statement } = sql.next(&mut Cells::new()) else { panic!() };
                counts[usize::from(statement)] += 1.0;
            }
            counts
        };
        let counts = chosen([95.0, 4.0, 1.0]);
        let expected = [28_500.0, 1200.0, 300.0];
        let chi2: f64 = counts.iter().zip(expected).map(|(seen, expected)| (seen - expected).powi(2) / expected).sum();
        assert!(chi2 < 18.5, "chi-square {chi2} of {counts:?}; 18.5 with 2 degrees has a probability of 0.0001");
    }

    #[test]
    fn parameters_are_filled_and_sequences_do_not_collide_between_clients() {
        let statements =
            || vec![statement("INSERT INTO t VALUES (?, ?)", 1.0, vec![Fill::Sequence(1, 1), Fill::RandomText(3)])];
        let mut ids = Vec::new();
        for client in 0..2 {
            let mut sql = sql(statements(), client).unwrap();
            for _ in 0..3 {
                let mut cells = Cells::new();
                sql.next(&mut cells);
                assert_eq!(cells.len(), 2);
                ids.push(cells.get(0));
            }
        }
        assert_eq!(ids, [1, 3, 5, 2, 4, 6].map(Cell::Int));
    }

    #[test]
    fn statements_that_cannot_be_executed_are_refused() {
        let refusal = |statements| sql(statements, 0).err().unwrap();
        assert!(refusal(Vec::new()).contains("at least one statement"));
        assert_eq!(
            refusal(vec![statement("SELECT '?' WHERE x = ?", 1.0, Vec::new())]),
            "workload.statements, number 1: the statement has 1 parameters (?) but params has 0; each ? outside of quotes \
             takes one"
        );
        assert!(refusal(vec![statement("SELECT 1", 0.0, Vec::new())]).contains("weight is 0"));
        assert!(refusal(vec![statement(" ", 1.0, Vec::new())]).contains("sql is empty"));
        let wrong = statement("SELECT ?", 1.0, vec![Fill::Uniform(2.0, 1.0)]);
        assert!(refusal(vec![wrong]).starts_with("workload.statements, number 1: params, number 1: uniform"));
    }

    fn transaction(parts: Vec<(&str, Vec<Fill>)>) -> SqlStatement {
        let mut parts = parts.into_iter();
        let (sql, params) = parts.next().unwrap();
        let then = parts.map(|(sql, params)| SqlPart { sql: sql.to_owned(), params, allow_empty: false, rows: None });
        SqlStatement { then: then.collect(), ..statement(sql, 1.0, params) }
    }

    #[test]
    fn what_answers_bring_is_carried_to_its_place() {
        let parts = vec![
            ("SELECT a, b FROM t WHERE id = ?", vec![Fill::Uniform(1.0, 9.0)]),
            ("UPDATE t SET a = ?, b = ?, c = ?", vec![Fill::AnswerOf(1, 2), Fill::Number(1.0), Fill::Same(2)]),
            ("INSERT INTO u VALUES (?) RETURNING id", vec![Fill::AnswerOf(1, 1)]),
            ("UPDATE u SET x = ? WHERE id = ?", vec![Fill::Same(1), Fill::AnswerOf(3, 1)]),
        ];
        let whole = transaction(parts);
        let made: Vec<OwnOperation> = program(std::slice::from_ref(&whole)).collect();
        let carry = |step, column, cell| Carry { step, column, cell };
        assert_eq!(made[0].carries, [carry(0, 1, 1), carry(0, 1, 3), carry(0, 0, 4), carry(2, 0, 6)]);
        let expected: Vec<Expect> = made[0].statements.iter().map(|(_, expect, _)| *expect).collect();
        let least = Expect::RowsAtLeast(1);
        assert_eq!(expected, [least, Expect::Anything, least, Expect::Anything], "what is needed has to be there");
        let mut cells = Cells::new();
        sql(vec![whole], 0).unwrap().next(&mut cells);
        let given: Vec<bool> = cells.as_slice().iter().map(|cell| *cell != Cell::Null).collect();
        assert_eq!(given, [true, false, true, false, false, true, false]);
    }

    #[test]
    fn answers_that_are_not_there_in_time_are_refused() {
        let refusal = |parts| sql(vec![transaction(parts)], 0).err().unwrap();
        let own = refusal(vec![("SELECT ?", vec![Fill::AnswerOf(1, 1)])]);
        assert_eq!(
            own,
            "workload.statements, number 1: params, number 1: answer_of names statement 1, which is not answered before \
             statement 1; name an earlier one of its transaction, from 1"
        );
        let later = refusal(vec![("SELECT 1", vec![]), ("SELECT ?", vec![Fill::AnswerOf(3, 1)]), ("SELECT 2", vec![])]);
        assert!(later.contains("answer_of names statement 3, which is not answered before statement 2"), "{later}");
        let plus = vec![Fill::AnswerOf(1, 1), Fill::Plus(1, Box::new(Fill::Number(1.0)))];
        let added = refusal(vec![("SELECT 1", vec![]), ("SELECT ?, ?", plus)]);
        assert!(added.contains("params, number 2: plus cannot add to what a statement answers"), "{added}");
        let mut settings = Settings::default();
        settings.workload.statements =
            vec![transaction(vec![("SELECT 1", vec![]), ("SELECT ?", vec![Fill::AnswerOf(1, 1)])])];
        settings.load.pipeline = true;
        let together = Sql::new(&settings, Client { number: 0, of: 1, seed: 5 }).err().unwrap();
        assert!(together.contains("with load.pipeline = true all statements leave before"), "{together}");
    }

    #[test]
    fn only_queries_are_expected_to_find_rows() {
        for query in ["SELECT 1", "  (select 1)", "WITH a AS (SELECT 1) SELECT * FROM a", "values (1)"] {
            assert!(is_query(query), "{query}");
        }
        for other in ["UPDATE t SET a = 1", "WITH a AS (SELECT 1) DELETE FROM t", "", "INSERT INTO t SELECT 1"] {
            assert!(!is_query(other), "{other}");
        }
    }
}
