//! A client of a YCSB run: reads, updates, inserts, scans and read-modify-writes, chosen by their shares.
//!
//! Main type: [`Core`]. Invariant: it asks for existing records and, together with the other clients, inserts each number once.

use std::sync::Arc;

use super::key_space::KeySpace;
use super::plan::{Plan, SHARES};
use super::requests::Requests;
use crate::data;
use crate::data::skew::Skew;
use crate::operation::{Fields, Operation, OperationKind};
use crate::random::Stream;
use crate::record::Cells;
use crate::trial::Settings;
use crate::workload::{Client, Workload};

/// Separates the random numbers of these workloads from those of others.
const LANE: u64 = 0x7963_7362;

/// Kinds of operation, as indexes into [`SHARES`].
const READ: usize = 0;
const UPDATE: usize = 1;
const INSERT: usize = 2;
const SCAN: usize = 3;

/// One client of a run.
pub struct Core {
    stream: Stream,
    keys: Arc<KeySpace>,
    requests: Requests,
    /// Shares of all 64-bit words that choose a kind of operation or one before it.
    below: [u64; SHARES.len()],
    /// Number of value columns of a record.
    fields: u64,
    read_all_fields: bool,
    write_all_fields: bool,
    scan: Scan,
    /// New values are those of a record below this number; 0 stands for all 64-bit numbers.
    likes: u64,
    running: Running,
}

/// The action that follows when the running operation ends.
enum Running {
    Nothing,
    /// The number of the record being inserted.
    Insert(u64),
    /// The update of the record being read.
    Rewrite(Operation),
}

/// The lengths of scans.
struct Scan {
    least: u32,
    count: u64,
    skew: Option<Skew>,
}

impl Core {
    /// Creates a client with its own knowledge of the records, until it joins others.
    ///
    /// # Errors
    /// A sentence that names the setting, its value and the remedy.
    pub fn new(settings: &Settings, client: Client) -> Result<Self, String> {
        let plan = Plan::new(settings)?;
        let generator = data::build(&settings.record)?;
        if plan.has("insert") {
            check_inserts(settings)?;
        }
        let total: f64 = plan.shares.iter().sum();
        let mut sum = 0.0;
        let below = plan.shares.map(|share| {
            sum += share;
            // Conversion of a float stops at the largest word, which is where the last share ends.
            (sum / total * 2.0_f64.powi(64)) as u64
        });
        let (least, most, is_skewed) = plan.scan;
        let count = u64::from(most - least) + 1;
        Ok(Core {
            stream: Stream::new(client.seed, u64::from(client.number), LANE),
            keys: Arc::new(KeySpace::new(settings.record.rows)),
            requests: Requests::new(&plan, client)?,
            below,
            fields: generator.record_type().values.len() as u64,
            read_all_fields: plan.read_all_fields,
            write_all_fields: plan.write_all_fields,
            scan: Scan { least, count, skew: is_skewed.then(|| Skew::new(count)) },
            likes: if settings.record.type_name == "usertable" { 0 } else { plan.rows },
            running: Running::Nothing,
        })
    }

    fn one_field(&mut self) -> Fields {
        Fields::One(self.stream.below(self.fields) as u16)
    }

    fn read(&mut self, record: u64) -> Operation {
        if self.read_all_fields {
            Operation::Read { record }
        } else {
            Operation::Select { record, fields: self.one_field() }
        }
    }

    fn update(&mut self, record: u64) -> Operation {
        let fields = if self.write_all_fields { Fields::All } else { self.one_field() };
        let like = if self.likes == 0 { self.stream.word() } else { self.stream.below(self.likes) };
        Operation::Update { record, like, fields }
    }
}

impl Workload for Core {
    #[inline]
    fn next(&mut self, _: &mut Cells) -> Operation {
        let word = self.stream.word();
        let kind = self.below.iter().position(|below| word < *below).unwrap_or_else(|| self.last_kind());
        self.running = Running::Nothing;
        if kind == INSERT {
            let first = self.keys.claim(1);
            self.running = Running::Insert(first);
            return Operation::Insert { first, records: 1 };
        }
        let record = self.requests.next(&mut self.stream, &self.keys);
        match kind {
            READ => self.read(record),
            UPDATE => self.update(record),
            SCAN => {
                let length = match &self.scan.skew {
                    Some(skew) => skew.rank(self.stream.unit()),
                    None => self.stream.below(self.scan.count),
                };
                Operation::Scan { first: record, records: self.scan.least + length as u32 }
            }
            _ => {
                let read = self.read(record);
                self.running = Running::Rewrite(self.update(record));
                read
            }
        }
    }

    #[inline]
    fn compound(&self) -> Option<OperationKind> {
        matches!(self.running, Running::Rewrite(_)).then_some(OperationKind::ReadModifyWrite)
    }

    #[inline]
    fn done(&mut self, succeeded: bool) -> Option<Operation> {
        match std::mem::replace(&mut self.running, Running::Nothing) {
            Running::Nothing => None,
            Running::Insert(first) => {
                self.keys.settle(first, 1);
                None
            }
            Running::Rewrite(update) => succeeded.then_some(update),
        }
    }

    fn join(&mut self, keys: &Arc<KeySpace>) {
        self.keys = Arc::clone(keys);
    }
}

impl Core {
    /// Returns the last kind that has a share: the largest word of all chooses it.
    fn last_kind(&self) -> usize {
        let largest = self.below[SHARES.len() - 1];
        self.below.iter().position(|below| *below == largest).unwrap_or(READ)
    }
}

/// Checks that clients can insert records one after another, each with the next number: a record of a measurement begun by another client cannot be
/// written.
pub fn check_inserts(settings: &Settings) -> Result<(), String> {
    let generator = data::build(&settings.record)?;
    match generator.records_per_measurement() {
        1 => Ok(()),
        records => Err(format!(
            "workload \"{}\" inserts single records and {records} of record type \"{}\" make a measurement; set \
             record.per_measurement to 1",
            settings.workload.name,
            generator.record_type().name
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(name: &str) -> Settings {
        let mut settings = Settings::default();
        settings.workload.name = name.to_owned();
        settings.record.type_name = "usertable".to_owned();
        settings.record.rows = 1000;
        settings.record.per_measurement = 1;
        settings
    }

    fn core(name: &str, change: impl FnOnce(&mut Settings)) -> Core {
        let mut settings = settings(name);
        change(&mut settings);
        Core::new(&settings, Client { number: 0, of: 1, seed: 7 }).unwrap()
    }

    /// Counts operations by kind, a read-modify-write as one; each operation succeeds.
    fn counts(core: &mut Core, operations: u32) -> Vec<(OperationKind, f64)> {
        let mut counts: Vec<(OperationKind, f64)> = Vec::new();
        for _ in 0..operations {
            let kind = core.next(&mut Cells::new()).kind();
            let kind = core.compound().unwrap_or(kind);
            if let Some(update) = core.done(true) {
                assert_eq!((kind, update.kind()), (OperationKind::ReadModifyWrite, OperationKind::Update));
                assert_eq!(core.done(true), None);
            }
            match counts.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, count)) => *count += 1.0,
                None => counts.push((kind, 1.0)),
            }
        }
        counts
    }

    #[test]
    fn operations_have_the_shares_of_the_letter() {
        use OperationKind::{Insert, Read, ReadModifyWrite, Scan, Update};
        for (name, expected) in [
            ("ycsb-a", vec![(Read, 0.5), (Update, 0.5)]),
            ("ycsb-b", vec![(Read, 0.95), (Update, 0.05)]),
            ("ycsb-c", vec![(Read, 1.0)]),
            ("ycsb-d", vec![(Read, 0.95), (Insert, 0.05)]),
            ("ycsb-e", vec![(Scan, 0.95), (Insert, 0.05)]),
            ("ycsb-f", vec![(Read, 0.5), (ReadModifyWrite, 0.5)]),
        ] {
            let counts = counts(&mut core(name, |_| {}), 20_000);
            assert_eq!(counts.len(), expected.len(), "{name}: {counts:?}");
            let chi2: f64 = expected
                .iter()
                .map(|(kind, share)| {
                    let seen = counts.iter().find(|(known, _)| known == kind).map_or(0.0, |(_, count)| *count);
                    (seen - share * 20_000.0).powi(2) / (share * 20_000.0)
                })
                .sum();
            assert!(chi2 < 18.5, "{name}: chi-square {chi2}; 18.5 with 2 degrees has a probability of 0.0001");
        }
    }

    #[test]
    fn a_read_modify_write_updates_what_it_has_read() {
        let mut core = core("ycsb-f", |_| {});
        for _ in 0..100 {
            let Operation::Read { record } = core.next(&mut Cells::new()) else { panic!() };
            let is_compound = core.compound().is_some();
            match core.done(true) {
                Some(Operation::Update { record: updated, .. }) => assert!(is_compound && updated == record),
                None => assert!(!is_compound),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn nothing_is_written_after_a_read_that_failed() {
        let mut core = core("ycsb-f", |_| {});
        (0..100).for_each(|_| {
            core.next(&mut Cells::new());
            assert_eq!(core.done(false), None);
        });
    }

    #[test]
    fn single_fields_are_read_and_written_evenly() {
        let mut core = core("ycsb-a", |settings| settings.workload.ycsb.read_all_fields = Some(false));
        let mut counts = [[0.0_f64; 10]; 2];
        for _ in 0..20_000 {
            let (side, fields) = match core.next(&mut Cells::new()) {
                Operation::Select { fields, .. } => (0, fields),
                Operation::Update { fields, .. } => (1, fields),
                other => panic!("{other:?}"),
            };
            let Fields::One(place) = fields else { panic!("all fields") };
            counts[side][usize::from(place)] += 1.0;
        }
        for counts in counts {
            let expected = counts.iter().sum::<f64>() / 10.0;
            let chi2: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
            assert!(chi2 < 33.7, "chi-square {chi2} of {counts:?}; 33.7 with 9 degrees has a probability of 0.0001");
        }
        let mut all = self::core("ycsb-a", |settings| settings.workload.ycsb.write_all_fields = Some(true));
        let operations = (0..100).map(|_| all.next(&mut Cells::new()));
        assert!(
            operations
                .into_iter()
                .all(|operation| !matches!(operation, Operation::Update { fields: Fields::One(_), .. }))
        );
    }

    #[test]
    fn scans_have_all_lengths_evenly_or_mostly_short_ones() {
        let lengths = |distribution: &str| {
            let mut core = core("ycsb-e", |settings| {
                settings.workload.ycsb.scan_lengths = Some(distribution.to_owned());
                settings.workload.ycsb.shares = [("insert".to_owned(), 0.0)].into();
            });
            let mut counts = [0.0_f64; 101];
            for _ in 0..20_000 {
                let Operation::Scan { records, .. } = core.next(&mut Cells::new()) else { panic!() };
                counts[records as usize] += 1.0;
            }
            assert_eq!(counts[0], 0.0);
            counts
        };
        let chi2: f64 = lengths("uniform")[1..].iter().map(|count| (count - 200.0).powi(2) / 200.0).sum();
        assert!(chi2 < 99.0 + 4.5 * 198.0_f64.sqrt(), "chi-square {chi2}");
        let skewed = lengths("zipfian");
        let expected = 20_000.0 * Skew::new(100).begin_of(1);
        assert!((skewed[1] - expected).abs() < 5.0 * expected.sqrt(), "{} and {expected}", skewed[1]);
    }

    #[test]
    fn clients_that_share_their_records_insert_each_once_and_read_those_of_others() {
        let settings = settings("ycsb-d");
        let keys = Arc::new(KeySpace::new(1000));
        let mut clients: Vec<Core> = (0..4)
            .map(|number| {
                let mut core = Core::new(&settings, Client { number, of: 4, seed: 7 }).unwrap();
                core.join(&keys);
                core
            })
            .collect();
        let (mut inserted, mut largest) = (Vec::new(), [0; 4]);
        for round in 0..4000 {
            let client = round % 4;
            match clients[client].next(&mut Cells::new()) {
                Operation::Insert { first, .. } => inserted.push(first),
                Operation::Read { record } => {
                    assert!(record < keys.count());
                    largest[client] = largest[client].max(record);
                }
                other => panic!("{other:?}"),
            }
            clients[client].done(true);
        }
        assert_eq!(inserted, (1000..1000 + inserted.len() as u64).collect::<Vec<_>>());
        assert!(inserted.len() > 100 && largest.iter().all(|record| *record > 1100), "{largest:?}");
    }

    #[test]
    fn records_that_clients_cannot_insert_one_by_one_are_refused() {
        let mut settings = settings("ycsb-d");
        (settings.record.type_name, settings.record.per_measurement) = ("qos".to_owned(), 1000);
        let refusal = Core::new(&settings, Client { number: 0, of: 1, seed: 1 }).err().unwrap();
        assert!(refusal.contains("record.per_measurement to 1"), "{refusal}");
    }
}
