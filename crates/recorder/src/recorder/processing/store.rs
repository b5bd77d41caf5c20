//! The records of a batch in the database, in one transaction. Main type: [`Store`].

use std::collections::HashMap;

use super::images::Image;
use super::tables::{Form, place};
use crate::data::violation::Violation;
use crate::database::{Database, DatabaseError, Session};
use crate::layout::RECORD_ID;
use crate::record::{Cell, Cells};
use crate::recorder::clock::now_ns;
use crate::recorder::durability;
use crate::recorder::writer::ensure;
use crate::statement::{Expect, Request, Step};

/// A connection, and the next free numbers.
pub(super) struct Store {
    session: Box<dyn Session>,
    form: Form,
    next_record: i64,
    next_identity: i64,
    /// The numbers of identities by camera, place and limit.
    identities: HashMap<(String, String, u64), i64>,
    request: Request,
}

/// The stored state of a camera's sequence number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    /// The digest of the record and its image.
    pub(super) digest: String,
    /// The upload that brought it.
    pub(super) upload: String,
}

/// A new record.
pub(super) struct New<'a> {
    pub(super) violation: &'a Violation,
    pub(super) known: &'a Known,
    pub(super) image_sha256: &'a str,
    pub(super) image_bytes: u64,
    pub(super) image: &'a Image,
}

/// An upload that brought nothing new.
pub(super) struct Replay<'a> {
    pub(super) upload: &'a str,
    pub(super) camera: &'a str,
    pub(super) sequence: u64,
}

/// The numbers of stored records and replays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) records: u64,
    pub(super) replays: u64,
}

impl Store {
    /// Connects, creates missing tables, and reads which numbers are used.
    pub(super) fn open(database: &dyn Database, form: Form, rows_max: usize) -> Result<(Self, Stored), DatabaseError> {
        let mut session = database.connect()?;
        let dialect = database.dialect();
        let tables = form.tables();
        for table in &tables {
            ensure(dialect, &mut *session, table)?;
        }
        // A block leaves the inbox with its commit, and is kept nowhere any longer.
        let is_own = |name: &str| tables.iter().any(|table| table.name == name);
        durability::terms(database, &mut *session, None, &is_own)?;
        let quoted = |name: &str| dialect.quote(name);
        let mut one = |sql: String| -> Result<i64, DatabaseError> {
            let rows = session.query(&sql)?;
            let first = rows.into_iter().next().and_then(|row| row.into_iter().next()).flatten();
            Ok(first.and_then(|text| text.parse().ok()).unwrap_or(0))
        };
        let (values, identity) = form.tables_of_columns();
        // The number of an erased record is not used again: the audit file names it.
        let mut newest = |table: &str| one(format!("SELECT MAX({RECORD_ID}) FROM {}", quoted(table)));
        let next_record = 1 + newest(values)?.max(newest("loadline_block")?);
        let next_identity = match form {
            Form::Star => 1 + one(format!("SELECT MAX(measurement) FROM {}", quoted(identity)))?,
            Form::Wide => 1,
        };
        let records = one(format!("SELECT COUNT(*) FROM {}", quoted("loadline_block")))?;
        let replays = one(format!("SELECT COUNT(*) FROM {}", quoted("loadline_replay")))?;
        let mut store = Store {
            session,
            form,
            next_record,
            next_identity,
            identities: HashMap::new(),
            request: Request::default(),
        };
        store.read_identities(database)?;
        store.session.prepare(&form.program(rows_max))?;
        Ok((store, Stored { records: records as u64, replays: replays as u64 }))
    }

    fn read_identities(&mut self, database: &dyn Database) -> Result<(), DatabaseError> {
        if self.form == Form::Wide {
            return Ok(());
        }
        let table = database.dialect().quote(self.form.tables_of_columns().1);
        for row in self.session.query(&format!("SELECT measurement, camera, place, limit_kmh FROM {table}"))? {
            let text = |place: usize| row.get(place).cloned().flatten().unwrap_or_default();
            if let (Ok(number), Ok(limit)) = (text(0).parse(), text(3).parse::<f64>()) {
                self.identities.insert((text(1), text(2), limit.to_bits()), number);
            }
        }
        Ok(())
    }

    /// Finds what is stored of a camera's sequence number.
    pub(super) fn find(&mut self, camera: &str, sequence: u64) -> Result<Option<Known>, DatabaseError> {
        self.request.clear();
        self.request.cells.text(camera);
        self.request.cells.int(sequence as i64);
        self.request.steps.push(Step { statement: place::FIND, rows: 1, first_cell: 0, expect: Expect::Anything });
        let mut found = Cells::new();
        self.session.execute(&self.request, Some(&mut found))?;
        let text = |cell: &Cell| match cell {
            Cell::Text(span) | Cell::Blob(span) => String::from_utf8_lossy(found.bytes_of(*span)).into_owned(),
            _ => String::new(),
        };
        Ok(match found.as_slice() {
            [digest, upload, ..] => Some(Known { digest: text(digest), upload: text(upload) }),
            _ => None,
        })
    }

    /// Returns whether an upload is known to have brought nothing new.
    pub(super) fn is_replay(&mut self, upload: &str) -> Result<bool, DatabaseError> {
        self.request.clear();
        self.request.cells.text(upload);
        let expect = Expect::Anything;
        self.request.steps.push(Step { statement: place::FIND_REPLAY, rows: 1, first_cell: 0, expect });
        Ok(self.session.execute(&self.request, None)?.rows > 0)
    }

    /// Commits all records and replays, or none.
    pub(super) fn commit(&mut self, new: &[New<'_>], replays: &[Replay<'_>]) -> Result<(), DatabaseError> {
        let stored_ns = now_ns();
        let mut next_record = self.next_record;
        let mut fresh: Vec<((String, String, u64), i64)> = Vec::new();
        let (mut records, mut blocks, mut identities) = (Cells::new(), Cells::new(), Cells::new());
        for one in new {
            let violation = one.violation;
            records.int(next_record);
            match self.form {
                Form::Wide => append_identity(violation, &mut records),
                Form::Star => {
                    let key = (violation.camera.clone(), violation.place.clone(), violation.limit_kmh.to_bits());
                    let known = self.identities.get(&key).copied();
                    let known =
                        known.or_else(|| fresh.iter().find(|(other, _)| *other == key).map(|(_, number)| *number));
                    let number = known.unwrap_or(self.next_identity + fresh.len() as i64);
                    if known.is_none() {
                        identities.int(number);
                        append_identity(violation, &mut identities);
                        fresh.push((key, number));
                    }
                    records.int(number);
                }
            }
            append_values(one, &mut records);
            blocks.text(&violation.camera);
            blocks.int(violation.sequence as i64);
            blocks.int(next_record);
            blocks.text(&one.known.digest);
            blocks.text(&one.known.upload);
            blocks.int(stored_ns);
            next_record += 1;
        }
        self.request.clear();
        self.step(place::IDENTITY, fresh.len(), &identities);
        self.step(place::RECORD, new.len(), &records);
        self.step(place::BLOCK, new.len(), &blocks);
        for (one, number) in new.iter().zip(self.next_record..) {
            if let Image::Bytes(bytes) = one.image {
                let mut cells = Cells::new();
                cells.int(number);
                cells.blob(bytes);
                self.step(place::IMAGE, 1, &cells);
            }
        }
        let mut cells = Cells::new();
        for replay in replays {
            cells.text(replay.upload);
            cells.text(replay.camera);
            cells.int(replay.sequence as i64);
            cells.int(stored_ns);
        }
        self.step(place::REPLAY, replays.len(), &cells);
        if !self.request.steps.is_empty() {
            self.session.execute(&self.request, None)?;
        }
        self.next_record = next_record;
        self.next_identity += fresh.len() as i64;
        self.identities.extend(fresh);
        Ok(())
    }

    fn step(&mut self, statement: u16, rows: usize, cells: &Cells) {
        if rows == 0 {
            return;
        }
        let (rows, first_cell) = (rows as u32, self.request.cells.len() as u32);
        self.request.cells.append(cells);
        self.request.steps.push(Step { statement, rows, first_cell, expect: Expect::Changed(u64::from(rows)) });
    }
}

fn append_identity(violation: &Violation, cells: &mut Cells) {
    cells.text(&violation.camera);
    cells.text(&violation.place);
    cells.float(violation.limit_kmh);
}

/// Appends the value columns, in the order of the record type.
fn append_values(new: &New<'_>, cells: &mut Cells) {
    let violation = new.violation;
    cells.int(violation.time_ns);
    cells.int(violation.sequence as i64);
    cells.float(violation.speed_kmh);
    cells.float(violation.excess_kmh());
    cells.text(&violation.plate);
    cells.text(new.image_sha256);
    cells.int(new.image_bytes as i64);
}
