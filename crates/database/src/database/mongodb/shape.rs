//! A table as a collection: which member of a document is which column. Main type: [`Shape`].
//!
//! The columns of the key are in `_id` (`key.rs`), by which the server tells documents apart; each other column is a member.

pub(super) use super::key::{ID, refused};
use super::key::{Key, Part, Range, check_kind};
use super::{bson, value};
use crate::database::DatabaseError;
use crate::record::{Cell, Cells, ColumnKind};
use crate::statement::{Comparison, Program, Table};

/// A table of a program.
#[derive(Debug, Clone)]
pub(super) struct Shape<'a> {
    pub table: &'a Table,
    /// The columns of the key that are in `_id`: the number of a record alone, where that tells records apart.
    key: Vec<String>,
}

/// Where a column is in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// It is this column of the key, from 0.
    Key(usize),
    /// It is a member of the document.
    Own(String),
    /// It is a member of a document of JSON, which is a member with the first name.
    Within(String, String),
    /// It is `_id` itself, of a group and not of a document.
    Group,
}

/// A column as a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub place: Place,
    pub kind: ColumnKind,
}

/// A comparison of a column with the value at this index.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Test {
    pub column: String,
    pub comparison: Comparison,
    pub place: usize,
}

/// The conditions that documents must meet.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Filter {
    key: Keys,
    own: Vec<Member>,
}

/// The keys that documents must have.
#[derive(Debug, Clone, PartialEq)]
enum Keys {
    All,
    One(Key),
    Some(Range),
}

/// The comparisons of a member with values: each with the kind and the index of its value.
#[derive(Debug, Clone, PartialEq)]
struct Member {
    name: String,
    tests: Vec<(Comparison, ColumnKind, usize)>,
}

impl Filter {
    /// Returns the filter with comparisons of further members, by their paths.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] where one is compared twice in the same way.
    pub(super) fn with(mut self, named: Vec<(String, Comparison, ColumnKind, usize)>) -> Result<Self, DatabaseError> {
        self.own.extend(members_of(named)?);
        Ok(self)
    }

    /// Returns whether it is met by the document with one key alone.
    pub(super) fn is_of_one(&self) -> bool {
        matches!(self.key, Keys::One(_))
    }

    /// Appends it as a member with this name; `None` where a value is null, which equals nothing, or none of its column's kind.
    pub(super) fn append(&self, name: &str, cells: &Cells, first: usize, out: &mut Vec<u8>) -> Option<()> {
        let from = bson::begin_document(name, out);
        match &self.key {
            Keys::All => {}
            Keys::One(key) => key.append(ID, None, cells, first, out)?,
            Keys::Some(range) => range.append(cells, first, out)?,
        }
        for Member { name, tests } in &self.own {
            let inner = bson::begin_document(name, out);
            for (comparison, kind, place) in tests {
                let cell = cells.get(first + place);
                if cell == Cell::Null {
                    return None;
                }
                value::append(operator(*comparison), *kind, cells, cell, out)?;
            }
            // A missing member is null, which differs from nothing.
            if tests.iter().any(|(comparison, ..)| *comparison == Comparison::NotEqual) {
                bson::boolean("$exists", true, out);
            }
            bson::end(inner, out);
        }
        bson::end(from, out);
        Some(())
    }
}

/// Returns the operator of a comparison.
fn operator(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "$eq",
        Comparison::NotEqual => "$ne",
        Comparison::Less => "$lt",
        Comparison::LessOrEqual => "$lte",
        Comparison::Greater => "$gt",
        Comparison::GreaterOrEqual => "$gte",
    }
}

impl<'a> Shape<'a> {
    /// Returns the collection for a table of a program.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] for a table that is none of the program's, or that cannot be a collection.
    pub(super) fn of(program: &'a Program, name: &str) -> Result<Self, DatabaseError> {
        let found = program.tables.iter().find(|table| table.name == name);
        let table = found.ok_or_else(|| refused(&format!("the table {name} is none of the study's")))?;
        let is_numbered = program.apart.iter().any(|apart| apart.table == name);
        match (is_numbered, table.primary_key.last()) {
            (true, Some(number)) => Shape::with_key(table, vec![number.clone()]),
            _ => Shape::of_table(table),
        }
    }

    /// Returns the collection for a table.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] for one that cannot be a collection.
    fn of_table(table: &'a Table) -> Result<Self, DatabaseError> {
        Shape::with_key(table, table.primary_key.clone())
    }

    /// Returns the collection for a table that is made, whatever the program says of it: of its key, the last column alone is known to be in `_id`.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] for one that cannot be a collection.
    pub(super) fn of_made(table: &'a Table) -> Result<Self, DatabaseError> {
        Shape::with_key(table, table.primary_key.last().cloned().into_iter().collect())
    }

    fn with_key(table: &'a Table, key: Vec<String>) -> Result<Self, DatabaseError> {
        let name = &table.name;
        if name.is_empty()
            || name.len() > 100
            || name.contains(['$', '\0'])
            || name.starts_with(['.'])
            || name.starts_with("system.")
        {
            return Err(refused(&format!("{name:?} cannot be the name of a collection")));
        }
        if table.numbered {
            return Err(refused(&format!("it does not number rows, as those of {name} are to be")));
        }
        if table.primary_key.is_empty() {
            return Err(refused(&format!("a document is found by its key, and {name} has none")));
        }
        if !table.unique.is_empty() {
            return Err(refused(&format!("only the key of {name} tells its documents apart, and not other columns")));
        }
        let shape = Shape { table, key };
        for (number, name) in shape.key.iter().enumerate() {
            check_kind(name, shape.field(name)?.kind, number + 1 == shape.key.len())?;
        }
        for column in &table.columns {
            let name = &column.name;
            let is_in_key = shape.key.contains(name);
            if !is_in_key && (name.is_empty() || name.contains(['\0', '.']) || name.starts_with('$') || name == ID) {
                return Err(refused(&format!("{name:?} cannot be the name of a member of a document")));
            }
        }
        Ok(shape)
    }

    /// Returns the place of a column.
    pub(super) fn place_of(&self, column: &str) -> Place {
        let place = self.key.iter().position(|key| key == column);
        place.map_or_else(|| Place::Own(column.to_owned()), Place::Key)
    }

    /// Returns a column as a member.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] for one that the table does not have.
    pub(super) fn field(&self, name: &str) -> Result<Field, DatabaseError> {
        let found = self.table.columns.iter().find(|column| column.name == name);
        let column = found.ok_or_else(|| refused(&format!("the column {name} is none of {}", self.table.name)))?;
        Ok(Field { place: self.place_of(name), kind: column.kind })
    }

    /// Returns the kinds of the columns of the key.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] for a key that is none of the table's columns.
    pub(super) fn key_kinds(&self) -> Result<Vec<ColumnKind>, DatabaseError> {
        self.key.iter().map(|name| Ok(self.field(name)?.kind)).collect()
    }

    /// Returns a column of the key whose value has this index.
    fn part(&self, column: usize, place: usize) -> Result<Part, DatabaseError> {
        let kind = self.field(&self.key[column])?.kind;
        Ok(Part { kind, place, is_last: column + 1 == self.key.len() })
    }

    /// Returns the key that is made of the values of these columns.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] where one is missing.
    pub(super) fn key_among<'b>(&self, columns: impl Iterator<Item = &'b str>) -> Result<Key, DatabaseError> {
        let columns: Vec<&str> = columns.collect();
        let of = |(number, name): (usize, &String)| {
            let place = columns.iter().position(|column| column == name);
            let missing = || refused(&format!("rows of {} need their whole key", self.table.name));
            self.part(number, place.ok_or_else(missing)?)
        };
        self.key.iter().enumerate().map(of).collect::<Result<_, _>>().map(Key)
    }

    /// Returns the filter of tests.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] where they are no range of keys, or a column is compared twice in the same way.
    pub(super) fn filter(&self, tests: &[Test]) -> Result<Filter, DatabaseError> {
        let of_column = |column: usize| {
            let name = &self.key[column];
            tests.iter().filter(move |test| test.column == *name)
        };
        let is_equal = |column: &usize| {
            of_column(*column).count() == 1 && of_column(*column).all(|test| test.comparison == Comparison::Equal)
        };
        let columns = self.key.len();
        let fixed = (0..columns).take_while(is_equal).count();
        let beginning = (0..fixed).map(|column| {
            let place = of_column(column).next().map_or(0, |test| test.place);
            self.part(column, place)
        });
        let beginning = beginning.collect::<Result<Vec<_>, _>>()?;
        let key = if fixed == columns {
            Keys::One(Key(beginning))
        } else {
            let next = of_column(fixed).map(|test| Ok((test.comparison, self.part(fixed, test.place)?)));
            let next = next.collect::<Result<Vec<_>, DatabaseError>>()?;
            let name = &self.key[fixed];
            let has_order = check_kind(name, self.field(name)?.kind, fixed + 1 == columns)?;
            let is_alone = (fixed + 1..columns).all(|column| of_column(column).next().is_none());
            let is_range = next.iter().all(|(comparison, part)| {
                part.is_last || !matches!(comparison, Comparison::NotEqual | Comparison::Equal)
            });
            let range = Range::of(&beginning, &next);
            if !is_alone || range.is_ambiguous() || !(next.is_empty() || has_order && is_range) {
                let key = self.key.join(", ");
                return Err(refused(&format!(
                    "a range of keys is one of the first columns of ({key}), and they are compared otherwise"
                )));
            }
            if beginning.is_empty() && next.is_empty() { Keys::All } else { Keys::Some(range) }
        };
        // Where the number of a record is given with its whole key, the other columns say the same, and FerretDB finds a document by its index only without them.
        let is_given =
            |name: &String| tests.iter().any(|test| test.column == *name && test.comparison == Comparison::Equal);
        let is_whole = matches!(key, Keys::One(_)) && self.table.primary_key.iter().all(is_given);
        let is_besides = |test: &&Test| !(is_whole && self.table.primary_key.contains(&test.column));
        let besides: Vec<Test> = tests.iter().filter(is_besides).cloned().collect();
        Ok(Filter { key, own: self.members(&besides)? })
    }

    /// Returns the tests of columns beside the key, those of the same member together.
    fn members(&self, tests: &[Test]) -> Result<Vec<Member>, DatabaseError> {
        let mut named = Vec::new();
        for Test { column, comparison, place } in tests {
            if let Field { place: Place::Own(name), kind } = self.field(column)? {
                named.push((name, *comparison, kind, *place));
            }
        }
        members_of(named)
    }
    /// Returns the members of an order. Columns of the key that follow each other are `_id`, behind those that tests make the same in all documents.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] for an order that the texts of keys do not have.
    pub(super) fn order(&self, order: &[(String, bool)], tests: &[Test]) -> Result<Vec<(String, bool)>, DatabaseError> {
        let is_fixed =
            |name: &String| tests.iter().any(|test| test.column == *name && test.comparison == Comparison::Equal);
        let mut next = self.key.iter().take_while(|name| is_fixed(name)).count();
        let mut members: Vec<(String, bool)> = Vec::new();
        for (column, falls) in order {
            match self.place_of(column) {
                Place::Own(name) => members.push((name, *falls)),
                Place::Key(_) if is_fixed(column) => {}
                Place::Key(place) => {
                    let is_last = place + 1 == self.key.len();
                    let has_order = check_kind(column, self.field(column)?.kind, is_last)?;
                    let known = members.iter().find(|(name, _)| name == ID).map(|(_, falls)| *falls);
                    if place != next || !has_order || known.is_some_and(|known| known != *falls) {
                        return Err(refused(&format!("documents have no order by {column} alone")));
                    }
                    next += 1;
                    if known.is_none() {
                        members.push((ID.to_owned(), *falls));
                    }
                }
                Place::Within(..) | Place::Group => {}
            }
        }
        Ok(members)
    }
}

/// Returns comparisons of members with values, each with the kind and the index of its value; those of the same member together.
fn members_of(named: Vec<(String, Comparison, ColumnKind, usize)>) -> Result<Vec<Member>, DatabaseError> {
    let mut members: Vec<Member> = Vec::new();
    for (name, comparison, kind, place) in named {
        let test = (comparison, kind, place);
        match members.iter_mut().find(|member| member.name == name) {
            Some(member) if member.tests.iter().any(|(known, ..)| *known == comparison) => {
                return Err(refused(&format!("{name} is compared twice in the same way")));
            }
            Some(member) => member.tests.push(test),
            None => members.push(Member { name, tests: vec![test] }),
        }
    }
    Ok(members)
}
