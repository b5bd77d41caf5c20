//! The ticket office over HTTP: who may read what, and that every access is on record before it is answered.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use loadline::recorder::config;
use loadline::recorder::office::Office;
use loadline::recorder::processing::Form;

use crate::centre::{Centre, open_database, process};

pub const TOKEN: &str = "Authorization: Bearer desk-token-0123456789\r\n";

pub fn ask(address: SocketAddr, method: &str, target: &str, headers: &str) -> (u16, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
        .write_all(format!("{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n").as_bytes())
        .unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let status = std::str::from_utf8(&bytes[9..12]).unwrap().parse().unwrap();
    (status, bytes[end + 4..].to_vec())
}

fn check(layout: &str, images: &str) {
    let centre = Centre::new();
    let images = images.replace("FOLDER", &centre.path("images"));
    let office = format!(
        "[office]\nlisten = \"127.0.0.1:0\"\naudit = \"{}\"\nreaders = {{ desk = \"desk-token-0123456789\" }}",
        centre.path("audit")
    );
    let config = config::read(&centre.text(layout, &images, &office), "test.toml").unwrap();
    let camera = centre.camera(1);
    for sequence in 0..7 {
        centre.upload(&camera.name, &format!("{sequence}"), &camera.block(sequence).2);
        std::thread::sleep(Duration::from_millis(12));
    }
    assert_eq!(process(&config).committed, 7);
    let form = Form::named(layout).unwrap();
    let office = Office::start(config.office.as_ref().unwrap(), form, open_database(&config)).unwrap();
    let address = office.address().unwrap();
    let get = |target: &str| ask(address, "GET", target, TOKEN);
    let list = |query: &str| -> (Vec<u64>, serde_json::Value) {
        let (status, body) = get(&format!("/violations{query}"));
        let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(status, 200, "{body}");
        let sequences = body["violations"].as_array().unwrap().iter().map(|one| one["sequence"].as_u64().unwrap());
        (sequences.collect(), body["next_after"].clone())
    };
    let (page, next) = list("?limit=5");
    assert_eq!(page, [0, 1, 2, 3, 4]);
    assert_eq!(list(&format!("?after={next}")), (vec![5, 6], serde_json::Value::Null));
    let (violation, image, _) = camera.block(3);
    let plate = violation.plate.replace(' ', "%20");
    assert_eq!(list(&format!("?camera={}&plate={plate}", camera.name)).0, [3]);
    assert_eq!(list("?camera=CAM-9").0, [0; 0]);
    let time = loadline::units::show_utc_ms(violation.time_ns);
    assert!(list(&format!("?from={time}")).0.iter().all(|sequence| *sequence >= 3));
    assert!(list(&format!("?to={time}")).0.iter().all(|sequence| *sequence < 3));
    let fast = (0..7).filter(|sequence| camera.block(*sequence).0.excess_kmh() >= 15.0).collect::<Vec<_>>();
    assert_eq!(list("?over=15").0, fast);
    let number = 4;
    let (status, body) = get(&format!("/violations/{number}"));
    let record: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((status, &record["plate"], &record["place"]), (200, &violation.plate.into(), &violation.place.into()));
    assert_eq!(get(record["image"].as_str().unwrap()), (200, image));
    refusals(address, &centre);
    office.stop();
    let audit = std::fs::read_to_string(centre.path("audit")).unwrap();
    let lines: Vec<serde_json::Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let image_line = lines.iter().find(|line| line["request"] == "GET /violations/4/image.jpg").unwrap();
    assert_eq!(
        (&image_line["reader"], &image_line["violations"][0], &image_line["status"]),
        (&"desk".into(), &4.into(), &200.into())
    );
    assert!(lines.iter().any(|line| line["status"] == 401 && line["reader"].is_null()));
}

/// What is not answered; each of it is on record as well.
fn refusals(address: SocketAddr, centre: &Centre) {
    let lines = || std::fs::read_to_string(centre.path("audit")).unwrap().lines().count();
    let wrong = "Authorization: Bearer desk-token-012345678X\r\n";
    for (method, target, headers, expected) in [
        ("GET", "/violations", "", 401),
        ("GET", "/violations/1/image.jpg", wrong, 401),
        ("GET", "/violations", "Authorization: Basic ZGVzazp4\r\n", 401),
        ("POST", "/violations", TOKEN, 405),
        ("DELETE", "/violations/1", TOKEN, 405),
        ("GET", "/violations/999", TOKEN, 404),
        ("GET", "/violations/999/image.jpg", TOKEN, 404),
        ("GET", "/violations/../../etc/passwd", TOKEN, 404),
        ("GET", "/violations/1/../../images", TOKEN, 404),
        ("GET", "/metrics", TOKEN, 404),
        ("GET", "/violations?order=speed", TOKEN, 400),
        ("GET", "/violations?camera=%27%20OR%201=1", TOKEN, 200),
    ] {
        let before = lines();
        let (status, body) = ask(address, method, target, headers);
        assert_eq!(status, expected, "{method} {target}: {}", String::from_utf8_lossy(&body));
        assert!(!String::from_utf8_lossy(&body).contains("CAM-"), "{method} {target}");
        assert_eq!(lines(), before + 1, "{method} {target}");
    }
}

#[test]
fn the_ticket_office_lists_filters_and_shows_and_refuses_everything_else() {
    check("star", "images = \"FOLDER\"");
    check("wide", "images_in = \"database\"");
}

#[test]
fn an_image_that_was_changed_on_the_disk_is_not_given_out() {
    let centre = Centre::new();
    let office = format!(
        "[office]\nlisten = \"127.0.0.1:0\"\naudit = \"{}\"\nreaders = {{ desk = \"desk-token-0123456789\" }}",
        centre.path("audit")
    );
    let images = format!("images = \"{}\"", centre.path("images"));
    let config = config::read(&centre.text("star", &images, &office), "test.toml").unwrap();
    let camera = centre.camera(1);
    centre.upload(&camera.name, "0", &camera.block(0).2);
    process(&config);
    let office = Office::start(config.office.as_ref().unwrap(), Form::Star, open_database(&config)).unwrap();
    let found = std::process::Command::new("find").args([&centre.path("images"), "-name", "*.jpg"]).output().unwrap();
    let path = String::from_utf8(found.stdout).unwrap().trim().to_owned();
    std::fs::write(path, "another").unwrap();
    let (status, body) = ask(office.address().unwrap(), "GET", "/violations/1/image.jpg", TOKEN);
    assert_eq!(status, 500, "{}", String::from_utf8_lossy(&body));
    office.stop();
}
