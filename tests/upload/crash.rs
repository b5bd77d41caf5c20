//! The whole program, killed under load: every block that was acknowledged is there once it runs again, whole.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::client::{CAMERA, Ftp, PASSWORD, block, files, text};
use crate::harness::{Directory, try_send};

struct Process {
    child: Child,
    ftp: SocketAddr,
    put: SocketAddr,
}

impl Process {
    fn start(config: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(["record", config])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut seen = BTreeMap::new();
        while seen.len() < 2 {
            let line = lines.next().expect("it goes on").unwrap();
            let told = line.split_once("intake=\"").and_then(|(_, rest)| rest.split_once("\" address=\""));
            if let Some((name, address)) = told {
                seen.insert(name.to_owned(), address.trim_end_matches('"').parse().unwrap());
            }
        }
        std::thread::spawn(move || lines.for_each(drop));
        Process { child, ftp: seen["ftp"], put: seen["put"] }
    }
}

const BYTES: usize = 60_000;

/// Uploads blocks, each until it is acknowledged.
fn upload(process: &Process, over_ftp: bool, numbers: &AtomicU64, acknowledged: &AtomicU64, ends: &AtomicBool) {
    while !ends.load(Ordering::Relaxed) {
        let number = numbers.load(Ordering::Relaxed);
        let kind = if over_ftp { "ftp" } else { "put" };
        let (name, bytes) = (format!("{kind}-{number}.block"), block(number, BYTES));
        let is_acknowledged = if over_ftp {
            // Any part of it may fail when the process is killed.
            if std::net::TcpStream::connect(process.ftp).is_err() {
                return;
            }
            let tried = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let mut ftp = Ftp::silent(process.ftp);
                if !ftp.reply().starts_with("220 ") {
                    return String::new();
                }
                ftp.log_in(CAMERA, PASSWORD);
                ftp.store(&name, &bytes)
            }));
            tried.is_ok_and(|reply| reply.starts_with("226 "))
        } else {
            let headers = format!("Authorization: Bearer {PASSWORD}\r\n");
            let answer = try_send(process.put, "PUT", &format!("/blocks/{CAMERA}/{name}"), &headers, &bytes);
            answer.is_some_and(|answer| [200, 201].contains(&answer.status))
        };
        if is_acknowledged {
            numbers.fetch_add(1, Ordering::Relaxed);
            acknowledged.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_recorder_that_is_killed_again_and_again_keeps_every_block_that_it_has_acknowledged() {
    let directory = Directory::new();
    let config = directory.path("recorder.toml");
    std::fs::write(&config, text(&directory, "", "", "", "")).unwrap();
    // Panics of clients that were cut are expected and said nowhere.
    let (ftp_numbers, put_numbers, acknowledged) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    for round in 0..6_u64 {
        let mut process = Process::start(&config);
        let (ends, before) = (AtomicBool::new(false), acknowledged.load(Ordering::Relaxed));
        std::thread::scope(|scope| {
            let (process, ends, acknowledged) = (&process, &ends, &acknowledged);
            for (over_ftp, numbers) in [(true, &ftp_numbers), (false, &put_numbers)] {
                scope.spawn(move || upload(process, over_ftp, numbers, acknowledged, ends));
            }
            while acknowledged.load(Ordering::Relaxed) < before + 5 {
                std::thread::sleep(Duration::from_millis(2));
            }
            std::thread::sleep(Duration::from_millis(round * 37 % 100));
            // SAFETY: kill takes no pointer; the process is the child that this test has started and not waited for.
            unsafe { libc::kill(process.child.id() as libc::pid_t, libc::SIGKILL) };
            ends.store(true, Ordering::Relaxed);
        });
        process.child.wait().unwrap();
    }
    let mut process = Process::start(&config);
    let camera = directory.0.join("inbox/cameras").join(CAMERA);
    assert_eq!(files(&camera.join("incoming")).len(), 0, "what was half is removed");
    let stored: BTreeMap<_, _> = files(&camera.join("received")).into_iter().collect();
    let mut sent = 0;
    for (kind, numbers) in [("ftp", &ftp_numbers), ("put", &put_numbers)] {
        for number in 0..numbers.load(Ordering::Relaxed) {
            let found = stored.get(&format!("{kind}-{number}.block"));
            assert!(found == Some(&block(number, BYTES)), "{kind}-{number} was acknowledged");
            sent += 1;
        }
    }
    assert_eq!(sent, acknowledged.load(Ordering::Relaxed));
    assert!(sent >= 30 && (stored.len() as u64) <= sent + 2, "{sent} acknowledged, {} there", stored.len());
    assert!(stored.iter().all(|(_, bytes)| bytes.len() == BYTES), "all are whole");
    // SAFETY: as above.
    unsafe { libc::kill(process.child.id() as libc::pid_t, libc::SIGTERM) };
    assert_eq!(process.child.wait().unwrap().code(), Some(0));
}
