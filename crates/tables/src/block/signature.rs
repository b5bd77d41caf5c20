//! Signatures as `ssh-keygen -Y sign` makes them: armored, over a hash, for a namespace. Main functions: [`sign`], [`Signature::parse`].

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, SHA512, digest};

use super::BlockError;
use super::ssh::{ALGORITHM, PublicKey, Reader, SigningKey, lines_of, put};

/// The namespace of a block's signature; a signature made for anything else does not count.
pub const NAMESPACE: &str = "transport-block@loadline";

/// The first and the last line of a signature.
pub(super) const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
pub(super) const END: &str = "-----END SSH SIGNATURE-----";

const MAGIC: &[u8] = b"SSHSIG";

/// A signature, before it is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Signature {
    /// The key that the signature claims to be from.
    pub(super) key: PublicKey,
    is_sha512: bool,
    signature: Vec<u8>,
}

/// Signs a message.
pub(super) fn sign(message: &[u8], key: &SigningKey) -> String {
    let hash = digest(&SHA512, message);
    let mut inner = Vec::new();
    put(&mut inner, ALGORITHM.as_bytes());
    put(&mut inner, &key.sign(&signed("sha512", hash.as_ref())));
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&1_u32.to_be_bytes());
    for part in [&key.public().to_wire()[..], NAMESPACE.as_bytes(), b"", b"sha512", &inner] {
        put(&mut out, part);
    }
    format!("{BEGIN}\n{}{END}\n", lines_of(&STANDARD.encode(out), 70))
}

impl Signature {
    /// Parses the text between the first and the last line.
    pub(super) fn parse(armored: &[u8]) -> Result<Self, BlockError> {
        let text: Vec<u8> = armored.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let bytes = STANDARD.decode(text).map_err(|_| wrong("it is no base64"))?;
        Self::read(&bytes).unwrap_or_else(|| Err(wrong("it is damaged, or is not of an Ed25519 key")))
    }

    fn read(bytes: &[u8]) -> Option<Result<Self, BlockError>> {
        let mut reader = Reader { bytes: bytes.strip_prefix(MAGIC)? };
        (reader.number()? == 1).then_some(())?;
        let key = PublicKey::from_wire(reader.text()?)?;
        let namespace = reader.text()?;
        if namespace != NAMESPACE.as_bytes() {
            let namespace = String::from_utf8_lossy(namespace);
            return Some(Err(wrong(&format!("it is for {namespace:?}; sign with -n {NAMESPACE}"))));
        }
        reader.text()?.is_empty().then_some(())?;
        let is_sha512 = match reader.text()? {
            b"sha512" => true,
            b"sha256" => false,
            _ => return None,
        };
        let mut inner = Reader { bytes: reader.text()? };
        (inner.text()? == ALGORITHM.as_bytes()).then_some(())?;
        let signature = inner.text()?.to_vec();
        (inner.bytes.is_empty() && reader.bytes.is_empty()).then_some(Ok(Signature { key, is_sha512, signature }))
    }

    /// Returns whether this is a signature of its key over the message.
    pub(super) fn holds(&self, message: &[u8]) -> bool {
        let (name, algorithm) = if self.is_sha512 { ("sha512", &SHA512) } else { ("sha256", &SHA256) };
        self.key.verifies(&signed(name, digest(algorithm, message).as_ref()), &self.signature)
    }
}

/// Returns the bytes that are really signed: the hash and the namespace.
fn signed(hash_name: &str, hash: &[u8]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    for part in [NAMESPACE.as_bytes(), b"", hash_name.as_bytes(), hash] {
        put(&mut out, part);
    }
    out
}

fn wrong(what: &str) -> BlockError {
    BlockError::Signature(what.to_owned())
}
