//! Selection of the part of a trace that is sent, and its distribution over connections.
//!
//! Main type: [`Replay`].

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::{Does, Event, Trace};

/// Largest number of kinds in results: the most frequent statements have one kind each, those that control transactions share one, and the rest share one.
pub const KINDS_MOST: usize = 60;

/// Largest number of statements that each connection prepares: the most frequent ones. Rarer ones are sent as text.
pub const PREPARED_MOST: usize = 100;

/// A statement as it is sent over a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    /// Index in [`Trace::events`].
    pub event: u32,
    /// Whether the statement is within a transaction that began before it.
    pub is_inside: bool,
}

/// The part of a trace that is sent, by connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replay {
    /// The trace.
    pub trace: Arc<Trace>,
    /// The statements of each connection, in order; no connection is without any.
    pub connections: Vec<Vec<Sent>>,
    /// Number of statements that are sent, at least 1.
    pub statements: u64,
    /// Number of statements that are left out because they change something.
    pub left_out: u64,
    /// Whether any statement that is sent changes something.
    pub changes: bool,
    /// Duration of the sent statements in the trace, in microseconds, longer than the time of the last one.
    pub span_us: u64,
    /// Kind in results of each statement of the trace.
    pub kinds: Vec<u16>,
    /// Whether connections prepare each statement of the trace.
    pub is_prepared: Vec<bool>,
    /// Name of each kind, and the statement or description that it stands for.
    pub names: Vec<(String, String)>,
}

impl Replay {
    /// Selects the statements before `until_us` of the trace, and those that change something only if `writes`. `None` where none is left to send.
    pub fn of(trace: Arc<Trace>, until_us: Option<u64>, writes: bool) -> Option<Self> {
        let until_us = until_us.unwrap_or(u64::MAX);
        let (mut chosen, mut left_out): (Vec<u32>, u64) = (Vec::new(), 0);
        let mut lasts: HashMap<u32, u32> = HashMap::new();
        for (place, event) in (0..).zip(&trace.events).take_while(|(_, event)| event.at_us < until_us) {
            if !writes && trace.does(event) == Does::Writes {
                left_out += 1;
                continue;
            }
            lasts.insert(event.session, place);
            chosen.push(place);
        }
        let last_us = chosen.last().map(|place| trace.events[*place as usize].at_us)?;
        if chosen.iter().all(|place| trace.does(&trace.events[*place as usize]).is_control()) {
            return None;
        }
        let changes = chosen.iter().any(|place| trace.does(&trace.events[*place as usize]) == Does::Writes);
        let connections = connections(&trace, &chosen, &lasts);
        let statements = chosen.len() as u64;
        // The last statement gets as much time as the others have on average.
        let span_us = match statements {
            1 => last_us.max(999_999) + 1,
            _ => last_us + last_us / (statements - 1) + 1,
        };
        let Kinds { kinds, is_prepared, names } = Kinds::of(&trace, &chosen);
        Some(Replay { trace, connections, statements, left_out, changes, span_us, kinds, is_prepared, names })
    }

    /// Returns the statements per second in the trace.
    pub fn rate_per_s(&self) -> f64 {
        self.statements as f64 / (self.span_us as f64 / 1e6)
    }

    /// Returns the statement that a connection sends at a position; `None` after its last one.
    #[inline]
    pub fn sent(&self, connection: usize, place: usize) -> Option<(&Event, Sent)> {
        let sent = *self.connections.get(connection)?.get(place)?;
        Some((self.trace.events.get(sent.event as usize)?, sent))
    }

    /// Returns whether a statement only reads data, and neither changes something nor controls a transaction.
    #[inline]
    pub fn only_reads(&self, event: &Event) -> bool {
        self.trace.does(event) == Does::Reads
    }
}

impl Trace {
    /// Returns the effect of the statement of an event.
    fn does(&self, event: &Event) -> Does {
        self.statements.get(usize::from(event.statement)).map_or(Does::Reads, |statement| statement.does)
    }
}

/// The connection of a session that is open.
struct Open {
    connection: usize,
    is_inside: bool,
}

/// Assigns a connection to each session: the one that has been free for the longest time, or a new one.
fn connections(trace: &Trace, chosen: &[u32], lasts: &HashMap<u32, u32>) -> Vec<Vec<Sent>> {
    let mut connections: Vec<Vec<Sent>> = Vec::new();
    let mut free: VecDeque<usize> = VecDeque::new();
    let mut open: HashMap<u32, Open> = HashMap::new();
    for place in chosen {
        let event = &trace.events[*place as usize];
        let session = open.entry(event.session).or_insert_with(|| {
            let connection = free.pop_front().unwrap_or_else(|| {
                connections.push(Vec::new());
                connections.len() - 1
            });
            Open { connection, is_inside: false }
        });
        connections[session.connection].push(Sent { event: *place, is_inside: session.is_inside });
        match trace.does(event) {
            Does::Begins => session.is_inside = true,
            Does::Ends => session.is_inside = false,
            Does::Reads | Does::Writes | Does::Marks => {}
        }
        if lasts.get(&event.session) == Some(place)
            && let Some(ended) = open.remove(&event.session)
            // No other session may go on in a transaction that was not ended.
            && !ended.is_inside
        {
            free.push_back(ended.connection);
        }
    }
    connections
}

/// The kinds in results, and the statements that are prepared.
struct Kinds {
    kinds: Vec<u16>,
    is_prepared: Vec<bool>,
    names: Vec<(String, String)>,
}

impl Kinds {
    fn of(trace: &Trace, chosen: &[u32]) -> Self {
        let mut counts = vec![0_u64; trace.statements.len()];
        for place in chosen {
            counts[usize::from(trace.events[*place as usize].statement)] += 1;
        }
        let mut order: Vec<usize> = (0..counts.len()).filter(|place| counts[*place] > 0).collect();
        order.sort_by_key(|place| (std::cmp::Reverse(counts[*place]), *place));
        let (control, asking): (Vec<usize>, Vec<usize>) =
            order.into_iter().partition(|place| trace.statements[*place].does.is_control());
        let mut is_prepared = vec![false; counts.len()];
        asking.iter().take(PREPARED_MOST).for_each(|place| is_prepared[*place] = true);
        let mut found = Kinds { kinds: vec![0; counts.len()], is_prepared, names: Vec::new() };
        let (own, others) = asking.split_at(asking.len().min(KINDS_MOST));
        for place in own {
            let statement = &trace.statements[*place];
            let is_taken = found.names.iter().any(|(name, _)| *name == statement.name);
            let name = if is_taken { format!("{} ({place})", statement.name) } else { statement.name.clone() };
            found.put(&[*place], &name, &statement.sql);
        }
        if !others.is_empty() {
            found.put(others, "other statements", &format!("{} further statements", others.len()));
        }
        if !control.is_empty() {
            found.put(&control, "transaction control", "BEGIN, COMMIT, ROLLBACK, SAVEPOINT");
        }
        found
    }

    /// Gives statements a common kind.
    fn put(&mut self, places: &[usize], name: &str, sql: &str) {
        places.iter().for_each(|place| self.kinds[*place] = self.names.len() as u16);
        self.names.push((name.to_owned(), sql.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::TracedStatement;
    use super::*;

    /// Creates a trace of reads (r), writes (w), begins (b) and ends (e) with the given times and sessions.
    fn trace(events: &[(u64, u32, char)]) -> Arc<Trace> {
        let does = [Does::Reads, Does::Writes, Does::Begins, Does::Ends];
        let statements =
            does.map(|does| TracedStatement { name: format!("{does:?}"), sql: String::new(), parameters: 0, does });
        let event = |(at_us, session, letter): &(u64, u32, char)| Event {
            at_us: *at_us,
            session: *session,
            statement: "rwbe".find(*letter).unwrap() as u16,
            values_at: 0,
        };
        let events = events.iter().map(event).collect();
        Arc::new(Trace { statements: statements.to_vec(), events, ..Trace::default() })
    }

    fn sent(replay: &Replay) -> Vec<Vec<u32>> {
        replay.connections.iter().map(|one| one.iter().map(|sent| sent.event).collect()).collect()
    }

    #[test]
    fn sessions_that_do_not_meet_share_a_connection() {
        let trace = trace(&[(0, 9, 'r'), (1, 4, 'r'), (2, 9, 'r'), (3, 5, 'r'), (4, 4, 'r'), (5, 6, 'r')]);
        let replay = Replay::of(trace, None, false).unwrap();
        assert_eq!(sent(&replay), [vec![0, 2, 3, 5], vec![1, 4]]);
        assert_eq!((replay.statements, replay.span_us), (6, 7));
    }

    #[test]
    fn a_transaction_that_is_not_ended_keeps_its_connection() {
        let trace = trace(&[(0, 1, 'b'), (1, 1, 'r'), (2, 2, 'r')]);
        let replay = Replay::of(trace, None, false).unwrap();
        assert_eq!(sent(&replay), [vec![0, 1], vec![2]]);
        assert_eq!(replay.connections[0].iter().map(|sent| sent.is_inside).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn what_changes_something_is_left_out_unless_it_may() {
        let trace = trace(&[(0, 1, 'b'), (1, 1, 'w'), (2, 1, 'e'), (3, 1, 'r'), (9, 1, 'r')]);
        let reads = Replay::of(Arc::clone(&trace), None, false).unwrap();
        assert_eq!((reads.statements, reads.left_out, sent(&reads)), (4, 1, vec![vec![0, 2, 3, 4]]));
        let all = Replay::of(Arc::clone(&trace), None, true).unwrap();
        assert_eq!((all.statements, all.left_out), (5, 0));
        assert_eq!(Replay::of(Arc::clone(&trace), Some(4), true).unwrap().statements, 4);
        assert_eq!(Replay::of(trace, Some(3), false), None, "there is nothing but the ends of a transaction");
        let names: Vec<&str> = all.names.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["Reads", "Writes", "transaction control"]);
        assert_eq!(all.kinds, [0, 1, 2, 2]);
    }

    #[test]
    fn rare_statements_are_one_kind() {
        let statement = |number: usize| TracedStatement {
            name: format!("s{number}"),
            sql: String::new(),
            parameters: 0,
            does: Does::Reads,
        };
        let statements: Vec<TracedStatement> = (0..100).map(statement).collect();
        let event = |number: u64| Event { at_us: number, session: 0, statement: (number % 100) as u16, values_at: 0 };
        let trace = Trace { statements, events: (0..250).map(event).collect(), ..Trace::default() };
        let replay = Replay::of(Arc::new(trace), None, false).unwrap();
        assert_eq!(replay.names.len(), KINDS_MOST + 1);
        assert_eq!((replay.kinds[0], replay.kinds[49], replay.kinds[99]), (0, 49, 60));
        assert_eq!(replay.names[60], ("other statements".to_owned(), "40 further statements".to_owned()));
    }
}
