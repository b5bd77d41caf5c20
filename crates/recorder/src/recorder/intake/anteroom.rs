//! The connections of one front: bounded in all and for each address, and most strictly until their clients are known. Main types:
//! [`Anteroom`] and [`Place`].
//!
//! A connection is a stranger from its first byte until it has shown what admits it: a token, a password, or, where nobody needs one, a
//! first whole request. Strangers have a few places, in the anteroom. When all are taken, the oldest stranger of the address that holds most of
//! them has to go, and so a client that only holds connections keeps nobody out who shows a token at once.
//!
//! Invariant: a connection that was admitted is never put out.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::recorder::access::network;
use crate::recorder::config::ListenConfig;
use crate::recorder::log;
use crate::recorder::meter::Count;
use crate::recorder::metrics::Page;

/// The most and the fewest places for strangers, where a token is needed.
const STRANGERS_MAX: u32 = 1_000;
const STRANGERS_MIN: u32 = 16;
/// The shortest time between two log lines that say that there are too many connections.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// Bounds on the number of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::recorder) struct Bounds {
    all: u32,
    strangers: u32,
    of_address: u32,
    /// True if the bound per address also holds for this machine's own connections.
    holds_here: bool,
}

impl Bounds {
    /// Returns the configured bounds. Where nobody needs a token (`is_open`), all places are for strangers: only this machine can connect, and no
    /// client is known before its first request.
    pub(in crate::recorder) fn new(config: &ListenConfig, is_open: bool) -> Self {
        let all = config.connections;
        let strangers = if is_open { all } else { (all / 4).clamp(STRANGERS_MIN, STRANGERS_MAX) };
        // A proxy or a benchmark on this machine may open as many as there are; a bound there must be configured.
        let (of_address, holds_here) = match config.connections_per_address {
            Some(bound) => (bound, true),
            None => ((all / 2).max(1), false),
        };
        Bounds { all, strangers, of_address, holds_here }
    }

    fn of(&self, address: IpAddr) -> u32 {
        if address.is_loopback() && !self.holds_here { self.all } else { self.of_address }
    }
}

/// The reason why a connection is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::recorder) enum Full {
    /// All connections are taken, and all of them were admitted.
    All,
    /// This address has as many as it may.
    Address,
}

/// The connections of one front.
#[derive(Debug)]
pub(in crate::recorder) struct Anteroom {
    name: &'static str,
    bounds: Bounds,
    inside: Mutex<Inside>,
    refused_all: Count,
    refused_address: Count,
    put_out_room: Count,
    put_out_slow: Count,
    put_out_unproven: Count,
}

#[derive(Debug, Default)]
struct Inside {
    next: u64,
    all: u32,
    strangers: u32,
    by_address: HashMap<IpAddr, u32>,
    /// Strangers by address, in the order in which they came.
    waiting: HashMap<IpAddr, BTreeMap<u64, Arc<Seat>>>,
    told: Option<Instant>,
}

const STRANGER: u8 = 0;
const KNOWN: u8 = 1;
const PUT_OUT: u8 = 2;

/// The state of a connection.
#[derive(Debug)]
struct Seat {
    number: u64,
    address: IpAddr,
    state: AtomicU8,
    goes: Notify,
}

/// The place of a connection, released on drop.
#[derive(Debug)]
pub(in crate::recorder) struct Place {
    room: Arc<Anteroom>,
    seat: Arc<Seat>,
}

/// Returns a place for a connection that comes from no socket, in a room of its own.
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub(in crate::recorder) fn lone_place(config: &ListenConfig, is_open: bool, from: IpAddr) -> Arc<Place> {
    let place = Anteroom::new("fuzzed", Bounds::new(config, is_open)).enter(from);
    Arc::new(place.unwrap_or_else(|full| panic!("there is room for one: {full:?}")))
}

impl Anteroom {
    pub(in crate::recorder) fn new(name: &'static str, bounds: Bounds) -> Arc<Self> {
        Arc::new(Anteroom {
            name,
            bounds,
            inside: Mutex::default(),
            refused_all: Count::default(),
            refused_address: Count::default(),
            put_out_room: Count::default(),
            put_out_slow: Count::default(),
            put_out_unproven: Count::default(),
        })
    }

    /// Accepts a connection, as a stranger. If there is no place, a stranger has to go: one of the same address if that address has too many, and
    /// otherwise one of the address that has most.
    ///
    /// # Errors
    /// If all connections that could go were admitted.
    pub(in crate::recorder) fn enter(self: &Arc<Self>, from: IpAddr) -> Result<Place, Full> {
        let address = network(from);
        let mut inside = self.inside();
        let own = inside.by_address.get(&address).copied().unwrap_or(0);
        let refusal = if own >= self.bounds.of(from.to_canonical()) {
            (!self.put_out(&mut inside, Some(address))).then_some(Full::Address)
        } else if inside.all >= self.bounds.all {
            (!self.put_out(&mut inside, None)).then_some(Full::All)
        } else {
            None
        };
        if let Some(full) = refusal {
            let (count, why) = match full {
                Full::All => (&self.refused_all, "there are as many connections as there may be"),
                Full::Address => (&self.refused_address, "this address has as many connections as it may"),
            };
            count.add(1);
            self.tell(&mut inside, address, why);
            return Err(full);
        }
        if inside.strangers >= self.bounds.strangers {
            self.put_out(&mut inside, None);
        }
        let number = inside.next;
        inside.next += 1;
        let seat = Arc::new(Seat { number, address, state: AtomicU8::new(STRANGER), goes: Notify::new() });
        inside.all += 1;
        inside.strangers += 1;
        *inside.by_address.entry(address).or_default() += 1;
        inside.waiting.entry(address).or_default().insert(number, Arc::clone(&seat));
        Ok(Place { room: Arc::clone(self), seat })
    }

    /// Puts out a stranger because the system has no room for another connection.
    pub(in crate::recorder) fn make_room(&self) {
        let mut inside = self.inside();
        self.put_out(&mut inside, None);
    }

    /// Puts out the oldest stranger of an address, or of the one that has most; returns whether there was one.
    fn put_out(&self, inside: &mut Inside, of: Option<IpAddr>) -> bool {
        let longest = |strangers: &BTreeMap<u64, Arc<Seat>>| {
            let first = strangers.keys().next().copied().unwrap_or(u64::MAX);
            (strangers.len(), std::cmp::Reverse(first))
        };
        let address = of.or_else(|| {
            let most = inside.waiting.iter().max_by_key(|(_, strangers)| longest(strangers));
            most.map(|(address, _)| *address)
        });
        let oldest = address.and_then(|address| inside.waiting.get(&address)?.values().next().cloned());
        let Some(seat) = oldest else { return false };
        inside.leave(&seat, true);
        seat.state.store(PUT_OUT, Ordering::Release);
        seat.goes.notify_waiters();
        self.put_out_room.add(1);
        self.tell(inside, seat.address, "others came, and this one had shown no token yet");
        true
    }

    fn tell(&self, inside: &mut Inside, address: IpAddr, why: &str) {
        let now = Instant::now();
        if inside.told.is_none_or(|told| now.saturating_duration_since(told) >= TELL_EVERY) {
            inside.told = Some(now);
            let address = address.to_string();
            log::warning(
                "connections are refused or put out",
                &[("intake", self.name), ("address", &address), ("why", why)],
            );
        }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    /// Notes that a connection is no stranger any more, or has ended.
    fn leave(&mut self, seat: &Seat, has_gone: bool) {
        if let Some(strangers) = self.waiting.get_mut(&seat.address) {
            self.strangers -= u32::from(strangers.remove(&seat.number).is_some());
            if strangers.is_empty() {
                self.waiting.remove(&seat.address);
            }
        }
        if !has_gone {
            return;
        }
        self.all -= 1;
        if let Some(own) = self.by_address.get_mut(&seat.address) {
            *own -= 1;
            if *own == 0 {
                self.by_address.remove(&seat.address);
            }
        }
    }
}

impl Place {
    /// Admits the connection, which has shown what admits it; returns false if it had been put out before.
    pub(in crate::recorder) fn let_in(&self) -> bool {
        if self.is_known() {
            return true;
        }
        let mut inside = self.room.inside();
        if self.state() == PUT_OUT {
            return false;
        }
        inside.leave(&self.seat, false);
        self.seat.state.store(KNOWN, Ordering::Release);
        true
    }

    /// Returns whether the connection was admitted.
    pub(in crate::recorder) fn is_known(&self) -> bool {
        self.state() == KNOWN
    }

    /// Counts a connection that took too long.
    pub(in crate::recorder) fn count_slow(&self) {
        self.room.put_out_slow.add(1);
    }

    /// Counts a connection without a certificate, or with one that its authority has not signed.
    pub(in crate::recorder) fn count_unproven(&self) {
        self.room.put_out_unproven.add(1);
        self.room.tell(&mut self.room.inside(), self.seat.address, "this one showed no certificate that is trusted");
    }

    /// Waits until the place is needed for another connection; for ever once this one was admitted.
    pub(in crate::recorder) async fn sent_away(&self) {
        // In this order, so that no notification in between is lost.
        let goes = self.seat.goes.notified();
        if self.state() != PUT_OUT {
            goes.await;
        }
    }

    /// Serves the connection until it ends, or the place is needed for another one.
    pub(in crate::recorder) async fn hold(&self, served: impl Future<Output = ()>) {
        let (mut served, mut sent_away) = (pin!(served), pin!(self.sent_away()));
        poll_fn(|context| match served.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(()),
            // A connection that was admitted does not pay for those that were not.
            Poll::Pending if self.is_known() => Poll::Pending,
            Poll::Pending => sent_away.as_mut().poll(context),
        })
        .await;
    }

    fn state(&self) -> u8 {
        self.seat.state.load(Ordering::Acquire)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut inside = self.room.inside();
        if self.state() != PUT_OUT {
            inside.leave(&self.seat, true);
        }
    }
}

/// Returns the part of `/metrics` about some fronts; `of` prefixes the names of the counters.
pub(in crate::recorder) fn page(of: &str, rooms: &[Arc<Anteroom>]) -> String {
    let (mut page, mut waiting, mut open) = (Page::default(), String::new(), String::new());
    let (mut refused, mut put_out) = (String::new(), String::new());
    for room in rooms {
        let (name, inside) = (room.name, room.inside());
        // Writing to a string never fails.
        let _ = writeln!(open, "loadline_{of}connections_open{{intake=\"{name}\"}} {}", inside.all);
        let _ = writeln!(waiting, "loadline_{of}connections_waiting{{intake=\"{name}\"}} {}", inside.strangers);
        for (why, count) in [("all", &room.refused_all), ("address", &room.refused_address)] {
            let count = count.get();
            let _ =
                writeln!(refused, "loadline_{of}connections_refused_total{{intake=\"{name}\",why=\"{why}\"}} {count}");
        }
        let whys =
            [("room", &room.put_out_room), ("slow", &room.put_out_slow), ("certificate", &room.put_out_unproven)];
        for (why, count) in whys {
            let count = count.get();
            let _ =
                writeln!(put_out, "loadline_{of}connections_put_out_total{{intake=\"{name}\",why=\"{why}\"}} {count}");
        }
    }
    for (name, kind, says, lines) in [
        ("open", "gauge", "Connections", open),
        ("waiting", "gauge", "Connections that have not shown a token or password yet", waiting),
        (
            "refused_total",
            "counter",
            "Connections that were not taken, by why: too many in all, or of an address",
            refused,
        ),
        (
            "put_out_total",
            "counter",
            "Connections that were ended: to make room for another one, too slow, or without a certificate of the client authority",
            put_out,
        ),
    ] {
        page.head(&format!("{of}connections_{name}"), kind, says);
        page.0 += &lines;
    }
    page.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(all: u32, strangers: u32, of_address: u32) -> Arc<Anteroom> {
        Anteroom::new("http", Bounds { all, strangers, of_address, holds_here: true })
    }

    fn address(number: u8) -> IpAddr {
        [10, 0, 0, number].into()
    }

    #[test]
    fn the_oldest_stranger_of_the_address_that_has_most_goes() {
        let room = room(100, 4, 100);
        let alone = room.enter(address(1)).unwrap();
        let many: Vec<_> = (0..3).map(|_| room.enter(address(2)).unwrap()).collect();
        let next = room.enter(address(3)).unwrap();
        assert_eq!(
            [&alone, &many[0], &many[1], &next].map(|place| place.state()),
            [STRANGER, PUT_OUT, STRANGER, STRANGER]
        );
        assert!(!many[0].let_in() && many[1].let_in() && many[1].is_known());
        // Now each address has one, and the oldest connection goes.
        let (fourth, fifth) = (room.enter(address(4)).unwrap(), room.enter(address(5)).unwrap());
        assert_eq!((alone.state(), many[2].state(), fourth.state()), (PUT_OUT, STRANGER, STRANGER));
        let counts = |inside: MutexGuard<'_, Inside>| (inside.all, inside.strangers);
        assert_eq!(counts(room.inside()), (5, 4));
        drop((alone, many, next, fourth, fifth));
        let inside = room.inside();
        assert!(inside.all == 0 && inside.strangers == 0 && inside.by_address.is_empty() && inside.waiting.is_empty());
    }

    #[test]
    fn who_was_let_in_stays_and_the_bounds_hold() {
        let room = room(4, 4, 3);
        let known: Vec<_> = (0..3).map(|_| room.enter(address(1)).unwrap()).collect();
        assert!(known.iter().all(Place::let_in));
        assert_eq!(room.enter(address(1)).unwrap_err(), Full::Address);
        let stranger = room.enter(address(2)).unwrap();
        let other = room.enter(address(3)).unwrap();
        assert_eq!(stranger.state(), PUT_OUT);
        assert!(other.let_in());
        assert_eq!(room.enter(address(4)).unwrap_err(), Full::All);
        let page = page("", &[Arc::clone(&room)]);
        for line in [
            "loadline_connections_open{intake=\"http\"} 4\n",
            "loadline_connections_waiting{intake=\"http\"} 0\n",
            "loadline_connections_refused_total{intake=\"http\",why=\"all\"} 1\n",
            "loadline_connections_refused_total{intake=\"http\",why=\"address\"} 1\n",
            "loadline_connections_put_out_total{intake=\"http\",why=\"room\"} 1\n",
        ] {
            assert!(page.contains(line), "{line} {page}");
        }
    }

    #[test]
    fn an_address_that_has_too_many_loses_its_own() {
        let room = room(100, 100, 2);
        let (other, first) = (room.enter(address(1)).unwrap(), room.enter(address(2)).unwrap());
        let (_second, _third) = (room.enter(address(2)).unwrap(), room.enter(address(2)).unwrap());
        assert_eq!((other.state(), first.state()), (STRANGER, PUT_OUT));
        let v6 = |text: &str| room.enter(text.parse().unwrap()).unwrap();
        let (first, _second, _third) = (v6("2001:db8::1"), v6("2001:db8::2"), v6("2001:db8::3"));
        assert_eq!(first.state(), PUT_OUT, "one who has an address has all of its /64");
    }

    #[test]
    fn this_machine_is_bounded_only_where_that_is_said() {
        let config = |of_address| ListenConfig { connections_per_address: of_address, ..ListenConfig::here(1_000) };
        let (here, there) = (IpAddr::from([127, 0, 0, 1]), address(1));
        let usual = Bounds::new(&config(None), false);
        assert_eq!((usual.of(here), usual.of(there), usual.strangers), (1_000, 500, 250));
        let said = Bounds::new(&config(Some(7)), true);
        assert_eq!((said.of(here), said.of(there), said.strangers), (7, 7, 1_000));
    }

    #[test]
    fn whoever_is_sent_away_hears_of_it_however_often_it_asks() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let room = room(2, 2, 2);
            let (first, second) = (room.enter(address(1)).unwrap(), room.enter(address(1)).unwrap());
            let third = room.enter(address(1)).unwrap();
            first.sent_away().await;
            first.sent_away().await;
            first.hold(std::future::pending()).await;
            for place in [&second, &third] {
                let stays = tokio::time::timeout(Duration::from_millis(10), place.hold(std::future::pending())).await;
                assert!(stays.is_err());
            }
        });
    }
}
