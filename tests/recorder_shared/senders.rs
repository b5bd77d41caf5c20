//! Senders over HTTP whose requests go into the stream that recorders share.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use loadline::database::Endpoint;

use super::harness::{Directory, try_send};
use super::nats::Nats;
use super::{LEASE, PARTS, everything, held, proxy, start, stored, wait_for_all_parts, wait_until};

/// Sends requests of a source in turn, each until it is acknowledged; if one is not, it goes to the next recorder.
fn send_in_order(source: usize, requests: usize, recorders: &[SocketAddr]) {
    let mut place = source;
    for number in 0..requests {
        let body = format!("n,source=s{source} f={}i\nn,source=s{source} f={}i", 2 * number, 2 * number + 1);
        let headers = format!("X-Loadline-Source: s{source}\r\nIdempotency-Key: {number}\r\n");
        let begun = Instant::now();
        loop {
            let answer = try_send(recorders[place % recorders.len()], "POST", "/write", &headers, body.as_bytes());
            if answer.is_some_and(|answer| answer.status == 204) {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(240), "no recorder takes request {number} of {source}");
            place += 1;
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn senders_over_http_lose_nothing_and_keep_their_order_when_their_recorder_and_the_stream_are_killed() {
    const REQUESTS: usize = 1_000;
    const SENDERS: usize = 8;
    let directory = Directory::new();
    let (nats, target, mut place) = everything(&directory);
    place.publishes = true;
    let (first, second) = (start(&directory, 1, &place), start(&directory, 2, &place));
    wait_for_all_parts(&[&first, &second], f64::INFINITY);
    let addresses = [first.http, second.http];
    let send = move |source| move || send_in_order(source, REQUESTS, &addresses);
    let senders: Vec<_> = (0..SENDERS).map(|source| std::thread::spawn(send(source))).collect();
    wait_until("it goes on", || stored(&target) > SENDERS * REQUESTS / 5);
    first.kill();
    // Parts whose messages were under way when the server died go on behind the last one that is stored.
    wait_until("the other one has all parts", || held(&second) == PARTS);
    let nats = nats.restart();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    assert!(second.metric("loadline_stream_published_requests_total") > 0.0);
    wait_until("everything is stored", || stored(&target) >= SENDERS * REQUESTS * 2);
    // What is sent once more after all is recognised, and what is too large for a message is refused.
    send_in_order(3, 2, &[second.http]);
    let large = format!("n,source=large text=\"{}\"", "x".repeat(1 << 20));
    let refused = try_send(second.http, "POST", "/write", "", large.as_bytes()).unwrap();
    assert!(refused.status == 403 && refused.body.contains("max_payload"), "{} {}", refused.status, refused.body);
    // Without the stream nothing is acknowledged.
    drop(nats);
    let answer = try_send(second.http, "POST", "/write", "", b"n,source=none f=1i").unwrap();
    assert!([500, 503].contains(&answer.status), "{}", answer.status);
    wait_until("it is not ready", || try_send(second.http, "GET", "/ready", "", b"").unwrap().status == 503);
    assert_eq!(second.stop(), Some(0));
    let rows =
        target.query("SELECT i.source, v.f FROM n_values v JOIN n_identity i USING (measurement) ORDER BY v.record_id");
    for source in 0..SENDERS {
        let name = format!("s{source}|");
        let numbers = rows.iter().filter_map(|row| row.strip_prefix(&name)?.parse::<usize>().ok());
        assert!(numbers.eq(0..2 * REQUESTS), "{source}");
    }
    assert_eq!(rows.len(), SENDERS * REQUESTS * 2);
}

/// While the database is away, requests fill the server's store. Leases go on without it; otherwise nobody would have a part, and nothing would ever empty it.
#[test]
fn a_stream_whose_store_is_full_goes_on_once_the_database_is_back() {
    let directory = Directory::new();
    let (store, config) = (directory.path("small"), directory.path("small.conf"));
    std::fs::write(&config, format!("jetstream {{ store_dir: \"{store}\", max_file_store: 512KB }}\n")).unwrap();
    let (shared, target, mut place) = everything(&directory);
    drop(shared);
    let nats = Nats::start_configured(directory.path("nats"), &config);
    let (database, orders) = proxy::start(target.endpoint.as_ref().unwrap());
    let port_of = |endpoint: &Endpoint| endpoint.tcp.clone().unwrap().1;
    let own_port = format!(":{}/", port_of(target.endpoint.as_ref().unwrap()));
    place.database = place.database.replace(&own_port, &format!(":{}/", port_of(&database)));
    (place.nats, place.publishes) = (nats.url(), true);
    let (first, second) = (start(&directory, 1, &place), start(&directory, 2, &place));
    wait_for_all_parts(&[&first, &second], f64::INFINITY);
    orders.is_down.store(true, Ordering::Relaxed);
    let text = "x".repeat(10_000);
    let mut taken = 0;
    wait_until("the store is full", || {
        let body = format!("n,source=s f={taken}i,text=\"{text}\"");
        let headers = format!("X-Loadline-Source: s\r\nIdempotency-Key: {taken}\r\n");
        let answer = try_send(first.http, "POST", "/write", &headers, body.as_bytes()).unwrap();
        assert!([204, 503].contains(&answer.status), "{} {}", answer.status, answer.body);
        taken += usize::from(answer.status == 204);
        answer.status == 503
    });
    assert!(taken > 10, "{taken}");
    // Longer than any lease lasts.
    std::thread::sleep(2 * LEASE);
    orders.is_down.store(false, Ordering::Relaxed);
    wait_until("everything is stored", || stored(&target) >= taken);
    wait_until("there is room again", || {
        try_send(second.http, "POST", "/write", "", b"n,source=later f=1i").unwrap().status == 204
    });
    wait_until("that is stored, too", || stored(&target) > taken);
    assert_eq!((first.stop(), second.stop()), (Some(0), Some(0)));
    let numbers = target.query("SELECT v.f FROM n_values v WHERE v.text IS NOT NULL ORDER BY v.record_id");
    assert!(numbers.iter().map(|number| number.parse::<usize>().unwrap()).eq(0..taken), "{numbers:?}");
}
