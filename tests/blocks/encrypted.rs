//! Images that are encrypted where they are kept: nothing of them can be read there, and the ticket office gives them out.

use std::path::{Path, PathBuf};
use std::process::Command;

use loadline::block::age::Identity;
use loadline::recorder::config;
use loadline::recorder::office::Office;
use loadline::recorder::processing::{Form, encrypted_image_path, image_path};

use crate::centre::{Centre, contains, open_database, own_part, process, rows, sha256};
use crate::office::{TOKEN, ask};

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// What the office answers when it is asked for an image; `keys` is its setting for them.
fn image_of(centre: &Centre, images: &str, keys: &str, number: u64) -> (u16, Vec<u8>) {
    let office = format!(
        "listen = \"127.0.0.1:0\"\naudit = \"{}\"\nreaders = {{ desk = \"desk-token-0123456789\" }}\n{images}\n{keys}",
        centre.path("audit")
    );
    let text = format!("[database]\n{}\n[layout]\nname = \"star\"\n[office]\n{office}\n", centre.database);
    let config = config::read(&text, "office.toml").unwrap();
    let started = Office::start(config.office.as_ref().unwrap(), Form::Star, open_database(&config)).unwrap();
    let answer = ask(started.address().unwrap(), "GET", &format!("/violations/{number}/image.jpg"), TOKEN);
    started.stop();
    answer
}

fn check(images: &str) {
    let centre = Centre::new();
    let images = images.replace("FOLDER", &centre.path("images"));
    let camera = centre.camera(1);
    // What was stored before there was a key stays as it is.
    centre.upload(&camera.name, "0", &camera.block(0).2);
    process(&config::read(&centre.text("star", &images, ""), "test.toml").unwrap());
    let identity = Identity::generate().unwrap();
    std::fs::write(centre.path("images.pub"), format!("{}\n", identity.recipient())).unwrap();
    std::fs::write(centre.path("images.key"), identity.secret_text()).unwrap();
    let recipient = format!("{images}\nimages_recipient = \"{}\"", centre.path("images.pub"));
    let config = config::read(&centre.text("star", &recipient, ""), "test.toml").unwrap();
    for sequence in 1..4 {
        centre.upload(&camera.name, &sequence.to_string(), &camera.block(sequence).2);
    }
    assert_eq!(process(&config).committed, 4);
    for sequence in 1..4 {
        let (_, image, _) = camera.block(sequence);
        let part = own_part(&image, &[camera.block(0).1]);
        let leaks = files(&centre.directory).into_iter().find(|file| contains(&std::fs::read(file).unwrap(), part));
        assert_eq!(leaks, None, "the image {sequence} is readable");
    }
    let keys = format!("images_identity = \"{}\"", centre.path("images.key"));
    for sequence in 0..4 {
        assert_eq!(image_of(&centre, &images, &keys, sequence + 1), (200, camera.block(sequence).1), "{sequence}");
    }
    // Who has not got the key gets what was not encrypted, and is told about the other.
    assert_eq!(image_of(&centre, &images, "", 1).0, 200);
    let (status, body) = image_of(&centre, &images, "", 2);
    let body = String::from_utf8_lossy(&body).into_owned();
    assert!(status == 500 && body.contains("office.images_identity"), "{status} {body}");
    let other = Identity::generate().unwrap();
    std::fs::write(centre.path("images.key"), other.secret_text()).unwrap();
    assert_eq!(image_of(&centre, &images, &keys, 2).0, 500);
    if images.contains("database") {
        let begins =
            rows(&*open_database(&config), "SELECT hex(substr(image, 1, 3)) FROM violation_image ORDER BY record_id");
        assert_eq!(begins, ["FFD8FF", "616765", "616765", "616765"]);
        return;
    }
    // The tool of the format's authors decrypts what is kept.
    std::fs::write(centre.path("images.key"), identity.secret_text()).unwrap();
    let (_, image, _) = camera.block(2);
    let (folder, hash) = (centre.directory.join("images"), sha256(&image));
    let kept = encrypted_image_path(&folder, &hash);
    let output = Command::new("age").args(["-d", "-i", &centre.path("images.key")]).arg(kept).output().unwrap();
    assert!(output.status.success() && output.stdout == image, "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!image_path(&folder, &hash).exists());
}

#[test]
fn images_are_encrypted_in_a_folder() {
    check("images = \"FOLDER\"");
}

#[test]
fn images_are_encrypted_in_the_database() {
    check("images_in = \"database\"");
}

#[test]
fn keys_that_are_wrong_or_missing_are_said_before_anything_starts() {
    let centre = Centre::new();
    let recipient = format!("images_recipient = \"{}\"", centre.path("images.pub"));
    let office = "[office]\nlisten = \"127.0.0.1:0\"\nreaders = { desk = \"desk-token-0123456789\" }";
    let refused = config::read(&centre.text("star", &recipient, office), "c.toml").unwrap_err();
    assert!(refused.to_string().contains("office.images_identity is missing; name the file"), "{refused}");
    assert!(refused.all[0].remedy.is_some(), "{refused:?}");
    let config = config::read(&centre.text("star", &recipient, ""), "c.toml").unwrap();
    let start = || {
        let settings = config.processing.as_ref().unwrap();
        loadline::recorder::processing::Processing::start(&config, settings, open_database(&config)).unwrap_err()
    };
    assert!(start().contains("images.pub cannot be read"), "{}", start());
    // Whoever names the secret key in the place of the public one is told so, and the key is not shown.
    let secret = centre.identity.secret_text();
    std::fs::write(centre.path("images.pub"), &secret).unwrap();
    let error = start();
    assert!(error.contains("it is a secret key") && !error.contains(&secret), "{error}");
}
