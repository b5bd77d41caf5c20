//! Passwords of cameras, kept as hashes: `pbkdf2-sha256:ROUNDS:SALT:HASH`, with salt and hash in base64. Main type: [`Hashed`].
//!
//! Such a hash is made by `loadline password`, or by any other implementation of PBKDF2 (RFC 8018).

use std::num::NonZeroU32;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::pbkdf2;
use ring::rand::{SecureRandom, SystemRandom};

const KIND: &str = "pbkdf2-sha256";
const HASH_BYTES: usize = 32;
const SALT_BYTES: usize = 16;
/// Rounds of a hash that is made here.
const ROUNDS: u32 = 100_000;
/// The most rounds that are accepted: more would keep a core busy for seconds at every login.
const ROUNDS_MAX: u32 = 2_000_000;
/// The fewest rounds, and the shortest salt in bytes, that are accepted.
const ROUNDS_MIN: u32 = 1_000;
const SALT_BYTES_MIN: usize = 8;

/// The hash of a password, by which the password can be recognised but not restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hashed {
    rounds: NonZeroU32,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

impl Hashed {
    /// Hashes a password with a new random salt.
    ///
    /// # Errors
    /// A sentence, when the system gives no random numbers.
    pub fn new(password: &str) -> Result<Self, String> {
        Self::with_rounds(password, ROUNDS)
    }

    /// Hashes a password made by [`random_password`], which needs no slow hash to resist guessing.
    ///
    /// # Errors
    /// As [`Hashed::new`].
    pub fn of_random(password: &str) -> Result<Self, String> {
        Self::with_rounds(password, ROUNDS_MIN)
    }

    pub(super) fn with_rounds(password: &str, rounds: u32) -> Result<Self, String> {
        let mut salt = vec![0; SALT_BYTES];
        SystemRandom::new().fill(&mut salt).map_err(|_| "the system gives no random numbers".to_owned())?;
        let rounds = NonZeroU32::new(rounds).unwrap_or(NonZeroU32::MIN);
        let mut hash = vec![0; HASH_BYTES];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, &salt, password.as_bytes(), &mut hash);
        Ok(Hashed { rounds, salt, hash })
    }

    /// Parses a hash.
    ///
    /// # Errors
    /// A sentence that says what is wrong. The text itself is not repeated, because somebody may have written a password there.
    pub fn read(text: &str) -> Result<Self, String> {
        let must = format!("it must be {KIND}:ROUNDS:SALT:HASH, as loadline password prints it");
        let parts: Vec<_> = text.split(':').collect();
        let [KIND, rounds, salt, hash] = parts[..] else { return Err(format!("is no hash; {must}")) };
        let rounds = rounds.parse().ok().filter(|rounds| (ROUNDS_MIN..=ROUNDS_MAX).contains(rounds));
        let rounds = rounds.and_then(NonZeroU32::new);
        let rounds = rounds.ok_or_else(|| format!("has rounds outside {ROUNDS_MIN} to {ROUNDS_MAX}; {must}"))?;
        let salt = BASE64.decode(salt).ok().filter(|salt| salt.len() >= SALT_BYTES_MIN);
        let salt = salt.ok_or_else(|| format!("has no salt of {SALT_BYTES_MIN} bytes or more in base64; {must}"))?;
        let hash = BASE64.decode(hash).ok().filter(|hash| hash.len() == HASH_BYTES);
        let hash = hash.ok_or_else(|| format!("has no hash of {HASH_BYTES} bytes in base64; {must}"))?;
        Ok(Hashed { rounds, salt, hash })
    }

    /// Returns the hash as it is written into a file.
    pub fn text(&self) -> String {
        format!("{KIND}:{}:{}:{}", self.rounds, BASE64.encode(&self.salt), BASE64.encode(&self.hash))
    }

    /// Returns whether this is the password. Slow by intention, and equally slow for a wrong password.
    pub fn is(&self, password: &str) -> bool {
        let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
        pbkdf2::verify(algorithm, self.rounds, &self.salt, password.as_bytes(), &self.hash).is_ok()
    }
}

/// Returns a password that cannot be guessed: 128 random bits.
///
/// # Errors
/// A sentence, when the system gives no random numbers.
pub fn random_password() -> Result<String, String> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the system gives no random numbers".to_owned())?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_recognised_by_its_hash_alone() {
        let hashed = Hashed::with_rounds("correct horse", 1_000).unwrap();
        let read = Hashed::read(&hashed.text()).unwrap();
        assert!(read.is("correct horse"));
        assert!(!read.is("correct hors") && !read.is("") && !read.is("correct horse "));
        assert!(!hashed.text().contains("horse"));
        assert_ne!(Hashed::with_rounds("correct horse", 1_000).unwrap().text(), hashed.text(), "salts differ");
    }

    #[test]
    fn the_hash_is_that_of_the_standard() {
        // python3 -c "import hashlib,base64; print(base64.b64encode(hashlib.pbkdf2_hmac('sha256', b'password', b'saltsalt', 1000)))"
        let text = "pbkdf2-sha256:1000:c2FsdHNhbHQ=:E196ZhRPzw+wA84EjzHwJO1cv/MFJdO6C/sxmUeTYqY=";
        assert!(Hashed::read(text).unwrap().is("password"), "{text}");
    }

    #[test]
    fn what_is_no_hash_is_refused_and_not_repeated() {
        for text in ["secret", "pbkdf2-sha256:10:c2FsdHNhbHQ=:AAAA", "pbkdf2-sha256:1000:AA==:AAAA", "a:1000:b:c", ""] {
            let sentence = Hashed::read(text).unwrap_err();
            assert!(sentence.contains("loadline password") && !sentence.contains("secret"), "{sentence}");
        }
    }
}
