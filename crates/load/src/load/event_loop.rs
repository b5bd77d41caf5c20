//! The event loop: one thread drives many connections over a [`Transport`] and allocates nothing per operation.
//!
//! Invariant: a client has at most one request running; each request ends as done, failed or abandoned.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::RawFd;

use super::client::{Client, Next};
use super::clock::{Clock, minimise_timer_slack};
use super::{LoopContext, LoopResult, Reconnect};
use crate::database::session::ANSWER_BYTES_MAX;
use crate::database::tls::SharedSecure;
use crate::database::{Answer, DatabaseError, Unasked, Wire};
use crate::record::Cells;

/// Pause before a lost connection is made again, in nanoseconds.
const RECONNECT_PAUSE_NS: u64 = 100_000_000;
/// Longest sleep in nanoseconds; bounded so that a stopped trial is noticed.
pub(super) const WAIT_NS_MAX: u64 = 50_000_000;

/// Carries bytes between connections and the loop. Connections are identified by their place.
pub trait Transport {
    /// Name in the results: `epoll`, `io_uring`.
    const NAME: &'static str;

    /// Starts to receive from a connection.
    ///
    /// # Errors
    /// Returns the kernel's error.
    fn attach(&mut self, place: usize, fd: RawFd) -> std::io::Result<()>;

    /// Forgets a connection that is about to be closed; bytes that still arrive from it are not delivered.
    fn detach(&mut self, place: usize);

    /// Sends bytes; keeps the rest if the kernel does not take all of them at once.
    ///
    /// # Errors
    /// When the connection is broken.
    fn send(&mut self, place: usize, bytes: &[u8]) -> std::io::Result<()>;

    /// Waits until something arrives, for at most this time. A wait of [`WAIT_NS_MAX`] may end early at any time.
    fn wait(&mut self, wait_ns: u64);

    /// Returns the next arrival of the last wait; `None` when all were returned.
    fn next(&mut self) -> Option<Arrival>;

    /// Returns the bytes of an arrival, which stay valid until [`Transport::release`].
    fn bytes(&self, chunk: Chunk) -> &[u8];

    /// Returns the buffer of an arrival to the transport.
    fn release(&mut self, chunk: Chunk);
}

/// An arrival from a connection.
#[derive(Debug)]
pub enum Arrival {
    /// Bytes, with the connection's place.
    Bytes(usize, Chunk),
    /// The end of the connection, with its place and the reason.
    Closed(usize, String),
}

/// The location of an arrival's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Number of the transport's buffer.
    pub buffer: u16,
    /// Number of bytes.
    pub length: usize,
}

/// Bytes of an unfinished message from which on the unfinished messages of all connections are added up.
const UNREAD_WORTH_ADDING: usize = 64 << 10;
/// Bytes of unfinished messages allowed per connection of a loop, in addition to the common limit.
const UNREAD_OF_EACH: usize = 1 << 20;

struct Slot {
    client: Client,
    wire: Option<Box<dyn Wire>>,
    /// The protection of the connection (TLS), if it has one.
    secure: Option<SharedSecure>,
    /// Bytes of an unfinished message.
    unread: Vec<u8>,
    /// Memory for the rows of answers that are checked.
    rows: Cells,
    /// Time at which bytes last arrived on the connection; 0 before that, and when it is lost.
    heard_ns: u64,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A request is running.
    Busy,
    /// The next request's time has not come.
    Waiting,
    /// Nothing more to do.
    Over,
}

/// Returns why a connection is lost, as the rest of a sentence.
fn lost(error: &DatabaseError) -> String {
    match error {
        DatabaseError::Lost(why) => why.clone(),
        other => other.to_string(),
    }
}

/// Drives its clients until the trial is over.
pub struct EventLoop<'a, T> {
    slots: Vec<Slot>,
    transport: T,
    context: LoopContext<'a>,
    reconnect: &'a Reconnect<'a>,
    clock: Clock,
    out: Vec<u8>,
    /// Buffers for bytes on their way between TLS and the transport: encrypted, and decrypted.
    sealed: Vec<u8>,
    opened: Vec<u8>,
    /// Times at which waiting clients want to be asked again, earliest first.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    active: usize,
    last_answer_ns: u64,
    /// Time of the last clock reading.
    last_seen_ns: u64,
}

impl<'a, T: Transport> EventLoop<'a, T> {
    /// Makes a loop over connected clients.
    ///
    /// # Errors
    /// When the kernel refuses a connection.
    pub fn new(
        clients: Vec<(Client, Box<dyn Wire>)>,
        mut transport: T,
        context: LoopContext<'a>,
        reconnect: &'a Reconnect<'a>,
    ) -> std::io::Result<Self> {
        let mut slots = Vec::with_capacity(clients.len());
        for (place, (client, wire)) in clients.into_iter().enumerate() {
            transport.attach(place, wire.fd())?;
            let secure = wire.secure();
            slots.push(Slot {
                client,
                wire: Some(wire),
                secure,
                unread: Vec::new(),
                rows: Cells::new(),
                heard_ns: 0,
                state: State::Waiting,
            });
        }
        let clock = context.clock;
        Ok(EventLoop {
            active: slots.len(),
            slots,
            transport,
            context,
            reconnect,
            clock,
            out: Vec::new(),
            sealed: Vec::new(),
            opened: Vec::new(),
            due: BinaryHeap::new(),
            last_answer_ns: clock.now_ns(),
            last_seen_ns: clock.now_ns(),
        })
    }

    /// Runs until every client is over or abandoned.
    pub fn run(mut self) -> LoopResult {
        minimise_timer_slack();
        self.last_answer_ns = self.clock.now_ns();
        for place in 0..self.slots.len() {
            self.begin(place, self.clock.now_ns());
        }
        while self.active > 0 {
            let wait_ns = match self.due.peek() {
                Some(due) => due.0.0.saturating_sub(self.clock.now_ns()).min(WAIT_NS_MAX),
                None => WAIT_NS_MAX,
            };
            self.transport.wait(wait_ns);
            self.pass();
        }
        let now_ns = self.clock.now_ns();
        let end_ns = self.context.phases.ends_ns();
        self.slots.iter_mut().for_each(|slot| slot.client.give_up(now_ns, end_ns, &mut self.context.tally));
        let clients = self.slots.iter_mut().map(|slot| slot.client.finish()).collect();
        self.context.finish(T::NAME, clients)
    }

    /// Processes all that arrived and all that is due.
    fn pass(&mut self) {
        let pass_ns = self.clock.now_ns();
        self.last_seen_ns = pass_ns;
        self.context.cpu.observe(pass_ns);
        let mut arrivals = 0;
        while let Some(arrival) = self.transport.next() {
            arrivals += 1;
            match arrival {
                Arrival::Bytes(place, chunk) => self.receive(place, chunk),
                Arrival::Closed(place, why) => self.lose(place, self.clock.now_ns(), &why),
            }
        }
        self.begin_due();
        let now_ns = self.last_seen_ns;
        if arrivals > 0 && pass_ns >= self.context.phases.measure_ns {
            self.context.tally.passes.record(now_ns - pass_ns);
            self.context.answers += arrivals;
        }
        if self.is_out_of_time(now_ns) {
            self.abandon_all(now_ns);
        }
    }

    fn receive(&mut self, place: usize, chunk: Chunk) {
        let now_ns = self.clock.now_ns();
        self.last_seen_ns = now_ns;
        if let Some(secure) = &self.slots[place].secure {
            self.opened.clear();
            if let Err(error) = secure.open(self.transport.bytes(chunk), &mut self.opened) {
                self.transport.release(chunk);
                return self.lose(place, now_ns, &lost(&error));
            }
        }
        let slot = &mut self.slots[place];
        let input = if slot.secure.is_some() { &self.opened[..] } else { self.transport.bytes(chunk) };
        let (Some(wire), State::Busy) = (slot.wire.as_mut(), slot.state) else {
            slot.unread.extend_from_slice(input);
            self.transport.release(chunk);
            return self.receive_unasked(place, now_ns);
        };
        slot.heard_ns = now_ns;
        self.out.clear();
        let progress = if slot.unread.is_empty() {
            let progress = wire.advance(&slot.client.request, input, &mut self.out);
            slot.unread.extend_from_slice(&input[progress.consumed..]);
            progress
        } else {
            slot.unread.extend_from_slice(input);
            let progress = wire.advance(&slot.client.request, &slot.unread, &mut self.out);
            slot.unread.drain(..progress.consumed);
            progress
        };
        self.transport.release(chunk);
        if !self.out.is_empty() {
            self.send(place);
        }
        let Some(outcome) = progress.outcome else {
            return self.give_up_endless(place, now_ns);
        };
        let (outcome, now_ns) = self.checked(place, outcome, now_ns);
        let is_lost = outcome.as_ref().is_err_and(DatabaseError::is_lost);
        let is_over = self.slots[place].wire.as_ref().is_some_and(|wire| wire.is_over());
        match if is_lost { Ok(()) } else { self.take_rest(place) } {
            Ok(()) if is_over && !is_lost => self.hang_up(place),
            Ok(()) => {}
            Err(Unasked::Ended) => self.hang_up(place),
            Err(Unasked::Wrong) => {
                return self.lose(place, now_ns, "the server sent more than the answer to what was asked");
            }
        }
        self.end(place, now_ns, outcome);
    }

    /// Checks the rows of an answer, where the client's are checked; after the time of the answer was taken. Returns that time with the outcome: it is `now_ns`, unless
    /// the client has to make the answer from the rows first.
    #[inline]
    fn checked(
        &mut self,
        place: usize,
        outcome: Result<Answer, DatabaseError>,
        now_ns: u64,
    ) -> (Result<Answer, DatabaseError>, u64) {
        let slot = &mut self.slots[place];
        if !slot.client.checks_answers() {
            return (outcome, now_ns);
        }
        let Some(mut rows) = slot.wire.as_mut().and_then(|wire| wire.keep_rows(None)) else { return (outcome, now_ns) };
        let (outcome, took_time) = slot.client.unpacked(outcome, &mut rows);
        let now_ns = if took_time { self.clock.now_ns() } else { now_ns };
        let outcome = slot.client.checked(outcome, &rows, &mut self.context.tally);
        slot.rows = rows;
        // The client is free for its next operation when it has checked this one; otherwise the check would be a part of the next response time.
        self.last_seen_ns = self.clock.now_ns();
        slot.client.postpone(self.last_seen_ns);
        (outcome, now_ns)
    }

    /// Drops a connection whose server sends a message without an end: the server must not decide how much memory a trial takes.
    #[inline]
    fn give_up_endless(&mut self, place: usize, now_ns: u64) {
        let own = self.slots[place].unread.len();
        if own <= UNREAD_WORTH_ADDING {
            return;
        }
        let all = self.slots.iter().map(|slot| slot.unread.len()).sum::<usize>();
        // Each of many connections may be receiving a large row.
        if own > ANSWER_BYTES_MAX || all > 2 * ANSWER_BYTES_MAX + self.slots.len() * UNREAD_OF_EACH {
            let mib = ANSWER_BYTES_MAX >> 20;
            self.lose(
                place,
                now_ns,
                &format!("the server sends messages of more than {mib} MiB, and no more are read"),
            );
        }
    }

    /// Processes messages after an answer that the server may send unasked. Any other bytes would be taken for the next
    /// answer, and from then on each operation would be measured with the answer to the one before it.
    #[inline]
    fn take_rest(&mut self, place: usize) -> Result<(), Unasked> {
        let slot = &mut self.slots[place];
        if slot.unread.is_empty() {
            return Ok(());
        }
        self.out.clear();
        let consumed = slot.wire.as_mut().map_or(Err(Unasked::Wrong), |wire| wire.unasked(&slot.unread, &mut self.out));
        slot.unread.drain(..consumed?);
        self.send(place);
        Ok(())
    }

    /// Processes bytes that arrive while no request is running; few servers send any.
    fn receive_unasked(&mut self, place: usize, now_ns: u64) {
        match self.take_rest(place) {
            Ok(()) => self.give_up_endless(place, now_ns),
            Err(_) => self.hang_up(place),
        }
    }

    fn end(&mut self, place: usize, now_ns: u64, outcome: Result<Answer, DatabaseError>) {
        if let Err(DatabaseError::Lost(why)) = &outcome {
            return self.lose(place, now_ns, why);
        }
        self.last_answer_ns = now_ns;
        let slot = &mut self.slots[place];
        if slot.state == State::Busy {
            slot.client.done(now_ns, &outcome, &mut self.context.tally);
            self.begin(place, now_ns);
        }
    }

    /// Closes a connection; another one is opened for the client's next operation.
    fn hang_up(&mut self, place: usize) {
        let slot = &mut self.slots[place];
        if slot.wire.is_some() {
            self.transport.detach(place);
        }
        slot.wire = None;
        slot.secure = None;
        slot.heard_ns = 0;
        slot.unread.clear();
        slot.unread.shrink_to(UNREAD_WORTH_ADDING);
    }

    /// Fails the running operation because its connection is lost; the client tries again after a pause.
    fn lose(&mut self, place: usize, now_ns: u64, why: &str) {
        self.hang_up(place);
        let slot = &mut self.slots[place];
        if slot.state == State::Busy {
            slot.client.done(now_ns, &Err(DatabaseError::Lost(why.to_owned())), &mut self.context.tally);
            slot.client.postpone(now_ns + RECONNECT_PAUSE_NS);
            self.begin(place, now_ns);
        }
    }

    /// Begins the client's next operation, or notes when to ask again.
    fn begin(&mut self, place: usize, now_ns: u64) {
        let slot = &mut self.slots[place];
        match slot.client.next(now_ns, self.context.phases) {
            Next::Over => {
                slot.state = State::Over;
                self.active -= 1;
            }
            Next::Wait(until_ns) => {
                slot.state = State::Waiting;
                self.due.push(Reverse((until_ns, place)));
            }
            Next::Send => {
                slot.state = State::Busy;
                let mut now_ns = now_ns;
                if slot.wire.is_none() {
                    if !self.reconnect(place) {
                        return;
                    }
                    now_ns = self.clock.now_ns();
                }
                let slot = &mut self.slots[place];
                if let Some(wire) = slot.wire.as_mut() {
                    if slot.client.checks_answers() {
                        slot.rows.clear();
                        wire.keep_rows(Some(std::mem::take(&mut slot.rows)));
                    }
                    self.out.clear();
                    wire.start(&slot.client.request, &mut self.out);
                    // Encoding takes tens of nanoseconds; counting them as residence time is cheaper than another clock reading.
                    slot.client.sent(now_ns);
                    self.send(place);
                }
            }
        }
    }

    fn begin_due(&mut self) {
        while let Some(Reverse((due_ns, place))) = self.due.peek().copied() {
            let now_ns = self.clock.now_ns();
            if due_ns > now_ns && !self.context.phases.is_stopped() {
                return;
            }
            self.last_seen_ns = now_ns;
            self.due.pop();
            if self.slots[place].state == State::Waiting {
                self.begin(place, now_ns);
            }
        }
    }

    /// Makes a lost connection again. On failure, the running operation fails and the client pauses.
    fn reconnect(&mut self, place: usize) -> bool {
        let connected = (self.reconnect)(self.slots[place].client.number).and_then(|wire| {
            let unwatched = |error| DatabaseError::Unavailable(format!("the new connection cannot be used: {error}"));
            self.transport.attach(place, wire.fd()).map_err(unwatched)?;
            Ok(wire)
        });
        let now_ns = self.clock.now_ns();
        let slot = &mut self.slots[place];
        match connected {
            Ok(wire) => {
                slot.secure = wire.secure();
                slot.wire = Some(wire);
                true
            }
            Err(error) => {
                slot.client.sent(now_ns);
                slot.client.done(now_ns, &Err(error), &mut self.context.tally);
                slot.client.postpone(now_ns + RECONNECT_PAUSE_NS);
                slot.state = State::Waiting;
                self.due.push(Reverse((now_ns + RECONNECT_PAUSE_NS, place)));
                false
            }
        }
    }

    fn send(&mut self, place: usize) {
        if self.out.is_empty() {
            return;
        }
        let bytes = match &self.slots[place].secure {
            None => &self.out,
            Some(secure) => {
                self.sealed.clear();
                if let Err(error) = secure.seal(&self.out, &mut self.sealed) {
                    return self.lose(place, self.clock.now_ns(), &lost(&error));
                }
                &self.sealed
            }
        };
        if let Err(error) = self.transport.send(place, bytes) {
            self.lose(place, self.clock.now_ns(), &error.to_string());
        }
    }

    /// Returns whether the drain phase is over, or no answer at all has come for the length of a drain phase.
    fn is_out_of_time(&self, now_ns: u64) -> bool {
        let phases = self.context.phases;
        if now_ns >= phases.last_ns() {
            return now_ns >= phases.last_ns().saturating_add(phases.drain_ns);
        }
        // A part of a long answer is a sign of life too, unless the connection was lost before its end.
        let is_silent = |since_ns: u64| now_ns - since_ns > phases.drain_ns;
        let is_stalled = || {
            is_silent(self.last_answer_ns)
                && self.slots.iter().any(|slot| slot.state == State::Busy || slot.wire.is_none())
                && self.slots.iter().all(|slot| is_silent(slot.heard_ns))
        };
        phases.is_stopped() || is_stalled()
    }

    fn abandon_all(&mut self, now_ns: u64) {
        if now_ns < self.context.phases.last_ns() {
            self.context.phases.stop();
        }
        for slot in &mut self.slots {
            if slot.state == State::Busy {
                slot.client.abandon(now_ns, &mut self.context.tally);
            }
            slot.state = State::Over;
        }
        self.active = 0;
    }
}
