//! Workloads: what clients do. [`Work`] is all that the clients of a trial share; [`build`] makes the [`Workload`] of one.
//!
//! Invariant: what a client does is a function of (settings, seed, client, number of clients), never of what answers say or of
//! other clients. One exception: clients of `ycsb` workloads know which records there are by now, as YCSB's do (decision 0013).

mod attribute;
mod background;
mod delete;
pub mod freshness;
mod mix;
mod preload;
mod query;
mod read;
mod replay;
mod scan;
mod select;
mod sql;
mod turnover;
mod update;
mod work;
mod write;
pub mod ycsb;

use std::sync::Arc;

use crate::layout::Access;
use crate::operation::{Operation, OperationKind};
use crate::record::{Cells, RecordType};
use crate::trial::Settings;

pub use background::BACKGROUND_WORKLOADS;
pub use mix::PARTS as MIX_PARTS;
pub use preload::Preload;
pub use sql::writing_statement;
pub use work::Work;

/// The operations of one client, one after another, without end.
pub trait Workload: Send {
    /// The next operation. The parameters of an [`Operation::Statement`] are appended to `parameters`.
    fn next(&mut self, parameters: &mut Cells) -> Operation;

    /// What the operation just begun and the one that follows it are reported as together; none for one that stands for itself.
    fn compound(&self) -> Option<OperationKind> {
        None
    }

    /// Told that the running operation has ended, as it should or not. Gives the operation that the client sends at once, as a part
    /// of the same compound.
    fn done(&mut self, succeeded: bool) -> Option<Operation> {
        let _ = succeeded;
        None
    }

    /// When the next operation is due, in nanoseconds from the beginning of the measured phase on, of a workload that has times of its own; none
    /// behind its last.
    fn due_ns(&self) -> Option<i64> {
        None
    }

    /// Whether the next operation is a part of what has begun on the same connection.
    fn is_inside(&self) -> bool {
        false
    }

    /// Passes over the next operation, which is not sent.
    fn pass_over(&mut self) -> Option<Operation> {
        None
    }

    /// Takes in which records there are, in common with the other clients.
    fn join(&mut self, keys: &Arc<ycsb::KeySpace>) {
        let _ = keys;
    }
}

/// Which of a trial's clients a workload is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    /// Its number, from 0.
    pub number: u32,
    /// How many there are, at least 1.
    pub of: u32,
    /// The trial's seed.
    pub seed: u64,
}

/// Makes the workload of a client.
type Build = fn(&Settings, Client) -> Result<Box<dyn Workload>, String>;

/// A workload that studies can name.
pub struct Entry {
    /// Name in `workload.name`.
    pub name: &'static str,
    /// One line for `loadline list workloads`.
    pub summary: &'static str,
    /// Whether its operations are on loadline's own tables, which exist then even with no rows.
    pub needs_tables: bool,
    /// Whether the records that were there stay, none is added, and what their columns hold is spread as it was: the tables
    /// then serve the next trial too. Of a mix its parts tell.
    pub keeps_records: bool,
    /// What it asks of single records of a type: the layout prepares only that.
    pub access: fn(&Settings, &RecordType) -> Result<Access, String>,
    /// Makes the workload of a client.
    pub build: Build,
}

/// All workloads, the default first. A new one is a file and a line here.
pub static REGISTRY: &[&Entry] = &[
    &write::WRITE,
    &read::READ,
    &select::SELECT,
    &update::UPDATE,
    &query::QUERY,
    &query::RECENT,
    &scan::SCAN,
    &delete::DELETE,
    &turnover::TURNOVER,
    &freshness::FRESHNESS,
    &mix::MIX,
    &sql::SQL,
    &sql::CONNECT,
    &replay::REPLAY,
    &ycsb::YCSB_A,
    &ycsb::YCSB_B,
    &ycsb::YCSB_C,
    &ycsb::YCSB_D,
    &ycsb::YCSB_E,
    &ycsb::YCSB_F,
    &ycsb::YCSB,
    &ycsb::YCSB_LOAD,
];

/// The registry's entry of a name.
pub fn find(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().copied().find(|entry| entry.name == name)
}

/// The workload that the settings name, for one client.
///
/// # Errors
/// A sentence that names the setting, its value and the remedy.
pub fn build(settings: &Settings, client: Client) -> Result<Box<dyn Workload>, String> {
    (known(settings)?.build)(settings, client)
}

/// Whether the tables that the settings name can serve another trial after this one; see [`Entry::keeps_records`]. Unknown
/// workloads keep nothing.
pub fn keeps_records(settings: &Settings) -> bool {
    let beside = settings.background.as_ref().and_then(|background| find(&background.workload));
    beside.is_none_or(|entry| entry.keeps_records) && foreground_keeps_records(settings)
}

fn foreground_keeps_records(settings: &Settings) -> bool {
    only_asks(settings)
        || !ycsb::inserts(settings) && parts(settings).is_ok_and(|parts| parts.iter().all(|entry| entry.keeps_records))
}

/// Whether all that a trial executes are queries of the study's own, as far as their text tells.
fn only_asks(settings: &Settings) -> bool {
    let workload = &settings.workload;
    has_statements(settings)
        && workload.set_up.is_empty()
        && workload.clean_up.is_empty()
        && sql::writing_statement(&workload.statements).is_none()
}

/// Whether the workload inserts records that stay, so that the tables hold what was there and what was acknowledged.
pub fn only_adds(settings: &Settings) -> bool {
    let writes_beside = settings.background.as_ref().is_some_and(|beside| beside.workload == write::WRITE.name);
    inserts(settings) || (writes_beside && foreground_keeps_records(settings))
}

/// Whether the load that the study asks about does.
fn inserts(settings: &Settings) -> bool {
    settings.workload.name == write::WRITE.name || ycsb::inserts(settings)
}

/// Whether no operation of a trial inserts: the workload reads, or is one of YCSB's that does not.
pub fn inserts_nothing(settings: &Settings) -> bool {
    let is_alone = settings.background.is_none() && settings.workload.evolve_s.is_none();
    only_reads(settings) || (is_alone && ycsb::only_works(settings) && !ycsb::inserts(settings))
}

/// Whether a trial with these settings changes nothing at all in loadline's tables, so that they can be kept for other runs.
pub fn only_reads(settings: &Settings) -> bool {
    let reads = ["read", "select", "scan", "query", "recent"];
    let is_read_beside = settings.background.as_ref().is_none_or(|beside| reads.contains(&beside.workload.as_str()));
    is_read_beside
        && settings.workload.evolve_s.is_none()
        && parts(settings).is_ok_and(|parts| parts.iter().all(|entry| reads.contains(&entry.name)))
}

/// Whether the operations are the study's own statements.
pub fn has_statements(settings: &Settings) -> bool {
    [sql::SQL.name, sql::CONNECT.name].contains(&settings.workload.name.as_str())
}

/// Whether the operations are statements of somebody else's, written down by the study or captured.
pub fn has_foreign_statements(settings: &Settings) -> bool {
    has_statements(settings) || settings.workload.name == replay::REPLAY.name
}

/// The workloads that operations come from: those of a mix, else the one named.
fn parts(settings: &Settings) -> Result<Vec<&'static Entry>, String> {
    let entry = known(settings)?;
    if entry.name != mix::MIX.name {
        return Ok(vec![entry]);
    }
    Ok(mix::parts(&settings.workload)?.into_iter().map(|(entry, _)| entry).collect())
}

fn known(settings: &Settings) -> Result<&'static Entry, String> {
    let name = settings.workload.name.as_str();
    find(name).ok_or_else(|| {
        let names: Vec<_> = REGISTRY.iter().map(|entry| entry.name).collect();
        format!("unknown workload.name \"{name}\"; there are {}", names.join(", "))
    })
}
