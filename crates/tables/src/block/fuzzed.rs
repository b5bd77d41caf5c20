//! Fuzzing: arbitrary bytes as a block, as content that its signer could put into one, and as keys.

use std::sync::LazyLock;

use super::age::{self, Identity, Recipient, read_identities};
use super::ssh::SigningKey;
use super::{Limits, Opener, Sealer, Signers, check_unpacked, image, split, xml};
use crate::fuzzed::{Target, assert_short, assert_told, texts};

const CAMERA: &str = "CAM-0001";

/// Blocks, and each of their layers as the holder of the camera's key could make it.
pub static BLOCK: Target = Target {
    name: "block",
    run: block,
    seeds: || {
        let record = xml::write(&crate::data::violation::generate(1, 1, 1));
        let archive = super::archive::write(record.as_bytes(), b"\xff\xd8\xff\xd9", 0);
        let jpeg = b"\xff\xd8\xff\xc0\0\x11\x08\0\x10\0\x10\x03\x01\x11\0\x02\x11\0\x03\x11\0\xff\xda\0\x0c\x03\x01\0\x02\0\x03\0\0\x3f\0\0\xff\xd9";
        let packed = zstd::bulk::compress(&archive, 1).unwrap_or_default();
        let sealed = WORLD.sealer.seal_archive(&archive).unwrap_or_default();
        vec![record.into_bytes(), archive, jpeg.to_vec(), packed, sealed]
    },
    words: &["-----BEGIN SSH SIGNATURE-----\n", "violation.xml", "image.jpg", "ustar", "</", "&#", "<!--", "<![CDATA["],
    memory: (1 << 20, 64),
    is_linear: true,
};

/// Files of age, and keys.
pub static AGE: Target = Target {
    name: "age",
    run: keys,
    seeds: || {
        let key = &WORLD.identity;
        let mut seeds = texts(&[
            "age-encryption.org/v1\n-> X25519 TEiF0ypqr+bpvcqXNyCVJpL7OuwPdVwPL7KQEbFDOCc\nAAAA\n--- AAAA\n",
            "# made\nAGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX\n",
            "CAM-0001 namespaces=\"transport-block@loadline\" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA x\n",
        ]);
        seeds.push(age::encrypt(b"plain", &key.recipient()).unwrap_or_default());
        seeds.extend([IDENTITY.as_bytes().to_vec(), KEY.as_bytes().to_vec()]);
        seeds
    },
    words: &["-> X25519 ", "\n--- ", "AGE-SECRET-KEY-1", "ssh-ed25519 ", "-----BEGIN OPENSSH PRIVATE KEY-----\n"],
    memory: (256 << 10, 64),
    is_linear: true,
};

/// Keys made for this purpose, so that the same bytes are the same block every time.
const IDENTITY: &str = "AGE-SECRET-KEY-13HXFJ6PCEDRM4VC5XS3J23SSV5DL4MDV5TPK4N5XU0GPFYEF8HDQ86NWF5";
const KEY: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\n\
b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n\
QyNTUxOQAAACBg0gxefOEnStufhkgpwWX8CajMUro3041TCDIMP6dJRAAAAJCspQmMrKUJ\n\
jAAAAAtzc2gtZWQyNTUxOQAAACBg0gxefOEnStufhkgpwWX8CajMUro3041TCDIMP6dJRA\n\
AAAEAAG51OxMmYKJ0fBNLjYsdGOaG9JixYhO+EFaBdl9dw7mDSDF584SdK25+GSCnBZfwJ\n\
qMxSujfTjVMIMgw/p0lEAAAAB2Z1enppbmcBAgMEBQY=\n\
-----END OPENSSH PRIVATE KEY-----\n";

struct World {
    identity: Identity,
    signers: Signers,
    sealer: Sealer,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let (Ok(identity), Ok(key)) = (Identity::parse(IDENTITY), SigningKey::parse(KEY)) else { panic!("these are keys") };
    let Ok(signers) = Signers::parse(&format!("{CAMERA} {}\n", key.public().to_line())) else {
        panic!("a list of one")
    };
    World { sealer: Sealer::new(identity.recipient(), key), identity, signers }
});

fn block(input: &[u8]) {
    if let Ok((signature, ciphertext)) = split(input) {
        assert_eq!(signature.len() + ciphertext.len(), input.len());
    }
    let World { identity, signers, sealer, .. } = &*WORLD;
    let Ok(mut opener) = Opener::new(vec![identity.clone()], Limits::default()) else { panic!("there is memory") };
    // The content of a block is chosen by its signer and trusted with nothing. The input becomes one of its layers, selected by its length, because
    // keys and signatures take nearly all of the work.
    let of_signer = match input.len() % 3 {
        0 => sealer.seal_compressed(input),
        1 => sealer.seal_archive(input),
        _ => sealer.seal_files(input, input, 0),
    };
    for mut block in of_signer.into_iter().chain([input.to_vec()]) {
        if let Err(refusal) = opener.open(&mut block, signers, CAMERA) {
            assert_told(&refusal.to_string(), 500);
        }
    }
    if let Ok((record, image)) = check_unpacked(input) {
        assert!(record.len() + image.len() < input.len());
    }
    if let Err(refusal) = image::check(input, 50_000_000) {
        assert_told(&refusal.to_string(), 300);
    }
    match xml::read(input) {
        Ok(violation) => assert_eq!(xml::read(xml::write(&violation).as_bytes()), Ok(violation)),
        Err(refusal) => assert_told(&refusal.to_string(), 500),
    }
}

fn keys(input: &[u8]) {
    let identities = [WORLD.identity.clone()];
    let mut file = input.to_vec();
    if let Err(refusal) = age::decrypt_in_place(&mut file, 0, &identities) {
        assert_told(&refusal.to_string(), 300);
    }
    let text = String::from_utf8_lossy(input);
    for refusal in [
        Identity::parse(&text).err(),
        Recipient::parse(&text).err(),
        read_identities(&text).err(),
        Signers::parse(&text).err(),
        SigningKey::parse(&text).err(),
    ] {
        refusal.iter().for_each(|refusal| assert_short(&refusal.to_string(), 1_500));
    }
}
