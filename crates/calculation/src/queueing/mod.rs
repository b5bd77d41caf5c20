//! Queueing: the growth of response time with load, and the evaluation of measured points. Pure functions.
//!
//! Main types: [`Queue`], the interface of models of open systems; [`Points`], the measurements; [`fit::FitReport`], the result
//! of fitting models to them. Invariant: no input or output, no clock, no hidden random source; what a model cannot calculate is `None`,
//! never a guess.
//!
//! The models: [`mm1`] (Kihl et al. 2011, eq. 1 and 3, and the same as the timer of a worker sees it), [`load_dependent`]
//! (eq. 2), [`mmc`], [`mg1`] (with M/D/1 and processor sharing), [`flush`] (a server that stalls), and for closed loops
//! [`repairman`] and [`usl`]. [`family`] is their registry. [`held`] finds the highest rate of a model that measurements support.

pub mod family;
pub mod fit;
pub mod flush;
pub mod held;
pub mod load_dependent;
pub mod load_line;
pub mod mg1;
pub mod mm1;
pub mod mmc;
pub mod points;
pub mod queue;
pub mod raw_times;
pub mod repairman;
mod search;
pub mod usl;

pub use family::{FAMILIES, Family, Surroundings};
pub use points::{Point, Points, PointsError, QuantilePoint};
pub use queue::{Queue, Target, Timer};
