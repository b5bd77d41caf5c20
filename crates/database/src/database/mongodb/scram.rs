//! The login by SCRAM-SHA-256 (RFC 5802 and 7677), in which the password is proved and never sent, and the server proves that it knows it. Main type: [`Scram`].

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SecureRandom as _;
use ring::{digest, hmac, pbkdf2, rand};

/// The bytes of a hash.
const HASH_BYTES: usize = 32;
/// The bytes of this side's random number.
const NONCE_BYTES: usize = 24;
/// The most rounds of a hash that a server may ask for: half a minute of work.
const ROUNDS_MAX: u32 = 10_000_000;
/// The beginning of the first message, which says that the login is bound to no channel, and its form in base64.
const UNBOUND: &str = "n,,";
const UNBOUND_BASE64: &str = "biws";

/// One login.
#[derive(Debug)]
pub(super) struct Scram {
    /// The first message without [`UNBOUND`].
    first: String,
    nonce: String,
    /// The proof that the server must give in the end; `None` until it is known.
    right: Option<hmac::Tag>,
}

impl Scram {
    /// Begins a login.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn begin(user: &str) -> Result<Self, String> {
        let mut random = [0; NONCE_BYTES];
        rand::SystemRandom::new().fill(&mut random).map_err(|_| "the system gives no random numbers".to_owned())?;
        Ok(Scram::with_nonce(user, STANDARD.encode(random)))
    }

    fn with_nonce(user: &str, nonce: String) -> Self {
        let user = user.replace('=', "=3D").replace(',', "=2C");
        Scram { first: format!("n={user},r={nonce}"), nonce, right: None }
    }

    /// Returns the first message.
    pub(super) fn message(&self) -> String {
        format!("{UNBOUND}{}", self.first)
    }

    /// Returns the answer to the server's first message.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn prove(&mut self, told: &[u8], password: &str) -> Result<String, String> {
        let wrong = || "the server's message of the login is none of SCRAM-SHA-256".to_owned();
        if !password.is_ascii() {
            return Err("a password has letters beyond ASCII, which this login does not take".to_owned());
        }
        let told = std::str::from_utf8(told).map_err(|_| wrong())?;
        let part = |name: &str| told.split(',').find_map(|part| part.strip_prefix(name)).ok_or_else(wrong);
        let (nonce, salt, rounds) = (part("r=")?, part("s=")?, part("i=")?);
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err("the server's message of the login belongs to another one".to_owned());
        }
        let salt = STANDARD.decode(salt).map_err(|_| wrong())?;
        let rounds: NonZeroU32 = rounds.parse().map_err(|_| wrong())?;
        if rounds.get() > ROUNDS_MAX {
            return Err(format!("the server asks for {rounds} rounds of a hash, and {ROUNDS_MAX} are the most"));
        }
        let mut salted = [0; HASH_BYTES];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, &salt, password.as_bytes(), &mut salted);
        let salted = hmac::Key::new(hmac::HMAC_SHA256, &salted);
        let last = format!("c={UNBOUND_BASE64},r={nonce}");
        let whole = format!("{},{told},{last}", self.first);
        let mut proof = hmac::sign(&salted, b"Client Key").as_ref().to_vec();
        let stored = digest::digest(&digest::SHA256, &proof);
        let signed = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, stored.as_ref()), whole.as_bytes());
        proof.iter_mut().zip(signed.as_ref()).for_each(|(byte, other)| *byte ^= other);
        let of_server = hmac::sign(&salted, b"Server Key");
        self.right = Some(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, of_server.as_ref()), whole.as_bytes()));
        Ok(format!("{last},p={}", STANDARD.encode(proof)))
    }

    /// Checks the server's last message.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn check(&self, told: &[u8]) -> Result<(), String> {
        let proof = std::str::from_utf8(told).ok().and_then(|told| told.strip_prefix("v="));
        let proof = proof.and_then(|proof| STANDARD.decode(proof.trim_end_matches(',')).ok());
        match (&self.right, proof) {
            (Some(right), Some(proof)) if right.as_ref() == proof.as_slice() => Ok(()),
            _ => Err("the server failed to prove that it knows the password".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The example of RFC 7677, section 3.
    const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
    const TOLD: &[u8] = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";

    #[test]
    fn the_example_of_the_standard_is_followed() {
        let mut login = Scram::with_nonce("user", NONCE.to_owned());
        assert_eq!(login.message(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let proved = login.prove(TOLD, "pencil").unwrap();
        let right = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        assert_eq!(proved, right);
        login.check(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=").unwrap();
        assert!(login.check(b"v=7rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=").is_err());
        assert!(login.check(b"e=other-error").is_err());
    }

    #[test]
    fn what_is_no_login_is_refused() {
        let prove = |told: &[u8], password: &str| Scram::with_nonce("user", NONCE.to_owned()).prove(told, password);
        for told in [
            &b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"[..],
            b"r=other,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            b"r=rOprNGfwEbeRWgbNEkqOx,s=!,i=4096",
            b"r=rOprNGfwEbeRWgbNEkqOx,s=W22Z,i=0",
            b"r=rOprNGfwEbeRWgbNEkqOx,s=W22Z,i=4000000000",
            b"\xff",
        ] {
            assert!(prove(told, "pencil").is_err(), "{told:?}");
        }
        assert!(prove(TOLD, "Bleistift ä").unwrap_err().contains("ASCII"));
        assert_eq!(Scram::with_nonce("a=b,c", "x".to_owned()).message(), "n,,n=a=3Db=2Cc,r=x");
        assert!(Scram::with_nonce("user", NONCE.to_owned()).check(b"v=").is_err(), "nothing was proved");
    }
}
