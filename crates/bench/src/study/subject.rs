//! Subjects: what takes time in a study, described so that an earlier measurement of the same thing can be found again.
//!
//! Main type: [`Subject`]. Invariant: equal subjects take about equally long, in proportion to their amounts.

use serde::{Deserialize, Serialize};

use crate::data::build;
use crate::record::{Cells, Generator};
use crate::trial::{
    DatabaseSettings, LayoutSettings, Length, RecordSettings, RecorderSettings, Settings, TableSettings, text_hash,
};

/// Bytes of a number, and of a text besides its own bytes.
const CELL_BYTES: usize = 8;

/// The thing that took time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Subject {
    /// Filling a layout's tables; the amount is records.
    Filling(Filling),
    /// Making and filling one of the study's own tables; the amount is rows.
    OwnTable {
        /// The database.
        database: Kind,
        /// Hash of everything that the study says about the table except its number of rows.
        table: String,
    },
    /// Starting a private server, which may replace another one; the amount is 1.
    Start {
        /// The database.
        database: Kind,
    },
    /// The part of a trial outside its load: making and dropping tables, opening connections, waiting for its end; the amount is 1.
    Around {
        /// The database.
        database: Kind,
        /// Name of the layout.
        layout: String,
        /// Name of the workload.
        workload: String,
        /// Clients that connect.
        clients: u32,
        /// How records get to a recorder in front of the database, whose queue must be drained; `None` if there is no recorder.
        front: Option<String>,
        /// Whether the clients are behind a link.
        has_link: bool,
    },
    /// The measured phase of a trial that lasts as long as its operations take; the amount is operations.
    Operations {
        /// Hash of the settings except the number of operations.
        case: String,
    },
}

/// The properties that decide how fast the tables of a layout are filled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filling {
    /// The database.
    pub database: Kind,
    /// Name of the layout.
    pub layout: String,
    /// Name of the record type.
    pub record: String,
    /// Columns of a record.
    pub columns: u32,
    /// Approximate bytes of a record: those of its texts, and eight for each column.
    pub bytes: u64,
    /// Number of secondary indexes.
    pub indexes: u32,
}

/// A kind of database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// Name of the database.
    pub name: String,
    /// The storage engine, if the database has several.
    pub engine: Option<String>,
    /// Whether the database existed before and was not started for the study.
    pub is_elsewhere: bool,
}

impl Kind {
    /// Returns the kind of database of these settings.
    pub fn of(settings: &DatabaseSettings) -> Self {
        let engines = crate::database::find(&settings.name).map_or(&[][..], |entry| entry.engines);
        Kind {
            name: settings.name.clone(),
            engine: settings.engine.clone().or_else(|| engines.first().map(|engine| (*engine).to_owned())),
            is_elsewhere: settings.url.is_some(),
        }
    }
}

impl Filling {
    /// Returns the subject of filling with these settings.
    pub fn of(database: &DatabaseSettings, layout: &LayoutSettings, record: &RecordSettings) -> Self {
        let (columns, bytes) = build(record).map_or((0, 0), |generator| size_of(&*generator));
        Filling {
            database: Kind::of(database),
            layout: layout.name.clone(),
            record: record.type_name.clone(),
            columns,
            bytes,
            indexes: u32::try_from(layout.indexes.len()).unwrap_or(u32::MAX),
        }
    }
}

/// Returns the number of columns of a record, and the bytes of the first record.
fn size_of(generator: &dyn Generator) -> (u32, u64) {
    let mut cells = Cells::default();
    generator.identity(0, 1, &mut cells);
    generator.values(0, &mut cells);
    (u32::try_from(cells.len()).unwrap_or(u32::MAX), (cells.text_bytes() + CELL_BYTES * cells.len()) as u64)
}

impl Subject {
    /// Returns the subject of filling the tables of a case with records.
    pub fn filling(settings: &Settings) -> Self {
        Subject::Filling(Filling::of(&settings.database, &settings.layout, &settings.record))
    }

    /// Returns the subject of making and filling one of the case's own tables.
    pub fn own_table(database: &DatabaseSettings, table: &TableSettings) -> Self {
        let table = hash_of(&TableSettings { rows: 0, ..table.clone() });
        Subject::OwnTable { database: Kind::of(database), table }
    }

    /// Returns the subject of starting the private server of a case. It has no engine, since tables choose theirs.
    pub fn start(database: &DatabaseSettings) -> Self {
        Subject::Start { database: Kind { engine: None, ..Kind::of(database) } }
    }

    /// Returns the subject of a trial of a case outside its load.
    pub fn around(settings: &Settings) -> Self {
        Subject::Around {
            database: Kind::of(&settings.database),
            layout: settings.layout.name.clone(),
            workload: settings.workload.name.clone(),
            clients: settings.load.clients,
            front: settings.recorded().map(front_of),
            has_link: settings.linked().is_some(),
        }
    }

    /// Returns the subject of the operations of a case whose trials last as long as these take; `None` if time ends them.
    pub fn operations(settings: &Settings) -> Option<Self> {
        operations_of(settings)?;
        let mut settings = settings.clone();
        settings.load.length = Length::Operations(0);
        (settings.load.warmup_s, settings.load.at_most_s) = (0.0, None);
        // Each run has its own database file.
        settings.database.path = None;
        Some(Subject::Operations { case: hash_of(&settings) })
    }
}

/// Returns the name of what is in front of a database.
fn front_of(recorder: &RecorderSettings) -> String {
    let path = recorder.path.name();
    match (recorder.recorders(), recorder.is_shared()) {
        (1, false) => path.to_owned(),
        (count, false) => format!("{path}, {count} recorders"),
        (count, true) => format!("{path}, {count} recorders on a stream"),
    }
}

/// Returns the number of operations of a trial that lasts as long as these take; `None` if time ends it.
pub fn operations_of(settings: &Settings) -> Option<u64> {
    match settings.load.length {
        _ if settings.load.replay.is_some() => None,
        Length::Seconds(_) => None,
        Length::Operations(operations) => Some(operations),
        Length::OperationsPerClient(each) => Some(each.saturating_mul(settings.load.clients.into())),
    }
}

fn hash_of(settings: &impl Serialize) -> String {
    text_hash(&serde_json::to_string(settings).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::RecorderPath;

    #[test]
    fn what_stands_in_front_of_a_database_takes_time_of_its_own() {
        let plain = Settings::default();
        let mut behind = plain.clone();
        behind.recorder = Some(RecorderSettings { path: RecorderPath::Http, ..RecorderSettings::default() });
        assert_ne!(Subject::around(&plain), Subject::around(&behind));
        behind.recorder = None;
        assert_eq!(Subject::around(&plain), Subject::around(&behind));
    }

    #[test]
    fn a_case_is_known_again_by_its_operations_whatever_their_number() {
        let mut settings = Settings::default();
        settings.load.length = Length::Seconds(1.0);
        assert_eq!(Subject::operations(&settings), None, "time ends it");
        (settings.load.length, settings.load.clients) = (Length::OperationsPerClient(5), 4);
        let few = Subject::operations(&settings);
        assert_eq!(operations_of(&settings), Some(20));
        settings.load.length = Length::OperationsPerClient(500);
        assert!(few.is_some() && few == Subject::operations(&settings));
        settings.load.clients = 5;
        assert_ne!(few, Subject::operations(&settings));
    }
}
