//! Arbitrary bytes as a block, and as what its signer could put into one: nothing panics, and nothing is taken that cannot be written again.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use loadline::block::age::Identity;
use loadline::block::ssh::SigningKey;
use loadline::block::{Limits, Opener, Sealer, Signers, check_unpacked, image, split, xml};

const CAMERA: &str = "CAM-0001";

struct World {
    identity: Identity,
    signers: Signers,
    sealer: Sealer,
}

fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let (identity, key) = (Identity::generate().expect("a key"), SigningKey::generate().expect("a key"));
        let signers = Signers::parse(&format!("{CAMERA} {}\n", key.public().to_line())).expect("a list of one camera");
        World { sealer: Sealer::new(identity.recipient(), key), identity, signers }
    })
}

fuzz_target!(|input: &[u8]| {
    if let Ok((signature, ciphertext)) = split(input) {
        assert_eq!(signature.len() + ciphertext.len(), input.len());
    }
    let World { identity, signers, sealer } = world();
    let mut opener = Opener::new(vec![identity.clone()], Limits::default()).expect("memory");
    assert!(opener.open(&mut input.to_vec(), signers, CAMERA).is_err());
    // What is within a block is the signer's own: it is trusted with nothing.
    let sealed = [sealer.seal_compressed(input), sealer.seal_archive(input), sealer.seal_files(input, input, 0)];
    for block in sealed {
        let _ = opener.open(&mut block.expect("anything can be sealed"), signers, CAMERA);
    }
    if let Ok((record, image)) = check_unpacked(input) {
        assert!(record.len() + image.len() < input.len());
    }
    let _ = image::check(input, 50_000_000);
    let _ = std::str::from_utf8(input).map(Signers::parse);
    if let Ok(violation) = xml::read(input) {
        let again = xml::read(xml::write(&violation).as_bytes()).expect("what was read can be written and read again");
        assert_eq!((&again.camera, again.sequence, &again.plate), (&violation.camera, violation.sequence, &violation.plate));
    }
});
