//! Proofs of a password: one function for each authentication method.
//!
//! Invariant: no proof contains the password in plain text.

use base64::Engine as _;
use num_bigint::BigUint;
use sha1::{Digest, Sha1};
use sha2::Sha256;

/// The length of the server's random bytes.
pub const NONCE_BYTES: usize = 20;

const HASH_BYTES: usize = 20;
/// The maximum bits of the modulus, beyond any key in use: the time to encrypt grows with the square of the modulus and with the exponent, and a fake
/// server could keep a writer busy for hours.
const MODULUS_BITS_MAX: u64 = 16_384;
const EXPONENT_BITS_MAX: u64 = 256;

/// Returns the proof for `mysql_native_password`; empty for no password.
pub fn native(password: &[u8], nonce: &[u8; NONCE_BYTES]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha1::digest(password);
    let twice = Sha1::digest(once);
    let mask = Sha1::new().chain_update(nonce).chain_update(twice).finalize();
    masked(&once, &mask)
}

/// Returns the proof for `caching_sha2_password`, sufficient when the server has the password in its cache; empty for no password.
pub fn caching_sha2(password: &[u8], nonce: &[u8; NONCE_BYTES]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha256::digest(password);
    let twice = Sha256::digest(once);
    let mask = Sha256::new().chain_update(twice).chain_update(nonce).finalize();
    masked(&once, &mask)
}

/// Returns the password for `caching_sha2_password` over an unprotected socket: encrypted with the server's public key, in PEM form
/// (RSA with OAEP padding and SHA-1). `None` when the key is invalid or too short, or when there is no randomness.
pub fn encrypted(password: &[u8], nonce: &[u8; NONCE_BYTES], key: &[u8]) -> Option<Vec<u8>> {
    let (modulus, exponent) = public_key(key)?;
    let length = usize::try_from(modulus.bits().div_ceil(8)).ok()?;
    let hidden: Vec<u8> =
        password.iter().chain(&[0]).zip(nonce.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
    let room = length.checked_sub(2 * HASH_BYTES + 2)?;
    let mut data = Sha1::digest([]).to_vec();
    data.resize(HASH_BYTES + room.checked_sub(hidden.len())?, 0);
    data.push(1);
    data.extend_from_slice(&hidden);
    let seed = random()?;
    let data = masked(&data, &mask(&seed, data.len()));
    let seed = masked(&seed, &mask(&data, HASH_BYTES));
    let block = BigUint::from_bytes_be(&[&seed[..], &data].concat());
    let sent = block.modpow(&exponent, &modulus).to_bytes_be();
    Some([vec![0; length - sent.len()], sent].concat())
}

fn masked(bytes: &[u8], mask: &[u8]) -> Vec<u8> {
    bytes.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect()
}

/// Returns a mask by the mask generation function MGF1 of RFC 8017, appendix B.2.1.
fn mask(seed: &[u8], length: usize) -> Vec<u8> {
    let blocks = (0u32..).flat_map(|count| Sha1::new().chain_update(seed).chain_update(count.to_be_bytes()).finalize());
    blocks.take(length).collect()
}

fn random() -> Option<[u8; HASH_BYTES]> {
    let mut bytes = [0; HASH_BYTES];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom").ok()?, &mut bytes).ok()?;
    Some(bytes)
}

/// Returns the modulus and the exponent of a public RSA key in PEM form.
fn public_key(pem: &[u8]) -> Option<(BigUint, BigUint)> {
    let text = std::str::from_utf8(pem).ok()?;
    let (_, rest) = text.split_once("-----BEGIN PUBLIC KEY-----")?;
    let (body, _) = rest.split_once("-----END PUBLIC KEY-----")?;
    let body: String = body.split_whitespace().collect();
    let der = base64::engine::general_purpose::STANDARD.decode(body).ok()?;
    // A sequence of the algorithm and a bit string, which contains a sequence of two integers (RFC 8017, appendix A.1).
    let (whole, _) = element(&der, 0x30)?;
    let (_, rest) = element(whole, 0x30)?;
    let (bits, _) = element(rest, 0x03)?;
    let (numbers, _) = element(bits.get(1..)?, 0x30)?;
    let (modulus, rest) = element(numbers, 0x02)?;
    let (exponent, _) = element(rest, 0x02)?;
    let (modulus, exponent) = (BigUint::from_bytes_be(modulus), BigUint::from_bytes_be(exponent));
    let is_key = |number: &BigUint, most: u64| (1..=most).contains(&number.bits());
    (is_key(&modulus, MODULUS_BITS_MAX) && is_key(&exponent, EXPONENT_BITS_MAX)).then_some((modulus, exponent))
}

/// Returns the content of the element at the front, which must have this tag, and the bytes that follow it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (head, rest) = der.split_at_checked(2)?;
    if head[0] != tag {
        return None;
    }
    match head[1] {
        short @ 0..=0x7f => rest.split_at_checked(usize::from(short)),
        long => {
            let (length, rest) =
                rest.split_at_checked(usize::from(long & 0x7f)).filter(|(length, _)| length.len() <= 4)?;
            let length = length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
            rest.split_at_checked(length)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // A key made for this test with `openssl genrsa 1024`, and its private exponent.
    const KEY: &str = "-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDb/wSGdlDl29CNqJj6ywRE2HB5
2ULbDlkBGNqfko3euwuluCRicavkljsfJa7e0szWpjUQueUXb1dqgx7L90ydPyWb
oGpIDzwzM2yNW4QCFKXiGM6JMZtwknHce7aSBT9GHr6FVjZ7XwhGW1TEOsoGIGP2
5QzzjhFOcOGpkRgNMQIDAQAB
-----END PUBLIC KEY-----
";
    const PRIVATE: &str = "d4e2ebc31e9d5c41a188639d5e1bb54ed5cfc9e9d74b59900182c694e2620d261db84900548f4152db99eca32f9c8a\
        8b1430146bd22801cc89e0157068da2fb4b39268f04d92b3320b828de680509010a0b11f794aa4782ef80a1ce87602abeee7bd821a17d90794\
        009fa7301bbb0eceb690ba87937d01fcc25d73262530b90d";

    fn decrypted(sent: &[u8]) -> Vec<u8> {
        let (modulus, _) = public_key(KEY.as_bytes()).unwrap();
        let private = BigUint::parse_bytes(PRIVATE.as_bytes(), 16).unwrap();
        let block = BigUint::from_bytes_be(sent).modpow(&private, &modulus).to_bytes_be();
        let block = [vec![0; 127 - block.len()], block].concat();
        let seed = masked(&block[..HASH_BYTES], &mask(&block[HASH_BYTES..], HASH_BYTES));
        let data = masked(&block[HASH_BYTES..], &mask(&seed, 107));
        assert_eq!(data[..HASH_BYTES], Sha1::digest([])[..]);
        let start = HASH_BYTES + data[HASH_BYTES..].iter().position(|byte| *byte == 1).unwrap();
        data[start + 1..].to_vec()
    }

    #[test]
    fn an_encrypted_password_is_what_the_private_key_opens() {
        let nonce = *b"abcdefghijklmnopqrst";
        let sent = encrypted(b"a rather long secret phrase", &nonce, KEY.as_bytes()).unwrap();
        assert_eq!(sent.len(), 128);
        let repeated: Vec<u8> = nonce.iter().copied().cycle().take(28).collect();
        assert_eq!(masked(&decrypted(&sent), &repeated), b"a rather long secret phrase\0");
        assert_eq!(encrypted(&[b'x'; 100], &nonce, KEY.as_bytes()), None, "longer than the key allows");
        assert_eq!(encrypted(b"x", &nonce, b"no key"), None);
    }

    #[test]
    fn keys_that_would_take_hours_are_refused() {
        let number = |bytes: usize| {
            let length = (bytes as u32).to_be_bytes();
            [&[0x02, 0x84][..], &length, &vec![0xff; bytes]].concat()
        };
        let within =
            |tag: u8, content: &[u8]| [&[tag, 0x84][..], &(content.len() as u32).to_be_bytes(), content].concat();
        let sent = |modulus: usize, exponent: usize| {
            let numbers = within(0x30, &[number(modulus), number(exponent)].concat());
            let bits = within(0x03, &[&[0][..], &numbers].concat());
            let body = within(0x30, &[within(0x30, &[]), bits].concat());
            let body = base64::engine::general_purpose::STANDARD.encode(body);
            let pem = format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----");
            encrypted(b"secret", &[0; NONCE_BYTES], pem.as_bytes()).map(|sent| sent.len())
        };
        assert_eq!(sent(256, 3), Some(256));
        assert_eq!((sent(2_049, 3), sent(256, 33)), (None, None));
    }

    #[test]
    fn proofs_are_checked_as_servers_check_them() {
        let nonce = *b"abcdefghijklmnopqrst";
        // The server stores the hash of the hash; it unmasks the proof and hashes it once.
        let stored = Sha1::digest(Sha1::digest(b"secret"));
        let mask = Sha1::new().chain_update(nonce).chain_update(stored).finalize();
        assert_eq!(Sha1::digest(masked(&native(b"secret", &nonce), &mask)), stored);
        let stored = Sha256::digest(Sha256::digest(b"secret"));
        let mask = Sha256::new().chain_update(stored).chain_update(nonce).finalize();
        assert_eq!(Sha256::digest(masked(&caching_sha2(b"secret", &nonce), &mask)), stored);
        assert!(native(b"", &nonce).is_empty() && caching_sha2(b"", &nonce).is_empty());
    }

    proptest! {
        #[test]
        fn arbitrary_keys_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let body = base64::engine::general_purpose::STANDARD.encode(&bytes);
            let pem = format!("-----BEGIN PUBLIC KEY-----\n{body}\n-----END PUBLIC KEY-----");
            let _ = encrypted(b"x", &[0; 20], pem.as_bytes());
            let _ = element(&bytes, 0x30);
        }
    }
}
