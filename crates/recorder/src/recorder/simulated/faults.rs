//! Counts of what was done to a recorder and its database. Main type: [`Faults`].

/// How many numbers of [`Faults::all`] are faults; those behind them are other counts.
const KINDS: usize = 12;

/// Counts of faults, and of what was done meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// Connections that were lost, before or after the request was done.
    pub losses: u64,
    /// Statements that the database refused for a while.
    pub refusals: u64,
    /// Answers that took seconds.
    pub delays: u64,
    /// Times when the database's process ended.
    pub crashes: u64,
    /// Crashes in which the database forgot commits.
    pub forgotten: u64,
    /// Times when somebody changed the database: a trigger that refuses records, a table removed.
    pub meddled: u64,
    /// Times when the recorder's process ended in the middle.
    pub kills: u64,
    /// Power cuts.
    pub cuts: u64,
    /// Disks that failed.
    pub failures: u64,
    /// Disks that were full.
    pub full: u64,
    /// Times when the clock of the day was set.
    pub jumps: u64,
    /// Spools whose place an older copy has taken.
    pub copies: u64,
    /// Requests that were sent again.
    pub again: u64,
    /// Records that were acknowledged.
    pub records: u64,
    /// Records that were in quarantine at the checks.
    pub quarantined: u64,
    /// Lives in which a second recorder wrote into the same tables.
    pub neighbours: u64,
    /// Batches that were prepared while the one before was committed, and written.
    pub prepared: u64,
}

impl Faults {
    /// Returns all numbers, each with the name that follows it in output.
    fn all(&mut self) -> [(&mut u64, &'static str); 17] {
        [
            (&mut self.losses, "connections lost"),
            (&mut self.refusals, "refusals"),
            (&mut self.delays, "late answers"),
            (&mut self.crashes, "crashes of the database"),
            (&mut self.meddled, "changes of it by others"),
            (&mut self.kills, "kills"),
            (&mut self.cuts, "power cuts"),
            (&mut self.failures, "failing disks"),
            (&mut self.full, "full disks"),
            (&mut self.jumps, "jumps of the clock"),
            (&mut self.copies, "older spools put back"),
            (&mut self.again, "requests sent once more"),
            (&mut self.forgotten, "of the crashes forgot commits"),
            (&mut self.records, "records acknowledged"),
            (&mut self.quarantined, "found in quarantine"),
            (&mut self.neighbours, "lives with a second recorder"),
            (&mut self.prepared, "batches prepared in advance"),
        ]
    }

    /// Returns the number of all faults.
    pub fn count(&self) -> u64 {
        let mut all = *self;
        all.all().into_iter().take(KINDS).map(|(number, _)| *number).sum()
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Faults) {
        let mut other = *other;
        self.all().into_iter().zip(other.all()).for_each(|((own, _), (other, _))| *own += *other);
    }
}

impl std::fmt::Display for Faults {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut all = *self;
        let told = all.all().map(|(number, name)| format!("{number} {name}"));
        let (faults, others) = told.split_at(KINDS);
        write!(out, "{} faults ({}), {}", self.count(), faults.join(", "), others.join(", "))
    }
}
