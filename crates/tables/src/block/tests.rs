//! Tests of blocks: a sealed block is opened, and any change in it is refused at the right step.

use super::age::{Identity, read_identities};
use super::image::{Scene, draw};
use super::ssh::SigningKey;
use super::*;
use crate::data::violation::{Violation, generate};

struct Camera {
    identity: Identity,
    sealer: Sealer,
    signers: Signers,
    name: String,
}

fn camera() -> Camera {
    let (identity, key) = (Identity::generate().unwrap(), SigningKey::generate().unwrap());
    let name = generate(1, 7, 0).camera;
    let signers = Signers::parse(&format!("{name} {} who it is\n", key.public().to_line())).unwrap();
    Camera { sealer: Sealer::new(identity.recipient(), key), identity, signers, name }
}

impl Camera {
    fn open(&self, block: &[u8]) -> Result<(Violation, Vec<u8>), BlockError> {
        let mut opener = Opener::new(vec![self.identity.clone()], Limits::default()).unwrap();
        let mut buffer = block.to_vec();
        opener.open(&mut buffer, &self.signers, &self.name).map(|opened| (opened.violation, opened.image.to_vec()))
    }

    fn block(&self, width: u16) -> (Violation, Vec<u8>, Vec<u8>) {
        let violation = generate(1, 7, 42);
        let image = draw(&violation, &Scene { width, ..Scene::default() }, 1).unwrap();
        let block = self.sealer.seal(&violation, &image).unwrap();
        (violation, image, block)
    }

    /// Returns the error for a record within an otherwise good block.
    fn refusal_of_record(&self, record: &str) -> String {
        let (_, image, _) = self.block(64);
        self.open(&self.sealer.seal_files(record.as_bytes(), &image, 0).unwrap()).unwrap_err().to_string()
    }
}

#[test]
fn what_a_camera_seals_is_opened_at_the_data_centre() {
    let camera = camera();
    for width in [64, 640] {
        let (violation, image, block) = camera.block(width);
        assert_eq!(camera.open(&block), Ok((violation, image)));
    }
    assert_eq!(camera.signers.verify(&camera.block(64).2, None), Ok(camera.name.clone()));
}

#[test]
fn a_block_with_any_bit_flipped_or_cut_anywhere_is_refused() {
    let camera = camera();
    let (violation, _, block) = camera.block(64);
    let signature_bytes = split(&block).unwrap().0.len();
    for at in (0..block.len()).filter(|at| *at < 700 || at % 13 == 0 || at + 40 > block.len()) {
        let mut flipped = block.clone();
        flipped[at] ^= 1 << (at % 8);
        match camera.open(&flipped) {
            Err(BlockError::Form(_) | BlockError::Signature(_)) => {}
            // A line end within the armor may become another white space, and then the block is the same.
            Ok((opened, _)) if at < signature_bytes && flipped[at].is_ascii_whitespace() => {
                assert_eq!(opened, violation)
            }
            other => panic!("byte {at}: {other:?}"),
        }
        let error = camera.open(&block[..at]).unwrap_err();
        assert!(matches!(error, BlockError::Form(_) | BlockError::Signature(_)), "cut at {at}: {error}");
    }
    let longer = [&block[..], b"x"].concat();
    assert!(matches!(camera.open(&longer), Err(BlockError::Signature(_))));
}

#[test]
fn an_age_file_changed_or_cut_anywhere_is_refused_also_without_a_signature() {
    let identity = Identity::generate().unwrap();
    for length in [0, 1, 65_535, 65_536, 65_537, 131_072, 200_000] {
        let plain: Vec<u8> = (0..length).map(|at| (at * 7) as u8).collect();
        let file = age::encrypt(&plain, &identity.recipient()).unwrap();
        let open = |bytes: &[u8]| {
            let mut buffer = [b"ab", bytes].concat();
            age::decrypt_in_place(&mut buffer, 2, &[Identity::generate().unwrap(), identity.clone()])
                .map(|from| buffer[from..].to_vec())
        };
        assert_eq!(open(&file).unwrap(), plain);
        let step = (file.len() / 300).max(1);
        for at in (0..file.len()).step_by(step).chain([file.len() - 1]) {
            let mut flipped = file.clone();
            flipped[at] ^= 1;
            assert!(open(&flipped).is_err(), "{length}: byte {at} flipped");
            assert!(open(&file[..at]).is_err(), "{length}: cut at {at}");
        }
        assert!(open(&[&file[..], b"x"].concat()).is_err());
        // Cut at the end of a chunk: the last remaining chunk is not marked as the last.
        if length == 131_072 {
            assert!(open(&file[..file.len() - 65_552]).is_err());
        }
    }
    let other = Identity::generate().unwrap();
    let file = age::encrypt(b"x", &other.recipient()).unwrap();
    let error = age::decrypt_in_place(&mut file.clone(), 0, &[identity]).unwrap_err().to_string();
    assert_eq!(error, "encryption: it is encrypted to other keys than ours");
}

#[test]
fn only_the_cameras_own_key_signs_for_it() {
    let (camera, stranger) = (camera(), camera());
    let (_, _, block) = stranger.block(64);
    let error = camera.open(&block).unwrap_err().to_string();
    assert!(error.contains("its key is none of camera"), "{error}");
    let mut opener = Opener::new(vec![camera.identity.clone()], Limits::default()).unwrap();
    let error = opener.open(&mut camera.block(64).2, &camera.signers, "CAM-9999").unwrap_err().to_string();
    assert_eq!(error, "signature: camera \"CAM-9999\" has no key here");
    // A key that signs for two cameras does not let one of them speak for the other.
    let (_, _, block) = camera.block(64);
    let line = camera.signers.of(&camera.name)[0].to_line();
    let both = Signers::parse(&format!("{},CAM-9999 {line}", camera.name)).unwrap();
    let error = opener.open(&mut block.clone(), &both, "CAM-9999").unwrap_err().to_string();
    assert!(error.contains("the block is of camera \"CAM-9999\""), "{error}");
}

#[test]
fn archives_with_other_than_the_two_plain_files_are_refused() {
    let camera = camera();
    let (violation, image, _) = camera.block(64);
    let good = archive::write(xml::write(&violation).as_bytes(), &image, 0);
    let renamed = |from: usize, name: &[u8], kind: u8| {
        let mut archive = good.clone();
        archive[from..from + 100].fill(0);
        archive[from..from + name.len()].copy_from_slice(name);
        archive[from + 156] = kind;
        archive[from + 148..from + 156].fill(b' ');
        let sum: u64 = archive[from..from + 512].iter().map(|byte| u64::from(*byte)).sum();
        archive[from + 148..from + 156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        archive
    };
    let tricks = [
        (renamed(0, b"../violation.xml", b'0'), "\"../violation.xml\" in it"),
        (renamed(0, b"/violation.xml", b'0'), "\"/violation.xml\" in it"),
        (renamed(0, b"violation.xml\0/../x", b'2'), "is no plain file"),
        (renamed(0, b"violation.xml", b'1'), "is no plain file"),
        (renamed(0, b"violation.xml", b'5'), "is no plain file"),
        (renamed(0, b"violation.xml", b'x'), "is no plain file"),
        (renamed(0, b"violation.xml", b'L'), "is no plain file"),
        (renamed(0, b"image.jpg", b'0'), "image.jpg is in it twice"),
        (renamed(0, b"", b'0'), "\"\" in it"),
        ([&good[..good.len() - 1024], &good[..]].concat(), "in it twice"),
        ([&good[..], b"x"].concat(), "behind its end"),
        (good[..good.len() - 1024].to_vec(), "cut off"),
        (vec![0; 1024], "violation.xml is missing"),
        (Vec::new(), "cut off"),
        (vec![7; 2048], "checksum"),
    ];
    for (archive, expected) in tricks {
        let error = camera.open(&camera.sealer.seal_archive(&archive).unwrap()).unwrap_err().to_string();
        assert!(error.starts_with("archive: ") && error.contains(expected), "{expected}: {error}");
    }
    let dotted = renamed(0, b"./violation.xml", b'0');
    assert!(camera.open(&camera.sealer.seal_archive(&dotted).unwrap()).is_ok(), "as `tar c .` writes names");
}

#[test]
fn bombs_are_refused_within_the_bounds() {
    let camera = camera();
    for megabytes in [1, 9, 200] {
        let bomb = zstd::bulk::compress(&vec![0; megabytes << 20], 19).unwrap();
        let block = camera.sealer.seal_compressed(&bomb).unwrap();
        assert!(block.len() < 32 << 10);
        let error = camera.open(&block).unwrap_err().to_string();
        assert!(error.contains("it unpacks to more than"), "{error}");
    }
    for (what, name) in [(&b"no zstd at all"[..], "text"), (&[0x28, 0xb5, 0x2f, 0xfd], "a magic number alone")] {
        let error = camera.open(&camera.sealer.seal_compressed(what).unwrap()).unwrap_err();
        assert!(matches!(error, BlockError::Compression(_)), "{name}: {error}");
    }
}

#[test]
fn records_are_read_as_written_and_others_are_refused() {
    let mut violation = generate(1, 7, 42);
    violation.place = "Gdańsk <\"A&B\"> 'x'".to_owned();
    let good = xml::write(&violation);
    assert_eq!(xml::read(good.as_bytes()).unwrap(), violation);
    let camera = camera();
    let bombs = "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;&a;\">]>\n<violation";
    let deep = format!("<plate>{}x{}</plate>", "<a>".repeat(100_000 / 7), "</a>".repeat(100_000 / 7));
    let cases = [
        (good.replace("<violation", bombs), "document type"),
        (good.replace("<place>Gda", "<place>&x;"), "entity &x; is not known"),
        (good.replace("<place>", "<place><b>"), "element <b> is out of place"),
        (good.replace("<place>", "<other>1</other><place>"), "element <other> is not known"),
        (good.replace("</plate>", "</plate><plate>x</plate>"), "<plate> is in it twice"),
        (good.replace("</violation>", ""), "cut off"),
        (good.replace("</violation>", "</violation><x/>"), "out of place"),
        (good.replace("</violation>", "</violation>text"), "text between"),
        (good.replace("version=\"1\">", "version=\"2\">"), "version"),
        (good.replace("<sequence>42", "<sequence>-1"), "<sequence> is \"-1\""),
        (good.replace("<sequence>42", "<sequence>99999999999999999"), "<sequence>"),
        (good.replace("<camera>", "<camera>&#0;"), "violation.xml"),
        (good.replace("<camera>", "<camera>&#10;"), "control characters"),
        (good.replace("Z</time>", "</time>"), "<time>"),
        (good.replace("km/h\">", "mph\">"), "unit"),
        (good.replace("<plate>", &format!("<plate>{}", "x".repeat(1_000))), "too long"),
        (good.replace("<plate>", "<plate><![CDATA[x]]>"), "CDATA"),
        (good.replace("<plate>", "<?php x?><plate>"), "processing instruction"),
        (good.replace(&format!("<plate>{}</plate>", violation.plate), &deep), "at most 16384"),
        (good.replace(&violation.camera, "CAM-0001"), "the block is of camera"),
        (String::new(), "cut off"),
    ];
    for (record, expected) in cases {
        let error = camera.refusal_of_record(&record);
        assert!(error.starts_with("violation.xml: ") && error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn images_that_are_none_are_refused() {
    let camera = camera();
    let (violation, image, _) = camera.block(64);
    let record = xml::write(&violation);
    let mut large = image.clone();
    let frame = large.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    large[frame + 5..frame + 9].fill(0xff);
    for (image, expected) in [
        (&b"GIF89a"[..], "no whole JPEG"),
        (&image[..image.len() - 1], "no whole"),
        (&[0xff, 0xd8, 0xff, 0xd9], "size"),
        (&large, "at most"),
    ] {
        let error = camera.open(&camera.sealer.seal_files(record.as_bytes(), image, 0).unwrap()).unwrap_err();
        assert!(matches!(&error, BlockError::Image(text) if text.contains(expected)), "{expected}: {error}");
    }
    assert_eq!(image::check(&image, 10_000), Ok((64, 48)));
}

#[test]
fn keys_are_written_and_read_again_and_others_are_refused_with_the_remedy() {
    let identity = Identity::generate().unwrap();
    let file = format!("# created: now\n# public key: {}\n{}\n", identity.recipient(), identity.secret_text());
    assert_eq!(read_identities(&file).unwrap(), std::slice::from_ref(&identity));
    assert_eq!(age::Recipient::parse(&identity.recipient().to_string()).unwrap(), identity.recipient());
    let file = format!("# made today\n{}\n", identity.secret_text());
    for text in [file, "x".repeat(10_000)] {
        let refusal = age::Recipient::parse(&text).unwrap_err().to_string();
        assert!(!refusal.contains("SECRET-KEY-1") && refusal.len() < 400, "{refusal}");
    }
    let error = read_identities("# only\nAGE-SECRET-KEY-1QQ\n").unwrap_err().to_string();
    assert!(error.starts_with("line 2: ") && !error.contains("QQ"), "{error}");
    assert!(!format!("{identity:?}").to_uppercase().contains(&identity.secret_text()));
    let key = SigningKey::generate().unwrap();
    let again = SigningKey::parse(&key.to_file("a camera")).unwrap();
    assert_eq!(again.public(), key.public());
    let line = key.public().to_line();
    let cases = [
        (format!("CAM-* {line}"), "line 1: \"CAM-*\" is no name"),
        (format!("\nCAM-1 cert-authority {line}"), "line 2: option cert-authority is not known"),
        (format!("CAM-1 namespaces=\"git\" {line}"), "namespaces do not contain"),
        ("CAM-1 ssh-rsa AAAA".to_owned(), "the key is of \"ssh-rsa\""),
        ("CAM-1 ssh-ed25519 AAAA".to_owned(), "the key is damaged"),
        ("CAM-1".to_owned(), "option  is not known"),
    ];
    for (text, expected) in cases {
        let error = Signers::parse(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
    let signers = Signers::parse(&format!("# cameras\nA,B namespaces=\"git,{NAMESPACE}\" {line} x y\n")).unwrap();
    assert_eq!((signers.cameras(), signers.cameras_of(&key.public())), (2, vec!["A", "B"]));
}
