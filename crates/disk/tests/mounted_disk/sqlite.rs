//! SQLite on a disk whose power goes: what its levels of `synchronous` promise, they keep, and what they do not promise is lost.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use loadline_disk::{Disk, Keeps, Mounted, Names, Plan, When};

use super::Directory;

/// What became of the numbers of one life that ended with a cut.
#[derive(Debug)]
struct Life {
    acknowledged: u64,
    found: u64,
    is_intact: bool,
}

impl Life {
    fn lost(&self) -> u64 {
        self.acknowledged.saturating_sub(self.found)
    }
}

/// The writer, which cargo builds with the tests, in the directory beside theirs.
fn writer(database: &Path, journal: &str, synchronous: &str) -> Child {
    let programs = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().join("examples");
    let mut command = Command::new(programs.join("sqlite_writer"));
    command.arg(database).args([journal, synchronous]).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Lets SQLite write until the power goes, and reads back what is there when it is on again.
fn live(directory: &Directory, number: u64, journal: &str, synchronous: &str, plan: Plan) -> Life {
    let root = directory.0.join(number.to_string());
    let mounted = Mounted::new(Disk::new(&root.join("below")).unwrap(), &root.join("disk")).unwrap();
    let database = root.join("disk/numbers.db");
    let mut child = writer(&database, journal, synchronous);
    let mut told = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    for _ in 0..3 {
        told.read_line(&mut line).unwrap();
    }
    mounted.disk().plan(plan);
    if plan.when == When::Told {
        for _ in 0..plan.seed % 30 {
            told.read_line(&mut line).unwrap();
        }
        mounted.cut_now();
    }
    assert!(mounted.wait_until_off(Duration::from_secs(60)), "the plan's cut never came");
    child.kill().unwrap();
    mounted.release();
    child.wait().unwrap();
    told.read_to_string(&mut line).unwrap();
    let acknowledged = line.lines().filter_map(|number| number.parse().ok()).max().unwrap_or(0);

    let mut disk = mounted.unmount().unwrap();
    disk.restore().unwrap();
    disk.plan(Plan::default());
    let mounted = Mounted::new(disk, &root.join("disk")).unwrap();
    let life = read_back(&database, acknowledged);
    mounted.unmount().unwrap();
    life
}

fn read_back(database: &Path, acknowledged: u64) -> Life {
    let database = rusqlite::Connection::open(database).unwrap();
    let number = |sql: &str| database.query_row(sql, [], |row| row.get::<_, u64>(0));
    // Without the table nothing was ever kept; a file that SQLite does not take for its own has no tables to count.
    let has_table = number("SELECT count(*) FROM sqlite_schema").map(|tables| tables > 0);
    let found = if has_table == Ok(true) { number("SELECT count(*) FROM numbers").unwrap_or(0) } else { 0 };
    let greatest = if has_table == Ok(false) { Ok(0) } else { number("SELECT coalesce(max(number), 0) FROM numbers") };
    let is_without_gaps = greatest.is_ok_and(|greatest| greatest == found);
    let check = database.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0));
    Life { acknowledged, found, is_intact: is_without_gaps && check.is_ok_and(|check| check == "ok") }
}

/// Lives whose power goes at different moments, and what each keeps of what was not synced.
fn lives(name: &str, journal: &str, synchronous: &str, names: Names, count: u64) -> Vec<Life> {
    let directory = Directory::new(name);
    let keeps = [Keeps::Nothing, Keeps::Sectors, Keeps::Blocks, Keeps::Prefix];
    let mut all = Vec::new();
    for number in 0..count {
        let when = match number % 4 {
            0 => When::Told,
            1 => When::BeforeSync(1 + number),
            2 => When::AfterSync(1 + number),
            _ => When::BeforeWrite(1 + 3 * number),
        };
        // A writer that does not sync is never cut by one.
        let when = if synchronous == "OFF" || synchronous == "NORMAL" && when != When::BeforeWrite(1 + 3 * number) {
            When::Told
        } else {
            when
        };
        let keeps = keeps[(number / 4 % 4) as usize];
        let plan = Plan { when, keeps, names, seed: number * 7 + 5, ..Plan::default() };
        all.push(live(&directory, number, journal, synchronous, plan));
    }
    all
}

#[test]
fn full_in_a_write_ahead_log_loses_nothing() {
    for names in [Names::Journal, Names::Strict] {
        for life in lives(&format!("full-wal-{names:?}"), "WAL", "FULL", names, 32) {
            assert!(life.is_intact && life.lost() == 0, "{life:?}");
        }
    }
}

#[test]
fn extra_with_a_rollback_journal_loses_nothing_and_full_the_last_transaction_at_most() {
    for life in lives("extra-delete", "DELETE", "EXTRA", Names::Strict, 32) {
        assert!(life.is_intact && life.lost() == 0, "{life:?}");
    }
    // FULL does not sync the directory after the journal is removed: SQLite's documentation says what follows.
    let full = lives("full-delete", "DELETE", "FULL", Names::Strict, 32);
    assert!(full.iter().all(|life| life.is_intact && life.lost() <= 1), "{full:?}");
    assert!(full.iter().any(|life| life.lost() == 1), "{full:?}");
}

#[test]
fn normal_in_a_write_ahead_log_loses_and_stays_intact() {
    let lives = lives("normal-wal", "WAL", "NORMAL", Names::Journal, 16);
    assert!(lives.iter().all(|life| life.is_intact), "{lives:?}");
    assert!(lives.iter().any(|life| life.lost() > 0), "{lives:?}");
}

#[test]
fn off_loses_and_may_leave_what_is_no_database() {
    let lives = lives("off", "DELETE", "OFF", Names::Journal, 16);
    assert!(lives.iter().any(|life| life.lost() > 0), "{lives:?}");
}
