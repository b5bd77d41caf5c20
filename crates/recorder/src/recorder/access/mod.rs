//! Access: tokens, the sources and measurements that each sender may use, its rate, and the ownership of message ids.
//!
//! Main types: [`Senders`], in which a token is looked up, and [`Sender`]. Invariants: a token is kept here only as its hash, and an id belongs
//! to the sender of the token, so that no sender can make the id of another count as stored.

#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod fuzzed;
mod names;
mod network;
mod pace;
mod sender;
mod strangers;
mod token;

#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use fuzzed::NAMES;
pub use names::Names;
pub use network::network;
pub use sender::{Grant, Owner, Sender, Senders, owned_id};
pub use strangers::{Strangers, Why};
pub use token::{TOKEN_CHARACTERS_MIN, TokenHash, random_token};
