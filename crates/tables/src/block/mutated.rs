//! Changed blocks: changed at random places, and in each layer by somebody who has a camera's key, so that every reader behind the signature
//! gets unchecked bytes. Nothing panics, and no block is opened whose content differs from what was sealed.
//!
//! The target in `fuzzed.rs` does the same with inputs that are grown.

use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;

use super::age::{Identity, Recipient, read_identities};
use super::image::{Scene, draw};
use super::ssh::SigningKey;
use super::*;
use crate::data::violation::{Violation, generate};

/// A change of some bytes; places are shares of the length in 1/65,536.
#[derive(Debug, Clone)]
enum Change {
    /// Inverts one bit.
    Flip(u16, u8),
    /// Replaces a byte.
    Set(u16, u8),
    /// Cuts the rest off.
    Cut(u16),
    /// Removes the bytes between two places.
    Drop(u16, u16),
    /// Repeats the bytes between two places at a third.
    Splice(u16, u16, u16),
    /// Inserts other bytes.
    Insert(u16, Vec<u8>),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (any::<u16>(), 0u8..8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        3 => (any::<u16>(), prop_oneof![Just(0), Just(0xff), Just(b'\n'), Just(b'<'), any::<u8>()])
            .prop_map(|(at, byte)| Change::Set(at, byte)),
        1 => any::<u16>().prop_map(Change::Cut),
        2 => (any::<u16>(), any::<u16>()).prop_map(|(from, to)| Change::Drop(from, to)),
        2 => (any::<u16>(), any::<u16>(), any::<u16>()).prop_map(|(from, to, at)| Change::Splice(from, to, at)),
        2 => (any::<u16>(), vec(any::<u8>(), 1..80)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
    ]
}

fn changed(bytes: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for change in changes {
        let place = |share: u16| usize::from(share) * bytes.len() / 65_536;
        match change {
            Change::Flip(at, bit) => {
                let at = place(*at);
                bytes.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << bit);
            }
            Change::Set(at, value) => {
                let at = place(*at);
                bytes.get_mut(at).into_iter().for_each(|byte| *byte = *value);
            }
            Change::Cut(at) => bytes.truncate(place(*at)),
            Change::Drop(from, to) => {
                let (from, to) = (place(*from.min(to)), place(*from.max(to)));
                bytes.drain(from..to);
            }
            Change::Splice(from, to, at) => {
                let (from, to, at) = (place(*from.min(to)), place(*from.max(to)), place(*at));
                let piece = bytes[from..to].to_vec();
                bytes.splice(at..at, piece);
            }
            Change::Insert(at, piece) => {
                let at = place(*at);
                bytes.splice(at..at, piece.iter().copied());
            }
        }
    }
    bytes
}

/// A camera, the data centre, and a block with its content.
struct World {
    identity: Identity,
    key: SigningKey,
    signers: Signers,
    sealer: Sealer,
    violation: Violation,
    record: Vec<u8>,
    image: Vec<u8>,
    archive: Vec<u8>,
    block: Vec<u8>,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let (identity, key) = (Identity::generate().unwrap(), SigningKey::generate().unwrap());
    let violation = generate(1, 7, 42);
    let signers = Signers::parse(&format!("{} {}\n", violation.camera, key.public().to_line())).unwrap();
    let sealer = Sealer::new(identity.recipient(), SigningKey::parse(&key.to_file("the same")).unwrap());
    let image = draw(&violation, &Scene { width: 64, ..Scene::default() }, 1).unwrap();
    let record = xml::write(&violation).into_bytes();
    let archive = archive::write(&record, &image, 0);
    let block = sealer.seal(&violation, &image).unwrap();
    World { identity, key, signers, sealer, violation, record, image, archive, block }
});

impl World {
    fn open(&self, block: &[u8]) -> Result<(Violation, Vec<u8>), BlockError> {
        let mut opener = Opener::new(vec![self.identity.clone()], Limits::default()).unwrap();
        let mut buffer = block.to_vec();
        let opened = opener.open(&mut buffer, &self.signers, &self.violation.camera);
        opened.map(|opened| (opened.violation, opened.image.to_vec()))
    }
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    vec(change(), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_block_that_was_changed_on_its_way_is_refused_or_still_the_same(changes in changes()) {
        let world = &*WORLD;
        let block = changed(&world.block, &changes);
        if let Ok((violation, image)) = world.open(&block) {
            prop_assert_eq!((&violation, &image), (&world.violation, &world.image));
        }
        if let Ok((signature, ciphertext)) = split(&block) {
            prop_assert_eq!(signature.len() + ciphertext.len(), block.len());
        }
    }

    #[test]
    fn bytes_of_any_kind_are_no_block(bytes in vec(any::<u8>(), 0..300)) {
        prop_assert!(WORLD.open(&bytes).is_err());
        prop_assert!(Signers::default().verify(&bytes, None).is_err());
    }

    #[test]
    fn what_a_camera_that_means_harm_seals_does_no_harm(layer in 0usize..5, changes in changes()) {
        let world = &*WORLD;
        let sealed = match layer {
            0 => world.sealer.seal_compressed(&changed(&zstd::bulk::compress(&world.archive, 1).unwrap(), &changes)),
            1 => world.sealer.seal_archive(&changed(&world.archive, &changes)),
            // The header is a small part of an archive: chance alone would hardly ever change it.
            2 => world.sealer.seal_archive(&[&changed(&world.archive[..512], &changes), &world.archive[512..]].concat()),
            3 => world.sealer.seal_files(&changed(&world.record, &changes), &world.image, 0),
            _ => world.sealer.seal_files(&world.record, &changed(&world.image, &changes), 0),
        };
        match world.open(&sealed.unwrap()) {
            Ok((violation, image)) => {
                prop_assert_eq!(&violation.camera, &world.violation.camera);
                prop_assert!(image.starts_with(&[0xff, 0xd8, 0xff]));
                prop_assert_eq!(&xml::read(xml::write(&violation).as_bytes()).unwrap(), &violation);
            }
            Err(error) => {
                // The message about bytes that somebody else chose is bounded and on one line.
                let text = error.to_string();
                prop_assert!(text.len() < 600 && !text.chars().any(char::is_control), "{text:?}");
            }
        }
    }

    #[test]
    fn an_encrypted_file_that_was_changed_is_refused(changes in changes()) {
        let world = &*WORLD;
        let (_, ciphertext) = split(&world.block).unwrap();
        let mut file = changed(ciphertext, &changes);
        if file != ciphertext {
            prop_assert!(age::decrypt_in_place(&mut file, 0, std::slice::from_ref(&world.identity)).is_err());
        }
    }

    #[test]
    fn files_of_keys_that_were_changed_are_read_or_refused(changes in changes()) {
        let world = &*WORLD;
        let lines = format!("{},B namespaces=\"a,{NAMESPACE}\" {}\n", world.violation.camera, world.key.public().to_line());
        let texts = [lines, world.key.to_file("a camera"), world.identity.secret_text(), world.identity.recipient().to_string()];
        let [signers, key, identity, recipient] =
            texts.map(|text| String::from_utf8_lossy(&changed(text.as_bytes(), &changes)).into_owned());
        let refusals = [
            Signers::parse(&signers).err().map(|error| error.to_string()),
            SigningKey::parse(&key).err().map(|error| error.to_string()),
            read_identities(&identity).err().map(|error| error.to_string()),
            Recipient::parse(&recipient).err().map(|error| error.to_string()),
        ];
        prop_assert!(refusals.iter().flatten().all(|text| !text.is_empty()));
    }
}
