//! commands.

pub mod list;
pub mod output;
pub mod plan;
