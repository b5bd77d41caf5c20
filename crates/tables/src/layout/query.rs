//! Queries over records that are spread over tables: which tables a query needs, and in which order it names them.
//! Main types: [`Path`], the tables of a layout, and [`Queried`], the statements of a case's queries.
//!
//! Invariant: a query gives one row for each record that it finds, whatever tables it needs.

use super::columns::{RECORD_ID, add, column_ref, next_cell, read};
use super::key::RecordKey;
use crate::query::{Place, Projection, Query, place_of};
use crate::question::{Ask, Question};
use crate::record::{Cells, RecordType};
use crate::statement::{
    Asking, ColumnRef, Condition, Form, Hints, Join, Limit, Program, Request, Select, SelectRecords, SourceIndex,
    Statement, TableColumn, Window,
};

/// The tables of a layout, each joined to the next by an equal column.
pub(super) struct Path {
    /// The tables, beginning with that of identities.
    pub tables: Vec<PathTable>,
}

/// A table on a [`Path`].
pub(super) struct PathTable {
    /// Name of the table.
    pub name: String,
    /// Whether the table has a row for each record.
    pub has_records: bool,
    /// The column that it shares with the next table; `None` for the last table.
    pub link: Option<&'static str>,
    /// Returns whether the table has a column of the record.
    pub holds: Box<dyn Fn(Place) -> bool>,
}

/// The statements of queries, in a layout's program.
#[derive(Debug, Default)]
pub(super) struct Queried {
    asked: Vec<Asked>,
}

#[derive(Debug)]
struct Asked {
    statement: u16,
    values: Cells,
}

impl Queried {
    /// Adds queries, which were checked against the record type, to a program.
    pub(super) fn add(queries: &[Query], program: &mut Program, record_type: &RecordType, path: &Path) -> Self {
        let asked = queries.iter().map(|query| {
            let mut values = Cells::new();
            for condition in &query.conditions {
                if let Some(place) = place_of(record_type, &condition.column) {
                    condition.append(place.column(record_type).kind, &mut values);
                }
            }
            Asked { statement: add(program, Statement::Select(path.select(query, record_type))), values }
        });
        Queried { asked: asked.collect() }
    }

    /// Adds queries over records that are stored in another form than columns of tables. `named` returns a column of the record type under its name
    /// in that form.
    pub(super) fn add_records(
        queries: &[Query],
        program: &mut Program,
        record_type: &RecordType,
        (table, key, form): (&str, &TableColumn, &Form),
        named: &dyn Fn(Place) -> TableColumn,
    ) -> Self {
        let find = |name: &str| place_of(record_type, name).map(named);
        let mut asked = Vec::with_capacity(queries.len());
        for query in queries {
            let mut values = Cells::new();
            let mut conditions = Vec::with_capacity(query.conditions.len());
            for condition in &query.conditions {
                let Some(column) = find(&condition.column) else { continue };
                condition.append(column.kind, &mut values);
                conditions.push((column, condition.comparison));
            }
            let all = (0..record_type.identity.len()).map(Place::Identity);
            let all = all.chain((0..record_type.values.len()).map(Place::Value));
            let columns: Vec<Place> = match (&query.columns, form) {
                // A document is read as it is, whether alone or from one table.
                (Projection::All | Projection::OneTable, Form::Document(_) | Form::Texts) => Vec::new(),
                (Projection::All | Projection::OneTable, Form::Rows { .. }) => all.collect(),
                (Projection::Identity, _) => all.filter(|place| matches!(place, Place::Identity(_))).collect(),
                (Projection::Hot, _) => all.filter(|place| is_hot(*place, record_type)).collect(),
                (Projection::Columns(names), _) => {
                    names.iter().filter_map(|name| place_of(record_type, name)).collect()
                }
            };
            let order = query.order.iter().filter_map(|(name, descending)| Some((find(name)?, *descending)));
            let select = SelectRecords {
                table: table.to_owned(),
                key: key.clone(),
                form: form.clone(),
                columns: columns.into_iter().map(named).collect(),
                conditions,
                order: order.collect(),
                limit: query.limit,
                window: query.window,
                hints: hints_of(query),
            };
            asked.push(Asked { statement: add(program, Statement::SelectRecords(select)), values });
        }
        Queried { asked }
    }

    /// Appends the execution of a query; nothing for a query that was not added.
    #[inline]
    pub(super) fn bind(&self, query: u16, request: &mut Request) {
        let Some(Asked { statement, values }) = self.asked.get(usize::from(query)) else { return };
        let first_cell = next_cell(&request.cells);
        values.as_slice().iter().for_each(|cell| request.cells.copy_from(values, *cell));
        read(request, *statement, first_cell);
    }
}

/// Checks that a layout whose rows have this key can find the latest records, if a query is restricted to them.
///
/// # Errors
/// The reason why it cannot, as the end of a sentence.
pub(super) fn check_window(queries: &[Query], key: &RecordKey) -> Result<(), String> {
    if key.place.is_some() && queries.iter().any(|query| query.window.is_some()) {
        let column = &key.column.name;
        return Err(format!("has no numbers by which records are the latest, as its key is \"{column}\""));
    }
    Ok(())
}

fn hints_of(query: &Query) -> Hints {
    Hints { straight_join: query.straight_join, cache: query.cache }
}

fn is_hot(place: Place, record_type: &RecordType) -> bool {
    matches!(place, Place::Value(value) if record_type.values[value].hot)
}

impl Path {
    /// Returns the path of a single table that has all columns.
    pub(super) fn single(name: &str) -> Self {
        let holds = Box::new(|_| true);
        Path { tables: vec![PathTable { name: name.to_owned(), has_records: true, link: None, holds }] }
    }

    fn table_of(&self, place: Place) -> usize {
        self.tables.iter().position(|table| (table.holds)(place)).unwrap_or(0)
    }

    fn column(&self, place: Place, record_type: &RecordType) -> ColumnRef {
        column_ref(&self.tables[self.table_of(place)].name, &place.column(record_type).name)
    }

    /// Returns the query over no more tables than it needs. The first table is one that a condition restricts, identities before
    /// values: in this order joins carry the fewest rows along, for databases that are told to keep to it.
    fn select(&self, query: &Query, record_type: &RecordType) -> Select {
        let find = |name: &str| place_of(record_type, name);
        let restricted: Vec<Place> = query.conditions.iter().filter_map(|condition| find(&condition.column)).collect();
        let ordered: Vec<(Place, bool)> =
            query.order.iter().filter_map(|(name, descending)| Some((find(name)?, *descending))).collect();
        let wanted = self.wanted(query, record_type, restricted.first().copied());
        let used = restricted.iter().chain(&wanted).copied().chain(ordered.iter().map(|(place, _)| *place));
        let (low, high) = self.stretch(used);
        let first = restricted.iter().map(|place| self.table_of(*place)).min().unwrap_or(low);
        let joins = self.joins(first, low, high);
        let conditions = query.conditions.iter().zip(&restricted).map(|(condition, place)| Condition {
            column: self.column(*place, record_type),
            kind: place.column(record_type).kind,
            comparison: condition.comparison,
        });
        let window = query.window.and_then(|rows| {
            let table = (low..=high).find(|table| self.tables[*table].has_records)?;
            Some(Window { table: self.tables[table].name.clone(), by: RECORD_ID.to_owned(), rows })
        });
        Select {
            columns: wanted.iter().map(|place| self.column(*place, record_type)).collect(),
            from: self.tables[first].name.clone(),
            joins,
            conditions: conditions.collect(),
            order: ordered.iter().map(|(place, descending)| (self.column(*place, record_type), *descending)).collect(),
            limit: query.limit.map(Limit::Fixed),
            window,
            for_update: false,
            hints: hints_of(query),
        }
    }

    /// Returns the first and the last table of the stretch that holds these columns and a row for each record.
    fn stretch(&self, used: impl Iterator<Item = Place>) -> (usize, usize) {
        let mut needed: Vec<usize> = used.map(|place| self.table_of(place)).collect();
        if !needed.iter().any(|table| self.tables[*table].has_records) {
            needed.extend(self.tables.iter().position(|table| table.has_records));
        }
        (needed.iter().min().copied().unwrap_or(0), needed.iter().max().copied().unwrap_or(0))
    }

    /// Returns the joins of a stretch's other tables to its table `first`.
    fn joins(&self, first: usize, low: usize, high: usize) -> Vec<Join> {
        let joins = (first + 1..=high).map(|table| self.join(table, table - 1));
        joins.chain((low..first).rev().map(|table| self.join(table, table + 1))).collect()
    }

    /// Returns a question over no more tables than it needs, beginning with the one that has source and time; `None` where the records have none.
    pub(super) fn asking(&self, question: &Question, record_type: &RecordType) -> Option<Asking> {
        let series = record_type.series?;
        let (source, time) = (Place::Value(series.source), Place::Value(series.time));
        let columns = question.columns(record_type);
        let (low, high) = self.stretch(columns.iter().copied().chain([source, time]));
        let first = self.table_of(time);
        let column = |place: &Place| (self.column(*place, record_type), place.column(record_type).kind);
        Some(Asking {
            ask: question.ask,
            from: self.tables[first].name.clone(),
            joins: self.joins(first, low, high),
            source: self.column(source, record_type),
            time: self.column(time, record_type),
            least_time: None,
            columns: columns.iter().map(column).collect(),
            all_sources: question.all_sources,
            source_index: SourceIndex::None,
            has_span: question.span_ns.is_some() && question.ask != Ask::Newest,
            bucket: question.bucket_ns,
            most: question.most,
            by: question.by,
            figures: question.figures().to_vec(),
        })
    }

    /// Adds questions, which were checked against the record type, to a program. Returns the numbers of their statements.
    pub(super) fn add_questions(
        &self,
        questions: &[Question],
        program: &mut Program,
        record_type: &RecordType,
    ) -> Vec<u16> {
        let asked = questions.iter().filter_map(|question| self.asking(question, record_type));
        asked.map(|asking| add(program, Statement::Ask(asking))).collect()
    }

    /// Returns the columns of the answer, identity columns first, unless the query names its own.
    fn wanted(&self, query: &Query, record_type: &RecordType, first_restricted: Option<Place>) -> Vec<Place> {
        let identity = || (0..record_type.identity.len()).map(Place::Identity);
        let values = || (0..record_type.values.len()).map(Place::Value);
        match &query.columns {
            Projection::Identity => identity().collect(),
            Projection::Hot => values().filter(|place| place.column(record_type).hot).collect(),
            Projection::All => identity().chain(values()).collect(),
            Projection::OneTable => {
                let table = first_restricted.map_or(0, |place| self.table_of(place));
                identity().chain(values()).filter(|place| self.table_of(*place) == table).collect()
            }
            Projection::Columns(names) => names.iter().filter_map(|name| place_of(record_type, name)).collect(),
        }
    }

    fn join(&self, table: usize, neighbour: usize) -> Join {
        let link = self.tables[table.min(neighbour)].link.unwrap_or_default();
        let (name, other) = (&self.tables[table].name, &self.tables[neighbour].name);
        Join { table: name.clone(), on: vec![(column_ref(name, link), column_ref(other, link))] }
    }
}

#[cfg(test)]
mod tests {
    use crate::data;
    use crate::layout::{Layout, build};
    use crate::operation::Operation;
    use crate::query::{Constant, Projection, Query, QueryCondition};
    use crate::record::Cell;
    use crate::statement::{Comparison, Request, Select, Statement};
    use crate::trial::RecordSettings;

    fn query(conditions: &[(&str, i64)], columns: Projection) -> Query {
        let condition = |(column, value): &(&str, i64)| QueryCondition {
            column: (*column).to_owned(),
            comparison: Comparison::Less,
            value: Constant::Int(*value),
        };
        let conditions = conditions.iter().map(condition).collect();
        Query {
            name: "q".to_owned(),
            conditions,
            columns,
            order: Vec::new(),
            limit: None,
            window: None,
            rows: None,
            straight_join: false,
            cache: None,
        }
    }

    fn laid_out(layout: &str, query: &Query) -> (Select, Request) {
        let settings = RecordSettings { type_name: "qos".to_owned(), per_measurement: 10, ..RecordSettings::default() };
        let generator = data::build(&settings).unwrap();
        let mut layout: Box<dyn Layout> = build(layout, generator.record_type(), "qos", 10).unwrap();
        query.check(generator.record_type()).unwrap();
        layout.add_queries(std::slice::from_ref(query), generator.record_type()).unwrap();
        let mut request = Request::default();
        layout.bind(&Operation::Query { query: 0 }, &*generator, &mut request);
        let statement = usize::from(request.steps[0].statement);
        let Statement::Select(select) = layout.program().statements[statement].clone() else { panic!() };
        (select, request)
    }

    /// Returns the tables that a query names, in order.
    fn tables(layout: &str, conditions: &[(&str, i64)], columns: Projection) -> Vec<String> {
        let (select, _) = laid_out(layout, &query(conditions, columns));
        std::iter::once(select.from).chain(select.joins.into_iter().map(|join| join.table)).collect()
    }

    #[test]
    fn a_query_names_the_tables_it_needs_beginning_with_one_that_it_restricts() {
        let of = |layout, column: &str, columns| tables(layout, &[(column, 5)], columns);
        assert_eq!(of("wide", "ul_delay", Projection::All), ["qos"]);
        assert_eq!(of("star", "customerId", Projection::All), ["qos_identity", "qos_values"]);
        assert_eq!(of("star", "ul_delay", Projection::All), ["qos_values", "qos_identity"]);
        assert_eq!(of("star-hot", "customerId", Projection::All), ["qos_identity", "qos_main", "qos_secondary"]);
        assert_eq!(of("star-hot", "ul_delay", Projection::All), ["qos_main", "qos_secondary", "qos_identity"]);
        assert_eq!(of("star-hot", "ul_dupl", Projection::All), ["qos_secondary", "qos_main", "qos_identity"]);
        let both = [("ul_dupl", 5), ("customerId", 5)];
        let joined = ["qos_identity", "qos_main", "qos_secondary"];
        assert_eq!(tables("star-hot", &both, Projection::OneTable), joined, "the main table links the two");
    }

    #[test]
    fn one_table_is_that_of_the_first_condition_and_identities_have_a_row_for_each_record() {
        assert_eq!(tables("star", &[("ul_dupl", 1)], Projection::OneTable), ["qos_values"]);
        assert_eq!(tables("star-hot", &[("ul_dupl", 1)], Projection::OneTable), ["qos_secondary"]);
        assert_eq!(tables("star-hot", &[("ul_delay", 1)], Projection::Hot), ["qos_main"]);
        let identity = tables("star-hot", &[("customerId", 1)], Projection::Identity);
        assert_eq!(identity, ["qos_identity", "qos_main"]);
    }

    #[test]
    fn constants_become_values_of_the_columns_kind() {
        let (select, request) = laid_out("star", &query(&[("ul_delay", 5), ("customerId", 7)], Projection::All));
        assert_eq!(request.cells.as_slice(), [Cell::Float(5.0), Cell::Int(7)]);
        assert_eq!((select.columns.len(), select.conditions.len()), (61, 2));
    }
}
