//! The query of a list of violations. Main type: [`Filter`].

use crate::layout::RECORD_ID;
use crate::record::Cells;
use crate::recorder::intake::request::parameter;
use crate::recorder::processing::Form;
use crate::statement::{Comparison, Limit, Select};
use crate::units::parse_utc;

/// The default number of violations of a page; and the largest.
const PAGE: u64 = 50;
const PAGE_MAX: u64 = 500;

const PARAMETERS: [&str; 8] = ["camera", "plate", "place", "from", "to", "over", "after", "limit"];

/// A checked query: which violations, and how many.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Filter {
    conditions: Vec<(&'static str, Comparison, Value)>,
    pub(super) limit: u64,
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Int(i64),
    Float(f64),
    Text(String),
}

impl Filter {
    /// Parses the query of a URL.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub(super) fn parse(query: &str) -> Result<Self, String> {
        let names: Vec<_> =
            query.split('&').filter(|pair| !pair.is_empty()).map(|pair| pair.split('=').next()).collect();
        if let Some(unknown) = names.iter().flatten().find(|name| !PARAMETERS.contains(name)) {
            return Err(format!("parameter {unknown:?} is not known; there are {}", PARAMETERS.join(", ")));
        }
        if let Some(twice) =
            PARAMETERS.iter().find(|name| names.iter().filter(|given| **given == Some(**name)).count() > 1)
        {
            return Err(format!("parameter {twice} is given twice"));
        }
        let given = |name: &str| {
            let is_given = names.contains(&Some(name));
            is_given
                .then(|| parameter(query, name).ok_or_else(|| format!("parameter {name} cannot be read")))
                .transpose()
        };
        let mut conditions = Vec::new();
        for name in ["camera", "plate", "place"] {
            if let Some(text) = given(name)? {
                conditions.push((name, Comparison::Equal, Value::Text(text)));
            }
        }
        for (name, comparison) in [("from", Comparison::GreaterOrEqual), ("to", Comparison::Less)] {
            if let Some(text) = given(name)? {
                let must = "it must be a time in UTC, as in 2026-11-22T10:00:00Z";
                let time_ns = parse_utc(&text).ok_or_else(|| format!("{name} is {text:?}; {must}"))?;
                conditions.push(("time_ns", comparison, Value::Int(time_ns)));
            }
        }
        if let Some(text) = given("over")? {
            let over = text.parse::<f64>().ok().filter(|over| over.is_finite());
            let over = over.ok_or_else(|| format!("over is {text:?}; it must be a number of km/h over the limit"))?;
            conditions.push(("excess_kmh", Comparison::GreaterOrEqual, Value::Float(over)));
        }
        if let Some(text) = given("after")? {
            let number =
                text.parse().map_err(|_| format!("after is {text:?}; it must be the number of a violation"))?;
            conditions.push((RECORD_ID, Comparison::Greater, Value::Int(number)));
        }
        let limit = match given("limit")? {
            None => PAGE,
            Some(text) => {
                let limit = text.parse().ok().filter(|limit| (1..=PAGE_MAX).contains(limit));
                limit.ok_or_else(|| format!("limit is {text:?}; it must be a number from 1 to {PAGE_MAX}"))?
            }
        };
        Ok(Filter { conditions, limit })
    }

    /// Returns the filter for one violation.
    pub(super) fn one(number: i64) -> Self {
        Filter { conditions: vec![(RECORD_ID, Comparison::Equal, Value::Int(number))], limit: 1 }
    }

    /// Returns the database query, with one row more than wanted, which shows whether there is a next page.
    pub(super) fn select(&self, form: Form) -> Select {
        let of = |(name, comparison, _): &(&str, Comparison, Value)| form.condition(name, *comparison);
        Select {
            conditions: self.conditions.iter().filter_map(of).collect(),
            order: vec![(form.number(), false)],
            limit: Some(Limit::Fixed(self.limit + 1)),
            ..form.select()
        }
    }

    /// Appends the values of the query.
    pub(super) fn append(&self, cells: &mut Cells) {
        for (_, _, value) in &self.conditions {
            match value {
                Value::Int(number) => cells.int(*number),
                Value::Float(number) => cells.float(*number),
                Value::Text(text) => cells.text(text),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read_and_what_is_wrong_is_named() {
        let filter =
            Filter::parse("camera=CAM-1&from=2026-01-01T00:00:00Z&over=20.5&after=7&limit=3&plate=GD%201").unwrap();
        assert_eq!((filter.conditions.len(), filter.limit), (5, 3));
        assert_eq!(filter.conditions[1].2, Value::Text("GD 1".to_owned()));
        assert_eq!(filter.select(Form::Star).conditions.len(), 5);
        assert_eq!(Filter::parse("").unwrap().limit, PAGE);
        let cases = [
            ("speed=3", "parameter \"speed\" is not known"),
            ("camera=a&camera=b", "given twice"),
            ("from=yesterday", "from is \"yesterday\""),
            ("over=NaN", "over is \"NaN\""),
            ("after=x", "after is \"x\""),
            ("limit=501", "limit is \"501\""),
            ("plate=%f", "plate cannot be read"),
        ];
        for (query, expected) in cases {
            let error = Filter::parse(query).unwrap_err();
            assert!(error.contains(expected), "{query}: {error}");
        }
    }
}
