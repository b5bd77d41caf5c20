//! The content to upload: given blocks, blocks made during the upload, or random bytes in the place of encrypted ones. Main type: [`Content`].

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::block::Sealer;
use crate::data::violation::generate;
use crate::database::DatabaseError;
use crate::random::Stream;

/// The source of the blocks to upload.
#[derive(Debug, Clone)]
pub enum Content {
    /// Random bytes, different for each block.
    Random(Arc<[u8]>),
    /// Given blocks, in turn.
    Blocks(Vec<Arc<[u8]>>),
    /// Blocks that each camera makes when it sends them, as a transmission module does: encrypted and signed, with a violation
    /// of the camera's next sequence number and an image that no other block has.
    Sealed(Arc<Sealing>),
}

/// The parts from which cameras make blocks.
pub struct Sealing {
    /// The sealer of each camera, in the order of the cameras.
    pub sealers: Vec<Sealer>,
    /// The image, without the comment that is added to each copy.
    pub image: Vec<u8>,
    /// The seed from which violations are generated.
    pub seed: u64,
}

impl fmt::Debug for Sealing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} cameras, an image of {} bytes", self.sealers.len(), self.image.len())
    }
}

impl Sealing {
    fn seal(&self, camera: usize, sequence: u64) -> Result<Vec<u8>, DatabaseError> {
        let violation = generate(self.seed, camera as u64, sequence);
        let image = commented(&self.image, [camera as u64, sequence]);
        let sealed = self.sealers[camera].seal(&violation, &image);
        sealed.map_err(|error| DatabaseError::Unavailable(format!("no block could be made: {error}")))
    }
}

/// Returns a JPEG with two numbers in a comment behind its first marker: the same picture in a different file.
fn commented(image: &[u8], numbers: [u64; 2]) -> Vec<u8> {
    const MARKER: [u8; 2] = [0xff, 0xd8];
    let comment = format!("block {:016x}{:016x}", numbers[0], numbers[1]);
    let length = (comment.len() + 2) as u16;
    let rest = image.strip_prefix(&MARKER).unwrap_or(image);
    [&MARKER[..], &[0xff, 0xfe], &length.to_be_bytes(), comment.as_bytes(), rest].concat()
}

/// A block in two parts; the second may be shared with other blocks.
pub(super) struct Block<'a>(Cow<'a, [u8]>, &'a [u8]);

impl Block<'_> {
    pub(super) fn parts(&self) -> [&[u8]; 2] {
        [&self.0, self.1]
    }
}

/// The number of bytes at the beginning of a random block that distinguish it from all others.
const MARK_BYTES: usize = 16;

impl Content {
    /// Creates content of `bytes` random bytes per block from a seed; at least 16.
    pub fn random(bytes: usize, seed: u64) -> Self {
        let mut stream = Stream::seeded(seed);
        let words = (0..bytes.max(MARK_BYTES).div_ceil(8)).flat_map(|_| stream.word().to_le_bytes());
        let all: Vec<u8> = words.take(bytes.max(MARK_BYTES)).collect();
        Content::Random(all.into())
    }

    /// Reads the files of a directory whose names end in `.block`, in the order of their names.
    ///
    /// # Errors
    /// A sentence, when there is no such file or one cannot be read.
    pub fn read(directory: &Path) -> Result<Self, String> {
        let shown = directory.display();
        let unreadable = |error: std::io::Error| format!("{shown}: blocks cannot be read: {error}");
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_some_and(|extension| extension == "block") {
                paths.push(path);
            }
        }
        paths.sort();
        let blocks = paths.iter().map(|path| std::fs::read(path).map(Arc::from)).collect::<Result<Vec<_>, _>>();
        match blocks.map_err(unreadable)? {
            blocks if blocks.is_empty() => Err(format!("{shown} has no file that ends in .block; make some first")),
            blocks => Ok(Content::Blocks(blocks)),
        }
    }

    /// Returns a camera's block with this sequence number.
    pub(super) fn block(&self, camera: usize, sequence: u64) -> Result<Block<'_>, DatabaseError> {
        Ok(match self {
            Content::Random(bytes) => {
                let mark = [(camera as u64).to_le_bytes(), sequence.to_le_bytes()].concat();
                Block(Cow::Owned(mark), &bytes[MARK_BYTES..])
            }
            Content::Blocks(blocks) => {
                // Cameras begin at different blocks.
                let place = ((camera as u64 * 7).wrapping_add(sequence) % blocks.len() as u64) as usize;
                Block(Cow::Borrowed(&[]), &blocks[place])
            }
            Content::Sealed(sealing) => Block(Cow::Owned(sealing.seal(camera, sequence)?), &[]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::age::Identity;
    use crate::block::image::{Scene, draw};
    use crate::block::ssh::SigningKey;
    use crate::block::{Limits, Opener, Signers};
    use crate::data::violation::camera;

    #[test]
    fn blocks_have_their_size_and_no_two_are_the_same() {
        let content = Content::random(1_001, 5);
        let whole = |camera, sequence| content.block(camera, sequence).unwrap().parts().concat();
        assert_eq!(whole(0, 1).len(), 1_001);
        assert_ne!(whole(0, 1), whole(0, 2));
        assert_ne!(whole(0, 1), whole(1, 1));
        let given = Content::Blocks(vec![b"one".as_slice().into(), b"two".as_slice().into()]);
        assert_eq!(given.block(0, 1).unwrap().1, b"two");
        assert_eq!(given.block(0, 2).unwrap().1, b"one");
    }

    #[test]
    fn cameras_make_blocks_of_their_own_that_open_and_whose_images_differ() {
        let (identity, key) = (Identity::generate().unwrap(), SigningKey::generate().unwrap());
        let signers = Signers::parse(&format!("{} {}\n", camera(0), key.public().to_line())).unwrap();
        let image = draw(&generate(1, 0, 0), &Scene { width: 64, ..Scene::default() }, 1).unwrap();
        let sealing = Sealing { sealers: vec![Sealer::new(identity.recipient(), key)], image, seed: 9 };
        let content = Content::Sealed(Arc::new(sealing));
        let mut opener = Opener::new(vec![identity], Limits::default()).unwrap();
        let mut opened = |sequence| {
            let mut block = content.block(0, sequence).unwrap().parts().concat();
            let opened = opener.open(&mut block, &signers, &camera(0)).unwrap();
            (opened.violation, opened.image.to_vec())
        };
        let (first, second) = (opened(1), opened(2));
        assert_eq!((&first.0, second.0.sequence), (&generate(9, 0, 1), 2));
        assert_ne!(first.1, second.1);
    }
}
