//! The simulated database: servers with known service times and one queue in front of them, in real time. It stores nothing
//! but the rows of tables that number their rows, until these are dropped.
//! It is the oracle of the load engine: queueing theory says what the engine must measure.
//!
//! Settings, under `database.config`: `service` (mean service time, default `1ms`), `distribution` (`exponential`, the
//! default, or `constant`), `servers` (default 1), `delay` (added to each answer without occupying a server, default `0s`),
//! `freeze` (a time in which nothing is served, once) that begins `freeze_after` the first request (both default `0s`),
//! `fail_share` (share of refused requests, default 0), `empty_share` (share of answers without rows, default 0), `visible`
//! (the time from its answer until a row of a numbered table can be read, default `0s`), `seed`.
//!
//! Invariant: requests are served first come, first served; an answer's time is decided when its request arrives.

mod connection;
mod rows;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use super::{Capabilities, Capability, DatabaseError, Endpoint, Entry, Opens, Target, TargetSession};
use crate::random::Stream;
use crate::record::Cells;
use crate::statement::Request;
use crate::trial::DatabaseSettings;
use crate::units::parse_duration;

use rows::{Rows, Statements};

/// The registry's entry.
pub static SIMULATED: Entry = Entry {
    name: "simulated",
    summary: "servers with known service times, in this process; stores nothing; for trying studies and testing loadline",
    engines: &[],
    opens: Opens::Store(open),
    recipe: None,
    library: None,
    clustered: None,
    read_url: None,
    capabilities: Capabilities::SQL
        .without(Capability::Sql)
        .without(Capability::Plans)
        .without(Capability::DryRuns)
        .without(Capability::Processes),
    refuses: None,
    refuses_rows: None,
    processes: &[],
    level: None,
    levels: &[],
};

fn open(settings: &DatabaseSettings, _: Option<&Endpoint>) -> Result<Box<dyn Target>, DatabaseError> {
    let service = Service::from_config(&settings.config).map_err(DatabaseError::Unavailable)?;
    Ok(Box::new(Simulated { queue: Arc::new(Mutex::new(Queue::new(service))) }))
}

/// The parameters of the service.
#[derive(Debug, Clone, PartialEq)]
pub struct Service {
    /// Mean service time in nanoseconds.
    pub mean_ns: f64,
    /// True if service times are exponentially distributed; otherwise they are constant.
    pub is_exponential: bool,
    /// Parallel servers, at least 1.
    pub servers: usize,
    /// Constant delay of each answer in nanoseconds.
    pub delay_ns: u64,
    /// The duration of the single freeze, in which nothing is served, in nanoseconds; 0 for none.
    pub freeze_ns: u64,
    /// The time from the first request to the start of the freeze, in nanoseconds.
    pub freeze_after_ns: u64,
    /// Share of requests that are refused, 0..1.
    pub fail_share: f64,
    /// Share of requests answered without rows, 0..1.
    pub empty_share: f64,
    /// The time from its answer until a row can be read, in nanoseconds.
    pub visible_ns: u64,
    /// Seed of service times.
    pub seed: u64,
}

impl Service {
    /// Reads `database.config`.
    ///
    /// # Errors
    /// A sentence that names the setting, its value and what is accepted.
    pub fn from_config(config: &BTreeMap<String, String>) -> Result<Self, String> {
        let mut service = Service {
            mean_ns: 1e6,
            is_exponential: true,
            servers: 1,
            delay_ns: 0,
            freeze_ns: 0,
            freeze_after_ns: 0,
            fail_share: 0.0,
            empty_share: 0.0,
            visible_ns: 0,
            seed: 1,
        };
        for (name, value) in config {
            let wrong = |accepted: &str| format!("database.config.{name} = \"{value}\": {accepted}");
            let share = || value.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
            let duration =
                || parse_duration(value).map(|time| time.as_nanos() as u64).map_err(|why| wrong(&why.to_string()));
            match name.as_str() {
                "service" => service.mean_ns = duration()? as f64,
                "freeze" => service.freeze_ns = duration()?,
                "freeze_after" => service.freeze_after_ns = duration()?,
                "visible" => service.visible_ns = duration()?,
                "delay" => service.delay_ns = duration()?,
                "distribution" => {
                    service.is_exponential = match value.as_str() {
                        "exponential" => true,
                        "constant" => false,
                        _ => return Err(wrong("must be \"exponential\" or \"constant\"")),
                    }
                }
                "servers" => {
                    let servers = value.parse().ok().filter(|servers| (1..=10_000).contains(servers));
                    service.servers = servers.ok_or_else(|| wrong("must be a whole number from 1 to 10000"))?;
                }
                "fail_share" => service.fail_share = share().ok_or_else(|| wrong("must be between 0 and 1"))?,
                "empty_share" => service.empty_share = share().ok_or_else(|| wrong("must be between 0 and 1"))?,
                "seed" => service.seed = value.parse().map_err(|_| wrong("must be a whole number"))?,
                _ => {
                    return Err(wrong(
                        "the simulated database has no such setting; it has service, distribution, servers, delay, \
                         freeze, freeze_after, fail_share, empty_share, visible, seed",
                    ));
                }
            }
        }
        Ok(service)
    }
}

/// The queue and its servers, shared by all connections.
#[derive(Debug)]
struct Queue {
    service: Service,
    origin: Instant,
    /// The time at which each server is free again, in nanoseconds.
    free_ns: Vec<u64>,
    first_ns: Option<u64>,
    random: Stream,
    rows: Rows,
}

/// The fate of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Fate {
    /// The time at which the answer is complete.
    done: Instant,
    /// The same time in nanoseconds since the database was opened.
    done_ns: u64,
    is_refused: bool,
    is_empty: bool,
}

impl Queue {
    fn new(service: Service) -> Self {
        Queue {
            free_ns: vec![0; service.servers],
            first_ns: None,
            random: Stream::seeded(service.seed),
            origin: Instant::now(),
            rows: Rows::default(),
            service,
        }
    }

    /// Adds a request that arrives now.
    fn arrive(&mut self) -> Fate {
        let now_ns = self.now_ns();
        let done_ns = self.depart(now_ns) + self.service.delay_ns;
        let is_refused = self.random.unit() < self.service.fail_share;
        let is_empty = self.random.unit() < self.service.empty_share;
        Fate { done: self.origin + std::time::Duration::from_nanos(done_ns), done_ns, is_refused, is_empty }
    }

    fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    /// Adds a request that arrives now and may insert rows, or read the rows that are readable now.
    fn execute(&mut self, statements: &Statements, request: &Request, out: Option<&mut Cells>) -> (Fate, u64) {
        let read = out.map_or(0, |out| self.rows.read(statements, request, self.now_ns(), out));
        let fate = self.arrive();
        if !fate.is_refused {
            let visible_ns = fate.done_ns + self.service.visible_ns;
            self.rows.insert(statements, request, visible_ns);
        }
        (fate, read)
    }

    /// Returns when a request that arrives at `now_ns` leaves the server that is free first.
    fn depart(&mut self, now_ns: u64) -> u64 {
        let factor = if self.service.is_exponential { -(1.0 - self.random.unit()).ln() } else { 1.0 };
        let service_ns = (self.service.mean_ns * factor) as u64;
        let mut first = 0;
        for (server, free_ns) in self.free_ns.iter().enumerate() {
            if *free_ns < self.free_ns[first] {
                first = server;
            }
        }
        self.free_ns[first] = self.served_from(self.free_ns[first].max(now_ns), now_ns) + service_ns;
        self.free_ns[first]
    }

    /// Returns when a service that could begin at `begin_ns` begins: after the freeze, if it falls into it.
    fn served_from(&mut self, begin_ns: u64, now_ns: u64) -> u64 {
        let freeze_from_ns = *self.first_ns.get_or_insert(now_ns) + self.service.freeze_after_ns;
        let freeze_to_ns = freeze_from_ns + self.service.freeze_ns;
        if (freeze_from_ns..freeze_to_ns).contains(&begin_ns) { freeze_to_ns } else { begin_ns }
    }
}

struct Simulated {
    queue: Arc<Mutex<Queue>>,
}

impl Target for Simulated {
    fn name(&self) -> &'static str {
        SIMULATED.name
    }

    fn open(&self) -> Result<Box<dyn TargetSession>, DatabaseError> {
        let connection = connection::Connection::open(Arc::clone(&self.queue));
        let unavailable = |error| DatabaseError::Unavailable(format!("the kernel gives no timer: {error}"));
        Ok(Box::new(connection.map_err(unavailable)?))
    }
}

/// Locks the queue, even after a holder has panicked: the queue is consistent between statements.
fn lock(queue: &Mutex<Queue>) -> std::sync::MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn settings_are_read_and_wrong_ones_are_named() {
        let service = Service::from_config(&config(&[("service", "2ms"), ("distribution", "constant")])).unwrap();
        assert_eq!((service.mean_ns, service.is_exponential), (2e6, false));
        let error = Service::from_config(&config(&[("servce", "2ms")])).unwrap_err();
        assert!(error.contains("database.config.servce"), "{error}");
        assert!(Service::from_config(&config(&[("fail_share", "2")])).is_err());
        assert!(Service::from_config(&config(&[("servers", "0")])).is_err());
    }

    #[test]
    fn one_server_serves_in_order_and_two_serve_at_once() {
        let constant = config(&[("service", "1us"), ("distribution", "constant")]);
        let mut one = Queue::new(Service::from_config(&constant).unwrap());
        assert_eq!([one.depart(10), one.depart(10), one.depart(5_000)], [1_010, 2_010, 6_000]);
        let mut two = Queue::new(Service { servers: 2, ..Service::from_config(&constant).unwrap() });
        assert_eq!([two.depart(10), two.depart(10), two.depart(10)], [1_010, 1_010, 2_010]);
    }

    #[test]
    fn exponential_service_times_have_the_mean_and_the_spread_they_should() {
        let mut queue = Queue::new(Service::from_config(&config(&[("service", "1ms"), ("seed", "7")])).unwrap());
        let times: Vec<f64> = (0..20_000u64).map(|i| (queue.depart(i * (1 << 40)) - i * (1 << 40)) as f64).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / times.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.03, "mean {mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.05, "coefficient of variation {}", variance.sqrt() / mean);
    }
}
