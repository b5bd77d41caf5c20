//! Records that were sent but never answered because the server was away: some are stored and some are not, and only a look-up of each one tells.
//!
//! Main function: [`unanswered`]. Invariant: a lost record is never offset by an unanswered one that is stored, as in a mere count of rows.

use std::ops::Range;

use crate::load::Observed;
use crate::operation::Operation;
use crate::record::Cells;
use crate::statement::Request;
use crate::trial::Settings;
use crate::workload::{self, Work};

use super::stage::Current;

/// Largest number of records that are looked up; with more, none is looked up, and the number that could be gone is reported.
const MOST: u64 = 100_000;

/// Counts of records in the tables at the end.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    /// Number of acknowledged records and of records in the tables; `None` if they are not counted.
    pub stored: Option<(u64, u64)>,
    /// Number of unanswered records and of those among them that are stored; `None` if they were not looked up.
    pub unanswered: Option<(u64, u64)>,
}

/// Returns whether a trial needs to know for each record whether it was answered.
pub fn are_looked_for(settings: &Settings) -> bool {
    !settings.events.is_empty() && workload::only_adds(settings) && !settings.record.existing
}

/// Returns the number of unanswered records and how many of them are stored; `None` if they were not recorded or are too many.
///
/// # Errors
/// Fails if the database cannot be queried.
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

/// Returns how many of a client's records are stored.
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
