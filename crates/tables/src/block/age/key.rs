//! Keys of age, [`Identity`] and [`Recipient`], in their Bech32 forms.

use std::fmt;

use bech32::primitives::decode::CheckedHrpstring;
use bech32::{Bech32, Hrp};
use ring::rand::{SecureRandom, SystemRandom};
use x25519_dalek::{X25519_BASEPOINT_BYTES, x25519};

use crate::block::KeyError;
use crate::quote::quoted;

const SECRET_PREFIX: &str = "age-secret-key-";
const PUBLIC_PREFIX: &str = "age";

/// The data centre's secret key, which decrypts.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    secret: [u8; 32],
    /// The public key that belongs to the secret; opening a file needs it.
    recipient: Recipient,
}

/// The data centre's public key, which files are encrypted to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipient {
    pub(super) point: [u8; 32],
}

impl Identity {
    /// Generates a new key.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn generate() -> Result<Self, KeyError> {
        let mut secret = [0; 32];
        let filled = SystemRandom::new().fill(&mut secret);
        filled.map_err(|_| KeyError("the system has no random numbers".to_owned()))?;
        Ok(Self::of(secret))
    }

    /// Parses `AGE-SECRET-KEY-1…`.
    ///
    /// # Errors
    /// What is wrong; the secret itself is never shown.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let secret = decode(text, SECRET_PREFIX);
        let secret = secret.ok_or_else(|| KeyError("it is no age identity (AGE-SECRET-KEY-1...)".to_owned()))?;
        Ok(Self::of(secret))
    }

    fn of(secret: [u8; 32]) -> Self {
        Identity { secret, recipient: Recipient { point: x25519(secret, X25519_BASEPOINT_BYTES) } }
    }

    /// Returns the public key.
    pub fn recipient(&self) -> Recipient {
        self.recipient.clone()
    }

    /// Returns the secret as text.
    pub fn secret_text(&self) -> String {
        encode(&self.secret, SECRET_PREFIX).to_uppercase()
    }

    /// Returns the secret shared with a public point; `None` for points that share the same secret with everybody.
    pub(super) fn shared_with(&self, point: [u8; 32]) -> Option<[u8; 32]> {
        let shared = x25519(self.secret, point);
        (shared != [0; 32]).then_some(shared)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Identity(of {})", self.recipient())
    }
}

impl Recipient {
    /// Parses `age1…`.
    ///
    /// # Errors
    /// What is wrong.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let wrong = || {
            // A file taken for a public key may contain the secret one.
            let is_secret = text.to_ascii_lowercase().contains(SECRET_PREFIX);
            KeyError(match is_secret {
                true => "it is a secret key, which nobody should see; give its age recipient (age1...)".to_owned(),
                false => format!("\"{}\" is no age recipient for X25519 (age1...)", quoted(text)),
            })
        };
        Ok(Recipient { point: decode(text, PUBLIC_PREFIX).ok_or_else(wrong)? })
    }
}

impl fmt::Display for Recipient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&encode(&self.point, PUBLIC_PREFIX))
    }
}

/// Parses a file of identities as `age-keygen` writes it: lines with `#` are comments.
///
/// # Errors
/// The line and what is wrong with it.
pub fn read_identities(text: &str) -> Result<Vec<Identity>, KeyError> {
    let mut identities = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let read = Identity::parse(line).map_err(|error| KeyError(format!("line {}: {error}", number + 1)));
        identities.push(read?);
    }
    if identities.is_empty() {
        return Err(KeyError(
            "there is no identity in it; make one with loadline block keys, or age-keygen".to_owned(),
        ));
    }
    Ok(identities)
}

fn decode(text: &str, prefix: &str) -> Option<[u8; 32]> {
    let decoded = CheckedHrpstring::new::<Bech32>(text).ok()?;
    if !decoded.hrp().to_lowercase().eq(prefix) {
        return None;
    }
    let bytes: Vec<u8> = decoded.byte_iter().collect();
    bytes.try_into().ok()
}

fn encode(bytes: &[u8; 32], prefix: &str) -> String {
    let prefix = Hrp::parse(prefix).expect("the prefixes of this file are such");
    bech32::encode::<Bech32>(prefix, bytes).expect("32 bytes fit")
}
