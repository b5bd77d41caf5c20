//! What tests of databases in trouble stand on: a recorder in a process of its own, and a proxy that swallows what passes.

pub mod blackhole;
#[expect(dead_code, reason = "not every test file uses all of it")]
pub mod harness;
#[expect(dead_code, reason = "not every test file uses all of it")]
pub mod process;
