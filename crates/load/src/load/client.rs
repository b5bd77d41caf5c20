//! Clients: what a connection does next, and when. Shared by all drivers, which differ only in how they wait.

use crate::database::{Answer, DatabaseError};
use crate::histogram::CompactHistogram;
use crate::measurement::{ClientMeasurement, ClientTimes};
use crate::operation::{Operation, OperationKind};
use crate::record::Cells;
use crate::statement::Request;

use super::acknowledged::Acknowledged;
use super::arrivals::{Schedule, SourceTimes};
use super::phases::{Claim, Phases};
use super::source::Source;
use super::tally::{Ending, Tally, Times};

/// An operation of several parts, as far as it has progressed.
#[derive(Debug, Clone, Copy)]
struct Compound {
    kind: OperationKind,
    intended_ns: u64,
    /// Time at which the first part was sent; `None` before that.
    sent_ns: Option<u64>,
    /// Number of records of the largest part so far: these are the records of the operation.
    records: u64,
    /// Whether a part found nothing.
    empty: bool,
}

/// A client: its source of operations, the running operation and its times.
pub struct Client {
    /// Place among all clients of the trial.
    pub number: u32,
    source: Box<dyn Source>,
    /// The running operation.
    pub request: Request,
    think_ns: u64,
    /// Arrival of an open loop that this client has claimed and not yet sent.
    claimed_ns: Option<u64>,
    /// The client's own times, if it is a source.
    own: Option<SourceTimes>,
    /// Whether the source of operations says when each one is due.
    is_replaying: bool,
    /// The acknowledged records, if they are kept.
    acknowledged: Option<Acknowledged>,
    /// How often an operation is sent again whose transaction lost against another one, and how often the running one still may be.
    retries: u32,
    retries_left: u32,
    /// Number of the first record that the running operation inserts.
    first_record: Option<u64>,
    /// Time before which nothing is sent, because the connection was lost.
    pause_until_ns: u64,
    kind: OperationKind,
    records: u64,
    intended_ns: u64,
    sent_ns: u64,
    /// The time since which the operation is running (all parts of a compound together), and the total time of all
    /// completed ones. They are kept apart from the counted times, so that these can be checked by Little's law.
    running_since_ns: u64,
    running_ns: u64,
    free_ns: u64,
    counts: bool,
    /// The compound that the running operation is a part of.
    compound: Option<Compound>,
    /// Whether the request is the next part of a compound, which is sent at once.
    follows: bool,
    begun: u64,
    /// The client's measurement in the measured phase.
    measurement: ClientMeasurement,
    /// Response times in the measured phase, if they are kept per client.
    response_time: Option<CompactHistogram>,
    measure_ns: u64,
}

/// The results of one client.
#[derive(Debug)]
pub struct Finished {
    /// Place among all clients of the trial.
    pub number: u32,
    /// The measurement of the measured phase.
    pub measurement: ClientMeasurement,
    /// The acknowledged records of the whole trial, if they are kept.
    pub acknowledged: Option<Acknowledged>,
}

/// The next action of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Send the request now.
    Send,
    /// Wait until this time, then ask again.
    Wait(u64),
    /// The client has nothing more to do in this trial.
    Over,
}

impl Client {
    /// Makes a client that is free from `start_ns` on.
    pub fn new(number: u32, source: Box<dyn Source>, think_ns: u64, start_ns: u64, measure_ns: u64) -> Self {
        Client {
            number,
            source,
            request: Request { client: number, ..Request::default() },
            think_ns,
            claimed_ns: None,
            own: None,
            is_replaying: false,
            acknowledged: None,
            retries: 0,
            retries_left: 0,
            first_record: None,
            pause_until_ns: 0,
            kind: OperationKind::Insert,
            records: 0,
            intended_ns: start_ns,
            sent_ns: start_ns,
            running_since_ns: start_ns,
            running_ns: 0,
            free_ns: start_ns,
            counts: false,
            compound: None,
            follows: false,
            begun: 0,
            measurement: ClientMeasurement::default(),
            response_time: None,
            measure_ns,
        }
    }

    /// Makes the client keep its own response times.
    pub fn timed(self) -> Self {
        Client { response_time: Some(CompactHistogram::new()), ..self }
    }

    /// Sets how often an operation is sent again whose transaction lost against another one.
    pub fn retrying(self, retries: u32) -> Self {
        Client { retries, ..self }
    }

    /// Makes the client a source with these times.
    pub fn with_times(self, own: Option<SourceTimes>) -> Self {
        Client { own, ..self }
    }

    /// Sets whether the client sends each operation when its source says that it is due.
    pub fn replaying(self, is_replaying: bool) -> Self {
        Client { is_replaying, ..self }
    }

    /// Makes the client keep the acknowledged records.
    pub fn keeping(self) -> Self {
        Client { acknowledged: Some(Acknowledged::default()), ..self }
    }

    /// Returns the client's results, of which the measurement covers the measured phase.
    pub fn finish(&mut self) -> Finished {
        let response_time = self.response_time.as_ref().filter(|own| own.count() > 0).map(ClientTimes::of);
        let running_s = self.running_ns as f64 / 1e9;
        let measurement = ClientMeasurement { response_time, running_s, ..self.measurement };
        Finished { number: self.number, measurement, acknowledged: self.acknowledged.take() }
    }

    /// Begins the next operation if its intended time has come and the trial is not over.
    #[inline]
    pub fn next(&mut self, now_ns: u64, phases: &Phases) -> Next {
        if std::mem::take(&mut self.follows) {
            return Next::Send;
        }
        if phases.is_stopped() {
            return Next::Over;
        }
        let begun = match (&phases.schedule, &self.own) {
            (_, Some(_)) => self.begin_own(now_ns, phases),
            _ if self.is_replaying => self.begin_replayed(now_ns, phases),
            (None, None) => self.begin_closed(now_ns, phases),
            (Some(schedule), None) => self.begin_claimed(now_ns, schedule, phases),
        };
        if begun == Next::Send {
            self.request.clear();
            self.retries_left = self.retries;
            let operation = self.source.next(&mut self.request);
            self.kind = operation.kind();
            self.records = operation.records();
            self.first_record = if let Operation::Insert { first, .. } = operation { Some(first) } else { None };
            let intended_ns = self.intended_ns;
            let whole = |kind| Compound { kind, intended_ns, sent_ns: None, records: 0, empty: false };
            self.compound = self.source.compound().map(whole);
        }
        begun
    }

    #[inline]
    fn begin_closed(&mut self, now_ns: u64, phases: &Phases) -> Next {
        self.intended_ns = self.intended_ns.max(self.pause_until_ns);
        if self.intended_ns > now_ns {
            return if self.intended_ns >= phases.ends_ns() { Next::Over } else { Next::Wait(self.intended_ns) };
        }
        match phases.claim(self.intended_ns, self.begun) {
            Claim::Over => return Next::Over,
            Claim::WarmUp => self.counts = false,
            Claim::Measured => {
                self.counts = true;
                self.begun += 1;
            }
        }
        Next::Send
    }

    #[inline]
    fn begin_claimed(&mut self, now_ns: u64, schedule: &Schedule, phases: &Phases) -> Next {
        if self.pause_until_ns > now_ns {
            return Next::Wait(self.pause_until_ns);
        }
        let Some(intended_ns) =
            self.claimed_ns.take().or_else(|| schedule.claim()).filter(|due| *due < phases.ends_ns())
        else {
            return Next::Over;
        };
        if intended_ns > now_ns {
            self.claimed_ns = Some(intended_ns);
            return Next::Wait(intended_ns);
        }
        self.intended_ns = intended_ns;
        self.counts = intended_ns >= phases.measure_ns;
        Next::Send
    }

    /// Begins the next operation of a source. Operations that fall due before its last one is answered wait for that answer, and for no other client's.
    #[inline]
    fn begin_own(&mut self, now_ns: u64, phases: &Phases) -> Next {
        if self.pause_until_ns > now_ns {
            return Next::Wait(self.pause_until_ns);
        }
        let Some(own) = &mut self.own else { return Next::Over };
        let Some(intended_ns) = own.next_ns() else { return Next::Over };
        if intended_ns > now_ns {
            return Next::Wait(intended_ns);
        }
        own.advance();
        self.intended_ns = intended_ns;
        self.counts = (phases.measure_ns..phases.ends_ns()).contains(&intended_ns);
        Next::Send
    }

    /// Begins the next operation of a trace. Operations that fall due before the last one of their session is answered wait for that answer, and for no other session's.
    #[inline]
    fn begin_replayed(&mut self, now_ns: u64, phases: &Phases) -> Next {
        if self.pause_until_ns > now_ns {
            return Next::Wait(self.pause_until_ns);
        }
        let Some(due_ns) = self.source.due_ns() else { return Next::Over };
        let intended_ns = self.measure_ns.saturating_add_signed(due_ns);
        if intended_ns >= phases.ends_ns() {
            return Next::Over;
        }
        if intended_ns > now_ns {
            return Next::Wait(intended_ns);
        }
        (self.intended_ns, self.counts) = (intended_ns, due_ns >= 0);
        Next::Send
    }

    /// Gives up the source's operations that are due before a time, as long as the condition holds for the source.
    fn pass_over(&mut self, before_ns: u64, now_ns: u64, tally: &mut Tally, is_so: impl Fn(&dyn Source) -> bool) {
        while self.is_replaying
            && is_so(&*self.source)
            && let Some(due_ns) = self.source.due_ns()
            && let intended_ns = self.measure_ns.saturating_add_signed(due_ns)
            && intended_ns < before_ns
            && let Some(kind) = self.source.pass_over()
        {
            if due_ns >= 0 {
                tally.count_unsent(kind, intended_ns, now_ns.max(intended_ns));
            }
        }
    }

    /// Returns whether the values of the client's answers are checked: [`Client::checked`] must then be given the rows of each.
    #[inline]
    pub fn checks_answers(&self) -> bool {
        self.source.checks_answers()
    }

    /// Returns whether the client may work long on its answers: it then needs a thread of its own, or others would measure its work as response time.
    pub fn works_long(&self) -> bool {
        self.source.works_long()
    }

    /// Makes the answer from its rows, where the client does that. Returns the outcome, and whether something was done, which is a part of the operation's time.
    pub fn unpacked(
        &mut self,
        outcome: Result<Answer, DatabaseError>,
        rows: &mut Cells,
    ) -> (Result<Answer, DatabaseError>, bool) {
        let Ok(answer) = outcome else { return (outcome, false) };
        match self.source.unpack(rows) {
            Ok(None) => (Ok(answer), false),
            Ok(Some(rows)) => (Ok(Answer { rows, ..answer }), true),
            Err(why) => (Err(DatabaseError::Wrong(why)), true),
        }
    }

    /// Checks the rows of an answer. Returns the outcome, in which a wrong answer is a failure.
    pub fn checked(
        &mut self,
        outcome: Result<Answer, DatabaseError>,
        rows: &Cells,
        tally: &mut Tally,
    ) -> Result<Answer, DatabaseError> {
        let outcome = outcome.and_then(|answer| match self.source.check(rows) {
            Ok(()) => Ok(answer),
            Err(why) => Err(DatabaseError::Wrong(why)),
        });
        if self.counts {
            tally.count_checked(self.kind, matches!(outcome, Err(DatabaseError::Wrong(_))));
        }
        outcome
    }

    /// Notes the time of sending; called right before the request's first byte is sent.
    #[inline]
    pub fn sent(&mut self, now_ns: u64) {
        self.sent_ns = now_ns;
        if self.compound.is_none_or(|compound| compound.sent_ns.is_none()) {
            self.running_since_ns = now_ns;
        }
    }

    /// Counts the connecting as a part of an operation that opens a connection of its own; called when the connection is open.
    pub fn connected(&mut self, now_ns: u64, tally: &mut Tally) {
        if self.counts {
            let times = Times { intended_ns: self.sent_ns, sent_ns: self.sent_ns, done_ns: now_ns };
            tally.count_part(OperationKind::Connect, 0, times, Ending::Completed { empty: false });
        }
    }

    /// Processes the outcome of the running operation, from which the next one's intended time follows. If a further
    /// part of the same compound follows at once, [`Client::next`] begins it.
    #[inline]
    pub fn done(&mut self, now_ns: u64, outcome: &Result<Answer, DatabaseError>, tally: &mut Tally) {
        if let Err(error) = outcome
            && self.retries_left > 0
            && !self.is_replaying
            && error.is_conflict()
        {
            self.retries_left -= 1;
            self.follows = true;
            if self.counts {
                tally.count_again(error);
            }
            return;
        }
        let ending = match outcome {
            Ok(answer) => Ending::Completed { empty: answer.empty > 0 },
            Err(error) => Ending::Failed(error),
        };
        if let (true, Ok(answer)) = (self.counts, outcome)
            && (matches!(self.kind, OperationKind::Query(_)) || self.source.checks_answers())
        {
            tally.count_rows(self.kind, answer.rows);
        }
        let following = self.source.done(outcome.is_ok(), &mut self.request);
        match self.compound {
            None => self.end(now_ns, ending, tally),
            Some(compound) => self.end_part(now_ns, ending, compound, following, tally),
        }
        if self.is_replaying && outcome.as_ref().is_err_and(DatabaseError::is_lost) {
            // On a new connection, the rest of a transaction would run outside of it.
            self.pass_over(u64::MAX, now_ns, tally, |source| source.is_inside());
        }
    }

    /// Gives up the running operation.
    pub fn abandon(&mut self, now_ns: u64, tally: &mut Tally) {
        match self.compound {
            None => self.end(now_ns, Ending::Abandoned, tally),
            Some(compound) => self.end_part(now_ns, Ending::Abandoned, compound, None, tally),
        }
    }

    /// Postpones sending until this time, after a connection was lost or could not be made.
    pub fn postpone(&mut self, until_ns: u64) {
        self.pause_until_ns = until_ns;
    }

    /// Gives up a claimed arrival that was due and not sent, and the missing parts of a compound; called when the trial is over.
    pub fn give_up(&mut self, now_ns: u64, end_ns: u64, tally: &mut Tally) {
        if std::mem::take(&mut self.follows) {
            match self.compound.take() {
                Some(compound) => self.end_whole(now_ns, Ending::Abandoned, compound, tally),
                None => self.end(now_ns, Ending::Abandoned, tally),
            }
        }
        if let Some(intended_ns) = self.claimed_ns.take().filter(|time_ns| (self.measure_ns..now_ns).contains(time_ns))
        {
            tally.count_unsent(self.kind, intended_ns, now_ns);
        }
        self.pass_over(now_ns.min(end_ns), now_ns, tally, |_| true);
        while let Some(own) = &mut self.own
            && let Some(intended_ns) = own.next_ns().filter(|due_ns| *due_ns < now_ns.min(end_ns))
        {
            own.advance();
            if intended_ns >= self.measure_ns {
                tally.count_unsent(self.kind, intended_ns, now_ns);
            }
        }
    }

    /// Ends a part of a compound: either the next part follows, or the whole ends in the same way as this part.
    fn end_part(
        &mut self,
        now_ns: u64,
        ending: Ending<'_>,
        mut compound: Compound,
        following: Option<Operation>,
        tally: &mut Tally,
    ) {
        if self.counts {
            let times = Times { intended_ns: self.intended_ns, sent_ns: self.sent_ns, done_ns: now_ns };
            tally.count_part(self.kind, self.records, times, ending);
        }
        if let Ending::Completed { empty } = ending {
            compound.records = compound.records.max(self.records);
            compound.empty |= empty;
        }
        compound.sent_ns = compound.sent_ns.or(Some(self.sent_ns));
        if let Some(operation) = following {
            (self.kind, self.records, self.intended_ns) = (operation.kind(), operation.records(), now_ns);
            (self.compound, self.follows) = (Some(compound), true);
            return;
        }
        let ending = match ending {
            Ending::Completed { .. } => Ending::Completed { empty: compound.empty },
            other => other,
        };
        self.end_whole(now_ns, ending, compound, tally);
    }

    /// Ends an operation of several parts, with the times from its first part to its last.
    fn end_whole(&mut self, now_ns: u64, ending: Ending<'_>, compound: Compound, tally: &mut Tally) {
        (self.kind, self.records, self.intended_ns) = (compound.kind, compound.records, compound.intended_ns);
        self.sent_ns = compound.sent_ns.unwrap_or(self.sent_ns);
        self.compound = None;
        self.end(now_ns, ending, tally);
    }

    #[inline]
    fn end(&mut self, now_ns: u64, ending: Ending<'_>, tally: &mut Tally) {
        if matches!(ending, Ending::Completed { .. }) {
            tally.completed(self.kind, self.records, (self.sent_ns, now_ns));
        }
        if let (Some(kept), Some(first)) = (&mut self.acknowledged, self.first_record) {
            kept.note(first..first + self.records, (self.intended_ns, now_ns), &ending);
        }
        let times = Times { intended_ns: self.intended_ns, sent_ns: self.sent_ns, done_ns: now_ns };
        tally.sample(self.number, self.kind, times, self.counts, &ending);
        if self.counts {
            tally.count(self.kind, self.records, times, self.free_ns, ending);
            match ending {
                Ending::Completed { .. } => {
                    self.measurement.completed += 1;
                    self.running_ns += now_ns.saturating_sub(self.running_since_ns);
                    if let Some(own) = &mut self.response_time {
                        own.record(now_ns.saturating_sub(self.intended_ns));
                    }
                }
                Ending::Failed(_) => self.measurement.failed += 1,
                Ending::Abandoned => {}
            }
            self.measurement.elapsed_s = now_ns.saturating_sub(self.measure_ns) as f64 / 1e9;
        }
        self.counts = false;
        self.free_ns = now_ns;
        self.intended_ns = now_ns + self.think_ns;
    }
}
