//! What a driver says of a call that failed, as a [`DatabaseError`]. Main function: [`of`].

use super::symbols::{Handle, SUCCESS, Symbols, WITH_INFO};
use crate::database::DatabaseError;

/// Most records of a call that are read.
const RECORDS_MOST: i16 = 8;
/// Most units of UTF-16 of a record's message that are read.
const MESSAGE_MOST: usize = 1_000;

/// A record of what went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The five letters of the SQLSTATE.
    pub state: String,
    /// The database's own code.
    pub native: i32,
    /// The message, on one line.
    pub message: String,
}

/// Returns the records of the last call on a handle.
///
/// # Safety
/// The handle must be alive and of this kind, and no other thread may use it.
pub unsafe fn records(symbols: &Symbols, kind: i16, handle: Handle) -> Vec<Record> {
    let mut found = Vec::new();
    for number in 1..=RECORDS_MOST {
        let (mut state, mut message) = ([0_u16; 6], [0_u16; MESSAGE_MOST]);
        let (mut native, mut length) = (0, 0);
        // SAFETY: the handle is alive, as the caller promises. All results are places on this stack with the sizes that are given; a state has five letters and a zero.
        let code = unsafe {
            let (state, message) = (state.as_mut_ptr(), message.as_mut_ptr());
            (symbols.GetDiagRecW)(kind, handle, number, state, &mut native, message, MESSAGE_MOST as i16, &mut length)
        };
        if ![SUCCESS, WITH_INFO].contains(&code) {
            break;
        }
        found.push(Record { state: text_to_zero(&state), native, message: text_to_zero(&message) });
    }
    found
}

/// Returns the text in front of a zero unit, on one line.
pub fn text_to_zero(units: &[u16]) -> String {
    let end = units.iter().position(|unit| *unit == 0).unwrap_or(units.len());
    String::from_utf16_lossy(&units[..end]).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the error of these records. Its code is the SQLSTATE; the database's own code is in the message. `sql` is the text of the statement that was refused, and
/// `is_dead` says that the connection is gone.
pub fn of(records: &[Record], sql: Option<&str>, is_dead: bool) -> DatabaseError {
    // The driver manager may put warnings of its own in front of the driver's error.
    let first = records.iter().find(|record| !record.state.starts_with("01")).or_else(|| records.first());
    let Some(Record { state, native, message }) = first else {
        let says = "a call failed, and the driver does not say why".to_owned();
        return if is_dead { DatabaseError::Lost(says) } else { DatabaseError::refused("HY000", says) };
    };
    let of_database = if *native == 0 { String::new() } else { format!(", code {native}") };
    let says = format!("{message}{of_database}");
    if is_dead || is_of_lost_connection(state) {
        return DatabaseError::Lost(format!("{says} ({state})"));
    }
    match sql {
        Some(sql) => DatabaseError::refused(state.clone(), format!("{says} in: {sql}")),
        None => DatabaseError::refused(state.clone(), says),
    }
}

/// Returns whether a SQLSTATE says that the connection is gone: those of class 08, and PostgreSQL's for a session that an administrator, a crash or a stop ended.
fn is_of_lost_connection(state: &str) -> bool {
    state.starts_with("08") || ["57P01", "57P02", "57P03"].contains(&state)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(state: &str, native: i32, message: &str) -> Record {
        Record { state: state.to_owned(), native, message: message.to_owned() }
    }

    #[test]
    fn errors_have_the_state_as_their_code_and_the_databases_own_in_the_message() {
        let told = |records: &[Record]| of(records, None, false).to_string();
        assert_eq!(told(&[record("23000", 1062, "Duplicate entry")]), "Duplicate entry, code 1062 (23000)");
        assert_eq!(told(&[record("01000", 0, "a warning"), record("42S02", 0, "no table")]), "no table (42S02)");
        assert_eq!(told(&[record("01000", 0, "a warning")]), "a warning (01000)");
        assert!(told(&[]).contains("does not say why"));
        let of_text = of(&[record("42000", 1, "wrong")], Some("SELEC 1"), false);
        assert_eq!(of_text.to_string(), "wrong, code 1 in: SELEC 1 (42000)");
        assert!(of(&[record("40001", 1213, "Deadlock")], None, false).is_conflict());
    }

    #[test]
    fn connections_that_are_gone_are_lost() {
        for state in ["08S01", "08003", "57P01"] {
            assert!(of(&[record(state, 0, "gone")], None, false).is_lost(), "{state}");
        }
        assert!(of(&[record("HY000", 2006, "gone")], None, true).is_lost() && of(&[], None, true).is_lost());
        assert!(!of(&[record("57014", 0, "cancelled")], None, false).is_lost());
    }
}
