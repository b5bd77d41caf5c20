//! Requests for the points of a table, as they were written. Main type: [`Points`].
//!
//! A row's points are found by its time and its source; the server has no index on values.

use super::answer::{Form, From, Out, Reads};
use super::metricsql::{Span, Text, append_time, int, metric, named};
use super::rules::{RULES, refused};
use crate::database::DatabaseError;
use crate::database::points::shape::{At, Column, Shape};
use crate::record::Cells;
use crate::statement::{Asking, Comparison, Select};

/// A comparison of the time with a value.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bound {
    /// The place of the value.
    place: usize,
    comparison: Comparison,
    at: At,
}

/// A request for points.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Points {
    /// The selectors of the series.
    series: Vec<Text>,
    pub reads: Reads,
    /// The place of the source, where one is asked for.
    source: Option<usize>,
    bounds: Vec<Bound>,
}

impl Points {
    /// Returns the request for a selection of rows.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] for a selection that is none of a source and a span of time.
    pub(super) fn of_select(shape: &Shape, select: &Select) -> Result<Self, DatabaseError> {
        if !select.joins.is_empty() {
            return Err(refused("it reads the series of one table at a time"));
        }
        if select.for_update || select.window.is_some() {
            return Err(refused("it locks no rows, and has no rows with the highest numbers"));
        }
        if select.limit.is_some() {
            return Err(refused("it has no request for a limited number of rows"));
        }
        let columns = select.columns.iter().map(|column| shape.column(&column.column));
        let columns: Vec<&Column> = columns.collect::<Result<_, _>>()?;
        let (mut source, mut bounds) = (None, Vec::new());
        for (place, asked) in select.conditions.iter().enumerate() {
            let column = shape.column(&asked.column.column)?;
            match (column.at, asked.comparison) {
                (At::Tag, Comparison::Equal) if source.is_none() => source = Some(place),
                (At::Time | At::TimeAndField, comparison) if comparison != Comparison::NotEqual => {
                    bounds.push(Bound { place, comparison, at: column.at });
                }
                _ => {
                    return Err(refused(&format!(
                        "it finds points by their source and their time alone, and not by {}",
                        column.name
                    )));
                }
            }
        }
        match &select.order[..] {
            [] => {}
            [(by, false)] if matches!(shape.column(&by.column)?.at, At::Time | At::TimeAndField) => {}
            [(by, _), ..] => {
                return Err(refused(&format!("it orders rows by their time alone, and not by {}", by.column)));
            }
        }
        Ok(Points::new(shape, &columns, source, bounds))
    }

    /// Returns the request for the readings of a question.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] for a column that the table does not have.
    pub(super) fn of_question(shape: &Shape, asking: &Asking, columns: &[&Column]) -> Result<Self, DatabaseError> {
        let at = shape.column(&asking.time.column)?.at;
        let source = (!asking.all_sources).then_some(0);
        let first = usize::from(source.is_some());
        let bound = |place, comparison| Bound { place, comparison, at };
        let bounds = match asking.has_span {
            true => vec![bound(first, Comparison::GreaterOrEqual), bound(first + 1, Comparison::Less)],
            false => Vec::new(),
        };
        Ok(Points::new(shape, columns, source, bounds))
    }

    fn new(shape: &Shape, columns: &[&Column], source: Option<usize>, bounds: Vec<Bound>) -> Self {
        let (series, outs) = readings(shape, columns);
        let tag = shape.columns.iter().find(|column| column.at == At::Tag).map(|column| column.name.clone());
        let one = source.and(tag.as_deref());
        let selectors = series.iter().map(|column| Text::new(&named(&shape.name, column, one))).collect();
        let names = series.iter().map(|column| metric(&shape.name, column)).collect();
        let round = shape.again.as_ref().map(|(name, _)| name.clone());
        Points {
            series: selectors,
            reads: Reads { form: Form::Points(names), outs, source: tag, round },
            source,
            bounds,
        }
    }

    /// Appends the body of the request, with the values from `first` on.
    ///
    /// # Errors
    /// A sentence: a value cannot be written.
    pub(super) fn append(&self, cells: &Cells, first: usize, out: &mut Vec<u8>) -> Result<(), String> {
        let source = self.source.map_or(Ok(0), |place| int(cells, first + place))?;
        let mut span = Span::ALL;
        for bound in &self.bounds {
            span = span.within(bound.span(int(cells, first + bound.place)?));
        }
        for series in &self.series {
            out.extend_from_slice(b"match%5B%5D=");
            series.append(0, source, out);
            out.push(b'&');
        }
        out.extend_from_slice(b"start=");
        append_time(span.least_ms, out);
        out.extend_from_slice(b"&end=");
        append_time(span.most_ms, out);
        Ok(())
    }
}

impl Bound {
    /// Returns the times that a comparison leaves.
    fn span(&self, value: i64) -> Span {
        // The last time that is not above the value, and whether it is the value.
        let (floor, is_exact) = match self.at {
            At::TimeAndField => (value.saturating_add(RULES.first), true),
            _ => (value.div_euclid(RULES.unit_ns), value.rem_euclid(RULES.unit_ns) == 0),
        };
        let below = if is_exact { floor.saturating_sub(1) } else { floor };
        let all = Span::ALL;
        match self.comparison {
            Comparison::Equal if is_exact => Span { least_ms: floor, most_ms: floor },
            Comparison::Equal | Comparison::NotEqual => Span { least_ms: 1, most_ms: 0 },
            Comparison::Less => Span { most_ms: below, ..all },
            Comparison::LessOrEqual => Span { most_ms: floor, ..all },
            Comparison::Greater => Span { least_ms: floor.saturating_add(1), ..all },
            Comparison::GreaterOrEqual => Span { least_ms: below.saturating_add(1), ..all },
        }
    }
}

/// Returns the columns whose series are read, that of the number first, and what a row of these columns is made of.
pub(super) fn readings(shape: &Shape, columns: &[&Column]) -> (Vec<String>, Vec<Out>) {
    let mut series = vec![shape.number.clone()];
    let mut place = |name: &str| {
        series.iter().position(|known| known == name).unwrap_or_else(|| {
            series.push(name.to_owned());
            series.len() - 1
        })
    };
    let outs = columns.iter().map(|column| {
        let from = match column.at {
            At::Time => From::Time,
            At::TimeAndField => From::Number,
            At::Tag => From::Source,
            At::Field => From::Field(place(&column.name)),
        };
        Out { from, kind: column.kind, nullable: column.nullable }
    });
    let outs = outs.collect();
    (series, outs)
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::{body, readings as program, values};
    use super::*;
    use crate::record::ColumnKind;
    use crate::statement::{ColumnRef, Condition, Limit};

    fn at(name: &str) -> ColumnRef {
        ColumnRef { table: "t".to_owned(), column: name.to_owned() }
    }

    fn asked(columns: &[&str], conditions: &[(&str, Comparison)]) -> Select {
        let conditions = conditions.iter().map(|(name, comparison)| Condition {
            column: at(name),
            kind: ColumnKind::Int64,
            comparison: *comparison,
        });
        let columns = columns.iter().map(|name| at(name)).collect();
        Select { columns, from: "t".to_owned(), conditions: conditions.collect(), ..Select::default() }
    }

    #[test]
    fn a_selection_names_the_series_that_every_row_has() {
        let shape = Shape::of(&RULES, &program(None), "t").unwrap();
        let select = asked(&["v", "at", "source"], &[("source", Comparison::Equal), ("at", Comparison::Equal)]);
        let points = Points::of_select(&shape, &select).unwrap();
        let right = "match[]={__name__=\"t_id\",loadline=\"t\",source=\"1\"}&match[]={__name__=\"t_v\",loadline=\"t\",source=\"1\"}\
                     &start=1700000000.0024&end=1700000000.0024";
        assert_eq!(body(|out| points.append(&values(true), 0, out)), right);
        let from: Vec<From> = points.reads.outs.iter().map(|out| out.from).collect();
        assert_eq!(from, [From::Field(1), From::Time, From::Source]);
        assert_eq!(points.reads.source.as_deref(), Some("source"));
    }

    #[test]
    fn comparisons_leave_the_times_that_are_in_them() {
        let span = |at, comparison, value| {
            let bound = Bound { place: 0, comparison, at };
            let Span { least_ms, most_ms } = bound.span(value).within(Span::ALL);
            (least_ms, most_ms)
        };
        let (least, most) = (Span::ALL.least_ms, Span::ALL.most_ms);
        let (exact, between) = (1_700_000_000_002_000_000, 1_700_000_000_002_000_001);
        let ms = 1_700_000_000_002;
        for (comparison, value, right) in [
            (Comparison::Equal, exact, (ms, ms)),
            (Comparison::Equal, between, (least - 1, least - 1)),
            (Comparison::Less, exact, (least, ms - 1)),
            (Comparison::Less, between, (least, ms)),
            (Comparison::LessOrEqual, between, (least, ms)),
            (Comparison::Greater, exact, (ms + 1, most)),
            (Comparison::GreaterOrEqual, exact, (ms, most)),
            (Comparison::GreaterOrEqual, between, (ms + 1, most)),
            (Comparison::GreaterOrEqual, i64::MIN, (least, most)),
            (Comparison::Less, i64::MIN, (least - 1, least - 1)),
        ] {
            assert_eq!(span(At::Time, comparison, value), right, "{comparison:?} {value}");
        }
        assert_eq!(span(At::TimeAndField, Comparison::Equal, 7), (RULES.first + 7, RULES.first + 7));
        assert_eq!(span(At::TimeAndField, Comparison::Less, i64::MAX), (least, most));
    }

    #[test]
    fn what_is_not_found_by_source_and_time_is_refused() {
        let shape = Shape::of(&RULES, &program(None), "t").unwrap();
        let refusal = |asked: &Select| Points::of_select(&shape, asked).unwrap_err().to_string();
        assert!(refusal(&asked(&["v"], &[("id", Comparison::Equal)])).contains("and not by id"));
        assert!(refusal(&asked(&["v"], &[("source", Comparison::Less)])).contains("and not by source"));
        let by_id = Select { order: vec![(at("id"), false)], ..asked(&["v"], &[]) };
        assert!(refusal(&by_id).contains("orders rows by their time alone"));
        let falling = Select { order: vec![(at("at"), true)], ..asked(&["v"], &[]) };
        assert!(refusal(&falling).contains("orders rows by their time alone"));
        let first = Select { limit: Some(Limit::Fixed(9)), ..asked(&["v"], &[]) };
        assert!(refusal(&first).contains("limited number"));
    }
}
