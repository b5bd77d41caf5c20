//! The conservation check of blocks: each acknowledged block is stored once, waits in the inbox, or is in quarantine.
//!
//! Main functions: [`uploaded`], and [`compare`], which is pure. Invariant: it looks for every block by camera and sequence in the places where
//! the recorder stores blocks, and does not rely on what the recorder reports.

use std::collections::HashSet;
use std::path::Path;

use anyhow::Context;

use super::front::Front;
use super::stage::Current;
use crate::data::violation::camera;
use crate::database::DatabaseError;
use crate::database::station::Sent;
use crate::layout::RECORD_ID;
use crate::measurement::RecordedMeasurement;

/// Number of rows requested at a time.
const PAGE_ROWS: usize = 20_000;

/// A block, by the name of its camera and its sequence number.
type Name = (String, u64);

/// Looks for the sent blocks and fills in what was found.
///
/// # Errors
/// Fails if the inbox or the database cannot be read.
pub fn uploaded(
    sent: &Sent,
    front: &Front,
    current: &Current,
    recorded: &mut RecordedMeasurement,
) -> anyhow::Result<()> {
    let station = front.uploads.as_ref().context("nothing was uploaded")?;
    let mut found = stored(current)?;
    let inbox = front.directory().context("there is no recorder")?.join("data/inbox");
    for part in ["received", ""] {
        let place = |camera: &str| match part {
            "" => inbox.join("quarantine").join(camera),
            _ => inbox.join("cameras").join(camera).join(part),
        };
        let mut sequences: Vec<Vec<u64>> = Vec::new();
        for (number, sequence) in sent.acknowledged.iter().chain(&sent.unknown) {
            sequences.resize(sequences.len().max(number + 1), Vec::new());
            sequences[*number].push(*sequence);
        }
        for (number, sequences) in sequences.iter().enumerate() {
            let camera = camera(number as u64);
            let names = names_in(&place(&camera))?;
            let is_there = |sequence: &u64| {
                let name = station.name_of(*sequence);
                names.iter().any(|found| found.ends_with(&name))
            };
            found.extend(
                sequences.iter().filter(|sequence| is_there(sequence)).map(|sequence| (camera.clone(), *sequence)),
            );
        }
    }
    let named = |blocks: &[(usize, u64)]| -> Vec<Name> {
        blocks.iter().map(|(number, sequence)| (camera(*number as u64), *sequence)).collect()
    };
    compare(&named(&sent.acknowledged), &named(&sent.unknown), &found, recorded);
    Ok(())
}

/// Compares the blocks found with those acknowledged and those that may be there.
fn compare(acknowledged: &[Name], unknown: &[Name], found: &[Name], recorded: &mut RecordedMeasurement) {
    let set = |names: &[Name]| names.iter().cloned().collect::<HashSet<_>>();
    let (must, may, there) = (set(acknowledged), set(unknown), set(found));
    recorded.found = found.len() as u64;
    recorded.missing = must.difference(&there).count() as u64;
    let strangers = there.iter().filter(|name| !must.contains(*name) && !may.contains(*name)).count();
    recorded.surplus = (found.len() - there.len() + strangers) as u64;
}

/// Returns the blocks in the database; empty if nothing is processed, so that there is no table.
fn stored(current: &Current) -> anyhow::Result<Vec<Name>> {
    let database = current.database()?;
    let (mut session, dialect) = (database.connect()?, database.dialect());
    let [table, id, camera, sequence] =
        ["loadline_block", RECORD_ID, "camera", "sequence"].map(|name| dialect.quote(name));
    let (mut found, mut above) = (Vec::new(), i64::MIN);
    loop {
        let sql = format!(
            "SELECT {id}, {camera}, {sequence} FROM {table} WHERE {id} > {above} ORDER BY {id} LIMIT {PAGE_ROWS}"
        );
        let rows = match session.query(&sql) {
            Err(DatabaseError::Refused { .. }) if found.is_empty() => return Ok(found),
            rows => rows?,
        };
        for row in &rows {
            let text = |place: usize| row.get(place).and_then(Option::as_deref).unwrap_or_default();
            above = text(0).parse().context("a row without a number")?;
            found.push((text(1).to_owned(), text(2).parse().context("a block without a sequence")?));
        }
        if rows.len() < PAGE_ROWS {
            return Ok(found);
        }
    }
}

/// Returns the names of the files in a directory; empty if the directory does not exist.
fn names_in(directory: &Path) -> anyhow::Result<Vec<String>> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("{} cannot be read", directory.display()))?,
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned()));
    names.collect::<Result<_, _>>().with_context(|| format!("{} cannot be read", directory.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_are_missing_twice_or_never_sent_are_told() {
        let names = |numbers: &[u64]| -> Vec<Name> { numbers.iter().map(|number| ("c".to_owned(), *number)).collect() };
        let told = |found: &[u64]| {
            let mut recorded = RecordedMeasurement::default();
            compare(&names(&[1, 2, 3]), &names(&[4]), &names(found), &mut recorded);
            (recorded.found, recorded.missing, recorded.surplus)
        };
        assert_eq!(told(&[1, 2, 3]), (3, 0, 0));
        assert_eq!(told(&[1, 2, 3, 4]), (4, 0, 0), "nobody knows of 4");
        assert_eq!(told(&[1, 3]), (2, 1, 0));
        assert_eq!(told(&[1, 2, 3, 3, 5]), (5, 0, 2));
    }
}
