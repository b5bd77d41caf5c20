//! Orders of the numbers 0 to n - 1 that look random: a [`Permutation`] returns the number at any place of one.
//!
//! The default is a [`Shuffle`], `feistel`, whose neighbours are independent of each other. The others are walks through the
//! states 1 to m, m at least n, that visit every state once before they return; states above n are skipped, and a number is its
//! state minus one. They are those of the Wisconsin benchmark's authors and users:
//! - `lfsr`: a linear feedback shift register in Galois' form that shifts to the right, with a primitive polynomial (Kihl,
//!   Cedersjö, Robertsson and Aspernäs 2011, section 4.2; their Haskell program is not published, so the polynomials are ours). Half of its
//!   numbers are about half of the previous one: neighbours correlate by 0.1 to 0.45.
//! - `lfsr-leap`: the same register, shifted several times for each state, so that neighbours are not halves of each other.
//! - `dewitt`: multiplication by a primitive root modulo a prime (DeWitt, "The Wisconsin Benchmark: Past, Present, and Future",
//!   in The Benchmark Handbook, 1991, section 2 and its program).
//!
//! Invariant: the number at a place is a function of the order's name, n, the seed and the place; the states that a walk remembers
//! make the next answer cheaper and never different.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::shuffle::Shuffle;
use crate::trial::WISCONSIN_PERMUTATION;

/// Names of the orders that studies can choose, the default first.
pub const PERMUTATIONS: [&str; 4] = [WISCONSIN_PERMUTATION, "lfsr", "lfsr-leap", "dewitt"];

/// Largest n of all orders except DeWitt's: the largest that 32-bit attributes can number.
pub(super) const ROWS_MAX: u64 = (1 << 31) - 1;

/// Feedback masks of registers of 2 to 31 bits: bit i stands for the power i + 1 of a primitive polynomial.
const MASKS: [u32; 30] = [
    0x3,
    0x6,
    0xc,
    0x14,
    0x30,
    0x60,
    0xb8,
    0x110,
    0x240,
    0x500,
    0x829,
    0x100d,
    0x3500,
    0x6000,
    0xd008,
    0x1_2000,
    0x2_0400,
    0x4_0023,
    0x9_0000,
    0x14_0000,
    0x30_0000,
    0x42_0000,
    0xe1_0000,
    0x120_0000,
    0x200_0023,
    0x400_0013,
    0x900_0000,
    0x1400_0000,
    0x2000_0029,
    0x4800_0000,
];

/// DeWitt's pairs of generator and prime, for n up to 10^3, 10^4 and so on.
const ROOTS: [(u64, u32, u32); 6] = [
    (1000, 279, 1009),
    (10_000, 2969, 10_007),
    (100_000, 21_395, 100_003),
    (1_000_000, 2107, 1_000_003),
    (10_000_000, 211, 10_000_019),
    (100_000_000, 21, 100_000_007),
];

/// Minimum number of places between two remembered states.
const STRIDE_LEAST: u64 = 256;

/// Maximum number of remembered states: 256 KiB of them.
const REMEMBERED_MAX: u64 = 1 << 16;

/// An order of the numbers 0 to n - 1.
#[derive(Debug)]
pub(super) enum Permutation {
    Shuffled(Shuffle),
    Walked(Walked),
}

/// An order given by a walk.
#[derive(Debug)]
pub(super) struct Walked {
    walk: Walk,
    n: u64,
    first: u32,
    stride: u64,
    /// The states at the places 0, stride, 2 stride ..., computed when a place far from the last one is first requested.
    remembered: OnceLock<Box<[u32]>>,
    /// The place (upper half) and state (lower half) of the last answer; 0, which is not a state, before the first answer.
    last: AtomicU64,
}

/// The step from one state to the next.
#[derive(Debug)]
enum Walk {
    /// One shift, with this mask.
    Shift(u32),
    /// Several shifts at once: a linear map, stored as its values for each byte of the state.
    Leap(Box<[[u32; 256]; 4]>),
    /// Multiplication by the first number modulo the second.
    Multiply(u32, u32),
}

impl Permutation {
    /// Creates the order of 0 to `n` - 1 by its name. The seed determines the order of a shuffle, and where a walk begins; with seed 1 it begins where the
    /// sources begin.
    ///
    /// # Errors
    /// A sentence, for an unknown name or an n that the order cannot have.
    pub(super) fn new(name: &str, n: u64, seed: u64) -> Result<Self, String> {
        let (walk, start) = match name {
            WISCONSIN_PERMUTATION if n > ROWS_MAX => return Err(beyond_attributes(n, name)),
            WISCONSIN_PERMUTATION => return Ok(Permutation::Shuffled(Shuffle::new(n, seed))),
            "lfsr" | "lfsr-leap" => register(name, n, seed)?,
            "dewitt" => root(n, seed)?,
            other => {
                return Err(format!("unknown record.permutation \"{other}\"; there are {}", PERMUTATIONS.join(", ")));
            }
        };
        Ok(Permutation::Walked(Walked::new(walk, start, n.max(1))))
    }

    /// Returns the number at a place; places from n on count from the beginning again.
    #[inline]
    pub(super) fn at(&self, place: u64) -> u32 {
        match self {
            // The number is below n, which fits 32 bits.
            Permutation::Shuffled(shuffle) => shuffle.at(place) as u32,
            Permutation::Walked(walked) => walked.at(place),
        }
    }
}

impl Walked {
    fn new(walk: Walk, start: u32, n: u64) -> Self {
        let first = if u64::from(start) <= n { start } else { walk.next_below(start, n) };
        let stride = n.div_ceil(REMEMBERED_MAX).max(STRIDE_LEAST);
        Walked { walk, n, first, stride, remembered: OnceLock::new(), last: AtomicU64::new(0) }
    }

    #[inline]
    fn at(&self, place: u64) -> u32 {
        let place = place % self.n;
        let last = self.last.load(Ordering::Relaxed);
        let (last_place, last_state) = (last >> 32, last as u32);
        let known = place / self.stride * self.stride;
        let (mut from, mut state) = if last_state != 0 && (known..=place).contains(&last_place) {
            (last_place, last_state)
        } else if known == 0 {
            (0, self.first)
        } else if last_state != 0 && last_place < place && place - last_place <= self.stride {
            (last_place, last_state)
        } else {
            (known, self.remembered.get_or_init(|| self.remember())[(place / self.stride) as usize])
        };
        while from < place {
            state = self.walk.next_below(state, self.n);
            from += 1;
        }
        self.last.store((place << 32) | u64::from(state), Ordering::Relaxed);
        state - 1
    }

    fn remember(&self) -> Box<[u32]> {
        let mut states = Vec::with_capacity(self.n.div_ceil(self.stride) as usize);
        let mut state = self.first;
        for place in 0..self.n {
            if place % self.stride == 0 {
                states.push(state);
            }
            state = self.walk.next_below(state, self.n);
        }
        states.into_boxed_slice()
    }
}

impl Walk {
    /// Returns the next state that is not above `n`.
    #[inline]
    fn next_below(&self, state: u32, n: u64) -> u32 {
        let mut state = state;
        loop {
            state = self.next(state);
            if u64::from(state) <= n {
                return state;
            }
        }
    }

    #[inline]
    fn next(&self, state: u32) -> u32 {
        match self {
            Walk::Shift(mask) => shift(state, *mask),
            Walk::Leap(bytes) => {
                let part = |byte: usize| bytes[byte][(state >> (8 * byte)) as usize & 0xff];
                part(0) ^ part(1) ^ part(2) ^ part(3)
            }
            Walk::Multiply(by, modulo) => multiply(state, *by, *modulo),
        }
    }
}

/// Returns a register for n states, and the state that it begins with.
fn register(name: &str, n: u64, seed: u64) -> Result<(Walk, u32), String> {
    if n > ROWS_MAX {
        return Err(beyond_attributes(n, name));
    }
    let bits = (u64::BITS - n.leading_zeros()).max(2);
    let period = (1_u64 << bits) - 1;
    let mask = MASKS[bits as usize - 2];
    let start = (seed.wrapping_sub(1) % period + 1) as u32;
    let walk = if name == "lfsr" { Walk::Shift(mask) } else { leap(mask, leap_of(bits)) };
    Ok((walk, start))
}

/// Shifts once to the right, with the feedback of the bit that falls out.
#[inline]
fn shift(state: u32, mask: u32) -> u32 {
    (state >> 1) ^ (mask & 0_u32.wrapping_sub(state & 1))
}

/// Returns the number of shifts in a leap: the smallest prime above the number of bits that does not divide the period, so that a walk of leaps
/// visits all states, too.
fn leap_of(bits: u32) -> u32 {
    let period = (1_u64 << bits) - 1;
    let is_prime = |number: u32| (2..number).all(|divisor| !number.is_multiple_of(divisor));
    let leaps = bits + 1..;
    leaps.into_iter().find(|leap| is_prime(*leap) && !period.is_multiple_of(u64::from(*leap))).unwrap_or(1)
}

fn leap(mask: u32, shifts: u32) -> Walk {
    let value = |byte: usize, bits: usize| (0..shifts).fold((bits as u32) << (8 * byte), |state, _| shift(state, mask));
    let mut bytes = Box::new([[0; 256]; 4]);
    for (byte, values) in bytes.iter_mut().enumerate() {
        values.iter_mut().enumerate().for_each(|(bits, entry)| *entry = value(byte, bits));
    }
    Walk::Leap(bytes)
}

/// Returns DeWitt's pair for n states, and the state that the walk begins with: for seed 1 the square of the generator.
fn root(n: u64, seed: u64) -> Result<(Walk, u32), String> {
    let Some((_, by, modulo)) = ROOTS.into_iter().find(|(most, ..)| n <= *most) else {
        let most = ROOTS[ROOTS.len() - 1].0;
        return Err(too_many(n, "dewitt", most, "its program ends there; leave the permutation out"));
    };
    let start = power(by, seed.wrapping_sub(1) % u64::from(modulo - 1) + 2, modulo);
    Ok((Walk::Multiply(by, modulo), start))
}

fn power(base: u32, exponent: u64, modulo: u32) -> u32 {
    let (mut product, mut square, mut left) = (1, base, exponent);
    while left > 0 {
        if left & 1 == 1 {
            product = multiply(product, square, modulo);
        }
        square = multiply(square, square, modulo);
        left >>= 1;
    }
    product
}

#[inline]
fn multiply(a: u32, b: u32, modulo: u32) -> u32 {
    (u64::from(a) * u64::from(b) % u64::from(modulo)) as u32
}

fn beyond_attributes(n: u64, name: &str) -> String {
    too_many(n, name, ROWS_MAX, "32-bit attributes number no more")
}

fn too_many(n: u64, name: &str, most: u64, why: &str) -> String {
    format!("record.rows is {n}; record.permutation \"{name}\" has at most {most} rows: {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(name: &str, n: u64, seed: u64) -> Vec<u32> {
        let permutation = Permutation::new(name, n, seed).unwrap();
        (0..n).map(|place| permutation.at(place)).collect()
    }

    #[test]
    fn every_number_occurs_exactly_once_for_any_size_and_seed() {
        for name in PERMUTATIONS {
            for n in [1, 2, 3, 4, 7, 8, 9, 100, 255, 256, 257, 999, 1000, 1001, 4095, 10_000, 10_001, 65_537, 100_000] {
                for seed in [0, 1, 2, 1_000_003, u64::MAX] {
                    let mut numbers = order(name, n, seed);
                    numbers.sort_unstable();
                    assert!(numbers.iter().copied().eq(0..n as u32), "{name}, {n} rows, seed {seed}");
                }
            }
        }
    }

    #[test]
    fn a_million_rows_have_every_number_once() {
        for name in PERMUTATIONS {
            let mut seen = vec![false; 1_000_000];
            order(name, 1_000_000, 1).into_iter().for_each(|number| {
                assert!(!std::mem::replace(&mut seen[number as usize], true), "{name}: {number} occurs twice");
            });
        }
    }

    #[test]
    fn places_can_be_asked_for_in_any_order() {
        for name in PERMUTATIONS {
            let expected = order(name, 20_000, 3);
            let permutation = Permutation::new(name, 20_000, 3).unwrap();
            let mut stream = crate::random::Stream::new(1, 2, 3);
            for _ in 0..3000 {
                let place = stream.below(20_000);
                assert_eq!(permutation.at(place), expected[place as usize], "{name} at {place}");
                assert_eq!(permutation.at(place), expected[place as usize], "{name} at {place} again");
            }
            assert_eq!(permutation.at(20_007), expected[7], "behind the end the order begins again");
        }
    }

    #[test]
    fn places_asked_for_by_several_threads_do_not_mix() {
        let expected = order("lfsr", 5000, 1);
        let permutation = Permutation::new("lfsr", 5000, 1).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let (permutation, expected) = (&permutation, &expected);
                scope.spawn(move || {
                    for turn in 0..5000 {
                        let place = (turn * (2 * thread + 1)) % 5000;
                        assert_eq!(permutation.at(place), expected[place as usize]);
                    }
                });
            }
        });
    }

    #[test]
    fn seeds_give_different_orders_and_memory_stays_bounded() {
        for name in PERMUTATIONS {
            assert_ne!(order(name, 1000, 1), order(name, 1000, 2));
            if let Permutation::Walked(large) = Permutation::new(name, 100_000_000, 1).unwrap() {
                assert!(large.n.div_ceil(large.stride) <= REMEMBERED_MAX);
            }
        }
    }

    fn prime_factors(number: u64) -> Vec<u64> {
        let (mut rest, mut divisor, mut factors) = (number, 2, Vec::new());
        while divisor * divisor <= rest {
            if rest.is_multiple_of(divisor) {
                factors.push(divisor);
                while rest.is_multiple_of(divisor) {
                    rest /= divisor;
                }
            }
            divisor += 1;
        }
        factors.extend((rest > 1).then_some(rest));
        factors
    }

    /// Returns the state reached from 1 after `steps` steps: the product of the walk's linear maps by squaring.
    fn after(mask: u32, steps: u64) -> u32 {
        let apply = |map: &[u32; 32], state: u32| {
            (0..32).filter(|bit| state >> bit & 1 == 1).fold(0, |sum, bit| sum ^ map[bit as usize])
        };
        let mut map: [u32; 32] = std::array::from_fn(|bit| shift(1 << bit, mask));
        let (mut state, mut left) = (1, steps);
        while left > 0 {
            if left & 1 == 1 {
                state = apply(&map, state);
            }
            map = std::array::from_fn(|bit| apply(&map, map[bit]));
            left >>= 1;
        }
        state
    }

    #[test]
    fn every_register_visits_all_states_before_it_returns() {
        for (mask, bits) in MASKS.into_iter().zip(2..) {
            let period = (1_u64 << bits) - 1;
            assert_eq!(after(mask, period), 1, "{bits} bits");
            for factor in prime_factors(period) {
                assert_ne!(after(mask, period / factor), 1, "{bits} bits return after 1/{factor} of the states");
            }
            assert!(!period.is_multiple_of(u64::from(leap_of(bits))));
        }
    }

    #[test]
    fn every_root_of_dewitt_visits_all_states_before_it_returns() {
        for (most, by, modulo) in ROOTS {
            let order = u64::from(modulo) - 1;
            assert!(most <= order && prime_factors(u64::from(modulo)) == [u64::from(modulo)]);
            for factor in prime_factors(order) {
                let state = power(by, order / factor, modulo);
                assert_ne!(state, 1, "{by} modulo {modulo} returns after 1/{factor} of the states");
            }
        }
    }

    #[test]
    fn what_a_walk_cannot_have_is_refused_with_the_remedy() {
        let refusal = |name, n| Permutation::new(name, n, 1).err().unwrap();
        assert_eq!(
            refusal("random", 10),
            "unknown record.permutation \"random\"; there are feistel, lfsr, lfsr-leap, dewitt"
        );
        assert!(refusal("dewitt", 100_000_001).contains("at most 100000000 rows"));
        for name in ["feistel", "lfsr"] {
            assert!(refusal(name, 1 << 31).contains("at most 2147483647 rows"));
            assert!(Permutation::new(name, ROWS_MAX, 1).is_ok());
        }
    }
}
