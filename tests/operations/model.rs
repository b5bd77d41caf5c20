//! What a database must hold after operations, and what its answers say: records as texts by the name of the column.

use std::collections::BTreeMap;

use loadline::layout::decode_opaque;
use loadline::operation::Fields;
use loadline::record::{Cell, Cells, ColumnKind, Generator};

/// A record's columns but for its key, as text.
pub type Texts = BTreeMap<String, String>;

/// The records that are there, by number; of each value column the record that it was taken from.
pub struct Model<'a> {
    pub generator: &'a dyn Generator,
    pub records: BTreeMap<u64, Vec<u64>>,
}

impl Model<'_> {
    pub fn insert(&mut self, record: u64) {
        self.records.insert(record, vec![record; self.generator.record_type().values.len()]);
    }

    /// Sets fields; where a layout writes a record as a whole, the others are as they were made.
    pub fn update(&mut self, record: u64, like: u64, fields: Fields, is_whole: bool) {
        let sources = self.records.get_mut(&record).unwrap();
        match fields {
            Fields::All => sources.fill(like),
            Fields::One(place) => {
                if is_whole {
                    sources.fill(record);
                }
                sources[usize::from(place)] = like;
            }
        }
    }

    /// A record as it must be read. The column that is filled in when a measurement ends is left out: layouts differ in it.
    pub fn expected(&self, record: u64) -> Texts {
        let record_type = self.generator.record_type();
        let mut texts = Texts::new();
        let mut cells = Cells::new();
        self.generator.identity(self.generator.measurement_of(record), 1, &mut cells);
        for (place, column) in record_type.identity.iter().enumerate() {
            if Some(place) != record_type.key && Some(place) != record_type.identity_end {
                let value = same_number(&column.name, &text(&cells, cells.get(place)), self.generator);
                texts.insert(column.name.clone(), value);
            }
        }
        for (place, column) in record_type.values.iter().enumerate() {
            texts.insert(column.name.clone(), self.value(record, place));
        }
        texts
    }

    /// One value of a record as it must be read.
    pub fn value(&self, record: u64, place: usize) -> String {
        let mut cells = Cells::new();
        self.generator.values(self.records[&record][place], &mut cells);
        let name = &self.generator.record_type().values[place].name;
        same_number(name, &text(&cells, cells.get(place)), self.generator)
    }

    /// The key of a record, by which scans are ordered.
    pub fn key(&self, record: u64) -> (i64, String) {
        let Some(place) = self.generator.record_type().key else { return (record as i64, String::new()) };
        let mut cells = Cells::new();
        self.generator.identity(self.generator.measurement_of(record), 1, &mut cells);
        match cells.get(place) {
            Cell::Int(value) => (value, String::new()),
            cell => (0, text(&cells, cell)),
        }
    }

    /// The records that a scan must give.
    pub fn scanned(&self, first: u64, most: u32) -> Vec<Texts> {
        let mut keys: Vec<_> = self.records.keys().map(|record| (self.key(*record), *record)).collect();
        keys.sort();
        let from = keys.into_iter().filter(|(key, _)| *key >= self.key(first));
        from.take(most as usize).map(|(_, record)| self.expected(record)).collect()
    }
}

/// A value as text: numbers by their value, bytes as hexadecimal digits.
pub fn text(cells: &Cells, cell: Cell) -> String {
    match cells.to_json(cell) {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    }
}

/// The records in an answer.
pub fn records(layout: &str, rows: &Cells, generator: &dyn Generator) -> Vec<Texts> {
    let record_type = generator.record_type();
    let all = record_type.identity.iter().chain(&record_type.values).map(|column| column.name.clone());
    let all: Vec<_> = all.collect();
    let others = record_type.identity.iter().enumerate().filter(|(place, _)| Some(*place) != record_type.key);
    let others: Vec<_> =
        others.map(|(_, column)| column).chain(&record_type.values).map(|column| column.name.clone()).collect();
    let named = |names: &[String], rows: &Cells, first: usize| -> Texts {
        let value = |place: usize| text(rows, rows.get(first + place));
        names.iter().enumerate().map(|(place, name)| (name.clone(), value(place))).collect()
    };
    let mut records: Vec<Texts> = match layout {
        "json" => (0..rows.len() / 2).map(|row| members(&text(rows, rows.get(2 * row + 1)), &others)).collect(),
        "eav" => groups(rows),
        "key-value" => (0..rows.len() / 2).map(|row| decoded(rows, rows.get(2 * row + 1), &others)).collect(),
        "spare" => (0..rows.len()).step_by(others.len() + 1).map(|row| named(&others, rows, row + 1)).collect(),
        _ => (0..rows.len()).step_by(all.len()).map(|row| named(&all, rows, row)).collect(),
    };
    for record in &mut records {
        for (name, value) in record.iter_mut() {
            *value = same_number(name, value, generator);
        }
        let place = |place: Option<usize>| place.map(|place| record_type.identity[place].name.clone());
        [record_type.key, record_type.identity_end].map(place).into_iter().flatten().for_each(|name| {
            record.remove(&name);
        });
    }
    records
}

/// Numbers are the same however they are written.
pub fn same_number(name: &str, value: &str, generator: &dyn Generator) -> String {
    let record_type = generator.record_type();
    let column = record_type.identity.iter().chain(&record_type.values).find(|column| column.name == name);
    match column.map(|column| column.kind) {
        Some(ColumnKind::Float64) => match value.parse::<f64>() {
            // The JSON reader of these tests may be one unit in the last place off.
            Ok(number) => format!("{number:.13e}"),
            Err(_) => value.to_owned(),
        },
        _ => value.to_owned(),
    }
}

fn members(document: &str, names: &[String]) -> Texts {
    let document: serde_json::Map<String, serde_json::Value> = serde_json::from_str(document).unwrap();
    assert_eq!(document.len(), names.len(), "a document has the columns and no more");
    let value = |name: &String| match &document[&name.replace(['"', '\\', '\''], "_")] {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    names.iter().map(|name| (name.clone(), value(name))).collect()
}

fn groups(rows: &Cells) -> Vec<Texts> {
    let mut groups: Vec<(String, Texts)> = Vec::new();
    for row in (0..rows.len()).step_by(3) {
        let [entity, attribute, value] = [0, 1, 2].map(|place| text(rows, rows.get(row + place)));
        if groups.last().is_none_or(|(last, _)| *last != entity) {
            assert!(groups.iter().all(|(other, _)| *other != entity), "the rows of a record stand together");
            groups.push((entity, Texts::new()));
        }
        groups.last_mut().unwrap().1.insert(attribute, value);
    }
    groups.into_iter().map(|(_, texts)| texts).collect()
}

fn decoded(rows: &Cells, cell: Cell, names: &[String]) -> Texts {
    let Cell::Blob(span) = cell else { panic!("{cell:?} is no value of bytes") };
    let mut values = Cells::new();
    decode_opaque(rows.bytes_of(span), &mut values).unwrap();
    assert_eq!(values.len(), names.len());
    names.iter().enumerate().map(|(place, name)| (name.clone(), text(&values, values.get(place)))).collect()
}
