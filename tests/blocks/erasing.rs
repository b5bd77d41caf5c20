//! Erasure of violations with the real program, while the recorder runs: what goes, what stays, and what is written down.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use loadline::recorder::config::{self, Config};
use loadline::recorder::office::Office;
use loadline::recorder::processing::{Form, image_path};

use crate::centre::{
    Camera, Centre, contains, open_database, own_part, process, rows, sha256, start, start_server, wait_until,
};
use crate::office::{TOKEN, ask};

struct World {
    centre: Centre,
    camera: Camera,
    config: Config,
}

impl World {
    fn new(database: Option<String>, layout: &str, images: &str) -> Self {
        let mut centre = Centre::new();
        centre.database = database.unwrap_or(centre.database.clone());
        let office = format!(
            "[office]\nlisten = \"127.0.0.1:0\"\naudit = \"{}\"\nreaders = {{ desk = \"desk-token-0123456789\" }}",
            centre.path("audit")
        );
        let text = centre.text(layout, &images.replace("FOLDER", &centre.path("images")), &office);
        std::fs::write(centre.path("c.toml"), &text).unwrap();
        let camera = centre.camera(1);
        World { camera, config: config::read(&text, "c.toml").unwrap(), centre }
    }

    fn erase(&self, numbers: &[&str]) -> Output {
        let config = self.centre.path("c.toml");
        let fixed = ["--json", "block", "erase", &config, "--by", "the registry", "--reason", "case 7 was closed"];
        Command::new(env!("CARGO_BIN_EXE_loadline")).args(fixed).args(numbers).output().unwrap()
    }

    fn audit(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(self.centre.path("audit")).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        lines.filter(|line| line.get("erases").is_some()).collect()
    }

    fn numbers(&self, table: &str) -> Vec<String> {
        rows(&*open_database(&self.config), &format!("SELECT record_id FROM {table} ORDER BY record_id"))
    }

    fn has_image(&self, image: &[u8]) -> bool {
        image_path(&self.centre.directory.join("images"), &sha256(image)).exists()
    }
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Four violations; the fourth has the image of the second.
fn check(world: &World, records: &str, in_folder: bool) {
    let World { centre, camera, config } = world;
    for sequence in 1..4 {
        centre.upload(&camera.name, &sequence.to_string(), &camera.block(sequence).2);
        assert_eq!(process(config).waiting, 0);
    }
    let (second, image, block) = camera.block(2);
    let fourth = camera.block(4).0;
    centre.upload(&camera.name, "4", &camera.sealer.seal(&fourth, &image).unwrap());
    assert_eq!(process(config).committed, 4);
    // One number that there is and one that there is not: nothing is erased, and nothing is said to be.
    let refused = world.erase(&["2", "9"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let error = &json(&refused)["error"];
    assert!(error["says"].as_str().unwrap().contains("there is no violation 9"), "{error}");
    assert!(error["remedy"].is_string() && error["place"] == "NUMBER", "{error}");
    assert_eq!((world.numbers(records).len(), world.audit().len()), (4, 0));
    // The recorder goes on meanwhile.
    let processing = start(config);
    let erased = world.erase(&["2"]);
    assert!(erased.status.success(), "{erased:?}");
    let document = json(&erased);
    let said = &document["erased"][0];
    assert_eq!((&said["number"], &said["had_record"], &said["sequence"]), (&2.into(), &true.into(), &2.into()));
    assert_eq!(world.numbers(records), ["1", "3", "4"]);
    // In a folder the fourth has the same image, and in the database an image of its own.
    assert_eq!(said["had_image"], serde_json::Value::Bool(!in_folder));
    assert_eq!(world.has_image(&image), in_folder);
    let audit = world.audit();
    let dones: Vec<_> = audit.iter().map(|line| line["done"].as_bool().unwrap()).collect();
    assert_eq!(dones, [false, true]);
    assert!(audit.iter().all(|line| line["by"] == "the registry" && line["reason"] == "case 7 was closed"));
    assert!(audit.iter().all(|line| line["erases"] == serde_json::json!([2])));
    // The camera sends the block again: it is known, and is not stored again.
    centre.upload(&camera.name, "2 again", &block);
    wait_until(|| processing.counts().waiting == 0);
    let counts = processing.stop();
    assert_eq!((counts.committed, counts.replayed, counts.quarantined), (4, 1, 0), "{counts:?}");
    assert_eq!(world.numbers(records), ["1", "3", "4"]);
    // The last that has the image takes it along, and its number is nobody else's afterwards.
    assert_eq!(json(&world.erase(&["4", "2"]))["erased"][0]["had_image"], true);
    assert!(!world.has_image(&image));
    assert_eq!(world.numbers(records), ["1", "3"]);
    centre.upload(&camera.name, "5", &camera.block(5).2);
    assert_eq!(process(config).committed, 5);
    assert_eq!(world.numbers(records), ["1", "3", "5"]);
    ask_office(world, &second.plate);
}

/// The office knows nothing of what was erased, and gives the others out.
fn ask_office(world: &World, plate: &str) {
    let form = Form::named(&world.config.layout.name).unwrap();
    let office = Office::start(world.config.office.as_ref().unwrap(), form, open_database(&world.config)).unwrap();
    let get = |target: &str| ask(office.address().unwrap(), "GET", target, TOKEN);
    for target in ["/violations/2", "/violations/2/image.jpg", "/violations/4"] {
        assert_eq!(get(target).0, 404, "{target}");
    }
    assert_eq!(get("/violations/3/image.jpg"), (200, world.camera.block(3).1));
    let (status, body) = get("/violations");
    assert!(status == 200 && !String::from_utf8_lossy(&body).contains(plate));
    office.stop();
}

#[test]
fn violations_are_erased_from_sqlite_and_its_files() {
    let images = "images_in = \"database\"";
    let world = World::new(None, "wide", images);
    check(&world, "violation", false);
    let (violation, image, _) = world.camera.block(2);
    let others: Vec<_> = [1, 3, 5].map(|sequence| world.camera.block(sequence).1).into();
    for name in ["violations.db", "violations.db-wal"] {
        let bytes = std::fs::read(world.centre.path(name)).unwrap_or_default();
        for part in [violation.plate.as_bytes(), own_part(&image, &others)] {
            assert!(!contains(&bytes, part), "{name} still has it");
        }
    }
}

#[test]
fn violations_and_their_images_in_a_folder_are_erased() {
    check(&World::new(None, "star", "images = \"FOLDER\""), "violation_values", true);
}

#[test]
fn an_erasure_that_is_killed_at_any_moment_is_done_again() {
    let world = World::new(None, "star", "images = \"FOLDER\"");
    let numbers: Vec<String> = (1..=12).map(|number: u64| number.to_string()).collect();
    for number in &numbers {
        let block = world.camera.block(number.parse().unwrap()).2;
        world.centre.upload(&world.camera.name, number, &block);
    }
    assert_eq!(process(&world.config).committed, 12);
    let config = world.centre.path("c.toml");
    let arguments = ["block", "erase", &config, "--by", "me", "--reason", "x"];
    for round in 0..12 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(arguments)
            .args(&numbers)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(4 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        // A record may be without its image, which is asked for then; no image is without its record.
        let stored = rows(&*open_database(&world.config), "SELECT image_sha256 FROM violation_values");
        let kept = (1..=12).map(|sequence| world.camera.block(sequence).1).filter(|image| world.has_image(image));
        assert!(kept.map(|image| sha256(&image)).all(|hash| stored.contains(&hash)), "round {round}");
    }
    let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
    assert!(world.erase(&numbers).status.success());
    assert_eq!(world.numbers("violation_values").len(), 0);
    assert!((1..=12).all(|sequence| !world.has_image(&world.camera.block(sequence).1)));
    // What is gone was written down before it went, however the process ended.
    assert!(world.audit().iter().any(|line| line["done"] == true));
    assert!(world.audit().iter().all(|line| line["erases"].as_array().unwrap().len() == 12));
}

#[test]
fn violations_are_erased_from_servers() {
    for (name, layout, images) in
        [("mariadb", "star", "images = \"FOLDER\""), ("postgres", "wide", "images_in = \"database\"")]
    {
        let (_server, database) = start_server(name);
        let world = World::new(Some(database), layout, images);
        let records = if layout == "wide" { "violation" } else { "violation_values" };
        check(&world, records, images.contains("FOLDER"));
    }
}

#[test]
fn nothing_is_erased_without_saying_who_and_why_or_where_it_is_written_down() {
    let world = World::new(None, "star", "images = \"FOLDER\"");
    let config = world.centre.path("c.toml");
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_loadline")).args(arguments).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = run(&["block", "erase", &config, "1"]);
    assert!(code == Some(2) && said.contains("--by"), "{said}");
    let (code, said) = run(&["block", "erase", &config, "1", "--by", " ", "--reason", "x"]);
    assert!(code == Some(2) && said.contains("--by: it is empty"), "{said}");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.split("[office]").next().unwrap()).unwrap();
    let (code, said) = run(&["block", "erase", &config, "1", "--by", "me", "--reason", "x"]);
    assert!(code == Some(2) && said.contains("there is no [office]"), "{said}");
}
