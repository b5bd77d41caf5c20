//! Slows guessing: an address that has sent wrong passwords waits longer and longer before its next one is checked. Main type: [`Guesses`].
//!
//! Invariant: at most [`WAITING_MAX`] logins of an address with wrong passwords wait at a time, and the number of addresses kept is bounded.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use crate::recorder::access::network;

/// Logins that may wait at a time, of an address with wrong passwords; further ones are refused at once. Other addresses are not bounded here: many
/// cameras may log in at once from behind one router.
pub const WAITING_MAX: u32 = 4;
/// Wrong passwords that cost nothing, as people and scripts make mistakes.
const FREE: u32 = 2;
/// The pause after the first wrong password beyond those; it doubles with each further one.
const FIRST: Duration = Duration::from_millis(500);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(30);
/// The time without a wrong password after which an address is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);
/// The most addresses that are kept.
const ADDRESSES_MAX: usize = 10_000;

/// Wrong passwords by address. Times count from any fixed moment.
#[derive(Debug, Default)]
pub struct Guesses {
    addresses: HashMap<IpAddr, Address>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Address {
    wrong: u32,
    waiting: u32,
    /// The earliest time at which the next password is checked.
    open_at: Duration,
    last: Duration,
}

impl Guesses {
    /// Registers a password, and returns how long it waits before it is checked. [`Guesses::settle`] must follow.
    ///
    /// # Errors
    /// Too many of this address wait already.
    pub fn ask(&mut self, from: IpAddr, now: Duration) -> Result<Duration, ()> {
        self.forget(now);
        let address = self.addresses.entry(network(from)).or_default();
        if address.waiting >= WAITING_MAX && !pause(address.wrong).is_zero() {
            return Err(());
        }
        address.waiting += 1;
        address.last = now;
        let wait = address.open_at.saturating_sub(now);
        // Later ones wait behind this one, so that many connections guess no faster than one.
        address.open_at = address.open_at.max(now) + pause(address.wrong);
        Ok(wait)
    }

    /// Notes the outcome of a check.
    pub fn settle(&mut self, from: IpAddr, now: Duration, was_right: bool) {
        let Some(address) = self.addresses.get_mut(&network(from)) else { return };
        address.waiting = address.waiting.saturating_sub(1);
        address.last = now;
        if was_right {
            // Others may guess from the same address, behind the same router: a right password takes back one mistake, not all.
            address.wrong = address.wrong.saturating_sub(1);
        } else {
            address.wrong = address.wrong.saturating_add(1);
            address.open_at = address.open_at.max(now + pause(address.wrong));
        }
    }

    fn forget(&mut self, now: Duration) {
        if self.addresses.len() < ADDRESSES_MAX {
            return;
        }
        let is_kept = |address: &Address| address.waiting > 0 || now.saturating_sub(address.last) < FORGOTTEN_AFTER;
        self.addresses.retain(|_, address| is_kept(address));
        if self.addresses.len() >= ADDRESSES_MAX {
            self.addresses.retain(|_, address| address.waiting > 0);
        }
    }
}

/// Returns the pause after this number of wrong passwords.
fn pause(wrong: u32) -> Duration {
    match wrong.checked_sub(FREE) {
        None | Some(0) => Duration::ZERO,
        Some(beyond) => FIRST.saturating_mul(1 << (beyond - 1).min(10)).min(LONGEST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn guesses_come_slower_and_slower_however_many_connections_make_them() {
        let mut guesses = Guesses::default();
        let (mut now, mut looked_at) = (Duration::ZERO, 0);
        // Twenty connections at a time, for an hour.
        let mut waiting = Vec::new();
        while now < Duration::from_secs(3_600) {
            while waiting.len() < 20 {
                let Ok(wait) = guesses.ask(HERE, now) else { break };
                waiting.push(now + wait);
            }
            waiting.sort();
            now = now.max(waiting.remove(0)) + Duration::from_millis(1);
            guesses.settle(HERE, now, false);
            looked_at += 1;
        }
        assert!((100..180).contains(&looked_at), "{looked_at} passwords were looked at in an hour");
        assert_eq!(guesses.ask([10, 0, 0, 1].into(), now), Ok(Duration::ZERO), "others do not wait");
    }

    #[test]
    fn one_mistake_costs_nothing() {
        let mut guesses = Guesses::default();
        for right in [false, true, false, true] {
            assert_eq!(guesses.ask(HERE, Duration::ZERO), Ok(Duration::ZERO));
            guesses.settle(HERE, Duration::ZERO, right);
        }
        assert_eq!(guesses.ask(HERE, Duration::ZERO), Ok(Duration::ZERO));
    }

    #[test]
    fn many_cameras_behind_one_address_log_in_at_once() {
        let mut guesses = Guesses::default();
        for _ in 0..1_000 {
            assert_eq!(guesses.ask(HERE, Duration::ZERO), Ok(Duration::ZERO));
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut guesses = Guesses::default();
        for number in 0..30_000_u32 {
            let address = IpAddr::from(number.to_be_bytes());
            guesses.ask(address, Duration::ZERO).unwrap();
            guesses.settle(address, Duration::ZERO, false);
        }
        assert!(guesses.addresses.len() <= ADDRESSES_MAX);
    }
}
