//! The nodes of a cluster as one target. Main type: [`Nodes`].
//!
//! Invariant: whoever writes is sent to the node that is the primary at that moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::{
    Clustered, Database, DatabaseError, Dialect, LogPosition, Session, SessionLimits, Target, TargetSession, Weakness,
};

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
    members: Vec<Arc<dyn Database>>,
    /// Place of the primary among the members.
    primary: AtomicUsize,
    /// Number of members at the beginning that are no replicas: the first primary, and after a promotion all in front of the new one.
    first_replica: AtomicUsize,
}

impl Nodes {
    /// Creates the target from all nodes in the order of their numbers, the first of which is the primary. Returns `None` without nodes.
    pub fn new(clustered: &'static dyn Clustered, members: Vec<Arc<dyn Database>>) -> Option<Self> {
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
        let sql = self.shared.clustered.promotes().ok_or_else(none)?;
        let place = number.saturating_sub(1) as usize;
        let mut session = self.shared.members.get(place).ok_or_else(none)?.connect()?;
        if !is_yes(&session.query(sql)?) {
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
        let sql = self.shared.clustered.is_member(number);
        self.await_yes(number, sql, patience, is_given_up).map_err(|last| {
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
            Some(_) => (
                answer(&self.connect()?.query(clustered.position())?),
                self.shared.first_replica.load(Ordering::Acquire),
            ),
            None => (self.newest_position()?, 0),
        };
        let is_position =
            |text: &&String| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'/');
        let unknown = || DatabaseError::Unavailable("the primary does not tell how far its data have come".to_owned());
        let sql = clustered.has_reached(position.as_ref().filter(is_position).ok_or_else(unknown)?);
        for place in first..self.shared.members.len() {
            let number = place as u32 + 1;
            self.await_yes(number, &sql, patience, is_given_up).map_err(|last| {
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
            let told = answer(&member.connect()?.query(self.shared.clustered.position())?);
            newest = newest.max(told.and_then(|text| text.parse().ok()));
        }
        Ok(newest.map(|position| position.to_string()))
    }

    /// Returns each node's count of conflicts with other nodes since it was started; `None` for a node that does not tell.
    pub fn conflicts(&self) -> Vec<Option<u64>> {
        let count = |node: &Arc<dyn Database>| {
            let rows = node.connect().ok()?.query(self.shared.clustered.conflicts()?).ok()?;
            answer(&rows)?.parse().ok()
        };
        self.shared.members.iter().map(count).collect()
    }

    /// Asks a node until it answers 1 or t. Returns the last other answer if it does not within `patience`.
    fn await_yes(&self, number: u32, sql: &str, patience: Duration, is_given_up: fn() -> bool) -> Result<(), String> {
        let end = Instant::now() + patience;
        let node = self.shared.members.get(number.saturating_sub(1) as usize).ok_or("there is no such node")?;
        let mut session: Option<Box<dyn Session>> = None;
        loop {
            let last = match ask(&**node, &mut session, sql) {
                Ok(rows) if is_yes(&rows) => return Ok(()),
                Ok(rows) => format!("it answers {}", answer(&rows).unwrap_or_else(|| "nothing".to_owned())),
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
        let answer = session.sql().map(|session| session.query(clustered.is_member(place as u32 + 1)));
        answer.is_some_and(|rows| rows.is_ok_and(|rows| is_yes(&rows)))
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

    fn member(&self, client: u32) -> &dyn Database {
        &*self.shared.members[self.place_of(client)]
    }
}

fn ask(
    node: &dyn Database,
    session: &mut Option<Box<dyn Session>>,
    sql: &str,
) -> Result<Vec<Vec<Option<String>>>, DatabaseError> {
    match session {
        Some(session) => session.query(sql),
        None => session.insert(node.connect()?).query(sql),
    }
}

fn answer(rows: &[Vec<Option<String>>]) -> Option<String> {
    rows.first()?.first()?.clone()
}

fn is_yes(rows: &[Vec<Option<String>>]) -> bool {
    answer(rows).is_some_and(|text| ["1", "t"].contains(&text.as_str()))
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

    fn sql(&self) -> Option<&dyn Database> {
        Some(self)
    }
}

impl Database for Nodes {
    fn dialect(&self) -> &dyn Dialect {
        self.member(0).dialect()
    }

    fn connect(&self) -> Result<Box<dyn Session>, DatabaseError> {
        self.member(0).connect()
    }

    fn connect_writer(&self, limits: &Arc<SessionLimits>) -> Result<Box<dyn Session>, DatabaseError> {
        self.member(0).connect_writer(limits)
    }

    fn weaknesses(
        &self,
        session: &mut dyn Session,
        is_asked: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<Weakness>, DatabaseError> {
        self.member(0).weaknesses(session, is_asked)
    }

    fn harden(&self, session: &mut dyn Session) -> Result<Option<String>, DatabaseError> {
        self.member(0).harden(session)
    }

    fn log_position(&self, session: &mut dyn Session) -> Result<Option<LogPosition>, DatabaseError> {
        self.member(0).log_position(session)
    }
}
