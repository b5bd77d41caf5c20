//! Records in loadline's own tables: the generator, the layout with the statements that a trial needs, and how the tables are filled. Main type: [`Stored`].

use std::sync::Arc;

use super::known;
use super::preload::chunk_records;
use crate::data;
use crate::layout::gorilla::{Gorilla, READINGS_DEFAULT};
use crate::layout::recorded::Recorded;
use crate::layout::{self, Access, Layout};
use crate::record::Generator;
use crate::trial::{Arrivals, Settings};

/// Most records that one transaction of the preparation packs.
const PACKED_RECORDS_MAX: u64 = 1_000_000;

/// Records in loadline's own tables.
pub(super) struct Stored {
    pub generator: Arc<dyn Generator>,
    pub layout: Box<dyn Layout>,
    /// Number of records in one transaction of the preparation.
    pub chunk: u64,
    /// The layout's statements for the questions.
    pub questions: Vec<u16>,
}

impl Stored {
    /// Makes the tables and the statements that the settings need, and `besides` those of the access that a caller needs.
    ///
    /// # Errors
    /// A sentence that names the setting, its value and the remedy.
    pub fn new(settings: &Settings, background: Option<&Settings>, besides: &Access) -> Result<Self, String> {
        let generator = data::build(&settings.record)?;
        let packs = layout::find(&settings.layout.name).is_some_and(|entry| entry.packs);
        let sources = generator.alternating().unwrap_or(1).max(1);
        let readings_per_row = settings.layout.readings_per_row.unwrap_or(READINGS_DEFAULT);
        let chunk = match packs {
            // Each source's readings fill a row, as far as the memory for a transaction allows.
            true => (sources * u64::from(readings_per_row)).min(PACKED_RECORDS_MAX),
            false => chunk_records(generator.record_type()),
        };
        let preloaded = settings.record.rows.min(chunk) as usize;
        let batch = settings.workload.batch.max(background.map_or(0, |background| background.workload.batch));
        let records_max = preloaded.max(batch as usize);
        let table = &settings.record.table;
        let record_type = generator.record_type();
        let name = &settings.layout.name;
        let (clients, time_index) = (settings.load.clients, settings.layout.recorded_index);
        let mut layout: Box<dyn Layout> = match settings.layout.tables_as_recorded {
            true => Box::new(Recorded::new(name, record_type, table, records_max, clients, time_index)?),
            false if packs => {
                let rows_max = records_max.min(sources as usize + records_max.div_ceil(readings_per_row as usize));
                Box::new(Gorilla::new(record_type, table, rows_max, readings_per_row)?)
            }
            false => layout::build(name, record_type, table, records_max)?,
        };
        // A measurement of one record ends with the operation that it begins with.
        if generator.records_per_measurement() > 1 && generator.alternating().is_none() {
            layout.add_ends(record_type);
        }
        let mut access = (known(settings)?.access)(settings, record_type)?;
        access.merge(besides.clone());
        if let Some(background) = background {
            access.merge((known(background)?.access)(background, record_type)?);
        }
        if packs
            && (access != Access::default()
                || settings.load.arrivals == Arrivals::Sources
                || settings.workload.evolve_s.is_some())
        {
            return Err(format!(
                "layout \"{name}\" packs several readings into a row, and single records are read, changed or counted here; write or ask questions only, or take \
                 another layout.name"
            ));
        }
        if access != Access::default() {
            layout.add_access(&access, record_type);
        }
        let refused = |why| format!("layout \"{}\" {why}; take another layout.name", settings.layout.name);
        let queries = &settings.workload.queries;
        if !queries.is_empty() {
            layout.add_queries(queries, record_type).map_err(refused)?;
        }
        let questions = &settings.workload.questions;
        let questions = match questions.is_empty() {
            true => Vec::new(),
            false => layout.add_questions(questions, record_type).map_err(refused)?,
        };
        Ok(Stored { generator, layout, chunk, questions })
    }
}
