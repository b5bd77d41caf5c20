//! Each of the three killed again and again while blocks are uploaded, and the server losing everything: what was acknowledged is stored once.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use loadline::recorder::inbox::list;

use crate::centre::{Camera, upload as upload_block, wait_until};
use crate::two::{BUCKET, Program, Receiver, Sender, left_in_bucket, set_up, texts, with_stream};

/// Blocks that were sent, and those that were acknowledged: by sequence.
#[derive(Default)]
struct Sent {
    next: AtomicU64,
    acknowledged: Mutex<BTreeSet<u64>>,
}

impl Sent {
    fn count(&self) -> usize {
        self.acknowledged.lock().unwrap().len()
    }
}

/// Whether a block was acknowledged; any part of it may fail.
fn put(address: SocketAddr, camera: &str, name: &str, block: &[u8]) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    let _ = stream.set_read_timeout(Some(Duration::from_secs(120)));
    let head = format!(
        "PUT /blocks/{camera}/{name} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        block.len()
    );
    let mut answer = Vec::new();
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(block));
    let _ = stream.read_to_end(&mut answer);
    answer.starts_with(b"HTTP/1.1 201")
}

/// Uploads blocks, each once, whether it is acknowledged or not.
fn upload(camera: &Camera, address: &Mutex<Option<SocketAddr>>, sent: &Sent, ends: &AtomicBool) {
    while !ends.load(Ordering::Relaxed) {
        let Some(address) = *address.lock().unwrap() else {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        };
        let sequence = sent.next.fetch_add(1, Ordering::Relaxed);
        let is_acknowledged = put(address, &camera.name, &format!("{sequence}.block"), &camera.block(sequence).2);
        if is_acknowledged {
            sent.acknowledged.lock().unwrap().insert(sequence);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ends the uploads, also when the test fails.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn chunks_and_answers_that_were_left_are_removed_and_those_of_other_inboxes_stay() {
    let (centre, camera, _nats, url) = set_up();
    let mut sender = Sender::start(&centre.directory, &url, "");
    upload_block(&sender.receiving, &camera.name, "0.block", &camera.block(0).2);
    wait_until(|| sender.metric("loadline_forward_puts_total") == 1.0);
    sender.stop();
    let station = std::fs::read_to_string(centre.directory.join("first/station")).unwrap();
    let other = "0".repeat(32);
    with_stream(&url, async |context, _| {
        for id in [format!("{}.{}.1-0", station.trim_end(), "a".repeat(32)), format!("{other}.{}.1-0", "a".repeat(32))]
        {
            let published = context.publish(format!("$O.{BUCKET}.C.{id}"), "left".into()).await.unwrap();
            published.await.unwrap();
        }
    });
    // A chunk and a note of what waits, and the chunks that were left.
    assert_eq!(left_in_bucket(&url), 4);
    sender.forward();
    wait_until(|| left_in_bucket(&url) == 3);
    assert_eq!(sender.waiting(), 1);
    let receiver = Receiver::start(centre.directory.join("inbox"), &url, "");
    wait_until(|| sender.waiting() == 0 && left_in_bucket(&url) == 1);
    receiver.station.stop();
}

#[test]
fn whoever_is_killed_everything_acknowledged_is_stored_once() {
    let (centre, camera, mut nats, url) = set_up();
    let [first, second] = ["first.toml", "second.toml"].map(|name| centre.path(name));
    for (path, text) in [&first, &second].into_iter().zip(texts(&centre, "first", &url)) {
        std::fs::write(path, text).unwrap();
    }
    let (sent, ends, address) = (Sent::default(), AtomicBool::new(false), Mutex::new(None));
    let (mut taking_in, mut storing) = (Program::start(&first, 2), Program::start(&second, 1));
    *address.lock().unwrap() = Some(taking_in.addresses["put"]);
    // What comes back are those that were started last.
    (taking_in, storing, nats) = std::thread::scope(|scope| {
        let (camera, address, sent, ends) = (&camera, &address, &sent, &ends);
        let _ended = Ended(ends);
        scope.spawn(move || upload(camera, address, sent, ends));
        for round in 0..12 {
            // Somewhere in the way of a block: it is a different place each time.
            let before = sent.count();
            wait_until(|| sent.count() >= before + 4);
            std::thread::sleep(Duration::from_millis(round * 7 % 30));
            match round % 4 {
                0 => {
                    *address.lock().unwrap() = None;
                    taking_in.kill();
                    taking_in = Program::start(&first, 2);
                    *address.lock().unwrap() = Some(taking_in.addresses["put"]);
                }
                1 => {
                    storing.kill();
                    storing = Program::start(&second, 1);
                }
                2 => nats = nats.restart(),
                _ => nats = nats.restart_empty(),
            }
        }
        (taking_in, storing, nats)
    });
    let stored = || centre.query("SELECT sequence FROM violation_values");
    let acknowledged = sent.acknowledged.lock().unwrap().clone();
    let inbox = centre.directory.join("first/cameras").join(&camera.name).join("received");
    wait_until(|| std::fs::read_dir(&inbox).unwrap().count() == 0);
    wait_until(|| centre.inbox().counts().unwrap().waiting == 0);
    wait_until(|| left_in_bucket(&url) == 0);
    assert_eq!((taking_in.stop(), storing.stop()), (Some(0), Some(0)));
    drop(nats);
    let stored: Vec<u64> = stored().iter().map(|sequence| sequence.parse().unwrap()).collect();
    let distinct: BTreeSet<u64> = stored.iter().copied().collect();
    assert_eq!(stored.len(), distinct.len(), "every block is stored once");
    let lost: Vec<_> = acknowledged.difference(&distinct).collect();
    assert!(lost.is_empty(), "{lost:?} were acknowledged and are not stored");
    assert!(acknowledged.len() >= 48 && distinct.last() < Some(&sent.next.load(Ordering::Relaxed)));
    // What came twice is known as one upload, and not taken for a replay by the camera.
    assert_eq!(centre.query("SELECT COUNT(*) FROM loadline_replay"), ["0"]);
    assert!(list(&centre.inbox()).unwrap().is_empty());
}
