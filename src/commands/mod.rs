//! Commands: the only place that wires parts together.

pub mod list;
pub mod output;
pub mod plan;
