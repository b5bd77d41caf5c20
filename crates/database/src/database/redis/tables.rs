//! Tables in a store that has none: the keys with a table's name as prefix, and a key of that name which marks them as loadline's.
//!
//! Invariant: no key is removed unless it belongs to a table that loadline made.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::key::{prefix_of, stream_of};
use super::reply::{Reply, ask};
use crate::database::DatabaseError;
use crate::database::session::Channel;
use crate::statement::Table;

/// The value of the key under a table's name.
const MARK: &str = "a table that loadline made";
/// The number of keys requested at a time.
const KEYS_AT_A_TIME: &[u8] = b"1000";
/// The maximum number of successive pages without a key of the table, after which the scan is considered endless: a billion keys of others.
const EMPTY_PAGES_MOST: u32 = 1_000_000;
/// The maximum number of rows counted: two gigabytes of numbers.
const ROWS_MOST: usize = 250_000_000;

/// Makes a table. Fails if there is a key with that name or that prefix already.
pub(super) fn create(channel: &mut Channel, table: &Table) -> Result<(), DatabaseError> {
    let name = table.name.as_bytes();
    if ask(channel, &[b"SET", name, MARK.as_bytes(), b"NX"])? == Reply::Bytes(None) {
        return Err(DatabaseError::refused("exists", format!("there is a key \"{}\" already", table.name)));
    }
    let mut found = None;
    let looked = each_page(channel, &table.name, |_, keys| {
        found = found.take().or_else(|| keys.into_iter().next());
        Ok(found.is_none())
    });
    let other = match (looked, found) {
        (Ok(()), None) => return Ok(()),
        (Ok(()), Some(key)) => {
            let key = String::from_utf8_lossy(&key).into_owned();
            DatabaseError::refused("exists", format!("there is a key \"{key}\" already, which would be a row of it"))
        }
        (Err(error), _) => error,
    };
    if other.is_refusal() {
        ask(channel, &[b"DEL", name])?;
    }
    Err(other)
}

/// Removes a table with its rows, if it exists.
pub(super) fn remove(channel: &mut Channel, table: &str) -> Result<(), DatabaseError> {
    match ask(channel, &[b"GET", table.as_bytes()])? {
        Reply::Bytes(None) => return Ok(()),
        Reply::Bytes(Some(mark)) if mark == MARK.as_bytes() => {}
        _ => {
            let why = format!("the key \"{table}\" is none that loadline made, and stays");
            return Err(DatabaseError::refused("stranger", why));
        }
    }
    each_page(channel, table, |channel, keys| {
        let words: Vec<&[u8]> = std::iter::once(&b"UNLINK"[..]).chain(keys.iter().map(Vec::as_slice)).collect();
        if words.len() > 1 {
            ask(channel, &words)?;
        }
        Ok(true)
    })?;
    // Last, so that an interrupted removal can be repeated.
    ask(channel, &[b"DEL", table.as_bytes()]).map(drop)
}

/// Returns the number of rows of a table: entries of its stream where the server numbers them, else keys. A key that the server returns twice, as it may while its own table grows, counts once: a number of 8 bytes is kept for each key.
pub(super) fn count(channel: &mut Channel, table: &str) -> Result<u64, DatabaseError> {
    let stream = stream_of(table);
    if ask(channel, &[b"TYPE", stream.as_bytes()])?.text().as_deref() == Some("stream") {
        let Reply::Number(rows) = ask(channel, &[b"XLEN", stream.as_bytes()])? else { return Err(unknown()) };
        return u64::try_from(rows).map_err(|_| unknown());
    }
    let mut seen = Vec::new();
    each_page(channel, table, |_, keys| {
        seen.extend(keys.iter().map(|key| number_of(key)));
        if seen.len() > ROWS_MOST {
            seen.sort_unstable();
            seen.dedup();
        }
        match seen.len() > ROWS_MOST {
            true => Err(DatabaseError::Unavailable(format!("more than {ROWS_MOST} rows are not counted"))),
            false => Ok(true),
        }
    })?;
    seen.sort_unstable();
    seen.dedup();
    Ok(seen.len() as u64)
}

fn number_of(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// Passes the keys of a table's rows to a function, page by page, until there are no more or it ends the scan.
fn each_page(
    channel: &mut Channel,
    table: &str,
    mut page: impl FnMut(&mut Channel, Vec<Vec<u8>>) -> Result<bool, DatabaseError>,
) -> Result<(), DatabaseError> {
    let pattern = format!("{}*", escaped(&prefix_of(table)));
    let mut cursor = b"0".to_vec();
    let mut empty = 0;
    loop {
        let told = ask(channel, &[b"SCAN", &cursor, b"MATCH", pattern.as_bytes(), b"COUNT", KEYS_AT_A_TIME])?;
        let Reply::List(told) = told else { return Err(unknown()) };
        let (Some(Reply::Bytes(Some(next))), Some(Reply::List(keys))) = (told.first(), told.get(1)) else {
            return Err(unknown());
        };
        cursor.clone_from(next);
        let keys =
            keys.iter().filter_map(|key| if let Reply::Bytes(Some(key)) = key { Some(key.clone()) } else { None });
        let keys: Vec<Vec<u8>> = keys.collect();
        empty = if keys.is_empty() { empty + 1 } else { 0 };
        if empty > EMPTY_PAGES_MOST {
            return Err(DatabaseError::Lost("the server's SCAN does not come to an end".to_owned()));
        }
        if !page(channel, keys)? || cursor == b"0" {
            return Ok(());
        }
    }
}

fn unknown() -> DatabaseError {
    DatabaseError::Lost(
        "the server answers to the search for rows with something else than keys or their number".to_owned(),
    )
}

/// Returns a pattern that matches only this text.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '^' | '-' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

/// Returns the command that a person types to remove a table.
pub(super) fn removal(table: &str) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let (pattern, name) = (quoted(&format!("{}*", escaped(&prefix_of(table)))), quoted(table));
    format!("redis-cli --scan --pattern {pattern} | xargs -r -d '\\n' redis-cli UNLINK; redis-cli DEL {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tables_are_no_patterns() {
        assert_eq!(escaped("q*s:"), "q\\*s:");
        assert_eq!(
            removal("it's"),
            "redis-cli --scan --pattern 'it'\\''s:*' | xargs -r -d '\\n' redis-cli UNLINK; redis-cli DEL 'it'\\''s'"
        );
    }
}
