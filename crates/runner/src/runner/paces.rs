//! Durations measured on this machine, kept from run to run.
//!
//! Main functions: [`read`] and [`keep`]. Invariant: an unreadable file counts as empty, a failed write is no error, and the file is always whole.
//!
//! ```text
//! <cache>/loadline/paces.jsonl    one line for each pace, the oldest first
//!     {"version":1,"build":"release","pace":{"subject":{"start":{…}},"amount":1,"lasted_s":0.42}}
//! <cache>/loadline/paces.lock     locked by the process that writes
//! ```

use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::cache;
use crate::study::pace::{Pace, Paces};

/// Version of the lines; lines of other versions are skipped.
const VERSION: u32 = 1;
/// Largest size of the file in bytes; a larger file was not written by loadline and is not read.
const BYTES_MOST: u64 = 4 << 20;
/// Largest number of paces kept, of all builds; the oldest are dropped first.
const PACES_MOST: usize = 4_000;
/// Longest wait for another writer's lock; after that this process writes anyway and may lose what the other one adds.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 2 });

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    version: u32,
    /// The build of the program that wrote it: an unoptimised build takes several times as long.
    build: String,
    pace: Pace,
}

/// The build of this program.
const BUILD: &str = if cfg!(debug_assertions) { "debug" } else { "release" };

/// Returns all paces noted by builds of this kind, the oldest first.
pub fn read() -> Paces {
    let lines = file().map(|file| read_lines(&file)).unwrap_or_default();
    Paces(lines.into_iter().filter(|line| line.build == BUILD).map(|line| line.pace).collect())
}

/// Keeps paces for later.
pub fn keep(paces: Paces) {
    if let Some(file) = file().filter(|_| !paces.0.is_empty()) {
        // An inaccurate plan is no reason for a run to fail or to print anything.
        let _ = add(&file, paces);
    }
}

fn file() -> Option<PathBuf> {
    Some(cache::place()?.join("paces.jsonl"))
}

fn read_lines(file: &Path) -> Vec<Line> {
    let read = || -> io::Result<String> {
        let about = fs::metadata(file)?;
        // Opening a pipe would wait for a writer.
        if !about.is_file() || about.len() > BYTES_MOST {
            return Ok(String::new());
        }
        let mut bytes = Vec::new();
        File::open(file)?.take(BYTES_MOST).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    lines.filter(|line| line.version == VERSION && line.pace.is_sound()).collect()
}

fn add(file: &Path, paces: Paces) -> io::Result<()> {
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    let _lock = lock(&file.with_extension("lock"))?;
    let (mut own, mut others) = (Paces::default(), Vec::new());
    for line in read_lines(file) {
        if line.build == BUILD { own.0.push(line.pace) } else { others.push(line) }
    }
    paces.0.into_iter().for_each(|pace| own.add(pace));
    let of_own = own.0.into_iter().map(|pace| Line { version: VERSION, build: BUILD.to_owned(), pace });
    let lines: Vec<Line> = others.into_iter().chain(of_own).collect();
    let too_many = lines.len().saturating_sub(PACES_MOST);
    let text: String =
        lines.iter().skip(too_many).filter_map(|line| Some(serde_json::to_string(line).ok()? + "\n")).collect();
    let beside = file.with_extension(format!("{}.new", std::process::id()));
    fs::write(&beside, text).and_then(|()| fs::rename(&beside, file)).inspect_err(|_| {
        // A half-written file is useless.
        let _ = fs::remove_file(&beside);
    })
}

/// Locks the file against other writers until the result is dropped; after [`PATIENCE`] it returns without the lock.
fn lock(file: &Path) -> io::Result<File> {
    let lock = File::options().create(true).truncate(false).write(true).open(file)?;
    let begun = Instant::now();
    while let Err(TryLockError::WouldBlock) = lock.try_lock()
        && begun.elapsed() < PATIENCE
    {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::subject::{Kind, Subject};

    /// Returns a file for one test, in a directory that does not exist yet.
    fn file(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("loadline-paces-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        directory.join("paces.jsonl")
    }

    fn remove(file: &Path) {
        fs::remove_dir_all(file.parent().unwrap()).unwrap();
    }

    fn pace(layout: &str, lasted_s: f64) -> Pace {
        let database = Kind { name: "sqlite".to_owned(), engine: None, is_elsewhere: false };
        let subject = Subject::Around {
            database,
            layout: layout.to_owned(),
            workload: "write".to_owned(),
            clients: 1,
            front: None,
            has_link: false,
        };
        Pace { subject, amount: 1, lasted_s }
    }

    fn own(file: &Path) -> Vec<Pace> {
        read_lines(file).into_iter().filter(|line| line.build == BUILD).map(|line| line.pace).collect()
    }

    #[test]
    fn what_was_kept_is_read_again_and_other_builds_keep_theirs() {
        let file = file("kept");
        assert!(read_lines(&file).is_empty(), "there is none yet");
        add(&file, Paces(vec![pace("wide", 1.5)])).unwrap();
        let other = Line { version: VERSION, build: "another".to_owned(), pace: pace("wide", 9.0) };
        let text = fs::read_to_string(&file).unwrap() + &serde_json::to_string(&other).unwrap() + "\n";
        fs::write(&file, text).unwrap();
        add(&file, Paces(vec![pace("star", 0.1)])).unwrap();
        assert_eq!(own(&file), [pace("wide", 1.5), pace("star", 0.1)]);
        assert_eq!(read_lines(&file).len(), 3);
        remove(&file);
    }

    #[test]
    fn what_is_damaged_or_foreign_or_cannot_be_true_is_passed_over() {
        let file = file("damaged");
        add(&file, Paces(vec![pace("wide", 1.5)])).unwrap();
        let whole = fs::read_to_string(&file).unwrap();
        let bad = [
            whole[..whole.len() / 2].to_owned(),
            whole.trim().replace("1.5", "-1.5"),
            whole.trim().replace("1.5", "1e999"),
            whole.trim().replace("\"amount\":1", "\"amount\":0"),
            whole.trim().replace("\"version\":1", "\"version\":2"),
            whole.trim().replace("\"around\"", "\"elsewhere\""),
            "[".repeat(100_000),
        ];
        let mut bytes = bad.join("\n").into_bytes();
        bytes.extend(b"\n\xff\xfe\n\0\n");
        bytes.extend(whole.as_bytes());
        fs::write(&file, bytes).unwrap();
        assert_eq!(own(&file), [pace("wide", 1.5)]);
        add(&file, Paces(vec![pace("wide", 2.5)])).unwrap();
        assert_eq!(own(&file), [pace("wide", 1.5), pace("wide", 2.5)]);
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 2, "what was damaged is gone");
        remove(&file);
    }

    #[test]
    fn a_giant_file_and_what_is_no_file_do_no_harm() {
        let file = file("giant");
        add(&file, Paces(vec![pace("wide", 1.5)])).unwrap();
        // A sparse file: none of it takes disk space.
        fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(own(&file), []);
        add(&file, Paces(vec![pace("star", 2.0)])).unwrap();
        assert_eq!(own(&file), [pace("star", 2.0)], "one that is too large is replaced");
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert_eq!(own(&file), []);
        assert!(add(&file, Paces(vec![pace("star", 2.0)])).is_err());
        let left: Vec<_> =
            fs::read_dir(file.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 2, "nothing half written is left: {left:?}");
        remove(&file);
    }

    #[test]
    fn the_file_does_not_grow_without_bound() {
        let file = file("bound");
        let many =
            |from: usize| Paces((from..from + PACES_MOST).map(|number| pace(&number.to_string(), 1.0)).collect());
        add(&file, many(0)).unwrap();
        add(&file, many(100)).unwrap();
        let kept = own(&file);
        assert_eq!(kept.len(), PACES_MOST);
        assert_eq!(kept.last().unwrap(), &pace(&(PACES_MOST + 99).to_string(), 1.0), "the newest stay");
        assert!(fs::metadata(&file).unwrap().len() < BYTES_MOST);
        remove(&file);
    }

    #[test]
    fn what_several_write_at_once_is_all_there() {
        let file = file("several");
        let write = |writer: usize| {
            (0..20).for_each(|number| add(&file, Paces(vec![pace(&format!("{writer}-{number}"), 1.0)])).unwrap());
        };
        std::thread::scope(|scope| (0..4).for_each(|writer| drop(scope.spawn(move || write(writer)))));
        assert_eq!(own(&file).len(), 80);
        remove(&file);
    }
}
