//! Random numbers by counter: [`Stream`] is SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), whose n-th number is a hash of
//! its start plus n steps, so that a stream starts anywhere at no cost.
//!
//! Invariant: whole-number arithmetic only, so the numbers are the same on every machine and in every version.

/// The step of SplitMix64: 2^64 over the golden ratio, odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Hashes a word so that each bit of it changes half of the result's bits (Stafford's 13th variant of MurmurHash3's end).
#[inline]
pub fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Derives a seed from a seed and a number, for example from those of a trial and a client.
pub fn derive(seed: u64, number: u64) -> u64 {
    mix(mix(seed.wrapping_add(STEP)).wrapping_add(number.wrapping_mul(STEP)))
}

/// Maps a word to `0..bound`, by multiplying and shifting; 0 for a bound of 0. The bias is below bound / 2^32.
#[inline]
pub fn below32(word: u32, bound: u32) -> u32 {
    ((u64::from(word) * u64::from(bound)) >> 32) as u32
}

/// A sequence of random numbers.
#[derive(Debug, Clone)]
pub struct Stream {
    state: u64,
}

impl Stream {
    /// Creates the plain SplitMix64 sequence of a seed.
    pub fn seeded(seed: u64) -> Self {
        Stream { state: seed }
    }

    /// Creates the stream of a seed, an index and a lane: different streams are unrelated.
    #[inline]
    pub fn new(seed: u64, index: u64, lane: u64) -> Self {
        Stream { state: mix(derive(seed, lane) ^ mix(index.wrapping_add(STEP))) }
    }

    /// Creates the stream of an index, from a seed that [`derive()`] made with the lane already in it.
    #[inline]
    pub fn at(derived_seed: u64, index: u64) -> Self {
        Stream { state: mix(derived_seed ^ mix(index.wrapping_add(STEP))) }
    }

    /// Returns the next 64 bits.
    #[inline]
    pub fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// Returns the next 64 bits as two halves.
    #[inline]
    pub fn pair(&mut self) -> (u32, u32) {
        let word = self.word();
        ((word >> 32) as u32, word as u32)
    }

    /// Returns a number in `0..bound`; 0 for a bound of 0. The bias is below bound / 2^64.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(bound)) >> 64) as u64
    }

    /// Shuffles items (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }

    /// Returns a number in [0, 1), in steps of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_splitmix64() {
        let mut stream = Stream::seeded(1_234_567);
        let words: Vec<_> = (0..3).map(|_| stream.word()).collect();
        assert_eq!(words, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn neighbouring_streams_do_not_resemble_each_other() {
        // Over all pairs of neighbours in seed, index and lane, 64-bit words differ in 32 bits on average, sd 4.
        let mut differing = 0;
        let mut pairs = 0;
        for number in 0..1000 {
            let words = [(7, number, 1), (8, number, 1), (7, number + 1, 1), (7, number, 2)]
                .map(|(seed, index, lane)| Stream::new(seed, index, lane).word());
            for other in &words[1..] {
                differing += (words[0] ^ other).count_ones();
                pairs += 1;
            }
        }
        let mean = f64::from(differing) / f64::from(pairs);
        assert!((mean - 32.0).abs() < 5.0 * 4.0 / f64::from(pairs).sqrt(), "{mean} bits differ on average");
    }

    #[test]
    fn bounded_numbers_reach_both_ends_and_stay_within() {
        let mut stream = Stream::new(1, 2, 3);
        let drawn: Vec<_> = (0..1000).map(|_| stream.below(10)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&0), Some(&9)));
        assert_eq!(stream.below(0), 0);
        assert_eq!((below32(0, 10), below32(u32::MAX, 10)), (0, 9));
        assert!((0..1000).map(|_| stream.unit()).all(|number| (0.0..1.0).contains(&number)));
    }
}
