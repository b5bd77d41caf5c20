//! Knowledge about the duration of a study before it is run. Main function: [`known`]. Invariant: nothing is started and nothing is changed.

use std::collections::BTreeMap;

use crate::runner::cache::Cache;
use crate::runner::fixture::identity_of;
use crate::runner::paces;
use crate::study::Study;
use crate::study::content::{content_of, is_kept};
use crate::study::estimate::{Known, estimate};
use crate::trial::{Case, Settings};
use crate::workload::Work;

/// Returns the durations this machine measured before, and the tables it has kept.
pub fn known(study: &Study) -> Known {
    let cache = Cache::open();
    // Many cases have the same tables, and determining their content takes a while.
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

/// Returns the identity of a case's tables; `None` if they are not kept.
fn tables(settings: &Settings) -> Option<String> {
    if !is_kept(settings) {
        return None;
    }
    let content = content_of(settings, &Work::new(settings).ok()?).ok()?;
    Some(format!("{:?} {content}", settings.database))
}

/// Returns the approximate shortest duration of a study, in seconds.
pub fn least_s(study: &Study) -> f64 {
    estimate(study, &known(study)).elapsed_s.0
}
