//! VictoriaMetrics, through a codec of our own over its HTTP interface. Main type: [`Victoriametrics`]; the hot path is `wire`.
//!
//! A column of a table is a series for each source, and a row is the points of these series with the same time (`database/points`). Rows go in as line protocol. They come back as the points of each series
//! (`selecting`), which are put together (`answer`), or as figures in answers to MetricsQL (`questions`). The server has no transactions, and shows what it acknowledged only after a while: whoever counts, or
//! prepares to read, has it show all of it first.
//!
//! Invariant: nothing is written that would come back as another value or at another time (`rules`).

mod answer;
mod durability;
mod exchange;
mod figures;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod fuzzed;
mod metricsql;
mod program;
mod questions;
pub mod recipe;
mod rules;
mod selecting;
mod settings;
mod startup;
mod tables;
mod url;
mod wire;

use std::sync::Arc;

use super::opening::server_of;
use super::session::WireSession;
use super::{Capabilities, Capability, DatabaseError, Endpoint, Entry, Opens, SessionLimits, Target, TargetSession};
use crate::statement::Program;
use crate::trial::DatabaseSettings;

#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use fuzzed::VICTORIAMETRICS as FUZZED;

/// The registry's entry.
pub static VICTORIAMETRICS: Entry = Entry {
    name: "victoriametrics",
    summary: "VictoriaMetrics over HTTP: line protocol in, points and MetricsQL out; a private server or database.url",
    engines: &[],
    opens: Opens::Store(open),
    recipe: Some(&recipe::VICTORIAMETRICS),
    library: None,
    clustered: None,
    read_url: Some(url::read),
    capabilities: Capabilities::NONE
        .with(Capability::Batches)
        .with(Capability::Ranges)
        .with(Capability::Indexes)
        .with(Capability::Figures)
        .with(Capability::LeastNumbers)
        .with(Capability::Processes),
    refuses: Some(|program, _| refusal(program)),
    refuses_rows: Some(program::refusal_of),
    processes: &["victoria-metrics"],
    level: Some(durability::level),
    levels: &durability::LEVELS,
};

/// Returns why VictoriaMetrics cannot execute a program; `None` where it can.
fn refusal(program: &Program) -> Option<String> {
    match program::Plan::of(program).err()? {
        DatabaseError::Refused { message, .. } => Some(message),
        error => Some(error.to_string()),
    }
}

/// A VictoriaMetrics server.
#[derive(Debug)]
pub struct Victoriametrics {
    endpoint: Endpoint,
    limits: Option<Arc<SessionLimits>>,
}

impl Target for Victoriametrics {
    fn name(&self) -> &'static str {
        VICTORIAMETRICS.name
    }

    fn open(&self) -> Result<Box<dyn TargetSession>, DatabaseError> {
        Ok(Box::new(WireSession::within(startup::connect(self)?, self.limits.as_ref())))
    }

    fn set_limits(&mut self, limits: Arc<SessionLimits>) {
        self.limits = Some(limits);
    }

    fn stands_still(&self) -> bool {
        self.limits.as_ref().is_some_and(|limits| limits.stands_still())
    }

    fn removal(&self, table: &str) -> Option<String> {
        Some(tables::removal(table))
    }
}

fn open(_: &DatabaseSettings, endpoint: Option<&Endpoint>) -> Result<Box<dyn Target>, DatabaseError> {
    let endpoint = server_of(VICTORIAMETRICS.name, endpoint)?.clone();
    Ok(Box::new(Victoriametrics { endpoint, limits: None }))
}
