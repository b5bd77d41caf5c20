//! The settings of a YCSB workload, resolved from its letter and from `[workload.ycsb]`, which overrides it. Main type: [`Plan`], pure.
//!
//! Invariant: every plan can be carried out: there are records to ask for, and at least one kind of operation.

use crate::trial::{Length, Settings};

/// Names of the distributions.
pub const NAMES: [&str; 6] = ["uniform", "zipfian", "latest", "hotspot", "exponential", "sequential"];

/// Kinds of operation, in YCSB's order.
pub const SHARES: [&str; 5] = ["read", "update", "insert", "scan", "read_modify_write"];

/// Maximum number of records in a scan, in YCSB without a letter and in workload E.
const SCAN_MOST: u32 = 1000;
const SCAN_MOST_E: u32 = 100;

/// YCSB makes room for twice the expected number of inserts.
const ROOM: f64 = 2.0;

/// A workload of YCSB's core package, as its property files state it.
struct Letter {
    name: &'static str,
    shares: [f64; 5],
    requests: &'static str,
    scan_most: u32,
}

/// YCSB's own defaults, followed by the workloads with a letter.
const LETTERS: [Letter; 7] = [
    Letter { name: "ycsb", shares: [0.95, 0.05, 0.0, 0.0, 0.0], requests: "uniform", scan_most: SCAN_MOST },
    Letter { name: "ycsb-a", shares: [0.5, 0.5, 0.0, 0.0, 0.0], requests: "zipfian", scan_most: SCAN_MOST },
    Letter { name: "ycsb-b", shares: [0.95, 0.05, 0.0, 0.0, 0.0], requests: "zipfian", scan_most: SCAN_MOST },
    Letter { name: "ycsb-c", shares: [1.0, 0.0, 0.0, 0.0, 0.0], requests: "zipfian", scan_most: SCAN_MOST },
    Letter { name: "ycsb-d", shares: [0.95, 0.0, 0.05, 0.0, 0.0], requests: "latest", scan_most: SCAN_MOST },
    Letter { name: "ycsb-e", shares: [0.0, 0.0, 0.05, 0.95, 0.0], requests: "zipfian", scan_most: SCAN_MOST_E },
    Letter { name: "ycsb-f", shares: [0.5, 0.0, 0.0, 0.0, 0.5], requests: "zipfian", scan_most: SCAN_MOST },
];

/// The operations of a workload's clients.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The shares of [`SHARES`], with a sum above 0.
    pub shares: [f64; 5],
    /// Name of the distribution by which records are chosen.
    pub requests: String,
    /// Number of records at the beginning.
    pub rows: u64,
    /// Number of the first record asked for.
    pub first: u64,
    /// Number of records asked for from there on, at least 1.
    pub count: u64,
    /// Number of inserts that `zipfian` makes room for.
    pub inserts_expected: u64,
    /// Whether reads ask for all fields.
    pub read_all_fields: bool,
    /// Whether updates set all fields.
    pub write_all_fields: bool,
    /// Minimum and maximum number of records in a scan, and whether the lengths are skewed rather than uniform.
    pub scan: (u32, u32, bool),
    /// See [`crate::trial::YcsbSettings`].
    pub hot_records: f64,
    /// See [`crate::trial::YcsbSettings`].
    pub hot_operations: f64,
    /// See [`crate::trial::YcsbSettings`].
    pub recent_records: f64,
    /// See [`crate::trial::YcsbSettings`].
    pub recent_operations: f64,
}

impl Plan {
    /// Creates the plan of a workload with a letter, or of `ycsb` without one.
    ///
    /// # Errors
    /// A sentence that names the setting, its value and the remedy.
    pub fn new(settings: &Settings) -> Result<Self, String> {
        let (name, ycsb) = (settings.workload.name.as_str(), &settings.workload.ycsb);
        let letter = LETTERS.iter().find(|letter| letter.name == name).unwrap_or(&LETTERS[0]);
        let mut shares = letter.shares;
        for (share, name) in shares.iter_mut().zip(SHARES) {
            *share = ycsb.shares.get(name).copied().unwrap_or(*share);
        }
        if !(shares.iter().sum::<f64>() > 0.0 && shares.iter().all(|share| *share >= 0.0 && share.is_finite())) {
            return Err(format!("workload.ycsb has no share above 0; give one of: {}", SHARES.join(", ")));
        }
        let requests = ycsb.requests.clone().unwrap_or_else(|| letter.requests.to_owned());
        if !NAMES.contains(&requests.as_str()) {
            return Err(format!("workload.ycsb.requests is \"{requests}\"; write one of: {}", NAMES.join(", ")));
        }
        let rows = settings.record.rows;
        if rows == 0 {
            return Err(format!("workload \"{name}\" needs records to ask for; set record.rows to at least 1"));
        }
        let (first, count) = range(settings, rows)?;
        let expected = ycsb.operations_expected.unwrap_or_else(|| operations(settings));
        let inserted = shares[2] / shares.iter().sum::<f64>();
        Ok(Plan {
            shares,
            requests,
            rows,
            first,
            count,
            inserts_expected: (expected as f64 * inserted * ROOM) as u64,
            read_all_fields: ycsb.read_all_fields.unwrap_or(true),
            write_all_fields: ycsb.write_all_fields.unwrap_or(false),
            scan: scan(settings, letter.scan_most)?,
            hot_records: ycsb.hot_records.unwrap_or(0.2),
            hot_operations: ycsb.hot_operations.unwrap_or(0.8),
            recent_records: ycsb.recent_records.unwrap_or(0.857_142_857_1),
            recent_operations: ycsb.recent_operations.unwrap_or(0.95),
        })
    }

    /// Returns whether any operation is of this kind, one of [`SHARES`].
    pub fn has(&self, kind: &str) -> bool {
        SHARES.iter().zip(self.shares).any(|(name, share)| *name == kind && share > 0.0)
    }
}

/// Returns the records asked for: the first one, and their number.
fn range(settings: &Settings, rows: u64) -> Result<(u64, u64), String> {
    let ycsb = &settings.workload.ycsb;
    let first = ycsb.first.unwrap_or(0);
    let count = ycsb.records.unwrap_or_else(|| rows.saturating_sub(first));
    if count == 0 || first.saturating_add(count) > rows {
        return Err(format!(
            "workload.ycsb.first = {first} and {count} records from there on are not within record.rows = {rows}; choose a part of them"
        ));
    }
    Ok((first, count))
}

/// Returns the number of operations that ends the trial; 0 if a time ends it, as in YCSB.
fn operations(settings: &Settings) -> u64 {
    match settings.load.length {
        Length::Operations(operations) => operations,
        Length::OperationsPerClient(operations) => operations.saturating_mul(u64::from(settings.load.clients)),
        Length::Seconds(_) => 0,
    }
}

fn scan(settings: &Settings, most: u32) -> Result<(u32, u32, bool), String> {
    let ycsb = &settings.workload.ycsb;
    let (least, most) = (ycsb.scan_least.unwrap_or(1), ycsb.scan_most.unwrap_or(most));
    if !(1..=most).contains(&least) {
        return Err(format!(
            "workload.ycsb.scan_least is {least} and scan_most is {most}; write 1 or more, the smaller one first"
        ));
    }
    match ycsb.scan_lengths.as_deref() {
        None | Some("uniform") => Ok((least, most, false)),
        Some("zipfian") => Ok((least, most, true)),
        Some(other) => Err(format!("workload.ycsb.scan_lengths is \"{other}\"; write \"uniform\" or \"zipfian\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(name: &str) -> Settings {
        let mut settings = Settings::default();
        settings.workload.name = name.to_owned();
        settings.record.rows = 1000;
        settings
    }

    #[test]
    fn letters_have_the_shares_of_their_property_files() {
        let shares = |name| Plan::new(&settings(name)).unwrap().shares;
        assert_eq!(shares("ycsb-a"), [0.5, 0.5, 0.0, 0.0, 0.0]);
        assert_eq!(shares("ycsb-e"), [0.0, 0.0, 0.05, 0.95, 0.0]);
        let plan = Plan::new(&settings("ycsb-d")).unwrap();
        assert_eq!((plan.requests.as_str(), plan.has("insert"), plan.has("update")), ("latest", true, false));
        assert_eq!(Plan::new(&settings("ycsb-e")).unwrap().scan, (1, 100, false));
    }

    #[test]
    fn what_is_given_takes_the_place_of_the_letter_s() {
        let mut settings = settings("ycsb-a");
        settings.workload.ycsb.shares.insert("insert".to_owned(), 1.0);
        settings.load.length = Length::Operations(600);
        let plan = Plan::new(&settings).unwrap();
        assert_eq!(plan.shares, [0.5, 0.5, 1.0, 0.0, 0.0]);
        assert_eq!(plan.inserts_expected, 600, "half of the operations insert, and there is room for twice as many");
    }

    #[test]
    fn plans_that_cannot_be_carried_out_are_refused() {
        let refusal = |change: fn(&mut Settings)| {
            let mut settings = settings("ycsb-c");
            change(&mut settings);
            Plan::new(&settings).unwrap_err()
        };
        assert!(refusal(|settings| settings.record.rows = 0).contains("record.rows"));
        assert!(refusal(|settings| settings.workload.ycsb.shares = [("read".into(), 0.0)].into()).contains("no share"));
        assert!(refusal(|settings| settings.workload.ycsb.requests = Some("zipf".into())).contains("\"zipf\""));
        assert!(refusal(|settings| settings.workload.ycsb.first = Some(1000)).contains("workload.ycsb.first = 1000"));
        assert!(refusal(|settings| settings.workload.ycsb.scan_least = Some(2000)).contains("scan_least is 2000"));
        assert!(refusal(|settings| settings.workload.ycsb.scan_lengths = Some("x".into())).contains("scan_lengths"));
    }
}
