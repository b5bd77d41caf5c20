//! Two machines, as a user sets them up.

use std::process::Command;

use loadline::recorder::inbox::list;

use crate::centre::{Centre, start, wait_until};
use crate::nats::{Nats, TLS_FILES};
use crate::two::{Program, Receiver, Sender, left_in_bucket, metric, texts};

/// Uploads a file as a user would.
fn curl(centre: &Centre, name: &str, block: &[u8], to: &str) {
    let path = centre.directory.join(name);
    std::fs::write(&path, block).unwrap();
    let output = Command::new("curl").args(["-sS", "-f", "-T", path.to_str().unwrap(), to]).output();
    let output = output.expect("curl is installed; ./check does that");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn page(program: &Program) -> String {
    let url = format!("http://{}/metrics", program.addresses["put"]);
    let output = Command::new("curl").args(["-sS", "-f", &url]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn blocks_uploaded_at_one_machine_are_stored_by_another() {
    let centre = Centre::new();
    let cameras = [centre.camera(1), centre.camera(2)];
    // Both begin before the server that joins them, and wait for it.
    let nats = Nats::start(centre.path("nats"));
    let (port, url) = (nats.port, nats.url());
    drop(nats);
    let [first, second] = texts(&centre, "first", &url);
    let [first_path, second_path] = ["first.toml", "second.toml"].map(|name| centre.path(name));
    std::fs::write(&first_path, first).unwrap();
    std::fs::write(&second_path, second).unwrap();
    let (taking_in, storing) = (Program::start(&first_path, 2), Program::start(&second_path, 1));
    wait_until(|| taking_in.said().contains("forwarding waits") && storing.said().contains("fetching blocks waits"));
    let [ftp, put] = ["ftp", "put"].map(|way| taking_in.addresses[way]);
    for camera in &cameras {
        for sequence in 0..6 {
            let (name, block) = (format!("{}-{sequence}.block", camera.name), camera.block(sequence).2);
            match sequence % 2 {
                0 => curl(&centre, &name, &block, &format!("ftp://{}:x@{ftp}/", camera.name)),
                _ => curl(&centre, &name, &block, &format!("http://{put}/blocks/{}/{name}", camera.name)),
            }
        }
    }
    curl(&centre, "none.block", b"this is no block", &format!("http://{put}/blocks/{}/none.block", cameras[0].name));
    assert_eq!(metric(&page(&taking_in), "loadline_forward_waiting_blocks"), 13.0);
    let _nats = Nats::start_at(port, centre.path("nats"));
    wait_until(|| {
        let page = page(&storing);
        metric(&page, "loadline_blocks_committed") + metric(&page, "loadline_blocks_quarantined") == 13.0
    });
    wait_until(|| left_in_bucket(&url) == 0);
    let (sent, stored) = (page(&taking_in), page(&storing));
    for (page, name, value) in [
        (&sent, "forwarded_blocks_total", 13.0),
        (&sent, "forward_waiting_blocks", 0.0),
        (&sent, "forward_connected", 1.0),
        (&sent, "forward_refusals_total", 0.0),
        (&stored, "store_fetched_total", 13.0),
        (&stored, "store_connected", 1.0),
        (&stored, "blocks_committed", 12.0),
        (&stored, "blocks_replayed", 0.0),
        (&stored, "blocks_quarantined", 1.0),
    ] {
        assert_eq!(metric(page, &format!("loadline_{name}")), value, "{name}");
    }
    assert!(taking_in.said().contains("a bucket was made"), "{}", taking_in.said());
    assert_eq!(taking_in.stop(), Some(0));
    assert_eq!(storing.stop(), Some(1), "a block is in quarantine");
    let sql = "SELECT camera, COUNT(*), MIN(sequence), MAX(sequence) FROM violation_values v JOIN violation_identity i \
               ON i.measurement = v.measurement GROUP BY camera ORDER BY camera";
    let mut expected = cameras.each_ref().map(|camera| format!("{}|6|0|5", camera.name));
    expected.sort();
    assert_eq!(centre.query(sql), expected);
    assert_eq!(list(&centre.inbox()).unwrap()[0].name, "none.block");
}

#[test]
fn the_bucket_is_reached_over_tls_with_certificates_and_a_token() {
    let centre = Centre::new();
    let camera = centre.camera(1);
    let nats = Nats::start_with_tls(centre.path("nats"));
    let url = format!("tls://localhost:{}", nats.port);
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| format!("{TLS_FILES}/{name}"));
    let tls = format!(
        "authority = \"{certificate}\"\ncertificate = \"{certificate}\"\nkey = \"{key}\"\ntoken = \"secret\"\n"
    );
    let sender = Sender::start(&centre.directory, &url, &tls);
    crate::centre::upload(&sender.receiving, &camera.name, "0.block", &camera.block(0).2);
    let receiver = Receiver::start_with(centre.directory.join("inbox"), &url, &tls, "");
    let processing = start(&centre.config("star"));
    wait_until(|| processing.counts().committed == 1 && sender.waiting() == 0);
    assert_eq!(processing.stop().quarantined, 0);
    receiver.station.stop();
}

#[test]
fn two_recorders_that_fetch_for_one_database_store_every_block_once() {
    let (first, mut second) = (Centre::new(), Centre::new());
    let camera = first.camera(1);
    for name in ["centre.key", "signers"] {
        std::fs::copy(first.path(name), second.path(name)).unwrap();
    }
    second.database.clone_from(&first.database);
    let nats = Nats::start(first.path("nats"));
    let sender = Sender::start(&first.directory, &nats.url(), "");
    let receivers = [&first, &second].map(|centre| Receiver::start(centre.directory.join("inbox"), &nats.url(), ""));
    // The tables are there before the second one looks for them.
    let one = start(&first.config("star"));
    wait_until(|| (one.metrics())().contains("loadline_blocks_database_connected 1"));
    let processings = [one, start(&second.config("star"))];
    for sequence in 0..30 {
        crate::centre::upload(&sender.receiving, &camera.name, &format!("{sequence}"), &camera.block(sequence).2);
    }
    wait_until(|| sender.waiting() == 0);
    wait_until(|| receivers.iter().all(|receiver| receiver.inbox.counts().unwrap().waiting == 0));
    for receiver in receivers {
        receiver.station.stop();
    }
    for processing in processings {
        assert_eq!(processing.failure(), None);
        assert_eq!(processing.stop().quarantined, 0);
    }
    let stored = first.query("SELECT COUNT(*), COUNT(DISTINCT sequence) FROM violation_values");
    assert_eq!(stored, ["30|30"]);
    assert_eq!(first.query("SELECT COUNT(*) FROM loadline_replay"), ["0"], "what came twice was one upload");
}
