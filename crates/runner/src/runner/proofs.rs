//! Results of `loadline durability` on this machine, kept for later studies.
//!
//! Main functions: [`keep`] and [`proved`]. Invariant: a proof holds for one version of one database with the settings that decide which writes survive,
//! and for no other. A line that cannot be read is no proof.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::cache;
use crate::database::{Entry, level::Deciding};
use crate::trial::DatabaseSettings;
use crate::units::show_number;

/// Largest number of bytes read from the file: some ten thousand proofs.
const BYTES_MOST: u64 = 4 << 20;

/// Largest number of proofs kept; the oldest are dropped first.
const PROOFS_MOST: usize = 1000;

/// The result of a series of power cuts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proof {
    /// Name of the database.
    pub database: String,
    /// The storage engine, if the database has several.
    pub engine: Option<String>,
    /// The version of the database.
    pub version: String,
    /// The settings that decide which writes survive.
    pub settings: Deciding,
    /// Number of power cuts.
    pub cuts: u64,
    /// Number of cuts after which an acknowledged record could not be read.
    pub harmed: u64,
    /// The seed of the cuts: the same cuts again prove nothing more.
    pub seed: u64,
}

impl Proof {
    /// Creates the proof of cuts of a database that reported these facts.
    pub fn new(
        entry: &Entry,
        settings: &DatabaseSettings,
        facts: &BTreeMap<String, String>,
        (cuts, harmed, seed): (u64, u64, u64),
    ) -> Self {
        Proof {
            database: settings.name.clone(),
            engine: settings.engine.clone().or_else(|| entry.engines.first().map(|engine| (*engine).to_owned())),
            version: facts.get("version").cloned().unwrap_or_default(),
            settings: entry.deciding(settings, facts),
            cuts,
            harmed,
            seed,
        }
    }

    fn is_of(&self, other: &Proof) -> bool {
        (&self.database, &self.engine, &self.version, &self.settings)
            == (&other.database, &other.engine, &other.version, &other.settings)
    }
}

/// Keeps a proof. If it cannot be kept, studies do not mention it.
pub fn keep(proof: Proof) {
    let Some(file) = file() else { return };
    let proofs = with(read(&file), proof);
    let text: String = proofs.iter().filter_map(|proof| Some(serde_json::to_string(proof).ok()? + "\n")).collect();
    let directory = file.parent().map(fs::create_dir_all);
    let beside = file.with_extension(format!("{}.new", std::process::id()));
    let kept = directory.transpose().and_then(|_| fs::write(&beside, text)).and_then(|()| fs::rename(&beside, &file));
    if let Err(error) = kept {
        super::notes::note(&format!("note: what was found is not kept for studies: {}: {error}", file.display()));
        // A half-written file is useless.
        let _ = fs::remove_file(&beside);
    }
}

/// Returns what was shown for a database that reported these facts, such as `0 of 300 cuts`; `None` if it was never tested.
pub fn proved(entry: &Entry, settings: &DatabaseSettings, facts: &[(String, String)]) -> Option<String> {
    let facts = facts.iter().cloned().collect();
    let wanted = Proof::new(entry, settings, &facts, (0, 0, 0));
    let of = |proof: &&Proof| proof.is_of(&wanted);
    let (cuts, harmed) =
        read(&file()?).iter().filter(of).fold((0, 0), |sum, proof| (sum.0 + proof.cuts, sum.1 + proof.harmed));
    let [shown, all] = [harmed, cuts].map(|count| show_number(count as f64));
    (cuts > 0).then(|| format!("{shown} of {all} cuts"))
}

fn file() -> Option<PathBuf> {
    Some(cache::place()?.join("durability.jsonl"))
}

/// Reads the proofs of a file; empty if the file does not exist.
fn read(file: &PathBuf) -> Vec<Proof> {
    let mut text = String::new();
    let read = fs::File::open(file).and_then(|file| file.take(BYTES_MOST).read_to_string(&mut text));
    if read.is_err() {
        return Vec::new();
    }
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Adds a proof, which replaces an earlier proof of the same cuts with fewer of them.
fn with(mut proofs: Vec<Proof>, proof: Proof) -> Vec<Proof> {
    let is_same = |known: &Proof| known.is_of(&proof) && known.seed == proof.seed;
    if proofs.iter().any(|known| is_same(known) && known.cuts > proof.cuts) {
        return proofs;
    }
    proofs.retain(|known| !is_same(known));
    proofs.push(proof);
    let too_many = proofs.len().saturating_sub(PROOFS_MOST);
    proofs.drain(..too_many);
    proofs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::find;

    fn proof(commit: &str, (cuts, harmed, seed): (u64, u64, u64)) -> Proof {
        let settings = DatabaseSettings { name: "postgres".to_owned(), ..DatabaseSettings::default() };
        let facts = [("version", "15.18"), ("synchronous_commit", commit), ("shared_buffers", "1GB")];
        let facts = facts.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        Proof::new(find("postgres").unwrap(), &settings, &facts, (cuts, harmed, seed))
    }

    #[test]
    fn a_proof_is_of_the_settings_that_decide() {
        assert!(proof("on", (1, 0, 1)).is_of(&proof("on", (9, 2, 3))));
        assert!(!proof("on", (1, 0, 1)).is_of(&proof("off", (1, 0, 1))));
        assert!(!proof("on", (1, 0, 1)).settings.contains_key("shared_buffers"));
    }

    #[test]
    fn the_same_cuts_again_prove_nothing_more() {
        let count = |proofs: &[Proof]| proofs.iter().map(|proof| proof.cuts).sum::<u64>();
        let once = with(Vec::new(), proof("on", (100, 0, 1)));
        assert_eq!(count(&with(once.clone(), proof("on", (50, 0, 1)))), 100);
        assert_eq!(count(&with(once.clone(), proof("on", (300, 0, 1)))), 300);
        assert_eq!(count(&with(once, proof("on", (300, 0, 2)))), 400);
    }

    #[test]
    fn what_cannot_be_read_is_no_proof() {
        let file = std::env::temp_dir().join(format!("loadline-proofs-{}", std::process::id()));
        fs::write(&file, "{}\nnonsense\n").unwrap();
        assert_eq!(read(&file), []);
        fs::write(&file, format!("nonsense\n{}\n", serde_json::to_string(&proof("on", (3, 1, 1))).unwrap())).unwrap();
        assert_eq!(read(&file), [proof("on", (3, 1, 1))]);
        fs::remove_file(&file).unwrap();
        assert_eq!(read(&file), []);
    }
}
