//! Answers of the server to one command, message by message. The main type is [`Response`].
//!
//! Invariant: it needs to know no more than the first bytes of a message, and holds none of them.

use super::packet::Fields;
use crate::database::DatabaseError;

const MORE_RESULTS: u16 = 0x0008;

/// How far the answer to a command has been read.
#[derive(Debug, Clone, Copy)]
pub struct Response {
    state: State,
    deprecates_eof: bool,
}

#[derive(Debug, Clone, Copy)]
enum State {
    First,
    Columns { left: u64 },
    EndOfColumns,
    Rows,
}

/// What a message means.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Rows will follow; first the definitions of their columns, unless the server knows that we have them.
    Table {
        /// Whether definitions follow.
        defined: bool,
    },
    /// The definition of a column.
    Column,
    /// A row.
    Row,
    /// Nothing to act upon.
    Nothing,
    /// The command is done, or its first result is and there are more.
    Ended {
        /// Rows changed.
        changed: u64,
        /// Whether another result follows.
        more: bool,
    },
    /// The server answered with an error, and the command has ended.
    Failed(DatabaseError),
}

impl Response {
    /// Nothing read yet. Servers that deprecate EOF packets send none behind columns and an OK packet behind rows.
    pub fn new(deprecates_eof: bool) -> Self {
        Response { state: State::First, deprecates_eof }
    }

    /// Takes in the payload of a message's first packet; `long` when further packets belong to the message.
    ///
    /// # Errors
    /// What is wrong with a message that makes no sense: the two sides are out of step.
    #[inline]
    pub fn take(&mut self, first: &[u8], long: bool) -> Result<Event, DatabaseError> {
        match self.state {
            State::First => self.first(first),
            State::Columns { left } => {
                self.state = match left {
                    0 | 1 if self.deprecates_eof => State::Rows,
                    0 | 1 => State::EndOfColumns,
                    _ => State::Columns { left: left - 1 },
                };
                Ok(Event::Column)
            }
            State::EndOfColumns => {
                self.state = State::Rows;
                Ok(Event::Nothing)
            }
            State::Rows => match first.first() {
                Some(0xfe) if !long => self.end_of_rows(first),
                Some(0xff) if !long => Ok(Event::Failed(error(first))),
                _ => Ok(Event::Row),
            },
        }
    }

    fn first(&mut self, first: &[u8]) -> Result<Event, DatabaseError> {
        match first.first() {
            Some(0x00) => self.ended(ok(first).ok_or_else(|| out_of_step("a cut-off OK"))?),
            Some(0xff) => Ok(Event::Failed(error(first))),
            Some(0xfb) => Err(out_of_step("a request for a local file")),
            _ => {
                let mut fields = Fields(first);
                let columns = fields.number().filter(|columns| *columns > 0);
                let left = columns.ok_or_else(|| out_of_step("neither an OK nor a number of columns"))?;
                let defined = fields.u8() != Some(0);
                self.state = match defined {
                    true => State::Columns { left },
                    false if self.deprecates_eof => State::Rows,
                    false => State::EndOfColumns,
                };
                Ok(Event::Table { defined })
            }
        }
    }

    fn end_of_rows(&mut self, first: &[u8]) -> Result<Event, DatabaseError> {
        let status = if self.deprecates_eof {
            ok(first).map(|(_, status)| status)
        } else {
            first.get(3..5).map(|status| u16::from_le_bytes([status[0], status[1]]))
        };
        self.ended((0, status.ok_or_else(|| out_of_step("a cut-off end of rows"))?))
    }

    fn ended(&mut self, (changed, status): (u64, u16)) -> Result<Event, DatabaseError> {
        self.state = State::First;
        Ok(Event::Ended { changed, more: status & MORE_RESULTS != 0 })
    }
}

/// Rows changed and the server's status, of an OK packet.
fn ok(payload: &[u8]) -> Option<(u64, u16)> {
    let mut fields = Fields(payload.get(1..)?);
    let changed = fields.number()?;
    fields.number()?;
    Some((changed, fields.u16()?))
}

/// An ERR packet as an error: those that the server sends before it hangs up mean that the connection is lost.
#[cold]
pub fn error(payload: &[u8]) -> DatabaseError {
    let mut fields = Fields(payload.get(1..).unwrap_or(&[]));
    let code = fields.u16().unwrap_or(0);
    let text = match fields.0 {
        // A mark and the five letters of the SQL state.
        [b'#', _, _, _, _, _, text @ ..] => text,
        text => text,
    };
    let message = String::from_utf8_lossy(text).into_owned();
    if is_lost(code) {
        DatabaseError::Lost(format!("{message} ({code})"))
    } else {
        DatabaseError::refused(code.to_string(), message)
    }
}

/// Whether the server hangs up after an error: shutdown, kill, idle time, network trouble, a packet it will not read.
fn is_lost(code: u16) -> bool {
    matches!(code, 0 | 1040 | 1053 | 1080 | 1129 | 1152..=1161 | 1184 | 1927 | 2006 | 2013 | 2055 | 3169 | 4031)
}

/// The two sides do not understand each other any more.
#[cold]
pub fn out_of_step(what: &str) -> DatabaseError {
    DatabaseError::Lost(format!("the server sent {what} where an answer was expected"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events(deprecates_eof: bool, messages: &[&[u8]]) -> Vec<Event> {
        let mut response = Response::new(deprecates_eof);
        messages.iter().map(|message| response.take(message, false).unwrap()).collect()
    }

    const ENDED: Event = Event::Ended { changed: 0, more: false };

    #[test]
    fn an_ok_tells_the_rows_changed() {
        assert_eq!(events(true, &[&[0, 7, 0, 2, 0, 0, 0]]), [Event::Ended { changed: 7, more: false }]);
        assert_eq!(events(true, &[&[0, 0xfc, 0xe8, 3, 0, 2, 0, 0, 0]]), [Event::Ended { changed: 1000, more: false }]);
    }

    #[test]
    fn rows_end_with_an_ok_or_with_an_eof_as_agreed() {
        use Event::{Column, Nothing, Row, Table};
        let defined = Table { defined: true };
        let modern: &[&[u8]] = &[&[1, 1], b"column", &[0, 0, 5], &[0xfe, 0, 0, 2, 0, 0, 0]];
        assert_eq!(events(true, modern), [defined.clone(), Column, Row, ENDED]);
        let old: &[&[u8]] = &[&[2], b"a", b"b", &[0xfe, 0, 0, 2, 0], &[0, 0, 5], &[0xfe, 0, 0, 2, 0]];
        assert_eq!(events(false, old), [defined, Column, Column, Nothing, Row, ENDED]);
    }

    #[test]
    fn known_columns_are_not_defined_again() {
        let messages: &[&[u8]] = &[&[3, 0], &[0, 0, 5], &[0xfe, 0, 0, 2, 0, 0, 0]];
        assert_eq!(events(true, messages), [Event::Table { defined: false }, Event::Row, ENDED]);
    }

    #[test]
    fn further_results_are_announced_and_read() {
        let more = Event::Ended { changed: 0, more: true };
        let messages: &[&[u8]] = &[&[1, 0], &[0xfe, 0, 0, 10, 0, 0, 0], &[0, 1, 0, 2, 0, 0, 0]];
        let read = events(true, messages);
        assert_eq!(read[1..], [more, Event::Ended { changed: 1, more: false }]);
    }

    #[test]
    fn errors_carry_code_and_message_and_those_before_a_hang_up_are_losses() {
        let duplicate = error(b"\xff\x26\x04#23000Duplicate entry");
        assert_eq!(duplicate, DatabaseError::refused("1062", "Duplicate entry"));
        let killed = error(b"\xff\x87\x07#70100Connection was killed");
        assert_eq!(killed, DatabaseError::Lost("Connection was killed (1927)".into()));
        assert!(matches!(error(b"\xff"), DatabaseError::Lost(_)));
        let in_rows: &[&[u8]] = &[&[1, 0], b"\xff\x26\x04#23000Duplicate entry"];
        assert_eq!(events(true, in_rows)[1], Event::Failed(duplicate));
    }

    proptest! {
        #[test]
        fn arbitrary_messages_never_panic(
            deprecates_eof in any::<bool>(),
            messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..24), 0..12),
        ) {
            let mut response = Response::new(deprecates_eof);
            for message in &messages {
                if response.take(message, false).is_err() {
                    break;
                }
            }
        }
    }
}
