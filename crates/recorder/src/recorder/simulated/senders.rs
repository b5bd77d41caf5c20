//! Senders of a recorder: new requests, and repeated ones in any order, as networks and clients that give up cause them. Main type: [`Senders`].

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use loadline_segments::segments::simulated::Told;

use super::clock::MadeClock;
use super::truth::{Fate, Truth, numbers_of};
use crate::random::Stream;
use crate::recorder::access::{Owner, Sender};
use crate::recorder::clock::Clock;
use crate::recorder::intake::{Door, Incoming, Refused, Taken};
use crate::recorder::line::Precision;

/// The number of sources that send.
const SOURCES: u64 = 5;
/// The number of acknowledged requests that may be sent again.
const REMEMBERED: usize = 12;
/// How long ids are remembered; a request that is sent again later counts as new.
pub const REMEMBER: Duration = Duration::from_secs(3_600);

/// A request that may be sent again.
#[derive(Debug, Clone)]
struct Message {
    source: usize,
    id: String,
    body: Vec<u8>,
    numbers: Vec<i64>,
    sent: Instant,
}

/// The variety of what senders send.
#[derive(Debug, Clone, Copy)]
pub struct Manners {
    /// The percentage of records with a certain field in which it is of another kind than in the others, so that some go to quarantine.
    pub conflicts: u64,
    /// The percentage of requests with an invalid line.
    pub bad_lines: u64,
    /// The percentage of requests that are large.
    pub large: u64,
}

/// The pending answer to a request.
type Answer = Pin<Box<dyn Future<Output = Result<Taken, Refused>> + Send>>;

/// All senders.
pub struct Senders {
    random: Stream,
    manners: Manners,
    clock: Arc<MadeClock>,
    truth: Arc<Mutex<Truth>>,
    sender: Arc<Sender>,
    /// The door that they send to; `None` while the recorder does not run.
    door: Option<Arc<Door>>,
    /// Requests that wait for their answers, in the order in which they were sent.
    pending: Vec<(Message, Answer)>,
    /// Requests whose result nobody was told.
    unanswered: VecDeque<Message>,
    answered: VecDeque<Message>,
    messages: u64,
    /// The beginning of the ids of messages.
    ids: &'static str,
    /// The number of requests that were sent again.
    pub again: u64,
    failed: Option<Told>,
}

impl Senders {
    pub fn new(random: Stream, manners: Manners, clock: Arc<MadeClock>, truth: Arc<Mutex<Truth>>) -> Self {
        let sender = Arc::new(Sender::free(Owner::Tokens));
        let (unanswered, answered) = (VecDeque::new(), VecDeque::new());
        let pending = Vec::new();
        Senders {
            random,
            manners,
            clock,
            truth,
            sender,
            door: None,
            pending,
            unanswered,
            answered,
            messages: 0,
            ids: "m",
            again: 0,
            failed: None,
        }
    }

    /// Returns the senders with other ids for their messages.
    pub fn called(self, ids: &'static str) -> Self {
        Senders { ids, ..self }
    }

    /// Connects the senders to a recorder that listens.
    pub fn set_door(&mut self, door: &Arc<Door>) {
        self.door = Some(Arc::clone(door));
    }

    fn truth(&self) -> MutexGuard<'_, Truth> {
        self.truth.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an error if a sender was told something false.
    pub fn failed(&mut self) -> Result<(), Told> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Lets one of the senders send something.
    pub fn send(&mut self) {
        if self.door.is_none() || self.failed.is_some() {
            return;
        }
        let message = match self.random.below(100) {
            0..20 => self.unanswered.pop_front(),
            20..30 => {
                let place = self.random.below(self.answered.len().max(1) as u64) as usize;
                self.answered.get(place).cloned()
            }
            _ => None,
        };
        // A sender without an answer for so long cannot rely on the id any more.
        let is_recent = |message: &Message| self.clock.since(message.sent) < REMEMBER / 2;
        match message.filter(is_recent) {
            Some(message) => {
                self.again += 1;
                self.truth().again(&message.numbers);
                self.give(message);
            }
            None => {
                let message = self.message();
                // A sender does not wait for the answer, and sends the request again.
                if self.random.below(100) < 6 {
                    self.give_up(message.clone());
                }
                self.give(message);
            }
        }
    }

    fn message(&mut self) -> Message {
        // The first one sends more than all others.
        let source = self.random.below(2 * SOURCES).saturating_sub(SOURCES) as usize;
        let most = if self.random.below(4) == 0 { 12 } else { 3 };
        let rows = 1 + self.random.below(most);
        let padding = if self.random.below(100) < self.manners.large { 2_000 } else { self.random.below(40) };
        let mut body = Vec::new();
        let mut numbers = Vec::new();
        for _ in 0..rows {
            let measurement = self.random.below(3);
            let number = self.truth().next((source, measurement));
            body.extend(self.line(number, (source, measurement), padding as usize).into_bytes());
            numbers.push(number);
        }
        if self.random.below(100) < self.manners.bad_lines {
            body.extend_from_slice(b"this is no line\n");
        }
        self.messages += 1;
        let id = if self.random.below(100) < 60 { format!("{}{}", self.ids, self.messages) } else { String::new() };
        Message { source, id, body, numbers, sent: self.clock.now() }
    }

    fn line(&mut self, number: i64, (source, measurement): (usize, u64), padding: usize) -> String {
        let tag = self.random.below(4);
        let mut line = format!("m{measurement},from=s{source},t=v{tag}");
        if self.random.below(10) == 0 {
            line += &format!(",extra{}=x", self.random.below(3));
        }
        line += &format!(" v={number}i,text=\"{}\"", "x".repeat(padding));
        if self.manners.conflicts > 0 && self.random.below(4) == 0 {
            line += if self.random.below(100) < self.manners.conflicts { ",w=\"none\"" } else { ",w=1.5" };
        }
        if self.random.below(5) == 0 {
            line += &format!(",f{}={}", self.random.below(4), self.random.below(1_000));
        }
        format!("{line} {number}\n")
    }

    fn give(&mut self, message: Message) {
        let Some(door) = self.door.clone() else { return };
        let incoming = Incoming {
            sender: Arc::clone(&self.sender),
            source: format!("s{}", message.source).into(),
            message_id: message.id.clone(),
            precision: Precision::Nanoseconds,
            body: message.body.clone(),
            is_whole: false,
            received_ns: self.clock.day_ns(),
            received: self.clock.now(),
        };
        let answer = async move { door.take(incoming).await };
        self.pending.push((message, Box::pin(answer)));
        self.listen();
    }

    /// Takes the answers that have come by now.
    pub fn listen(&mut self) {
        let mut waiting = Vec::new();
        for (message, mut answer) in std::mem::take(&mut self.pending) {
            match answer.as_mut().now_or_never() {
                Some(told) => self.hear(message, told),
                None => waiting.push((message, answer)),
            }
        }
        self.pending = waiting;
    }

    /// Returns whether any sender waits for an answer.
    pub fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Breaks all connections: no sender gets an answer any more.
    pub fn hang_up(&mut self) {
        self.listen();
        self.door = None;
        for (message, answer) in std::mem::take(&mut self.pending) {
            drop(answer);
            self.give_up(message);
        }
    }

    /// Forgets the requests that would be sent again: the recorder may have lost their ids.
    pub fn forget(&mut self) {
        self.unanswered.clear();
        self.answered.clear();
    }

    /// Notes a request without an answer; it is sent again if it has an id.
    fn give_up(&mut self, message: Message) {
        if !message.id.is_empty() && self.unanswered.len() < REMEMBERED {
            self.unanswered.push_back(message);
        }
    }

    fn hear(&mut self, message: Message, told: Result<Taken, Refused>) {
        let numbers = numbers_of(&message.body);
        let outcome = match told {
            Ok(taken) if taken.rows as usize != numbers.len() => {
                Err(format!("{numbers:?} was sent, and {taken:?} is said"))
            }
            Ok(taken) if taken.is_duplicate => self.truth().is_stored_already(&numbers),
            Ok(_) => {
                let mut truth = self.truth();
                let told = truth.must_be_new(&numbers);
                truth.set(&numbers, Fate::Acknowledged);
                told
            }
            Err(Refused::Unknown(_)) => {
                // An earlier try may have been acknowledged; what is known stays so.
                self.give_up(message);
                return;
            }
            Err(_) => {
                // Nothing of this try is stored; the result of an earlier one may still be unknown.
                self.truth().refuse(&numbers);
                return;
            }
        };
        if let Err(told) = outcome {
            self.failed.get_or_insert(told);
        }
        if !message.id.is_empty() {
            self.answered.push_back(message);
            if self.answered.len() > REMEMBERED {
                self.answered.pop_front();
            }
        }
    }
}
