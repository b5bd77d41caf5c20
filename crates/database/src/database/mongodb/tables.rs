//! Collections: how they are made, counted and removed, and what else is asked around a load.

use super::STAND_IN;
use super::bson::{self, Document, Value, broken};
use super::find::batch;
use super::message::ask;
use super::shape::{ID, Place, Shape};
use crate::database::DatabaseError;
use crate::database::session::Channel;
use crate::statement::Table;

/// The code of a server that does not have what is to be removed.
const NOT_FOUND: &str = "26";
/// The maximum characters of a version.
const VERSION_MAX: usize = 100;

/// Makes a collection and its indexes. Fails if there is one of that name.
pub(super) fn create(channel: &mut Channel, database: &str, table: &Table) -> Result<(), DatabaseError> {
    let shape = Shape::of_made(table)?;
    let name = table.name.as_bytes();
    ask(channel, database, |out| bson::text("create", name, out), |_| Ok(()))?;
    // Every collection has an index by `_id`, and MongoDB takes no second one.
    let indexes: Vec<Vec<&str>> = table.indexes.iter().map(|columns| members_of(columns, &shape)).collect();
    let indexes: Vec<_> = indexes.iter().filter(|names| names[..] != [ID]).collect();
    if indexes.is_empty() {
        return Ok(());
    }
    let make = |out: &mut Vec<u8>| {
        bson::text("createIndexes", name, out);
        bson::array("indexes", out, |out| {
            for (number, names) in indexes.iter().enumerate() {
                bson::document(&number.to_string(), out, |out| {
                    bson::document("key", out, |out| {
                        names.iter().for_each(|name| bson::int32(name, 1, out));
                    });
                    bson::text("name", format!("loadline_{number}").as_bytes(), out);
                });
            }
        });
    };
    ask(channel, database, make, |_| Ok(()))
}

/// Returns the members of an index of columns; those of the key are one.
fn members_of<'a>(columns: &'a [String], shape: &Shape<'_>) -> Vec<&'a str> {
    let name = |column: &'a String| match shape.place_of(column) {
        Place::Key(_) | Place::Group => ID,
        Place::Own(_) | Place::Within(..) => column.as_str(),
    };
    let mut names: Vec<&str> = Vec::new();
    for own in columns.iter().map(name) {
        if !names.contains(&own) {
            names.push(own);
        }
    }
    names
}

/// Removes a collection, if there is one of that name.
pub(super) fn remove(channel: &mut Channel, database: &str, table: &str) -> Result<(), DatabaseError> {
    match ask(channel, database, |out| bson::text("drop", table.as_bytes(), out), |_| Ok(())) {
        Err(DatabaseError::Refused { code, .. }) if code == NOT_FOUND => Ok(()),
        outcome => outcome,
    }
}

/// Returns whether there is a collection of that name.
fn exists(channel: &mut Channel, database: &str, table: &str) -> Result<bool, DatabaseError> {
    let list = |out: &mut Vec<u8>| list_of(table, out);
    ask(channel, database, list, |answer| Ok(batch(answer)?.0.members().next().is_some()))
}

/// Appends the command that lists the collection of a name.
pub(super) fn list_of(table: &str, out: &mut Vec<u8>) {
    bson::int32("listCollections", 1, out);
    bson::document("filter", out, |out| bson::text("name", table.as_bytes(), out));
    bson::boolean("nameOnly", true, out);
    bson::document("cursor", out, |_| ());
}

/// Returns the number of documents of a collection, counted one by one: the number that a server keeps may be wrong after it was killed.
pub(super) fn count(channel: &mut Channel, database: &str, table: &str) -> Result<u64, DatabaseError> {
    let group = |out: &mut Vec<u8>| {
        bson::text("aggregate", table.as_bytes(), out);
        bson::array("pipeline", out, |out| {
            bson::document("0", out, |out| {
                bson::document("$group", out, |out| {
                    bson::null("_id", out);
                    bson::document("n", out, |out| bson::int32("$sum", 1, out));
                });
            });
        });
        bson::document("cursor", out, |_| ());
    };
    let read = |answer: Document<'_>| {
        let unknown = || broken("answers with something else than a number of documents");
        let (groups, id) = batch(answer)?;
        let mut groups = groups.members();
        let Some(first) = groups.next().transpose()? else { return Ok(None) };
        let Value::Document(group) = first.value else { return Err(unknown()) };
        let rows = group.get("n")?.and_then(Value::whole).and_then(|rows| u64::try_from(rows).ok());
        if id != 0 || groups.next().is_some() { Err(unknown()) } else { rows.ok_or_else(unknown).map(Some) }
    };
    match ask(channel, database, group, read)? {
        Some(rows) => Ok(rows),
        // A collection that is not there has no documents either.
        None if exists(channel, database, table)? => Ok(0),
        None => Err(DatabaseError::refused(NOT_FOUND, format!("there is no collection {table}"))),
    }
}

/// What a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Build {
    /// The version of MongoDB that it is, or says to be like.
    pub version: String,
    /// The version of FerretDB; `None` where it is another server.
    pub ferretdb: Option<String>,
}

impl Build {
    /// Asks a server what it is.
    pub(super) fn ask(channel: &mut Channel) -> Result<Self, DatabaseError> {
        let read = |told: Document<'_>| {
            let of = |name: &str| Ok::<_, DatabaseError>(told.get(name)?.and_then(|value| value.shown(VERSION_MAX)));
            let version = of("version")?.filter(|version| !version.is_empty());
            let none = || DatabaseError::Unavailable("the server does not tell its version".to_owned());
            Ok(Build { version: version.ok_or_else(none)?, ferretdb: of("ferretdbVersion")? })
        };
        ask(channel, "admin", |out| bson::int32("buildInfo", 1, out), read)
    }
}

impl std::fmt::Display for Build {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Build { version, ferretdb } = self;
        match ferretdb {
            Some(own) => write!(f, "{STAND_IN} {} (as MongoDB {version})", own.trim_start_matches('v')),
            None => write!(f, "MongoDB {version}"),
        }
    }
}

/// Returns the command that a person types to remove a collection.
pub(super) fn removal(database: &str, table: &str) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
    format!("db.getSiblingDB('{}').getCollection('{}').drop()", quoted(database), quoted(table))
}
