//! What the spool costs beside a table of SQLite (write-ahead log, `synchronous = FULL`), which it was before: the same entries in the same groups, each made durable before the next.
//!
//! Then what waiting costs: `WAITING` requests (1,000,000) of one row are put in, and the spool is opened again: memory for each, and how long it takes with the files in the page
//! cache and without them.
//!
//! `cargo bench --bench spool`; `ROUNDS` (9) and `MEGABYTES` a round (64) in the environment. Both write into the current directory, which must be on the disk that is asked about, in turns.
//! Everything is given up again: of the waiting entries 16 MiB are settled at a time. Bytes are those that the kernel sent to the disk (`write_bytes` of `/proc/self/io`), after all was synced.

#[expect(dead_code, reason = "this benchmark uses a part of what is shared")]
#[path = "shared/mod.rs"]
mod shared;

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use loadline::recorder::line::Precision;
use loadline::recorder::spool::{Offer, SpoolFile};

use shared::ratio::{from_environment, median, show};

/// Bytes of a line: four tags and eight fields.
const LINE: &str = "link,probe=probe-17,region=north,kind=lte,cell=4711 rtt=23.125,jitter=1.75,loss=0.0,up=12.5,down=48.25,rssi=-87i,n=1000i,ok=true 1700000000000000000\n";
/// Bytes that wait before they are settled.
const WAITING: u64 = 16 << 20;

/// Rows of an entry, and entries that are synced together.
const SHAPES: [(u32, usize); 4] = [(1_000, 1), (100, 4), (10, 8), (1, 8)];

/// What one round cost.
struct Cost {
    seconds_per_row: f64,
    /// Bytes to the disk for each byte of lines.
    written: f64,
}

fn main() {
    if let Some(place) = std::env::var_os("OPENED") {
        return show_opened(Path::new(&place));
    }
    let (rounds, bytes) = (from_environment("ROUNDS", 9.0) as usize, from_environment("MEGABYTES", 64.0) * 1e6);
    println!("rows × entries of a group; spool / SQLite, medians of {rounds} rounds in turns");
    for (rows, entries) in SHAPES {
        // Of small groups fewer bytes take as long.
        let groups = (bytes / (LINE.len() * rows as usize * entries) as f64).clamp(20.0, 3_000.0) as usize;
        let (mut spool, mut sqlite) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let sides: [bool; 2] = if round % 2 == 0 { [true, false] } else { [false, true] };
            for is_spool in sides {
                let cost = measured(rows, entries, groups, is_spool);
                if is_spool { spool.push(cost) } else { sqlite.push(cost) }
            }
        }
        let ratios = |figure: fn(&Cost) -> f64| -> Vec<f64> {
            spool.iter().zip(&sqlite).map(|(a, b)| figure(a) / figure(b)).collect()
        };
        let written = |costs: &[Cost]| show(&costs.iter().map(|cost| cost.written).collect::<Vec<_>>());
        let rate = |costs: &[Cost]| 1.0 / median(&costs.iter().map(|cost| cost.seconds_per_row).collect::<Vec<_>>());
        println!(
            "{rows} × {entries}: time for a row {}; bytes to the disk for each byte of lines: spool {}, SQLite {}; {:.0} and {:.0} rows/s",
            show(&ratios(|cost| cost.seconds_per_row)),
            written(&spool),
            written(&sqlite),
            rate(&spool),
            rate(&sqlite)
        );
    }
    show_waiting(from_environment("WAITING", 1e6) as usize);
}

/// What it costs that many small requests wait.
fn show_waiting(requests: usize) {
    let place = PathBuf::from(format!("spool-bench-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    let open = || SpoolFile::open(&place, 64 << 30, Duration::from_secs(60)).expect("a spool can be made here");
    let mut file = open();
    file.set_lanes(1).expect("a new spool takes any number of lanes");
    let mut number = 0_u64;
    while number < requests as u64 {
        let mut group = file.begin().expect("the spool can be written");
        for _ in 0..1_000 {
            number += 1;
            // Requests arrive when they do, and are of many lengths.
            let (received_ns, more) = ((number * 1_000 + number * number % 977) as i64 * 1_000, (number % 7) as usize);
            let body = LINE.as_bytes()[more..].to_vec();
            group.append(&offer(1, received_ns, body)).expect("there is room");
        }
        group.commit().expect("the spool can be written");
    }
    let bytes = file.counts().spooled_bytes;
    drop(file);
    let mut shown = Vec::new();
    for is_cached in [true, false] {
        if !is_cached {
            forget_files(&place).expect("the files can be taken out of the page cache");
        }
        // In a process of its own nothing that was done before has left memory to use again.
        let own = std::env::current_exe().expect("the system says what runs");
        let opened = std::process::Command::new(own).env("OPENED", &place).output().expect("it runs again");
        let opened = String::from_utf8_lossy(&opened.stdout).trim().to_owned();
        shown.push(format!("{} in {opened}", if is_cached { "cached" } else { "from the disk" }));
    }
    println!(
        "{number} requests of one row wait ({:.0} MB against the bound): opened {}",
        bytes as f64 / 1e6,
        shown.join("; ")
    );
    std::fs::remove_dir_all(&place).expect("the benchmark's own directory can be removed");
}

/// Opens a spool that is there, in a process that does nothing else.
fn show_opened(place: &Path) {
    let (before, begun) = (memory_bytes("VmRSS:"), Instant::now());
    let file = SpoolFile::open(place, 64 << 30, Duration::from_secs(60)).expect("it was made before");
    let seconds = begun.elapsed().as_secs_f64();
    let (now, most) = (memory_bytes("VmRSS:") - before, memory_bytes("VmHWM:") - before);
    let each = now as f64 / file.counts().entries as f64;
    println!(
        "{seconds:.2} s with {:.1} MB of memory ({each:.1} bytes each; at most {:.1} MB)",
        now as f64 / 1e6,
        most as f64 / 1e6
    );
}

/// Takes files of a directory out of the page cache.
fn forget_files(directory: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            forget_files(&path)?;
        } else {
            let file = std::fs::File::open(&path)?;
            file.sync_all()?;
            // SAFETY: the call takes a descriptor that is open and three numbers.
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        }
    }
    Ok(())
}

/// Bytes of memory that this process has, or had at most.
fn memory_bytes(which: &str) -> u64 {
    let shown = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = shown.lines().find_map(|line| line.strip_prefix(which));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) << 10
}

fn offer(rows: u32, received_ns: i64, body: Vec<u8>) -> Offer {
    Offer {
        lane: 0,
        source: "probe-17".into(),
        sender: "".into(),
        message_id: String::new(),
        received_ns,
        precision: Precision::Nanoseconds,
        rows,
        body,
        is_packed: false,
    }
}

fn measured(rows: u32, entries: usize, groups: usize, is_spool: bool) -> Cost {
    let place = PathBuf::from(format!("spool-bench-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    let body = LINE.repeat(rows as usize).into_bytes();
    let (before, begun) = (written_bytes(), Instant::now());
    if is_spool {
        into_spool(&place, &body, rows, entries, groups)
    } else {
        into_sqlite(&place, &body, rows, entries, groups).expect("a database can be made here")
    }
    let seconds = begun.elapsed().as_secs_f64();
    let all_rows = (rows as usize * entries * groups) as f64;
    let cost = Cost {
        seconds_per_row: seconds / all_rows,
        written: (written_bytes() - before) as f64 / (all_rows * LINE.len() as f64),
    };
    std::fs::remove_dir_all(&place).expect("the benchmark's own directory can be removed");
    cost
}

fn into_spool(place: &Path, body: &[u8], rows: u32, entries: usize, groups: usize) {
    let mut file = SpoolFile::open(place, 1 << 30, Duration::from_secs(60)).expect("a spool can be made here");
    file.set_lanes(1).expect("a new spool takes any number of lanes");
    for _ in 0..groups {
        let mut group = file.begin().expect("the spool can be written");
        for _ in 0..entries {
            group.append(&offer(rows, 1, body.to_vec())).expect("there is room");
        }
        if group.counts().spooled_bytes > WAITING {
            group.settle(0, i64::MAX).expect("the spool can be written");
        }
        group.commit().expect("the spool can be written");
        file.tidy().expect("the spool can be written");
    }
}

fn into_sqlite(place: &Path, body: &[u8], rows: u32, entries: usize, groups: usize) -> rusqlite::Result<()> {
    std::fs::create_dir_all(place).expect("a directory can be made here");
    let mut database = rusqlite::Connection::open(place.join("table.db"))?;
    for (name, value) in
        [("page_size", "8192"), ("journal_mode", "wal"), ("synchronous", "full"), ("wal_autocheckpoint", "4096")]
    {
        database.pragma_update(None, name, value)?;
    }
    database.execute_batch(
        "CREATE TABLE entry (sequence INTEGER PRIMARY KEY AUTOINCREMENT, lane INTEGER, source TEXT, received_ns INTEGER, rows INTEGER, checksum INTEGER, body BLOB);
         CREATE INDEX entry_lane ON entry (lane, sequence)",
    )?;
    let mut waiting = 0;
    for _ in 0..groups {
        let group = database.transaction()?;
        for _ in 0..entries {
            let insert = "INSERT INTO entry (lane, source, received_ns, rows, checksum, body) VALUES (0, 'probe-17', 1, ?, 0, ?)";
            group.prepare_cached(insert)?.execute(rusqlite::params![rows, body])?;
            waiting += body.len() as u64;
        }
        if waiting > WAITING {
            group.prepare_cached("DELETE FROM entry WHERE lane = 0 AND sequence <= ?")?.execute([i64::MAX])?;
            waiting = 0;
        }
        group.commit()?;
    }
    Ok(())
}

/// Bytes that this process has caused to be sent to disks.
fn written_bytes() -> u64 {
    let counted = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = counted.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}
