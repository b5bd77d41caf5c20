//! Clients: what a connection does next, and when. Shared by all drivers, which differ only in how they wait.

use crate::database::{Answer, DatabaseError};
use crate::histogram::CompactHistogram;
use crate::measurement::{ClientMeasurement, ClientTimes};
use crate::operation::{Operation, OperationKind};
use crate::statement::Request;

use super::acknowledged::Acknowledged;
use super::arrivals::{Schedule, SourceTimes};
use super::phases::{Claim, Phases};
use super::tally::{Ending, Tally, Times};

/// Makes a client's operations: a workload, laid out as statements with values.
pub trait Source: Send {
    /// Fills the request, which is clear, with the client's next operation.
    fn next(&mut self, request: &mut Request) -> Operation;

    /// What the operation just begun and those that follow it at once are counted as together; none for one that stands for itself.
    fn compound(&self) -> Option<OperationKind> {
        None
    }

    /// Told that the running operation was answered, as it should be or not. Clears and fills the request with the operation that
    /// is sent at once as a further part of the same compound, and gives it; none where the client is free.
    fn done(&mut self, succeeded: bool, request: &mut Request) -> Option<Operation> {
        let (_, _) = (succeeded, request);
        None
    }

    /// When the next operation is due, in nanoseconds from the beginning of the measured phase on, of a source that has times of its own; none behind
    /// its last.
    fn due_ns(&self) -> Option<i64> {
        None
    }

    /// Whether the next operation is a part of what has begun on the same connection.
    fn is_inside(&self) -> bool {
        false
    }

    /// Passes over the next operation, which will not be sent, and tells its kind.
    fn pass_over(&mut self) -> Option<OperationKind> {
        None
    }
}

/// The whole of an operation of several parts, as far as it has come.
#[derive(Debug, Clone, Copy)]
struct Compound {
    kind: OperationKind,
    intended_ns: u64,
    /// When its first part was sent; none before.
    sent_ns: Option<u64>,
    /// Records of its largest part so far: those that it is about.
    records: u64,
    /// Whether a part found nothing.
    empty: bool,
}

/// One client: its source of operations, the one that is running and its times.
pub struct Client {
    /// Place among all clients of the trial.
    pub number: u32,
    source: Box<dyn Source>,
    /// The operation that is running.
    pub request: Request,
    think_ns: u64,
    /// Arrival of an open loop that this client has claimed and not sent yet.
    claimed_ns: Option<u64>,
    /// The times of its own, where it is a source.
    own: Option<SourceTimes>,
    /// Whether its source of operations says when each is due.
    is_replaying: bool,
    /// What it was told is stored, where that is kept.
    acknowledged: Option<Acknowledged>,
    /// Number of the first record that the running operation inserts.
    first_record: Option<u64>,
    /// Nothing is sent before this time: the connection was lost.
    pause_until_ns: u64,
    kind: OperationKind,
    records: u64,
    intended_ns: u64,
    sent_ns: u64,
    /// Since when the running operation runs, all parts of a compound together, and how long all completed ones ran: kept apart from the
    /// times that are counted, so that Little's law can be held against it.
    running_since_ns: u64,
    running_ns: u64,
    free_ns: u64,
    counts: bool,
    /// What the running operation is a part of.
    compound: Option<Compound>,
    /// Whether the request is the next part of a compound, which is sent at once.
    follows: bool,
    begun: u64,
    /// What it did in the measured phase.
    measurement: ClientMeasurement,
    /// Response times in the measured phase, where they are kept per client.
    response_time: Option<CompactHistogram>,
    measure_ns: u64,
}

/// What one client did.
#[derive(Debug)]
pub struct Finished {
    /// Its place among all clients.
    pub number: u32,
    /// In the measured phase.
    pub measurement: ClientMeasurement,
    /// In the whole trial, where it is kept.
    pub acknowledged: Option<Acknowledged>,
}

/// What a client does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Send the request now.
    Send,
    /// Wait until this time, then ask again.
    Wait(u64),
    /// Nothing more in this trial.
    Over,
}

impl Client {
    /// A client that is free from `start_ns` on.
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

    /// The same client with its own response times kept.
    pub fn timed(self) -> Self {
        Client { response_time: Some(CompactHistogram::new()), ..self }
    }

    /// The same client as a source with these times.
    pub fn with_times(self, own: Option<SourceTimes>) -> Self {
        Client { own, ..self }
    }

    /// The same client, which sends each operation when its source says that it is due.
    pub fn replaying(self, is_replaying: bool) -> Self {
        Client { is_replaying, ..self }
    }

    /// The same client, which keeps what was acknowledged.
    pub fn keeping(self) -> Self {
        Client { acknowledged: Some(Acknowledged::default()), ..self }
    }

    /// What it did, of which the measurement is about the measured phase.
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

    /// The next result of a source. What falls due while its last one is not answered waits for it, and for nobody else's.
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

    /// The next operation of a trace. What falls due while the last one of its session is not answered waits for it, and for nobody else's.
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

    /// What the source has due before a time is given up, as long as this is so.
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

    /// To be called right before the request's first byte is sent.
    #[inline]
    pub fn sent(&mut self, now_ns: u64) {
        self.sent_ns = now_ns;
        if self.compound.is_none_or(|compound| compound.sent_ns.is_none()) {
            self.running_since_ns = now_ns;
        }
    }

    /// To be called when an operation that opens a connection of its own has one: counts that as a part of it.
    pub fn connected(&mut self, now_ns: u64, tally: &mut Tally) {
        if self.counts {
            let times = Times { intended_ns: self.sent_ns, sent_ns: self.sent_ns, done_ns: now_ns };
            tally.count_part(OperationKind::Connect, 0, times, Ending::Completed { empty: false });
        }
    }

    /// Takes in the outcome of the running operation; the next one's intended time follows from it. What follows at once as a part
    /// of the same compound is what [`Client::next`] begins then.
    #[inline]
    pub fn done(&mut self, now_ns: u64, outcome: &Result<Answer, DatabaseError>, tally: &mut Tally) {
        let ending = match outcome {
            Ok(answer) => Ending::Completed { empty: answer.empty > 0 },
            Err(error) => Ending::Failed(error),
        };
        if let (OperationKind::Query(_), true, Ok(answer)) = (self.kind, self.counts, outcome) {
            tally.count_rows(self.kind, answer.rows);
        }
        let following = self.source.done(outcome.is_ok(), &mut self.request);
        match self.compound {
            None => self.end(now_ns, ending, tally),
            Some(compound) => self.end_part(now_ns, ending, compound, following, tally),
        }
        if self.is_replaying && outcome.as_ref().is_err_and(DatabaseError::is_lost) {
            // On a new connection the rest of a transaction would stand for itself.
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

    /// Sends nothing before this time, after a connection was lost or could not be made.
    pub fn postpone(&mut self, until_ns: u64) {
        self.pause_until_ns = until_ns;
    }

    /// Gives up an arrival that was claimed, was due and is not sent, and what a compound lacks; to be called when the trial is over.
    pub fn give_up(&mut self, now_ns: u64, end_ns: u64, tally: &mut Tally) {
        if std::mem::take(&mut self.follows)
            && let Some(compound) = self.compound.take()
        {
            self.end_whole(now_ns, Ending::Abandoned, compound, tally);
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

    /// Ends a part of a compound: the next part follows, or the whole ends as this part does.
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

    /// Ends an operation of several parts, with the times from its first to its last.
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
