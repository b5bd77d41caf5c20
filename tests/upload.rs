//! Uploads of blocks over FTP, FTPS and HTTP PUT: what is acknowledged is there, whole and once, and nothing else is.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/harness.rs"]
mod harness;

#[path = "upload/client.rs"]
mod client;
#[path = "upload/clients.rs"]
mod clients;
#[path = "upload/crash.rs"]
mod crash;
#[path = "upload/cut.rs"]
mod cut;
#[path = "upload/full.rs"]
mod full;
#[path = "upload/limits.rs"]
mod limits;
#[path = "upload/load.rs"]
mod load;
#[path = "upload/names.rs"]
mod names;
#[path = "upload/put.rs"]
mod put;
