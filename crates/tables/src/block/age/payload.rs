//! The payload of an age file: a nonce, then numbered chunks of 64 KiB, each with a tag; the last one is marked as the last.

use ring::aead::{Aad, LessSafeKey, Nonce};
use ring::rand::{SecureRandom, SystemRandom};

use super::header::{FileKey, cipher};
use super::wrong;
use crate::block::BlockError;

const NONCE_BYTES: usize = 16;
const CHUNK_BYTES: usize = 64 << 10;
const TAG_BYTES: usize = 16;

pub(super) fn encrypt(
    file_key: &FileKey,
    plain: &[u8],
    random: &SystemRandom,
    out: &mut Vec<u8>,
) -> Result<(), BlockError> {
    let mut nonce = [0; NONCE_BYTES];
    random.fill(&mut nonce).map_err(|_| wrong("the system has no random numbers"))?;
    out.extend_from_slice(&nonce);
    let key = payload_key(file_key, &nonce);
    let chunks = plain.len().div_ceil(CHUNK_BYTES).max(1);
    for number in 0..chunks {
        let chunk = &plain[number * CHUNK_BYTES..plain.len().min((number + 1) * CHUNK_BYTES)];
        let begin = out.len();
        out.extend_from_slice(chunk);
        let nonce = chunk_nonce(number, number + 1 == chunks);
        let tag = key.seal_in_place_separate_tag(nonce, Aad::empty(), &mut out[begin..]);
        out.extend_from_slice(tag.map_err(|_| wrong("a chunk cannot be encrypted"))?.as_ref());
    }
    Ok(())
}

/// Decrypts the bytes from `begin` on; returns where the plaintext begins, which ends with the buffer.
pub(super) fn decrypt_in_place(file_key: &FileKey, buffer: &mut Vec<u8>, begin: usize) -> Result<usize, BlockError> {
    let Some((nonce, _)) = buffer[begin..].split_first_chunk::<NONCE_BYTES>() else {
        return Err(wrong("it is cut off before its first chunk"));
    };
    let key = payload_key(file_key, nonce);
    let plain = begin + NONCE_BYTES;
    let (mut from, mut to, mut number) = (plain, plain, 0);
    loop {
        let end = buffer.len().min(from + CHUNK_BYTES + TAG_BYTES);
        let is_last = end == buffer.len();
        let chunk = &mut buffer[from..end];
        let opened = key.open_in_place(chunk_nonce(number, is_last), Aad::empty(), chunk);
        let length = opened.map_err(|_| wrong(format!("chunk {number} is damaged, missing or cut off")))?.len();
        if length == 0 && number > 0 {
            return Err(wrong("the last chunk is empty"));
        }
        // Chunks are moved together, over the tags between them.
        buffer.copy_within(from..from + length, to);
        to += length;
        if is_last {
            buffer.truncate(to);
            return Ok(plain);
        }
        (from, number) = (end, number + 1);
    }
}

fn payload_key(file_key: &FileKey, nonce: &[u8; NONCE_BYTES]) -> LessSafeKey {
    cipher(&file_key.derive(nonce, b"payload"))
}

/// Returns the nonce of a chunk: eleven bytes of its number, and one that tells whether it is the last.
fn chunk_nonce(number: usize, is_last: bool) -> Nonce {
    let mut nonce = [0; 12];
    nonce[3..11].copy_from_slice(&(number as u64).to_be_bytes());
    nonce[11] = u8::from(is_last);
    Nonce::assume_unique_for_key(nonce)
}
