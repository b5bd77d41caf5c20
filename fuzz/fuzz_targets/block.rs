//! Arbitrary bytes as a block, and as what its signer could put into one: nothing panics, and nothing is taken that cannot be written again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use loadline::block::{Signers, check_unpacked, split, xml};

fuzz_target!(|input: &[u8]| {
    if let Ok((signature, ciphertext)) = split(input) {
        assert_eq!(signature.len() + ciphertext.len(), input.len());
    }
    assert!(Signers::default().verify(input, None).is_err());
    // An archive within a block is the signer's own: it is trusted with nothing.
    if let Ok((record, image)) = check_unpacked(input) {
        assert!(record.len() + image.len() < input.len());
    }
    if let Ok(violation) = xml::read(input) {
        let again = xml::read(xml::write(&violation).as_bytes()).expect("what was read can be written and read again");
        assert_eq!((&again.camera, again.sequence, &again.plate), (&violation.camera, violation.sequence, &violation.plate));
    }
});
