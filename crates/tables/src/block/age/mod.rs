//! Encryption in the format age-encryption.org/v1, with X25519 keys. Main types: [`Identity`], which decrypts, and [`Recipient`],
//! to which files are encrypted. The `age` tool reads the files written here, and vice versa.
//!
//! Invariant: a ciphertext is decrypted as a whole or not at all; if it is cut, extended or changed anywhere, it is refused.

mod header;
mod key;
mod payload;

pub use key::{Identity, Recipient, read_identities};

use ring::rand::SystemRandom;

use super::BlockError;
use header::FileKey;

/// Encrypts to a recipient.
///
/// # Errors
/// If the system has no random numbers.
pub fn encrypt(plain: &[u8], recipient: &Recipient) -> Result<Vec<u8>, BlockError> {
    let random = SystemRandom::new();
    let file_key = FileKey::random(&random)?;
    let mut out = Vec::with_capacity(plain.len() + plain.len() / 1024 + 512);
    header::write(&file_key, recipient, &random, &mut out)?;
    payload::encrypt(&file_key, plain, &random, &mut out)?;
    Ok(out)
}

/// Decrypts in place, and returns where the plaintext begins in the buffer, which it fills to the end.
///
/// # Errors
/// [`BlockError::Encryption`]; the content of the buffer is useless then.
pub fn decrypt_in_place(buffer: &mut Vec<u8>, from: usize, identities: &[Identity]) -> Result<usize, BlockError> {
    let (file_key, header_bytes) = header::read(&buffer[from..], identities)?;
    let begin = from + header_bytes;
    payload::decrypt_in_place(&file_key, buffer, begin)
}

fn wrong(what: impl Into<String>) -> BlockError {
    BlockError::Encryption(what.into())
}
