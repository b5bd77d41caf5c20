//! Answers of the server to one command, message by message. Main type: [`Response`].
//!
//! Invariant: a [`Response`] needs only the first bytes of a message, and keeps none of them.

use super::packet::Fields;
use crate::database::DatabaseError;

const MORE_RESULTS: u16 = 0x0008;

/// The progress in reading the answer to a command.
#[derive(Debug, Clone, Copy)]
pub struct Response {
    state: State,
    deprecates_eof: bool,
    changed: u64,
}

#[derive(Debug, Clone, Copy)]
enum State {
    First,
    Columns { left: u64 },
    EndOfColumns,
    Rows,
}

/// The meaning of a message. Small enough to be returned in a register: every read has three of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Rows follow, after the definitions of their columns.
    Table,
    /// Rows follow; the server knows that the client has their columns.
    KnownTable,
    /// The definition of a column.
    Column,
    /// A row.
    Row,
    /// A message that needs no action.
    Nothing,
    /// A result is complete, and another follows.
    EndedWithMore,
    /// The command is complete.
    Ended,
    /// The server answered with an error, see [`error`], and the command has ended.
    Failed,
    /// The message makes no sense here, see [`out_of_step`].
    OutOfStep,
}

impl Response {
    /// Creates a response of which nothing is read yet. Servers that deprecate EOF packets send none behind columns and an OK packet behind rows.
    pub fn new(deprecates_eof: bool) -> Self {
        Response { state: State::First, deprecates_eof, changed: 0 }
    }

    /// Returns the number of rows changed, of all results so far.
    #[inline]
    pub fn changed(&self) -> u64 {
        self.changed
    }

    /// Takes in the payload of a message's first packet; `long` is true if further packets belong to the message.
    #[inline]
    pub fn take(&mut self, first: &[u8], long: bool) -> Event {
        match self.state {
            State::First => self.first(first).unwrap_or(Event::OutOfStep),
            State::Columns { left } => {
                self.state = match left {
                    0 | 1 if self.deprecates_eof => State::Rows,
                    0 | 1 => State::EndOfColumns,
                    _ => State::Columns { left: left - 1 },
                };
                Event::Column
            }
            State::EndOfColumns => {
                self.state = State::Rows;
                Event::Nothing
            }
            State::Rows => match first.first() {
                Some(0xfe) if !long => self.end_of_rows(first).unwrap_or(Event::OutOfStep),
                Some(0xff) if !long => Event::Failed,
                _ => Event::Row,
            },
        }
    }

    #[inline]
    fn first(&mut self, first: &[u8]) -> Option<Event> {
        match *first.first()? {
            0x00 => {
                let (changed, status) = ok(first)?;
                self.changed = self.changed.saturating_add(changed);
                Some(self.ended(status))
            }
            0xff => Some(Event::Failed),
            // A request for a local file, which the client never offers.
            0xfb => None,
            _ => {
                let mut fields = Fields(first);
                let left = fields.number().filter(|columns| *columns > 0)?;
                let known = fields.u8() == Some(0);
                self.state = match known {
                    false => State::Columns { left },
                    true if self.deprecates_eof => State::Rows,
                    true => State::EndOfColumns,
                };
                Some(if known { Event::KnownTable } else { Event::Table })
            }
        }
    }

    #[inline]
    fn end_of_rows(&mut self, first: &[u8]) -> Option<Event> {
        let status = if self.deprecates_eof {
            ok(first)?.1
        } else {
            let status = first.get(3..5)?;
            u16::from_le_bytes([status[0], status[1]])
        };
        Some(self.ended(status))
    }

    #[inline]
    fn ended(&mut self, status: u16) -> Event {
        self.state = State::First;
        if status & MORE_RESULTS == 0 { Event::Ended } else { Event::EndedWithMore }
    }
}

/// Returns the number of rows changed and the server's status from an OK packet.
#[inline]
fn ok(payload: &[u8]) -> Option<(u64, u16)> {
    let mut fields = Fields(payload.get(1..)?);
    let changed = fields.number()?;
    fields.number()?;
    Some((changed, fields.u16()?))
}

/// Converts an ERR packet: an error that the server sends before it hangs up means that the connection is lost.
#[cold]
pub fn error(payload: &[u8]) -> DatabaseError {
    let mut fields = Fields(payload.get(1..).unwrap_or(&[]));
    let code = fields.u16().unwrap_or(0);
    let text = match fields.0 {
        // A marker and the five letters of the SQL state.
        [b'#', _, _, _, _, _, text @ ..] => text,
        text => text,
    };
    let message = String::from_utf8_lossy(text).into_owned();
    // A node of a cluster that is no member says 1047 to every statement: its clients have to connect elsewhere, or again later. Behind 1180, which comes at the commit,
    // nobody knows whether the others have the transaction.
    let is_no_member = code == 1047 && message.starts_with("WSREP");
    if is_lost(code) || is_no_member || code == 1180 {
        DatabaseError::Lost(format!("{message} ({code})"))
    } else {
        DatabaseError::refused(code.to_string(), message)
    }
}

/// Returns whether the server hangs up after an error: shutdown, kill, idle time, network trouble, or a packet that it refuses to read.
fn is_lost(code: u16) -> bool {
    matches!(code, 0 | 1040 | 1053 | 1080 | 1129 | 1152..=1161 | 1184 | 1927 | 2006 | 2013 | 2055 | 3169 | 4031)
}

/// Returns the error for a message that is impossible at its place.
#[cold]
pub fn out_of_step(what: &str) -> DatabaseError {
    DatabaseError::Lost(format!("the server sent {what}, which is not what the protocol has there"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use Event::{Column, Ended, EndedWithMore, Failed, KnownTable, Nothing, OutOfStep, Row, Table};

    fn events(deprecates_eof: bool, messages: &[&[u8]]) -> Vec<Event> {
        let mut response = Response::new(deprecates_eof);
        messages.iter().map(|message| response.take(message, false)).collect()
    }

    #[test]
    fn oks_tell_the_rows_changed() {
        let mut response = Response::new(true);
        assert_eq!(response.take(&[0, 7, 0, 10, 0, 0, 0], false), EndedWithMore);
        assert_eq!(response.take(&[0, 0xfc, 0xe8, 3, 0, 2, 0, 0, 0], false), Ended);
        assert_eq!(response.changed(), 1007);
    }

    #[test]
    fn rows_end_with_an_ok_or_with_an_eof_as_agreed() {
        let modern: &[&[u8]] = &[&[1, 1], b"column", &[0, 0, 5], &[0xfe, 0, 0, 2, 0, 0, 0]];
        assert_eq!(events(true, modern), [Table, Column, Row, Ended]);
        let old: &[&[u8]] = &[&[2], b"a", b"b", &[0xfe, 0, 0, 2, 0], &[0, 0, 5], &[0xfe, 0, 0, 2, 0]];
        assert_eq!(events(false, old), [Table, Column, Column, Nothing, Row, Ended]);
    }

    #[test]
    fn a_long_row_is_no_end_of_rows() {
        let mut response = Response::new(true);
        response.take(&[1, 0], false);
        assert_eq!(response.take(&[0xfe, 0, 0, 2, 0, 0, 0], true), Row);
    }

    #[test]
    fn known_columns_are_not_defined_again() {
        let messages: &[&[u8]] = &[&[3, 0], &[0, 0, 5], &[0xfe, 0, 0, 2, 0, 0, 0]];
        assert_eq!(events(true, messages), [KnownTable, Row, Ended]);
    }

    #[test]
    fn further_results_are_announced_and_read() {
        let messages: &[&[u8]] = &[&[1, 0], &[0xfe, 0, 0, 10, 0, 0, 0], &[0, 1, 0, 2, 0, 0, 0]];
        assert_eq!(events(true, messages)[1..], [EndedWithMore, Ended]);
    }

    #[test]
    fn errors_carry_code_and_message_and_those_before_a_hang_up_are_losses() {
        let duplicate = b"\xff\x26\x04#23000Duplicate entry";
        assert_eq!(error(duplicate), DatabaseError::refused("1062", "Duplicate entry"));
        let killed = error(b"\xff\x87\x07#70100Connection was killed");
        assert_eq!(killed, DatabaseError::Lost("Connection was killed (1927)".into()));
        let no_member = error(b"\xff\x17\x04#08S01WSREP has not yet prepared node for application use");
        assert!(matches!(no_member, DatabaseError::Lost(_)));
        assert_eq!(error(b"\xff\x17\x04#08S01Unknown command"), DatabaseError::refused("1047", "Unknown command"));
        assert!(matches!(error(b"\xff\x9c\x04#HY000Got error 1 during COMMIT"), DatabaseError::Lost(_)));
        assert!(matches!(error(b"\xff"), DatabaseError::Lost(_)));
        assert_eq!(events(true, &[duplicate]), [Failed]);
        assert_eq!(events(true, &[&[1, 0], duplicate]), [KnownTable, Failed]);
    }

    #[test]
    fn messages_that_make_no_sense_are_out_of_step() {
        for message in [&[][..], &[0], &[0xfb, 1], &[0xfe]] {
            assert_eq!(events(true, &[message]), [OutOfStep], "{message:?}");
        }
        assert_eq!(events(false, &[&[1, 0], &[], &[0xfe, 0]]), [KnownTable, Nothing, OutOfStep]);
    }

    proptest! {
        #[test]
        fn arbitrary_messages_never_panic(
            deprecates_eof in any::<bool>(),
            messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..24), 0..12),
        ) {
            let mut response = Response::new(deprecates_eof);
            for message in &messages {
                if response.take(message, false) == Failed {
                    error(message);
                }
            }
        }
    }
}
