//! Reading stored violations. Main type: [`Reading`]. Each request has a connection of its own: a ticket office asks a few times a minute, and a
//! kept connection would only fail after a restart of the database server.

use std::fmt::Display;
use std::sync::Arc;

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::filter::Filter;
use crate::block::age::{Identity, read_identities};
use crate::data::violation::record_type;
use crate::database::{Database, DatabaseError};
use crate::record::{Cell, Cells};
use crate::recorder::config::{ImagesConfig, OfficeConfig};
use crate::recorder::processing::{Form, decrypted, read_kept, read_key, tables};
use crate::statement::{Expect, Program, Request, Select, Statement, Step};
use crate::units::show_utc_ms;

/// The reason why a request is not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    Bad(String),
    NotFound,
    Unavailable(String),
    Damaged(String),
}

/// The database and the images.
pub(super) struct Reading {
    database: Arc<dyn Database>,
    form: Form,
    images: ImagesConfig,
    /// The keys of encrypted images.
    identities: Vec<Identity>,
}

impl Reading {
    /// Reads the keys of encrypted images, if the configuration names them.
    pub(super) fn new(database: Arc<dyn Database>, form: Form, config: &OfficeConfig) -> Result<Self, String> {
        let read = |path| read_key("office.images_identity", path, read_identities);
        let identities = config.images_identity.as_deref().map_or(Ok(Vec::new()), read)?;
        Ok(Reading { database, form, images: config.images.clone(), identities })
    }

    /// Returns a page of violations, in the order in which they were stored, and their numbers.
    pub(super) fn list(&self, query: &str) -> Result<(Value, Vec<i64>), Refusal> {
        let filter = Filter::parse(query).map_err(Refusal::Bad)?;
        let mut rows = self.rows(&filter)?;
        let has_more = rows.len() as u64 > filter.limit;
        rows.truncate(filter.limit as usize);
        let numbers: Vec<_> = rows.iter().filter_map(|row| row["number"].as_i64()).collect();
        let next = numbers.last().filter(|_| has_more);
        Ok((json!({ "violations": rows, "next_after": next }), numbers))
    }

    /// Returns one record.
    pub(super) fn record(&self, number: i64) -> Result<Value, Refusal> {
        self.rows(&Filter::one(number))?.into_iter().next().ok_or(Refusal::NotFound)
    }

    /// Returns the image of a record, if it still has the hash in the record.
    pub(super) fn image(&self, number: i64) -> Result<Vec<u8>, Refusal> {
        let record = self.record(number)?;
        let sha256 = record["image_sha256"].as_str().unwrap_or_default();
        let unreadable =
            |error: &dyn Display| Refusal::Damaged(format!("the image of violation {number} cannot be read: {error}"));
        let kept = match &self.images {
            ImagesConfig::Folder(folder) => read_kept(folder, sha256).map_err(|error| unreadable(&error))?,
            ImagesConfig::Database => self.stored_image(number)?,
        };
        let bytes = decrypted(kept, &self.identities).map_err(|error| unreadable(&error))?;
        let found: String = digest(&SHA256, &bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        if found != sha256 {
            return Err(Refusal::Damaged(format!("the image of violation {number} is not the one that was stored")));
        }
        Ok(bytes)
    }

    fn stored_image(&self, number: i64) -> Result<Vec<u8>, Refusal> {
        let cells = self.query(tables::select_image(), |cells| cells.int(number))?;
        match cells.as_slice() {
            [Cell::Blob(span) | Cell::Text(span)] => Ok(cells.bytes_of(*span).to_vec()),
            _ => Err(Refusal::Damaged(format!("the image of violation {number} is missing"))),
        }
    }

    fn rows(&self, filter: &Filter) -> Result<Vec<Value>, Refusal> {
        let cells = self.query(filter.select(self.form), |cells| filter.append(cells))?;
        let about = record_type();
        let names: Vec<_> = about.identity.iter().chain(&about.values).map(|column| column.name.as_str()).collect();
        let row = |row: &[Cell]| {
            let mut values = serde_json::Map::new();
            let number = cells.to_json(row[0]);
            values.insert("image".to_owned(), json!(format!("/violations/{number}/image.jpg")));
            values.insert("number".to_owned(), number);
            for (name, cell) in names.iter().zip(&row[1..]) {
                values.insert((*name).to_owned(), cells.to_json(*cell));
            }
            let time = values.get("time_ns").and_then(Value::as_i64).map(show_utc_ms);
            values.insert("time".to_owned(), json!(time));
            Value::Object(values)
        };
        Ok(cells.as_slice().chunks_exact(1 + names.len()).map(row).collect())
    }

    fn query(&self, select: Select, append: impl FnOnce(&mut Cells)) -> Result<Cells, Refusal> {
        let mut found = Cells::new();
        let execute = || -> Result<(), DatabaseError> {
            let mut session = self.database.connect()?;
            let program = Program { statements: vec![Statement::Select(select)], rows_max: 1, ..Program::default() };
            session.prepare(&program)?;
            let mut request = Request::default();
            append(&mut request.cells);
            request.steps.push(Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Anything });
            session.execute(&request, Some(&mut found)).map(drop)
        };
        execute().map_err(|error| Refusal::Unavailable(format!("the database: {error}")))?;
        Ok(found)
    }
}
