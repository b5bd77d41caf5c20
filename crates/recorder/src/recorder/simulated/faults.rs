//! What was done to a recorder and its database, counted. Main type: [`Faults`].

/// What befell them, and what was done meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Faults {
    /// Connections that were lost, with or without what was asked done.
    pub losses: u64,
    /// Statements that the database refused for a while.
    pub refusals: u64,
    /// Answers that took seconds.
    pub delays: u64,
    /// Times when the database's process ended.
    pub crashes: u64,
    /// Among them those in which it forgot what it had committed.
    pub forgotten: u64,
    /// Times when somebody changed the database: a trigger that refuses records, a table away.
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
    /// Requests that were sent once more.
    pub again: u64,
    /// Records that were acknowledged.
    pub records: u64,
    /// Records that were in quarantine when it was looked.
    pub quarantined: u64,
}

impl Faults {
    fn all(&mut self) -> [&mut u64; 14] {
        let Faults {
            losses,
            refusals,
            delays,
            crashes,
            forgotten,
            meddled,
            kills,
            cuts,
            failures,
            full,
            jumps,
            again,
            ..
        } = self;
        let (records, quarantined) = (&mut self.records, &mut self.quarantined);
        [
            losses,
            refusals,
            delays,
            crashes,
            forgotten,
            meddled,
            kills,
            cuts,
            failures,
            full,
            jumps,
            again,
            records,
            quarantined,
        ]
    }

    /// All of them.
    pub fn count(&self) -> u64 {
        let of_database = self.losses + self.refusals + self.delays + self.crashes + self.meddled;
        of_database + self.kills + self.cuts + self.failures + self.full + self.jumps + self.again
    }

    /// Those of another run, too.
    pub fn add(&mut self, other: &Faults) {
        let mut other = *other;
        self.all().into_iter().zip(other.all()).for_each(|(own, other)| *own += *other);
    }
}

impl std::fmt::Display for Faults {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Faults { losses, refusals, delays, crashes, forgotten, meddled, .. } = self;
        let Faults { kills, cuts, failures, full, jumps, again, records, quarantined, .. } = self;
        write!(
            out,
            "{} faults ({losses} connections lost, {refusals} refusals, {delays} late answers, {crashes} crashes of the database, which forgot commits in \
             {forgotten} of them, {meddled} changes of it by others, {kills} kills, {cuts} power cuts, {failures} failing disks, {full} full disks, \
             {jumps} jumps of the clock, {again} requests sent once more), {records} records acknowledged, {quarantined} found in quarantine",
            self.count()
        )
    }
}
