//! What dashboards wait for: ten panels that are asked at once, over and over, while rows come in. Main function: [`dashboard`].
//!
//! 2,000 sources with one row each 10 s, for an hour (720,000 rows of four fields), are stored first. Then single rows of 61 columns come in from 350 sources
//! at 20 a second each, for `LASTS` (60) seconds, without questions and with them. At last, questions over all 2,000 sources are asked one after the other.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::clients::{Load, PER_SOURCE_S, SOURCES};
use crate::process::Recorder;
use crate::shared::ratio::from_environment;
use crate::{Target, seconds};

/// Sources that dashboards show, and sites that they are in.
const SHOWN: usize = 2_000;
const SITES: usize = 100;
/// The hour: its first second, rows of a source, and seconds between them.
const BEGIN_S: usize = 1_700_000_000;
const ROWS: usize = 360;
const EVERY_S: usize = 10;
/// All rows of the hour.
pub const STORED: usize = SHOWN * ROWS;
/// Lines of a request.
const LINES: usize = 1_000;
/// The step of a panel in seconds.
const STEP_S: usize = 15;

/// Stores the hour, and asks while rows come in. Returns how many rows were acknowledged.
pub fn dashboard(target: &Target, recorder: &Recorder) -> usize {
    let query = recorder.query.expect("the recorder answers questions");
    let begun = Instant::now();
    store_hour(recorder.http);
    recorder.drained();
    println!("{}: an hour of {SHOWN} sources stored in {:.1} s", target.name, begun.elapsed().as_secs_f64());
    let lasts = seconds("LASTS", 60.0);
    let load = Load { senders: SOURCES, batch: 1, per_s: Some(PER_SOURCE_S), lasts, at_ns: None };
    let alone = load.send(recorder.http);
    let every = Duration::from_secs_f64(1.0 / from_environment("DASHBOARDS_PER_S", 1.0));
    let (beside, times) = std::thread::scope(|scope| {
        let asking = scope.spawn(move || ask_again_and_again(query, lasts, every));
        (load.send(recorder.http), asking.join().unwrap())
    });
    println!(
        "{}: ten panels at once, {} times in {:.0} s: until the last one is answered p50 {:.0} ms, p95 {:.0} ms, most {:.0} ms",
        target.name,
        times.len(),
        lasts.as_secs_f64(),
        at(&times, 0.5),
        at(&times, 0.95),
        at(&times, 1.0)
    );
    for (what, sent) in [("without questions", &alone), ("beside them", &beside)] {
        println!(
            "  {what}: {:.0} rows/s acknowledged, p50 {:.1} ms, p99 {:.1} ms, most {:.1} ms from when they were due; {} requests refused",
            sent.rows as f64 / sent.elapsed_s,
            sent.ms_at(0.5),
            sent.ms_at(0.99),
            sent.ms_at(1.0),
            sent.refused
        );
    }
    for question in ["avg(shown_v0)", "max by (site) (avg_over_time(shown_v1[1m]))"] {
        let mut times: Vec<_> = (0..5).map(|_| ask(query, question, STEP_S)).collect();
        times.sort_by(f64::total_cmp);
        println!(
            "  over all {SHOWN} sources, {question}: median {:.0} ms, {:.0} to {:.0} ms (n = 5)",
            at(&times, 0.5),
            at(&times, 0.0),
            at(&times, 1.0)
        );
    }
    alone.rows + beside.rows
}

/// Sends the rows in the order of time, as they would have come.
fn store_hour(http: SocketAddr) {
    let mut stream = TcpStream::connect(http).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut answer = [0; 4096];
    for row in 0..ROWS {
        for first in (0..SHOWN).step_by(LINES) {
            let mut body = String::new();
            for source in first..first + LINES {
                let (site, time_s) = (source % SITES, BEGIN_S + row * EVERY_S);
                let value = (row * 7 + source * 13) % 1_000;
                let _ = writeln!(
                    body,
                    "shown,site=site{site},source=s{source} v0={value},v1={}.5,v2={}i,v3=1 {time_s}{:09}",
                    value / 2,
                    row * 10,
                    source * 1_000
                );
            }
            let head = format!("POST /api/v2/write HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", body.len());
            loop {
                stream.write_all((head.clone() + &body).as_bytes()).unwrap();
                let length = stream.read(&mut answer).unwrap();
                match &answer[..length.min(12)] {
                    b"HTTP/1.1 204" => break,
                    b"HTTP/1.1 503" | b"HTTP/1.1 429" => std::thread::sleep(Duration::from_millis(100)),
                    _ => panic!("{}", String::from_utf8_lossy(&answer[..length])),
                }
            }
        }
    }
}

/// The panels of a dashboard with this number: single sources, a few of them, and sites of 20.
fn panels(number: usize) -> [String; 10] {
    let source = |more: usize| format!("source=\"s{}\"", (number * 37 + more * 101) % SHOWN);
    let some = format!("source=~\"s{}|s{}|s{}\"", number % SHOWN, (number + 500) % SHOWN, (number + 900) % SHOWN);
    let site = |more: usize| format!("site=\"site{}\"", (number + more) % SITES);
    [
        format!("shown_v0{{{}}}", source(0)),
        format!("shown_v1{{{}}}", source(1)),
        format!("shown_v0{{{}}}", source(2)),
        format!("avg_over_time(shown_v0{{{}}}[1m])", source(3)),
        format!("max_over_time(shown_v1{{{}}}[5m])", source(4)),
        format!("rate(shown_v2{{{}}}[5m])", source(5)),
        format!("rate(shown_v2{{{some}}}[5m])"),
        format!("avg by (source) (shown_v0{{{some}}})"),
        format!("max(shown_v0{{{}}})", site(0)),
        format!("sum by (site) (rate(shown_v2{{{}}}[5m]))", site(7)),
    ]
}

/// Asks ten panels at once, again and again; the milliseconds until the last of each ten was answered, in order.
fn ask_again_and_again(query: SocketAddr, lasts: Duration, every: Duration) -> Vec<f64> {
    let (begun, mut times) = (Instant::now(), Vec::new());
    for number in 0.. {
        let due = begun + every * number as u32;
        if due >= begun + lasts {
            break;
        }
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let asked = Instant::now();
        std::thread::scope(|scope| {
            panels(number).into_iter().for_each(|panel| drop(scope.spawn(move || ask(query, &panel, STEP_S))));
        });
        times.push(asked.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    times
}

/// Asks a question about the hour; the milliseconds until it was answered.
fn ask(query: SocketAddr, question: &str, step_s: usize) -> f64 {
    let asked = Instant::now();
    let mut stream = TcpStream::connect(query).unwrap();
    let encoded: String = question.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let (end, mut answer) = (BEGIN_S + 3_600, String::new());
    let path = format!("/api/v1/query_range?query={encoded}&start={BEGIN_S}&end={end}&step={step_s}");
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream.read_to_string(&mut answer).unwrap();
    let ms = asked.elapsed().as_secs_f64() * 1e3;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"values\":[["), "{question}: {answer}");
    ms
}

fn at(times: &[f64], quantile: f64) -> f64 {
    times[((times.len() - 1) as f64 * quantile) as usize]
}
