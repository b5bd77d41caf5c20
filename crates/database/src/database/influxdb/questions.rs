//! Questions about sources and times in InfluxQL. Main function: [`ask`].

use super::answer::{From, Order, Out, Reads};
use super::influxql::{Selected, Text, Value, condition, name};
use super::rules::refused;
use crate::database::DatabaseError;
use crate::database::points::shape::{At, Column, Shape};
use crate::question::{Ask, Figure};
use crate::record::ColumnKind;
use crate::statement::{Asking, Comparison};

/// A question as it is asked.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Question {
    pub text: Text,
    pub reads: Reads,
    /// The order in which the rows must come, where the server's is another one.
    pub order: Order,
    /// Whether there is a row where there are no readings: a count of none.
    pub counts_none: bool,
}

/// The conditions of a question.
struct Conditions {
    /// With WHERE; empty without any.
    text: String,
    values: Vec<Value>,
}

/// Returns the query for a question.
///
/// # Errors
/// [`DatabaseError::Refused`] for a question that InfluxQL cannot answer with what a layout has stored.
pub(super) fn ask(shape: &Shape, asking: &Asking) -> Result<Question, DatabaseError> {
    if !asking.joins.is_empty() {
        return Err(refused("it reads points of one measurement at a time"));
    }
    let (source, time) = (shape.column(&asking.source.column)?, shape.column(&asking.time.column)?);
    if (source.at, time.at) != (At::Tag, At::Time) || asking.least_time.is_some() {
        return Err(refused(
            "it answers questions where a point is one reading, with its source as tag and its time as time",
        ));
    }
    if asking.all_sources && asking.has_ends() {
        return Err(refused(
            "it does not say which of several readings at the same time is the first; ask for the first or last of one source",
        ));
    }
    let columns = asking.columns.iter().map(|(column, _)| shape.column(&column.column));
    let columns: Vec<&Column> = columns.collect::<Result<_, _>>()?;
    let conditions = conditions(asking, source, time, &columns)?;
    let (from, by_source) = (name(&shape.name), format!(" GROUP BY {}", name(&source.name)));
    let Conditions { text: condition, values } = conditions;
    let plain = |text: String, reads: Reads| Question {
        text: Text::new(&text, values.clone()),
        reads,
        order: Order::AsItComes,
        counts_none: false,
    };
    Ok(match asking.ask {
        Ask::Range | Ask::Above => {
            let (list, reads) = readings(shape, asking.all_sources.then_some(source), time, &columns);
            let order = if asking.all_sources { Order::ByTimeAndSource } else { Order::AsItComes };
            Question { order, ..plain(format!("SELECT {list} FROM {from}{condition}"), reads) }
        }
        Ask::Newest if asking.all_sources => {
            let (list, mut reads) = readings(shape, None, time, &columns);
            reads.outs.insert(0, Out { from: From::Group, kind: source.kind, nullable: false });
            plain(format!("SELECT {list} FROM {from}{by_source} ORDER BY time DESC LIMIT 1"), reads)
        }
        Ask::Newest => {
            let (list, reads) = readings(shape, None, time, &columns);
            plain(format!("SELECT {list} FROM {from}{condition} ORDER BY time DESC LIMIT 1"), reads)
        }
        Ask::Aggregate => {
            let figures = figures(shape, &columns, &asking.figures)?;
            let reads = counted(asking, 1);
            Question { counts_none: true, ..plain(format!("SELECT {figures} FROM {from}{condition}"), reads) }
        }
        Ask::Buckets => {
            let figures = figures(shape, &columns, &asking.figures)?;
            // Without an end, buckets would end now, and the times of records may lie behind that.
            let all = if condition.is_empty() { " WHERE " } else { " AND " };
            let ended = format!("{all}time >= {} AND time <= {}", i64::MIN + 2, i64::MAX - 1);
            let condition = if asking.has_span { condition } else { condition + &ended };
            let text = format!("SELECT {figures} FROM {from}{condition} GROUP BY time({}ns) fill(none)", asking.bucket);
            plain(text, counted(asking, 0))
        }
        Ask::Top => {
            let column = columns.first().ok_or_else(|| refused("a question without a column has no figures"))?;
            let figure = figure(column, asking.by)?;
            let text = format!(
                "SELECT top(\"figure\", {}, {}) FROM (SELECT {figure} AS \"figure\" FROM {from}{condition}{by_source})",
                name(&source.name),
                asking.most
            );
            let outs = figured([From::Column(2), From::Column(1)].into_iter(), asking);
            Question { order: Order::Falling, ..plain(text, Reads { width: 3, outs }) }
        }
    })
}

fn conditions(
    asking: &Asking,
    source: &Column,
    time: &Column,
    columns: &[&Column],
) -> Result<Conditions, DatabaseError> {
    let mut asked = Vec::new();
    if !asking.all_sources {
        asked.push(condition(source, Comparison::Equal)?);
    }
    if asking.has_span {
        asked.push(condition(time, Comparison::GreaterOrEqual)?);
        asked.push(condition(time, Comparison::Less)?);
    }
    if let (Ask::Above, Some(column)) = (asking.ask, columns.first()) {
        asked.push(condition(column, Comparison::Greater)?);
    }
    let (texts, values): (Vec<String>, Vec<Value>) = asked.into_iter().unzip();
    let text = if texts.is_empty() { String::new() } else { format!(" WHERE {}", texts.join(" AND ")) };
    Ok(Conditions { text, values })
}

/// Returns the list of the columns of readings.
fn readings(shape: &Shape, source: Option<&Column>, time: &Column, columns: &[&Column]) -> (String, Reads) {
    let mut selected = Selected::new(shape);
    source.into_iter().chain([time]).chain(columns.iter().copied()).for_each(|column| selected.read(column));
    selected.finish()
}

/// Returns the count of readings, and these figures of each column.
fn figures(shape: &Shape, columns: &[&Column], figures: &[Figure]) -> Result<String, DatabaseError> {
    let mut list = format!("count({})", name(&shape.number));
    for column in columns {
        for own in figures {
            list += &format!(", {}", figure(column, *own)?);
        }
    }
    Ok(list)
}

fn figure(column: &Column, figure: Figure) -> Result<String, DatabaseError> {
    let function = match figure {
        Figure::Mean => "mean",
        Figure::Sum => "sum",
        Figure::Min => "min",
        Figure::Max => "max",
        Figure::First => "first",
        Figure::Last => "last",
        Figure::Quantile(_) => {
            return Err(refused(
                "it rounds the rank of a quantile to the nearest, and the others take the share rounded up",
            ));
        }
    };
    let is_number =
        matches!(column.kind, ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64 | ColumnKind::Float64);
    match column.at {
        At::Field if is_number => Ok(format!("{function}({})", name(&column.name))),
        _ => Err(refused(&format!("it has figures of fields with numbers, and none of {}", column.name))),
    }
}

/// Returns what is read from rows of figures: all columns of a row from one on. The time is the beginning of a bucket, and of no meaning for others.
fn counted(asking: &Asking, first: usize) -> Reads {
    let outs = figured((first..).map(From::Column), asking);
    Reads { width: outs.len() + first, outs }
}

fn figured(places: impl Iterator<Item = From>, asking: &Asking) -> Vec<Out> {
    places.zip(asking.answer_kinds()).map(|(from, kind)| Out { from, kind, nullable: true }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::influxql::tests::body;
    use super::super::rules::RULES;
    use super::*;
    use crate::database::points::shape::tests::readings as program;
    use crate::record::Cells;
    use crate::statement::{ColumnRef, SourceIndex};

    fn asking(ask: Ask, all_sources: bool, has_span: bool) -> Asking {
        let at = |name: &str| ColumnRef { table: "t,1".to_owned(), column: name.to_owned() };
        Asking {
            ask,
            from: "t,1".to_owned(),
            joins: Vec::new(),
            source: at("source"),
            time: at("at ns"),
            least_time: None,
            columns: vec![(at("v"), ColumnKind::Float64)],
            all_sources,
            source_index: SourceIndex::None,
            has_span,
            bucket: 7_000,
            most: 3,
            by: Figure::Max,
            figures: if ask == Ask::Buckets { Figure::OF_BUCKETS.to_vec() } else { Figure::OF_AGGREGATES.to_vec() },
        }
    }

    fn text(asking: &Asking) -> String {
        let mut cells = Cells::new();
        (1..5).for_each(|value| cells.int(value));
        body(&ask(&Shape::of(&RULES, &program(None), "t,1").unwrap(), asking).unwrap().text, &cells).unwrap()
    }

    #[test]
    fn questions_are_asked_in_influxqls_own_words() {
        for (asking, right) in [
            (
                asking(Ask::Range, false, true),
                "SELECT \"v\" FROM \"t,1\" WHERE \"source\" = '1' AND time >= 2 AND time < 3",
            ),
            (asking(Ask::Above, true, false), "SELECT \"source\", \"v\" FROM \"t,1\" WHERE \"v\" > 1"),
            (
                asking(Ask::Newest, true, false),
                "SELECT \"v\" FROM \"t,1\" GROUP BY \"source\" ORDER BY time DESC LIMIT 1",
            ),
            (
                asking(Ask::Aggregate, true, false),
                "SELECT count(\"id\"), sum(\"v\"), mean(\"v\"), min(\"v\"), max(\"v\") FROM \"t,1\"",
            ),
            (
                asking(Ask::Buckets, true, true),
                "SELECT count(\"id\"), mean(\"v\"), min(\"v\"), max(\"v\") FROM \"t,1\" WHERE time >= 1 AND time < 2 GROUP BY time(7000ns) fill(none)",
            ),
            (
                asking(Ask::Top, true, true),
                "SELECT top(\"figure\", \"source\", 3) FROM (SELECT max(\"v\") AS \"figure\" FROM \"t,1\" WHERE time >= 1 AND time < 2 GROUP BY \"source\")",
            ),
        ] {
            assert_eq!(text(&asking), right);
        }
        assert!(text(&asking(Ask::Buckets, false, false)).contains("AND time <= 9223372036854775806 GROUP BY"));
    }

    #[test]
    fn first_readings_are_those_of_one_source_and_quantiles_are_refused() {
        let shape = Shape::of(&RULES, &program(None), "t,1").unwrap();
        let of = |figures: &[Figure], all_sources| Asking {
            figures: figures.to_vec(),
            ..asking(Ask::Aggregate, all_sources, true)
        };
        let ends = [Figure::First, Figure::Last];
        let right = "SELECT count(\"id\"), first(\"v\"), last(\"v\") FROM \"t,1\" WHERE \"source\" = '1' AND time >= 2 AND time < 3";
        assert_eq!(text(&of(&ends, false)), right);
        for (figures, all_sources, says) in [
            (&ends[..], true, "first or last of one source"),
            (&[Figure::Quantile(950_000)], false, "the rank of a quantile"),
        ] {
            assert!(ask(&shape, &of(figures, all_sources)).unwrap_err().to_string().contains(says));
        }
    }

    #[test]
    fn questions_about_points_that_are_no_readings_are_refused() {
        let mut program = program(None);
        (program.tables[0].time, program.apart) = (None, Vec::new());
        let shape = Shape::of(&RULES, &program, "t,1").unwrap();
        assert!(ask(&shape, &asking(Ask::Range, true, true)).unwrap_err().to_string().contains("one reading"));
    }
}
