//! The spool's counters. Main type: [`Counts`].

/// What was counted since the spool was created. All are rows, except entries and bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Acknowledged rows.
    pub acknowledged: u64,
    /// Rows known to be committed in the database, and not retired.
    pub committed: u64,
    /// Rows that were committed and are deleted because of their age.
    pub retired: u64,
    /// Rows that wait in the spool.
    pub spooled: u64,
    /// Rows that the database refused and that are in quarantine.
    pub quarantined: u64,
    /// Bytes of the waiting entries.
    pub spooled_bytes: u64,
    /// The number of waiting entries.
    pub entries: u64,
    /// Bytes of the records in quarantine.
    pub quarantined_bytes: u64,
    /// Of the waiting rows, those that the database has refused and that wait for room in quarantine.
    pub deferred: u64,
    /// Bytes of the deferred rows.
    pub deferred_bytes: u64,
}

impl Counts {
    /// Returns the counters of a spool, which knows only of commits, with the rows that were retired since. Retired rows were acknowledged, also those that a spool does not
    /// know because it is a copy that is older than the database.
    #[must_use]
    pub fn with_retired(self, retired: u64) -> Self {
        let committed = self.committed.saturating_sub(retired);
        let acknowledged = committed + retired + self.spooled + self.quarantined;
        Counts { acknowledged, committed, retired, ..self }
    }

    /// Returns the bytes that count against the spool's bound. Refused records without room in quarantine have as much room of their own as the
    /// spool has; only what exceeds that is taken from the room of the entries that wait for the database.
    pub fn held_bytes(&self, bound_bytes: u64, quarantine_bound_bytes: u64) -> u64 {
        let without_room = self.deferred_bytes + self.quarantined_bytes.saturating_sub(quarantine_bound_bytes);
        self.spooled_bytes.saturating_sub(self.deferred_bytes) + without_room.saturating_sub(bound_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_retired_row_was_acknowledged_also_one_that_the_counters_do_not_know() {
        let counts = Counts { acknowledged: 100, committed: 60, spooled: 30, quarantined: 10, ..Counts::default() };
        for (retired, acknowledged, committed) in [(0, 100, 60), (45, 100, 15), (60, 100, 0), (65, 105, 0)] {
            let shown = counts.with_retired(retired);
            assert_eq!((shown.acknowledged, shown.committed, shown.retired), (acknowledged, committed, retired));
        }
    }
}
