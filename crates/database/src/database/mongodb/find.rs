//! Reads: `find` with a filter, an order and a limit, and the rows of its answers. Main type: [`Find`].

use super::bson::{self, Document, Value, broken};
use super::message::body;
use super::shape::{Field, Filter, ID, Place, Shape, Test, refused};
use super::{key, value};
use crate::database::DatabaseError;
use crate::record::{Cell, Cells, ColumnKind};
use crate::statement::{Comparison, Condition, Form, Limit, Select, SelectRecords, TableColumn};

/// A command that reads documents.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Find {
    pub table: String,
    pub(super) filter: Filter,
    /// The members behind the filter that are always the same: the members of the answer, and its order.
    pub(super) tail: Vec<u8>,
    pub(super) limit: Option<Limit>,
    /// The number of values in front of the limit's.
    pub(super) values: usize,
    /// The columns of the answer, and the kinds of those of the key.
    pub(super) columns: Vec<Field>,
    pub(super) key_kinds: Vec<ColumnKind>,
    /// What the answer consists of.
    pub(super) answers: Answers,
}

/// What an answer consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answers {
    /// The documents that are found.
    Documents,
    /// Groups, each with `_id` and a sum: the command is `aggregate`, with these stages behind the filter.
    Groups(Vec<u8>),
}

impl Find {
    /// Returns the command for a query.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] for one that is not answered by documents of one collection.
    pub(super) fn of(shape: &Shape<'_>, select: &Select) -> Result<Self, DatabaseError> {
        if !select.joins.is_empty() || select.window.is_some() || select.for_update {
            return Err(refused("it reads documents of one collection, by conditions alone"));
        }
        let columns = select.columns.iter().map(|wanted| shape.field(&wanted.column)).collect::<Result<Vec<_>, _>>()?;
        let test = |(place, condition): (usize, &Condition)| {
            let column = condition.column.column.clone();
            Test { column, comparison: condition.comparison, place }
        };
        let tests: Vec<Test> = select.conditions.iter().enumerate().map(test).collect();
        let order: Vec<_> = select.order.iter().map(|(by, falls)| (by.column.clone(), *falls)).collect();
        Find::documents(shape, &tests, columns, &order, select.limit)
    }

    /// Returns the command that reads a member of the document of JSON in a row.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] for a row that is not found by its columns.
    pub(super) fn member(
        shape: &Shape<'_>,
        document: &str,
        member: &TableColumn,
        tests: &[Test],
    ) -> Result<Self, DatabaseError> {
        let place = Place::Within(document.to_owned(), checked(&member.name)?);
        Find::documents(shape, tests, vec![Field { place, kind: member.kind }], &[], None)
    }

    /// Returns the command for a query of records that are a key and a document of JSON.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] for one of other records, or that is not answered by documents of one collection.
    pub(super) fn records(shape: &Shape<'_>, select: &SelectRecords) -> Result<Self, DatabaseError> {
        let Form::Document(document) = &select.form else {
            return Err(refused("it asks records that are documents, and no others"));
        };
        if select.window.is_some() {
            return Err(refused("it has no window of the latest rows"));
        }
        let key = &select.key.name;
        let (mut tests, mut named) = (Vec::new(), Vec::new());
        for (place, (column, comparison)) in select.conditions.iter().enumerate() {
            match column.name == *key {
                true => tests.push(Test { column: key.clone(), comparison: *comparison, place }),
                // A member may be null, which differs from nothing.
                false if *comparison == Comparison::NotEqual => {
                    return Err(refused("it does not find members by what they differ from"));
                }
                false => named.push((path(document, &checked(&column.name)?), *comparison, column.kind, place)),
            }
        }
        let field = |column: &TableColumn| match column.name == *key {
            true => shape.field(key),
            false => {
                let place = Place::Within(document.clone(), checked(&column.name)?);
                Ok(Field { place, kind: column.kind })
            }
        };
        let columns = match select.columns.is_empty() {
            true => vec![shape.field(key)?, shape.field(document)?],
            false => select.columns.iter().map(field).collect::<Result<_, _>>()?,
        };
        let mut order = Vec::new();
        for (column, falls) in &select.order {
            match column.name == *key {
                true => order.extend(shape.order(&[(key.clone(), *falls)], &tests)?),
                false => order.push((path(document, &checked(&column.name)?), *falls)),
            }
        }
        let found = Find::documents(shape, &tests, columns, &[], select.limit.map(Limit::Fixed))?;
        let tail = if found.filter.is_of_one() { found.tail } else { tail(&found.columns, &order) };
        Ok(Find { filter: found.filter.with(named)?, tail, values: select.conditions.len(), ..found })
    }

    /// Returns the command that finds documents.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] for conditions and orders that there are not.
    pub(super) fn documents(
        shape: &Shape<'_>,
        tests: &[Test],
        columns: Vec<Field>,
        order: &[(String, bool)],
        limit: Option<Limit>,
    ) -> Result<Self, DatabaseError> {
        let filter = shape.filter(tests)?;
        let order = if filter.is_of_one() { Vec::new() } else { shape.order(order, tests)? };
        Ok(Find {
            table: shape.table.name.clone(),
            filter,
            tail: tail(&columns, &order),
            limit,
            values: tests.len(),
            columns,
            key_kinds: shape.key_kinds()?,
            answers: Answers::Documents,
        })
    }

    /// Appends the command for values that begin at `first`; `None` where a value is none of its column's kind.
    pub(super) fn append(&self, database: &str, cells: &Cells, first: usize, out: &mut Vec<u8>) -> Option<()> {
        let mut appended = Some(());
        body(database, out, |out| {
            appended = match &self.answers {
                Answers::Documents => self.append_find(cells, first, out),
                Answers::Groups(stages) => self.append_aggregate(stages, cells, first, out),
            };
        });
        appended
    }

    fn append_find(&self, cells: &Cells, first: usize, out: &mut Vec<u8>) -> Option<()> {
        bson::text("find", self.table.as_bytes(), out);
        self.filter.append("filter", cells, first, out)?;
        out.extend_from_slice(&self.tail);
        let limit = match self.limit {
            _ if self.filter.is_of_one() => {
                bson::boolean("singleBatch", true, out);
                1
            }
            None => return Some(()),
            Some(Limit::Fixed(rows)) => i64::try_from(rows).unwrap_or(i64::MAX),
            Some(Limit::Bound) => bound_of(cells, first + self.values)?,
        };
        // No limit would be 0 there. Nobody asks for no rows.
        if limit < 1 {
            return None;
        }
        bson::int64("limit", limit, out);
        Some(())
    }

    fn append_aggregate(&self, stages: &[u8], cells: &Cells, first: usize, out: &mut Vec<u8>) -> Option<()> {
        bson::text("aggregate", self.table.as_bytes(), out);
        let pipeline = bson::begin_array("pipeline", out);
        let stage = bson::begin_document("0", out);
        self.filter.append("$match", cells, first, out)?;
        bson::end(stage, out);
        out.extend_from_slice(stages);
        bson::end(pipeline, out);
        bson::document("cursor", out, |_| ());
        Some(())
    }

    /// Returns the most rows of an answer to these values.
    pub(super) fn rows_max(&self, cells: &Cells, first: usize) -> u64 {
        match self.limit {
            _ if self.filter.is_of_one() => 1,
            Some(Limit::Fixed(rows)) => rows,
            Some(Limit::Bound) => bound_of(cells, first + self.values).map_or(0, i64::unsigned_abs),
            None => u64::MAX,
        }
    }

    /// Takes in a document of the answer: appends the values of its columns, where rows are kept. `offsets` is for the places of the members.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`] where it is no document; [`DatabaseError::Refused`], with nothing appended, for a value that is none of its column's kind.
    pub(super) fn take(
        &self,
        document: Document<'_>,
        offsets: &mut Vec<usize>,
        rows: &mut Cells,
    ) -> Result<(), DatabaseError> {
        offsets.clear();
        offsets.resize(self.columns.len(), 0);
        // Members come in the order in which they were written, which is mostly that of the columns.
        let mut expected = 0;
        let mut id = None;
        let mut at = Document::FIRST;
        while let Some(member) = document.member(at)? {
            if member.name == ID.as_bytes() {
                id = Some(member.value);
            }
            let is_it = |field: &Field| matches!(&field.place, Place::Own(name) if member.name == name.as_bytes());
            let count = self.columns.len();
            if let Some(place) = (expected..count).chain(0..expected).find(|place| is_it(&self.columns[*place])) {
                offsets[place] = at;
                expected = (place + 1) % count;
            }
            at = member.next;
        }
        let from = rows.len();
        for (field, at) in self.columns.iter().zip(offsets) {
            let kept = match (&field.place, *at) {
                (Place::Key(column), _) => self.keep_key(*column, id, rows),
                (Place::Group, _) => value::keep(field.kind, id, rows),
                (Place::Within(document_name, name), _) => {
                    let within = match document.get(document_name)? {
                        Some(Value::Document(within)) => within.get(name)?,
                        _ => None,
                    };
                    value::keep_member(field.kind, within, rows)
                }
                (Place::Own(_), 0) => value::keep(field.kind, None, rows),
                (Place::Own(_), at) => value::keep(field.kind, document.member(at)?.map(|member| member.value), rows),
            };
            if let Err(wrong) = kept {
                rows.truncate(from);
                return Err(wrong);
            }
        }
        Ok(())
    }

    fn keep_key(&self, column: usize, id: Option<Value<'_>>, rows: &mut Cells) -> Result<(), DatabaseError> {
        let kept = match id {
            Some(Value::Text(text)) => key::keep(&self.key_kinds, column, text, rows),
            _ => None,
        };
        kept.ok_or_else(|| {
            let shown = id.and_then(|id| id.shown(60)).unwrap_or_else(|| "something else than a text".to_owned());
            DatabaseError::refused("value", format!("{shown:?} is no key of {}", self.table))
        })
    }
}

/// Returns the documents of an answer and the number of the cursor behind them, which is 0 where there are no more.
///
/// # Errors
/// [`DatabaseError::Lost`] where the answer has none.
pub(super) fn batch<'a>(answer: Document<'a>) -> Result<(Document<'a>, i64), DatabaseError> {
    let none = || broken("answers a query without documents");
    let Some(Value::Document(cursor)) = answer.get("cursor")? else { return Err(none()) };
    let (mut documents, mut id) = (None, None);
    for member in cursor.members() {
        let member = member?;
        match (member.name, member.value) {
            (b"firstBatch" | b"nextBatch", Value::Array(found)) => documents = Some(found),
            (b"id", found) => id = found.whole(),
            _ => {}
        }
    }
    documents.zip(id).ok_or_else(none)
}

fn bound_of(cells: &Cells, place: usize) -> Option<i64> {
    if let Cell::Int(rows) = cells.get(place) { Some(rows) } else { None }
}

/// Returns the name of a member as a part of a path.
///
/// # Errors
/// [`DatabaseError::Refused`] where it would be a path of its own, or something else.
pub(super) fn checked(member: &str) -> Result<String, DatabaseError> {
    match member.is_empty() || member.contains(['.', '\0']) || member.starts_with('$') {
        true => Err(refused(&format!("{member:?} cannot be the name of a member of a document"))),
        false => Ok(member.to_owned()),
    }
}

/// Returns the path of a member of a document of JSON.
pub(super) fn path(document: &str, member: &str) -> String {
    format!("{document}.{member}")
}

/// Returns the members behind the filter: which members the answer has, and its order.
pub(super) fn tail(columns: &[Field], order: &[(String, bool)]) -> Vec<u8> {
    let mut out = Vec::new();
    bson::document("projection", &mut out, |out| {
        let has_key = columns.iter().any(|field| matches!(field.place, Place::Key(_)));
        bson::int32(ID, has_key.into(), out);
        let mut named: Vec<String> = Vec::new();
        for field in columns {
            let path = match &field.place {
                Place::Own(name) => name.clone(),
                Place::Within(document, name) => path(document, name),
                Place::Key(_) | Place::Group => continue,
            };
            if !named.contains(&path) {
                bson::int32(&path, 1, out);
                named.push(path);
            }
        }
    });
    if !order.is_empty() {
        bson::document("sort", &mut out, |out| {
            order.iter().for_each(|(name, falls)| bson::int32(name, if *falls { -1 } else { 1 }, out));
        });
    }
    out
}
