//! Targets for fuzzing: everything that reads bytes from a network or a foreign file, with the properties that must hold for any input.
//!
//! Main value: [`TARGETS`]. This module exists only for tests and for `fuzz/run` (`cfg(fuzzing)`).
//!
//! Invariant: a target panics if a property does not hold, and for no other reason; it is deterministic.

mod drafts;
mod formats;
mod traces;

use crate::fuzzed::Target;
use crate::{block, database, layout, recorder};

/// All targets.
pub static TARGETS: &[&Target] = &[
    &recorder::FUZZED_LINES,
    &recorder::FUZZED_HTTP,
    &recorder::FUZZED_HTTP2,
    &recorder::FUZZED_TCP,
    &recorder::FUZZED_PACKED,
    &recorder::FUZZED_PUBLISHED,
    &recorder::FUZZED_SPOOL,
    &recorder::FUZZED_FTP,
    &recorder::FUZZED_NAMES,
    &recorder::FUZZED_QUESTIONS,
    &database::FUZZED_MYSQL,
    &database::FUZZED_POSTGRES,
    &database::FUZZED_NATS,
    &database::FUZZED_REDIS,
    &database::FUZZED_CLICKHOUSE,
    &database::FUZZED_CASSANDRA,
    &database::FUZZED_INFLUXDB,
    &database::FUZZED_MONGODB,
    &database::FUZZED_VICTORIAMETRICS,
    &database::FUZZED_FRONTS,
    &layout::gorilla::PACKED_READINGS,
    &block::FUZZED_BLOCK,
    &block::FUZZED_AGE,
    &formats::CONFIG,
    &formats::STUDY,
    &formats::IMPORT,
    &formats::FIGURES,
    &drafts::DRAFTS,
    &traces::TRACES,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzed::Mutator;

    #[test]
    fn what_targets_begin_with_holds_and_so_do_its_parts() {
        for target in TARGETS {
            for seed in (target.seeds)() {
                target.try_with(&seed);
                target.try_with(&seed[..seed.len() / 2]);
                target.try_with(&seed[seed.len() / 2..]);
            }
            target.try_with(b"");
        }
    }

    #[test]
    fn what_differs_a_little_from_it_holds_too() {
        const RUNS: usize = 300;
        for target in TARGETS {
            let mut mutator = Mutator::new(target, 1);
            for _ in 0..RUNS {
                target.try_with(&mutator.next_input());
            }
        }
    }

    #[test]
    fn names_of_targets_occur_once() {
        let mut names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TARGETS.len());
    }
}
