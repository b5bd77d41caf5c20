//! What is uploaded: blocks that there are, or bytes as if they were encrypted. Main type: [`Content`].

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use crate::random::Stream;

/// Blocks to upload.
#[derive(Debug, Clone)]
pub enum Content {
    /// Random bytes, of which no two blocks are the same.
    Random(Arc<[u8]>),
    /// These, in turn.
    Blocks(Vec<Arc<[u8]>>),
}

/// Bytes at the beginning of a block of random bytes that tell it from all others.
const MARK_BYTES: usize = 16;

impl Content {
    /// Random bytes, so many of them, from a seed; at least 16.
    pub fn random(bytes: usize, seed: u64) -> Self {
        let mut stream = Stream::seeded(seed);
        let words = (0..bytes.max(MARK_BYTES).div_ceil(8)).flat_map(|_| stream.word().to_le_bytes());
        let all: Vec<u8> = words.take(bytes.max(MARK_BYTES)).collect();
        Content::Random(all.into())
    }

    /// The files of a directory whose names end in `.block`, in the order of their names.
    ///
    /// # Errors
    /// A sentence, when there is none or one cannot be read.
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

    /// A connection's block of this number, in two parts.
    pub(super) fn block(&self, connection: u64, number: u64) -> (Cow<'_, [u8]>, &[u8]) {
        match self {
            Content::Random(bytes) => {
                let mark = [connection.to_le_bytes(), number.to_le_bytes()].concat();
                (Cow::Owned(mark), &bytes[MARK_BYTES..])
            }
            Content::Blocks(blocks) => {
                // Connections begin at different places.
                let place = (connection.wrapping_mul(7).wrapping_add(number) % blocks.len() as u64) as usize;
                (Cow::Borrowed(&[]), &blocks[place])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_their_size_and_no_two_are_the_same() {
        let content = Content::random(1_001, 5);
        let whole = |connection, number| {
            let (head, body) = content.block(connection, number);
            [&head, body].concat()
        };
        assert_eq!(whole(0, 1).len(), 1_001);
        assert_ne!(whole(0, 1), whole(0, 2));
        assert_ne!(whole(0, 1), whole(1, 1));
        let given = Content::Blocks(vec![b"one".as_slice().into(), b"two".as_slice().into()]);
        assert_eq!(given.block(0, 1).1, b"two");
        assert_eq!(given.block(0, 2).1, b"one");
    }
}
