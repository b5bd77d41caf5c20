//! Makes fills for the parameters of a statement, from the values that were used in calls or from the contents of the columns.
//!
//! Main type: [`Fitter`]. Invariant: no text of the database or of a log gets into a fill unless that is allowed.

mod column;
mod numbers;
mod origin;
mod range;
mod statement;
#[cfg(test)]
mod tests;

pub use column::{Place, from_spread, is_recent, now, present_us, range_of, stretch, zone};
pub use statement::{Fitted, Fitter};
