//! Opening a block. Main types: [`Opener`] and its result, [`Opened`].

use zstd::bulk::Decompressor;

use super::age::{self, Identity};
use super::signature::{BEGIN, END, Signature};
use super::{BlockError, Signers, archive, image, xml};
use crate::data::violation::Violation;

/// Maximum length of the signature's text in bytes.
const SIGNATURE_MAX: usize = 4 << 10;

/// Bounds of what a block may unpack to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of bytes.
    pub bytes: usize,
    /// Maximum ratio to the compressed size; 64 KiB are always allowed, as small records compress well.
    pub ratio: usize,
    /// Maximum number of pixels of the image.
    pub pixels: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bytes: 8 << 20, ratio: 100, pixels: 50_000_000 }
    }
}

/// Opens blocks one after another, with buffers that are reused.
pub struct Opener {
    identities: Vec<Identity>,
    limits: Limits,
    decompressor: Decompressor<'static>,
    unpacked: Vec<u8>,
}

/// A block that was opened: signed by its camera, complete, and valid.
#[derive(Debug, Clone, PartialEq)]
pub struct Opened<'a> {
    /// The record.
    pub violation: Violation,
    /// The record's bytes as they are in the block.
    pub record: &'a [u8],
    /// The image.
    pub image: &'a [u8],
}

impl Opener {
    /// Creates an opener that decrypts with any of these keys.
    ///
    /// # Errors
    /// If there is no memory for decompressing.
    pub fn new(identities: Vec<Identity>, limits: Limits) -> std::io::Result<Self> {
        Ok(Opener { identities, limits, decompressor: Decompressor::new()?, unpacked: Vec::new() })
    }

    /// Verifies, decrypts, unpacks and checks a block of a camera. The content of the buffer is consumed.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn open(&mut self, block: &mut Vec<u8>, signers: &Signers, camera: &str) -> Result<Opened<'_>, BlockError> {
        let ciphertext = verify(block, signers, camera)?;
        let plain = age::decrypt_in_place(block, ciphertext, &self.identities)?;
        self.unpack(&block[plain..])?;
        let (record, image) = check_unpacked(&self.unpacked)?;
        let violation = xml::read(record)?;
        if violation.camera != camera {
            let named: String = violation.camera.chars().take(40).collect();
            return Err(BlockError::Record(format!("<camera> is {named:?} and the block is of camera {camera:?}")));
        }
        image::check(image, self.limits.pixels)?;
        Ok(Opened { violation, record, image })
    }

    fn unpack(&mut self, compressed: &[u8]) -> Result<(), BlockError> {
        let Limits { bytes, ratio, .. } = self.limits;
        let most = bytes.min(compressed.len().saturating_mul(ratio).saturating_add(64 << 10));
        self.unpacked.clear();
        self.unpacked.reserve_exact(most);
        let unpacked =
            self.decompressor.decompress_to_buffer(compressed, &mut Bounded { buffer: &mut self.unpacked, most });
        match unpacked {
            Ok(_) => Ok(()),
            Err(error) if error.to_string().contains("too small") => Err(BlockError::Compression(format!(
                "it unpacks to more than {most} bytes: {bytes} at most, and {ratio} times its compressed size"
            ))),
            Err(error) => Err(BlockError::Compression(error.to_string())),
        }
    }
}

/// A buffer that grows no further than its bound, whatever memory it has.
struct Bounded<'a> {
    buffer: &'a mut Vec<u8>,
    most: usize,
}

// SAFETY: as for Vec itself, to which all calls are delegated; the reported capacity is never larger than the vector's.
unsafe impl zstd::zstd_safe::WriteBuf for Bounded<'_> {
    fn as_slice(&self) -> &[u8] {
        self.buffer.as_slice()
    }

    fn capacity(&self) -> usize {
        self.buffer.capacity().min(self.most)
    }

    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.buffer.as_mut_ptr()
    }

    unsafe fn filled_until(&mut self, n: usize) {
        // SAFETY: the caller has initialised the first n bytes, and n is at most the capacity.
        unsafe { self.buffer.set_len(n) }
    }
}

/// Returns the record and the image of an archive, as they are in it.
///
/// # Errors
/// [`BlockError::Archive`]
pub fn check_unpacked(unpacked: &[u8]) -> Result<(&[u8], &[u8]), BlockError> {
    archive::read(unpacked)
}

/// Returns the two parts of a block: the signature's armored text and the ciphertext.
///
/// # Errors
/// [`BlockError::Form`]
pub fn split(block: &[u8]) -> Result<(&[u8], &[u8]), BlockError> {
    let wrong = |what: &str| BlockError::Form(what.to_owned());
    let begins = block.strip_prefix(BEGIN.as_bytes()).is_some_and(|rest| rest.starts_with(b"\n"));
    if !begins {
        return Err(wrong("it does not begin with an SSH signature"));
    }
    let head = &block[..block.len().min(SIGNATURE_MAX)];
    let mark = format!("\n{END}\n");
    let end = head.windows(mark.len()).position(|window| window == mark.as_bytes());
    let end = end.ok_or_else(|| wrong("its signature does not end"))? + mark.len();
    Ok(block.split_at(end))
}

/// Verifies that a block was signed with a key of this camera; returns the place where its ciphertext begins.
pub(super) fn verify(block: &[u8], signers: &Signers, camera: &str) -> Result<usize, BlockError> {
    let wrong = |what: String| BlockError::Signature(what);
    let (armored, ciphertext) = split(block)?;
    let signature = Signature::parse(&armored[BEGIN.len()..armored.len() - END.len() - 1])?;
    let keys = signers.of(camera);
    if keys.is_empty() {
        return Err(wrong(format!("camera {camera:?} has no key here")));
    }
    if !keys.contains(&signature.key) {
        return Err(wrong(format!("its key is none of camera {camera:?}")));
    }
    if !signature.holds(ciphertext) {
        return Err(wrong("it does not hold: the block was changed or cut off".to_owned()));
    }
    Ok(block.len() - ciphertext.len())
}

impl Signers {
    /// Verifies a block of a given camera, or of any camera (`None`); returns the camera.
    ///
    /// # Errors
    /// What is wrong with the signature.
    pub fn verify(&self, block: &[u8], camera: Option<&str>) -> Result<String, BlockError> {
        if let Some(camera) = camera {
            return verify(block, self, camera).map(|_| camera.to_owned());
        }
        let (armored, _) = split(block)?;
        let signature = Signature::parse(&armored[BEGIN.len()..armored.len() - END.len() - 1])?;
        let cameras = self.cameras_of(&signature.key);
        let camera =
            *cameras.first().ok_or_else(|| BlockError::Signature("its key is of no known camera".to_owned()))?;
        verify(block, self, camera).map(|_| cameras.join(","))
    }
}
