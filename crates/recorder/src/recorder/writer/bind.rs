//! From points to the cells of their tables' rows. Main type: [`Binder`].
//!
//! Invariant: a point is bound whole, refused with a reason, or named among what must be created first; no part of it is dropped.

use std::collections::{HashMap, HashSet};

use super::batch::Batch;
use super::catalogue::{Catalogue, FieldKind, Measurement, Role, Shape};
use super::identity::{Identities, NewIdentity, Times};
use super::needs::{Limits, Need, Needs, missing};
use super::shape::has_more;
use super::value::{self, append, kind_of, to_json};
use crate::record::Cells;
use crate::recorder::config::NewColumns;
use crate::recorder::line::{Parser, Point, Text, Value};
use crate::recorder::quote::in_quotes;

/// The most bytes of rows that cannot be stored, with their reasons, that are gathered at a time.
const REFUSED_BYTES_MAX: usize = 8 << 20;

/// The result of binding some rows.
#[derive(Debug, Default)]
pub(super) struct Bound {
    /// The tables and columns that must be created first; if there are any, the cells are of no use.
    pub needs: Needs,
    /// The identities that are not known; if there are any, the cells are of no use.
    pub identities: Vec<NewIdentity>,
    /// Rows that cannot be stored, each with its number, the reason and the line.
    pub refused: Vec<(usize, String, Vec<u8>)>,
    refused_bytes: usize,
    /// Whether there were so many of those that rows behind them were not looked at.
    pub is_cut: bool,
    /// The number of bound rows.
    pub rows: u64,
    /// Where each bound row is.
    pub units: Vec<Unit>,
    /// The newest time of each identity.
    pub times: Times,
}

impl Bound {
    /// Returns whether the cells are those of all rows: nothing must be created or asked for, and nothing was refused.
    pub(super) fn is_complete(&self) -> bool {
        self.needs.is_empty() && self.identities.is_empty() && self.refused.is_empty() && !self.is_cut
    }
}

/// A row of the batch, which is stored whole or not at all: in the main table of its measurement, and in the second one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unit {
    /// The row's number in the batch.
    pub row: usize,
    /// The place of the row's measurement.
    pub measurement: usize,
    /// The number of its rows in the second table.
    pub second_rows: u32,
    /// The number of its identity.
    pub identity: Option<i64>,
    /// The time of the measurement, in nanoseconds since 1970.
    pub time_ns: i64,
}

/// The rows of one measurement.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Cells of the main table.
    pub main: Cells,
    pub main_rows: u32,
    /// Cells of the second table.
    pub second: Cells,
    pub second_rows: u32,
    tags: Places,
    fields: Places,
}

/// The assignment of a point's values to columns.
#[derive(Debug, Default)]
struct Places {
    /// For each column, 1 + the value's place in the point, or 0 if there is no value.
    of_columns: Vec<u32>,
    /// Values without a column, by their place in the point.
    others: Vec<usize>,
    /// The column that each place had in the last point: mostly it has the same again.
    last: Vec<(Box<[u8]>, usize)>,
}

/// Binds batches; keeps its memory from one to the next.
#[derive(Debug)]
pub(super) struct Binder {
    new_columns: NewColumns,
    columns_max: usize,
    /// The places of measurements by their names as they are sent.
    by_raw_name: HashMap<Box<[u8]>, usize>,
    /// Rows by the measurement's place.
    pub rows: Vec<Rows>,
}

/// Why a point was not bound.
enum Trouble {
    Refused(String),
    Needs,
}

/// The state of binding, beside the point itself.
struct Context<'a> {
    catalogue: &'a Catalogue,
    identities: &'a mut Identities,
    /// The numbers of identities that were asked for in this transaction.
    fresh: &'a HashMap<Box<[u8]>, i64>,
    /// The identities that were asked for.
    asked: HashSet<Box<[u8]>>,
    bound: Bound,
}

impl Binder {
    pub(super) fn new(new_columns: NewColumns, columns_max: u32) -> Self {
        Binder { new_columns, columns_max: columns_max as usize, by_raw_name: HashMap::new(), rows: Vec::new() }
    }

    /// Returns a binder with the same limits, which knows no tables.
    pub(super) fn like(&self) -> Self {
        Binder::new(self.new_columns, self.columns_max as u32)
    }

    /// Forgets places of measurements, because the catalogue has changed.
    pub(super) fn forget(&mut self) {
        self.by_raw_name.clear();
        self.rows.clear();
    }

    /// Binds the rows of a range that are to be written, numbering records from `first_record`.
    pub(super) fn bind(
        &mut self,
        batch: &Batch,
        range: std::ops::Range<usize>,
        catalogue: &Catalogue,
        identities: &mut Identities,
        fresh: &HashMap<Box<[u8]>, i64>,
        first_record: i64,
    ) -> Bound {
        self.rows.resize_with(catalogue.measurements().len(), Rows::default);
        self.rows.iter_mut().for_each(Rows::clear);
        let mut context = Context { catalogue, identities, fresh, asked: HashSet::new(), bound: Bound::default() };
        if range.is_empty() {
            return context.bound;
        }
        context.bound.units.reserve(range.len());
        let (first, last) = (batch.entry_of(range.start), batch.entry_of(range.end - 1));
        for place in first..=last {
            let offer = &batch.entries[place].offer;
            let mut parser = Parser::new(&offer.body, offer.precision);
            let mut point = Point::default();
            let mut row = batch.first_row(place);
            while let Some(read) = parser.next(&mut point) {
                let wanted = range.contains(&row) && !batch.is_left_out(row);
                if wanted {
                    let record = first_record + context.bound.rows as i64;
                    let outcome = match read {
                        Ok(()) => self.point(&point, offer.received_ns, record, &mut context),
                        // Only good lines are taken in; a line that has become bad is no record any more.
                        Err(error) => Err(Trouble::Refused(error.to_string())),
                    };
                    match outcome {
                        Ok(unit) => {
                            context.bound.rows += 1;
                            context.bound.units.push(Unit { row, ..unit });
                        }
                        Err(Trouble::Refused(reason)) => {
                            let line = [point.bytes, b"\n"].concat();
                            // The bytes that a vector needs for an element beside its texts.
                            context.bound.refused_bytes += reason.len() + line.len() + 96;
                            context.bound.refused.push((row, reason, line));
                            if context.bound.refused_bytes > REFUSED_BYTES_MAX {
                                context.bound.is_cut = true;
                                return context.bound;
                            }
                        }
                        Err(Trouble::Needs) => {}
                    }
                }
                row += 1;
            }
        }
        context.bound
    }

    fn point(
        &mut self,
        point: &Point<'_>,
        received_ns: i64,
        record: i64,
        context: &mut Context<'_>,
    ) -> Result<Unit, Trouble> {
        let time_ns = point.time_ns.unwrap_or(received_ns);
        let Some(place) = self.measurement(point, context.catalogue) else {
            return Err(self.new_measurement(point, context));
        };
        let measurement = &context.catalogue.measurements()[place];
        let rows = &mut self.rows[place];
        let limits = Limits { new_columns: self.new_columns, columns_max: self.columns_max };
        let tag = |place: usize| (point.tags[place].0, FieldKind::Text);
        rows.tags.assign(measurement, Role::Tag, point.tags.len(), tag, limits, &mut context.bound)?;
        if measurement.shape.has_field_columns() {
            let field = |place: usize| (point.fields[place].0, kind_of(&point.fields[place].1));
            rows.fields.assign(measurement, Role::Field, point.fields.len(), field, limits, &mut context.bound)?;
        }
        let mut identity = None;
        if measurement.shape.has_identity() {
            identity = context.fresh.get(point.series).copied().or_else(|| context.identities.find(point.series));
            if identity.is_none() {
                if context.asked.insert(point.series.into()) {
                    context.bound.identities.push(NewIdentity::of(point, place, time_ns));
                }
                return Err(Trouble::Needs);
            }
        }
        let (main, second, second_rows) = (rows.main.len(), rows.second.len(), rows.second_rows);
        if let Err(reason) = rows.append(measurement, point, identity, time_ns, record) {
            rows.main.truncate(main);
            rows.second.truncate(second);
            return Err(Trouble::Refused(reason));
        }
        if let Some(identity) = identity {
            let newest = context.bound.times.entry((place, identity)).or_insert(time_ns);
            *newest = (*newest).max(time_ns);
        }
        Ok(Unit { row: 0, measurement: place, second_rows: rows.second_rows - second_rows, identity, time_ns })
    }

    fn measurement(&mut self, point: &Point<'_>, catalogue: &Catalogue) -> Option<usize> {
        let raw = point.measurement().raw();
        if let Some(place) = self.by_raw_name.get(raw) {
            return Some(*place);
        }
        let place = catalogue.find(&point.measurement().resolve())?;
        self.by_raw_name.insert(raw.into(), place);
        Some(place)
    }

    /// Asks for the tables of a measurement, with the columns that its first point has.
    fn new_measurement(&self, point: &Point<'_>, context: &mut Context<'_>) -> Trouble {
        let name = point.measurement().resolve().into_owned();
        if self.new_columns == NewColumns::Refuse {
            let reason = format!("there is no measurement {}, and schema.new_columns is \"refuse\"", in_quotes(&name));
            return Trouble::Refused(reason);
        }
        if let Some(reason) = context.catalogue.why_impossible(&name) {
            return Trouble::Refused(format!("{} can have no tables: {reason}", in_quotes(&name)));
        }
        let most = self.columns_max;
        let needs = &mut context.bound.needs;
        needs.add(Need::Measurement(name.clone()));
        // Columns that have no room among them are decided on when the tables exist.
        let mut need = |need: Need| {
            if needs.columns_of(&name) < most {
                needs.add(need);
            }
        };
        let column = |role, name: &Text<'_>, kind| Need::Column {
            measurement: point.measurement().resolve().into_owned(),
            role,
            name: name.resolve().into_owned(),
            kind,
        };
        point.tags.iter().for_each(|(name, _)| need(column(Role::Tag, name, FieldKind::Text)));
        point.fields.iter().for_each(|(name, value)| need(column(Role::Field, name, kind_of(value))));
        Trouble::Needs
    }
}

impl Places {
    /// Finds the column of each value of a point.
    fn assign<'a>(
        &mut self,
        measurement: &Measurement,
        role: Role,
        count: usize,
        at: impl Fn(usize) -> (Text<'a>, FieldKind),
        limits: Limits,
        bound: &mut Bound,
    ) -> Result<(), Trouble> {
        let columns = measurement.columns(role);
        self.of_columns.clear();
        self.of_columns.resize(columns.len(), 0);
        self.others.clear();
        let mut needs = false;
        for place in 0..count {
            let (name, kind) = at(place);
            let column = match self.last.get(place) {
                Some((raw, column)) if **raw == *name.raw() => Some(*column),
                _ => columns.find(&name.resolve()).inspect(|column| self.remember(place, name, *column)),
            };
            match column {
                Some(column) if self.of_columns[column] == 0 => self.of_columns[column] = place as u32 + 1,
                Some(_) => {
                    let (role, name) = (role.name(), name.resolve());
                    let name = in_quotes(&name);
                    return Err(Trouble::Refused(format!("the {role} {name} occurs twice in the line")));
                }
                None => match missing(measurement, role, &name.resolve(), kind, limits, &bound.needs)
                    .map_err(Trouble::Refused)?
                {
                    Some(need) => {
                        needs = true;
                        bound.needs.add(need);
                    }
                    None => self.others.push(place),
                },
            }
        }
        if needs { Err(Trouble::Needs) } else { Ok(()) }
    }

    fn remember(&mut self, place: usize, name: Text<'_>, column: usize) {
        if place < self.last.len() {
            self.last[place] = (name.raw().into(), column);
        } else if place == self.last.len() {
            self.last.push((name.raw().into(), column));
        }
    }
}

impl Rows {
    /// Forgets the rows. The memory of rows that were used is kept, that of others is freed: there may be many measurements.
    fn clear(&mut self) {
        if self.main_rows == 0 {
            (self.main, self.second) = Default::default();
        }
        self.main.clear();
        self.second.clear();
        (self.main_rows, self.second_rows) = (0, 0);
    }

    /// Appends the rows of a point, or returns why it cannot; the caller then takes back what was appended.
    fn append(
        &mut self,
        measurement: &Measurement,
        point: &Point<'_>,
        identity: Option<i64>,
        time_ns: i64,
        record: i64,
    ) -> Result<(), String> {
        let mut second_rows = 0;
        self.main.int(record);
        if let Some(identity) = identity {
            self.main.int(identity);
        }
        self.main.int(time_ns);
        let mut more = serde_json::Map::new();
        match measurement.shape {
            Shape::Wide => {
                self.tags.append_tags(point, &mut self.main);
                self.fields.append_fields(measurement, point, None, &mut self.main, &mut more)?;
            }
            Shape::Star => self.fields.append_fields(measurement, point, None, &mut self.main, &mut more)?,
            Shape::StarHot => {
                self.fields.append_fields(measurement, point, Some(true), &mut self.main, &mut more)?;
                self.second.int(record);
                self.fields.append_fields(measurement, point, Some(false), &mut self.second, &mut more)?;
                second_rows = 1;
            }
            Shape::Json => self.main.text(&fields_as_json(point)?),
            Shape::Eav => second_rows = append_single_values(point, record, &mut self.second)?,
        }
        if has_more(measurement) {
            for (name, value) in self.fields.others.iter().map(|place| &point.fields[*place]) {
                let name = name.resolve().into_owned();
                if more.contains_key(&name) {
                    return Err(format!("the field {} occurs twice in the line", in_quotes(&name)));
                }
                more.insert(name, to_json(value));
            }
            if !measurement.shape.has_identity() {
                for (name, value) in self.tags.others.iter().map(|place| &point.tags[*place]) {
                    let name = name.resolve().into_owned();
                    if more.contains_key(&name) {
                        let name = in_quotes(&name);
                        return Err(format!("a tag and a field are called {name}, and neither has a column"));
                    }
                    more.insert(name, value.resolve().into_owned().into());
                }
            }
            match more.is_empty() {
                true => self.main.null(),
                false => self.main.text(&serde_json::Value::Object(more).to_string()),
            }
        }
        self.main_rows += 1;
        self.second_rows += second_rows;
        Ok(())
    }
}

impl Places {
    fn append_tags(&self, point: &Point<'_>, cells: &mut Cells) {
        for place in &self.of_columns {
            match place {
                0 => cells.null(),
                place => cells.text(&point.tags[*place as usize - 1].1.resolve()),
            }
        }
    }

    /// Appends the fields that are hot or not, or all of them. A value that its column cannot hold goes to the column of JSON if
    /// there is one.
    fn append_fields(
        &self,
        measurement: &Measurement,
        point: &Point<'_>,
        hot: Option<bool>,
        cells: &mut Cells,
        more: &mut serde_json::Map<String, serde_json::Value>,
    ) -> Result<(), String> {
        for (column, place) in measurement.fields.as_slice().iter().zip(&self.of_columns) {
            if hot.is_some_and(|hot| hot != column.hot) {
                continue;
            }
            let Some(place) = place.checked_sub(1) else {
                cells.null();
                continue;
            };
            let found = &point.fields[place as usize].1;
            if append(found, column.kind, cells) {
                continue;
            }
            if !measurement.has_more {
                let (name, kind) = (in_quotes(&column.name), column.kind.name());
                return Err(format!("the field {name} is {} and its column holds {kind}", value::shown(found)));
            }
            cells.null();
            more.insert(column.name.clone(), to_json(found));
        }
        Ok(())
    }
}

fn fields_as_json(point: &Point<'_>) -> Result<String, String> {
    let mut fields = serde_json::Map::new();
    for (name, value) in &point.fields {
        let name = name.resolve().into_owned();
        match fields.entry(name) {
            serde_json::map::Entry::Occupied(entry) => {
                return Err(format!("the field {} occurs twice in the line", in_quotes(entry.key())));
            }
            serde_json::map::Entry::Vacant(entry) => entry.insert(to_json(value)),
        };
    }
    Ok(serde_json::Value::Object(fields).to_string())
}

fn append_single_values(point: &Point<'_>, record: i64, cells: &mut Cells) -> Result<u32, String> {
    let mut seen = HashSet::with_capacity(point.fields.len());
    for (name, found) in &point.fields {
        let name = name.resolve();
        if !seen.insert(name.clone()) {
            return Err(format!("the field {} occurs twice in the line", in_quotes(&name)));
        }
        if name.chars().count() > 255 {
            return Err(format!("the field {} has a name of more than 255 characters", in_quotes(&name)));
        }
        cells.int(record);
        cells.text(&name);
        let column = match found {
            Value::Float(_) => 0,
            Value::Int(_) | Value::Unsigned(_) | Value::Boolean(_) => 1,
            Value::Text(_) => 2,
        };
        for (place, kind) in [FieldKind::Float, FieldKind::Int, FieldKind::Text].into_iter().enumerate() {
            let kind = if matches!(found, Value::Boolean(_)) && place == 1 { FieldKind::Boolean } else { kind };
            if place != column {
                cells.null();
            } else if !append(found, kind, cells) {
                return Err(format!("the field is {} and no column holds that", value::shown(found)));
            }
        }
    }
    Ok(point.fields.len() as u32)
}
