//! Records the position of each word of a statement: its bracket, the number of commas before it, and its clause.
//!
//! Main type: [`Seats`]. Invariant: all positions are found in one pass, so that a lookup takes constant time.

use super::token::{Kind, Token};

/// A clause of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clause {
    /// The list of expressions that are returned.
    Select,
    /// Conditions.
    Where,
    /// Assignments.
    Set,
    /// Rows that are stored.
    Values,
    /// The limit on the number of rows.
    Limit,
    /// Any other clause.
    #[default]
    Other,
}

/// The position of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seat {
    /// The place of the opening bracket around the word.
    pub open: Option<usize>,
    /// The number of commas before the word in the same bracket.
    pub commas: usize,
    /// The clause.
    pub clause: Clause,
    /// The place of the last BETWEEN, AND, OR or WHERE before the word at its depth.
    pub condition: Option<usize>,
    /// For a closing bracket: the place of its opening bracket.
    pub opening: Option<usize>,
}

/// The positions of all words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seats(Vec<Seat>);

impl Seats {
    /// Finds the positions of a statement's words.
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

    /// Returns the position of the word at a place.
    pub fn at(&self, place: usize) -> Seat {
        self.0.get(place).copied().unwrap_or_default()
    }
}

/// Returns the clause that a word begins.
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
