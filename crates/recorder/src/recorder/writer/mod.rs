//! The writer: turns entries into committed rows, each stored once, in each source's order.
//!
//! Main type: [`Lane`], one writer with one connection. A lane binds the points of several entries to the columns of their tables
//! (`bind`), writes them in one transaction together with its row in the `ledger`, and creates missing tables and columns
//! (`making`) under names that nobody else has (`claims`); the `registry` says which exist. A record that the
//! database refuses is found in one dry run of the batch (`sifting`) and goes to quarantine. While the database works on a full batch, the next
//! one is prepared (`ahead`).
//!
//! Invariant: the ledger says how far a lane has come, in the same transaction as the rows. Whatever happens between a COMMIT and
//! its answer, the next connection reads there whether the commit happened.

mod ahead;
mod apart;
mod backoff;
mod batch;
mod beside;
mod bind;
mod catalogue;
mod claims;
mod columns;
mod deferring;
mod direct;
mod feed;
mod greedy;
mod identity;
mod impossible;
mod kept;
mod lane;
mod leave;
mod ledger;
mod making;
mod meeting;
mod messages;
mod names;
mod needs;
mod opening;
mod part;
mod passable;
mod passing;
mod refusal;
mod registry;
mod shape;
mod sieve;
mod sifting;
mod spooled;
#[cfg(any(test, feature = "simulated"))]
mod stepped;
mod store;
mod storing;
mod taking;
mod texts;
mod turns;
mod value;

pub use ahead::Preparing;
pub use backoff::Backoff;
pub use catalogue::{Catalogue, Column, FieldKind, Measurement, Role, Shape};
pub use feed::{Direct, DirectAnswer, DirectHandle, DirectWait, Feed};
pub use lane::{Lane, LaneSettings};
pub use leave::LaneEnd;
pub(in crate::recorder) use ledger::TABLE as LEDGER;
pub use ledger::writer_of;
pub(in crate::recorder) use messages::number as message_number;
pub(in crate::recorder) use refusal::{Meaning, is_duplicate, meaning};
pub use registry::Registry;
pub(in crate::recorder) use registry::{ensure, registered};
pub use shape::{StoredTables, stored_tables};
pub(in crate::recorder) use shape::{named, read_tables};
#[cfg(any(test, feature = "simulated"))]
pub use stepped::Stepped;
