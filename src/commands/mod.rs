//! Commands: the only place that wires parts together.

pub mod data;
