//! Taking blocks in against `cp` and `sync` of the same files on the same disk, in the same run, alternating: the station in this process, and clients
//! in this process, over loopback. `cargo bench --bench uploads [-- SIZE_KIB BLOCKS ROUNDS]`

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on has failed")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use loadline::database::Target;
use loadline::database::station::{Camera, Content, StationDatabase, StationSettings, UploadWay};
use loadline::recorder::config;
use loadline::recorder::inbox::Inbox;
use loadline::recorder::upload::Station;
use loadline::statement::{Expect, Request, Step};
use loadline::statistics::summary::{mean, t_interval};

const CONNECTIONS: u64 = 10;
const TLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorder/tls");

/// Seconds for all blocks, each acknowledged.
fn upload(directory: &Path, way: UploadWay, content: &Content, blocks: u64) -> f64 {
    let inbox = directory.join("inbox");
    let certificate = format!("certificate = \"{TLS}/certificate.pem\"\nkey = \"{TLS}/key.pem\"");
    let tls = if matches!(way, UploadWay::Ftp | UploadWay::Put) { "" } else { certificate.as_str() };
    let text = format!(
        "[inbox]\npath = \"{}\"\n[intake.ftp]\nlisten = \"127.0.0.1:0\"\n{tls}\n[intake.put]\nlisten = \"127.0.0.1:0\"\n{tls}\n",
        inbox.display()
    );
    let config = config::read(&text, "bench.toml").unwrap_or_else(|errors| panic!("{errors}"));
    let opened = Inbox::open(&inbox, config.inbox.bounds).unwrap();
    let station = Station::start_on(&config, &opened).unwrap();
    let intake = if matches!(way, UploadWay::Put | UploadWay::PutTls) { "put" } else { "ftp" };
    let port = station.addresses().into_iter().find(|(name, _)| *name == intake).unwrap().1.port();
    let cameras = (0..3).map(|number| Camera { name: format!("camera-{number}"), password: "any".to_owned() });
    let database = StationDatabase::new(StationSettings {
        way,
        host: "localhost".to_owned(),
        port,
        cameras: cameras.collect(),
        networks: Vec::new(),
        certificate: Some(PathBuf::from(format!("{TLS}/certificate.pem"))),
        content: content.clone(),
        connects_for_each: false,
    })
    .unwrap();
    let sessions: Vec<_> = (0..CONNECTIONS).map(|_| database.open().unwrap()).collect();
    let next = AtomicU64::new(0);
    let step = Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Changed(1) };
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for mut session in sessions {
            let next = &next;
            scope.spawn(move || {
                let request = Request { steps: vec![step], ..Request::default() };
                while next.fetch_add(1, Ordering::Relaxed) < blocks {
                    session.execute(&request, None).unwrap();
                }
            });
        }
    });
    let took_s = begun.elapsed().as_secs_f64();
    assert_eq!(station.acknowledged(), blocks);
    station.stop();
    std::fs::remove_dir_all(&inbox).unwrap();
    took_s
}

/// Seconds for `cp` and then `sync` of every file and of the folder.
fn copy(directory: &Path, files: &[PathBuf]) -> f64 {
    let to = directory.join("copied");
    std::fs::create_dir_all(&to).unwrap();
    let begun = Instant::now();
    assert!(Command::new("cp").args(files).arg(&to).status().unwrap().success());
    let copied: Vec<_> = files.iter().map(|file| to.join(file.file_name().unwrap())).collect();
    assert!(Command::new("sync").args(&copied).arg(&to).status().unwrap().success());
    let took_s = begun.elapsed().as_secs_f64();
    std::fs::remove_dir_all(&to).unwrap();
    took_s
}

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let number = |place: usize, otherwise| numbers.get(place).copied().unwrap_or(otherwise);
    let (bytes, blocks, rounds) = (number(0, 700) << 10, number(1, 150), number(2, 8));
    let directory = std::env::temp_dir().join(format!("loadline-uploads-{}", std::process::id()));
    std::fs::create_dir_all(directory.join("files")).unwrap();
    let Content::Random(random) = Content::random(bytes as usize, 1) else { unreachable!("it was asked for") };
    let files: Vec<_> = (0..blocks).map(|block| directory.join(format!("files/{block}.block"))).collect();
    for (number, file) in files.iter().enumerate() {
        let mut content = random.to_vec();
        content[..8].copy_from_slice(&number.to_le_bytes());
        std::fs::write(file, content).unwrap();
    }
    let content = Content::Random(Arc::clone(&random));
    let ways = [
        ("FTP", UploadWay::Ftp),
        ("FTPS", UploadWay::FtpTls),
        ("PUT", UploadWay::Put),
        ("PUT, TLS", UploadWay::PutTls),
    ];
    let megabytes = (bytes * blocks) as f64 / 1e6;
    println!(
        "{blocks} blocks of {bytes} bytes, {CONNECTIONS} connections, {rounds} rounds after one that is not counted"
    );
    let mut copied = Vec::new();
    let mut ratios: Vec<Vec<f64>> = vec![Vec::new(); ways.len()];
    let mut rates: Vec<Vec<f64>> = vec![Vec::new(); ways.len()];
    for round in 0..=rounds {
        let bare = megabytes / copy(&directory, &files);
        for (place, (_, way)) in ways.iter().enumerate() {
            let rate = megabytes / upload(&directory, *way, &content, blocks);
            if round > 0 {
                ratios[place].push(rate / bare);
                rates[place].push(rate);
            }
        }
        if round > 0 {
            copied.push(bare);
        }
    }
    std::fs::remove_dir_all(&directory).unwrap();
    let shown = |values: &[f64]| {
        let interval = t_interval(values, 0.95).unwrap();
        format!("{:.2} [{:.2}, {:.2}]", mean(values).unwrap(), interval.low, interval.high)
    };
    println!("cp and sync: {} MB/s", shown(&copied));
    for (place, (name, _)) in ways.iter().enumerate() {
        println!("{name}: {} MB/s, ratio to cp and sync {}", shown(&rates[place]), shown(&ratios[place]));
    }
}
