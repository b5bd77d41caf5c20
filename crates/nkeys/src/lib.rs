//! Signatures with the keys of NATS ("nkeys"): Ed25519 keys whose text names their kind and ends with a checksum.
//!
//! Main type: [`KeyPair`]. This crate has what async-nats needs of the crate `nkeys` from crates.io, and takes its place in this workspace: `ring` signs, which
//! is here for TLS anyway, where the other one brings twenty crates, six of them a second time. Source of the format:
//! <https://docs.nats.io/running-a-nats-service/configuration/securing_nats/auth_intro/nkey_auth>.
//!
//! ```text
//! seed         base32(18 << 3 | kind >> 5, (kind & 31) << 3, 32 bytes of the seed, CRC-16 of all before)
//! public key   base32(kind, 32 bytes of the key, CRC-16 of all before)
//! ```
//!
//! Invariant: a text is taken as a seed only if its length, its kind and its checksum are right.

use ring::signature::{Ed25519KeyPair, KeyPair as _};

/// The first byte of a seed, without the bits of its kind.
const SEED: u8 = 18 << 3;
/// The kinds of keys: operator, server, cluster, account, user.
const KINDS: [u8; 5] = [14 << 3, 13 << 3, 2 << 3, 0, 20 << 3];
/// The digits of base32 in RFC 4648.
const DIGITS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const KEY_BYTES: usize = 32;
const SUM_BYTES: usize = 2;
const SEED_DIGITS: usize = ((2 + KEY_BYTES + SUM_BYTES) * 8).div_ceil(5);

/// Why a text is no seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The length of the text, or one of its digits.
    #[error("a seed of an nkey has {SEED_DIGITS} digits from A to Z and from 2 to 7")]
    Digits,
    /// The first digits.
    #[error("a seed of an nkey begins with S and its kind, as in SU for a user's")]
    Kind,
    /// The checksum.
    #[error("the checksum of the seed is wrong: it was not copied right")]
    Checksum,
}

/// A key that signs.
#[derive(Debug)]
pub struct KeyPair {
    kind: u8,
    pair: Ed25519KeyPair,
}

impl KeyPair {
    /// Reads a seed, as in `SUANQDPB2RUOE4ETUA26CNX7FUKE5ZZKFCQIIW63OX225F2CO7UEXTM7ZY`.
    ///
    /// # Errors
    /// Fails if the text is no seed.
    pub fn from_seed(seed: &str) -> Result<KeyPair, Error> {
        let bytes = decoded(seed).ok_or(Error::Digits)?;
        let (all, sum) = bytes.split_last_chunk::<SUM_BYTES>().ok_or(Error::Digits)?;
        let ([first, second], key) = all.split_first_chunk::<2>().ok_or(Error::Digits)?;
        let kind = (first & 7) << 5 | second >> 3;
        if first & !7 != SEED || !KINDS.contains(&kind) {
            return Err(Error::Kind);
        }
        if crc16(all) != u16::from_le_bytes(*sum) {
            return Err(Error::Checksum);
        }
        let pair = Ed25519KeyPair::from_seed_unchecked(key).map_err(|_| Error::Digits)?;
        Ok(KeyPair { kind, pair })
    }

    /// Returns the text of the public key.
    pub fn public_key(&self) -> String {
        let mut bytes = vec![self.kind];
        bytes.extend_from_slice(self.pair.public_key().as_ref());
        bytes.extend_from_slice(&crc16(&bytes).to_le_bytes());
        encoded(&bytes)
    }

    /// Signs a message; the signature has 64 bytes.
    ///
    /// # Errors
    /// Never; callers expect that signing may fail.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, Error> {
        Ok(self.pair.sign(message).as_ref().to_vec())
    }
}

/// Returns the text in base32, without padding.
fn encoded(bytes: &[u8]) -> String {
    let mut text = String::with_capacity((bytes.len() * 8).div_ceil(5));
    for block in bytes.chunks(5) {
        let mut padded = [0; 8];
        padded[3..3 + block.len()].copy_from_slice(block);
        let bits = u64::from_be_bytes(padded);
        for digit in 0..(block.len() * 8).div_ceil(5) {
            text.push(char::from(DIGITS[(bits >> (35 - 5 * digit)) as usize & 31]));
        }
    }
    text
}

/// Returns the bytes of a seed's text; `None` if it has another length, or digits that are none.
fn decoded(text: &str) -> Option<Vec<u8>> {
    if text.len() != SEED_DIGITS {
        return None;
    }
    let (mut bytes, mut bits, mut held) = (Vec::with_capacity(SEED_DIGITS), 0_u32, 0);
    for digit in text.bytes() {
        let value = DIGITS.iter().position(|known| *known == digit)?;
        bits = bits << 5 | value as u32;
        held += 5;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    // Bits behind the last byte mean nothing, and are 0.
    (bits == 0).then_some(bytes)
}

/// CRC-16/XMODEM: polynomial 0x1021, from 0.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |mut sum: u16, byte| {
        sum ^= u16::from(*byte) << 8;
        for _ in 0..8 {
            sum = if sum & 0x8000 != 0 { sum << 1 ^ 0x1021 } else { sum << 1 };
        }
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A user's seed of NATS's own documentation, and its public key.
    const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    const PUBLIC: &str = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

    #[test]
    fn the_public_key_is_that_of_natss_documentation() {
        let pair = KeyPair::from_seed(SEED).unwrap();
        assert_eq!(pair.public_key(), PUBLIC);
        let signature = pair.sign(b"nonce").unwrap();
        let public = ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, pair.pair.public_key());
        assert!(public.verify(b"nonce", &signature).is_ok() && public.verify(b"nonce2", &signature).is_err());
    }

    #[test]
    fn sums_and_digits_are_those_of_others() {
        // The check value of CRC-16/XMODEM, and the vectors of RFC 4648.
        assert_eq!(crc16(b"123456789"), 0x31c3);
        let vectors = ["", "MY", "MZXQ", "MZXW6", "MZXW6YQ", "MZXW6YTB", "MZXW6YTBOI"];
        for (length, text) in vectors.iter().enumerate() {
            assert_eq!(encoded(&b"foobar"[..length]), *text);
        }
    }

    #[test]
    fn a_text_with_one_digit_changed_is_no_seed() {
        for place in 0..SEED.len() {
            for digit in DIGITS.iter().chain(b"018a=\x7f") {
                let mut text = SEED.as_bytes().to_vec();
                if std::mem::replace(&mut text[place], *digit) != *digit {
                    assert!(KeyPair::from_seed(std::str::from_utf8(&text).unwrap()).is_err(), "{place}");
                }
            }
        }
        assert_eq!(KeyPair::from_seed(&SEED[1..]).unwrap_err(), Error::Digits);
        assert_eq!(KeyPair::from_seed(PUBLIC).unwrap_err(), Error::Digits);
        assert_eq!(KeyPair::from_seed(&SEED.replacen("SU", "SV", 1)).unwrap_err(), Error::Kind);
        assert_eq!(KeyPair::from_seed(&format!("{}Z", &SEED[..SEED.len() - 1])).unwrap_err(), Error::Digits);
    }
}
