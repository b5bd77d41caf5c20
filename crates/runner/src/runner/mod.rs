//! Trials: the database they run on, and the execution of one trial from tables to measurement. Main types and functions: [`stage::Stage`], [`execute::execute`].
//!
//! Invariant: a server that was started here is stopped here, and a table that was made is dropped; nothing else is touched.

pub mod agents;
mod asked;
mod attendant;
mod background;
mod beside;
pub mod cache;
mod changes;
pub mod connections;
pub mod conserve;
mod conserve_blocks;
pub mod database_file;
mod dealing;
pub mod driving;
pub mod entry;
mod evolve;
pub mod execute;
pub mod facts;
pub mod filling;
pub mod fixture;
pub mod freshness;
pub mod front;
mod happening;
mod instruments;
mod lost;
mod machine;
mod members;
pub mod notes;
pub mod opening;
pub mod options;
mod own_tables;
pub mod paces;
mod pinned;
pub mod private_start;
pub mod proofs;
mod reading;
mod retire;
pub mod stage;
mod staged_link;
pub mod stolen;
mod telling;
pub mod took;
mod unanswered;
mod watch;
mod watch_all;
mod watch_stream;
pub mod workers;

pub use front::check as check_front;
