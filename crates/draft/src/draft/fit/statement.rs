//! Makes fills for all parameters of a statement.
//!
//! Main type: [`Fitter`].

use std::collections::HashMap;

use super::column::{self, Place};
use super::numbers::{VALUES_LEAST, fit_numbers};
use super::origin::{TOKENS_MOST, VIEWS_MOST, Views, with_origins};
use crate::draft::catalogue::{Catalogue, Holds, Table};
use crate::draft::seen::Ran;
use crate::draft::sql::{
    ColumnPlace, Comparison, Grammar, Kind, Known, Literal, Role, Scope, Token, locks, roles_of, tokens_of, verb_of,
};
use crate::statement::parameters_of;
use crate::trial::Fill;

/// The most parameters of a statement.
const PARAMETERS_MOST: usize = 1_000;
/// The fewest equal values that make a constant.
pub const CONSTANT_LEAST: usize = 5;
/// The most values of an array.
const ARRAY_MOST: usize = 1_000;
/// The most texts that are listed.
const TEXTS_MOST: usize = 50;
/// The number of rows of an answer whose limit is unknown.
const LIMIT_UNKNOWN: f64 = 10.0;

/// Makes fills for statements.
pub struct Fitter<'f> {
    /// The tables of the database.
    pub catalogue: &'f Catalogue,
    /// The names of the tables and columns.
    pub known: &'f [Known],
    /// The grammar of the statements.
    pub grammar: Grammar,
    /// The place for which fills are made.
    pub place: Place<'f>,
}

/// A statement with fills, ready for a study.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The name of the statement.
    pub name: String,
    /// The text, with `?` for each parameter.
    pub sql: String,
    /// One fill for each parameter.
    pub fills: Vec<Fill>,
    /// Whether it changes rows or locks them.
    pub writes: bool,
    /// Remarks on its parameters.
    pub remarks: Vec<String>,
    /// Rows per call, if they show how many rows the conditions find.
    pub rows: Option<f64>,
    /// The fills that determine how many rows it finds, by the contents of the columns.
    pub widths: Vec<(usize, Width)>,
}

/// The kind of a fill that determines how many rows are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// The distance between the ends of a range.
    Fraction,
    /// The distance between the ends of a range of whole numbers, both ends included.
    Whole,
    /// The maximum number of rows of the answer.
    Limit,
}

impl Fitted {
    /// Makes the statement find more or fewer rows by a factor, and returns whether that was possible.
    pub fn widen(&mut self, factor: f64) -> bool {
        for (place, kind) in &self.widths {
            let width = match self.fills.get_mut(*place) {
                Some(Fill::Number(width)) => width,
                Some(Fill::Plus(_, more)) => match &mut **more {
                    Fill::Number(width) => width,
                    _ => continue,
                },
                _ => continue,
            };
            *width = match kind {
                Width::Whole => (width.abs() + 1.0).mul_add(factor, -1.0).round().max(0.0).copysign(*width),
                Width::Fraction => (*width * factor * 1e3).round() / 1e3,
                Width::Limit => (*width * factor).round().clamp(1.0, 1e6),
            };
        }
        !self.widths.is_empty()
    }
}

/// A statement while its fills are made.
pub struct Work<'w> {
    pub(super) ran: &'w Ran,
    pub(super) roles: &'w [Role],
    pub(super) fills: Vec<Option<Fill>>,
    pub(super) remarks: Vec<String>,
    /// Rows per call, if they show how many rows the conditions find.
    pub(super) rows_told: Option<f64>,
    /// The fills that determine how many rows it finds.
    pub(super) widths: Vec<(usize, Width)>,
}

/// Schemas whose tables belong to the server.
const OF_SERVER: [&str; 5] = ["pg_catalog", "information_schema", "performance_schema", "mysql", "sys"];

impl Fitter<'_> {
    /// Returns whether a statement queries only the server itself: its own tables, or no table and no value at all, as in `SELECT version()`.
    pub fn is_of_server(&self, sql: &str) -> bool {
        let tokens = tokens_of(sql, Grammar { has_question_marks: true, ..self.grammar });
        if tokens.len() > TOKENS_MOST {
            return false;
        }
        let scope = Scope::of(&tokens, self.known);
        let is_own = |name: &String| {
            let name = name.to_lowercase();
            let of_schema = name.split_once('.').is_some_and(|(schema, _)| OF_SERVER.contains(&schema));
            of_schema || name.starts_with("pg_") || name.starts_with("sqlite_")
        };
        let asks_nothing =
            scope.unknown.is_empty() && !tokens.iter().any(|token| matches!(token.kind, Kind::Parameter(_)));
        let is_of_it = !scope.unknown.is_empty() && scope.unknown.iter().all(is_own);
        scope.tables().is_empty() && (asks_nothing || is_of_it)
    }

    /// Returns the statement with fills.
    ///
    /// # Errors
    /// The reason for which the statement cannot have fills.
    pub fn fit(&self, ran: &Ran) -> Result<Fitted, String> {
        if let Some(why) = &ran.broken {
            return Err(why.clone());
        }
        let tokens = tokens_of(&ran.text, Grammar { has_question_marks: true, ..self.grammar });
        if tokens.len() > TOKENS_MOST {
            return Err(format!("it has {} words and marks, and {TOKENS_MOST} are read at most", tokens.len()));
        }
        let scope = Scope::of(&tokens, self.known);
        if let Some(unknown) = scope.unknown.first() {
            return Err(format!("it names {unknown}, which is no table that this user can read"));
        }
        if ran.literals.len() > PARAMETERS_MOST {
            return Err(format!("it has {} values, and {PARAMETERS_MOST} are understood at most", ran.literals.len()));
        }
        let views = Views { catalogue: self.catalogue, known: self.known, grammar: self.grammar };
        let written = roles_of(&tokens, &scope, self.known);
        let roles = with_origins(views, &written);
        if roles.len() != ran.literals.len() {
            return Err("its values could not be told apart".to_owned());
        }
        let verb = verb_of(&ran.text).ok_or("it is no statement that a study can have")?;
        let is_whole_answer = verb == "select" && !is_summed(&tokens);
        let rows_told =
            ran.rows.map(|rows| rows / ran.calls).filter(|_| is_whole_answer || matches!(verb, "update" | "delete"));
        let mut work = Work {
            ran,
            roles: &roles,
            fills: vec![None; roles.len()],
            remarks: Vec::new(),
            rows_told,
            widths: Vec::new(),
        };
        self.repeat_numbered(&mut work);
        self.draw_rows_together(&mut work)?;
        self.pair_bounds(&mut work)?;
        for place in 0..roles.len() {
            if work.fills[place].is_none() {
                let fill = self.single(&mut work, place).map_err(|why| why.replace(HERE, &around(&tokens, place)))?;
                work.fills[place] = Some(fill);
            }
        }
        let mut fitted = Fitted {
            name: self.name_of(verb, &scope, &written),
            sql: ran.text.clone(),
            fills: work.fills.into_iter().flatten().collect(),
            writes: verb != "select" || locks(&tokens),
            remarks: work.remarks,
            rows: rows_told.filter(|_| verb == "select"),
            widths: work.widths,
        };
        if matches!(verb, "update" | "delete")
            && ran.rows.is_some_and(|rows| rows / ran.calls < 0.1)
            && !roles.is_empty()
        {
            fitted
                .remarks
                .push("what ran found next to nothing to change; here rows are asked for that are there".to_owned());
        }
        self.inline_constants(ran, &roles, &mut fitted);
        // A study finds its parameters without knowing the database's own quotes.
        if parameters_of(&fitted.sql) != fitted.fills.len() {
            return Err("its quotes or comments hide where its values are".to_owned());
        }
        Ok(fitted)
    }

    /// Returns the catalogue indices of the tables that a statement names.
    pub fn tables_of(&self, sql: &str) -> Vec<usize> {
        let tokens = tokens_of(sql, Grammar { has_question_marks: true, ..self.grammar });
        Scope::of(&tokens, self.known).tables()
    }

    /// Returns the tables that a statement names and those on which its views are based, each before the views based on it.
    pub fn tables_below(&self, sql: &str) -> Vec<usize> {
        let mut found = Vec::new();
        self.add_below(sql, VIEWS_MOST, &mut found);
        found
    }

    fn add_below(&self, sql: &str, depth: u32, found: &mut Vec<usize>) {
        for table in self.tables_of(sql) {
            if found.contains(&table) {
                continue;
            }
            if let Some(definition) = self.catalogue.tables[table].definition.as_deref().filter(|_| depth > 0) {
                self.add_below(definition, depth - 1, found);
            }
            if !found.contains(&table) {
                found.push(table);
            }
        }
    }

    pub(super) fn table(&self, column: ColumnPlace) -> &Table {
        &self.catalogue.tables[column.table]
    }

    pub(super) fn column_name(&self, column: ColumnPlace) -> String {
        format!("{}.{}", self.table(column).name, self.table(column).columns[column.column].name)
    }

    /// Gives a numbered parameter the same value wherever it stands.
    fn repeat_numbered(&self, work: &mut Work<'_>) {
        for place in 0..work.fills.len() {
            let Literal::Parameter(Some(number)) = work.ran.literals[place] else { continue };
            let earlier =
                work.ran.literals[..place].iter().position(|other| *other == Literal::Parameter(Some(number)));
            if let Some(earlier) = earlier {
                work.fills[place] = Some(Fill::Same(earlier as u32 + 1));
            }
        }
    }

    /// Draws the values of several columns of a table that are compared by `=` from one row: values of different rows would find none.
    fn draw_rows_together(&self, work: &mut Work<'_>) -> Result<(), String> {
        let equal = |place: usize| match work.roles[place] {
            Role::Compared { column, how: Comparison::Equal, is_plain: true } if work.fills[place].is_none() => {
                Some(column)
            }
            _ => None,
        };
        let places: Vec<(usize, ColumnPlace)> =
            (0..work.roles.len()).filter_map(|place| Some((place, equal(place)?))).collect();
        let mut groups: Vec<Vec<(usize, ColumnPlace)>> = Vec::new();
        for (place, column) in places {
            match groups.iter_mut().find(|group| group[0].1.table == column.table) {
                Some(group) => group.push((place, column)),
                None => groups.push(vec![(place, column)]),
            }
        }
        for group in groups {
            let mut columns: Vec<usize> = group.iter().map(|(_, column)| column.column).collect();
            columns.sort_unstable();
            columns.dedup();
            // A list of values for one column has no other column to go with.
            let is_list = columns.len() < group.len();
            let has_constant = group.iter().any(|(place, _)| self.constant(work.ran, *place).is_some());
            if columns.len() < 2 || is_list || has_constant {
                continue;
            }
            let of_group: Vec<usize> = group.iter().map(|(_, column)| column.column).collect();
            let sql = column::row(&self.place, self.table(group[0].1), &of_group)?;
            let first = group[0].0;
            work.fills[first] = Some(Fill::From(sql));
            for (number, (place, _)) in group.iter().enumerate().skip(1) {
                work.fills[*place] = Some(Fill::RowOf(first as u32 + 1, number as u32 + 1));
            }
        }
        Ok(())
    }

    /// Returns the fill of one parameter by itself.
    fn single(&self, work: &mut Work<'_>, place: usize) -> Result<Fill, String> {
        if let Some(constant) = self.constant(work.ran, place) {
            return Ok(constant);
        }
        let values: Vec<&str> =
            work.ran.samples.iter().filter_map(|sample| sample.values.get(place)?.as_deref()).collect();
        let numbers: Vec<f64> =
            values.iter().filter_map(|value| value.parse().ok()).filter(|number: &f64| number.is_finite()).collect();
        let has_numbers = !values.is_empty() && numbers.len() == values.len();
        match work.roles[place] {
            Role::Compared { column, how: Comparison::Equal | Comparison::Differs, is_plain } => {
                self.compared(work, (&values, &numbers), column, is_plain)
            }
            Role::Compared { column, how: Comparison::AtLeast | Comparison::AtMost, is_plain: true } => {
                self.bound_alone(work, place, column)
            }
            Role::Compared { column, how: Comparison::AnyOf, is_plain: true } => self.any_of(work, &values, column),
            Role::Stored(column) => self.stored(&values, &numbers, column),
            Role::Limit => Ok(fit_numbers(&numbers, None).unwrap_or_else(|| limit(work, place))),
            Role::Offset => Ok(fit_numbers(&numbers, None).unwrap_or(Fill::Number(0.0))),
            Role::Added => Ok(fit_numbers(&numbers, None).unwrap_or(Fill::Number(1.0))),
            Role::Shown | Role::Unknown | Role::Compared { .. } if has_numbers => {
                fit_numbers(&numbers, None).ok_or_else(|| unknown(place))
            }
            Role::Shown | Role::Unknown | Role::Compared { .. } => self.texts(&values).ok_or_else(|| unknown(place)),
        }
    }

    /// Returns a number that is always the same as a constant; a text too, if texts may be written.
    fn constant(&self, ran: &Ran, place: usize) -> Option<Fill> {
        let mut values = ran.samples.iter().filter_map(|sample| sample.values.get(place)?.as_deref());
        let first = values.next()?;
        let count = 1 + values.try_fold(0_usize, |count, value| (value == first).then_some(count + 1))?;
        if count < CONSTANT_LEAST.min(ran.calls as usize) {
            return None;
        }
        match first.parse::<f64>() {
            Ok(number) if number.is_finite() && !matches!(ran.literals[place], Literal::Text(_)) => {
                Some(Fill::Number(number))
            }
            _ => self.place.keeps_values.then(|| Fill::Text(first.to_owned())),
        }
    }

    /// Returns a fill of texts with their shares, if they may be written and are few.
    fn texts(&self, values: &[&str]) -> Option<Fill> {
        let mut counted: HashMap<&str, usize> = HashMap::new();
        values.iter().for_each(|value| *counted.entry(value).or_default() += 1);
        if counted.len() > TEXTS_MOST {
            return None;
        }
        let mut counts: Vec<(&str, usize)> = counted.into_iter().collect();
        counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let percent = |count: usize| (1e5 * count as f64 / values.len() as f64).round() / 1e3;
        let choices =
            counts.into_iter().map(|(value, count)| (Fill::Text(value.to_owned()), percent(count))).collect::<Vec<_>>();
        (self.place.keeps_values && !choices.is_empty()).then_some(Fill::Weighted(choices))
    }

    fn compared(
        &self,
        work: &mut Work<'_>,
        (values, numbers): (&[&str], &[f64]),
        column: ColumnPlace,
        is_plain: bool,
    ) -> Result<Fill, String> {
        let (table, own) = (self.table(column), &self.table(column).columns[column.column]);
        let is_number = matches!(own.holds, Holds::Whole | Holds::Fraction);
        if is_number && numbers.len() >= VALUES_LEAST && numbers.len() == values.len() {
            return fit_numbers(numbers, column::range_of(own))
                .ok_or_else(|| format!("{} could not be fitted", self.column_name(column)));
        }
        if own.holds == Holds::Text
            && let Some(texts) = self.texts(values)
        {
            return Ok(texts);
        }
        if !is_plain {
            let remedy = if own.holds == Holds::Text { "; with --values its own may be used" } else { "" };
            return Err(format!(
                "a value is compared with a function of {}, whose results are not known{remedy}",
                self.column_name(column)
            ));
        }
        let others = work.roles.iter().filter(|role| matches!(role, Role::Compared { .. })).count();
        let rows = work.rows_told.filter(|_| others == 1 && !work.roles.contains(&Role::Limit));
        column::found(&self.place, table, column.column, rows)
    }

    /// Returns an array of existing values: as long as the arrays in calls, or as the number of rows that calls found.
    fn any_of(&self, work: &mut Work<'_>, values: &[&str], column: ColumnPlace) -> Result<Fill, String> {
        let length = |array: &&str| 1 + array.matches(',').count();
        let mut lengths: Vec<usize> = values.iter().map(length).collect();
        lengths.sort_unstable();
        let told = work.rows_told.map(|rows| rows.round().clamp(1.0, ARRAY_MOST as f64) as usize);
        let length = lengths.get(lengths.len() / 2).copied().or(told).unwrap_or_else(|| {
            work.remarks.push(format!(
                "nothing tells how many values {} is compared with: it is a guess",
                self.column_name(column)
            ));
            LIMIT_UNKNOWN as usize
        });
        let element = column::found(&self.place, self.table(column), column.column, None)?;
        Ok(Fill::Array(length.min(ARRAY_MOST) as u32, Box::new(element)))
    }

    fn stored(&self, values: &[&str], numbers: &[f64], column: ColumnPlace) -> Result<Fill, String> {
        let (table, own) = (self.table(column), &self.table(column).columns[column.column]);
        let is_key = table.keys.iter().any(|key| key.last() == Some(&column.column));
        let is_number = matches!(own.holds, Holds::Whole | Holds::Fraction) && !is_key;
        if is_number && numbers.len() >= VALUES_LEAST && numbers.len() == values.len() {
            return fit_numbers(numbers, column::range_of(own))
                .ok_or_else(|| format!("{} could not be fitted", self.column_name(column)));
        }
        column::stored(&self.place, table, column.column)
    }

    /// Returns the name of a statement: its verb, its table, and the columns of its conditions.
    fn name_of(&self, verb: &str, scope: &Scope, roles: &[Role]) -> String {
        let plain = |text: &str| {
            text.chars().filter(|letter| letter.is_ascii_alphanumeric() || "_-".contains(*letter)).collect::<String>()
        };
        let tables = scope.tables();
        let table =
            tables.first().map_or(String::new(), |table| format!(" {}", plain(&self.catalogue.tables[*table].name)));
        let by = roles.iter().find_map(|role| match role {
            Role::Compared { column, how, .. } => {
                let any = if *how == Comparison::AnyOf { "any " } else { "" };
                Some(format!(" by {any}{}", plain(&self.table(*column).columns[column.column].name)))
            }
            _ => None,
        });
        format!("{verb}{table}{}", by.unwrap_or_default())
    }

    /// Writes numbers that are always the same, and are not values of columns, into the text, because databases plan with them.
    fn inline_constants(&self, ran: &Ran, roles: &[Role], fitted: &mut Fitted) {
        let is_constant = |place: usize| {
            let is_plain =
                matches!(roles[place], Role::Limit | Role::Offset | Role::Shown | Role::Unknown | Role::Added);
            let is_referred_to = fitted.fills.iter().any(
                |fill| matches!(fill, Fill::Same(n) | Fill::Plus(n, _) | Fill::RowOf(n, _) if *n as usize == place + 1),
            );
            let is_literal = matches!(ran.literals[place], Literal::Number(_) | Literal::Text(_));
            (is_plain && is_literal && !is_referred_to).then(|| match &fitted.fills[place] {
                Fill::Number(number) => Some(number.to_string()),
                Fill::Text(text) => Some((self.place.writer.literal)(text)),
                _ => None,
            })?
        };
        let constants: Vec<Option<String>> = (0..roles.len()).map(is_constant).collect();
        // Removing a parameter shifts the places of later ones, so this is done only if no fill refers to a place.
        let refers = fitted.fills.iter().any(|fill| matches!(fill, Fill::Same(_) | Fill::Plus(..) | Fill::RowOf(..)));
        if refers || fitted.sql.contains("??") || constants.iter().all(Option::is_none) {
            return;
        }
        let tokens = tokens_of(&fitted.sql, Grammar { has_question_marks: true, ..self.grammar });
        let marks = tokens.iter().filter(|token| matches!(token.kind, Kind::Parameter(_)));
        let places: Vec<usize> =
            marks.map(|token| token.text.as_ptr() as usize - fitted.sql.as_ptr() as usize).collect();
        let mut sql = fitted.sql.clone();
        for (place, constant) in places.iter().zip(&constants).rev() {
            if let Some(constant) = constant {
                sql.replace_range(*place..=*place, constant);
            }
        }
        let mut places = constants.iter();
        fitted.fills.retain(|_| places.next().is_some_and(Option::is_none));
        fitted.sql = sql;
    }
}

/// Returns the fill of a limit: as many rows as calls returned.
fn limit(work: &mut Work<'_>, place: usize) -> Fill {
    let rows = work.rows_told.map(|rows| rows.ceil()).filter(|rows| *rows >= 1.0);
    match rows {
        Some(_) => work.widths.push((place, Width::Limit)),
        None => work.remarks.push("nothing tells its LIMIT: it is a guess".to_owned()),
    }
    Fill::Number(rows.unwrap_or(LIMIT_UNKNOWN))
}

/// A placeholder for a value in the words around it.
const HERE: &str = "{here}";

pub fn unknown(place: usize) -> String {
    format!(
        "value number {}, in \"{HERE}\", is not understood, and what it was is not known; a log would tell it",
        place + 1
    )
}

/// Returns the words around a value.
fn around(tokens: &[Token<'_>], number: usize) -> String {
    let marks = tokens.iter().enumerate().filter(|(_, token)| matches!(token.kind, Kind::Parameter(_)));
    let Some((place, _)) = marks.into_iter().nth(number) else { return String::new() };
    let near = &tokens[place.saturating_sub(3)..(place + 3).min(tokens.len())];
    near.iter().map(|token| token.text).collect::<Vec<_>>().join(" ")
}

pub fn is_time(holds: Holds) -> bool {
    matches!(holds, Holds::Time { .. } | Holds::Date)
}

/// Returns whether an answer has fewer rows than are found, because the statement counts or sums them.
fn is_summed(tokens: &[Token<'_>]) -> bool {
    const SUMS: [&str; 8] = ["count", "sum", "avg", "min", "max", "array_agg", "string_agg", "group_concat"];
    let is_call = |pair: &[Token<'_>]| {
        pair[1].is_mark("(") && pair[0].name().is_some_and(|name| SUMS.contains(&name.to_lowercase().as_str()))
    };
    tokens.windows(2).any(is_call)
        || tokens.iter().any(|token| token.is("group") || token.is("distinct") || token.is("union"))
}
