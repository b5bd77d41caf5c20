//! Senders, and the owners of message ids. Main types: [`Senders`], [`Sender`] and [`Owner`].

use std::net::IpAddr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::names::Names;
use super::pace::Pace;
use super::token::TokenHash;
use crate::recorder::quote::in_quotes;

/// `[[access]]`: a configured sender.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    /// The name of the sender.
    pub name: String,
    /// The hash of its token.
    pub token: TokenHash,
    /// The source names that it may use.
    pub sources: Names,
    /// The measurements that it may send.
    pub measurements: Names,
    /// The most rows per second; `None` for no limit.
    pub rows_per_s: Option<f64>,
    /// The most bytes of line protocol per second; `None` for no limit.
    pub bytes_per_s: Option<f64>,
}

/// The owner of a message id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// A stream, which has one name for each message.
    Stream,
    /// All senders with one of `tokens`.
    Tokens,
    /// The sender of this name.
    Named(String),
    /// Any sender at this address, where no token is needed.
    Address(IpAddr),
}

impl Owner {
    /// Returns the key under which an owner's id is kept among the ids of all owners; empty for no id. No client's id contains a line break, so keys
    /// of different owners never collide. Ids of streams are kept unchanged, as they always were.
    fn id(&self, id: &str) -> String {
        match self {
            _ if id.is_empty() => String::new(),
            Owner::Stream => id.to_owned(),
            Owner::Tokens => format!("tokens\n{id}"),
            Owner::Named(name) => format!("access {name}\n{id}"),
            Owner::Address(address) => format!("address {}\n{id}", address.to_canonical()),
        }
    }
}

/// Returns the client's own id from a kept key that begins with its owner; `None` for a key without an owner, as versions without owners
/// kept them.
pub fn owned_id(kept: &str) -> Option<&str> {
    kept.split_once('\n').map(|(_, id)| id)
}

/// The name of senders that are not in `[[access]]`.
static NO_NAME: LazyLock<Arc<str>> = LazyLock::new(|| "".into());

/// A sender.
#[derive(Debug)]
pub struct Sender {
    owner: Owner,
    /// The name in `[[access]]`; empty for all other senders.
    name: Arc<str>,
    grant: Option<Grant>,
    pace: Pace,
}

impl Sender {
    /// Creates a sender without restrictions.
    pub fn free(owner: Owner) -> Self {
        Sender { owner, name: NO_NAME.clone(), grant: None, pace: Pace::new(None, None) }
    }

    fn new(grant: &Grant) -> Self {
        Sender {
            owner: Owner::Named(grant.name.clone()),
            name: grant.name.as_str().into(),
            grant: Some(grant.clone()),
            pace: Pace::new(grant.rows_per_s, grant.bytes_per_s),
        }
    }

    /// Returns its name in `[[access]]`; empty for all other senders.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Returns whether the sender is a stream, whose publishers get no answers.
    pub fn is_stream(&self) -> bool {
        self.owner == Owner::Stream
    }

    /// Returns the key under which this sender's message id is kept among the ids of all senders.
    pub fn own_id(&self, id: &str) -> String {
        self.owner.id(id)
    }

    /// Returns whether it may send every measurement.
    pub fn may_send_all(&self) -> bool {
        self.grant.as_ref().is_none_or(|grant| grant.measurements.are_all())
    }

    /// Checks that it may send a measurement.
    ///
    /// # Errors
    /// A sentence with the value and the remedy.
    pub fn may_send(&self, measurement: &str) -> Result<(), String> {
        let Some(grant) = self.grant.as_ref().filter(|grant| !grant.measurements.have(measurement)) else {
            return Ok(());
        };
        Err(refusal("measurement", "measurements", measurement, &grant.name, &grant.measurements))
    }

    /// Checks that it may use this source name.
    ///
    /// # Errors
    /// A sentence with the value and the remedy.
    pub fn may_be(&self, source: &str) -> Result<(), String> {
        let Some(grant) = self.grant.as_ref().filter(|grant| !grant.sources.have(source)) else { return Ok(()) };
        Err(refusal("source", "sources", source, &grant.name, &grant.sources))
    }

    /// Returns how long the sender has to wait before its next request is admitted.
    pub fn wait(&self) -> Duration {
        self.pace.wait()
    }

    /// Counts a request against the sender's rate and admits it.
    ///
    /// # Errors
    /// The time that the sender has to wait; the request is not counted then.
    pub fn pass(&self, rows: u32, bytes: u64) -> Result<(), Duration> {
        self.pace.pass(rows, bytes)
    }

    /// Takes back the count of an admitted request that was not stored for another reason.
    pub fn give_back(&self, rows: u32, bytes: u64) {
        self.pace.give_back(rows, bytes);
    }

    /// Returns a sentence with its bounds; empty if it has none.
    pub fn bounds(&self) -> String {
        let Some(grant) = &self.grant else { return String::new() };
        let rows = grant.rows_per_s.map(|rows| format!("rate = {rows} rows"));
        let bytes = grant.bytes_per_s.map(|bytes| format!("bytes = {}", crate::units::show_bytes(bytes)));
        let bounds: Vec<_> = rows.into_iter().chain(bytes).collect();
        format!("sender \"{}\" has sent more than its bound ({} per second)", grant.name, bounds.join(", "))
    }
}

fn refusal(what: &str, key: &str, value: &str, sender: &str, allowed: &Names) -> String {
    let value = in_quotes(value);
    format!("{what} {value} is none of sender \"{sender}\", which may use {allowed}; add it to {key} of its [[access]]")
}

/// All senders that one intake admits.
#[derive(Debug, Clone, Default)]
pub struct Senders {
    tokens: Arc<[TokenHash]>,
    named: Arc<[Arc<Sender>]>,
}

impl Senders {
    /// Creates the set of the senders with one of `tokens`, which count as one sender, and those of `[[access]]`.
    pub fn new(tokens: &[String], named: &Arc<[Arc<Sender>]>) -> Self {
        Senders { tokens: tokens.iter().map(|token| TokenHash::of(token)).collect(), named: Arc::clone(named) }
    }

    /// Returns the senders of `[[access]]`. A sender whose configuration did not change keeps the part of its rate that it has used.
    pub fn named(access: &[Grant], before: &[Arc<Sender>]) -> Arc<[Arc<Sender>]> {
        let same = |grant: &Grant| before.iter().find(|sender| sender.grant.as_ref() == Some(grant)).cloned();
        access.iter().map(|grant| same(grant).unwrap_or_else(|| Arc::new(Sender::new(grant)))).collect()
    }

    /// Returns whether no token is needed.
    pub fn are_all(&self) -> bool {
        self.tokens.is_empty() && self.named.is_empty()
    }

    /// Finds the sender with this token. All tokens are compared, so that the time taken reveals nothing.
    pub fn find(&self, given: &TokenHash) -> Option<Arc<Sender>> {
        let is_of_tokens = self.tokens.iter().fold(false, |known, token| token.is(given) | known);
        let is_of = |sender: &Sender| sender.grant.as_ref().is_some_and(|grant| grant.token.is(given));
        let named = self.named.iter().fold(None, |known, sender| if is_of(sender) { Some(sender) } else { known });
        match named {
            Some(sender) => Some(Arc::clone(sender)),
            None => is_of_tokens.then(|| Arc::new(Sender::free(Owner::Tokens))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(name: &str) -> Grant {
        let list = |name: &str| Names::new(vec![name.to_owned()]);
        Grant {
            name: name.to_owned(),
            token: TokenHash::of(&format!("token of {name}")),
            sources: list("north-*"),
            measurements: list("qos"),
            rows_per_s: Some(10.0),
            bytes_per_s: None,
        }
    }

    #[test]
    fn nobodys_id_is_anothers() {
        let address = |text: &str| Owner::Address(text.parse().unwrap());
        let owners = [
            Owner::Stream,
            Owner::Tokens,
            Owner::Named("tokens".to_owned()),
            Owner::Named("10.0.0.1".to_owned()),
            address("10.0.0.1"),
            address("::1"),
        ];
        // What a client may send has no line break.
        let ids = ["a", "tokens", "access tokens", "access 10.0.0.1", "address 10.0.0.1", "10.0.0.1"];
        let kept: std::collections::BTreeSet<_> = owners.iter().flat_map(|owner| ids.map(|id| owner.id(id))).collect();
        assert_eq!(kept.len(), owners.len() * ids.len());
        assert_eq!(address("::ffff:10.0.0.1").id("a"), address("10.0.0.1").id("a"));
        assert_eq!((owned_id(&Owner::Tokens.id("a")), owned_id("a")), (Some("a"), None));
        assert!(owners.iter().all(|owner| owner.id("").is_empty()));
    }

    #[test]
    fn what_a_refusal_quotes_is_short_as_it_is_shown() {
        let named = Senders::named(&[grant("a")], &[]);
        let sender = Senders::new(&[], &named).find(&TokenHash::of("token of a")).unwrap();
        for name in ["\u{18}".repeat(1_000), "\u{202e}".repeat(1_000), "\"".repeat(1_000), "x".repeat(1_000)] {
            for said in [sender.may_send(&name), sender.may_be(&name)] {
                let said = said.unwrap_err();
                assert!(said.len() < 400 && said.contains("characters more") && said.contains("[[access]]"), "{said}");
            }
        }
        let many = Names::new((0..12).map(|number| format!("a{number}-*")).collect());
        assert!(many.to_string().ends_with("\"a9-*\" and 2 more"), "{many}");
    }

    #[test]
    fn a_token_says_who_sends_and_what_it_may_do() {
        let named = Senders::named(&[grant("a"), grant("b")], &[]);
        let senders = Senders::new(&["token of all".to_owned()], &named);
        let find = |token: &str| senders.find(&TokenHash::of(token));
        assert_eq!(find("token of b").unwrap().own_id("1"), "access b\n1");
        assert_eq!(find("token of all").unwrap().own_id("1"), "tokens\n1");
        assert!(find("token of c").is_none() && find("").is_none() && !senders.are_all());
        let sender = find("token of a").unwrap();
        assert!(sender.may_be("north-1").is_ok() && sender.may_send("qos").is_ok());
        let said = sender.may_be("victim").unwrap_err();
        assert!(
            said.contains("source \"victim\"") && said.contains("sender \"a\"") && said.contains("add it to sources")
        );
        assert!(sender.may_send("cpu").unwrap_err().contains("which may use \"qos\""));
        assert!(find("token of all").unwrap().may_be("victim").is_ok());
    }

    #[test]
    fn a_sender_that_stays_the_same_keeps_what_it_has_used_up() {
        let before = Senders::named(&[grant("a"), grant("b")], &[]);
        before.iter().for_each(|sender| assert_eq!(sender.pass(1_000, 1), Ok(())));
        let faster = Grant { rows_per_s: Some(20.0), ..grant("b") };
        let after = Senders::named(&[grant("a"), faster], &before);
        assert!(!after[0].wait().is_zero() && after[1].wait().is_zero());
    }
}
