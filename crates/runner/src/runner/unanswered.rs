//! Records that were sent and never answered, since the server was away: some are stored and some are not, and only who looks for each of them knows.
//!
//! Main function: [`unanswered`]. Invariant: a count of rows alone cannot tell a record that is gone from one that is there in its place.

use std::ops::Range;

use crate::load::Observed;
use crate::operation::Operation;
use crate::record::Cells;
use crate::statement::Request;
use crate::trial::Settings;
use crate::workload::{self, Work};

use super::stage::Current;

/// Records that are looked for, at most; with more, nobody looks, and it is said how many could be gone.
const MOST: u64 = 100_000;

/// What the tables hold in the end.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    /// Records that were acknowledged, and records that are there; none where they are not counted.
    pub stored: Option<(u64, u64)>,
    /// Records that were never answered, and those of them that are there; none where nobody looked for them.
    pub unanswered: Option<(u64, u64)>,
}

/// Whether a trial needs to know of each record whether it was answered.
pub fn are_looked_for(settings: &Settings) -> bool {
    !settings.events.is_empty() && workload::only_adds(settings) && !settings.record.existing
}

/// How many records were never answered, and how many of them are there; none where they were not kept apart, or are too many.
///
/// # Errors
/// When the database cannot be asked.
pub fn unanswered(settings: &Settings, observed: &Observed, current: &Current) -> anyhow::Result<Option<(u64, u64)>> {
    let clients = &observed.acknowledged;
    let sent: u64 = clients.iter().map(|client| client.count_unknown()).sum();
    if !are_looked_for(settings) || clients.iter().any(|client| client.is_cut) || sent > MOST {
        return Ok(None);
    }
    let work = Work::with_reads(settings).map_err(anyhow::Error::msg)?;
    let mut found = 0;
    for (client, acknowledged) in (0_u32..).zip(clients) {
        found += found_of(client, &acknowledged.unknown, &work, current)?;
    }
    Ok(Some((sent, found)))
}

/// How many of a client's records are there.
fn found_of(client: u32, runs: &[Range<u64>], work: &Work, current: &Current) -> anyhow::Result<u64> {
    if runs.is_empty() {
        return Ok(0);
    }
    let mut session = current.target.open()?;
    session.prepare(work.program_of(client))?;
    let mut request = Request { client, ..Request::default() };
    let mut found = 0;
    for record in runs.iter().cloned().flatten() {
        request.clear();
        work.bind(&Operation::Read { record }, &mut request);
        let answer = session.execute(&request, Some(&mut Cells::new()))?;
        found += u64::from(answer.empty == 0);
    }
    Ok(found)
}
