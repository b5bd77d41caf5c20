//! The progress of each lane, in the database itself: table `loadline_writer`. Main type: [`Ledger`], one lane's row.
//!
//! Every transaction first moves the row from where it was to where it will be. Two transactions that both believe to be
//! the next one meet at this row: one waits for the other, and then changes nothing. `opening` decides whose row it is.

use super::refusal::is_duplicate;
use super::registry::ensure;
use crate::database::{Database, DatabaseError, Session};
use crate::layout::recorded::{ledger_table, ledger_update};
use crate::statement::{Expect, Request, Statement, Step};

pub(in crate::recorder) const TABLE: &str = "loadline_writer";

/// The bits of `record_id` that number a lane's rows; the lane's number stands above them.
const ROW_BITS: u32 = 52;
/// The same for identities.
const IDENTITY_BITS: u32 = 40;
/// The most lanes that a database can have, of all recorders and times.
const WRITERS_MAX: i64 = 1 << (63 - ROW_BITS);

/// A lane's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ledger {
    /// The lane's number in this database.
    pub writer: i64,
    /// The entry that the lane has come to: this one and all before it are dealt with.
    pub sequence: i64,
    /// The number of the last row; numbers of refused rows may be left out.
    pub rows: i64,
    /// The number of identities created.
    pub identities: i64,
    /// The number of rows whose measurements' ends are up to date.
    pub ended_rows: i64,
    /// When the row was last moved or taken, in nanoseconds since 1970; a different value each time.
    pub edited_ns: i64,
}

/// Returns the number of the lane that stored a record.
pub fn writer_of(record_id: i64) -> i64 {
    record_id >> ROW_BITS
}

impl Ledger {
    /// Returns the number of the next record.
    pub(super) fn next_record(&self) -> i64 {
        (self.writer << ROW_BITS) + self.rows + 1
    }

    /// Returns the number of the next identity.
    pub(super) fn next_identity(&self) -> i64 {
        (self.writer << IDENTITY_BITS) + self.identities + 1
    }

    /// Returns the first and last number of the written records whose ends may not be up to date.
    pub(super) fn unended(&self) -> Option<(i64, i64)> {
        let first = self.writer << ROW_BITS;
        (self.ended_rows < self.rows).then_some((first + self.ended_rows + 1, first + self.rows))
    }

    /// Returns the next value of `edited_ns`: above the present one, whatever the clock says.
    pub(super) fn edit_after(&self, now_ns: i64) -> i64 {
        now_ns.max(self.edited_ns.saturating_add(1))
    }

    /// Returns the statement that moves the row.
    pub(super) fn statement() -> Statement {
        ledger_update(TABLE, "=")
    }

    /// Appends the step that moves the row to `next`.
    pub(super) fn append(&self, next: &Ledger, statement: u16, request: &mut Request) {
        let first_cell = request.cells.len() as u32;
        let after = [next.sequence, next.rows, next.identities, next.ended_rows, next.edited_ns];
        let values = after.into_iter().chain([self.writer, self.sequence, self.edited_ns]);
        values.for_each(|value| request.cells.int(value));
        request.steps.push(Step { statement, rows: 1, first_cell, expect: Expect::Changed(1) });
    }

    /// Reads a lane's row, and creates it if there is none.
    ///
    /// # Errors
    /// Returns the error of the database.
    pub(super) fn read_or_make(
        recorder: &str,
        lane: u32,
        database: &dyn Database,
        session: &mut dyn Session,
    ) -> Result<Self, DatabaseError> {
        ensure(database.dialect(), session, &ledger_table(TABLE))?;
        loop {
            if let Some(ledger) = read(recorder, lane, session)? {
                return Ok(ledger);
            }
            let next =
                format!("(SELECT writer FROM (SELECT COALESCE(MAX(writer), -1) + 1 AS writer FROM {TABLE}) AS newest)");
            let insert = format!("INSERT INTO {TABLE} VALUES ({next}, '{recorder}', {lane}, 0, 0, 0, 0, 0)");
            match session.run(&insert) {
                // Another lane took the number.
                Err(error) if is_duplicate(&error) => {}
                outcome => outcome?,
            }
        }
    }
}

fn read(recorder: &str, lane: u32, session: &mut dyn Session) -> Result<Option<Ledger>, DatabaseError> {
    let rows = session.query(&format!(
        "SELECT writer, sequence, next_row, next_identity, ended_row, edited_ns FROM {TABLE} \
         WHERE recorder = '{recorder}' AND lane = {lane}"
    ))?;
    let Some(row) = rows.into_iter().next() else { return Ok(None) };
    let number = |place: usize| row.get(place).cloned().flatten().and_then(|text| text.parse::<i64>().ok());
    let ledger = || {
        Some(Ledger {
            writer: number(0)?,
            sequence: number(1)?,
            rows: number(2)?,
            identities: number(3)?,
            ended_rows: number(4)?,
            edited_ns: number(5)?,
        })
    };
    match ledger() {
        Some(ledger) if (0..WRITERS_MAX).contains(&ledger.writer) => Ok(Some(ledger)),
        _ => Err(DatabaseError::Unavailable(format!(
            "table {TABLE} has no readable row for lane {lane} of recorder {recorder}, or more than {WRITERS_MAX} writers"
        ))),
    }
}
