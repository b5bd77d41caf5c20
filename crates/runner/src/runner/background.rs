//! The load in the background: its connections, and what it adds to a measurement.
//!
//! Main functions: [`group`] and [`take_in`]. Invariant: its operations are in no total of the load under study, but a problem
//! with them makes the trial invalid too.

use std::sync::Arc;

use super::driving::sources;
use crate::load::{Connections, Group, Observed, Share, validity};
use crate::measurement::Measurement;
use crate::operation::KindNames;
use crate::reason::Reason;
use crate::trial::{LoadSettings, Settings, Trial};
use crate::workload::{Client, Work};

/// Largest permitted lateness of the generator in the background, as a share of the mean response time. Next to a closed loop that takes
/// every CPU it can get, a thread that has slept waits for its turn; the study is about the other load, and the reported times include
/// the lateness.
pub(super) const LATE_SHARE: f64 = 0.5;
/// Seed offset that makes the random numbers of the two loads different.
const SEED: u64 = 0x6261_636b;

/// Returns the load of the clients in the background, which lasts as long as the other load; `None` without `[background]`.
pub(super) fn load_settings(settings: &Settings, beside: &LoadSettings) -> Option<LoadSettings> {
    let background = settings.background.as_ref()?;
    Some(LoadSettings {
        arrivals: background.arrivals,
        clients: background.clients,
        rate_per_s: Some(background.rate_per_s),
        trace: None,
        think_s: 0.0,
        samples: false,
        loops: None,
        statements_as_text: false,
        pipeline: false,
        connects_each_time: false,
        ..beside.clone()
    })
}

/// Returns the group of the clients in the background, with their connections.
pub(super) fn group<'a>(
    load: &'a LoadSettings,
    trial: &Trial,
    work: &Arc<Work>,
    connections: Connections,
) -> anyhow::Result<Group<'a>> {
    let client = |number| Client { number, of: load.clients, seed: trial.seed ^ SEED };
    let sources = sources(work, 0..load.clients, |number| work.background(client(number)))?;
    Ok(Group {
        settings: load,
        share: Share::WHOLE,
        connections,
        sources,
        keeps_acknowledged: work.retirement().is_some(),
        pins_loops: false,
    })
}

/// Adds the observations of the background to a measurement, with the reasons that make it invalid.
pub(super) fn take_in(measurement: &mut Measurement, load: &LoadSettings, observed: &Observed, is_embedded: bool) {
    let alone = Measurement {
        measured_s: observed.measured_s,
        operations: observed.tally.operations(&KindNames::default()),
        clients: observed.clients.clone(),
        generator_late: observed.tally.generator_late.clone(),
        loops: observed.loops.clone(),
        errors: observed.tally.errors.clone(),
        ..Measurement::unmeasured(&measurement.trial)
    };
    let circumstances = validity::Circumstances {
        tolerated_failures: load.tolerated_failures,
        is_embedded,
        is_cut_short: observed.is_cut_short,
        always_busy_clients: None,
        offered_per_s: load.rate_per_s,
        late_share: LATE_SHARE,
        is_sought: false,
        stored: None,
    };
    let reasons = validity::reasons(&alone, circumstances);
    measurement
        .invalid_because
        .extend(reasons.into_iter().map(|reason| Reason::InBackground { reason: Box::new(reason) }));
    measurement.background = alone.operations;
    measurement.client_cpu_s += observed.loops.iter().map(|each| each.cpu_s).sum::<f64>();
    measurement.loops.extend(alone.loops);
    for (message, count) in alone.errors {
        *measurement.errors.entry(message).or_default() += count;
    }
}
