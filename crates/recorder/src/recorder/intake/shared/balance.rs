//! Which parts a recorder gives up and which it takes. Main function: [`balance`], pure.
//!
//! Invariant: a part is given up only for another recorder that can write, and nobody takes more than an equal share, rounded up.

use std::collections::BTreeSet;

/// What a recorder knows of the parts and of the others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Seen {
    /// The number of recorders that can write, this one among them if it can.
    pub writing: u32,
    /// The parts that somebody has.
    pub taken: BTreeSet<u32>,
}

/// What a recorder does next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Moves {
    /// Its parts that it gives up, in order.
    pub give: Vec<u32>,
    /// Free parts that it tries to take.
    pub take: Vec<u32>,
}

/// The standing of a recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Able {
    /// It can write.
    Yes,
    /// The database did not take what it wrote lately.
    NotNow,
    /// The database has not taken what it wrote for too long: it gives its parts to others that can write.
    No,
}

/// Returns what a recorder does that has the parts `own` of `parts`. `first` is the part at which it begins to look for free ones, so that several recorders do
/// not all try the same.
pub(super) fn balance(parts: u32, seen: &Seen, own: &BTreeSet<u32>, able: Able, first: u32) -> Moves {
    let mut moves = Moves::default();
    let target = match able {
        Able::Yes => parts.div_ceil(seen.writing.max(1)) as usize,
        Able::NotNow => return moves,
        Able::No if seen.writing > 0 => 0,
        Able::No => return moves,
    };
    moves.give = own.iter().rev().take(own.len().saturating_sub(target)).copied().collect();
    let order = (0..parts).map(|place| (first % parts.max(1) + place) % parts);
    let free = order.filter(|part| !seen.taken.contains(part) && !own.contains(part));
    moves.take = free.take(target.saturating_sub(own.len())).collect();
    moves
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorders that look one after another, in turns.
    struct World {
        parts: u32,
        owners: Vec<BTreeSet<u32>>,
        able: Vec<Able>,
    }

    impl World {
        fn new(parts: u32, recorders: usize) -> Self {
            World { parts, owners: vec![BTreeSet::new(); recorders], able: vec![Able::Yes; recorders] }
        }

        fn turn(&mut self) {
            for place in 0..self.owners.len() {
                let writing = self.able.iter().filter(|able| **able == Able::Yes).count() as u32;
                let taken = self.owners.iter().flatten().copied().collect();
                let seen = Seen { writing, taken };
                let moves = balance(self.parts, &seen, &self.owners[place], self.able[place], place as u32 * 5);
                let own = &mut self.owners[place];
                moves.give.iter().for_each(|part| assert!(own.remove(part), "it gives only what it has"));
                own.extend(moves.take);
                let all = self.owners.iter().map(BTreeSet::len).sum::<usize>();
                let different = self.owners.iter().flatten().collect::<BTreeSet<_>>().len();
                assert_eq!(all, different, "a part has one owner");
            }
        }

        fn counts(&self) -> Vec<usize> {
            self.owners.iter().map(BTreeSet::len).collect()
        }
    }

    #[test]
    fn all_parts_are_taken_and_nobody_has_more_than_an_equal_share() {
        for parts in 1..=40 {
            for recorders in 1..=9 {
                let mut world = World::new(parts, recorders);
                (0..3).for_each(|_| world.turn());
                let counts = world.counts();
                assert_eq!(counts.iter().sum::<usize>(), parts as usize);
                assert!(counts.iter().all(|count| *count <= parts.div_ceil(recorders as u32) as usize), "{counts:?}");
            }
        }
    }

    #[test]
    fn one_that_joins_gets_its_share_and_one_that_dies_leaves_its_parts() {
        let mut world = World::new(16, 2);
        (0..2).for_each(|_| world.turn());
        world.owners.push(BTreeSet::new());
        world.able.push(Able::Yes);
        (0..2).for_each(|_| world.turn());
        assert_eq!(world.counts(), [6, 6, 4]);
        (world.owners[0], world.able[0]) = (BTreeSet::new(), Able::No);
        (0..2).for_each(|_| world.turn());
        assert_eq!(world.counts(), [0, 8, 8]);
    }

    #[test]
    fn parts_are_given_up_only_for_somebody_who_can_write() {
        let mut world = World::new(6, 2);
        (0..2).for_each(|_| world.turn());
        world.able = vec![Able::NotNow; 2];
        world.turn();
        assert_eq!(world.counts(), [3, 3], "for a moment nothing changes");
        world.able = vec![Able::No; 2];
        world.turn();
        assert_eq!(world.counts(), [3, 3], "nobody could do better");
        world.able = vec![Able::No, Able::Yes];
        (0..2).for_each(|_| world.turn());
        assert_eq!(world.counts(), [0, 6]);
    }
}
