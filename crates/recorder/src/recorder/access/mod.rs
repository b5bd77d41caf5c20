//! Who may send: tokens, what each sender may call itself and send, how fast, and whose the ids of its messages are.
//!
//! Main types: [`Senders`], among whom a token is looked for, and [`Sender`]. Invariants: a token is kept here only as its hash, and an id belongs
//! to the sender that the token says, so that nobody can make another's id count as stored.

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
