//! What must hold of the cost of an input. Main function: [`check`].

use std::sync::Mutex;

use loadline::fuzzed::Target;

use super::counting::{Cost, counted};

/// Bytes of an input in which something is repeated, at most.
const REPEATED_BYTES: usize = 64 << 10;
/// Work that need not be linear, because there is so little of it: what ends at its first byte and what is read to its end are both in order.
const BRANCHES_FREE: u64 = 64 * REPEATED_BYTES as u64;
const ALLOCATED_FREE: u64 = 64 * REPEATED_BYTES as u64;
/// Four times as much input may cost so many times as much: that it is sorted or hashed is no fault.
const TIMES_MOST: u64 = 7;
/// Where it costs more, the second half of what was added may cost so many times as much as the first. Work that begins late, because what stands before swallows
/// the first repetitions, costs as much in both; work that grows with the square costs nearly twice as much in the second.
const HALVES_MOST: f64 = 1.4;

/// Branches that inputs took, and that repetitions did: counted and not timed, so that the same inputs are repeated each time.
static SPENT: Mutex<(u64, u64)> = Mutex::new((0, 0));

/// Gives the input to the target, and now and then longer ones that are made of it.
pub fn check(target: &Target, input: &[u8]) {
    let cost = counted(|| target.try_with(input));
    let (least, for_each) = target.memory;
    let most = least + for_each * input.len();
    assert!(
        cost.held <= most as u64,
        "{} bytes are allocated at a time for {}, and {most} at most",
        cost.held,
        input.len()
    );
    // A quarter of the work goes into repetitions; one input alone is always repeated.
    let mut spent = SPENT.lock().expect("a check that panics ends the process");
    spent.0 += cost.branches;
    if !target.is_linear || input.len() < 4 || spent.1 > spent.0 / 3 {
        return;
    }
    spent.1 += repeat(target, input);
}

/// Repeats a part of the input, and four times as often; tells how many branches that took.
fn repeat(target: &Target, input: &[u8]) -> u64 {
    let hash = input
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    let mut from = hash as usize % input.len();
    let mut length = 1 + (hash >> 20) as usize % (input.len() - from).min(64);
    // Every other time a whole line, where there are lines: parts of lines are mostly refused at once.
    let line_end = input[from..].iter().position(|byte| *byte == b'\n');
    if let Some(end) = line_end.filter(|_| hash >> 40 & 1 == 1) {
        let start = input[..from].iter().rposition(|byte| *byte == b'\n').map_or(1.min(from), |before| before + 1);
        (from, length) = (start, from + end + 1 - start);
    }
    let part = &input[from..from + length];
    let times = REPEATED_BYTES.saturating_sub(input.len()) / (4 * length);
    let cost = |times: usize| {
        let repeated = [&input[..from], &part.repeat(times), &input[from + length..]].concat();
        counted(|| target.try_with(&repeated))
    };
    let (less, more) = (cost(times), cost(4 * times));
    let grows = |(less, more): (&Cost, &Cost), times: usize, of: fn(&Cost) -> u64, free: u64| {
        of(more) > TIMES_MOST * of(less) + free && {
            let between = of(&cost(5 * times / 2)) as f64;
            of(more) as f64 - between > HALVES_MOST * (between - of(less) as f64)
        }
    };
    for (what, of, free) in [
        ("branches", (|cost| cost.branches) as fn(&Cost) -> u64, BRANCHES_FREE),
        ("allocations", |cost| cost.allocated, ALLOCATED_FREE),
    ] {
        if grows((&less, &more), times, of, free) {
            // Work that begins only once enough is there is a step, and no growth: it does not come again with four times as much.
            let most = cost(16 * times);
            assert!(
                !grows((&more, &most), 4 * times, of, free),
                "{what} grow faster than the input: {:?} repeated {times}, {} and {} times behind {from} bytes: {less:?}, {more:?}, {most:?}",
                String::from_utf8_lossy(part),
                4 * times,
                16 * times
            );
        }
    }
    less.branches + more.branches
}
