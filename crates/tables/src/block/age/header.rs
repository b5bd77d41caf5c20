//! The header of an age file: its recipients, and a tag over all of it.
//!
//! Text, line by line: the version, for each recipient `-> X25519 <share>` and the wrapped key, and `--- <tag>`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use x25519_dalek::{X25519_BASEPOINT_BYTES, x25519};

use super::{Identity, Recipient, wrong};
use crate::block::BlockError;

const VERSION: &[u8] = b"age-encryption.org/v1";
const X25519_LABEL: &[u8] = b"age-encryption.org/v1/X25519";
/// Maximum length of a header in bytes, and maximum number of recipients.
const HEADER_MAX: usize = 16 << 10;
const STANZAS_MAX: usize = 20;
/// Length of a full line of a stanza's body in characters; the last line is shorter.
const LINE_MAX: usize = 64;

/// The key of one file, which the header contains wrapped for each recipient.
pub(super) struct FileKey {
    bytes: [u8; 16],
}

impl FileKey {
    pub(super) fn random(random: &SystemRandom) -> Result<Self, BlockError> {
        let mut bytes = [0; 16];
        random.fill(&mut bytes).map_err(|_| wrong("the system has no random numbers"))?;
        Ok(FileKey { bytes })
    }

    /// Derives a key for a purpose.
    pub(super) fn derive(&self, salt: &[u8], purpose: &[u8]) -> [u8; 32] {
        derive(&self.bytes, salt, purpose)
    }

    fn tag_key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.derive(&[], b"header"))
    }
}

/// Writes the header for one recipient.
pub(super) fn write(
    file_key: &FileKey,
    recipient: &Recipient,
    random: &SystemRandom,
    out: &mut Vec<u8>,
) -> Result<(), BlockError> {
    let mut ephemeral = [0; 32];
    random.fill(&mut ephemeral).map_err(|_| wrong("the system has no random numbers"))?;
    let share = x25519(ephemeral, X25519_BASEPOINT_BYTES);
    let shared = x25519(ephemeral, recipient.point);
    if shared == [0; 32] {
        return Err(wrong("the recipient's key is no point that can be encrypted to"));
    }
    let wrapping = wrapping_key(&shared, &share, &recipient.point);
    let mut wrapped = file_key.bytes.to_vec();
    let sealed = wrapping.seal_in_place_append_tag(zero_nonce(), Aad::empty(), &mut wrapped);
    sealed.map_err(|_| wrong("the key cannot be wrapped"))?;
    let begin = out.len();
    out.extend_from_slice(VERSION);
    let (share, wrapped) = (STANDARD_NO_PAD.encode(share), STANDARD_NO_PAD.encode(wrapped));
    out.extend_from_slice(format!("\n-> X25519 {share}\n{wrapped}\n---").as_bytes());
    let tag = hmac::sign(&file_key.tag_key(), &out[begin..]);
    out.extend_from_slice(format!(" {}\n", STANDARD_NO_PAD.encode(tag)).as_bytes());
    Ok(())
}

/// Reads a header and unwraps its key; returns the key and the length of the header.
pub(super) fn read(bytes: &[u8], identities: &[Identity]) -> Result<(FileKey, usize), BlockError> {
    let mut lines = Lines { bytes: &bytes[..bytes.len().min(HEADER_MAX)], at: 0 };
    if lines.next()? != VERSION {
        return Err(wrong("it is no file of age-encryption.org/v1"));
    }
    let mut found = None;
    for _ in 0..=STANZAS_MAX {
        let begin = lines.at;
        let line = lines.next()?;
        if let Some(tag) = line.strip_prefix(b"--- ") {
            let Some(file_key): Option<FileKey> = found else {
                return Err(wrong("it is encrypted to other keys than ours"));
            };
            let tag = STANDARD_NO_PAD.decode(tag).map_err(|_| wrong("the header's tag is no base64"))?;
            let verified = hmac::verify(&file_key.tag_key(), &bytes[..begin + 3], &tag);
            verified.map_err(|_| wrong("the header was changed"))?;
            return Ok((file_key, lines.at));
        }
        let arguments = line.strip_prefix(b"-> ").ok_or_else(|| wrong("the header is damaged"))?;
        let body = lines.body()?;
        if let (None, Some(share)) = (&found, arguments.strip_prefix(b"X25519 ")) {
            found = unwrap(share, &body, identities)?;
        }
    }
    Err(wrong(format!("it has more than {STANZAS_MAX} recipients")))
}

fn unwrap(share: &[u8], body: &[u8], identities: &[Identity]) -> Result<Option<FileKey>, BlockError> {
    let share = STANDARD_NO_PAD.decode(share).ok().and_then(|share| <[u8; 32]>::try_from(share).ok());
    let (Some(share), 32) = (share, body.len()) else { return Err(wrong("a recipient in the header is damaged")) };
    for identity in identities {
        let Some(shared) = identity.shared_with(share) else { continue };
        let wrapping = wrapping_key(&shared, &share, &identity.recipient().point);
        let mut wrapped = body.to_vec();
        if let Ok(key) = wrapping.open_in_place(zero_nonce(), Aad::empty(), &mut wrapped)
            && let Ok(bytes) = <[u8; 16]>::try_from(&*key)
        {
            return Ok(Some(FileKey { bytes }));
        }
    }
    Ok(None)
}

fn wrapping_key(shared: &[u8; 32], share: &[u8; 32], recipient: &[u8; 32]) -> LessSafeKey {
    cipher(&derive(shared, &[&share[..], recipient].concat(), X25519_LABEL))
}

/// Returns the cipher ChaCha20-Poly1305 with a key.
pub(super) fn cipher(key: &[u8; 32]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, key).expect("the key has the length that the cipher wants"))
}

/// Returns a nonce of zeros: each wrapping key is used only once.
fn zero_nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

struct Length32;

impl KeyType for Length32 {
    fn len(&self) -> usize {
        32
    }
}

/// Derives a key by HKDF with SHA-256.
fn derive(key: &[u8], salt: &[u8], purpose: &[u8]) -> [u8; 32] {
    let mut derived = [0; 32];
    let pseudorandom = Salt::new(HKDF_SHA256, salt).extract(key);
    let filled = pseudorandom.expand(&[purpose], Length32).and_then(|expanded| expanded.fill(&mut derived));
    filled.expect("32 bytes are a length that HKDF can give");
    derived
}

struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Lines<'a> {
    fn next(&mut self) -> Result<&'a [u8], BlockError> {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|byte| *byte == b'\n').ok_or_else(|| wrong("the header does not end"))?;
        self.at += end + 1;
        Ok(&rest[..end])
    }

    /// Reads a stanza's body: full lines, and a shorter one at the end.
    fn body(&mut self) -> Result<Vec<u8>, BlockError> {
        let mut text = Vec::new();
        loop {
            let line = self.next()?;
            if line.len() > LINE_MAX {
                return Err(wrong("a line of the header is too long"));
            }
            text.extend_from_slice(line);
            if line.len() < LINE_MAX {
                return STANDARD_NO_PAD.decode(text).map_err(|_| wrong("a recipient in the header is no base64"));
            }
        }
    }
}
