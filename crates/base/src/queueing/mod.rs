//! Queueing: how response time grows with load, and what measured points say about it. Pure: values in, values out.
//!
//! Main types: [`Queue`], what every model of an open system answers; [`Points`], what was measured; [`fit::FitReport`], what
//! models say about it. Invariant: no input or output, no clock, no hidden random source; what a model cannot say is `None`,
//! never a guess.
//!
//! The models: [`mm1`] (Kihl et al. 2011, eq. 1 and 3, and the same seen by the timer of a worker), [`load_dependent`]
//! (eq. 2), [`mmc`], [`mg1`] (with M/D/1 and processor sharing), [`flush`] (a server that stalls), and for closed loops
//! [`repairman`] and [`usl`]. [`family`] is their registry. [`held`] says which rate of a model may be held.

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
