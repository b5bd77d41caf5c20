//! What the spool's two forms cost: the SQLite database that it is, and the log of segments that it is to be, with the same entries in the same groups, each made durable before
//! the next.
//!
//! `cargo bench --bench spool`; `ROUNDS` (9) and `MEGABYTES` a round (64) in the environment. Both write into the current directory, which must be on the disk that is asked about, in turns.
//! Everything is given up again: of the waiting entries 16 MiB are settled at a time. Bytes are those that the kernel sent to the disk (`write_bytes` of `/proc/self/io`), after all was synced.

#[expect(dead_code, reason = "this benchmark uses a part of what is shared")]
#[path = "shared/mod.rs"]
mod shared;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use loadline::recorder::line::Precision;
use loadline::recorder::spool::{Offer, SpoolFile};
use loadline_segments::segments::{Directory, Log, Settings};

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
    let (rounds, bytes) = (from_environment("ROUNDS", 9.0) as usize, from_environment("MEGABYTES", 64.0) * 1e6);
    println!("rows × entries of a group; log / SQLite, medians of {rounds} rounds in turns");
    for (rows, entries) in SHAPES {
        // Of small groups fewer bytes take as long.
        let groups = (bytes / (LINE.len() * rows as usize * entries) as f64).clamp(20.0, 3_000.0) as usize;
        let (mut log, mut sqlite) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let sides: [bool; 2] = if round % 2 == 0 { [true, false] } else { [false, true] };
            for is_log in sides {
                let cost = measured(rows, entries, groups, is_log);
                if is_log { log.push(cost) } else { sqlite.push(cost) }
            }
        }
        let ratios = |figure: fn(&Cost) -> f64| -> Vec<f64> {
            log.iter().zip(&sqlite).map(|(a, b)| figure(a) / figure(b)).collect()
        };
        let written = |costs: &[Cost]| show(&costs.iter().map(|cost| cost.written).collect::<Vec<_>>());
        let rate = |costs: &[Cost]| 1.0 / median(&costs.iter().map(|cost| cost.seconds_per_row).collect::<Vec<_>>());
        println!(
            "{rows} × {entries}: time for a row {}; bytes to the disk for each byte of lines: log {}, SQLite {}; {:.0} and {:.0} rows/s",
            show(&ratios(|cost| cost.seconds_per_row)),
            written(&log),
            written(&sqlite),
            rate(&log),
            rate(&sqlite)
        );
    }
}

fn measured(rows: u32, entries: usize, groups: usize, is_log: bool) -> Cost {
    let place = PathBuf::from(format!("spool-bench-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    let body = LINE.repeat(rows as usize).into_bytes();
    let (before, begun) = (written_bytes(), Instant::now());
    if is_log {
        into_log(&place, &body, rows, entries, groups)
    } else {
        into_sqlite(&place, &body, rows, entries, groups)
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

fn into_sqlite(place: &Path, body: &[u8], rows: u32, entries: usize, groups: usize) {
    let mut file = SpoolFile::open(place, 1 << 30, Duration::from_secs(60)).expect("a spool can be made here");
    file.set_lanes(1).expect("a new spool takes any number of lanes");
    for _ in 0..groups {
        let mut group = file.begin().expect("the spool can be written");
        for _ in 0..entries {
            let offer = Offer {
                lane: 0,
                source: "probe-17".into(),
                sender: "".into(),
                message_id: String::new(),
                received_ns: 1,
                precision: Precision::Nanoseconds,
                rows,
                body: body.to_vec(),
            };
            group.append(&offer).expect("there is room");
        }
        if group.counts().spooled_bytes > WAITING {
            group.settle(0, i64::MAX).expect("the spool can be written");
        }
        group.commit().expect("the spool can be written");
    }
}

fn into_log(place: &Path, body: &[u8], rows: u32, entries: usize, groups: usize) {
    let disk = Arc::new(Directory::open(place).expect("a directory can be made here"));
    let settings = Settings { segment_bytes: 16 << 20 };
    let (mut log, _) = Log::open(disk, settings, 4_711, &mut |_| {}).expect("a log can be made here");
    let head = [0_u8; 48];
    for _ in 0..groups {
        for _ in 0..entries {
            log.append(1, 0, rows, &[&head, body]).expect("there is room");
        }
        log.commit().expect("the log can be written");
        let settled = log.segments().next().filter(|first| log.current() != Some(*first));
        if let Some(first) = settled {
            log.give_up(first, b"").expect("the log can be written");
        }
    }
    log.close(b"").expect("the log can be written");
}

/// Bytes that this process has caused to be sent to disks.
fn written_bytes() -> u64 {
    let counted = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = counted.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}
