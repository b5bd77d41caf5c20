//! Series that several writers meet at the same time: the part of [`Connection`] that looks for them, and that of [`Lane`] for when another writer was faster.
//!
//! Invariant: no record is blamed for what another writer has inserted.

use std::collections::HashMap;

use super::batch::Batch;
use super::identity::NewIdentity;
use super::lane::Lane;
use super::leave::Leave;
use super::store::{Connection, Ready};
use crate::database::DatabaseError;
use crate::record::{Cell, Cells};
use crate::statement::{Expect, Step};

/// The number of identities that are looked for in one round trip.
const FOUND_MAX: usize = 200;

impl Connection {
    /// Returns the numbers of those identities that the database has, by measurement and hash.
    pub(super) fn find_identities<'a>(
        &mut self,
        asked: impl IntoIterator<Item = &'a NewIdentity>,
    ) -> Result<HashMap<(usize, String), i64>, DatabaseError> {
        let (mut known, asked) = (HashMap::new(), asked.into_iter().collect::<Vec<_>>());
        let of_one = asked.chunk_by(|a, b| a.measurement == b.measurement);
        for some in of_one.flat_map(|asked| asked.chunks(FOUND_MAX)) {
            let measurement = some[0].measurement;
            let Some(statement) = self.statements.get(measurement).and_then(|statements| statements.find) else {
                continue;
            };
            self.request.clear();
            for identity in some {
                let first_cell = self.request.cells.len() as u32;
                self.request.cells.text(&identity.hash);
                self.request.steps.push(Step { statement, rows: 1, first_cell, expect: Expect::Anything });
            }
            let mut found = Cells::new();
            self.session.execute(&self.request, Some(&mut found))?;
            for pair in found.as_slice().chunks_exact(2) {
                if let [Cell::Int(number), Cell::Text(hash)] = *pair {
                    let hash = String::from_utf8_lossy(found.bytes_of(hash)).into_owned();
                    known.insert((measurement, hash), number);
                }
            }
        }
        Ok(known)
    }

    /// Returns whether any of the new identities exists now: another writer has created it meanwhile.
    ///
    /// # Errors
    /// Returns the error of the database.
    pub(super) fn were_made_meanwhile(&mut self, ready: &Ready) -> Result<bool, DatabaseError> {
        Ok(!self.find_identities(ready.fresh.iter().map(|(identity, _)| identity))?.is_empty())
    }
}

impl Lane {
    /// Returns whether an identity that was to be inserted with the rows refused last is in the database now: another writer was faster, and no record is to
    /// blame. This ends, because each time there is one new identity less.
    pub(super) fn were_made_meanwhile(&mut self) -> bool {
        let Some((rows, ready)) = self.refused.take() else { return false };
        let found = self.with_connection(|connection, _| connection.were_made_meanwhile(&ready));
        self.refused = Some((rows, ready));
        // If the database does not answer, the next try finds out.
        found.unwrap_or(false)
    }

    /// Looks up identities and messages in the database again.
    pub(super) fn find_anew(&mut self, batch: &mut Batch) -> Result<(), Leave> {
        self.identities.clear();
        self.refused = None;
        self.leave_out_duplicates(batch).map(drop)
    }
}
