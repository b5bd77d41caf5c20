//! The server's settings and its version.

use std::collections::BTreeMap;

use super::dialect::QuestdbDialect;
use crate::database::postgres::PostgresWire;
use crate::database::session::{Channel, Speak};
use crate::database::{DatabaseError, Dialect};

/// Returns the value of a setting; `None` where this version does not have it.
///
/// # Errors
/// The server's error.
pub(super) fn value(
    channel: &mut Channel,
    wire: &mut PostgresWire,
    name: &str,
) -> Result<Option<String>, DatabaseError> {
    let name = QuestdbDialect::default().literal(name);
    let sql = format!("(SHOW PARAMETERS) WHERE property_path = {name}");
    let row = wire.query(channel, &sql)?.into_iter().next();
    Ok(row.and_then(|row| row.into_iter().nth(VALUE)?))
}

/// The places of name and value in a row of `SHOW PARAMETERS`.
const NAME: usize = 0;
const VALUE: usize = 2;

/// Checks that the server knows the settings of a study: it passes over environment variables that mean nothing to it.
///
/// # Errors
/// [`DatabaseError::Unavailable`] with the first setting that the server does not know; the server's error.
pub(super) fn check(
    channel: &mut Channel,
    wire: &mut PostgresWire,
    config: &BTreeMap<String, String>,
) -> Result<(), DatabaseError> {
    if config.is_empty() {
        return Ok(());
    }
    let known = wire.query(channel, "SHOW PARAMETERS")?;
    let is_known =
        |name: &str| known.iter().any(|row| row.get(NAME).is_some_and(|known| known.as_deref() == Some(name)));
    match config.iter().find(|(name, _)| !is_known(name)) {
        None => Ok(()),
        Some((name, value)) => Err(DatabaseError::Unavailable(format!(
            "database.config.{name} = \"{value}\": this QuestDB has no such setting; SHOW PARAMETERS lists those that it has"
        ))),
    }
}

/// Returns the version in an answer of the form `Build Information: QuestDB 9.3.4, JDK 24.0.2, Commit Hash …`. The Java is the one with which it was made, not the one in which it runs.
pub(super) fn version(build: &str) -> String {
    let told = build.split_once(": ").map_or(build, |(_, told)| told);
    let told = told.split(',').next().unwrap_or(told);
    told.chars().filter(|letter| !letter.is_control()).take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_what_the_server_calls_itself() {
        let told = "Build Information: QuestDB 9.3.4, JDK 24.0.2, Commit Hash 0123abcd";
        assert_eq!(version(told), "QuestDB 9.3.4");
        assert_eq!(version("9.9"), "9.9");
    }
}
