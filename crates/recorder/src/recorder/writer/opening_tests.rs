//! Tests of openings: spools that are copied, restored, killed and run at once, against a ledger that follows the rules.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::*;
use crate::random::Stream;
use crate::recorder::spool::{LaneNews, Offer, Opening, Reader, SpoolFile};

/// Returns openings by token and newest entry; the present one is the last.
fn own(openings: &[(&str, i64)], is_checked: bool) -> LaneOpening {
    let opening = |(place, (token, newest)): (usize, &(&str, i64))| Opening {
        number: place as i64 + 1,
        token: (*token).to_owned(),
        newest: *newest,
    };
    let openings = openings.iter().enumerate().map(opening).collect();
    LaneOpening { recorder: "r".to_owned(), openings, is_checked }
}

fn history(rows: &[(&str, &str, i64, i64)]) -> Vec<Registered> {
    let registered = |(place, (token, parent, sequence, newest)): (usize, &(&str, &str, i64, i64))| Registered {
        number: place as i64 + 1,
        token: (*token).to_owned(),
        parent: (*parent).to_owned(),
        sequence: *sequence,
        newest: *newest,
    };
    rows.iter().enumerate().map(registered).collect()
}

/// Returns the standing that has parted behind an entry; others on the branch that begins with this opening are to find its row.
fn parted(same_through: i64, branch: &str) -> Standing {
    Standing::Parted { same_through, recorder: hash_hex(&["r", branch]) }
}

#[test]
fn a_row_that_nobody_else_has_moved_is_the_spools() {
    assert_eq!(standing(0, &[], &own(&[("now", 0)], false)), Standing::Free);
    assert_eq!(standing(7, &[], &own(&[("now", 9)], false)), Standing::Free);
    let before = history(&[("a", "", 7, 9)]);
    assert_eq!(standing(12, &before, &own(&[("a", 9), ("now", 12)], false)), Standing::Free);
    let now = history(&[("a", "", 7, 9), ("now", "a", 9, 9)]);
    assert_eq!(standing(12, &now, &own(&[("a", 9), ("now", 9)], true)), Standing::Own);
}

#[test]
fn a_spool_that_was_restored_or_lost_its_newest_entries_is_behind_its_row() {
    // From before there were openings, from the opening that has moved the row, and from one before that.
    assert_eq!(standing(12, &[], &own(&[("now", 9)], false)), parted(9, "now"));
    let moved = history(&[("a", "", 0, 0), ("b", "a", 10, 14)]);
    let of_b = own(&[("a", 0), ("b", 14), ("now", 18)], false);
    assert_eq!(standing(20, &moved, &of_b), parted(18, "now"));
    assert_eq!(standing(20, &moved, &own(&[("a", 0), ("now", 8)], false)), parted(8, "now"));
    assert_eq!(standing(20, &moved, &own(&[("now", 5)], false)), parted(0, "now"));
    // Entries that the row has not passed yet are written through it, and nothing is written twice.
    assert_eq!(standing(7, &moved[..1], &own(&[("a", 0), ("now", 8)], false)), Standing::Free);
    // It was opened before while the database did not answer, and has taken in entries of its own since.
    let twice = own(&[("a", 0), ("b", 14), ("unseen", 18), ("now", 25)], false);
    assert_eq!(standing(20, &moved, &twice), parted(18, "unseen"));
}

#[test]
fn a_copy_that_works_at_the_same_time_shares_what_was_there_before_it() {
    // A copy (b) of a spool that opened as a, with entries up to 10 at that time. The original has 15 by now.
    let taken = history(&[("a", "", 0, 0), ("b", "a", 6, 10)]);
    let copied_from = own(&[("a", 0), ("now", 15)], false);
    assert_eq!(standing(10, &taken, &copied_from), Standing::Free);
    assert_eq!(standing(11, &taken, &copied_from), parted(10, "now"));
    // The other way round: the copy finds that the original has begun anew (c).
    let moved = history(&[("a", "", 0, 0), ("b", "a", 6, 10), ("c", "a", 8, 15)]);
    let copy = own(&[("a", 0), ("b", 10), ("now", 20)], false);
    assert_eq!(standing(14, &moved, &copy), parted(10, "b"));
    // It was registered and is not the last any more; its commits had come to 8.
    assert_eq!(standing(14, &moved, &own(&[("a", 0), ("b", 10)], true)), Standing::Superseded { through: 8 });
    assert_eq!(standing(4, &moved[..1], &own(&[("a", 0), ("b", 10)], true)), Standing::Forgotten);
    // Another copy, made of a at 12, before c.
    let other = own(&[("a", 0), ("now", 12)], false);
    assert_eq!(standing(14, &moved, &other), parted(12, "now"));
}

#[test]
fn where_the_history_is_forgotten_no_entry_is_given_up() {
    let mut forgotten = history(&[("x", "w", 5, 9)]);
    forgotten[0].number = 1_001;
    let spool = own(&[("a", 0), ("now", 9)], false);
    assert_eq!(standing(6, &forgotten, &spool), parted(0, "now"));
    let circle = history(&[("x", "y", 0, 9), ("y", "x", 3, 9)]);
    assert_eq!(standing(6, &circle, &spool), parted(0, "now"));
    let mut forgetful = own(&[("a", 5), ("now", 9)], false);
    forgetful.openings[0].number = 7;
    assert_eq!(standing(6, &history(&[("x", "", 0, 0)]), &forgetful), parted(0, "now"));
    assert_eq!(unregistered(6, &[], &forgetful)[0].parent, "before 7");
}

/// A lane's row of the simulated ledger.
#[derive(Default)]
struct Row {
    sequence: i64,
    edits: u64,
    history: Vec<Registered>,
}

#[derive(Default)]
struct Ledgers {
    rows: HashMap<String, Row>,
    written: Vec<u64>,
}

/// A directory with a spool, and everything that it has ever acknowledged.
struct Spool {
    path: PathBuf,
    acknowledged: BTreeSet<u64>,
}

/// A recorder of one lane.
struct Running {
    file: SpoolFile,
    reader: Reader,
    opening: LaneOpening,
    /// The row's sequence when it was last read or moved, and how often it had been edited.
    connection: Option<(i64, u64)>,
}

fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).unwrap();
    for log in ["entries", "lasting"] {
        std::fs::create_dir_all(to.join(log)).unwrap();
        for file in std::fs::read_dir(from.join(log)).into_iter().flatten().flatten() {
            std::fs::copy(file.path(), to.join(log).join(file.file_name())).unwrap();
        }
    }
}

impl Running {
    fn start(spool: &Spool) -> Self {
        let mut file = SpoolFile::open(&spool.path, 1 << 20, Duration::from_secs(3_600)).unwrap();
        file.set_lanes(1).unwrap();
        let (opening, reader) = (file.lane_opening(0).unwrap(), file.reader());
        Running { file, reader, opening, connection: None }
    }

    fn take_in(&mut self, value: u64, spool: &mut Spool) {
        let offer = Offer { received_ns: 1, ..Offer::plain("s", 1, value.to_string().as_bytes()) };
        let mut group = self.file.begin().unwrap();
        group.append(&offer).unwrap();
        group.commit().unwrap();
        spool.acknowledged.insert(value);
    }

    fn note(&mut self, news: &LaneNews) {
        let mut group = self.file.begin().unwrap();
        self.opening = group.note(0, news).unwrap();
        group.commit().unwrap();
    }

    fn settle(&mut self, through: i64) {
        let mut group = self.file.begin().unwrap();
        group.settle(0, through).unwrap();
        group.commit().unwrap();
    }

    /// Connects, or writes what comes next; returns false if nothing is left. `is_killed` says whether it is killed in between.
    fn work(&mut self, ledgers: &mut Ledgers, random: &mut Stream) -> bool {
        let row = ledgers.rows.entry(self.opening.recorder.clone()).or_default();
        let Some((sequence, edits)) = self.connection else {
            match standing(row.sequence, &row.history, &self.opening) {
                Standing::Own => {}
                Standing::Free => {
                    row.history.extend(unregistered(row.sequence, &row.history, &self.opening));
                    row.edits += 1;
                    if random.below(8) == 0 {
                        // The answer is lost.
                        return true;
                    }
                }
                Standing::Superseded { .. } | Standing::Forgotten => {
                    self.note(&LaneNews::Superseded);
                    return true;
                }
                Standing::Parted { same_through: through, recorder } => {
                    self.note(&LaneNews::Parted { through, recorder });
                    return true;
                }
            }
            self.connection = Some((row.sequence, row.edits));
            self.note(&LaneNews::Checked);
            return true;
        };
        let found = self.reader.read(0, (sequence, i64::MAX), usize::MAX, 1 + random.below(3)).unwrap();
        let entries: Vec<_> = found.into_iter().map(Result::unwrap).collect();
        let Some(through) = entries.last().map(|entry| entry.sequence) else {
            self.settle(sequence);
            return false;
        };
        if (row.sequence, row.edits) != (sequence, edits) {
            self.connection = None;
            return true;
        }
        let value = |body: &[u8]| String::from_utf8_lossy(body).parse::<u64>().unwrap();
        ledgers.written.extend(entries.iter().map(|entry| value(&entry.offer.body)));
        (row.sequence, row.edits) = (through, edits + 1);
        if random.below(4) == 0 {
            self.connection = None;
            return true;
        }
        self.connection = Some((through, edits + 1));
        if random.below(2) == 0 {
            self.settle(through);
        }
        true
    }
}

/// Does random things to two spools and their snapshots. In the end everything that is left of what was acknowledged is written, once.
fn simulate(seed: u64, directory: &Path) {
    let mut random = Stream::seeded(seed);
    let (mut ledgers, mut next) = (Ledgers::default(), 0);
    let path = |name: &str| directory.join(format!("{seed}-{name}"));
    let mut spools = ["a", "b"].map(|name| Spool { path: path(name), acknowledged: BTreeSet::new() });
    let mut running: [Option<Running>; 2] = [None, None];
    let mut snapshots: Vec<Spool> = Vec::new();
    // The second spool is always a copy.
    for step in 0..60 {
        let place = usize::from(step > 3 && random.below(2) == 1);
        let is_there = place == 0 || spools[1].path.exists();
        match (random.below(12), &mut running[place]) {
            (0, recorder @ Some(_)) => *recorder = None,
            (1, recorder) if snapshots.len() < 6 && is_there && (recorder.is_some() || spools[place].path.exists()) => {
                let snapshot = path(&format!("snapshot{step}"));
                copy(&spools[place].path, &snapshot);
                snapshots.push(Spool { path: snapshot, acknowledged: spools[place].acknowledged.clone() });
            }
            (2, recorder) if !snapshots.is_empty() => {
                *recorder = None;
                let snapshot = &snapshots[random.below(snapshots.len() as u64) as usize];
                copy(&snapshot.path, &spools[place].path);
                spools[place].acknowledged = snapshot.acknowledged.clone();
            }
            (3..=7, Some(recorder)) => {
                recorder.work(&mut ledgers, &mut random);
            }
            (_, Some(recorder)) => {
                next += 1;
                recorder.take_in(next, &mut spools[place]);
            }
            (_, recorder @ None) if is_there => *recorder = Some(Running::start(&spools[place])),
            _ => {}
        }
    }
    for (spool, recorder) in spools.iter().zip(&mut running) {
        if spool.path.exists() {
            recorder.get_or_insert_with(|| Running::start(spool));
        }
    }
    let mut quiet = 0;
    while quiet < 20 {
        let left = running
            .iter_mut()
            .flatten()
            .filter_map(|recorder| recorder.work(&mut ledgers, &mut random).then_some(()))
            .count();
        quiet = if left == 0 { quiet + 1 } else { 0 };
    }
    let distinct: BTreeSet<_> = ledgers.written.iter().copied().collect();
    assert_eq!(distinct.len(), ledgers.written.len(), "seed {seed}: something is stored twice");
    let gone: Vec<_> = spools.iter().flat_map(|spool| spool.acknowledged.difference(&distinct)).collect();
    assert!(gone.is_empty(), "seed {seed}: {gone:?} are acknowledged and gone");
}

#[test]
fn whatever_is_copied_restored_and_run_at_once_each_entry_is_stored_once() {
    let directory = std::env::temp_dir().join(format!("loadline-openings-{}", std::process::id()));
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(60);
    (0..seeds).for_each(|seed| simulate(seed, &directory));
    std::fs::remove_dir_all(&directory).unwrap();
}
