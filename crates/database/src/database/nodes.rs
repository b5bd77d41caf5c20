//! The nodes of a cluster as one target. Main type: [`Nodes`].
//!
//! Invariant: whoever writes is sent to the node that is the primary at that moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::{Clustered, Database, DatabaseError, SessionLimits, Target, TargetSession};

/// Pause between two questions to a node.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// Which nodes clients are connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deal {
    /// The primary.
    Primary,
    /// The replicas, in turn by the client's number; the primary where there is no replica any more.
    Replicas,
    /// All nodes, in turn by the client's number.
    All,
    /// The node with this number, from 1.
    Node(u32),
}

/// The nodes of a cluster, and a rule for which of them clients are connected to.
#[derive(Clone)]
pub struct Nodes {
    shared: Arc<Shared>,
    deal: Deal,
    /// Whether a client whose node does not admit it is connected to another one.
    seeks_another: bool,
}

struct Shared {
    clustered: &'static dyn Clustered,
    members: Vec<Arc<dyn Target>>,
    /// Place of the primary among the members.
    primary: AtomicUsize,
    /// Number of members at the beginning that are no replicas: the first primary, and after a promotion all in front of the new one.
    first_replica: AtomicUsize,
}

impl Nodes {
    /// Creates the target from all nodes in the order of their numbers, the first of which is the primary. Returns `None` without nodes.
    pub fn new(clustered: &'static dyn Clustered, members: Vec<Arc<dyn Target>>) -> Option<Self> {
        let (primary, first_replica) = (AtomicUsize::new(0), AtomicUsize::new(1));
        let shared = Shared { clustered, members, primary, first_replica };
        let is_there = !shared.members.is_empty();
        is_there.then(|| Nodes { shared: Arc::new(shared), deal: Deal::Primary, seeks_another: false })
    }

    /// Returns the same nodes with another rule.
    #[must_use]
    pub fn dealt(&self, deal: Deal) -> Self {
        Nodes { shared: Arc::clone(&self.shared), deal, ..self.clone() }
    }

    /// Returns the same nodes, whose clients are connected to the next node that admits them if their own does not.
    #[must_use]
    pub fn seeking_another(self, seeks_another: bool) -> Self {
        Nodes { seeks_another, ..self }
    }

    /// Returns how servers of this database form a cluster.
    pub fn clustered(&self) -> &'static dyn Clustered {
        self.shared.clustered
    }

    /// Returns the number of nodes.
    pub fn count(&self) -> u32 {
        self.shared.members.len() as u32
    }

    /// Returns the number of the node that a client is connected to now, from 1.
    pub fn node_of(&self, client: u32) -> u32 {
        self.place_of(client) as u32 + 1
    }

    /// Makes the node with this number the primary, and waits until it takes writes.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] if the cluster has no replicas or the node does not take over; else the node's error.
    pub fn promote(&self, number: u32) -> Result<(), DatabaseError> {
        let none = || DatabaseError::Unavailable("this cluster has no replica that could take over".to_owned());
        let question = self.shared.clustered.promotes().ok_or_else(none)?;
        let place = number.saturating_sub(1) as usize;
        let mut session = self.shared.members.get(place).ok_or_else(none)?.open()?;
        if !is_yes(session.ask(question)?.as_deref()) {
            return Err(DatabaseError::Unavailable(format!("node {number} did not take over within its own time")));
        }
        self.shared.primary.store(place, Ordering::Release);
        self.shared.first_replica.store(place + 1, Ordering::Release);
        Ok(())
    }

    /// Waits until the node with this number is a member of the cluster.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] with what it answered last, if that is not so within `patience`.
    pub fn await_member(
        &self,
        number: u32,
        patience: Duration,
        is_given_up: fn() -> bool,
    ) -> Result<(), DatabaseError> {
        let primary = self.shared.primary.load(Ordering::Acquire) as u32 + 1;
        let clustered = self.shared.clustered;
        let asked = self.await_yes(number, clustered.is_member(primary == number), patience, is_given_up);
        let first = self.shared.first_replica.load(Ordering::Acquire);
        let replicas = self.shared.members.len().saturating_sub(first) as u32;
        let all = asked.and_then(|()| match clustered.has_replicas(replicas).filter(|_| primary != number) {
            Some(question) => self.await_yes(primary, &question, patience, is_given_up),
            None => Ok(()),
        });
        all.map_err(|last| {
            let seconds = patience.as_secs();
            DatabaseError::Unavailable(format!("node {number} was no member of the cluster within {seconds} s: {last}"))
        })
    }

    /// Waits until all nodes are members of the cluster, and then until all have everything that is committed then on one of them. Nodes that a promotion has replaced are left
    /// out.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] if one of both is not so within `patience`; else the error of a node that takes writes.
    pub fn await_joined(&self, patience: Duration, is_given_up: fn() -> bool) -> Result<(), DatabaseError> {
        let first = self.shared.primary.load(Ordering::Acquire);
        for place in first..self.shared.members.len() {
            self.await_member(place as u32 + 1, patience, is_given_up)?;
        }
        self.await_even(patience, is_given_up)
    }

    /// Waits until all nodes have everything that is committed now on the node with the newest data: the primary, if others cannot take writes. Nodes that a promotion has
    /// replaced are left out.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] if that is not so within `patience`; else the error of a node that takes writes.
    pub fn await_even(&self, patience: Duration, is_given_up: fn() -> bool) -> Result<(), DatabaseError> {
        let clustered = self.shared.clustered;
        let (position, first) = match clustered.promotes() {
            Some(_) => (self.open()?.ask(clustered.position())?, self.shared.first_replica.load(Ordering::Acquire)),
            None => (self.newest_position()?, 0),
        };
        let is_position =
            |text: &&String| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'/');
        let unknown = || DatabaseError::Unavailable("the primary does not tell how far its data have come".to_owned());
        let question = clustered.has_reached(position.as_ref().filter(is_position).ok_or_else(unknown)?);
        for place in first..self.shared.members.len() {
            let number = place as u32 + 1;
            self.await_yes(number, &question, patience, is_given_up).map_err(|last| {
                let seconds = patience.as_secs();
                DatabaseError::Unavailable(format!(
                    "node {number} had not received what others had within {seconds} s: {last}"
                ))
            })?;
        }
        Ok(())
    }

    /// Returns the highest position of all nodes, which are numbers where all nodes take writes.
    fn newest_position(&self) -> Result<Option<String>, DatabaseError> {
        let mut newest: Option<u64> = None;
        for member in &self.shared.members {
            let told = member.open()?.ask(self.shared.clustered.position())?;
            newest = newest.max(told.and_then(|text| text.parse().ok()));
        }
        Ok(newest.map(|position| position.to_string()))
    }

    /// Returns each node's count of conflicts with other nodes since it was started; `None` for a node that does not tell.
    pub fn conflicts(&self) -> Vec<Option<u64>> {
        let count = |node: &Arc<dyn Target>| node.open().ok()?.fact(self.shared.clustered.conflicts()?)?.parse().ok();
        self.shared.members.iter().map(count).collect()
    }

    /// Asks a node until it answers 1 or t. Returns the last other answer if it does not within `patience`.
    fn await_yes(
        &self,
        number: u32,
        question: &str,
        patience: Duration,
        is_given_up: fn() -> bool,
    ) -> Result<(), String> {
        let end = Instant::now() + patience;
        let node = self.shared.members.get(number.saturating_sub(1) as usize).ok_or("there is no such node")?;
        let mut session: Option<Box<dyn TargetSession>> = None;
        loop {
            let last = match ask(&**node, &mut session, question) {
                Ok(answer) if is_yes(answer.as_deref()) => return Ok(()),
                Ok(answer) => format!("it answers {}", answer.as_deref().unwrap_or("nothing")),
                Err(error) => {
                    session = None;
                    error.to_string()
                }
            };
            if Instant::now() >= end || is_given_up() {
                return Err(last);
            }
            std::thread::sleep(ASK_EVERY);
        }
    }

    /// Returns whether a node takes statements over a connection that it has accepted. Where all nodes take writes, one that is no member of the cluster accepts
    /// connections and then refuses statements.
    fn admits(&self, place: usize, session: &mut dyn TargetSession) -> bool {
        let clustered = self.shared.clustered;
        if clustered.promotes().is_some() {
            return true;
        }
        let is_primary = self.shared.primary.load(Ordering::Acquire) == place;
        session.ask(clustered.is_member(is_primary)).is_ok_and(|answer| is_yes(answer.as_deref()))
    }

    fn place_of(&self, client: u32) -> usize {
        let (primary, first) =
            (self.shared.primary.load(Ordering::Acquire), self.shared.first_replica.load(Ordering::Acquire));
        let replicas = self.shared.members.len().saturating_sub(first);
        match self.deal {
            Deal::All => client as usize % self.shared.members.len(),
            Deal::Node(number) => (number.saturating_sub(1) as usize).min(self.shared.members.len() - 1),
            Deal::Replicas if replicas > 0 => first + client as usize % replicas,
            Deal::Replicas | Deal::Primary => primary,
        }
    }

    fn member(&self, client: u32) -> &dyn Target {
        &*self.shared.members[self.place_of(client)]
    }
}

fn ask(
    node: &dyn Target,
    session: &mut Option<Box<dyn TargetSession>>,
    question: &str,
) -> Result<Option<String>, DatabaseError> {
    match session {
        Some(session) => session.ask(question),
        None => session.insert(node.open()?).ask(question),
    }
}

fn is_yes(answer: Option<&str>) -> bool {
    answer.is_some_and(|text| ["1", "t"].contains(&text))
}

impl Target for Nodes {
    fn name(&self) -> &'static str {
        self.shared.members[0].name()
    }

    fn open(&self) -> Result<Box<dyn TargetSession>, DatabaseError> {
        self.member(0).open()
    }

    fn open_for(&self, client: u32) -> Result<Box<dyn TargetSession>, DatabaseError> {
        let members = &self.shared.members;
        let home = self.place_of(client);
        let mut first = members[home].open();
        if !self.seeks_another || first.as_mut().is_ok_and(|session| self.admits(home, &mut **session)) {
            return first;
        }
        let others = (1..members.len()).map(|step| (home + step) % members.len());
        let open = |place: usize| {
            let mut session = members[place].open().ok()?;
            self.admits(place, &mut *session).then_some(session)
        };
        others.filter_map(open).next().map_or(first, Ok)
    }

    /// Has no effect: each node was given its limits before.
    fn set_limits(&mut self, _limits: Arc<SessionLimits>) {}

    fn stands_still(&self) -> bool {
        self.member(0).stands_still()
    }

    /// Returns the primary as it is now.
    fn sql(&self) -> Option<&dyn Database> {
        self.member(0).sql()
    }

    fn removal(&self, table: &str) -> Option<String> {
        self.member(0).removal(table)
    }
}
