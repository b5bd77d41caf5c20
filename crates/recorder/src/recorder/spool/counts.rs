//! What a spool counts. Main type: [`Counts`].

/// What was counted since the spool was made. Rows, but for the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Acknowledged.
    pub acknowledged: u64,
    /// Known to be committed in the database.
    pub committed: u64,
    /// Waiting.
    pub spooled: u64,
    /// Refused by the database, and kept.
    pub quarantined: u64,
    /// Bytes of what waits.
    pub spooled_bytes: u64,
    /// Entries that wait.
    pub entries: u64,
    /// Bytes of what is in quarantine.
    pub quarantined_bytes: u64,
    /// Of what waits, what the database has refused, and waits for room in quarantine.
    pub deferred: u64,
    /// Bytes of that.
    pub deferred_bytes: u64,
}

impl Counts {
    /// What counts against the spool's bound. Refused records that find no room in quarantine have as much room of their own as the spool has:
    /// only what they take beyond that is taken from what waits for the database.
    pub fn held_bytes(&self, bound_bytes: u64, quarantine_bound_bytes: u64) -> u64 {
        let without_room = self.deferred_bytes + self.quarantined_bytes.saturating_sub(quarantine_bound_bytes);
        self.spooled_bytes.saturating_sub(self.deferred_bytes) + without_room.saturating_sub(bound_bytes)
    }
}
