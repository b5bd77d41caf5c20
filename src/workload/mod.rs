//! Workloads: what clients do. [`Work`] is all that the clients of a trial share; [`build`] makes the [`Workload`] of one.
//!
//! Invariant: what a client does is a function of (settings, seed, client, number of clients), never of the answers or of
//! other clients.

mod attribute;
mod mix;
mod preload;
mod read;
mod select;
mod sql;
mod update;
mod work;
mod write;

use crate::layout::Access;
use crate::operation::Operation;
use crate::record::{Cells, RecordType};
use crate::trial::Settings;

pub use mix::PARTS as MIX_PARTS;
pub use preload::Preload;
pub use work::Work;

/// The operations of one client, one after another, without end.
pub trait Workload: Send {
    /// The next operation. The parameters of an [`Operation::Statement`] are appended to `parameters`.
    fn next(&mut self, parameters: &mut Cells) -> Operation;
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
pub static REGISTRY: &[&Entry] = &[&write::WRITE, &read::READ, &select::SELECT, &update::UPDATE, &mix::MIX, &sql::SQL];

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
    parts(settings).is_ok_and(|parts| parts.iter().all(|entry| entry.keeps_records))
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
