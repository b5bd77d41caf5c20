//! Where a batch is committed while the next one is prepared, and where prepared rows are used: the parts of [`Lane`] and [`Connection`] around `ahead`.
//!
//! Invariant: prepared rows take the place of others only if they are the same.

use std::time::Duration;

use super::ahead::{PreparedRows, Task};
use super::lane::Lane;
use super::store::{Connection, Context, Ready};
use crate::database::DatabaseError;

impl Connection {
    /// Executes the request of a transaction that brings the lane to `sequence`, and has the next batch prepared meanwhile if that is wanted. The first
    /// record behind the transaction has the number `next_record`. Returns how long the transaction took.
    pub(super) fn execute_rows(
        &mut self,
        sequence: i64,
        next_record: i64,
        context: &mut Context<'_>,
    ) -> Result<Duration, DatabaseError> {
        let (session, request, clock) = (&mut self.session, &self.request, &self.clock);
        let mut execute = |beside: &mut dyn FnMut()| {
            let start = clock.now();
            session.execute_beside(request, beside).map(|_| clock.since(start))
        };
        if !context.ahead.is_wanted() {
            return execute(&mut || {});
        }
        let task = Task {
            ahead: &mut *context.ahead,
            reader: context.reader,
            lane: context.lane,
            after: sequence,
            catalogue: &self.catalogue,
            identities: &mut *context.identities,
            first_record: next_record,
        };
        task.beside(execute)
    }

    /// Returns rows that were bound in advance, if binding them now would give the same.
    pub(super) fn use_prepared(&self, rows: PreparedRows, context: &mut Context<'_>) -> Option<Ready> {
        let is_same = rows.are_as_bound(&self.catalogue, self.ledger.next_record(), context.identities);
        let PreparedRows { bound, mut binder, .. } = rows;
        if is_same {
            std::mem::swap(context.binder, &mut binder);
        }
        context.ahead.give_back(binder);
        // If a measurement cannot be used, binding again says so.
        if !is_same || self.check_usable(&bound, context.binder).is_err() {
            return None;
        }
        context.ahead.note_used();
        Some(Ready { bound, fresh: Vec::new() })
    }
}

impl Lane {
    /// Lets the next batch be prepared while everything up to `sequence` is committed, if a full one waits.
    pub(super) fn want_next(&mut self, sequence: i64) {
        let is_ordinary = self.is_spooled() && !self.is_occasional() && !self.settings.stop.is_over();
        let rows_max = self.batch_rows();
        let is_full = is_ordinary && self.settings.reader.has_rows(self.settings.lane, sequence, rows_max);
        self.ahead.want(is_full.then_some(rows_max));
    }
}
