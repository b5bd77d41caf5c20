//! The program as users see it: its exit status, what it prints where, and what it leaves on disk. Servers are private ones of
//! the installed packages; a machine without MariaDB and PostgreSQL fails these tests.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "cli/background.rs"]
mod background;
#[path = "cli/containers.rs"]
mod containers;
#[path = "cli/contract.rs"]
mod contract;
#[path = "copied/mod.rs"]
mod copied;
#[path = "cli/documents.rs"]
mod documents;
#[path = "cli/existing.rs"]
mod existing;
#[path = "cli/freshness.rs"]
mod freshness;
#[path = "cli/full_disk.rs"]
mod full_disk;
#[path = "cli/interrupted.rs"]
mod interrupted;
#[path = "cli/invalid.rs"]
mod invalid;
#[path = "cli/main_job.rs"]
mod main_job;
#[path = "cli/place.rs"]
mod place;
#[path = "cli/planning.rs"]
mod planning;
#[path = "server/port.rs"]
mod port;
#[path = "cli/program.rs"]
mod program;
#[path = "cli/querying.rs"]
mod querying;
#[path = "quiet/mod.rs"]
mod quiet;
#[path = "cli/raw_times.rs"]
mod raw_times;
#[path = "cli/recorded.rs"]
mod recorded;
#[path = "cli/recorders.rs"]
mod recorders;
#[path = "cli/repeating.rs"]
mod repeating;
#[path = "cli/requests.rs"]
mod requests;
#[path = "cli/schema.rs"]
mod schema;
#[path = "cli/searches.rs"]
mod searches;
#[path = "cli/sensors.rs"]
mod sensors;
#[path = "cli/starting.rs"]
mod starting;
#[path = "cli/versions.rs"]
mod versions;
#[path = "cli/ycsb.rs"]
mod ycsb;
