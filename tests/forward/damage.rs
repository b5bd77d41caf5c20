//! Objects that the store damages or loses, and answers that are not what they say: put again, and nothing else is stored.

use async_nats::HeaderMap;
use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{Context, object_store::ObjectInfo};

use crate::centre::{start, upload, wait_until};
use crate::two::{BUCKET, Receiver, Sender, left_in_bucket, set_up, with_stream};

/// The only object's note.
async fn note(stream: &Stream) -> (String, ObjectInfo) {
    let message = stream.get_last_raw_message_by_subject(&format!("$O.{BUCKET}.M.>")).await.unwrap();
    (message.subject.to_string(), serde_json::from_slice(&message.payload).unwrap())
}

/// Replaces a note.
async fn say(context: &Context, subject: &str, info: &ObjectInfo) {
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Rollup", "sub");
    let payload = serde_json::to_vec(info).unwrap();
    context.publish_with_headers(subject.to_owned(), headers, payload.into()).await.unwrap().await.unwrap();
}

/// Puts garbage where the object's chunks are, as many.
async fn replace_chunks(context: &Context, stream: &Stream, bytes: &[u8]) {
    let (_, info) = note(stream).await;
    let subject = format!("$O.{BUCKET}.C.{}", info.nuid);
    stream.purge().filter(&subject).await.unwrap();
    context.publish(subject, bytes.to_vec().into()).await.unwrap().await.unwrap();
}

/// One block is put; its object is treated badly; then it is fetched, refused, put again and stored.
fn check(what: &str, treat: impl AsyncFnOnce(&Context, &Stream, &[u8])) {
    let (centre, camera, _nats, url) = set_up();
    let sender = Sender::start(&centre.directory, &url, "");
    let block = camera.block(0).2;
    upload(&sender.receiving, &camera.name, "0.block", &block);
    wait_until(|| sender.metric("loadline_forward_puts_total") == 1.0);
    with_stream(&url, async |context, stream| treat(context, stream, &block).await);
    let receiver = Receiver::start(centre.directory.join("inbox"), &url, "");
    wait_until(|| sender.waiting() == 0);
    wait_until(|| left_in_bucket(&url) == 0);
    assert_eq!(receiver.metric("loadline_store_refused_total"), 1.0, "{what}");
    assert_eq!(sender.metric("loadline_forward_refusals_total"), 1.0, "{what}");
    assert_eq!(sender.metric("loadline_forward_puts_again_total"), 1.0, "{what}");
    let received = centre.directory.join("inbox/cameras").join(&camera.name).join("received");
    let there: Vec<_> = std::fs::read_dir(&received).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(there, [received.join("0.block")], "{what}");
    assert_eq!(std::fs::read(&there[0]).unwrap(), block, "{what}");
    receiver.station.stop();
    let processing = start(&centre.config("star"));
    wait_until(|| processing.counts().waiting == 0);
    let counts = processing.stop();
    assert_eq!((counts.committed, counts.quarantined), (1, 0), "{what}");
}

#[test]
fn an_object_whose_bytes_changed_is_refused_and_put_again() {
    check("a flipped byte", async |context, stream, block| {
        let mut block = block.to_vec();
        let middle = block.len() / 2;
        block[middle] ^= 1;
        replace_chunks(context, stream, &block).await;
    });
}

#[test]
fn an_object_that_is_shorter_or_longer_than_it_says_is_refused_and_put_again() {
    check("shorter", async |context, stream, block| {
        replace_chunks(context, stream, &block[..block.len() - 1]).await;
    });
    check("longer", async |context, stream, block| {
        replace_chunks(context, stream, &[block, b"x"].concat()).await;
    });
}

#[test]
fn an_object_without_its_chunks_is_refused_and_put_again() {
    check("no chunks", async |_, stream, _| {
        stream.purge().filter(format!("$O.{BUCKET}.C.>")).await.unwrap();
    });
}

#[test]
fn a_note_that_leads_elsewhere_is_refused_and_the_object_put_again() {
    check("an id with a wildcard", async |context, stream, _| {
        let (subject, mut info) = note(stream).await;
        info.nuid = ">".to_owned();
        say(context, &subject, &info).await;
    });
    check("no digest", async |context, stream, _| {
        let (subject, mut info) = note(stream).await;
        info.digest = None;
        say(context, &subject, &info).await;
    });
}

#[test]
fn an_answer_about_other_bytes_and_a_removal_by_hand_remove_nothing_here() {
    let (centre, camera, _nats, url) = set_up();
    let sender = Sender::start(&centre.directory, &url, "");
    upload(&sender.receiving, &camera.name, "0.block", &camera.block(0).2);
    let has_put = |times: f64| wait_until(|| sender.metric("loadline_forward_puts_total") == times);
    has_put(1.0);
    with_stream(&url, async |context, stream| {
        let (subject, mut info) = note(stream).await;
        (info.deleted, info.digest) = (true, Some("SHA-256=AAAA".to_owned()));
        info.metadata.insert("loadline-answer".to_owned(), "stored".to_owned());
        say(context, &subject, &info).await;
    });
    has_put(2.0);
    // As a person removes an object, and as a server loses all of them.
    with_stream(&url, async |context, stream| {
        let name = note(stream).await.1.name;
        context.get_object_store(BUCKET).await.unwrap().delete(&name).await.unwrap();
    });
    has_put(3.0);
    with_stream(&url, async |_, stream| stream.purge().await.map(drop).unwrap());
    has_put(4.0);
    assert_eq!((sender.waiting(), sender.metric("loadline_forward_puts_again_total")), (1, 3.0));
}
