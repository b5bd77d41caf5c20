//! A recorder from its door to its database, in a world that fails: killed processes, power cuts, failing and full disks, databases that refuse, hang up,
//! end and forget, clocks that are set, requests that come twice. After every step the acknowledged records are looked for. Main function: [`run`].
//!
//! One thread does everything in simulated time, so that a seed determines it: callers do the spool's work themselves, writers take their turns when they are told
//! to, and while one waits for the database others may send or take their turns. In some lives a second recorder writes into the same tables.
//!
//! Invariant: the recorder's own code runs; only disks, clocks and the database are simulated.

mod clock;
mod copied;
mod database;
mod failing;
mod faults;
mod neighbour;
mod others;
mod process;
mod scratch;
mod senders;
mod session;
mod truth;
mod world;

pub use faults::Faults;
pub use world::run;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorder_keeps_what_it_acknowledged_whatever_befalls_it_and_its_database() {
        crate::recorder::log::be_silent();
        let mut all = Faults::default();
        for seed in 0..60 {
            all.add(&run(seed).unwrap_or_else(|told| panic!("{told}")));
        }
        // A simulation in which little happens proves nothing.
        let Faults { losses, refusals, delays, crashes, forgotten, meddled, .. } = all;
        assert!(
            losses > 200 && refusals > 200 && delays > 50 && crashes > 100 && forgotten > 20 && meddled > 20,
            "{all}"
        );
        let Faults {
            kills,
            cuts,
            failures,
            full,
            jumps,
            again,
            records,
            quarantined,
            copies,
            prepared,
            neighbours,
            ..
        } = all;
        assert!(kills > 150 && cuts > 150 && failures > 50 && full > 30 && jumps > 30 && again > 300, "{all}");
        assert!(copies > 5 && prepared > 100 && neighbours > 5, "{all}");
        assert!(records > 8_000 && quarantined > 5_000, "{all}");
    }

    #[test]
    fn ids_are_remembered_whatever_clocks_writers_began_with() {
        crate::recorder::log::be_silent();
        // One writer's clock ran on while the database's stood still, and another began with the database's.
        run(100_142).unwrap_or_else(|told| panic!("{told}"));
    }

    #[test]
    fn the_same_seed_is_the_same_life() {
        crate::recorder::log::be_silent();
        for seed in 100..106 {
            assert_eq!(run(seed), run(seed), "seed {seed}");
        }
    }
}
