//! Questions about sources and times in SQL. [`text`] writes an [`Asking`]; a [`Dialect`] says where its database has a better idiom.

use super::Dialect;
use crate::question::{Ask, Figure, MILLIONTHS};
use crate::record::ColumnKind;
use crate::statement::{Asking, ColumnRef};

/// How a database is asked for the newest reading of each source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewestOfEach {
    /// A join with the newest time of each source.
    Join,
    /// The same, told to begin with the newest times, for MySQL and MariaDB. They find these times by skipping from source to source in the index ("loose index
    /// scan"). Left to itself, MariaDB may begin with the table and compute the newest time again for each of its rows, where its statistics of the index say that a
    /// source has few.
    JoinInOrder,
    /// `DISTINCT ON`, as PostgreSQL's documentation of SELECT shows it.
    DistinctOn,
    /// A recursive query that goes from source to source in the index on source and time, and looks up the newest time of each. PostgreSQL's wiki has it under "Loose
    /// indexscan"; it is for databases that do not skip by themselves.
    Skipping,
    /// `LIMIT 1 BY`, as ClickHouse's documentation shows it.
    LimitBy,
    /// `LATEST ON`, as QuestDB's documentation shows it, where the table is kept in the order of time; else [`NewestOfEach::Join`].
    LatestOn,
    /// Columns beside a `MAX`, which SQLite takes from the row of the maximum ("bare columns in an aggregate query").
    BareColumns,
}

/// The parts of a question that its forms share.
struct Parts<'a> {
    dialect: &'a dyn Dialect,
    asking: &'a Asking,
    source: String,
    time: String,
    /// Columns that are read or aggregated, with their types.
    columns: Vec<(String, ColumnKind)>,
    /// The table with a row for each record.
    table: String,
    /// The tables joined to it.
    joins: String,
    /// All tables, with FROM.
    from: String,
    /// The condition, with WHERE; empty without one.
    condition: String,
}

/// Returns the text of a question; `value` writes the value with a number.
pub(super) fn text(dialect: &dyn Dialect, asking: &Asking, value: &dyn Fn(usize) -> String) -> String {
    let parts = Parts::new(dialect, asking, value);
    let (source, time, all) = (&parts.source, &parts.time, asking.all_sources);
    let (from, condition) = (&parts.from, &parts.condition);
    match asking.ask {
        Ask::Range | Ask::Above => {
            let order = if all { format!("{time}, {source}") } else { time.clone() };
            format!("SELECT {}{from}{condition} ORDER BY {order}", parts.readings())
        }
        Ask::Newest if all => parts.newest_of_each(),
        Ask::Newest => format!("SELECT {}{from}{condition} ORDER BY {time} DESC LIMIT 1", parts.readings()),
        Ask::Aggregate => match parts.figures() {
            Some(figures) => format!("SELECT {}{figures}{from}{condition}", dialect.count()),
            None => parts.ranked(None),
        },
        Ask::Buckets => {
            if let Some(stride) = stride(asking.bucket).filter(|_| dialect.is_ordered_by(time)) {
                return parts.sampled(&stride);
            }
            let width = asking.bucket;
            let bucket = format!("({}) * {width}", dialect.divided(time, width));
            match parts.figures() {
                Some(figures) => format!(
                    "SELECT {bucket}, {}{figures}{from}{condition} GROUP BY {bucket} ORDER BY {bucket}",
                    dialect.count()
                ),
                None => parts.ranked(Some(&bucket)),
            }
        }
        Ask::Top => {
            let figure = parts.columns.first().and_then(|column| parts.figure(column, asking.by)).unwrap_or_default();
            let most = asking.most;
            let (table, joins) = (&parts.table, &parts.joins);
            let from = format!(" FROM {table}{}{joins}", dialect.grouping_hint(asking.source_index));
            format!("SELECT {source}, {figure}{from}{condition} GROUP BY {source} ORDER BY {figure} DESC LIMIT {most}")
        }
    }
}

/// Returns a length of buckets in nanoseconds as QuestDB writes it, in the largest unit of which it is a whole number; `None` where that number has more than 31 bits, of which QuestDB
/// would take the last ones.
fn stride(bucket_ns: i64) -> Option<String> {
    const UNITS: [(i64, char); 6] = [
        (3_600_000_000_000, 'h'),
        (60_000_000_000, 'm'),
        (1_000_000_000, 's'),
        (1_000_000, 'T'),
        (1_000, 'U'),
        (1, 'n'),
    ];
    let (unit, letter) = UNITS.into_iter().find(|(unit, _)| bucket_ns % unit == 0)?;
    let number = i32::try_from(bucket_ns / unit).ok().filter(|number| *number > 0)?;
    Some(format!("{number}{letter}"))
}

impl<'a> Parts<'a> {
    fn new(dialect: &'a dyn Dialect, asking: &'a Asking, value: &dyn Fn(usize) -> String) -> Self {
        let column = |column: &ColumnRef| format!("{}.{}", dialect.quote(&column.table), dialect.quote(&column.column));
        let (source, time) = (column(&asking.source), column(&asking.time));
        let columns: Vec<_> = asking.columns.iter().map(|(read, kind)| (column(read), *kind)).collect();
        let table = dialect.quote(&asking.from);
        let mut joins = String::new();
        for join in &asking.joins {
            let on: Vec<_> =
                join.on.iter().map(|(left, right)| format!("{} = {}", column(left), column(right))).collect();
            joins += &format!(" JOIN {} ON {}", dialect.quote(&join.table), on.join(" AND "));
        }
        let mut conditions = Vec::new();
        let mut compare = |compared: &str| {
            let number = conditions.len();
            conditions.push(format!("{compared} {}", value(number)));
        };
        if !asking.all_sources {
            compare(&format!("{source} ="));
        }
        if asking.has_span {
            compare(&format!("{time} >="));
            // Of a row with several readings, the last one must not lie before the span, nor the first one behind it.
            compare(&format!("{} <", asking.least_time.as_ref().map_or_else(|| time.clone(), column)));
        }
        if asking.ask == Ask::Above {
            columns.first().into_iter().for_each(|(column, _)| compare(&format!("{column} >")));
        }
        let condition =
            if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
        let from = format!(" FROM {table}{joins}");
        Parts { dialect, asking, source, time, columns, table, joins, from, condition }
    }

    /// Returns the columns of readings.
    fn readings(&self) -> String {
        let source = self.asking.all_sources.then(|| self.source.clone());
        let read = self.columns.iter().map(|(column, _)| self.dialect.read(column.clone()));
        source.into_iter().chain([self.dialect.read(self.time.clone())]).chain(read).collect::<Vec<_>>().join(", ")
    }

    /// Returns the aggregate that gives a figure of a column; `None` where the database has none.
    fn figure(&self, (column, kind): &(String, ColumnKind), figure: Figure) -> Option<String> {
        match figure {
            Figure::Sum => Some(self.dialect.sum_of(column, *kind)),
            Figure::Mean => Some(self.dialect.mean_of(column, *kind)),
            Figure::Min => Some(format!("MIN({column})")),
            Figure::Max => Some(format!("MAX({column})")),
            Figure::First | Figure::Last => self.dialect.end_of(column, &self.order(), figure == Figure::Last),
            Figure::Quantile(millionths) => self.dialect.quantile_of(column, millionths),
        }
    }

    /// Returns the expressions that decide which reading is the first.
    fn order(&self) -> Vec<&str> {
        let source = self.asking.all_sources.then_some(self.source.as_str());
        std::iter::once(self.time.as_str()).chain(source).collect()
    }

    /// Returns the figures of each column, each with a comma in front; `None` where one of them is no aggregate of the database.
    fn figures(&self) -> Option<String> {
        let of = |column| self.asking.figures.iter().map(move |figure| self.figure(column, *figure));
        self.columns.iter().flat_map(of).map(|figure| figure.map(|figure| format!(", {figure}"))).collect()
    }

    /// Returns the question for figures that no aggregate of the database gives, over all readings or for each bucket. A query with a row for each reading finds the ends and the ranks of the
    /// values with window functions; the query around it takes the figures from these rows.
    fn ranked(&self, bucket: Option<&str>) -> String {
        let quote = |name: &str| self.dialect.quote(name);
        let (own_bucket, partition) = (quote("bucket"), bucket.map(|bucket| format!("PARTITION BY {bucket} ")));
        let partition = partition.unwrap_or_default();
        let mut rows = vec![format!("COUNT(*) OVER ({partition}) AS {}", quote("readings"))];
        rows.extend(bucket.map(|bucket| format!("{bucket} AS {own_bucket}")));
        let mut figures = vec![self.dialect.count().to_owned()];
        for number in 0..self.columns.len() {
            self.rank(number, &partition, &mut rows);
            figures.extend(self.asking.figures.iter().filter_map(|figure| self.figure_of_ranked(number, *figure)));
        }
        let (rows, figures, from, condition) = (rows.join(", "), figures.join(", "), &self.from, &self.condition);
        let measured = format!("(SELECT {rows}{from}{condition}) AS {}", quote("measured"));
        match bucket {
            None => format!("SELECT {figures} FROM {measured}"),
            Some(_) => {
                format!("SELECT {own_bucket}, {figures} FROM {measured} GROUP BY {own_bucket} ORDER BY {own_bucket}")
            }
        }
    }

    /// Returns the name of what stands beside the value of a column, by its number, in the rows of [`Parts::ranked`].
    fn beside(&self, word: &str, number: usize) -> String {
        self.dialect.quote(&format!("{word}_{number}"))
    }

    /// Appends a column's value in each row, and what the figures need beside it.
    fn rank(&self, number: usize, partition: &str, rows: &mut Vec<String>) {
        let Some((column, _)) = self.columns.get(number) else { return };
        let asked = &self.asking.figures;
        rows.push(format!("{column} AS {}", self.beside("value", number)));
        for (end, way) in [(Figure::First, ""), (Figure::Last, " DESC")] {
            if asked.contains(&end) {
                let order: Vec<String> = self.order().iter().map(|by| format!("{by}{way}")).collect();
                let (order, name) = (order.join(", "), self.beside(&end.to_string(), number));
                rows.push(format!("FIRST_VALUE({column}) OVER ({partition}ORDER BY {order}) AS {name}"));
            }
        }
        if asked.iter().any(|figure| matches!(figure, Figure::Quantile(_))) {
            let name = self.beside("rank", number);
            rows.push(format!("ROW_NUMBER() OVER ({partition}ORDER BY {column}) AS {name}"));
        }
    }

    /// Returns the expression of a figure over the rows of [`Parts::ranked`].
    fn figure_of_ranked(&self, number: usize, figure: Figure) -> Option<String> {
        let (value, readings) = (self.beside("value", number), self.dialect.quote("readings"));
        match figure {
            // All rows of a group have the same.
            Figure::First | Figure::Last => Some(format!("MIN({})", self.beside(&figure.to_string(), number))),
            Figure::Quantile(millionths) => {
                let rank = self.beside("rank", number);
                let is_enough = format!("{rank} * {MILLIONTHS} >= {readings} * {millionths}");
                Some(format!("MIN(CASE WHEN {is_enough} THEN {value} END)"))
            }
            _ => self.figure(&(value, self.columns.get(number)?.1), figure),
        }
    }

    fn newest_of_each(&self) -> String {
        let (source, time, from) = (&self.source, &self.time, &self.from);
        match self.dialect.newest_of_each(self.asking.source_index) {
            NewestOfEach::Skipping => self.skipping(),
            NewestOfEach::DistinctOn => {
                format!("SELECT DISTINCT ON ({source}) {}{from} ORDER BY {source}, {time} DESC", self.readings())
            }
            NewestOfEach::LimitBy => {
                format!("SELECT {}{from} ORDER BY {source}, {time} DESC LIMIT 1 BY {source}", self.readings())
            }
            NewestOfEach::LatestOn if self.dialect.is_ordered_by(time) => {
                let quote = |name: &str| self.dialect.quote(name);
                let (time, source) = (quote(&self.asking.time.column), quote(&self.asking.source.column));
                format!("SELECT {}{from} LATEST ON {time} PARTITION BY {source}", self.readings())
            }
            NewestOfEach::BareColumns => {
                let read: String = self.columns.iter().map(|(column, _)| format!(", {column}")).collect();
                format!("SELECT {source}, MAX({time}){read}{from} GROUP BY {source}")
            }
            NewestOfEach::Join | NewestOfEach::LatestOn => {
                let (newest, on) = self.newest_times();
                format!("SELECT {}{from} JOIN {newest} ON {on}", self.readings())
            }
            NewestOfEach::JoinInOrder => {
                let (newest, on) = self.newest_times();
                let (table, joins) = (&self.table, &self.joins);
                format!("SELECT STRAIGHT_JOIN {} FROM {newest} JOIN {table} ON {on}{joins}", self.readings())
            }
        }
    }

    /// Returns the question for buckets as QuestDB asks it, with `SAMPLE BY`: buckets begin where a whole number of them fits between 1970 and their beginning, and none is without readings. The
    /// time is taken out of it in a query around it, because one that is calculated in it would be a group of its own.
    fn sampled(&self, stride: &str) -> String {
        let quote = |name: &str| self.dialect.quote(name);
        let of = |column| self.asking.figures.iter().filter_map(move |figure| self.figure(column, *figure));
        let figures = std::iter::once(self.dialect.count().to_owned()).chain(self.columns.iter().flat_map(of));
        let (mut inside, mut names) = (String::new(), String::new());
        for (number, figure) in figures.enumerate() {
            let name = quote(&format!("figure_{number}"));
            inside += &format!(", {figure} AS {name}");
            names += &format!(", {name}");
        }
        let (bucket, time) = (quote("bucket"), quote(&self.asking.time.column));
        let (from, condition) = (&self.from, &self.condition);
        let sampled =
            format!("SELECT {time} AS {bucket}{inside}{from}{condition} SAMPLE BY {stride} ALIGN TO CALENDAR");
        format!("SELECT CAST({bucket} AS LONG){names} FROM ({sampled}) ORDER BY {bucket}")
    }

    /// Returns a table with the newest time of each source, and how it is joined.
    fn newest_times(&self) -> (String, String) {
        let quote = |name: &str| self.dialect.quote(name);
        let (newest, at) = (quote("newest"), quote("newest_ns"));
        let (own_source, own_time) = (quote(&self.asking.source.column), quote(&self.asking.time.column));
        let (source, time, table) = (&self.source, &self.time, &self.table);
        (
            format!("(SELECT {own_source}, MAX({own_time}) AS {at} FROM {table} GROUP BY {own_source}) AS {newest}"),
            format!("{newest}.{own_source} = {source} AND {newest}.{at} = {time}"),
        )
    }

    fn skipping(&self) -> String {
        let quote = |name: &str| self.dialect.quote(name);
        let (sources, number, others) = (quote("each_source"), quote("number"), quote("others"));
        let (table, time, source) = (quote(&self.asking.from), &self.time, &self.source);
        let (own_source, own_time) = (quote(&self.asking.source.column), quote(&self.asking.time.column));
        format!(
            "WITH RECURSIVE {sources} ({number}) AS (SELECT MIN({own_source}) FROM {table} UNION ALL SELECT (SELECT MIN({others}.{own_source}) \
             FROM {table} AS {others} WHERE {others}.{own_source} > {sources}.{number}) FROM {sources} WHERE {sources}.{number} IS NOT NULL) \
             SELECT {}{} JOIN {sources} ON {source} = {sources}.{number} WHERE {time} = (SELECT MAX({others}.{own_time}) FROM {table} AS {others} \
             WHERE {others}.{own_source} = {sources}.{number})",
            self.readings(),
            self.from
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_written_in_the_largest_unit_that_is_exact() {
        let second = 1_000_000_000;
        for (bucket_ns, right) in [
            (7 * second, Some("7s")),
            (120 * second, Some("2m")),
            (86_400 * second, Some("24h")),
            (second / 4, Some("250T")),
            (1_234_567, Some("1234567n")),
            (7 * second + 1, None),
            (0, None),
        ] {
            assert_eq!(stride(bucket_ns).as_deref(), right, "{bucket_ns}");
        }
    }
}
