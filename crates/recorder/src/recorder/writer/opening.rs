//! Decides whether a lane's row of the ledger is this spool's or a copy's: table `loadline_opening`. Main function: [`standing`], pure.
//!
//! A row of the ledger says up to which sequence entries are dealt with. That holds for a spool's entries only as far as the spool
//! and the one that moved the row have the same entries. A spool that was restored from a copy gives new entries sequences that the row has
//! passed already; so does a copy that works at the same time. Therefore each opening of a spool registers itself before it moves the
//! row, and those before it that the row's history does not have: with the token of the one before, and the newest entry when it began.
//!
//! Openings are a tree: copies of a file are branches. Two openings have the same entries up to where their branches part, which is the older
//! of the newest entries of the first opening on each branch behind the last one that they have in common.
//!
//! Invariant: an entry that the ledger has passed is given up only if the opening that passed it had the same entry.

use std::collections::{HashMap, HashSet};

use super::ledger::{Ledger, TABLE as LEDGER};
use super::refusal::{Meaning, meaning};
use crate::database::{DatabaseError, Session};
use crate::layout::recorded::hash_hex;
use crate::record::ColumnKind;
use crate::recorder::spool::{LaneOpening, Opening};
use crate::statement::{Expect, Program, Request, SqlForm, Statement, Step, Table, TableColumn};

pub(super) const TABLE: &str = "loadline_opening";

/// The number of openings of a row that are remembered.
const OPENINGS_MAX: i64 = 1_000;
/// The token of the opening before the first one.
const ROOT: &str = "";

/// An opening that has registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Registered {
    /// The opening's position in the row's history, from 1.
    pub number: i64,
    /// The opening's token.
    pub token: String,
    /// The token of the spool's opening before it.
    pub parent: String,
    /// How far the row had come when it registered.
    pub sequence: i64,
    /// The newest entry of the spool when the opening began.
    pub newest: i64,
}

/// The relation of a lane's opening to its row of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// The opening was the last to register: the row tells how far the lane has come.
    Own,
    /// The opening may register: everything that the row has passed is this spool's.
    Free,
    /// The opening was registered, and another one came after it.
    Superseded {
        /// The entry that the row had come to by then.
        through: i64,
    },
    /// The opening was registered, and the database has forgotten that.
    Forgotten,
    /// The row has passed entries that this spool does not have, or for which it has others: its branch needs a row of its own.
    Parted {
        /// The last entry that both have in common.
        same_through: i64,
        /// The name of the branch's row, which other copies on the same branch find too.
        recorder: String,
    },
}

/// Returns how a lane's opening stands to its row, which has come to `sequence`; `history` lists the openings registered there, the oldest first.
pub(super) fn standing(sequence: i64, history: &[Registered], own: &LaneOpening) -> Standing {
    let place = history.iter().rposition(|registered| registered.token == own.token());
    match place.map(|place| history.get(place + 1)) {
        Some(None) => return Standing::Own,
        Some(Some(next)) => return Standing::Superseded { through: next.sequence },
        None if own.is_checked => return Standing::Forgotten,
        None => {}
    }
    match Lineage::of(own, history).parts_at(sequence) {
        None => Standing::Free,
        Some((same_through, branch)) => Standing::Parted { same_through, recorder: hash_hex(&[&own.recorder, branch]) },
    }
}

/// A spool's openings, compared with those that have moved a row.
struct Lineage<'a> {
    /// The spool's openings, the present one last.
    openings: &'a [Opening],
    /// The positions of the spool's openings, by token.
    places: HashMap<&'a str, usize>,
    history: &'a [Registered],
    by_token: HashMap<&'a str, &'a Registered>,
}

impl<'a> Lineage<'a> {
    fn of(own: &'a LaneOpening, history: &'a [Registered]) -> Self {
        let openings = &own.openings;
        let places = openings.iter().enumerate().map(|(place, opening)| (opening.token.as_str(), place)).collect();
        let by_token = history.iter().map(|registered| (registered.token.as_str(), registered)).collect();
        Lineage { openings, places, history, by_token }
    }

    /// Returns the last entry that this spool and the row have in common, and the first of the spool's openings that the row does not know; `None` if
    /// the row has passed only entries of this spool.
    fn parts_at(&self, sequence: i64) -> Option<(i64, &str)> {
        let is_own = |registered: &Registered| self.places.contains_key(registered.token.as_str());
        // When one of the spool's own openings registered, everything that the row had passed was the spool's.
        let first = match self.history.iter().rposition(is_own) {
            Some(place) => place,
            // Earlier openings are forgotten, so nothing is known to be the same.
            None if self.history.first().is_some_and(|first| first.number > 1) => {
                return (sequence > 0).then(|| self.nothing());
            }
            None => {
                let end = self.history.first().map_or(sequence, |first| first.sequence);
                let (same, branch) = self.same_as(ROOT);
                if same < end {
                    return Some((same, branch));
                }
                0
            }
        };
        let behind = self.history.iter().skip(first + 1).map(|next| next.sequence).chain([sequence]);
        let parted = |(registered, end): (&Registered, i64)| {
            let (same, branch) = self.same_as(&registered.token);
            (registered.sequence < end && same < end).then(|| (same.max(registered.sequence), branch))
        };
        self.history.iter().skip(first).zip(behind).find_map(parted)
    }

    /// Returns the last entry that this spool has in common with another opening, and the first opening of the spool behind it.
    fn same_as(&self, token: &str) -> (i64, &str) {
        let (mut token, mut branch) = (token, i64::MAX);
        let parting = |place: usize, branch: i64| match self.openings.get(place) {
            Some(opening) => (branch.min(opening.newest), opening.token.as_str()),
            None => self.nothing(),
        };
        // A history that was tampered with may have cycles.
        for _ in 0..=self.history.len() {
            if let Some(place) = self.places.get(token) {
                return parting(place + 1, branch);
            }
            if token == ROOT && self.openings.first().is_some_and(|first| first.number == 1) {
                return parting(0, branch);
            }
            let Some(registered) = self.by_token.get(token) else { break };
            (token, branch) = (&registered.parent, registered.newest);
        }
        self.nothing()
    }

    /// Returns the answer for the case that nothing is known to be the same.
    fn nothing(&self) -> (i64, &str) {
        (0, self.openings.last().map_or(ROOT, |present| &present.token))
    }
}

/// Reads the openings that have registered at a lane's row, the oldest first; only the last one if that is the present opening.
///
/// # Errors
/// Returns the error of the database.
pub(super) fn read_history(
    ledger: &Ledger,
    own: &LaneOpening,
    session: &mut dyn Session,
) -> Result<Vec<Registered>, DatabaseError> {
    let writer = ledger.writer;
    let mut read = |which: &str| -> Result<Vec<Registered>, DatabaseError> {
        let columns = "number, token, parent, sequence, newest";
        let select = format!("SELECT {columns} FROM {TABLE} WHERE writer = {writer} {which} ORDER BY number");
        session.query(&select)?.iter().map(|row| registered(row)).collect()
    };
    let last = read(&format!("AND number = (SELECT MAX(number) FROM {TABLE} WHERE writer = {writer})"))?;
    if last.iter().any(|last| last.token == own.token()) { Ok(last) } else { read("") }
}

/// Returns the openings to register behind a history: the present one, and those before it that the history does not have.
pub(super) fn unregistered(sequence: i64, history: &[Registered], own: &LaneOpening) -> Vec<Registered> {
    let known: HashSet<_> = history.iter().map(|registered| registered.token.as_str()).collect();
    let first =
        own.openings.iter().rposition(|opening| known.contains(opening.token.as_str())).map_or(0, |place| place + 1);
    let last = history.last().map_or(0, |last| last.number);
    let parent = |place: usize| match place.checked_sub(1) {
        Some(before) => own.openings[before].token.clone(),
        // The openings before the first remembered one are not known; the first remembered one is not the beginning.
        None if own.openings[place].number > 1 => format!("before {}", own.openings[place].number),
        None => ROOT.to_owned(),
    };
    let places = first..own.openings.len();
    let register = |(number, place): (i64, usize)| Registered {
        number,
        token: own.openings[place].token.clone(),
        parent: parent(place),
        sequence,
        newest: own.openings[place].newest,
    };
    (last + 1..).zip(places).map(register).collect()
}

fn registered(row: &[Option<String>]) -> Result<Registered, DatabaseError> {
    let read = || {
        let [Some(number), Some(token), Some(parent), Some(sequence), Some(newest)] = row else { return None };
        Some(Registered {
            number: number.parse().ok()?,
            token: token.clone(),
            parent: parent.clone(),
            sequence: sequence.parse().ok()?,
            newest: newest.parse().ok()?,
        })
    };
    read().ok_or_else(|| DatabaseError::Unavailable(format!("table {TABLE} has a row that cannot be read: {row:?}")))
}

/// Registers an opening behind a history, unless the row has been moved or another opening has registered since the history was read.
///
/// # Errors
/// Returns the database's error; [`DatabaseError::Lost`] also if another one was faster, so that everything is read again.
pub(super) fn register(
    ledger: &mut Ledger,
    history: &[Registered],
    (own, now_ns): (&LaneOpening, i64),
    session: &mut dyn Session,
) -> Result<(), DatabaseError> {
    let openings = unregistered(ledger.sequence, history, own);
    let edited_ns = ledger.edit_after(now_ns);
    let rows = openings.len() as u32;
    let mut request = Request::default();
    for value in [edited_ns, ledger.writer, ledger.sequence, ledger.edited_ns] {
        request.cells.int(value);
    }
    for opening in &openings {
        [ledger.writer, opening.number].iter().for_each(|value| request.cells.int(*value));
        [&opening.token, &opening.parent].iter().for_each(|token| request.cells.text(token));
        [opening.sequence, opening.newest, now_ns].iter().for_each(|value| request.cells.int(*value));
    }
    let forget_cell = request.cells.len() as u32;
    let last = openings.last().map_or(0, |last| last.number);
    [ledger.writer, last - OPENINGS_MAX].iter().for_each(|value| request.cells.int(*value));
    let step = |statement, rows, first_cell, expect| Step { statement, rows, first_cell, expect };
    request.steps = vec![
        step(0, 1, 0, Expect::Changed(1)),
        step(1, rows, 4, Expect::Changed(u64::from(rows))),
        step(2, 1, forget_cell, Expect::Anything),
    ];
    session.prepare(&registering(rows as usize))?;
    match session.execute(&request, None) {
        Ok(_) => {
            ledger.edited_ns = edited_ns;
            Ok(())
        }
        Err(error) if meaning(&error) == Meaning::Ledger => Err(DatabaseError::Lost(format!(
            "another recorder has taken row {} of table {LEDGER} meanwhile",
            ledger.writer
        ))),
        // No record is to blame.
        Err(error) if meaning(&error) == Meaning::Record => Err(DatabaseError::Unavailable(format!(
            "an opening of the spool cannot be written to table {TABLE}: {error}"
        ))),
        Err(error) => Err(error),
    }
}

fn registering(rows: usize) -> Program {
    let sql = |sql: String| Statement::Sql { sql, allow_empty: true, form: SqlForm::Prepared };
    let take = format!("UPDATE {LEDGER} SET edited_ns = ? WHERE writer = ? AND sequence = ? AND edited_ns = ?");
    let forget = format!("DELETE FROM {TABLE} WHERE writer = ? AND number <= ?");
    let insert = Statement::Insert { table: TABLE.to_owned(), columns: table().columns };
    Program { statements: vec![sql(take), insert, sql(forget)], rows_max: rows, ..Program::default() }
}

/// Returns the description of the table.
pub(super) fn table() -> Table {
    let column = |name: &str, kind| TableColumn { name: name.to_owned(), kind, nullable: false };
    let number = |name| column(name, ColumnKind::Int64);
    let token = |name| column(name, ColumnKind::Text(32));
    Table {
        name: TABLE.to_owned(),
        columns: vec![
            number("writer"),
            number("number"),
            token("token"),
            token("parent"),
            number("sequence"),
            number("newest"),
            number("opened_ns"),
        ],
        primary_key: vec!["writer".to_owned(), "number".to_owned()],
        numbered: false,
        unique: Vec::new(),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        time: None,
    }
}

#[cfg(test)]
#[path = "opening_tests.rs"]
mod tests;
