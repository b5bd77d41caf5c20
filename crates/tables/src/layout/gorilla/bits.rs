//! Bits in bytes, the highest bit of a byte first: [`Writer`] and [`Reader`].

/// Numbers of bits that whole numbers are written with, by the number of ones that stand before them; with none, the number is 0.
const WIDTHS: [u32; 6] = [0, 7, 12, 20, 32, 64];

/// Appends bits to bytes.
pub(super) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// Bits that fill no byte yet, the last one lowest.
    held: u8,
    held_bits: u32,
}

impl<'a> Writer<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Writer { out, held: 0, held_bits: 0 }
    }

    /// Appends the lowest `count` bits of a word, at most 64.
    #[inline]
    pub(super) fn bits(&mut self, word: u64, count: u32) {
        let mut left = count;
        while left > 0 {
            let taken = left.min(8 - self.held_bits);
            let part = (word >> (left - taken)) & ((1 << taken) - 1);
            self.held = ((u32::from(self.held) << taken) | part as u32) as u8;
            self.held_bits += taken;
            left -= taken;
            if self.held_bits == 8 {
                self.out.push(self.held);
                (self.held, self.held_bits) = (0, 0);
            }
        }
    }

    /// Appends a whole number, in fewer bits if it is small.
    #[inline]
    pub(super) fn number(&mut self, number: u64) {
        let bits = 64 - number.leading_zeros();
        let class = WIDTHS.iter().position(|width| bits <= *width).unwrap_or(WIDTHS.len() - 1);
        let ones = class as u32;
        match class == WIDTHS.len() - 1 {
            true => self.bits((1 << ones) - 1, ones),
            false => self.bits(((1 << ones) - 1) << 1, ones + 1),
        }
        self.bits(number, WIDTHS[class]);
    }

    /// Appends a whole number of either sign, in fewer bits if it is near 0.
    #[inline]
    pub(super) fn signed(&mut self, number: i64) {
        self.number(((number << 1) ^ (number >> 63)) as u64);
    }

    /// Fills the last byte up with zeros.
    pub(super) fn end(mut self) {
        if self.held_bits > 0 {
            self.bits(0, 8 - self.held_bits);
        }
    }
}

/// Reads bits from bytes that may be damaged.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, at: 0 }
    }

    /// Returns the next bits, at most 64; `None` where fewer are left.
    #[inline]
    pub(super) fn bits(&mut self, count: u32) -> Option<u64> {
        let (mut word, mut left) = (0_u64, count);
        while left > 0 {
            let byte = *self.bytes.get(self.at / 8)?;
            let of_byte = 8 - (self.at % 8) as u32;
            let taken = left.min(of_byte);
            let part = (u32::from(byte) >> (of_byte - taken)) & ((1 << taken) - 1);
            word = (word << taken) | u64::from(part);
            self.at += taken as usize;
            left -= taken;
        }
        Some(word)
    }

    /// Returns the next bit.
    #[inline]
    pub(super) fn bit(&mut self) -> Option<bool> {
        let byte = *self.bytes.get(self.at / 8)?;
        let bit = byte >> (7 - self.at % 8) & 1;
        self.at += 1;
        Some(bit == 1)
    }

    /// Returns the next number of [`Writer::number`].
    #[inline]
    pub(super) fn number(&mut self) -> Option<u64> {
        let mut class = 0;
        while class < WIDTHS.len() - 1 && self.bit()? {
            class += 1;
        }
        self.bits(WIDTHS[class])
    }

    /// Returns the next number of [`Writer::signed`].
    #[inline]
    pub(super) fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// Returns how many whole bytes are left.
    pub(super) fn bytes_left(&self) -> usize {
        self.bytes.len() - self.at.div_ceil(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn what_was_written_is_read() {
        let mut stream = Stream::seeded(5);
        for _ in 0..200 {
            let written: Vec<(u64, u32)> = (0..100)
                .map(|_| {
                    let count = 1 + stream.below(64) as u32;
                    (stream.word() >> (64 - count), count)
                })
                .collect();
            let mut bytes = Vec::new();
            let mut writer = Writer::new(&mut bytes);
            for (word, count) in &written {
                writer.bits(*word, *count);
                writer.number(*word);
                writer.signed(*word as i64);
                writer.signed(-((*word >> 1) as i64));
            }
            writer.end();
            let mut reader = Reader::new(&bytes);
            for (word, count) in &written {
                assert_eq!(reader.bits(*count), Some(*word));
                assert_eq!(reader.number(), Some(*word));
                assert_eq!(reader.signed(), Some(*word as i64));
                assert_eq!(reader.signed(), Some(-((*word >> 1) as i64)));
            }
            assert!(reader.bytes_left() == 0 && reader.bits(8).is_none());
        }
    }

    #[test]
    fn small_numbers_take_few_bits() {
        let bits = |number: i64| {
            let mut bytes = Vec::new();
            let mut writer = Writer::new(&mut bytes);
            (0..8).for_each(|_| writer.signed(number));
            writer.end();
            bytes.len()
        };
        assert_eq!([0, 1, -64, 2047, i64::MIN].map(bits), [1, 9, 9, 15, 69]);
    }
}
