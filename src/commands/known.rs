//! What is known of how long a study takes before it is run. Main function: [`known`]. Invariant: nothing is started, and nothing is changed.

use super::cache::Cache;
use super::fixture::identity_of;
use super::paces;
use crate::study::Study;
use crate::study::estimate::{Known, estimate};
use crate::trial::Case;

/// What this machine measured before, and which tables it has kept.
pub fn known(study: &Study) -> Known {
    let cache = Cache::open();
    let is_there = |cache: &Cache, case: &Case| {
        identity_of(&case.settings).is_ok_and(|identity| identity.is_some_and(|identity| cache.has(&identity)))
    };
    let is_filled = |case: &&Case| cache.as_ref().is_some_and(|cache| is_there(cache, case));
    let filled = study.cases.iter().filter(is_filled).map(|case| case.id.clone()).collect();
    Known { paces: paces::read(), keeps_tables: cache.is_some(), filled }
}

/// About how long a study takes at least, in seconds.
pub fn least_s(study: &Study) -> f64 {
    estimate(study, &known(study)).elapsed_s.0
}
