//! Compression of request bodies while they wait. Main functions: [`Offer::packed`] and [`Offer::unpacked`].
//!
//! A packed body is the length of the plain one, as 4 bytes little-endian, followed by a zstd frame.

use std::cell::RefCell;

use super::Offer;

/// The zstd level. The fastest one suffices: lines with numbers gain little from higher ones.
const LEVEL: i32 = 1;
/// Bodies below this many bytes are left as they are.
const LEAST_BYTES: usize = 256;
/// The most bytes of a plain body.
const PLAIN_MAX: usize = 1 << 30;

thread_local! {
    /// Created once for each thread: creating a compressor takes longer than using it.
    static COMPRESSOR: RefCell<Option<zstd::bulk::Compressor<'static>>> = const { RefCell::new(None) };
}

impl Offer {
    /// Returns the offer with its body compressed, if that makes it smaller by a tenth at least.
    pub(super) fn packed(mut self) -> Offer {
        if self.is_packed || self.body.len() < LEAST_BYTES || self.body.len() > PLAIN_MAX {
            return self;
        }
        if let Some(packed) = packed(&self.body) {
            (self.body, self.is_packed) = (packed, true);
        }
        self
    }

    /// Returns the offer with its plain body; `Err` with the offer unchanged if the body is damaged.
    pub(super) fn unpacked(mut self) -> Result<Offer, Offer> {
        if !self.is_packed {
            return Ok(self);
        }
        match unpacked(&self.body) {
            Some(plain) => {
                (self.body, self.is_packed) = (plain, false);
                Ok(self)
            }
            None => Err(self),
        }
    }
}

fn packed(plain: &[u8]) -> Option<Vec<u8>> {
    let compressed = COMPRESSOR.with_borrow_mut(|compressor| {
        if compressor.is_none() {
            *compressor = zstd::bulk::Compressor::new(LEVEL).ok();
        }
        compressor.as_mut()?.compress(plain).ok()
    })?;
    let mut packed = Vec::with_capacity(4 + compressed.len());
    packed.extend_from_slice(&u32::try_from(plain.len()).ok()?.to_le_bytes());
    packed.extend_from_slice(&compressed);
    (packed.len() < plain.len() / 10 * 9).then_some(packed)
}

fn unpacked(packed: &[u8]) -> Option<Vec<u8>> {
    let (length, compressed) = packed.split_first_chunk()?;
    let length = u32::from_le_bytes(*length) as usize;
    let plain = zstd::bulk::decompress(compressed, length.min(PLAIN_MAX)).ok()?;
    (plain.len() == length).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_comes_back_as_it_was_and_one_that_gains_nothing_is_left_alone() {
        let lines: String =
            (0..100).map(|number| format!("link,probe=p{} rtt={}.5 {number}\n", number % 7, number % 31)).collect();
        let offer = Offer::plain("s", 100, lines.as_bytes());
        let packed = offer.clone().packed();
        assert!(packed.is_packed && packed.body.len() * 2 < offer.body.len());
        assert_eq!(packed.clone().packed(), packed);
        assert_eq!(packed.unpacked(), Ok(offer.clone()));
        assert_eq!(offer.clone().unpacked(), Ok(offer));
        let small = Offer::plain("s", 1, b"m f=1\n");
        assert_eq!(small.clone().packed(), small);
        let mut number = 1_u32;
        let noise: Vec<u8> = (0..2_000)
            .map(|_| (number = number.wrapping_mul(747_796_405).wrapping_add(3), (number >> 24) as u8).1)
            .collect();
        let noise = Offer::plain("s", 1, &noise);
        assert_eq!(noise.clone().packed(), noise);
    }

    #[test]
    fn what_is_no_packed_body_is_damage_and_takes_no_more_memory_than_it_may() {
        let packed = Offer::plain("s", 1, &[b'x'; 9_000]).packed();
        for cut in 0..packed.body.len() {
            let damaged = Offer { body: packed.body[..cut].to_vec(), ..packed.clone() };
            assert_eq!(damaged.clone().unpacked(), Err(damaged));
        }
        // A body whose stated length is smaller or larger than its real one.
        for length in [0_u32, 8_999, 9_001, u32::MAX] {
            let mut body = packed.body.clone();
            body[..4].copy_from_slice(&length.to_le_bytes());
            assert!(Offer { body, ..packed.clone() }.unpacked().is_err());
        }
    }
}
