//! The event loop over epoll: one thread drives many connections and allocates nothing per operation.
//!
//! Only readability is watched; writability is watched only while a request did not fit into the socket's buffer.

use std::collections::BinaryHeap;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::client::{Client, Next};
use super::clock::{Clock, minimise_timer_slack};
use super::{LoopContext, LoopResult, Reconnect};
use crate::database::{DatabaseError, Wire};

/// Bytes read at once; answers longer than this take several reads.
const INPUT_BYTES: usize = 64 * 1024;
/// Reads from one connection before others get their turn.
const READS_PER_PASS: usize = 16;
/// Events taken at once.
const EVENTS: usize = 64;
/// Pause before a lost connection is made again.
const RECONNECT_PAUSE_NS: u64 = 100_000_000;
/// Longest sleep, so that a stopped trial is noticed.
const WAIT_NS_MAX: u64 = 50_000_000;

struct Slot {
    client: Client,
    wire: Option<Box<dyn Wire>>,
    /// Bytes of an unfinished message.
    unread: Vec<u8>,
    /// Bytes that the socket did not take yet.
    unsent: Vec<u8>,
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

/// Drives all clients until the trial is over.
pub struct EventLoop<'a> {
    slots: Vec<Slot>,
    poll: OwnedFd,
    context: LoopContext<'a>,
    reconnect: &'a Reconnect<'a>,
    clock: Clock,
    input: Vec<u8>,
    out: Vec<u8>,
    /// Times at which waiting clients want to be asked again, earliest first.
    due: BinaryHeap<std::cmp::Reverse<(u64, usize)>>,
    active: usize,
    last_answer_ns: u64,
}

impl<'a> EventLoop<'a> {
    /// A loop over connected clients.
    ///
    /// # Errors
    /// When the kernel refuses an epoll instance or a socket.
    pub fn new(
        clients: Vec<(Client, Box<dyn Wire>)>,
        context: LoopContext<'a>,
        reconnect: &'a Reconnect<'a>,
    ) -> std::io::Result<Self> {
        // SAFETY: epoll_create1 takes no pointer; the descriptor it gives is owned by nobody else.
        let poll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if poll < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: the descriptor was made above and is valid.
        let poll = unsafe { OwnedFd::from_raw_fd(poll) };
        let mut slots = Vec::with_capacity(clients.len());
        for (number, (client, wire)) in clients.into_iter().enumerate() {
            watch(&poll, wire.fd(), number, libc::EPOLL_CTL_ADD, libc::EPOLLIN)?;
            slots.push(Slot {
                client,
                wire: Some(wire),
                unread: Vec::new(),
                unsent: Vec::new(),
                state: State::Waiting,
            });
        }
        let clock = context.clock;
        Ok(EventLoop {
            active: slots.len(),
            slots,
            poll,
            context,
            reconnect,
            clock,
            input: vec![0; INPUT_BYTES],
            out: Vec::new(),
            due: BinaryHeap::new(),
            last_answer_ns: clock.now_ns(),
        })
    }

    /// Runs until every client is over or abandoned.
    pub fn run(mut self) -> LoopResult {
        minimise_timer_slack();
        self.last_answer_ns = self.clock.now_ns();
        for place in 0..self.slots.len() {
            self.begin(place);
        }
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        while self.active > 0 {
            let count = self.wait(&mut events);
            let pass_ns = self.clock.now_ns();
            self.context.cpu.observe(pass_ns);
            for event in &events[..count] {
                self.handle(event.u64 as usize, event.events);
            }
            self.begin_due();
            let now_ns = self.clock.now_ns();
            if count > 0 && pass_ns >= self.context.phases.measure_ns {
                self.context.tally.passes.record(now_ns - pass_ns);
            }
            if self.is_out_of_time(now_ns) {
                self.abandon_all(now_ns);
            }
        }
        let clients = self.slots.iter().map(|slot| (slot.client.number, slot.client.measurement)).collect();
        self.context.finish("epoll", clients)
    }

    /// Waits for events until the next client is due.
    fn wait(&mut self, events: &mut [libc::epoll_event]) -> usize {
        let now_ns = self.clock.now_ns();
        let due_ns = self.due.peek().map_or(u64::MAX, |due| due.0.0);
        let wait_ns = due_ns.saturating_sub(now_ns).min(WAIT_NS_MAX);
        let timeout = libc::timespec { tv_sec: 0, tv_nsec: wait_ns as libc::c_long };
        // SAFETY: both pointers are to values of ours that outlive the call, the count is the length of the slice, and a
        // null signal mask is allowed.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.poll.as_raw_fd(),
                events.as_mut_ptr(),
                events.len() as libc::c_int,
                &timeout as *const libc::timespec,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        count.max(0) as usize
    }

    fn handle(&mut self, place: usize, events: u32) {
        if events & libc::EPOLLOUT as u32 != 0 {
            self.send_rest(place);
        }
        if events & !(libc::EPOLLOUT as u32) != 0 {
            self.receive(place);
        }
    }

    fn receive(&mut self, place: usize) {
        for _ in 0..READS_PER_PASS {
            let slot = &mut self.slots[place];
            let Some(wire) = slot.wire.as_mut() else { return };
            let count = read(wire.fd(), &mut self.input);
            let now_ns = self.clock.now_ns();
            let count = match count {
                Ok(0) => return self.lose(place, now_ns, "the server closed the connection"),
                Ok(count) => count,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return self.lose(place, now_ns, &error.to_string()),
            };
            if slot.state != State::Busy {
                return self.lose(place, now_ns, "the server sent something that was not asked for");
            }
            self.out.clear();
            let progress = if slot.unread.is_empty() {
                let progress = wire.advance(&slot.client.request, &self.input[..count], &mut self.out);
                slot.unread.extend_from_slice(&self.input[progress.consumed..count]);
                progress
            } else {
                slot.unread.extend_from_slice(&self.input[..count]);
                let progress = wire.advance(&slot.client.request, &slot.unread, &mut self.out);
                slot.unread.drain(..progress.consumed);
                progress
            };
            if !self.out.is_empty() {
                self.send(place);
            }
            if let Some(outcome) = progress.outcome {
                return self.end(place, now_ns, outcome);
            }
            if count < self.input.len() {
                return;
            }
        }
    }

    fn end(&mut self, place: usize, now_ns: u64, outcome: Result<crate::database::Answer, DatabaseError>) {
        if let Err(DatabaseError::Lost(why)) = &outcome {
            return self.lose(place, now_ns, why);
        }
        self.last_answer_ns = now_ns;
        let slot = &mut self.slots[place];
        slot.client.done(now_ns, &outcome, &mut self.context.tally);
        self.begin_at(place, now_ns);
    }

    /// Ends the running operation because its connection is gone; the client tries again after a pause.
    fn lose(&mut self, place: usize, now_ns: u64, why: &str) {
        let slot = &mut self.slots[place];
        slot.wire = None;
        slot.unread.clear();
        slot.unsent.clear();
        if slot.state == State::Busy {
            slot.client.done(now_ns, &Err(DatabaseError::Lost(why.to_owned())), &mut self.context.tally);
        }
        slot.client.postpone(now_ns + RECONNECT_PAUSE_NS);
        if slot.state != State::Over {
            self.begin_at(place, now_ns);
        }
    }

    fn begin(&mut self, place: usize) {
        self.begin_at(place, self.clock.now_ns());
    }

    /// Begins the client's next operation, or notes when to ask again.
    fn begin_at(&mut self, place: usize, now_ns: u64) {
        let slot = &mut self.slots[place];
        match slot.client.next(now_ns, self.context.phases) {
            Next::Over => {
                slot.state = State::Over;
                self.active -= 1;
            }
            Next::Wait(until_ns) => {
                slot.state = State::Waiting;
                self.due.push(std::cmp::Reverse((until_ns, place)));
            }
            Next::Send => {
                slot.state = State::Busy;
                if slot.wire.is_none() && !self.reconnect(place) {
                    return;
                }
                let slot = &mut self.slots[place];
                if let Some(wire) = slot.wire.as_mut() {
                    self.out.clear();
                    wire.start(&slot.client.request, &mut self.out);
                    slot.client.sent(self.clock.now_ns());
                    self.send(place);
                }
            }
        }
    }

    fn begin_due(&mut self) {
        while let Some(std::cmp::Reverse((due_ns, place))) = self.due.peek().copied() {
            let now_ns = self.clock.now_ns();
            if due_ns > now_ns && !self.context.phases.is_stopped() {
                return;
            }
            self.due.pop();
            if self.slots[place].state == State::Waiting {
                self.begin_at(place, now_ns);
            }
        }
    }

    /// Makes a lost connection again. On failure the running operation has failed and the client pauses.
    fn reconnect(&mut self, place: usize) -> bool {
        let connected = (self.reconnect)().and_then(|wire| {
            watch(&self.poll, wire.fd(), place, libc::EPOLL_CTL_ADD, libc::EPOLLIN)
                .map_err(|error| DatabaseError::Unavailable(format!("the new connection cannot be watched: {error}")))?;
            Ok(wire)
        });
        let now_ns = self.clock.now_ns();
        let slot = &mut self.slots[place];
        match connected {
            Ok(wire) => {
                slot.wire = Some(wire);
                true
            }
            Err(error) => {
                slot.client.sent(now_ns);
                slot.client.done(now_ns, &Err(error), &mut self.context.tally);
                slot.client.postpone(now_ns + RECONNECT_PAUSE_NS);
                slot.state = State::Waiting;
                self.due.push(std::cmp::Reverse((now_ns + RECONNECT_PAUSE_NS, place)));
                false
            }
        }
    }

    /// Sends what is in `out`; what the socket does not take is kept and sent when it is writable.
    fn send(&mut self, place: usize) {
        let slot = &mut self.slots[place];
        let Some(wire) = slot.wire.as_ref() else { return };
        if self.out.is_empty() {
            return;
        }
        if !slot.unsent.is_empty() {
            slot.unsent.extend_from_slice(&self.out);
            return;
        }
        match write(wire.fd(), &self.out) {
            Ok(count) if count == self.out.len() => {}
            Ok(count) => {
                let fd = wire.fd();
                slot.unsent.extend_from_slice(&self.out[count..]);
                // A connection that cannot be watched any more shows itself by an answer that never comes.
                let _ = watch(&self.poll, fd, place, libc::EPOLL_CTL_MOD, libc::EPOLLIN | libc::EPOLLOUT);
            }
            Err(error) => self.lose(place, self.clock.now_ns(), &error.to_string()),
        }
    }

    fn send_rest(&mut self, place: usize) {
        let slot = &mut self.slots[place];
        let Some(wire) = slot.wire.as_ref() else { return };
        match write(wire.fd(), &slot.unsent) {
            Ok(count) => {
                slot.unsent.drain(..count);
                if slot.unsent.is_empty() {
                    let _ = watch(&self.poll, wire.fd(), place, libc::EPOLL_CTL_MOD, libc::EPOLLIN);
                }
            }
            Err(error) => self.lose(place, self.clock.now_ns(), &error.to_string()),
        }
    }

    /// Whether the drain phase is over, or nothing at all was answered for its length.
    fn is_out_of_time(&self, now_ns: u64) -> bool {
        let phases = self.context.phases;
        let drained = phases.end_ns.saturating_add(phases.drain_ns) <= now_ns;
        let waiting = self.slots.iter().any(|slot| slot.state == State::Busy || slot.wire.is_none());
        let stalled = waiting && now_ns.saturating_sub(self.last_answer_ns) > phases.drain_ns;
        drained || phases.is_stopped() || stalled
    }

    fn abandon_all(&mut self, now_ns: u64) {
        if now_ns < self.context.phases.end_ns {
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

fn watch(
    poll: &OwnedFd,
    fd: RawFd,
    place: usize,
    operation: libc::c_int,
    events: libc::c_int,
) -> std::io::Result<()> {
    let mut event = libc::epoll_event { events: events as u32, u64: place as u64 };
    // SAFETY: the event outlives the call; both descriptors are open, the caller holds them.
    let result = unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK);
        libc::epoll_ctl(poll.as_raw_fd(), operation, fd, &mut event)
    };
    if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

fn read(fd: RawFd, into: &mut [u8]) -> std::io::Result<usize> {
    // SAFETY: the pointer and length are those of a slice of ours.
    let count = unsafe { libc::read(fd, into.as_mut_ptr().cast(), into.len()) };
    if count < 0 { Err(std::io::Error::last_os_error()) } else { Ok(count as usize) }
}

/// Writes what the socket takes; 0 when its buffer is full.
fn write(fd: RawFd, from: &[u8]) -> std::io::Result<usize> {
    // SAFETY: the pointer and length are those of a slice of ours.
    let count = unsafe { libc::send(fd, from.as_ptr().cast(), from.len(), libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) };
    if count >= 0 {
        return Ok(count as usize);
    }
    let error = std::io::Error::last_os_error();
    match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted => Ok(0),
        _ => Err(error),
    }
}
