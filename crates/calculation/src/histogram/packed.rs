//! Counts of buckets in little memory: for each bucket that is not empty, its distance from the previous one and its count, in
//! 7 bits a byte (LEB128).
//!
//! Main type: [`Packed`]. Invariant: buckets are in ascending order, and no count is 0.

/// Packed counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packed(Box<[u8]>);

impl FromIterator<(usize, u64)> for Packed {
    /// Packs buckets, in ascending order, and their counts.
    fn from_iter<I: IntoIterator<Item = (usize, u64)>>(filled: I) -> Self {
        let mut bytes = Vec::new();
        let mut next = 0;
        for (bucket, count) in filled {
            write(&mut bytes, (bucket - next) as u64);
            write(&mut bytes, count);
            next = bucket + 1;
        }
        Packed(bytes.into_boxed_slice())
    }
}

impl Packed {
    /// Returns buckets and counts, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let mut rest = &self.0[..];
        let mut next = 0;
        std::iter::from_fn(move || {
            let bucket = next + read(&mut rest)? as usize;
            next = bucket + 1;
            Some((bucket, read(&mut rest)?))
        })
    }
}

fn write(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Reads the next number; `None` at the end.
#[inline]
pub fn read(bytes: &mut &[u8]) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        shift += 7;
        if first & 0x80 == 0 || shift > 63 {
            return Some(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_counts_are_the_same_and_small() {
        let filled: Vec<(usize, u64)> = (0..300).map(|place| (1000 + 2 * place, 1 + (place as u64) * 7)).collect();
        let packed: Packed = filled.iter().copied().collect();
        assert_eq!(packed.iter().collect::<Vec<_>>(), filled);
        assert!(packed.0.len() < 1000, "{} bytes", packed.0.len());
        let extremes = [(0, 1), (usize::from(u16::MAX), u64::MAX)];
        assert_eq!(extremes.into_iter().collect::<Packed>().iter().collect::<Vec<_>>(), extremes);
        assert_eq!(Packed::default().iter().count(), 0);
    }
}
