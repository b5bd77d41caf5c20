//! Ids of messages that were committed without having been spooled, in the database itself: table `loadline_message`. A message that is
//! sent again, to any recorder, is found there and not stored again. `received_ns` is the time of an [`IdClock`], whose own line is shared by all recorders that
//! write there.
//!
//! [`IdClock`]: crate::recorder::spool::IdClock

use crate::layout::recorded::hash_hex;
use crate::record::ColumnKind;
use crate::recorder::spool::{MESSAGE_NUMBERS, Offer};
use crate::statement::{
    ColumnRef, Comparison, Condition, Expect, Program, Request, Select, Statement, Step, Table, TableColumn,
};

pub(super) const TABLE: &str = "loadline_message";

/// The numbers of the statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MessageStatements {
    find: u16,
    insert: u16,
}

/// Returns the key of an offer's message; `None` if it has no id.
pub(super) fn key(offer: &Offer) -> Option<String> {
    (!offer.message_id.is_empty()).then(|| hash_hex(&[&offer.source, &offer.message_id]))
}

/// Returns a number for an offer's message that is the same whenever it is sent, one of [`MESSAGE_NUMBERS`]; `None` if it has no id.
pub(in crate::recorder) fn number(offer: &Offer) -> Option<i64> {
    let key = key(offer)?;
    i64::from_str_radix(&key[..15], 16).ok().map(|hash| MESSAGE_NUMBERS.start + hash)
}

/// Returns the description of the table.
pub(super) fn table() -> Table {
    Table {
        name: TABLE.to_owned(),
        columns: columns(),
        primary_key: vec!["id".to_owned()],
        numbered: false,
        unique: Vec::new(),
        indexes: vec![vec!["received_ns".to_owned()]],
        foreign_keys: Vec::new(),
        time: None,
    }
}

fn columns() -> Vec<TableColumn> {
    vec![
        TableColumn { name: "id".to_owned(), kind: ColumnKind::Text(32), nullable: false },
        TableColumn { name: "received_ns".to_owned(), kind: ColumnKind::Int64, nullable: false },
    ]
}

/// The value of the clock's line in place of an id; it is not 32 hexadecimal digits.
const CLOCK: &str = "clock";

/// Returns the SQL that reads the clock.
pub(super) fn clock() -> String {
    format!("SELECT received_ns FROM {TABLE} WHERE id = '{CLOCK}'")
}

/// Returns the SQL that reads when the newest id was received.
pub(super) fn newest() -> String {
    format!("SELECT received_ns FROM {TABLE} ORDER BY received_ns DESC LIMIT 1")
}

/// Returns the SQL that stores the clock's first value.
pub(super) fn begin_clock(first_ns: i64) -> String {
    format!("INSERT INTO {TABLE} (id, received_ns) VALUES ('{CLOCK}', {first_ns})")
}

/// Returns the SQL that moves the clock forward, unless it would move by more than `most_ns`.
pub(super) fn move_clock(to_ns: i64, most_ns: i64) -> String {
    let least_ns = to_ns.saturating_sub(most_ns);
    format!(
        "UPDATE {TABLE} SET received_ns = {to_ns} WHERE id = '{CLOCK}' AND received_ns < {to_ns} AND received_ns >= {least_ns}"
    )
}

/// Returns the SQL that forgets ids received before a time.
pub(super) fn forget(before_ns: i64) -> String {
    format!("DELETE FROM {TABLE} WHERE received_ns < {before_ns} AND id <> '{CLOCK}'")
}

impl MessageStatements {
    pub(super) fn add(program: &mut Program) -> Self {
        let id = ColumnRef { table: TABLE.to_owned(), column: "id".to_owned() };
        let condition = Condition { column: id.clone(), kind: ColumnKind::Text(32), comparison: Comparison::Equal };
        program.statements.push(Statement::Select(Select {
            columns: vec![id],
            from: TABLE.to_owned(),
            conditions: vec![condition],
            ..Select::default()
        }));
        program.statements.push(Statement::Insert { table: TABLE.to_owned(), columns: columns() });
        let insert = (program.statements.len() - 1) as u16;
        MessageStatements { find: insert - 1, insert }
    }

    /// Appends the step that finds a key.
    pub(super) fn append_find(&self, key: &str, request: &mut Request) {
        let first_cell = request.cells.len() as u32;
        request.cells.text(key);
        request.steps.push(Step { statement: self.find, rows: 1, first_cell, expect: Expect::Anything });
    }

    /// Appends the step that stores keys.
    pub(super) fn append_insert(&self, keys: &[(String, i64)], request: &mut Request) {
        if keys.is_empty() {
            return;
        }
        let first_cell = request.cells.len() as u32;
        for (key, received_ns) in keys {
            request.cells.text(key);
            request.cells.int(*received_ns);
        }
        let rows = keys.len() as u32;
        request.steps.push(Step { statement: self.insert, rows, first_cell, expect: Expect::Changed(u64::from(rows)) });
    }
}
