//! A study drawn from a database that is there: its tables, what their columns hold, and the statements that run on it.
//!
//! Main function: [`draft`]. Invariant: the database is asked nothing but reads, none of which goes through a large table.

pub mod catalogue;
pub mod fit;
pub mod private;
pub mod seen;
pub mod sql;
pub mod traced;
pub mod written;

use catalogue::{Catalogue, Table};
use fit::{Fitted, Fitter};
use seen::{Ran, Seen};
use sql::Known;

use crate::units::show_number;

/// Statements of a study, at most.
const STATEMENTS_MOST: usize = 60;
/// Statements that are left out and named, at most.
const LEFT_OUT_MOST: usize = 20;
/// Seconds of a call, up to which a statement is tried.
const TRIED_S_MOST: f64 = 0.1;
/// How often ranges are made wider or narrower.
const WIDENED_MOST: usize = 6;
/// The share of what ran from which on a statement is looked at: rarer ones are counted together.
const SHARE_LEAST: f64 = 0.0005;

/// Where a study comes from.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'o> {
    /// The address without its password, or the path of a file.
    pub address: &'o str,
    /// Whether it is a file.
    pub is_file: bool,
    /// The database's name in studies.
    pub database: &'o str,
    /// How a file of SQLite keeps its journal, where that is known: reads and writes cost otherwise with another.
    pub journal: Option<&'o str>,
    /// What the study is called.
    pub name: &'o str,
    /// The file that it is written to.
    pub file: &'o str,
    /// What the original is set to, of what decides over memory, plans and durability: names and values.
    pub settings: &'o [(String, String)],
    /// When.
    pub time: &'o str,
}

/// A statement of the study.
#[derive(Debug, Clone, PartialEq)]
pub struct DraftedStatement {
    /// Text and fills.
    pub fitted: Fitted,
    /// Its share of what ran, of statements that are left out too.
    pub share: f64,
    /// Rows that a call gave or changed, where that is known.
    pub rows: Option<f64>,
    /// Seconds that a call took, where that is known.
    pub seconds: Option<f64>,
}

/// A statement that is none of the study.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOut {
    /// Its text.
    pub sql: String,
    /// Its share of what ran.
    pub share: f64,
    /// Why.
    pub because: String,
}

/// A study that was drawn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Drafted {
    /// What it has.
    pub statements: Vec<DraftedStatement>,
    /// What it has not.
    pub left_out: Vec<LeftOut>,
    /// Where its statements come from, in sentences.
    pub origin: Vec<String>,
    /// Statements a second, where that is known.
    pub rate_per_s: Option<f64>,
}

/// The names of what there is.
pub fn known(catalogue: &Catalogue) -> Vec<Known> {
    let of = |table: &Table| Known {
        schema: table.schema.clone(),
        name: table.name.clone(),
        columns: table.columns.iter().map(|column| column.name.clone()).collect(),
    };
    catalogue.tables.iter().map(of).collect()
}

/// Tries statements on the database.
pub trait Trier {
    /// Whether the database takes a statement, which is not executed.
    ///
    /// # Errors
    /// Why it does not.
    fn prepare(&mut self, fitted: &Fitted) -> Result<(), String>;

    /// How many rows a call gives, on average over calls within a second; none where that could not be seen. Only for statements that read.
    fn rows_of_call(&mut self, fitted: &Fitted) -> Option<f64>;
}

/// Draws a study from what ran.
pub fn draft(fitter: &Fitter<'_>, seen: Seen, trier: &mut dyn Trier) -> Drafted {
    let mut drafted = Drafted::default();
    let is_of_server = |ran: &Ran| fitter.is_of_server(&ran.text);
    let (of_server, own): (Vec<Ran>, Vec<Ran>) = seen.statements.into_iter().partition(is_of_server);
    let total: f64 = own.iter().map(|ran| ran.calls).sum();
    let (mut further, mut further_calls) = (0, 0.0);
    for ran in own {
        let share = ran.calls / total.max(1.0);
        if drafted.statements.len() >= STATEMENTS_MOST || share < SHARE_LEAST {
            (further, further_calls) = (further + 1, further_calls + share);
            continue;
        }
        let per_call = |total: Option<f64>| total.map(|total| total / ran.calls);
        let fitted = fitter.fit(&ran).and_then(|mut fitted| {
            trier.prepare(&fitted).map_err(|why| format!("the database does not take it: {why}"))?;
            if per_call(ran.seconds).is_none_or(|seconds| seconds <= TRIED_S_MOST) {
                calibrate(&mut fitted, trier);
            }
            Ok(fitted)
        });
        match fitted {
            Ok(fitted) => {
                let statement =
                    DraftedStatement { fitted, share, rows: per_call(ran.rows), seconds: per_call(ran.seconds) };
                drafted.statements.push(statement);
            }
            Err(because) if drafted.left_out.len() < LEFT_OUT_MOST => {
                drafted.left_out.push(LeftOut { sql: ran.text, share, because });
            }
            Err(_) => (further, further_calls) = (further + 1, further_calls + share),
        }
    }
    if further > 0 {
        let because = format!(
            "those of less than {} % each are left out, a study has {STATEMENTS_MOST} at most, and {LEFT_OUT_MOST} that are not understood are named",
            show_number(100.0 * SHARE_LEAST)
        );
        drafted.left_out.push(LeftOut { sql: format!("{further} further statements"), share: further_calls, because });
    }
    let asked: f64 = of_server.iter().map(|ran| ran.calls).sum();
    if asked > 0.0 {
        drafted.origin.push(format!("Left out: {asked:.0} calls of statements about the server itself."));
    }
    for (what, calls) in seen.passed_over {
        drafted.origin.push(format!("Left out: {calls:.0} calls of {what}."));
    }
    drafted.rate_per_s = seen.seconds.filter(|seconds| *seconds > 0.0).map(|seconds| total / seconds);
    drafted.origin.extend(seen.notes);
    name_apart(&mut drafted.statements);
    drafted
}

/// Makes ranges as wide as they have to be for the rows that calls gave, and says where a statement still gives others.
fn calibrate(fitted: &mut Fitted, trier: &mut dyn Trier) {
    let Some(wanted) = fitted.rows.filter(|rows| *rows > 0.0 && !fitted.writes && !fitted.fills.is_empty()) else {
        return;
    };
    let mut given = trier.rows_of_call(fitted);
    for _ in 0..WIDENED_MOST {
        let Some(rows) = given.filter(|rows| *rows > 0.0 && (rows / wanted - 1.0).abs() > 0.02) else { break };
        if !fitted.widen(wanted / rows) {
            break;
        }
        given = trier.rows_of_call(fitted);
    }
    if let Some(rows) = given.filter(|rows| (rows / wanted - 1.0).abs() > 0.1) {
        fitted.remarks.push(format!("as it stands here it gives {}", written::rows_text(rows)));
    }
}

/// Statements for tables of which nothing is known but their keys: a row of each is looked up by its key.
pub fn lookups(catalogue: &Catalogue, quote: &dyn Fn(&str) -> String) -> Seen {
    let of = |table: &Table| {
        let key = table.keys.first().filter(|_| table.rows >= 1.0 && !table.is_view)?;
        let conditions: Vec<String> =
            key.iter().map(|column| format!("{} = ?", quote(&table.columns[*column].name))).collect();
        let literals = vec![sql::Literal::Parameter(None); key.len()];
        let text = format!("SELECT * FROM {} WHERE {}", table.quoted, conditions.join(" AND "));
        Some(Ran { text, literals, calls: 1.0, rows: Some(1.0), seconds: None, samples: Vec::new(), broken: None })
    };
    Seen { statements: catalogue.tables.iter().filter_map(of).collect(), ..Seen::default() }
}

/// Gives each statement a name of its own, of 40 letters at most.
fn name_apart(statements: &mut [DraftedStatement]) {
    /// Letters that a name has room for before a number.
    const LETTERS: usize = 36;
    let mut taken: Vec<String> = Vec::new();
    for statement in statements {
        let base: String = statement.fitted.name.chars().take(LETTERS).collect::<String>().trim_end().to_owned();
        let numbered = (2_u32..).map(|number| format!("{base} {number}"));
        let is_free = |name: &String| !taken.contains(name) && !crate::operation::KindNames::is_taken(name);
        let name = std::iter::once(base.clone()).chain(numbered).find(is_free).unwrap_or(base.clone());
        taken.push(name.clone());
        statement.fitted.name = name;
    }
}
