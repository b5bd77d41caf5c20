//! Tests shares of writing against a simulated database, in simulated time: together the sources send three times what it takes. Those below their share are
//! stored within a second, and in order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::{GREEDY_LANES, GreedySources};
use crate::recorder::admission::gate::{GateState, Turn, Usage};

/// The rows that the database takes in a second, over all lanes together, and the seconds that a commit takes besides.
const ROWS_PER_S: f64 = 50_000.0;
const COMMIT_S: f64 = 0.001;
/// The rows of a transaction.
const BATCH: f64 = 5_000.0;
const ROW_BYTES: f64 = 50.0;
/// The bytes that the spool may hold: ten seconds of writing.
const SPOOL_BYTES: f64 = 10.0 * ROWS_PER_S * ROW_BYTES;
/// How long a writer waits for a batch to fill, in seconds.
const WITHIN_S: f64 = 0.005;
/// A step of simulated time, in seconds.
const STEP_S: f64 = 0.001;
/// The seconds until the greedy sources are found, and what they sent before is written.
const FOUND_S: f64 = 2.0;
const LASTS_S: f64 = 10.0;
/// When entries are late in the lanes of all sources, in seconds, and the factor by which greedy ones wait for them, as in the writers.
const LATE_S: f64 = 0.25;
const WAITS_TIMES: f64 = 4.0;

struct Entry {
    sequence: i64,
    source: usize,
    rows: f64,
    came_s: f64,
}

/// A lane with its writer.
#[derive(Default)]
struct Lane {
    waiting: VecDeque<Entry>,
    writing: Vec<Entry>,
    /// Seconds of the database's time until the transaction is committed, if the lane is alone.
    left_s: f64,
    begun_s: f64,
    wrote_for_s: f64,
    waits_since_s: Option<f64>,
    /// Since when the lane has waited for a batch to fill; `None` if it does not.
    fills_since_s: Option<f64>,
}

impl Lane {
    fn oldest(&self) -> Option<&Entry> {
        self.writing.first().or(self.waiting.front())
    }

    /// Begins a transaction of the entries that wait before the given one, if there are enough of them or they have waited long enough.
    fn begin(&mut self, before: i64, now_s: f64) {
        let mut rows = 0.0;
        if self.waiting.front().is_none_or(|entry| entry.sequence >= before) {
            return;
        }
        let since_s = *self.fills_since_s.get_or_insert(now_s);
        if now_s - since_s < WITHIN_S && self.waiting.len() < 5 {
            return;
        }
        self.fills_since_s = None;
        while rows < BATCH
            && let Some(entry) = self.waiting.pop_front_if(|entry| entry.sequence < before)
        {
            rows += entry.rows;
            self.writing.push(entry);
        }
        if !self.writing.is_empty() {
            (self.left_s, self.begun_s, self.waits_since_s) = (COMMIT_S + rows / ROWS_PER_S, now_s, None);
        }
    }
}

/// The rate of a source in rows a second, and the rows of each of its requests.
#[derive(Clone, Copy)]
struct Sends {
    rows_per_s: f64,
    request: f64,
}

struct Simulation {
    sources: Vec<(Arc<str>, Sends)>,
    /// When each source sends next, in microseconds.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    gate: GateState,
    greedy: GreedySources,
    /// The lane of all sources, and behind it the lanes of greedy ones.
    lanes: Vec<Lane>,
    sequence: i64,
    spooled: f64,
    now_s: f64,
    /// The entry of each source that was committed last.
    committed: HashMap<usize, i64>,
    /// The longest time from arrival to commit for each source, of entries before the greedy sources were found, and of later ones.
    longest_s: [Vec<f64>; 2],
    rows: f64,
    turned_away: Vec<u32>,
}

impl Simulation {
    fn new(sends: &[Sends]) -> Self {
        let count = sends.len();
        Simulation {
            sources: sends.iter().enumerate().map(|(number, sends)| (number.to_string().into(), *sends)).collect(),
            // The sources do not all start at the same moment.
            next: (0..count).map(|number| Reverse(((number % 97) as u64 * 1_000, number))).collect(),
            gate: GateState::default(),
            greedy: GreedySources::default(),
            lanes: (0..=GREEDY_LANES.len()).map(|_| Lane::default()).collect(),
            sequence: 0,
            spooled: 0.0,
            now_s: 0.0,
            committed: HashMap::new(),
            longest_s: [vec![0.0; count], vec![0.0; count]],
            rows: 0.0,
            turned_away: vec![0; count],
        }
    }

    fn run(&mut self, seconds: f64) {
        while self.now_s < seconds {
            while let Some(Reverse((due_us, source))) = self.next.peek().copied()
                && due_us as f64 <= 1e6 * self.now_s
            {
                let Sends { rows_per_s, request } = self.sources[source].1;
                self.next.pop();
                self.next.push(Reverse((due_us + (1e6 * request / rows_per_s) as u64, source)));
                self.send(source, request);
            }
            self.now_s += STEP_S;
            self.write();
        }
    }

    fn wait_s(&self) -> f64 {
        self.lanes[0].oldest().map_or(0.0, |entry| self.now_s - entry.came_s)
    }

    fn send(&mut self, source: usize, rows: f64) {
        let (name, bytes) = (&self.sources[source].0, rows * ROW_BYTES);
        let usage = Usage { filled: self.spooled / SPOOL_BYTES, empties_per_s: 0.0 };
        if self.gate.ask(name, bytes as u64, usage, self.now_s) != Turn::In {
            self.turned_away[source] += 1;
            return;
        }
        let is_greedy = self.gate.is_greedy(name, Duration::from_secs_f64(self.wait_s()), self.now_s);
        self.sequence += 1;
        let mut place = 0;
        if let Some(lane) = self.greedy.lane_for(name, is_greedy) {
            self.greedy.note(name, lane, self.sequence);
            place = 1 + (lane - GREEDY_LANES.start) as usize;
        }
        self.spooled += bytes;
        let entry = Entry { sequence: self.sequence, source, rows, came_s: self.now_s };
        self.lanes[place].waiting.push_back(entry);
    }

    /// Advances the lanes by one step: those that write share the database.
    fn write(&mut self) {
        for place in 0..self.lanes.len() {
            if self.lanes[place].writing.is_empty() {
                self.begin(place);
            }
        }
        let writing = self.lanes.iter().filter(|lane| !lane.writing.is_empty()).count().max(1);
        for place in 0..self.lanes.len() {
            let lane = &mut self.lanes[place];
            lane.left_s -= STEP_S / writing as f64;
            if lane.left_s <= 0.0 && !lane.writing.is_empty() {
                self.commit(place);
            }
        }
    }

    fn begin(&mut self, place: usize) {
        if place == 0 {
            return self.lanes[0].begin(i64::MAX, self.now_s);
        }
        let (is_late, now_s) = (self.wait_s() > LATE_S, self.now_s);
        let before = self.lanes[0].oldest().map_or(i64::MAX, |entry| entry.sequence);
        let lane = &mut self.lanes[place];
        let since_s = *lane.waits_since_s.get_or_insert(now_s);
        if !is_late || now_s - since_s >= WAITS_TIMES * lane.wrote_for_s {
            lane.begin(before, now_s);
        }
    }

    fn commit(&mut self, place: usize) {
        let lane = &mut self.lanes[place];
        lane.wrote_for_s = self.now_s - lane.begun_s;
        let Some(through) = lane.writing.last().map(|entry| entry.sequence) else { return };
        for entry in lane.writing.drain(..) {
            let before = self.committed.insert(entry.source, entry.sequence);
            assert!(before < Some(entry.sequence), "source {} is out of order", entry.source);
            let longest_s = &mut self.longest_s[usize::from(entry.came_s > FOUND_S)][entry.source];
            *longest_s = longest_s.max(self.now_s - entry.came_s);
            self.rows += entry.rows;
            self.spooled -= entry.rows * ROW_BYTES;
        }
        if place > 0 {
            self.greedy.settled(GREEDY_LANES.start + place as u32 - 1, through);
        }
    }
}

/// Asserts that modest sources stay fresh beside greedy ones, where together they send three times what the database takes.
fn assert_modest_are_fresh(modest: usize, of_database: f64, greedy: usize) {
    let each = |share: f64, count: usize| share * ROWS_PER_S / count as f64;
    let little = Sends { rows_per_s: each(of_database, modest), request: (each(of_database, modest) / 5.0).max(1.0) };
    let much = Sends { rows_per_s: each(3.0 - of_database, greedy), request: 1_000.0 };
    let mut simulation = Simulation::new(&[vec![little; modest], vec![much; greedy]].concat());
    simulation.run(LASTS_S);
    let what = format!("{modest} modest sources with {of_database} of the database beside {greedy} greedy ones");
    let [at_first_s, longest_s] =
        simulation.longest_s.each_ref().map(|longest_s| longest_s[..modest].iter().copied().fold(0.0, f64::max));
    assert!(at_first_s < 1.0 && longest_s < 0.5, "{what}: {at_first_s} s at first, then {longest_s} s");
    assert_eq!(simulation.turned_away[..modest].iter().sum::<u32>(), 0, "{what}: a modest one was turned away");
    let of_all = simulation.rows / (LASTS_S * ROWS_PER_S);
    assert!(of_all > 0.8, "{what}: {of_all} of what the database takes is stored");
}

#[test]
fn at_three_times_what_the_database_takes_sources_below_their_share_stay_fresh() {
    for modest in [1, 2, 20, 350, 2_000] {
        for (of_database, greedy) in [(0.02, 1), (0.2, 1), (0.4, 1), (0.1, 5), (0.02, 40)] {
            assert_modest_are_fresh(modest, of_database, greedy);
        }
    }
}
