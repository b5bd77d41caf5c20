//! Tokens, kept as hashes: `sha256:` and the SHA-256 of the token in hexadecimal digits. Main type: [`TokenHash`].
//!
//! Passwords need slow hashes because people choose from few of them. A token is random and long: with its hash one would have to try 2^255 of
//! them, so a fast hash is enough, and each request can be checked by it.

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

const KIND: &str = "sha256:";
const HASH_BYTES: usize = 32;
const TOKEN_BYTES: usize = 32;

/// The fewest characters of a token; a shorter one could be guessed.
pub const TOKEN_CHARACTERS_MIN: usize = 16;

/// The hash of a token, by which the token can be recognised but not restored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenHash([u8; HASH_BYTES]);

impl std::fmt::Debug for TokenHash {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("TokenHash")
    }
}

impl TokenHash {
    /// Returns the hash of a token.
    pub fn of(token: &str) -> Self {
        let mut hash = [0; HASH_BYTES];
        hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        TokenHash(hash)
    }

    /// Parses a hash.
    ///
    /// # Errors
    /// A sentence that says what is wrong. The text itself is not repeated, because somebody may have written the token there.
    pub fn read(text: &str) -> Result<Self, String> {
        let must = "it must be sha256: and 64 hexadecimal digits, as loadline password --token prints it";
        let digits = text.strip_prefix(KIND).ok_or_else(|| format!("is no hash; {must}"))?;
        let bytes = digits.as_bytes();
        if bytes.len() != 2 * HASH_BYTES || !bytes.iter().all(u8::is_ascii_hexdigit) {
            return Err(format!(
                "has {} characters behind sha256: that are no SHA-256; {must}",
                digits.chars().count()
            ));
        }
        let mut hash = [0; HASH_BYTES];
        for (byte, pair) in hash.iter_mut().zip(bytes.chunks(2)) {
            let digit = |place: usize| pair.get(place).map_or(0, |digit| (*digit as char).to_digit(16).unwrap_or(0));
            *byte = (16 * digit(0) + digit(1)) as u8;
        }
        Ok(TokenHash(hash))
    }

    /// Returns the hash as it is written into a file.
    pub fn text(&self) -> String {
        let digits: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{KIND}{digits}")
    }

    /// Returns whether both hashes are equal; the time taken reveals nothing about either.
    pub fn is(&self, other: &TokenHash) -> bool {
        self.0.iter().zip(other.0).fold(0, |difference, (own, other)| difference | (own ^ other)) == 0
    }
}

/// Returns a token that cannot be guessed: 256 random bits.
///
/// # Errors
/// A sentence, when the system gives no random numbers.
pub fn random_token() -> Result<String, String> {
    use base64::Engine;
    let mut bytes = [0; TOKEN_BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the system gives no random numbers".to_owned())?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_that_of_sha256sum_and_is_read_as_it_was_written() {
        // printf %s secret | sha256sum
        let text = "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
        let hash = TokenHash::of("secret");
        assert_eq!(hash.text(), text);
        assert!(TokenHash::read(text).unwrap().is(&hash) && TokenHash::read(&text.to_uppercase()).is_err());
        assert!(TokenHash::read(&text.replace("2bb80d", "2BB80D")).unwrap().is(&hash));
        assert!(!hash.is(&TokenHash::of("secret ")) && format!("{hash:?}") == "TokenHash");
        assert_ne!(random_token().unwrap(), random_token().unwrap());
        assert_eq!(random_token().unwrap().len(), 43);
    }

    #[test]
    fn what_is_no_hash_is_refused_and_not_repeated() {
        for text in ["secret", "sha256:", "sha256:secret", &format!("sha256:{}", "ä".repeat(32)), "md5:00"] {
            let sentence = TokenHash::read(text).unwrap_err();
            assert!(sentence.contains("loadline password --token") && !sentence.contains("secret"), "{sentence}");
        }
    }
}
