//! Transport blocks: a camera's image and its record as one file, encrypted for the data centre and signed by the camera.
//!
//! ```text
//! block      = signature ciphertext
//! signature  = an armored SSH signature (`ssh-keygen -Y sign -n transport-block@loadline`) of the ciphertext
//! ciphertext = age (X25519) of zstd of tar of violation.xml and image.jpg
//! ```
//!
//! Main types: [`Opener`], which verifies, decrypts and checks; [`Sealer`], which makes blocks; [`Signers`], the cameras' keys.
//!
//! Invariant: no part of a block is decrypted before its signature is verified, and no part is unpacked before the block is decrypted
//! as a whole; the unpacked size is bounded.

pub mod age;
mod archive;
mod error;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod fuzzed;
pub mod image;
#[cfg(test)]
mod mutated;
mod open;
mod seal;
mod signature;
pub mod signers;
pub mod ssh;
#[cfg(test)]
mod tests;
pub mod xml;

pub use error::{BlockError, KeyError};
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use fuzzed::{AGE as FUZZED_AGE, BLOCK as FUZZED_BLOCK};
pub use open::{Limits, Opened, Opener, check_unpacked, split};
pub use seal::Sealer;
pub use signature::NAMESPACE;
pub use signers::Signers;

/// Name of the record within a block.
pub const RECORD_NAME: &str = "violation.xml";
/// Name of the image within a block.
pub const IMAGE_NAME: &str = "image.jpg";
