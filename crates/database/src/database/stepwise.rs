//! The execution of requests by embedded databases, one step after another in this process.
//!
//! Main type: [`Stepwise`]. Invariant: a step whose number of rows is not the expected one ends its request, and adds nothing to the answer.

use super::carrying::Carrying;
use super::{Answer, DatabaseError};
use crate::record::Cells;
use crate::statement::{Expect, Request, Step};

/// The destinations of the rows that a step reads; without one, rows are only counted.
pub(super) struct Kept<'k> {
    /// Receives all rows.
    pub(super) all: Option<&'k mut Cells>,
    /// Receives the first row, in addition.
    pub(super) first: Option<&'k mut Cells>,
}

impl Kept<'_> {
    /// Returns whether rows are only counted.
    pub(super) fn is_none(&self) -> bool {
        self.all.is_none() && self.first.is_none()
    }
}

/// What a step has done.
#[derive(Default)]
pub(super) struct Done {
    /// Number of rows read.
    pub(super) read: u64,
    /// Number of rows changed.
    pub(super) changed: u64,
    /// Whether the statement is a query.
    pub(super) is_query: bool,
}

/// A session that executes requests in this way.
pub(super) trait Stepwise {
    /// Returns the values that come from answers.
    fn carrying(&mut self) -> &mut Carrying;

    /// Executes a step.
    ///
    /// # Errors
    /// The database's error.
    fn step(&mut self, request: &Request, step: &Step, kept: Kept<'_>) -> Result<Done, DatabaseError>;

    /// Executes all steps; the caller handles the transaction.
    ///
    /// # Errors
    /// The error of the first step that fails, or [`DatabaseError::Miscounted`].
    #[inline]
    fn steps(&mut self, request: &Request, mut rows: Option<&mut Cells>) -> Result<Answer, DatabaseError> {
        let mut answer = Answer::default();
        self.carrying().begin(request);
        for (place, step) in request.steps.iter().enumerate() {
            let is_needed = Carrying::is_needed(request, place);
            let mut first = std::mem::take(&mut self.carrying().first);
            first.clear();
            let kept = Kept { all: rows.as_deref_mut(), first: is_needed.then_some(&mut first) };
            let done = self.step(request, step, kept)?;
            add(step, &done, &mut answer)?;
            let carrying = self.carrying();
            if is_needed {
                if let Some(row) = (done.read > 0).then(|| carrying.first_row(request, place)).flatten() {
                    row.append(&first);
                }
                carrying.hand_on(request, place)?;
            }
            carrying.first = first;
        }
        Ok(answer)
    }
}

/// Adds what a step has done to the answer, unless it differs from what was expected.
#[inline]
fn add(step: &Step, done: &Done, answer: &mut Answer) -> Result<(), DatabaseError> {
    if step.expect == Expect::Rows && done.read == 0 && done.is_query {
        answer.empty += 1;
    }
    if let Some(miscount) = step.expect.miscount(done.read, done.changed) {
        return Err(DatabaseError::Miscounted(Box::new(miscount)));
    }
    answer.rows += done.read;
    answer.changed += done.changed;
    Ok(())
}
