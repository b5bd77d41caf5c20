//! Values of a request that answers bring ([`Carry`]): a later step has them from the first row that an earlier one read.
//!
//! Main type: [`Carrying`], which every wire and session has. Invariant: a request without such values costs one look at an empty list.

use super::DatabaseError;
use crate::record::{Cell, Cells};
use crate::statement::{Carry, Request};

/// The values of the request that is running, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Carrying {
    /// The request's own values, and those that were answered. Empty where answers bring none.
    values: Cells,
    /// The first row of the step that is running, where a later one needs it.
    row: Cells,
    has_row: bool,
}

impl Carrying {
    /// Forgets the last request.
    #[inline]
    pub(super) fn begin(&mut self, request: &Request) {
        if !request.carries.is_empty() {
            self.values.clear();
            self.values.append(&request.cells);
            self.has_row = false;
        }
    }

    /// What the steps of the request take their values from.
    #[inline]
    pub(super) fn values<'v>(&'v self, request: &'v Request) -> &'v Cells {
        if request.carries.is_empty() { &request.cells } else { &self.values }
    }

    /// Whether a later step needs what this one reads.
    #[inline]
    pub(super) fn is_needed(request: &Request, step: usize) -> bool {
        !request.carries.is_empty() && request.carries.iter().any(|carry| usize::from(carry.step) == step)
    }

    /// Where the first row of this step belongs, as long as it has not been read and a later step needs it. Whoever asks puts the row there.
    #[inline]
    pub(super) fn first_row(&mut self, request: &Request, step: usize) -> Option<&mut Cells> {
        if self.has_row || !Carrying::is_needed(request, step) {
            return None;
        }
        self.has_row = true;
        self.row.clear();
        Some(&mut self.row)
    }

    /// Hands on what a step has read; nothing becomes null.
    ///
    /// # Errors
    /// When its rows have fewer values than a later step takes one from.
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
