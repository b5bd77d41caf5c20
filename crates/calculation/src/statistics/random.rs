//! A small random source for resampling: xoshiro256++ (Blackman and Vigna 2019), seeded through SplitMix64.
//!
//! Invariant: the sequence depends on the seed alone and never changes between versions, so intervals can be repeated.

use crate::random::Stream;

/// Random source of the bootstrap.
#[derive(Debug, Clone)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// Creates a source whose sequence is decided by the seed; every seed is as good as any other.
    pub fn new(seed: u64) -> Self {
        let mut seeding = Stream::seeded(seed);
        Random { state: std::array::from_fn(|_| seeding.word()) }
    }

    /// Returns the next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// Returns a number in `0..bound`, each equally likely up to a bias below `bound` / 2^64; 0 for a bound of 0.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }

    /// Returns a number in `[0, 1)`, with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequences_are_those_of_the_published_algorithms() {
        let mut random = Random { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..5).map(|_| random.next_u64()).collect();
        assert_eq!(
            first,
            [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386, 9_228_616_714_210_784_205]
        );
    }

    #[test]
    fn numbers_below_a_bound_reach_each_value_alike() {
        let mut random = Random::new(1);
        let mut counts = [0_u32; 5];
        (0..50_000).for_each(|_| counts[random.below(5)] += 1);
        assert!(counts.iter().all(|count| (9_600..10_400).contains(count)), "{counts:?}");
        assert_eq!(random.below(0), 0);
    }
}
