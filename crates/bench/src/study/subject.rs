//! What takes time in a study, as far as it takes as long elsewhere: by this what was measured once is found again.
//!
//! Main type: [`Subject`]. Invariant: equal subjects take about as long, in proportion to their amounts.

use serde::{Deserialize, Serialize};

use crate::data::build;
use crate::record::{Cells, Generator};
use crate::trial::{DatabaseSettings, LayoutSettings, Length, RecordSettings, Settings, TableSettings, text_hash};

/// Bytes of a number, and what a text takes besides its own.
const CELL_BYTES: usize = 8;

/// What took time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Subject {
    /// Filling a layout's tables; its amount is records.
    Filling(Filling),
    /// Making and filling a table of the study's own; its amount is rows.
    OwnTable {
        /// Whose.
        database: Kind,
        /// Hash of all that the study says of the table but how many rows it has.
        table: String,
    },
    /// Starting a private server, in the place of another one where there was one; its amount is 1.
    Start {
        /// Of which database.
        database: Kind,
    },
    /// What a trial does around its load: tables made and dropped, connections opened, its end waited for; its amount is 1.
    Around {
        /// Whose.
        database: Kind,
        /// Name of the layout.
        layout: String,
        /// Name of the workload.
        workload: String,
        /// Clients that connect.
        clients: u32,
        /// How records get to a recorder in front of the database, whose queue is waited for; none where none is.
        front: Option<String>,
        /// Whether clients are behind a link.
        has_link: bool,
    },
    /// The measured phase of a trial that is as long as its operations take; its amount is operations.
    Operations {
        /// Hash of the settings but the number of operations.
        case: String,
    },
}

/// What decides how fast tables of a layout are filled.
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
    /// Bytes of a record, about: those of its texts, and eight for each column.
    pub bytes: u64,
    /// Secondary indexes.
    pub indexes: u32,
}

/// What kind of database.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// Its name.
    pub name: String,
    /// Its storage engine, where it has several.
    pub engine: Option<String>,
    /// Whether it was there, and not made for the study.
    pub is_elsewhere: bool,
}

impl Kind {
    /// That of these settings.
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
    /// That of these settings.
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

/// Columns of a record, and bytes of the first one.
fn size_of(generator: &dyn Generator) -> (u32, u64) {
    let mut cells = Cells::default();
    generator.identity(0, 1, &mut cells);
    generator.values(0, &mut cells);
    (u32::try_from(cells.len()).unwrap_or(u32::MAX), (cells.text_bytes() + CELL_BYTES * cells.len()) as u64)
}

impl Subject {
    /// Filling the tables of a case with records.
    pub fn filling(settings: &Settings) -> Self {
        Subject::Filling(Filling::of(&settings.database, &settings.layout, &settings.record))
    }

    /// Making and filling a table of a case's own.
    pub fn own_table(database: &DatabaseSettings, table: &TableSettings) -> Self {
        let table = hash_of(&TableSettings { rows: 0, ..table.clone() });
        Subject::OwnTable { database: Kind::of(database), table }
    }

    /// Starting the private server of a case. The engine is the tables'.
    pub fn start(database: &DatabaseSettings) -> Self {
        Subject::Start { database: Kind { engine: None, ..Kind::of(database) } }
    }

    /// What a trial of a case does around its load.
    pub fn around(settings: &Settings) -> Self {
        Subject::Around {
            database: Kind::of(&settings.database),
            layout: settings.layout.name.clone(),
            workload: settings.workload.name.clone(),
            clients: settings.load.clients,
            front: settings.recorded().map(|recorder| recorder.path.name().to_owned()),
            has_link: settings.link.is_some(),
        }
    }

    /// The operations of a case whose trials are as long as these take; none where time ends them.
    pub fn operations(settings: &Settings) -> Option<Self> {
        operations_of(settings)?;
        let mut settings = settings.clone();
        settings.load.length = Length::Operations(0);
        (settings.load.warmup_s, settings.load.at_most_s) = (0.0, None);
        // Each run has a file of its own.
        settings.database.path = None;
        Some(Subject::Operations { case: hash_of(&settings) })
    }
}

/// Operations of a trial that is as long as these take; none where time ends it.
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
    use crate::trial::{RecorderPath, RecorderSettings};

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
