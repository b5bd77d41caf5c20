//! Statistics: pure functions over trial values. The unit of analysis is the trial, never the operation.
//!
//! Main type: [`ratio::RatioEstimate`], the comparison of two alternatives. Invariant: no input or output, no clock, no
//! hidden random source; equal values and equal seed give equal answers. Too few values give `None`, never a guess.

pub mod batches;
pub mod best;
pub mod bootstrap;
pub mod change_point;
pub mod equivalence;
pub mod family;
pub mod letters;
pub mod median_ratio;
pub mod noise;
pub mod order;
pub mod pairs;
pub mod random;
pub mod rank;
pub mod ratio;
pub mod rounding;
pub mod rounds;
pub mod series;
pub mod shift;
pub mod student;
pub mod summary;
pub mod t_test;
pub mod two_level;
pub mod verdict;

pub use ratio::{Cell, RatioEstimate, TrialValue, matched_ratio, weighted_ratio};
pub use summary::{Interval, mean, population_sd, relative_half_width, sample_sd, standard_error_share, t_interval};
pub use verdict::{Verdict, judge};
