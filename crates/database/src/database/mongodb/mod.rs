//! MongoDB and FerretDB, through a codec of our own. Main type: [`Mongodb`]; the hot path is `wire`.
//!
//! A table is a collection, and a row a document that is found by `_id`, its key. Null is a missing member. Several rows of an insert are one command: those in front of one that is
//! refused stay. Each step of a request is a command of its own, and nothing undoes it.
//!
//! Invariant: nothing here allocates per operation once buffers have grown, unless the operation changes members, fails, or its rows are kept.

mod answer;
mod bson;
mod document;
mod durability;
mod find;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod fuzzed;
mod key;
mod message;
pub mod module;
mod program;
mod questions;
pub mod recipe;
mod scram;
mod shape;
mod startup;
mod tables;
mod url;
mod value;
mod wire;

use std::sync::Arc;

use super::opening::server_of;
use super::session::WireSession;
use super::{Capabilities, Capability, DatabaseError, Endpoint, Entry, Opens, SessionLimits, Target, TargetSession};
use crate::statement::Program;
use crate::trial::DatabaseSettings;

#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use fuzzed::MONGODB as FUZZED;
pub use url::read_url;

use url::Options;
use wire::MongodbWire;

/// The program that speaks MongoDB's protocol and is another one, as its version begins.
pub const STAND_IN: &str = "FerretDB";

/// The registry's entry.
pub static MONGODB: Entry = Entry {
    name: "mongodb",
    summary: "MongoDB or FerretDB: documents found by their key; a private server (loadline fetch mongodb) or database.url",
    engines: &[],
    opens: Opens::Store(open),
    recipe: Some(&recipe::MONGODB),
    library: None,
    clustered: None,
    read_url: Some(read_url),
    capabilities: Capabilities::NONE
        .with(Capability::Values)
        .with(Capability::AtOnce)
        .with(Capability::BrokenBatches)
        .with(Capability::Ranges)
        .with(Capability::Indexes)
        .with(Capability::Documents)
        .with(Capability::Updates)
        .with(Capability::Deletes)
        .with(Capability::Figures)
        .with(Capability::Counts)
        .with(Capability::LeastNumbers)
        .with(Capability::Processes),
    refuses: Some(|program, _| refusal(program)),
    refuses_rows: None,
    processes: &["mongod", "ferretdb"],
    level: Some(durability::level),
    levels: &durability::LEVELS,
};

/// Returns why MongoDB cannot execute a program; `None` where it can.
fn refusal(program: &Program) -> Option<String> {
    match program::Plan::of(program).err()? {
        DatabaseError::Refused { message, .. } => Some(message),
        error => Some(error.to_string()),
    }
}

/// What a write waits for before it is acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Concern {
    /// The number of copies, or `majority`.
    copies: String,
    /// Whether its journal is synced.
    is_journaled: bool,
}

impl Default for Concern {
    fn default() -> Self {
        Concern { copies: "1".to_owned(), is_journaled: true }
    }
}

impl Concern {
    /// Sets the number of copies.
    ///
    /// # Errors
    /// A sentence, for no copies, of which nobody would hear whether they are stored.
    fn set_copies(&mut self, value: &str) -> Result<(), String> {
        if value != "majority" && !value.parse::<u16>().is_ok_and(|copies| (1..=50).contains(&copies)) {
            return Err(format!("w={value} is neither majority nor a number from 1 to 50"));
        }
        value.clone_into(&mut self.copies);
        Ok(())
    }

    /// Returns the member of a command.
    fn member(&self) -> Vec<u8> {
        let mut out = Vec::new();
        bson::document("writeConcern", &mut out, |out| {
            match self.copies.parse() {
                Ok(copies) => bson::int32("w", copies, out),
                Err(_) => bson::text("w", self.copies.as_bytes(), out),
            }
            bson::boolean("j", self.is_journaled, out);
        });
        out
    }
}

/// A server of MongoDB, or one that speaks its protocol.
#[derive(Debug, Clone)]
pub struct Mongodb {
    endpoint: Endpoint,
    options: Options,
    /// The setting of SQLite that a private server of FerretDB was started with; `None` for a server of somebody else.
    synchronous: Option<String>,
    limits: Option<Arc<SessionLimits>>,
}

impl Target for Mongodb {
    fn name(&self) -> &'static str {
        MONGODB.name
    }

    fn open(&self) -> Result<Box<dyn TargetSession>, DatabaseError> {
        let socket = startup::connect(self)?;
        let (database, concern) = (self.endpoint.database.clone(), self.options.concern.member());
        Ok(Box::new(WireSession::within(
            MongodbWire::new(socket, database, concern, self.synchronous.clone()),
            self.limits.as_ref(),
        )))
    }

    fn set_limits(&mut self, limits: Arc<SessionLimits>) {
        self.limits = Some(limits);
    }

    fn stands_still(&self) -> bool {
        self.limits.as_ref().is_some_and(|limits| limits.stands_still())
    }

    fn removal(&self, table: &str) -> Option<String> {
        Some(tables::removal(&self.endpoint.database, table))
    }
}

fn open(settings: &DatabaseSettings, endpoint: Option<&Endpoint>) -> Result<Box<dyn Target>, DatabaseError> {
    let endpoint = server_of(MONGODB.name, endpoint)?.clone();
    let url = settings.url.as_deref();
    let synchronous = url.is_none().then(|| recipe::synchronous_of(settings));
    Ok(Box::new(Mongodb { endpoint, options: url::options_of(url), synchronous, limits: None }))
}
