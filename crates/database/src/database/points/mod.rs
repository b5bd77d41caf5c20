//! Rows as points: a measurement, tags, fields and a time, as InfluxDB's line protocol has them, for every store that takes it.
//!
//! [`shape`] says which column of a row is where, and [`lines`] writes rows. Invariant: no two rows become the same point.

pub mod lines;
pub mod shape;
