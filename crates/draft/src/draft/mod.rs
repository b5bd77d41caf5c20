//! Drafts a study from an existing database: its tables, the contents of their columns, and the statements that run on it.
//!
//! Main function: [`draft`]. Invariant: the database is only read, and no query scans a large table.

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

/// The most statements in a study.
const STATEMENTS_MOST: usize = 60;
/// The most omitted statements that are listed by name.
const LEFT_OUT_MOST: usize = 20;
/// The longest mean duration of a call, in seconds, at which a statement is tried.
const TRIED_S_MOST: f64 = 0.1;
/// The most attempts to widen or narrow ranges.
const WIDENED_MOST: usize = 6;
/// The least share of the workload for a statement to be examined; rarer statements are counted together.
const SHARE_LEAST: f64 = 0.0005;

/// Where a study comes from.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'o> {
    /// The address without its password, or the path of a file.
    pub address: &'o str,
    /// Whether the address is a file.
    pub is_file: bool,
    /// The database's name in studies.
    pub database: &'o str,
    /// The journal mode of an SQLite file, if known: it changes the cost of reads and writes.
    pub journal: Option<&'o str>,
    /// The name of the study.
    pub name: &'o str,
    /// The file to which the study is written.
    pub file: &'o str,
    /// Names and values of the original's settings for memory, plans and durability.
    pub settings: &'o [(String, String)],
    /// The time at which the study is drafted.
    pub time: &'o str,
}

/// A statement of the study.
#[derive(Debug, Clone, PartialEq)]
pub struct DraftedStatement {
    /// Text and fills.
    pub fitted: Fitted,
    /// Its share of all statements that ran, including those left out.
    pub share: f64,
    /// Rows that a call returned or changed, if known.
    pub rows: Option<f64>,
    /// Seconds that a call took, if known.
    pub seconds: Option<f64>,
}

/// A statement that is left out of the study.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOut {
    /// The text of the statement.
    pub sql: String,
    /// Its share of all statements that ran.
    pub share: f64,
    /// The reason for which it is left out.
    pub because: String,
}

/// A drafted study.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Drafted {
    /// The statements of the study.
    pub statements: Vec<DraftedStatement>,
    /// The statements that are left out.
    pub left_out: Vec<LeftOut>,
    /// Where the statements come from, in sentences.
    pub origin: Vec<String>,
    /// Statements per second, if known.
    pub rate_per_s: Option<f64>,
}

/// Returns the names of the catalogue's tables and columns.
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
    /// Prepares a statement on the database without executing it.
    ///
    /// # Errors
    /// The database's reason for rejecting the statement.
    fn prepare(&mut self, fitted: &Fitted) -> Result<(), String>;

    /// Returns the mean number of rows per call over the calls made within a second; `None` if it could not be measured. Only for statements that read.
    fn rows_of_call(&mut self, fitted: &Fitted) -> Option<f64>;
}

/// Drafts a study from the statements that ran.
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

/// Adjusts the width of ranges until a statement returns as many rows as its calls did, and adds a remark where the number still differs.
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

/// Returns one lookup by key for each table, for a workload of which only the tables' keys are known.
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

/// Gives each statement a unique name of at most 40 letters.
fn name_apart(statements: &mut [DraftedStatement]) {
    /// Letters that a name keeps in front of a number.
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
