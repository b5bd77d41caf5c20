//! commands.

pub mod data;
