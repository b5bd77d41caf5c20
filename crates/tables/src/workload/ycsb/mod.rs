//! The core workloads of YCSB (Cooper and others, "Benchmarking cloud serving systems with YCSB", SoCC 2010; package version 0.17):
//! `ycsb-a` to `ycsb-f`, `ycsb` without a letter, and `ycsb-load`.
//!
//! Main types: [`KeySpace`], the existing records; `Core`, a client of a run; `Loading`, a client of a load. Invariant: operations, records and
//! fields are chosen as YCSB chooses them, by random numbers of the client's own; clients share only the number of
//! existing records.

mod core;
mod key_space;
mod plan;
mod requests;

use std::sync::Arc;

use super::{Client, Entry, Workload};
use crate::layout::Access;
use crate::operation::{Fields, Operation};
use crate::record::{Cells, RecordType};
use crate::trial::Settings;

pub use key_space::KeySpace;
pub use plan::NAMES as REQUESTS;
pub use plan::SHARES;

use self::core::Core;
use plan::Plan;

/// Maximum number of records in one operation of a load.
const BATCH_MAX: u32 = super::write::BATCH_MAX;

/// Returns the registry entry of a workload with a letter.
const fn letter(name: &'static str, summary: &'static str) -> Entry {
    Entry {
        name,
        summary,
        needs_tables: true,
        keeps_records: true,
        access,
        build: |settings, client| Ok(Box::new(Core::new(settings, client)?)),
    }
}

/// Registry entries.
pub(super) static YCSB_A: Entry = letter("ycsb-a", "YCSB A, update heavy: half reads, half updates, zipfian");
pub(super) static YCSB_B: Entry = letter("ycsb-b", "YCSB B, read mostly: 95 % reads, 5 % updates, zipfian");
pub(super) static YCSB_C: Entry = letter("ycsb-c", "YCSB C, read only, zipfian");
pub(super) static YCSB_D: Entry =
    letter("ycsb-d", "YCSB D, read latest: 95 % reads of the latest records, 5 % inserts");
pub(super) static YCSB_E: Entry = letter("ycsb-e", "YCSB E, short ranges: 95 % scans of 1 to 100 records, 5 % inserts");
pub(super) static YCSB_F: Entry = letter("ycsb-f", "YCSB F: half reads, half read-modify-writes, zipfian");
pub(super) static YCSB: Entry = letter(
    "ycsb",
    "YCSB with the shares and the distribution of [workload.ycsb]: by default 95 % reads, 5 % updates, uniform",
);
pub(super) static YCSB_LOAD: Entry = Entry {
    name: "ycsb-load",
    summary: "YCSB's load phase: clients insert records one after another, workload.batch in a transaction",
    needs_tables: true,
    keeps_records: false,
    access: |_, _| Ok(Access::default()),
    build: |settings, client| Ok(Box::new(Loading::new(settings, client)?)),
};

/// Returns whether the settings name one of these workloads.
fn is_ycsb(settings: &Settings) -> bool {
    [&YCSB, &YCSB_A, &YCSB_B, &YCSB_C, &YCSB_D, &YCSB_E, &YCSB_F, &YCSB_LOAD]
        .iter()
        .any(|entry| entry.name == settings.workload.name)
}

/// Returns whether clients work on existing records, rather than load them.
pub(super) fn only_works(settings: &Settings) -> bool {
    is_ycsb(settings) && settings.workload.name != YCSB_LOAD.name
}

/// Returns whether clients insert records.
pub fn inserts(settings: &Settings) -> bool {
    is_ycsb(settings)
        && (settings.workload.name == YCSB_LOAD.name || Plan::new(settings).is_ok_and(|plan| plan.has("insert")))
}

/// Returns the records that exist when a trial begins, shared by its clients; `None` for other workloads.
pub(super) fn key_space(settings: &Settings) -> Option<Arc<KeySpace>> {
    let is_load = settings.workload.name == YCSB_LOAD.name;
    let first = settings.workload.ycsb.first.filter(|_| is_load);
    is_ycsb(settings).then(|| Arc::new(KeySpace::new(first.unwrap_or(settings.record.rows))))
}

/// Returns the access to single records that a plan needs.
fn access(settings: &Settings, record_type: &RecordType) -> Result<Access, String> {
    let plan = Plan::new(settings)?;
    let single = || (0..record_type.values.len()).map(|place| Fields::One(place as u16)).collect::<Vec<_>>();
    let rewrites = plan.has("read_modify_write");
    let reads = plan.has("read") || rewrites;
    let select = if !plan.read_all_fields && reads { single() } else { Vec::new() };
    let update = match (plan.has("update") || rewrites, plan.write_all_fields) {
        (true, true) => vec![Fields::All],
        (true, false) => single(),
        (false, _) => Vec::new(),
    };
    Ok(Access { read: plan.read_all_fields && reads, select, update, scan: plan.has("scan"), delete: false })
}

/// Inserts records, each number once.
struct Loading {
    keys: Arc<KeySpace>,
    batch: u32,
    running: u64,
}

impl Loading {
    fn new(settings: &Settings, _: Client) -> Result<Self, String> {
        let batch = settings.workload.batch;
        if batch == 0 || batch > BATCH_MAX {
            return Err(format!("workload.batch is {batch}; write 1 to {BATCH_MAX}"));
        }
        if let Some(first) = settings.workload.ycsb.first
            && first < settings.record.rows
        {
            return Err(format!(
                "workload.ycsb.first is {first}, which is one of the {} records that are there; lower record.rows",
                settings.record.rows
            ));
        }
        core::check_inserts(settings)?;
        Ok(Loading { keys: Arc::new(KeySpace::new(settings.record.rows)), batch, running: 0 })
    }
}

impl Workload for Loading {
    #[inline]
    fn next(&mut self, _: &mut Cells) -> Operation {
        self.running = self.keys.claim(self.batch);
        Operation::Insert { first: self.running, records: self.batch }
    }

    fn done(&mut self, _succeeded: bool) -> Option<Operation> {
        self.keys.settle(self.running, self.batch);
        None
    }

    fn join(&mut self, keys: &Arc<KeySpace>) {
        self.keys = Arc::clone(keys);
    }
}
