//! Inputs that differ from a target's seeds by a few changes. Main type: [`Mutator`]; pure, the same number gives the same inputs.

use super::Target;

/// Largest number of changes of one input.
const CHANGES_MAX: usize = 6;

/// A generator of inputs for a target.
pub struct Mutator {
    seeds: Vec<Vec<u8>>,
    words: &'static [&'static str],
    state: u64,
}

impl Mutator {
    /// Creates the generator for a target; the number decides which inputs it generates.
    pub fn new(target: &Target, number: u64) -> Self {
        let state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Mutator { seeds: (target.seeds)(), words: target.words, state }
    }

    /// Returns the next input.
    pub fn next_input(&mut self) -> Vec<u8> {
        let seed = self.below(self.seeds.len());
        let mut input = self.seeds.get(seed).cloned().unwrap_or_default();
        for _ in 0..=self.below(CHANGES_MAX) {
            self.change(&mut input);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let end = (at + self.below(32)).min(input.len());
        match self.below(8) {
            0 => input.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << self.below(8)),
            1 => input.get_mut(at).into_iter().for_each(|byte| *byte = self.below(256) as u8),
            // A byte that may be a length is made slightly too large or too small.
            2 => input.get_mut(at).into_iter().for_each(|byte| *byte = byte.wrapping_add([1, 255, 16][self.below(3)])),
            3 => input.truncate(at),
            4 => drop(input.drain(at..end)),
            5 => {
                let part = input[at..end].to_vec();
                drop(input.splice(at..at, part));
            }
            6 if !self.words.is_empty() => {
                let word = self.words[self.below(self.words.len())];
                drop(input.splice(at..at, word.bytes()));
            }
            _ => {
                let other = self.below(self.seeds.len().max(1));
                let Some(other) = self.seeds.get(other) else { return };
                let from = end.min(other.len());
                let part = other[from..(from + 32).min(other.len())].to_vec();
                drop(input.splice(at..at, part));
            }
        }
    }

    /// Returns a number below `bound`; 0 for a bound of 0. Xorshift after Marsaglia 2003.
    fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % bound.max(1)
    }
}
