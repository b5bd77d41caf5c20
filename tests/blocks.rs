//! Transport blocks end to end: made and opened by a shell's tools and by loadline, processed, looked at by the ticket office, and what becomes of
//! them when keys, blocks, disks, databases or processes fail.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "blocks/centre.rs"]
mod centre;
#[path = "blocks/encrypted.rs"]
mod encrypted;
#[path = "blocks/erasing.rs"]
mod erasing;
#[path = "blocks/faults.rs"]
mod faults;
#[path = "blocks/office.rs"]
mod office;
#[path = "blocks/processing.rs"]
mod processing;
#[path = "blocks/shell.rs"]
mod shell;
