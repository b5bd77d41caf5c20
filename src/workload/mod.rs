//! Workloads: what clients do. [`Work`] is all that the clients of a trial share; [`build`] makes the [`Workload`] of one.
//!
//! Invariant: what a client does is a function of (settings, seed, client, number of clients), never of the answers or of
//! other clients.

mod preload;
mod read;
mod sql;
mod work;
mod write;

use crate::operation::Operation;
use crate::record::Cells;
use crate::trial::Settings;

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
    /// Makes the workload of a client.
    pub build: Build,
}

/// All workloads, the default first. A new one is a file and a line here.
pub static REGISTRY: &[&Entry] = &[&write::WRITE, &read::READ, &sql::SQL];

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

fn known(settings: &Settings) -> Result<&'static Entry, String> {
    let name = settings.workload.name.as_str();
    find(name).ok_or_else(|| {
        let names: Vec<_> = REGISTRY.iter().map(|entry| entry.name).collect();
        format!("unknown workload.name \"{name}\"; there are {}", names.join(", "))
    })
}
