//! Questions about sources and times in MetricsQL. Main function: [`ask`].
//!
//! A query looks back from the last time of a span over its length, so that it sees each point of the span and no other; nothing is sampled at steps.

use super::answer::{Form, From, Out, PART, Reads};
use super::figures::{Query, When};
use super::metricsql::{named, span_mark};
use super::rules::{RULES, refused};
use super::selecting::{Points, readings};
use crate::database::DatabaseError;
use crate::database::points::shape::{At, Column, Shape};
use crate::question::{Ask, Figure};
use crate::statement::Asking;

/// How a question is asked.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Question {
    /// For the points themselves.
    Points(Points),
    /// For figures over them.
    Figures(Query),
}

/// The series of a question.
struct Asked<'a> {
    shape: &'a Shape,
    /// The label with the source.
    source: &'a str,
    /// The same, where one source is asked for.
    one: Option<&'a str>,
}

/// Returns the request for a question.
///
/// # Errors
/// [`DatabaseError::Refused`] for a question that MetricsQL cannot answer exactly.
pub(super) fn ask(shape: &Shape, asking: &Asking) -> Result<Question, DatabaseError> {
    if !asking.joins.is_empty() {
        return Err(refused("it reads the series of one table at a time"));
    }
    let (source, time) = (shape.column(&asking.source.column)?, shape.column(&asking.time.column)?);
    if (source.at, time.at) != (At::Tag, At::Time) || asking.least_time.is_some() {
        return Err(refused(
            "it answers questions where a point is one reading, with its source as label and its time as time",
        ));
    }
    let columns = asking.columns.iter().map(|(column, _)| shape.column(&column.column));
    let columns: Vec<&Column> = columns.collect::<Result<_, _>>()?;
    let asked = Asked { shape, source: &source.name, one: (!asking.all_sources).then_some(&*source.name) };
    let listed: Vec<&Column> =
        asking.all_sources.then_some(source).into_iter().chain([time]).chain(columns.iter().copied()).collect();
    let when = |bucket_ms| When { has_source: !asking.all_sources, has_span: asking.has_span, bucket_ms };
    let figured = |text: String, form, outs: Vec<Out>, when| {
        let (reads_source, round) = (Some(source.name.clone()), None);
        Question::Figures(Query::new(&text, Reads { form, outs, source: reads_source, round }, when))
    };
    Ok(match asking.ask {
        Ask::Range => Question::Points(Points::of_question(shape, asking, &listed)?),
        Ask::Newest => {
            let (series, outs) = readings(shape, &listed);
            let text = asked.newest(&series);
            let (reads_source, round) = (Some(source.name.clone()), shape.again.as_ref().map(|(name, _)| name.clone()));
            let reads = Reads { form: Form::Newest(series.len()), outs, source: reads_source, round };
            // Where the newest reading lies is not known, so it looks at all times.
            Question::Figures(Query::new(&text, reads, When { has_span: false, ..when(None) }))
        }
        Ask::Above => {
            return Err(refused(
                "it has no query for single readings above a bound: what it filters are figures at steps of time",
            ));
        }
        Ask::Aggregate => {
            let text = asked.figures(&columns, &asking.figures)?;
            figured(text, Form::Aggregate, figures_of(asking), when(None))
        }
        Ask::Buckets => {
            if !asking.has_span {
                return Err(refused("it has buckets only within a span: it does not tell where the readings begin"));
            }
            if asking.bucket <= 0 || asking.bucket % RULES.unit_ns != 0 {
                return Err(refused("a bucket is no whole number of milliseconds, in which its times are"));
            }
            let bucket_ms = asking.bucket / RULES.unit_ns;
            let text = asked.figures(&columns, &asking.figures)?;
            figured(text, Form::Buckets(bucket_ms), figures_of(asking), when(Some(bucket_ms)))
        }
        Ask::Top => {
            let column = columns.first().ok_or_else(|| refused("a question without a column has no figures"))?;
            let text = format!("topk({}, {})", asking.most, asked.figure(column, asking.by, true)?);
            figured(text, Form::Top, figures_of(asking), when(None))
        }
    })
}

impl Asked<'_> {
    fn over_time(&self, function: &str, column: &str) -> String {
        format!("{function}_over_time({}[{}])", named(&self.shape.name, column, self.one), span_mark())
    }

    /// Returns a figure of a column, over all sources or by source.
    fn figure(&self, column: &Column, figure: Figure, by_source: bool) -> Result<String, DatabaseError> {
        if column.at != At::Field {
            return Err(refused(&format!("it has figures of values, and none of {}", column.name)));
        }
        let by = if by_source { format!(" by ({})", self.source) } else { String::new() };
        let of = |outer: &str, inner: &str| format!("{outer}{by} ({})", self.over_time(inner, &column.name));
        Ok(match figure {
            Figure::Sum => of("sum", "sum"),
            Figure::Min => of("min", "min"),
            Figure::Max => of("max", "max"),
            Figure::Mean => format!("{} / {}", of("sum", "sum"), of("sum", "count")),
            Figure::First | Figure::Last | Figure::Quantile(_) => {
                return Err(refused(
                    "it has first and last values and quantiles of one series at a time, and repeated readings are series of their own",
                ));
            }
        })
    }

    /// Returns the count of readings, and these figures of each column, each with its number.
    fn figures(&self, columns: &[&Column], figures: &[Figure]) -> Result<String, DatabaseError> {
        let mut all = vec![format!("sum({})", self.over_time("count", &self.shape.number))];
        for column in columns {
            for figure in figures {
                all.push(self.figure(column, *figure, false)?);
            }
        }
        Ok(union(all.into_iter().enumerate().map(|(number, figure)| (number.to_string(), figure))))
    }

    /// Returns the newest value of each column with its time, and the time of the newest row.
    fn newest(&self, series: &[String]) -> String {
        let parts = series.iter().enumerate().flat_map(|(number, column)| {
            let value = (number > 0).then(|| (number.to_string(), self.over_time("last", column)));
            value.into_iter().chain([(format!("t{number}"), self.over_time("tlast", column))])
        });
        union(parts)
    }
}

/// Returns the query for several parts, each with its own name in a label.
fn union(parts: impl Iterator<Item = (String, String)>) -> String {
    let parts = parts.map(|(part, query)| format!("label_set({query}, \"{PART}\", \"{part}\")"));
    format!("union({})", parts.collect::<Vec<_>>().join(", "))
}

fn figures_of(asking: &Asking) -> Vec<Out> {
    asking.answer_kinds().into_iter().map(|kind| Out { from: From::Time, kind, nullable: true }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::{asking, body, readings, values};
    use super::*;

    fn text(asking: &Asking) -> String {
        let cells = values(!asking.all_sources);
        match ask(&Shape::of(&RULES, &readings(None), "t").unwrap(), asking).unwrap() {
            Question::Points(points) => body(|out| points.append(&cells, 0, out)),
            Question::Figures(query) => body(|out| query.append(&cells, 0, out)),
        }
    }

    const SERIES: &str = "loadline=\"t\"";

    #[test]
    fn questions_are_asked_in_metricsqls_own_words() {
        let of = |series: &str| format!("{{__name__=\"t_{series}\",{SERIES}}}");
        let one = |series: &str| format!("{{__name__=\"t_{series}\",{SERIES},source=\"1\"}}");
        for (asking, right) in [
            (
                asking(Ask::Range, false, true),
                format!("match[]={}&match[]={}&start=1700000000.0024&end=1700000014.0014", one("id"), one("v")),
            ),
            (
                asking(Ask::Aggregate, true, false),
                format!(
                    "query=union(label_set(sum(count_over_time({}[3900000000001ms])), \"loadline_part\", \"0\"), \
                     label_set(sum (sum_over_time({v}[3900000000001ms])), \"loadline_part\", \"1\"), \
                     label_set(sum (sum_over_time({v}[3900000000001ms])) / sum (count_over_time({v}[3900000000001ms])), \"loadline_part\", \"2\"), \
                     label_set(min (min_over_time({v}[3900000000001ms])), \"loadline_part\", \"3\"), \
                     label_set(max (max_over_time({v}[3900000000001ms])), \"loadline_part\", \"4\"))&time=4000000000.0004",
                    of("id"),
                    v = of("v")
                ),
            ),
            (
                asking(Ask::Top, true, true),
                format!("query=topk(3, max by (source) (max_over_time({}[14000ms])))&time=1700000014.0014", of("v")),
            ),
        ] {
            assert_eq!(text(&asking), right);
        }
        let newest = text(&asking(Ask::Newest, false, false));
        assert!(
            newest.starts_with("query=union(label_set(tlast_over_time(") && newest.ends_with("&time=4000000000.0004")
        );
        assert!(
            newest.contains(&format!(
                "label_set(last_over_time({}[3900000000001ms]), \"loadline_part\", \"1\")",
                one("v")
            ))
        );
        let buckets = text(&asking(Ask::Buckets, true, true));
        let times = "&step=7000ms&start=1700000007.0014&end=1700000014.0014&nocache=1";
        assert!(buckets.contains("[7000ms]") && buckets.ends_with(times), "{buckets}");
    }

    #[test]
    fn what_it_does_not_answer_exactly_is_refused() {
        let shape = Shape::of(&RULES, &readings(None), "t").unwrap();
        let refusal = |asking: &Asking| ask(&shape, asking).unwrap_err().to_string();
        assert!(refusal(&asking(Ask::Above, true, true)).contains("single readings above a bound"));
        assert!(refusal(&asking(Ask::Buckets, true, false)).contains("only within a span"));
        for figure in [Figure::Last, Figure::Quantile(950_000)] {
            let figures = vec![figure];
            assert!(
                refusal(&Asking { figures, ..asking(Ask::Aggregate, false, true) }).contains("one series at a time")
            );
        }
        assert!(refusal(&Asking { bucket: 7_000_001, ..asking(Ask::Buckets, true, true) }).contains("milliseconds"));
    }
}
