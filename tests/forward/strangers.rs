//! What others write into the bucket: objects of theirs are left alone, and names, sizes and contents that are not to be stored are not.

use std::path::Path;

use async_nats::jetstream::object_store::ObjectMetadata;
use futures_util::StreamExt;
use loadline::recorder::inbox::list;
use tokio::io::AsyncReadExt;

use crate::centre::{Centre, start, upload, wait_until};
use crate::nats::Nats;
use crate::two::{BUCKET, Receiver, Sender, set_up, with_context};

const STATION: &str = "00112233445566778899aabbccddeeff";

/// Puts an object with another client; `is_marked` when it says that it is a block.
fn put(url: &str, name: &str, bytes: &[u8], is_marked: bool) {
    let mark = is_marked.then(|| ("loadline-block".to_owned(), "1".to_owned()));
    let meta = ObjectMetadata { name: name.to_owned(), metadata: mark.into_iter().collect(), ..Default::default() };
    with_context(url, async |context| {
        let bucket = context.get_object_store(BUCKET).await.unwrap();
        bucket.put(meta, &mut &bytes[..]).await.unwrap();
    });
}

/// All plain files below a folder, relative to it.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            let name = entry.file_name().unwrap().to_string_lossy().into_owned();
            found.extend(files(&entry).into_iter().map(|file| format!("{name}/{file}")));
        } else {
            found.push(entry.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    found.sort();
    found
}

#[test]
fn names_and_sizes_that_are_not_to_be_stored_are_refused_and_nothing_is_written() {
    let (centre, camera, _nats, url) = set_up();
    // Only to have the bucket made.
    let sender = Sender::start(&centre.directory, &url, "");
    upload(&sender.receiving, &camera.name, "first.block", &camera.block(0).2);
    wait_until(|| sender.metric("loadline_forward_puts_total") == 1.0);
    let block = camera.block(1).2;
    let name = &camera.name;
    let tricks = [
        format!("{STATION}/../1/x"),
        format!("{STATION}/{name}/1/../../../../x"),
        format!("{STATION}/{name}/1/.hidden"),
        format!("{STATION}/{name}/1/a\0b"),
        format!("{STATION}/{name}/1/a\nb"),
        format!("{STATION}/{name}/1/"),
        format!("{STATION}/{name}/-1/x"),
        format!("{STATION}/{name}/x"),
        format!("../{name}/1/x"),
        "x".to_owned(),
    ];
    tricks.iter().for_each(|trick| put(&url, trick, &block, true));
    put(&url, &format!("{STATION}/{name}/1/large"), &vec![1; 300_000], true);
    put(&url, &format!("{STATION}/{name}/1/empty"), b"", true);
    // Nobody's mark: somebody else's object, which may stay.
    put(&url, "notes.txt", b"notes", false);
    put(&url, &format!("{STATION}/{name}/1/unmarked"), &block, false);
    let bounds = "block = \"200KiB\"\n";
    let receiver = Receiver::start(centre.directory.join("inbox"), &url, bounds);
    let refused = tricks.len() as f64 + 2.0;
    wait_until(|| receiver.metric("loadline_store_refused_total") == refused && sender.waiting() == 0);
    let stored: Vec<_> =
        files(&centre.directory.join("inbox")).into_iter().filter(|file| !file.ends_with(".lock")).collect();
    assert_eq!(stored, [format!("cameras/{name}/received/first.block"), "intakes/starting".to_owned()]);
    assert_eq!(files(&centre.directory.join("first")).iter().filter(|file| file.starts_with("cameras")).count(), 0);
    with_context(&url, async |context| {
        let bucket = context.get_object_store(BUCKET).await.unwrap();
        let mut notes = String::new();
        bucket.get("notes.txt").await.unwrap().read_to_string(&mut notes).await.unwrap();
        assert_eq!(notes, "notes");
        assert!(!bucket.info(format!("{STATION}/{name}/1/unmarked")).await.unwrap().deleted);
    });
    assert_eq!(receiver.metric("loadline_store_fetched_total"), 1.0);
    receiver.station.stop();
}

#[test]
fn blocks_that_another_client_puts_are_fetched_and_judged_by_their_own_seal() {
    let (centre, elsewhere) = (Centre::new(), Centre::new());
    let (camera, forged) = (centre.camera(1), elsewhere.camera(1));
    let nats = Nats::start(centre.path("nats"));
    let url = nats.url();
    let mut sender = Sender::start(&centre.directory, &url, "");
    let block = camera.block(0).2;
    upload(&sender.receiving, &camera.name, "0.block", &block);
    wait_until(|| sender.metric("loadline_forward_puts_total") == 1.0);
    sender.stop();
    // What is put here is what others read.
    with_context(&url, async |context| {
        let bucket = context.get_object_store(BUCKET).await.unwrap();
        let mut listed = bucket.list().await.unwrap();
        let info = listed.next().await.unwrap().unwrap();
        let mut bytes = Vec::new();
        bucket.get(&info.name).await.unwrap().read_to_end(&mut bytes).await.unwrap();
        assert!(bytes == block, "{} bytes", bytes.len());
    });
    let name = &camera.name;
    put(&url, &format!("{STATION}/{name}/1763794800000000001/1.block"), &camera.block(1).2, true);
    // Signed by another key; and two of one name and time, which must not replace each other in quarantine.
    put(&url, &format!("{STATION}/{name}/1763794800000000002/2.block"), &forged.block(2).2, true);
    let receiver = Receiver::start(centre.directory.join("inbox"), &url, "");
    let processing = start(&centre.config("star"));
    wait_until(|| (processing.counts().committed, processing.counts().quarantined) == (2, 1));
    let other = STATION.replace("00", "ff");
    put(&url, &format!("{other}/{name}/1763794800000000002/2.block"), &forged.block(3).2, true);
    wait_until(|| processing.counts().quarantined == 2);
    let kept = list(&centre.inbox()).unwrap();
    assert!(kept.iter().all(|one| one.reason.contains("its key is none of camera")), "{kept:?}");
    assert_eq!(kept.iter().map(|one| one.arrived_ns % 10).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(processing.stop().committed, 2);
    receiver.station.stop();
    let sequences = centre.query("SELECT sequence FROM violation_values ORDER BY sequence");
    assert_eq!(sequences, ["0", "1"], "nothing unauthorised is stored");
}
