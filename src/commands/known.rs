//! What is known of how long a study takes before it is run. Main function: [`known`]. Invariant: nothing is started, and nothing is changed.

use std::collections::BTreeMap;

use crate::runner::cache::Cache;
use crate::runner::fixture::identity_of;
use crate::runner::paces;
use crate::study::Study;
use crate::study::content::{content_of, is_kept};
use crate::study::estimate::{Known, estimate};
use crate::trial::{Case, Settings};
use crate::workload::Work;

/// What this machine measured before, and which tables it has kept.
pub fn known(study: &Study) -> Known {
    let cache = Cache::open();
    // Many cases have the same tables, and to tell what is in them takes a while.
    let mut known = BTreeMap::new();
    let mut is_filled = |cache: &Cache, case: &Case| {
        let Some(tables) = tables(&case.settings) else { return false };
        let identity = || identity_of(&case.settings).ok()?;
        *known.entry(tables).or_insert_with(|| identity().is_some_and(|identity| cache.has(&identity)))
    };
    let kept = cache.iter().flat_map(|cache| study.cases.iter().map(move |case| (cache, case)));
    let filled = kept.filter(|(cache, case)| is_filled(cache, case)).map(|(_, case)| case.id.clone()).collect();
    Known { paces: paces::read(), keeps_tables: cache.is_some(), filled }
}

/// The tables of a case, as text; none where they are not kept.
fn tables(settings: &Settings) -> Option<String> {
    if !is_kept(settings) {
        return None;
    }
    let content = content_of(settings, &Work::new(settings).ok()?).ok()?;
    Some(format!("{:?} {content}", settings.database))
}

/// About how long a study takes at least, in seconds.
pub fn least_s(study: &Study) -> f64 {
    estimate(study, &known(study)).elapsed_s.0
}
