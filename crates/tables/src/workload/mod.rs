//! Workloads: the operations of clients. [`Work`] is the state that all clients of a trial share; [`build`] makes the [`Workload`] of one client.
//!
//! Invariant: the operations of a client are a function of (settings, seed, client, number of clients), never of the content of answers or of
//! other clients. One exception: clients of `ycsb` workloads know which records exist by now, as YCSB's clients do (decision 0013).

mod attribute;
mod background;
mod delete;
pub mod freshness;
mod indexes;
mod mix;
mod preload;
mod query;
mod questions;
mod read;
mod replay;
mod retention;
mod scan;
mod select;
mod sql;
mod stored;
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
pub use retention::Retirement;
pub use sql::writing_statement;
pub use work::Work;

/// The endless sequence of one client's operations.
pub trait Workload: Send {
    /// Returns the next operation. The parameters of an [`Operation::Statement`] are appended to `parameters`.
    fn next(&mut self, parameters: &mut Cells) -> Operation;

    /// Returns the kind under which the operation just begun and the one that follows it are reported together; `None` if the operation is reported alone.
    fn compound(&self) -> Option<OperationKind> {
        None
    }

    /// Tells the workload that the running operation has ended, and whether it succeeded. Returns an operation that the client sends at once, as a part
    /// of the same compound, or `None`.
    fn done(&mut self, succeeded: bool) -> Option<Operation> {
        let _ = succeeded;
        None
    }

    /// Returns whether its clients may work long on answers, which they check.
    fn works_long(&self) -> bool {
        false
    }

    /// Returns when the next operation is due, in nanoseconds from the beginning of the measured phase, for a workload with times of its own; `None` for others
    /// and after the last operation.
    fn due_ns(&self) -> Option<i64> {
        None
    }

    /// Returns whether the next operation belongs to something that has begun on the same connection, such as a transaction.
    fn is_inside(&self) -> bool {
        false
    }

    /// Skips the next operation without sending it, and returns it.
    fn pass_over(&mut self) -> Option<Operation> {
        None
    }

    /// Makes the workload share its knowledge of the existing records with the other clients.
    fn join(&mut self, keys: &Arc<ycsb::KeySpace>) {
        let _ = keys;
    }
}

/// The client, among those of a trial, that a workload is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    /// The client's number, from 0.
    pub number: u32,
    /// Number of clients, at least 1.
    pub of: u32,
    /// The trial's seed.
    pub seed: u64,
}

/// A function that makes the workload of a client.
type Build = fn(&Settings, Client) -> Result<Box<dyn Workload>, String>;

/// A workload that studies can name.
pub struct Entry {
    /// Name in `workload.name`.
    pub name: &'static str,
    /// One line for `loadline list workloads`.
    pub summary: &'static str,
    /// Whether its operations use loadline's own tables, which are then created even for 0 rows.
    pub needs_tables: bool,
    /// Whether the existing records stay, none is added, and the distribution of their values stays the same, so that the tables
    /// can serve the next trial, too. For a mix, its parts decide.
    pub keeps_records: bool,
    /// Returns the operations on single records of a type that it needs; the layout prepares only these.
    pub access: fn(&Settings, &RecordType) -> Result<Access, String>,
    /// Makes the workload of a client.
    pub build: Build,
}

/// All workloads, the default first. A new one takes a file and a line here.
pub static REGISTRY: &[&Entry] = &[
    &write::WRITE,
    &read::READ,
    &select::SELECT,
    &update::UPDATE,
    &query::QUERY,
    &query::RECENT,
    &questions::QUESTIONS,
    &scan::SCAN,
    &delete::DELETE,
    &turnover::TURNOVER,
    &turnover::ADDITIONS,
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

/// Returns the registry entry with this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().copied().find(|entry| entry.name == name)
}

/// Makes the workload that the settings name, for one client.
///
/// # Errors
/// A sentence that names the setting, its value and the remedy.
pub fn build(settings: &Settings, client: Client) -> Result<Box<dyn Workload>, String> {
    (known(settings)?.build)(settings, client)
}

/// Returns whether the tables that the settings name can serve another trial after this one; see [`Entry::keeps_records`]. False for
/// unknown workloads.
pub fn keeps_records(settings: &Settings) -> bool {
    let beside = settings.background.as_ref().and_then(|background| find(&background.workload));
    beside.is_none_or(|entry| entry.keeps_records) && foreground_keeps_records(settings)
}

fn foreground_keeps_records(settings: &Settings) -> bool {
    only_asks(settings)
        || !ycsb::inserts(settings) && parts(settings).is_ok_and(|parts| parts.iter().all(|entry| entry.keeps_records))
}

/// Returns whether a trial executes only the study's own queries, judging by the text of the statements.
fn only_asks(settings: &Settings) -> bool {
    let workload = &settings.workload;
    has_statements(settings)
        && workload.set_up.is_empty()
        && workload.clean_up.is_empty()
        && sql::writing_statement(&workload.statements).is_none()
}

/// Returns whether the workload inserts records that stay, so that the tables hold the previous records and the acknowledged ones.
pub fn only_adds(settings: &Settings) -> bool {
    let writes_beside = settings.background.as_ref().is_some_and(|beside| beside.workload == write::WRITE.name);
    inserts(settings) || (writes_beside && foreground_keeps_records(settings))
}

/// Returns whether the measured load, as opposed to the background load, inserts records that stay.
fn inserts(settings: &Settings) -> bool {
    settings.workload.name == write::WRITE.name || ycsb::inserts(settings)
}

/// Returns whether no operation of a trial inserts: the workload only reads, or is a YCSB workload without inserts.
pub fn inserts_nothing(settings: &Settings) -> bool {
    let is_alone = settings.background.is_none() && settings.workload.evolve_s.is_none();
    only_reads(settings) || (is_alone && ycsb::only_works(settings) && !ycsb::inserts(settings))
}

/// Returns whether a trial with these settings changes nothing in loadline's tables, so that they can be kept for other runs.
pub fn only_reads(settings: &Settings) -> bool {
    let reads = ["read", "select", "scan", "query", "recent", "questions"];
    let is_read_beside = settings.background.as_ref().is_none_or(|beside| reads.contains(&beside.workload.as_str()));
    is_read_beside
        && settings.workload.evolve_s.is_none()
        && parts(settings).is_ok_and(|parts| parts.iter().all(|entry| reads.contains(&entry.name)))
}

/// Returns whether the operations are the study's own statements.
pub fn has_statements(settings: &Settings) -> bool {
    [sql::SQL.name, sql::CONNECT.name].contains(&settings.workload.name.as_str())
}

/// Returns whether the operations are statements that loadline did not make: written in the study, or captured.
pub fn has_foreign_statements(settings: &Settings) -> bool {
    has_statements(settings) || settings.workload.name == replay::REPLAY.name
}

/// Returns the workloads that operations come from: the parts of a mix, otherwise the named workload.
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
