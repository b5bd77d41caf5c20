//! Values of a request that come from answers ([`Carry`]): a later step takes them from the first row that an earlier step read.
//!
//! Main type: [`Carrying`], used by every wire and session. Invariant: a request without such values costs one check of an empty list.

use super::DatabaseError;
use crate::record::{Cell, Cells};
use crate::statement::{Carry, Request};

/// The values of the running request, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Carrying {
    /// The request's own values, with those from answers filled in. Unused where no values come from answers.
    values: Cells,
    /// The first row of the running step, where a later step needs it.
    row: Cells,
    has_row: bool,
    /// Memory for the first row of a step before it is known whether there is one.
    pub(super) first: Cells,
}

impl Carrying {
    /// Resets the state for a new request.
    #[inline]
    pub(super) fn begin(&mut self, request: &Request) {
        if !request.carries.is_empty() {
            self.values.clear();
            self.values.append(&request.cells);
            self.has_row = false;
        }
    }

    /// Returns the cells from which the steps of the request take their values.
    #[inline]
    pub(super) fn values<'v>(&'v self, request: &'v Request) -> &'v Cells {
        if request.carries.is_empty() { &request.cells } else { &self.values }
    }

    /// Returns whether a later step needs a value that this step reads.
    #[inline]
    pub(super) fn is_needed(request: &Request, step: usize) -> bool {
        !request.carries.is_empty() && request.carries.iter().any(|carry| usize::from(carry.step) == step)
    }

    /// Returns the cells for the first row of this step if a later step needs it and it has not been read. The caller must append the row to them.
    #[inline]
    pub(super) fn first_row(&mut self, request: &Request, step: usize) -> Option<&mut Cells> {
        if self.has_row || !Carrying::is_needed(request, step) {
            return None;
        }
        self.has_row = true;
        self.row.clear();
        Some(&mut self.row)
    }

    /// Passes the values that a step has read to the later steps; without a row they become null.
    ///
    /// # Errors
    /// When the step's rows have fewer values than a later step needs.
    #[inline]
    pub(super) fn hand_on(&mut self, request: &Request, step: usize) -> Result<(), DatabaseError> {
        if request.carries.is_empty() {
            return Ok(());
        }
        for carry in request.carries.iter().filter(|carry| usize::from(carry.step) == step) {
            self.hand_on_one(carry)?;
        }
        self.has_row = false;
        Ok(())
    }

    fn hand_on_one(&mut self, carry: &Carry) -> Result<(), DatabaseError> {
        let (column, cell) = (usize::from(carry.column), carry.cell as usize);
        if !self.has_row {
            self.values.replace(cell, Cell::Null);
            return Ok(());
        }
        let Some(value) = self.row.as_slice().get(column).copied() else {
            let (wide, wanted) = (self.row.len(), column + 1);
            let values = if wide == 1 { "value" } else { "values" };
            return Err(DatabaseError::refused(
                "answer_of",
                format!(
                    "the rows of statement {} have {wide} {values}, and number {wanted} is asked for",
                    carry.step + 1
                ),
            ));
        };
        self.values.replace_from(cell, &self.row, value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        let mut request = Request::default();
        request.cells.int(7);
        request.cells.null();
        request.cells.null();
        request.carries = vec![Carry { step: 0, column: 1, cell: 1 }, Carry { step: 1, column: 0, cell: 2 }];
        request
    }

    #[test]
    fn later_steps_have_what_earlier_ones_read_first() {
        let (request, mut carrying) = (request(), Carrying::default());
        for text in ["first", "ä"] {
            carrying.begin(&request);
            let row = carrying.first_row(&request, 0).unwrap();
            row.int(1);
            row.text(text);
            assert!(carrying.first_row(&request, 0).is_none(), "only the first row counts");
            carrying.hand_on(&request, 0).unwrap();
            assert!(carrying.first_row(&request, 2).is_none(), "nobody needs what the last step reads");
            carrying.hand_on(&request, 1).unwrap();
            let values = carrying.values(&request);
            let told: Vec<_> = values.as_slice().iter().map(|cell| values.to_json(*cell)).collect();
            assert_eq!(told, [serde_json::json!(7), serde_json::json!(text), serde_json::Value::Null]);
        }
    }

    #[test]
    fn a_row_that_is_too_short_is_told_and_none_is_null() {
        let (request, mut carrying) = (request(), Carrying::default());
        carrying.begin(&request);
        carrying.first_row(&request, 0).unwrap().int(1);
        let told = carrying.hand_on(&request, 0).unwrap_err().to_string();
        assert!(told.contains("the rows of statement 1 have 1 value, and number 2 is asked for"), "{told}");
        carrying.begin(&request);
        carrying.hand_on(&request, 0).unwrap();
        assert_eq!(carrying.values(&request).get(1), Cell::Null);
    }

    #[test]
    fn a_request_of_its_own_values_is_left_alone() {
        let mut request = Request::default();
        request.cells.int(3);
        let mut carrying = Carrying::default();
        carrying.begin(&request);
        assert!(carrying.first_row(&request, 0).is_none());
        carrying.hand_on(&request, 0).unwrap();
        assert_eq!(carrying.values(&request).get(0), Cell::Int(3));
    }
}
