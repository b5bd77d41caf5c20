//! Ed25519 keys of cameras, in OpenSSH's own formats. Main types: [`SigningKey`] and [`PublicKey`].

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use super::KeyError;

/// Name of the algorithm in every format of OpenSSH.
pub const ALGORITHM: &str = "ssh-ed25519";

const PRIVATE_MAGIC: &[u8] = b"openssh-key-v1\0";
const PRIVATE_BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const PRIVATE_END: &str = "-----END OPENSSH PRIVATE KEY-----";

/// The key that verifies a camera's signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    point: [u8; 32],
}

/// The key with which a camera signs.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    seed: [u8; 32],
}

impl PublicKey {
    /// Reads the binary form, which files contain in base64.
    pub fn from_wire(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader { bytes };
        (reader.text()? == ALGORITHM.as_bytes()).then_some(())?;
        let point = reader.text()?.try_into().ok()?;
        reader.bytes.is_empty().then_some(PublicKey { point })
    }

    /// Returns the binary form.
    pub fn to_wire(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, ALGORITHM.as_bytes());
        put(&mut out, &self.point);
        out
    }

    /// Returns the form used in files: the algorithm and the key.
    pub fn to_line(&self) -> String {
        format!("{ALGORITHM} {}", STANDARD.encode(self.to_wire()))
    }

    /// Returns whether this key made a signature over a message.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.point).verify(message, signature).is_ok()
    }
}

impl SigningKey {
    /// Generates a new key.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn generate() -> Result<Self, KeyError> {
        let mut seed = [0; 32];
        let filled = SystemRandom::new().fill(&mut seed);
        filled.map_err(|_| KeyError("the system has no random numbers".to_owned()))?;
        Self::from_seed(seed)
    }

    fn from_seed(seed: [u8; 32]) -> Result<Self, KeyError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed);
        Ok(SigningKey { pair: pair.map_err(|_| KeyError("the key's seed is of no use".to_owned()))?, seed })
    }

    /// Reads a private key as `ssh-keygen -t ed25519` writes it.
    ///
    /// # Errors
    /// What is wrong, and the remedy.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let wrong = |what: &str| KeyError(format!("{what}; make one with ssh-keygen -t ed25519 -N ''"));
        let inner = text.trim().strip_prefix(PRIVATE_BEGIN).and_then(|text| text.strip_suffix(PRIVATE_END));
        let inner = inner.ok_or_else(|| wrong("it is no OpenSSH private key"))?;
        let text: String = inner.split_whitespace().collect();
        let bytes = STANDARD.decode(text).map_err(|_| wrong("it is no base64"))?;
        let damaged = || wrong("the private key is damaged, or is not of Ed25519");
        let rest = bytes.strip_prefix(PRIVATE_MAGIC).ok_or_else(damaged)?;
        let mut reader = Reader { bytes: rest };
        if reader.text().ok_or_else(damaged)? != b"none" {
            return Err(wrong("it is protected by a passphrase, which a camera has nobody to type"));
        }
        let seed = Self::read_seed(&mut reader).ok_or_else(damaged)?;
        Self::from_seed(seed)
    }

    fn read_seed(reader: &mut Reader<'_>) -> Option<[u8; 32]> {
        let (_derivation, _options, keys) = (reader.text()?, reader.text()?, reader.number()?);
        let public = PublicKey::from_wire(reader.text()?)?;
        let mut private = Reader { bytes: reader.text()? };
        let is_same = private.number()? == private.number()?;
        let is_known = private.text()? == ALGORITHM.as_bytes() && private.text()? == public.point;
        let (seed, point) = private.text()?.split_first_chunk::<32>()?;
        (is_same && is_known && keys == 1 && point == public.point).then_some(*seed)
    }

    /// Returns the private key in the format of an OpenSSH file.
    pub fn to_file(&self, comment: &str) -> String {
        let public = self.public();
        let mut private = Vec::new();
        // Two equal numbers tell a right passphrase from a wrong one; without a passphrase any number will do.
        private.extend_from_slice(&[0x6c, 0x6f, 0x61, 0x64, 0x6c, 0x6f, 0x61, 0x64]);
        put(&mut private, ALGORITHM.as_bytes());
        put(&mut private, &public.point);
        put(&mut private, &[self.seed, public.point].concat());
        put(&mut private, comment.as_bytes());
        let padding = (8 - private.len() % 8) % 8;
        private.extend((1..=padding as u8).collect::<Vec<_>>());
        let mut out = PRIVATE_MAGIC.to_vec();
        for part in [&b"none"[..], b"none", b""] {
            put(&mut out, part);
        }
        out.extend_from_slice(&1_u32.to_be_bytes());
        put(&mut out, &public.to_wire());
        put(&mut out, &private);
        format!("{PRIVATE_BEGIN}\n{}{PRIVATE_END}\n", lines_of(&STANDARD.encode(out), 70))
    }

    /// Returns the public half.
    pub fn public(&self) -> PublicKey {
        let point = self.pair.public_key().as_ref().try_into().expect("a public key of Ed25519 has 32 bytes");
        PublicKey { point }
    }

    /// Signs a message.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.pair.sign(message).as_ref().to_vec()
    }
}

/// Breaks a text into lines of `width` characters, each with a line end.
pub(super) fn lines_of(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / width + 1);
    for (at, character) in text.chars().enumerate() {
        if at > 0 && at % width == 0 {
            out.push('\n');
        }
        out.push(character);
    }
    out + "\n"
}

/// Appends a text, preceded by its length.
pub(super) fn put(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as u32).to_be_bytes());
    out.extend_from_slice(text);
}

/// Reads SSH's binary forms; `None` where they are cut off.
pub(super) struct Reader<'a> {
    pub(super) bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn number(&mut self) -> Option<u32> {
        let (number, rest) = self.bytes.split_first_chunk::<4>()?;
        self.bytes = rest;
        Some(u32::from_be_bytes(*number))
    }

    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.number()? as usize;
        let (text, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(text)
    }
}
