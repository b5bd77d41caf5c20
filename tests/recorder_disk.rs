//! What a recorder has acknowledged, when the power goes, when the disk is full or fails, and when the clock jumps. A library in C
//! stands between the recorder and its files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "recorder/disk.rs"]
mod disk;
#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/harness.rs"]
mod harness;
#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/process.rs"]
mod process;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use disk::{Disk, Unsynced};
use harness::{Directory, Target, try_send};
use loadline::recorder::access::owned_id;
use loadline::recorder::spool::{SpoolFile, Stored};
use process::{Process, config_file, database_of};

const ROWS: u64 = 3;
/// A database that never answers: everything stays in the spool.
const NOBODY: &str = "name = \"mariadb\"\nurl = \"mysql://nobody@127.0.0.1:1/nothing\"";

fn sqlite_on_disk(directory: &Directory) -> Target {
    let mut target = Target::sqlite(directory);
    target.settings.path = Some(directory.path("disk/measurements.db"));
    target
}

/// The client's own id, behind its owner.
fn number_of(kept: &str) -> u64 {
    owned_id(kept).unwrap().parse().unwrap()
}

/// Sends a request; the status of the answer, if there is one.
fn post(process: &Process, number: u64) -> Option<u16> {
    let rows: String = (0..ROWS).map(|row| format!("p,host=h{} f={}i 7\n", number % 3, number * ROWS + row)).collect();
    let headers = format!("X-Loadline-Source: s\r\nIdempotency-Key: {number}\r\n");
    try_send(process.http, "POST", "/write", &headers, rows.as_bytes()).map(|answer| answer.status)
}

/// Sends requests from several clients at a time, and marks in the disk's log what is acknowledged.
fn send_and_mark(process: &Process, disk: &Disk, clients: u64, each: u64) {
    std::thread::scope(|scope| {
        for client in 0..clients {
            scope.spawn(move || {
                for number in (client * each)..(client + 1) * each {
                    assert_eq!(post(process, number), Some(204));
                    disk.mark(number);
                }
            });
        }
    });
}

/// Runs a recorder whose every change to the disk is noted, and gives what `check` is told for every moment at which the power may go.
fn cut_everywhere(database: &str, directory: &Directory, disk: &Disk, check: impl Fn(&Directory, &[u64], bool)) {
    let process = Process::start(&config_file(directory, database, ""), &disk.shell());
    send_and_mark(&process, disk, 3, 10);
    process.assert_conserved();
    process.stop();
    let history = disk.history();
    let cuts = history.cuts();
    assert!(cuts.len() > 30, "{} syncs are too few", cuts.len());
    for (round, cut) in cuts.iter().enumerate() {
        let acknowledged = history.marks_before(*cut);
        for unsynced in [Unsynced::Lost, Unsynced::Torn(round as u64 * 7 + 1)] {
            let left = Directory::new();
            std::fs::create_dir(left.path("disk")).unwrap();
            history.restore(*cut, unsynced, Path::new(&directory.path("disk")), &left.0.join("disk"));
            check(&left, &acknowledged, round % 12 == 0);
        }
    }
    assert_eq!(history.marks_before(cuts[cuts.len() - 1]).len(), 30);
}

#[test]
fn a_power_cut_at_any_sync_of_the_spool_loses_nothing_that_was_acknowledged() {
    let directory = Directory::new();
    let disk = Disk::new(&directory, &directory.path("disk"));
    cut_everywhere(NOBODY, &directory, &disk, |left, acknowledged, _| {
        let spool = left.0.join("disk/spool");
        if !SpoolFile::is_in(&spool) {
            assert!(acknowledged.is_empty());
            return;
        }
        let mut file = SpoolFile::open(&spool, 1 << 30, Duration::from_secs(86_400)).unwrap();
        assert!(file.damage().is_none(), "{:?}", file.damage());
        let entries: Vec<_> = file
            .reader()
            .read(0, (0, i64::MAX), usize::MAX, u64::MAX)
            .unwrap()
            .into_iter()
            .map(Result::unwrap)
            .collect();
        let numbers: Vec<u64> = entries.iter().map(|entry| number_of(&entry.offer.message_id)).collect();
        assert_eq!(numbers.iter().collect::<BTreeSet<_>>().len(), numbers.len(), "each is there once");
        assert!(acknowledged.iter().all(|number| numbers.contains(number)), "{acknowledged:?} {numbers:?}");
        assert_eq!(file.counts().acknowledged, numbers.len() as u64 * ROWS);
        let mut group = file.begin().unwrap();
        for entry in &entries {
            assert_eq!(group.append(&entry.offer), Ok(Stored::Duplicate), "and is recognised");
        }
    });
}

#[test]
fn a_power_cut_at_any_sync_of_sqlite_loses_and_repeats_nothing_that_was_acknowledged() {
    let directory = Directory::new();
    let disk = Disk::new(&directory, &directory.path("disk"));
    let database = format!("path = \"{}\"", directory.path("disk/measurements.db"));
    cut_everywhere(&database, &directory, &disk, |left, acknowledged, goes_on| {
        let target = sqlite_on_disk(left);
        let has_tables = |target: &Target| {
            !target.query("SELECT 1 FROM sqlite_schema WHERE name = 'loadline_column'").is_empty()
                && !target.query("SELECT 1 FROM loadline_column WHERE measurement = 'p' AND role = 'table'").is_empty()
        };
        if has_tables(&target) {
            let found = target.query("SELECT f FROM p_values");
            let rows: BTreeSet<u64> = found.iter().map(|f| f.parse().unwrap()).collect();
            assert_eq!(rows.len(), found.len(), "each is there once");
            let wanted = acknowledged.iter().flat_map(|number| (0..ROWS).map(move |row| number * ROWS + row));
            assert!(wanted.into_iter().all(|row| rows.contains(&row)), "{acknowledged:?} {rows:?}");
        } else {
            assert!(acknowledged.is_empty());
        }
        if goes_on {
            let process = Process::start(&config_file(left, &database_of(&target), ""), "");
            (0..30).for_each(|number| assert_eq!(post(&process, number), Some(204)));
            process.assert_conserved();
            assert_eq!(process.stop(), Some(0));
            assert_eq!(target.query("SELECT COUNT(*), COUNT(DISTINCT f) FROM p_values"), ["90|90"]);
        }
    });
}

/// A recorder on a disk that can be made to fail, and the rows that are found in it afterwards.
struct OnDisk {
    directory: Directory,
    disk: Disk,
    config: String,
    is_spooled: bool,
}

impl OnDisk {
    fn new(is_spooled: bool) -> Self {
        let directory = Directory::new();
        let disk = Disk::new(&directory, &directory.path("disk"));
        let sqlite = format!("path = \"{}\"", directory.path("disk/measurements.db"));
        let config = config_file(&directory, if is_spooled { NOBODY } else { &sqlite }, "[writer]\ndrain = \"1s\"\n");
        OnDisk { directory, disk, config, is_spooled }
    }

    fn start(&self) -> Process {
        Process::start(&self.config, &self.disk.shell_without_log())
    }

    /// Numbers of the requests whose rows are all there, each once.
    fn stored(&self) -> BTreeSet<u64> {
        let rows: Vec<u64> = if self.is_spooled {
            let file = SpoolFile::open(&self.directory.0.join("disk/spool"), 1 << 30, Duration::from_secs(9)).unwrap();
            let entries = file.reader().read(0, (0, i64::MAX), usize::MAX, u64::MAX).unwrap();
            let of_entry = |id: u64| (0..ROWS).map(move |row| id * ROWS + row);
            entries.into_iter().flat_map(|entry| of_entry(number_of(&entry.unwrap().offer.message_id))).collect()
        } else {
            let found = sqlite_on_disk(&self.directory).query("SELECT f FROM p_values");
            found.iter().map(|f| f.parse().unwrap()).collect()
        };
        let found: BTreeSet<u64> = rows.iter().copied().collect();
        assert_eq!(found.len(), rows.len(), "each is there once");
        found.into_iter().map(|row| row / ROWS).collect()
    }
}

#[test]
fn a_full_disk_refuses_and_takes_in_again_when_there_is_room() {
    for is_spooled in [true, false] {
        let on_disk = OnDisk::new(is_spooled);
        let process = on_disk.start();
        (0..5).for_each(|number| assert_eq!(post(&process, number), Some(204)));
        on_disk.disk.fail_writes(libc::ENOSPC, -1);
        std::thread::scope(|scope| {
            let refused = scope.spawn(|| post(&process, 5));
            if is_spooled {
                assert_eq!(refused.join().unwrap(), Some(503));
                process.assert_conserved();
            } else {
                // Without a spool the database is waited for.
                while process.metric("loadline_database_retries_total") < 1.0 {
                    std::thread::sleep(Duration::from_millis(5));
                }
                on_disk.disk.fail_writes(0, 0);
                assert_eq!(refused.join().unwrap(), Some(204));
            }
        });
        on_disk.disk.fail_writes(0, 0);
        (5..9).for_each(|number| assert_eq!(post(&process, number), Some(204), "{is_spooled}"));
        process.assert_conserved();
        assert_eq!(process.stop(), Some(0));
        assert_eq!(on_disk.stored(), (0..9).collect());
    }
}

#[test]
fn a_bad_record_waits_for_room_in_quarantine_while_the_disk_is_full() {
    let directory = Directory::new();
    let disk = Disk::new(&directory, &directory.path("disk"));
    let target = Target::server("mariadb");
    let config = config_file(&directory, &database_of(&target), "[writer]\ndrain = \"60s\"\n");
    let process = Process::start(&config, &disk.shell_without_log());
    assert_eq!(post(&process, 0), Some(204));
    wait_until(|| process.metric("loadline_committed_rows_total") == ROWS as f64);
    target.session().run("CREATE UNIQUE INDEX once ON p_values (f)").unwrap();
    // While the server holds the table, the bad record is in the spool and the disk fills up.
    let mut holder = target.session();
    holder.run("LOCK TABLES p_values WRITE").unwrap();
    let body = "p,host=h0 f=1i 7\np,host=h0 f=100i 7\n";
    assert_eq!(try_send(process.http, "POST", "/write", "", body.as_bytes()).unwrap().status, 204);
    disk.fail_writes(libc::ENOSPC, -1);
    holder.run("UNLOCK TABLES").unwrap();
    wait_until(|| process.metric("loadline_database_retries_total") >= 1.0);
    assert_eq!(process.metric("loadline_quarantined_rows"), 0.0);
    process.assert_conserved();
    disk.fail_writes(0, 0);
    wait_until(|| process.metric("loadline_quarantined_rows") == 1.0);
    wait_until(|| process.metric("loadline_spooled_rows") == 0.0);
    process.assert_conserved();
    assert_eq!(process.stop(), Some(0));
    assert_eq!(target.query("SELECT f FROM p_values WHERE f >= 1 ORDER BY f"), ["1", "2", "100"]);
}

fn wait_until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(240));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_write_or_sync_that_fails_ends_acknowledgement_and_what_was_acknowledged_is_there() {
    for is_spooled in [true, false] {
        for fails_syncs in [true, false] {
            let on_disk = OnDisk::new(is_spooled);
            let mut process = on_disk.start();
            (0..5).for_each(|number| assert_eq!(post(&process, number), Some(204)));
            // Once only: the kernel reports success the next time, and the bytes may be gone.
            match fails_syncs {
                true => on_disk.disk.fail_syncs(libc::EIO, 1),
                false => on_disk.disk.fail_writes(libc::EIO, 1),
            }
            let mut number = 5;
            let begun = Instant::now();
            while let Some(status) = post(&process, number) {
                // The request that was being stored may be there or not; the others are not. SQLite may have failed at something else.
                let is_unknown = status == 500 && number == 5;
                assert!(is_unknown || status == 503, "{is_spooled} {fails_syncs}: {status} after a failure");
                assert!(is_unknown || number > 5 || !is_spooled, "{fails_syncs}: 503 says that nothing is stored");
                assert!(begun.elapsed() < Duration::from_secs(240), "it goes on as if nothing had happened");
                number += 1;
            }
            assert_eq!(process.child.wait().unwrap().code(), Some(1), "{is_spooled} {fails_syncs}");
            assert!(on_disk.stored().is_superset(&(0..5).collect()), "{is_spooled} {fails_syncs}");
            let process = on_disk.start();
            (0..20).for_each(|number| assert_eq!(post(&process, number), Some(204)));
            assert_eq!(process.stop(), Some(0));
            assert_eq!(on_disk.stored(), (0..20).collect());
        }
    }
}

#[test]
fn a_clock_that_is_a_day_ahead_for_a_while_makes_no_id_forgotten() {
    let directory = Directory::new();
    for target in [Target::sqlite(&directory), Target::server("postgres")] {
        let directory = Directory::new();
        let disk = Disk::new(&directory, &directory.path("disk"));
        let config = config_file(&directory, &database_of(&target), "[writer]\ndrain = \"60s\"\n");
        // Ids that are old enough are forgotten behind the first requests of each recorder.
        for (start, ahead_hours) in [0, 25, 0, -25, 0].into_iter().enumerate() {
            disk.set_clock(ahead_hours * 3_600_000_000_000);
            let process = Process::start(&config, &disk.shell_without_log());
            let first = start as u64 * 10;
            (first..first + 10).for_each(|number| assert_eq!(post(&process, number), Some(204)));
            (0..first).for_each(|number| assert_eq!(post(&process, number), Some(204)));
            wait_until(|| process.metric("loadline_spooled_rows") == 0.0);
            assert_eq!(process.metric("loadline_duplicate_requests_total"), first as f64, "{}", target.name);
            assert_eq!(process.stop(), Some(0));
        }
        assert_eq!(target.query("SELECT COUNT(*), COUNT(DISTINCT f) FROM p_values"), ["150|150"], "{}", target.name);
    }
}

#[test]
fn clock_jumps_of_an_hour_lose_and_repeat_nothing() {
    const HOUR_NS: i64 = 3_600_000_000_000;
    let directory = Directory::new();
    for target in [Target::sqlite(&directory), Target::server("postgres")] {
        let directory = Directory::new();
        let disk = Disk::new(&directory, &directory.path("disk"));
        let config = config_file(&directory, &database_of(&target), "[writer]\ndrain = \"60s\"\n");
        let process = Process::start(&config, &disk.shell_without_log());
        for (jump, ahead_ns) in [0, HOUR_NS, -HOUR_NS, 2 * HOUR_NS, 0].into_iter().enumerate() {
            disk.set_clock(ahead_ns);
            let first = jump as u64 * 10;
            (first..first + 10).for_each(|number| assert_eq!(post(&process, number), Some(204)));
            // What was sent before the jump is recognised behind it.
            (first.saturating_sub(5)..first + 10).for_each(|number| assert_eq!(post(&process, number), Some(204)));
            process.assert_conserved();
        }
        wait_until(|| process.metric("loadline_spooled_rows") == 0.0);
        assert_eq!(process.stop(), Some(0));
        assert_eq!(target.query("SELECT COUNT(*), COUNT(DISTINCT f) FROM p_values"), ["150|150"], "{}", target.name);
    }
}
