//! Comparing alternatives: within a run, between two runs, and from published summaries.
//!
//! Main function: [`compare()`], from [`Sample`]s to [`Comparisons`]; [`runs`] and [`summaries`] make the samples, [`text()`] shows the
//! results. Invariant: only samples of the same case, machine, factor and metric are compared, and p-values are adjusted for all
//! comparisons that are shown together.

pub mod judge;
pub mod marks;
pub mod note;
pub mod outcome;
pub mod p_value;
pub mod runs;
pub mod sample;
pub mod summaries;
pub mod table;
pub mod text;

pub use judge::{compare, pairs};
pub use note::CompareNote;
pub use outcome::{Adjustment, Comparison, Comparisons, Letters, Mark, MarkWord, Options, Unconfirmed};
pub use runs::{Chosen, RunInput, between, within};
pub use sample::{Figures, Sample};
pub use text::text;
