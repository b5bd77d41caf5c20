//! Room: a bucket that is full, and an inbox that is full, are waited for; what is under way is bounded.

use async_nats::jetstream::object_store::Config;
use loadline::block::image::{Scene, draw};

use crate::centre::{start, upload, wait_until};
use crate::two::{BUCKET, Receiver, Sender, left_in_bucket, set_up, with_context, with_stream};

fn make_bucket(url: &str, bytes: usize) {
    let config = Config { bucket: BUCKET.to_owned(), max_bytes: bytes as i64, num_replicas: 1, ..Config::default() };
    with_context(url, async |context| drop(context.create_object_store(config).await.unwrap()));
}

#[test]
fn a_full_bucket_is_waited_for_and_nothing_is_lost() {
    let (centre, camera, _nats, url) = set_up();
    let blocks: Vec<_> = (0..12).map(|sequence| camera.block(sequence).2).collect();
    let three = 3 * (blocks[0].len() + 2_000);
    make_bucket(&url, three);
    let sender = Sender::start(&centre.directory, &url, "");
    for (sequence, block) in blocks.iter().enumerate() {
        upload(&sender.receiving, &camera.name, &format!("{sequence}.block"), block);
    }
    // All of them want to go; it holds some.
    wait_until(|| sender.metric("loadline_forward_under_way") == 12.0);
    wait_until(|| sender.metric("loadline_forward_puts_total") >= 2.0);
    assert!(with_stream(&url, async |_, stream| stream.cached_info().state.bytes) <= three as u64);
    assert_eq!((sender.metric("loadline_forwarded_blocks_total"), sender.waiting()), (0.0, 12));
    let receiver = Receiver::start(centre.directory.join("inbox"), &url, "");
    wait_until(|| sender.waiting() == 0);
    wait_until(|| left_in_bucket(&url) == 0);
    assert_eq!(receiver.inbox.counts().unwrap().waiting, 12);
    receiver.station.stop();
}

#[test]
fn a_bucket_that_is_full_to_the_last_byte_still_gets_its_answer() {
    let (centre, camera, _nats, url) = set_up();
    let sender = Sender::start(&centre.directory, &url, "");
    upload(&sender.receiving, &camera.name, "0.block", &camera.block(0).2);
    wait_until(|| sender.metric("loadline_forward_puts_total") == 1.0);
    let bytes = with_stream(&url, async |context, stream| {
        let bytes = stream.cached_info().state.bytes;
        context.delete_object_store(BUCKET).await.unwrap();
        bytes
    });
    // A little more: a note says when it was written, with more digits or less.
    make_bucket(&url, bytes as usize + 20);
    wait_until(|| sender.metric("loadline_forward_puts_total") >= 2.0);
    let receiver = Receiver::start(centre.directory.join("inbox"), &url, "");
    wait_until(|| sender.waiting() == 0 && left_in_bucket(&url) == 0);
    assert_eq!(receiver.inbox.counts().unwrap().waiting, 1);
    receiver.station.stop();
}

#[test]
fn a_full_inbox_at_the_other_end_leaves_the_blocks_at_this_one() {
    let (centre, camera, _nats, url) = set_up();
    let sender = Sender::start(&centre.directory, &url, "objects = 4\n");
    let block = |sequence| {
        let violation = camera.block(sequence).0;
        let image = draw(&violation, &Scene { width: 1_000, ..Scene::default() }, 1).unwrap();
        camera.sealer.seal(&violation, &image).unwrap()
    };
    let (mut sequence, mut bytes) = (0, 0);
    while bytes < 3 << 19 {
        let block = block(sequence);
        bytes += block.len();
        upload(&sender.receiving, &camera.name, &format!("{sequence}.block"), &block);
        sequence += 1;
    }
    let bounds = "bound = \"1MiB\"\nblock = \"512KiB\"\n";
    let receiver = Receiver::start(centre.directory.join("inbox"), &url, bounds);
    wait_until(|| receiver.metric("loadline_uploads_refused_total{reason=\"full\"}") >= 2.0);
    let counts = receiver.inbox.counts().unwrap();
    assert!(counts.bytes <= 1 << 20 && counts.waiting < sequence, "{counts:?}");
    assert!(sender.waiting() >= sequence - counts.waiting);
    assert!(sender.metric("loadline_forward_under_way") <= 4.0);
    let processing = start(&centre.config("star"));
    wait_until(|| sender.waiting() == 0 && processing.counts().committed == sequence);
    assert_eq!(processing.stop().quarantined, 0);
    receiver.station.stop();
}
