//! Senders over TCP that never ask what became of their lines: no empty line, no reading, as `nc`, Telegraf's and QuestDB's senders do.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use super::harness::{Directory, Started, Target};

const LAYOUT: &str = "name = \"wide\"";

/// Waits until so many records are known of, wherever they are.
fn wait_for(started: &Started, acknowledged: u64) {
    let begun = Instant::now();
    while started.recorder.counts().acknowledged < acknowledged {
        assert!(begun.elapsed() < Duration::from_secs(240), "{:?}", started.recorder.counts());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn send(started: &Started, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(started.tcp).unwrap();
    stream.write_all(bytes).unwrap();
    stream
}

/// What stays of a connection: everything that it was told until it ended.
fn rest(mut stream: TcpStream) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(240))).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said
}

/// Lines without an empty line behind them are stored when the sender is silent, goes, or ends without a line end.
pub fn lines_that_nobody_asks_about_are_stored(target: &Target) {
    let directory = Directory::new();
    let started = target.start(&directory, LAYOUT, "");
    // Silent, and neither gone nor reading; in a string there may be ends of lines.
    let mut silent = send(&started, b"stream f=1,t=\"a\nb\" 1\nstream f=2 2\n");
    wait_for(&started, 2);
    // Gone at once, as Telegraf is when it stops.
    drop(send(&started, b"stream f=3 3\nstream f=4 4\n"));
    // As `printf 'stream f=5 5' | nc -N`: no line end, and the end of what it has to say.
    let last = send(&started, b"# source=nc precision=s\nstream f=5 5");
    last.shutdown(Shutdown::Write).unwrap();
    assert_eq!(rest(last), "", "who does not ask is told nothing");
    wait_for(&started, 5);
    // Who asks after all is told of everything since the last answer.
    silent.write_all(b"stream f=6 6\n\n").unwrap();
    silent.shutdown(Shutdown::Write).unwrap();
    assert_eq!(rest(silent), "ok 3\n");
    // A batch with an id that was never sent whole is not stored: sent again, the whole is.
    drop(send(&started, b"# id=7\nstream f=7 7\nstream f=8 8\n"));
    let whole = send(&started, b"# id=7\nstream f=7 7\nstream f=8 8\nstream f=9 9\n\n");
    whole.shutdown(Shutdown::Write).unwrap();
    assert_eq!(rest(whole), "ok 3\n");
    started.wait_until_committed();
    assert_eq!(started.stop().counts.quarantined, 0);
    let stored = target.query("SELECT f, time_ns FROM stream ORDER BY f");
    let expected = (1..=9).map(|number| format!("{number}|{number}{}", if number == 5 { "000000000" } else { "" }));
    assert_eq!(stored, expected.collect::<Vec<_>>(), "{}", target.name);
}

/// A long stream without a pause and without an end is stored while it goes on, within the memory that there is.
pub fn a_stream_without_pauses_is_stored_while_it_goes_on(target: &Target) {
    let directory = Directory::new();
    let started = target.start(&directory, LAYOUT, "[intake]\nrequest = \"64KiB\"\nmemory = \"1MiB\"\n");
    let (lines, streams) = (20_000, 3);
    let senders: Vec<_> = (0..streams)
        .map(|stream| {
            let mut text = String::new();
            for line in 0..lines {
                text += &format!("steady,s=s{stream} f={line},t=\"one\ntwo\" {line}\n");
            }
            let address = started.tcp;
            std::thread::spawn(move || TcpStream::connect(address).unwrap().write_all(text.as_bytes()).unwrap())
        })
        .collect();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    wait_for(&started, lines * streams);
    started.wait_until_committed();
    assert_eq!(started.stop().counts.quarantined, 0);
    let stored = target
        .query("SELECT s, COUNT(*), SUM(f), COUNT(DISTINCT f), COUNT(DISTINCT t) FROM steady GROUP BY s ORDER BY s");
    let sum = lines * (lines - 1) / 2;
    let expected = (0..streams).map(|stream| format!("s{stream}|{lines}|{sum}|{lines}|1"));
    let numbers = stored.iter().map(|row| row.replace(".0", "")).collect::<Vec<_>>();
    assert_eq!(numbers, expected.collect::<Vec<_>>(), "{}", target.name);
}

/// What is no point is kept with its reason, and so is a last line that may be cut short.
pub fn lines_that_are_no_points_are_kept_in_quarantine(target: &Target) {
    let directory = Directory::new();
    let more = "patience = \"2s\"\n";
    let started = target.start(&directory, LAYOUT, more);
    drop(send(&started, b"halved f=1 1\nhalved\nhalved f=2 2\n"));
    wait_for(&started, 3);
    // It stays, says half a line, and no more.
    let half = send(&started, b"halved f=3 3\nhalved f=4");
    assert_eq!(rest(half), "");
    wait_for(&started, 5);
    started.wait_until_committed();
    assert_eq!(started.stop().counts.quarantined, 2);
    assert_eq!(target.query("SELECT f FROM halved ORDER BY f"), ["1", "2", "3"], "{}", target.name);
    let kept = loadline::recorder::spool::list(&directory.0.join("spool"), 10).unwrap();
    let kept: Vec<_> = kept.iter().map(|one| (one.line.as_str(), one.rows, one.reason.as_str())).collect();
    assert_eq!(kept[0].0, "halved");
    assert!(kept[0].2.contains("line 2, column 7"), "{kept:?}");
    assert_eq!(kept[1], ("halved f=4", 1, "intake.tcp.patience was over within this line"));
}
