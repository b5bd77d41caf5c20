//! The commands of docs/blocks.md, as they stand there, with the real tools; and what `loadline block` prints.

use std::path::Path;
use std::process::{Command, Output};

use loadline::block::age::read_identities;
use loadline::block::image::{Scene, draw};
use loadline::block::{Limits, Opener, Signers, xml};
use loadline::data::violation::generate;

use crate::centre::Centre;

/// The commands of the documentation that begin with this comment.
fn commands(title: &str) -> String {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/blocks.md")).unwrap();
    let mut fences = text.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    fences.find(|fence| fence.starts_with(&format!("# {title}"))).unwrap_or_else(|| panic!("{title}")).to_owned()
}

fn shell(directory: &Path, commands: &str) {
    let script = format!("set -euo pipefail\n{commands}");
    let output = Command::new("bash").args(["-c", &script]).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{commands}\n{}", String::from_utf8_lossy(&output.stderr));
}

fn loadline(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_loadline")).args(arguments).current_dir(directory).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn what_a_shell_makes_loadline_opens_and_the_other_way_round() {
    let centre = Centre::new();
    let directory = centre.directory.as_path();
    std::fs::remove_file(directory.join("centre.key")).unwrap();
    shell(directory, &commands("keys"));
    let mut violation = generate(1, 7, 42);
    violation.camera = "GDA-017".to_owned();
    let image = draw(&violation, &Scene { width: 640, ..Scene::default() }, 1).unwrap();
    std::fs::write(directory.join("violation.xml"), xml::write(&violation)).unwrap();
    std::fs::write(directory.join("image.jpg"), &image).unwrap();
    shell(directory, &commands("camera"));
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
    let identities = read_identities(&read("centre.key")).unwrap();
    let signers = Signers::parse(&read("cameras.allowed_signers")).unwrap();
    let mut block = std::fs::read(directory.join("GDA-017-42.block")).unwrap();
    let mut opener = Opener::new(identities, Limits::default()).unwrap();
    let opened = opener.open(&mut block, &signers, "GDA-017").unwrap();
    assert_eq!((&opened.violation, opened.image), (&violation, &image[..]));
    // Now loadline makes it, over the shell's, and the shell opens it.
    let make = ["block", "make", "--recipient", "centre.pub", "--key", "GDA-017", "--out", "."];
    let made = loadline(directory, &[&make[..], &["--record", "violation.xml", "--image", "image.jpg"]].concat());
    assert!(made.status.success() && text(&made).contains("GDA-017-42.block"), "{}", text(&made));
    std::fs::remove_file(directory.join("violation.xml")).unwrap();
    std::fs::remove_file(directory.join("image.jpg")).unwrap();
    shell(directory, &commands("data centre"));
    assert_eq!(xml::read(read("violation.xml").as_bytes()).unwrap(), violation);
    assert_eq!(std::fs::read(directory.join("image.jpg")).unwrap(), image);
}

#[test]
fn blocks_are_made_verified_and_opened_on_the_command_line() {
    let centre = Centre::new();
    let directory = centre.directory.as_path();
    let keys = loadline(directory, &["block", "keys", "--out", "keys", "CAM-1", "CAM-2"]);
    assert!(keys.status.success() && text(&keys).contains("camera CAM-2"), "{}", text(&keys));
    let again = loadline(directory, &["block", "keys", "--out", "keys", "CAM-1"]);
    assert!(text(&again).contains("is there already and stays"), "{}", text(&again));
    let make = ["block", "make", "--recipient", "keys/centre.pub", "--key", "keys/CAM-1", "--out", "out"];
    let made = loadline(directory, &[&make[..], &["--camera", "CAM-1", "--count", "2", "--width", "320"]].concat());
    assert!(made.status.success(), "{}", text(&made));
    let signers = ["--signers", "keys/cameras.allowed_signers"];
    let verify = [&["block", "verify", "out/CAM-1-1.block", "out/CAM-1-2.block"], &signers[..]].concat();
    let verified = loadline(directory, &verify);
    assert!(
        verified.status.success() && text(&verified).contains("CAM-1-2.block: good: camera CAM-1"),
        "{}",
        text(&verified)
    );
    let open =
        [&["block", "open", "out/CAM-1-1.block", "--identity", "keys/centre.key", "--out", "opened"], &signers[..]]
            .concat();
    assert!(loadline(directory, &open).status.success());
    assert!(std::fs::read(directory.join("opened/CAM-1-1.jpg")).unwrap().starts_with(&[0xff, 0xd8]));
    // The shell's tools read these keys too.
    shell(
        directory,
        "age-keygen -y keys/centre.key | cmp - keys/centre.pub; ssh-keygen -y -f keys/CAM-1 | cut -d' ' -f1,2 | cmp - <(cut -d' ' -f1,2 keys/CAM-1.pub)",
    );
    let mut block = std::fs::read(directory.join("out/CAM-1-1.block")).unwrap();
    *block.last_mut().unwrap() ^= 1;
    std::fs::write(directory.join("out/CAM-1-1.block"), block).unwrap();
    let refused = loadline(directory, &verify);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused).contains("CAM-1-1.block: refused: signature: it does not hold"), "{}", text(&refused));
    let wrong = loadline(directory, &["block", "verify", "out/CAM-1-2.block", "--signers", "keys/centre.pub"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong));
}
