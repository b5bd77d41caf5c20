//! Where each word of a statement stands: in which bracket, behind how many commas, in which clause.
//!
//! Main type: [`Seats`]. Invariant: all are found in one pass, so that looking one up takes no time.

use super::token::{Kind, Token};

/// A clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clause {
    /// What is answered.
    Select,
    /// Conditions.
    Where,
    /// What is assigned.
    Set,
    /// Rows that are stored.
    Values,
    /// How many rows.
    Limit,
    /// Anything else.
    #[default]
    Other,
}

/// Where a word stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seat {
    /// The place of the bracket that is open around it.
    pub open: Option<usize>,
    /// Commas of that bracket's own before it.
    pub commas: usize,
    /// The clause.
    pub clause: Clause,
    /// The place of the last BETWEEN, AND, OR or WHERE before it at its depth.
    pub condition: Option<usize>,
    /// Of a bracket that closes: the place of the one that it closes.
    pub opening: Option<usize>,
}

/// Where all words stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seats(Vec<Seat>);

impl Seats {
    /// Those of a statement's words.
    pub fn of(tokens: &[Token<'_>]) -> Self {
        let mut levels = vec![Seat::default()];
        let mut seats = Vec::with_capacity(tokens.len());
        for (place, token) in tokens.iter().enumerate() {
            let mut closed = None;
            if token.is_mark(")") && levels.len() > 1 {
                closed = levels.pop().and_then(|level| level.open);
            }
            let own = levels.last().copied().unwrap_or_default();
            seats.push(Seat { opening: closed, ..own });
            if token.is_mark("(") {
                levels.push(Seat { open: Some(place), commas: 0, clause: own.clause, condition: None, opening: None });
            }
            if let Some(level) = levels.last_mut().filter(|_| !token.is_mark("(")) {
                level.commas += usize::from(token.is_mark(","));
                if ["between", "and", "or", "where"].iter().any(|word| token.is(word)) {
                    level.condition = Some(place);
                }
                let before = place.checked_sub(1).map(|before| &tokens[before]);
                level.clause = clause_of(token, before).unwrap_or(level.clause);
            }
        }
        Seats(seats)
    }

    /// Where the word at a place stands.
    pub fn at(&self, place: usize) -> Seat {
        self.0.get(place).copied().unwrap_or_default()
    }
}

/// The clause that a word begins.
fn clause_of(token: &Token<'_>, before: Option<&Token<'_>>) -> Option<Clause> {
    if token.kind != Kind::Word {
        return None;
    }
    let is_key_update = token.is("update") && before.is_some_and(|word| word.is("key"));
    Some(match token.text.to_ascii_lowercase().as_str() {
        "select" | "returning" => Clause::Select,
        "where" | "having" | "on" | "when" => Clause::Where,
        "set" => Clause::Set,
        "values" | "value" => Clause::Values,
        "limit" | "fetch" => Clause::Limit,
        "from" | "by" | "join" | "using" => Clause::Other,
        _ if is_key_update => Clause::Set,
        _ => return None,
    })
}
