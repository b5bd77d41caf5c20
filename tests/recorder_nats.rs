//! NATS JetStream and TLS: what publishers send is stored once by however many recorders, and what goes over the network can be
//! encrypted.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/harness.rs"]
mod harness;
#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/nats.rs"]
mod nats;
#[expect(dead_code, reason = "these tests copy spools and damage none")]
#[path = "recorder/spools.rs"]
mod spools;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_nats::jetstream;
use async_nats::jetstream::stream::{Config as StreamConfig, StorageType};
use loadline::recorder::config;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, Stream};

use harness::{Directory, Started, Target, send};
use nats::{Nats, TLS_FILES};
use spools::copy_spool;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// Publishes messages with the ids of their numbers; each is acknowledged by the server.
fn publish(url: &str, numbers: std::ops::Range<u32>, with_id: bool) {
    runtime().block_on(async {
        let client = async_nats::connect(url).await.unwrap();
        let context = jetstream::new(client);
        let stream = StreamConfig {
            name: "measurements".to_owned(),
            subjects: vec!["measurements.>".to_owned()],
            storage: StorageType::File,
            duplicate_window: Duration::from_millis(100),
            ..StreamConfig::default()
        };
        context.get_or_create_stream(stream).await.unwrap();
        for number in numbers {
            let body =
                format!("n,host=h{} f={number}i {number}\nn,host=h f={}i {number}\n", number % 5, number + 100_000);
            let mut headers = async_nats::HeaderMap::new();
            if with_id {
                headers.insert("Nats-Msg-Id", format!("id {number}").as_str());
            }
            let subject = format!("measurements.{}", number % 3);
            context.publish_with_headers(subject, headers, body.into()).await.unwrap().await.unwrap();
        }
    });
}

fn start(target: &Target, directory: &Directory, spool: &str, url: &str) -> Started {
    let name = target.name;
    let path = target.settings.path.as_ref().map_or(String::new(), |path| format!("path = \"{path}\"\n"));
    let text = format!(
        "[database]\nname = \"{name}\"\n{path}[spool]\npath = \"{}\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n[intake.tcp]\n\
         listen = \"127.0.0.1:0\"\n[intake.nats]\nurl = \"{url}\"\nstream = \"measurements\"\nconsumer = \"loadline\"\n",
        directory.path(spool)
    );
    Started::new(&config::read(&text, "test.toml").unwrap(), target.open())
}

/// Waits for something that takes as long as it takes, at most four minutes.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(240), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn wait_for_rows(target: &Target, rows: u64) {
    let begun = Instant::now();
    loop {
        let found = target.session().query("SELECT COUNT(*) FROM n_values");
        let found = found.ok().and_then(|rows| rows[0][0].clone()).unwrap_or_default();
        if found == rows.to_string() {
            return;
        }
        // What was on its way when a server was killed is delivered again after the consumer's wait for acknowledgements.
        assert!(begun.elapsed() < Duration::from_secs(240), "{found} of {rows}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn several_recorders_store_what_is_published_once_even_when_it_is_published_twice() {
    let directory = Directory::new();
    let nats = Nats::start(directory.path("nats"));
    let target = Target::server("mariadb");
    publish(&nats.url(), 0..100, true);
    let recorders =
        [start(&target, &directory, "spool1", &nats.url()), start(&target, &directory, "spool2", &nats.url())];
    assert_that_all_is_stored_once(&target, nats, recorders);
}

/// Without a spool the ids of all intakes stand in one table.
#[test]
fn clients_of_another_intake_cannot_take_the_ids_of_a_stream() {
    let directory = Directory::new();
    let nats = Nats::start(directory.path("nats"));
    let target = Target::sqlite(&directory);
    publish(&nats.url(), 0..0, true);
    let started = start(&target, &directory, "spool", &nats.url());
    for number in 0..10 {
        let headers = format!("X-Loadline-Source: measurements.{}\r\nIdempotency-Key: id {number}\r\n", number % 3);
        assert_eq!(send(started.http, "POST", "/write", &headers, b"theft f=1i").status, 204);
    }
    publish(&nats.url(), 0..10, true);
    wait_for_rows(&target, 20);
    started.stop();
    assert_eq!(target.query("SELECT COUNT(*) FROM theft_values"), ["10"]);
}

/// As a machine that was cloned while it ran: both believe to be the same recorder.
#[test]
fn recorders_with_copies_of_one_spool_store_what_is_published_once() {
    let directory = Directory::new();
    let nats = Nats::start(directory.path("nats"));
    let target = Target::server("mariadb");
    publish(&nats.url(), 0..50, true);
    let first = start(&target, &directory, "spool1", &nats.url());
    wait_for_rows(&target, 100);
    copy_spool(&directory.path("spool1"), &directory.path("spool2"));
    let second = start(&target, &directory, "spool2", &nats.url());
    publish(&nats.url(), 50..100, true);
    assert_that_all_is_stored_once(&target, nats, [first, second]);
    let named = target.query("SELECT COUNT(DISTINCT recorder) FROM loadline_writer");
    assert_ne!(named, ["1"], "one of them goes on under another name");
}

/// A server that has lost its newest messages in a power cut numbers others like them, too.
#[test]
fn messages_whose_numbers_a_stream_gives_again_are_not_taken_for_those_before() {
    let directory = Directory::new();
    let nats = Nats::start(directory.path("nats"));
    let target = Target::sqlite(&directory);
    publish(&nats.url(), 0..20, false);
    let started = start(&target, &directory, "spool", &nats.url());
    wait_for_rows(&target, 40);
    runtime().block_on(async {
        let client = async_nats::connect(nats.url()).await.unwrap();
        jetstream::new(client).delete_stream("measurements").await.unwrap();
    });
    // Each number comes again under the subject that it had.
    publish(&nats.url(), 21..41, false);
    wait_for_rows(&target, 80);
    started.stop();
}

/// Publishes more, some of it again and some of it without ids, to recorders that have been given the numbers up to 100.
fn assert_that_all_is_stored_once(target: &Target, nats: Nats, recorders: [Started; 2]) {
    wait_for_rows(target, 200);
    // The server's own window of duplicates is over: it takes these for new.
    std::thread::sleep(Duration::from_millis(300));
    publish(&nats.url(), 50..150, true);
    wait_for_rows(target, 300);
    let nats = nats.restart();
    publish(&nats.url(), 150..200, false);
    wait_for_rows(target, 400);
    let total = |name: &str| -> u64 {
        let value = |started: &Started| {
            let page = started.recorder.metrics();
            page.lines().find_map(|line| line.strip_prefix(&format!("{name} "))?.parse::<u64>().ok()).unwrap()
        };
        recorders.iter().map(value).sum()
    };
    // Rows can be read in the database a moment before they are counted.
    wait_until("everything is counted", || {
        total("loadline_committed_rows_total") >= 400 && total("loadline_duplicate_requests_total") >= 50
    });
    assert_eq!(total("loadline_committed_rows_total"), 400);
    recorders.into_iter().for_each(|started| assert_eq!(started.stop().counts.quarantined, 0));
    assert_eq!(target.query("SELECT COUNT(DISTINCT f), COUNT(DISTINCT record_id) FROM n_values"), ["400|400"]);
    assert_eq!(target.query("SELECT COUNT(*) FROM n_identity"), ["6"], "identities are written once by all");
}

/// Publishes as many messages of one subject, each with a number and as much beside it.
fn publish_in_order(url: &str, count: u32, padding: usize) {
    runtime().block_on(async {
        let client = async_nats::connect(url).await.unwrap();
        let context = jetstream::new(client);
        let stream = StreamConfig {
            name: "measurements".to_owned(),
            subjects: vec!["measurements.>".to_owned()],
            storage: StorageType::File,
            ..StreamConfig::default()
        };
        context.get_or_create_stream(stream).await.unwrap();
        let text = "x".repeat(padding);
        let mut acknowledged = Vec::new();
        for number in 0..count {
            let body = format!("n,host=h f={number}i,text=\"{text}\" {number}\n");
            acknowledged.push(context.publish("measurements.one", body.into()).await.unwrap());
        }
        for one in acknowledged {
            one.await.unwrap();
        }
    });
}

#[test]
fn a_nats_server_that_is_killed_in_the_midst_of_it_has_everything_stored_once() {
    let directory = Directory::new();
    let mut nats = Nats::start(directory.path("nats"));
    let target = Target::server("postgres");
    publish_in_order(&nats.url(), 3_000, 1_000);
    let started = start(&target, &directory, "spool", &nats.url());
    for round in 1..4 {
        wait_until("the next part is committed", || started.recorder.counts().committed >= 500 * round);
        nats = nats.restart();
    }
    wait_for_rows(&target, 3_000);
    assert_eq!(started.stop().counts.quarantined, 0);
    assert_eq!(target.query("SELECT COUNT(*), COUNT(DISTINCT f) FROM n_values"), ["3000|3000"]);
    drop(nats);
}

#[test]
fn nats_is_spoken_over_tls_with_certificates_and_a_token() {
    let directory = Directory::new();
    let nats = Nats::start_with_tls(directory.path("nats"));
    let url = format!("tls://localhost:{}", nats.port);
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| format!("{TLS_FILES}/{name}"));
    runtime().block_on(async {
        let options = async_nats::ConnectOptions::with_token("secret".to_owned()).require_tls(true);
        let options = options.add_root_certificates(certificate.clone().into());
        let client = options.add_client_certificate(certificate.clone().into(), key.clone().into()).connect(&url).await;
        let context = jetstream::new(client.unwrap());
        let (name, subjects) = ("measurements".to_owned(), vec!["measurements.>".to_owned()]);
        context.create_stream(StreamConfig { name, subjects, ..StreamConfig::default() }).await.unwrap();
        context.publish("measurements.x", "n,host=h f=7i 1\n".into()).await.unwrap().await.unwrap();
    });
    let target = Target::sqlite(&directory);
    let intake =
        format!("authority = \"{certificate}\"\ncertificate = \"{certificate}\"\nkey = \"{key}\"\ntoken = \"secret\"");
    let text = format!(
        "[database]\npath = \"{}\"\n[spool]\npath = \"{}\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n[intake.tcp]\n\
         listen = \"127.0.0.1:0\"\n[intake.nats]\nurl = \"{url}\"\nstream = \"measurements\"\nconsumer = \"c\"\n{intake}\n",
        directory.path("measurements.db"),
        directory.path("spool")
    );
    let started = Started::new(&config::read(&text, "test.toml").unwrap(), target.open());
    wait_for_rows(&target, 1);
    started.stop();
}

#[test]
fn messages_of_a_subject_keep_their_order_however_many_and_large_they_are() {
    let directory = Directory::new();
    let nats = Nats::start(directory.path("nats"));
    // More than a fetch takes by number, and more than it takes by bytes.
    for (count, padding) in [(1_200, 0), (25, 500_000)] {
        let of_target = Directory::new();
        let target = Target::sqlite(&of_target);
        publish_in_order(&nats.url(), count, padding);
        let spool = format!("spool {count}");
        let started = start(&target, &directory, &spool, &nats.url());
        wait_for_rows(&target, u64::from(count));
        started.stop();
        let numbers = target.query("SELECT f FROM n_values ORDER BY record_id");
        let expected: Vec<String> = (0..count).map(|number| number.to_string()).collect();
        assert_eq!(numbers, expected);
        runtime().block_on(async {
            let context = jetstream::new(async_nats::connect(nats.url()).await.unwrap());
            context.delete_stream("measurements").await.unwrap();
        });
    }
}

#[test]
fn messages_with_lines_that_are_no_points_go_to_quarantine() {
    let directory = Directory::new();
    let nats = Nats::start(directory.path("nats"));
    let target = Target::server("postgres");
    publish(&nats.url(), 0..1, true);
    runtime().block_on(async {
        let context = jetstream::new(async_nats::connect(nats.url()).await.unwrap());
        context.publish("measurements.x", "n,host=h f=7i 1\nnonsense\n".into()).await.unwrap().await.unwrap();
    });
    let started = start(&target, &directory, "spool", &nats.url());
    wait_for_rows(&target, 3);
    wait_until("it is in quarantine", || started.recorder.counts().quarantined == 1);
    assert_eq!(started.stop().counts.quarantined, 1);
    let listed = loadline::recorder::spool::list(&directory.0.join("spool"), 10).unwrap();
    assert!(listed[0].reason.contains("line 2, column 9"), "{}", listed[0].reason);
}

#[test]
fn requests_over_tls_are_taken_in_and_plain_ones_are_not() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let files = TLS_FILES;
    let tls = format!("certificate = \"{files}/certificate.pem\"\nkey = \"{files}/key.pem\"");
    let started = target.start(&directory, "name = \"wide\"", "");
    started.stop();
    let text = format!(
        "[database]\npath = \"{}\"\n[spool]\npath = \"{}\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n{tls}\n[intake.tcp]\n\
         listen = \"127.0.0.1:0\"\n{tls}\n",
        directory.path("measurements.db"),
        directory.path("spool")
    );
    let started = Started::new(&config::read(&text, "test.toml").unwrap(), target.open());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(format!("{files}/certificate.pem")).unwrap()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let client = Arc::new(client.with_root_certificates(roots).with_no_client_auth());
    let say = |address, words: &[u8]| {
        let mut connection =
            ClientConnection::new(Arc::clone(&client), ServerName::try_from("localhost").unwrap()).unwrap();
        let mut socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(240))).unwrap();
        let mut stream = Stream::new(&mut connection, &mut socket);
        stream.write_all(words).unwrap();
        let mut answer = vec![0; 1_000];
        let length = stream.read(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[..length]).into_owned()
    };
    let answer = say(started.http, b"POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\nm f=1 1");
    assert!(answer.starts_with("HTTP/1.1 204"), "{answer}");
    assert_eq!(say(started.tcp, b"m f=2 2\n\n"), "ok 1\n");
    assert!(harness::try_send(started.http, "POST", "/write", "", b"m f=3 3").is_none());
    started.stop();
    assert_eq!(target.query("SELECT f FROM m_values ORDER BY f"), ["1", "2"]);
}
