//! Determines the role of each parameter of a statement: the column with which it is compared, or in which it is stored.
//!
//! Main function: [`roles_of`]. Invariant: a role is assigned only if the words around the parameter leave no other.

use super::keyword::is_keyword;
use super::scope::{ColumnPlace, Known, Scope};
use super::seat::{Clause, Seat, Seats};
use super::token::{Kind, Token};

/// The most tokens of a type, or of the arguments of a function.
const TYPE_TOKENS_MOST: usize = 50;

/// How a value is compared with a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// The column equals the value, alone or in a list.
    Equal,
    /// The value is an array, and the column equals one of its elements.
    AnyOf,
    /// The column is greater than or equal to the value.
    AtLeast,
    /// The column is less than or equal to the value.
    AtMost,
    /// The column differs from the value.
    Differs,
    /// The value is a pattern.
    Like,
}

/// The role of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// The parameter is compared with a column, either plain or within a function (`lower(email) = ?`).
    Compared {
        /// The column.
        column: ColumnPlace,
        /// The kind of comparison.
        how: Comparison,
        /// Whether the column itself is compared, not a function of it.
        is_plain: bool,
    },
    /// The parameter becomes the value of a column.
    Stored(ColumnPlace),
    /// The parameter is added to, or subtracted from, a number.
    Added,
    /// The maximum number of rows of the answer.
    Limit,
    /// The number of rows that the answer skips.
    Offset,
    /// The parameter appears in the answer.
    Shown,
    /// The role cannot be determined.
    Unknown,
}

/// Returns the roles of all parameters, in their order.
pub fn roles_of(tokens: &[Token<'_>], scope: &Scope, known: &[Known]) -> Vec<Role> {
    let places = tokens.iter().enumerate().filter(|(_, token)| matches!(token.kind, Kind::Parameter(_)));
    let seats = Seats::of(tokens);
    let mut statement = Statement { tokens, seats: &seats, scope, known, insert: &[] };
    let insert = statement.insert_columns();
    statement.insert = &insert;
    places.map(|(place, _)| statement.role(place).unwrap_or(Role::Unknown)).collect()
}

#[derive(Clone, Copy)]
struct Statement<'s, 'a> {
    tokens: &'s [Token<'a>],
    seats: &'s Seats,
    scope: &'s Scope,
    known: &'s [Known],
    /// The columns that an INSERT stores, in their order.
    insert: &'s [Option<ColumnPlace>],
}

impl Statement<'_, '_> {
    fn role(self, place: usize) -> Option<Role> {
        let (first, last) = self.unwrapped(place);
        let before = first.checked_sub(1).map(|before| &self.tokens[before])?;
        let behind = self.tokens.get(last + 1);
        let clause = self.seats.at(first).clause;
        if before.is("limit") {
            let is_offset = behind.is_some_and(|token| token.is_mark(","));
            return Some(if is_offset { Role::Offset } else { Role::Limit });
        }
        if before.is("offset") {
            return Some(Role::Offset);
        }
        if clause == Clause::Limit {
            return Some(Role::Limit);
        }
        if clause == Clause::Values {
            return self.stored_in_list(first);
        }
        if before.is_comparison() {
            let column = self.column_before(first - 1);
            if clause == Clause::Set && before.text == "=" {
                let (column, _) = column?;
                return Some(Role::Stored(column));
            }
            let (column, is_plain) = column?;
            return Some(Role::Compared { column, how: comparison(before.text, false), is_plain });
        }
        if let Some(mark) = behind.filter(|token| token.is_comparison()) {
            let (column, is_plain) = self.column_behind(last + 2)?;
            return Some(Role::Compared { column, how: comparison(mark.text, true), is_plain });
        }
        if let Some(role) = self.between(first) {
            return Some(role);
        }
        if before.is("like") || before.is("ilike") {
            let at = first - 1 - usize::from(first >= 2 && self.tokens[first - 2].is("not"));
            let (column, is_plain) = self.column_before(at)?;
            return Some(Role::Compared { column, how: Comparison::Like, is_plain });
        }
        if let Some(role) = self.in_list(first) {
            return Some(role);
        }
        let is_sum = |token: &Token<'_>| ["+", "-"].iter().any(|mark| token.is_mark(mark));
        if is_sum(before) && clause == Clause::Set {
            return Some(Role::Added);
        }
        (clause == Clause::Select).then_some(Role::Shown)
    }

    /// Returns the range of tokens of the parameter with the brackets and casts around it that do not change it: `(?)::date`, `CAST(? AS date)`.
    fn unwrapped(self, place: usize) -> (usize, usize) {
        let (mut first, mut last) = (place, place);
        loop {
            let is_cast = self.tokens.get(last + 1).is_some_and(|token| token.is_mark("::"));
            if is_cast && self.tokens.get(last + 2).is_some() {
                last += 2;
                continue;
            }
            let is_open = |at: usize, mark: &str| self.tokens.get(at).is_some_and(|token| token.is_mark(mark));
            let opens = first >= 1 && is_open(first - 1, "(");
            if opens
                && first >= 2
                && self.tokens[first - 2].is("cast")
                && self.tokens.get(last + 1).is_some_and(|token| token.is("as"))
            {
                let depth = self.tokens[first - 1].depth;
                let near = self.tokens[last..].iter().take(TYPE_TOKENS_MOST);
                let close = near.into_iter().position(|token| token.is_mark(")") && token.depth == depth);
                let Some(close) = close else { return (first, last) };
                (first, last) = (first - 2, last + close);
                continue;
            }
            let is_list = first >= 2 && {
                let word = &self.tokens[first - 2];
                word.kind != Kind::Mark && !["and", "or", "where", "not", "on"].iter().any(|plain| word.is(plain))
                    || word.is_mark(",")
                    || word.is_mark(")")
            };
            if opens && is_open(last + 1, ")") && !is_list {
                (first, last) = (first - 1, last + 1);
                continue;
            }
            return (first, last);
        }
    }

    /// Recognises `column BETWEEN ? AND ?`.
    fn between(self, place: usize) -> Option<Role> {
        let before = &self.tokens[place - 1];
        let (word, how) = match () {
            () if before.is("between") => (place - 1, Comparison::AtLeast),
            () if before.is("and") => (self.seats.at(place - 1).condition?, Comparison::AtMost),
            () => return None,
        };
        if !self.tokens[word].is("between") {
            return None;
        }
        let is_not = word >= 1 && self.tokens[word - 1].is("not");
        let (column, is_plain) = self.column_before(word - usize::from(is_not))?;
        let how = if is_not { Comparison::Differs } else { how };
        Some(Role::Compared { column, how, is_plain })
    }

    /// Recognises `column IN (?, ?)`, `(a, b) IN ((?, ?), (?, ?))` and `(a, b) = (?, ?)`.
    fn in_list(self, place: usize) -> Option<Role> {
        let Seat { open, commas: number, .. } = self.seats.at(place);
        let open = open?;
        let before = open.checked_sub(1).map(|before| &self.tokens[before])?;
        let is_any = ["any", "some"].iter().any(|word| before.is(word));
        if is_any && open >= 2 && self.tokens[open - 2].is_mark("=") {
            let (column, is_plain) = self.column_before(open - 2)?;
            return Some(Role::Compared { column, how: Comparison::AnyOf, is_plain });
        }
        if before.is("in") {
            let (at, how) = self.behind_not(open - 1);
            let (column, is_plain) = self.column_before(at)?;
            return Some(Role::Compared { column, how, is_plain });
        }
        let (word, how) = if before.text == "=" && before.kind == Kind::Mark {
            (open - 1, Comparison::Equal)
        } else {
            let outer = self.seats.at(open).open?;
            let word = outer.checked_sub(1).filter(|word| self.tokens[*word].is("in"))?;
            self.behind_not(word)
        };
        let close = word.checked_sub(1).filter(|close| self.tokens[*close].is_mark(")"))?;
        let start = self.seats.at(close).opening?;
        let ends = (start + 1..=close).filter(|at| {
            let token = &self.tokens[*at];
            (token.is_mark(",") && token.depth == self.tokens[close].depth + 1) || *at == close
        });
        let (column, is_plain) = self.column_before(ends.into_iter().nth(number)?)?;
        Some(Role::Compared { column, how, is_plain })
    }

    /// Returns the place of a word, or of the NOT before it, and the comparison that results.
    fn behind_not(self, word: usize) -> (usize, Comparison) {
        let is_not = word >= 1 && self.tokens[word - 1].is("not");
        if is_not { (word - 1, Comparison::Differs) } else { (word, Comparison::Equal) }
    }

    /// Recognises `INSERT INTO t (a, b) VALUES (?, ?)`.
    fn stored_in_list(self, place: usize) -> Option<Role> {
        let Seat { open, commas, .. } = self.seats.at(place);
        let open = open?;
        let is_alone = self.tokens[place - 1].is_mark(",") || place - 1 == open;
        let is_row = open.checked_sub(1).map(|before| &self.tokens[before]);
        is_row.filter(|before| before.is("values") || before.is("value") || before.is("row") || before.is_mark(","))?;
        let column = self.insert.get(commas).copied().flatten()?;
        is_alone.then_some(Role::Stored(column))
    }

    /// Returns the columns that an INSERT names, or all columns of its table.
    fn insert_columns(self) -> Vec<Option<ColumnPlace>> {
        let place_of = |word: &str| self.tokens.iter().position(|token| token.is(word));
        let Some((table, into)) = self.scope.tables().first().copied().zip(place_of("into")) else { return Vec::new() };
        let Some(values) = place_of("values").or_else(|| place_of("value")).filter(|values| *values > into) else {
            return Vec::new();
        };
        let columns = &self.known[table].columns;
        let Some(list) = (into..values).find(|at| self.tokens[*at].is_mark("(")) else {
            return (0..columns.len()).map(|column| Some(ColumnPlace { table, column })).collect();
        };
        let names = self.tokens[list + 1..values].iter().filter_map(Token::name);
        let column = |name: String| columns.iter().position(|column| column.eq_ignore_ascii_case(&name));
        names.map(|name| column(name).map(|column| ColumnPlace { table, column })).collect()
    }

    /// Returns the column that ends before a place, and whether it is the column itself: `a`, `t.a`, `lower(a)`.
    fn column_before(self, place: usize) -> Option<(ColumnPlace, bool)> {
        let last = place.checked_sub(1)?;
        if self.tokens[last].is_mark(")") {
            let open = self.seats.at(last).opening?;
            let mut names = (open + 1..last).filter_map(|at| self.column_at(at));
            let found = names.next()?;
            return names.all(|other| other == found).then_some((found, false));
        }
        // A cast changes the type, not the column: `a::date`.
        if last >= 2 && self.tokens[last - 1].is_mark("::") {
            return self.column_before(last - 1).map(|(column, _)| (column, false));
        }
        let column = self.column_at(last)?;
        let first = last - if last >= 2 && self.tokens[last - 1].is_mark(".") { 2 } else { 0 };
        let is_part = first.checked_sub(1).is_some_and(|before| {
            let token = &self.tokens[before];
            ["+", "-", "*", "/", "||", "%"].iter().any(|mark| token.is_mark(mark))
        });
        Some((column, !is_part))
    }

    fn column_behind(self, place: usize) -> Option<(ColumnPlace, bool)> {
        let is_dotted = self.tokens.get(place + 1).is_some_and(|token| token.is_mark("."));
        let last = if is_dotted { place + 2 } else { place };
        let is_call = self.tokens.get(last + 1).is_some_and(|token| token.is_mark("("));
        if is_call {
            let depth = self.tokens[last + 1].depth;
            let close = (last + 2..self.tokens.len())
                .take(TYPE_TOKENS_MOST)
                .find(|at| self.tokens[*at].is_mark(")") && self.tokens[*at].depth == depth)?;
            return self.column_before(close + 1);
        }
        self.column_at(last).map(|column| (column, true))
    }

    /// Returns the column whose name stands at a place, with or without its table in front.
    fn column_at(self, place: usize) -> Option<ColumnPlace> {
        let token = self.tokens.get(place)?;
        if token.kind == Kind::Word && is_keyword(token.text) {
            return None;
        }
        let name = token.name()?;
        let is_dotted = place >= 2 && self.tokens[place - 1].is_mark(".");
        let qualifier = if is_dotted { self.tokens[place - 2].name() } else { None };
        self.scope.column(qualifier.as_deref(), &name, token.depth, self.known)
    }
}

/// Returns the comparison that an operator expresses; reversed if the value stands before the operator.
fn comparison(mark: &str, is_turned: bool) -> Comparison {
    match (mark, is_turned) {
        ("=" | "==" | "<=>", _) => Comparison::Equal,
        (">" | ">=", false) | ("<" | "<=", true) => Comparison::AtLeast,
        ("<" | "<=", false) | (">" | ">=", true) => Comparison::AtMost,
        _ => Comparison::Differs,
    }
}

#[cfg(test)]
mod tests {
    use super::super::token::{Grammar, tokens_of};
    use super::*;
    use proptest::prelude::*;

    fn known() -> Vec<Known> {
        let table = |name: &str, columns: &[&str]| Known {
            schema: "public".to_owned(),
            name: name.to_owned(),
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        };
        vec![table("orders", &["id", "customer_id", "status", "made"]), table("customers", &["id", "email", "name"])]
    }

    /// Returns the roles in short: `orders.id=` for a comparison, `orders.id<-` for a stored value.
    fn roles(sql: &str) -> Vec<String> {
        let known = known();
        let tokens = tokens_of(sql, Grammar::MYSQL);
        let scope = Scope::of(&tokens, &known);
        let name =
            |place: &ColumnPlace| format!("{}.{}", known[place.table].name, known[place.table].columns[place.column]);
        let short = |role: &Role| match role {
            Role::Compared { column, how, is_plain } => {
                let mark = match how {
                    Comparison::Equal => "=",
                    Comparison::AnyOf => "in",
                    Comparison::AtLeast => ">",
                    Comparison::AtMost => "<",
                    Comparison::Differs => "!",
                    Comparison::Like => "~",
                };
                format!("{}{}{mark}", name(column), if *is_plain { "" } else { "()" })
            }
            Role::Stored(column) => format!("{}<-", name(column)),
            other => format!("{other:?}"),
        };
        roles_of(&tokens, &scope, &known).iter().map(short).collect()
    }

    #[test]
    fn parameters_are_compared_with_the_column_beside_them() {
        assert_eq!(roles("SELECT * FROM orders WHERE id = ?"), ["orders.id="]);
        assert_eq!(
            roles(
                "SELECT * FROM orders o JOIN customers c ON c.id = o.customer_id WHERE c.email = ? AND o.status <> ?"
            ),
            ["customers.email=", "orders.status!"]
        );
        assert_eq!(roles("SELECT * FROM orders WHERE ? < made AND made < ?"), ["orders.made>", "orders.made<"]);
        assert_eq!(
            roles("SELECT * FROM orders WHERE made BETWEEN ? AND ? AND id NOT BETWEEN ? AND ?"),
            ["orders.made>", "orders.made<", "orders.id!", "orders.id!"]
        );
        assert_eq!(
            roles("SELECT * FROM orders WHERE status = ? AND customer_id IN (?, ?) OR id NOT IN (?)"),
            ["orders.status=", "orders.customer_id=", "orders.customer_id=", "orders.id!"]
        );
        assert_eq!(
            roles("SELECT * FROM customers WHERE lower(email) = ? AND name LIKE ?"),
            ["customers.email()=", "customers.name~"]
        );
        assert_eq!(
            roles("SELECT * FROM orders WHERE (customer_id, status) = (?, ?)"),
            ["orders.customer_id=", "orders.status="]
        );
        assert_eq!(
            roles("SELECT * FROM orders WHERE (id, status) IN ((?, ?), (?, ?))"),
            ["orders.id=", "orders.status=", "orders.id=", "orders.status="]
        );
        assert_eq!(
            roles("SELECT * FROM orders WHERE made >= CAST(? AS date) AND (id = (?))"),
            ["orders.made>", "orders.id="]
        );
        assert_eq!(
            roles("SELECT * FROM orders WHERE customer_id = (SELECT id FROM customers WHERE email = ?) AND status = ?"),
            ["customers.email=", "orders.status="]
        );
        assert_eq!(
            roles("SELECT count(*) FROM orders WHERE id = ? GROUP BY status HAVING count(*) > ?"),
            ["orders.id=", "Unknown"]
        );
    }

    #[test]
    fn arrays_are_told_apart_from_values() {
        assert_eq!(roles("SELECT * FROM orders WHERE id = ANY(?) AND status = ?"), ["orders.idin", "orders.status="]);
        assert_eq!(roles("SELECT * FROM orders o WHERE o.id = ANY (?::bigint[])"), ["orders.idin"]);
        assert_eq!(roles("SELECT * FROM orders WHERE id <> ALL(?)"), ["Unknown"]);
    }

    #[test]
    fn what_is_stored_is_told_by_its_place() {
        assert_eq!(
            roles("INSERT INTO orders (status, id) VALUES (?, ?), (?, ?)"),
            ["orders.status<-", "orders.id<-", "orders.status<-", "orders.id<-"]
        );
        assert_eq!(
            roles("INSERT INTO customers VALUES (?, lower(?), ?)"),
            ["customers.id<-", "Unknown", "customers.name<-"]
        );
        assert_eq!(
            roles("UPDATE orders SET status = ?, made = ? WHERE id = ?"),
            ["orders.status<-", "orders.made<-", "orders.id="]
        );
        assert_eq!(roles("UPDATE orders SET customer_id = customer_id + ? WHERE id = ?"), ["Added", "orders.id="]);
        assert_eq!(
            roles("INSERT INTO orders (id) VALUES (?) ON DUPLICATE KEY UPDATE status = ?"),
            ["orders.id<-", "orders.status<-"]
        );
    }

    #[test]
    fn limits_and_answers_are_told_and_nothing_is_guessed() {
        assert_eq!(roles("SELECT ?, id FROM orders ORDER BY made DESC LIMIT ? OFFSET ?"), ["Shown", "Limit", "Offset"]);
        assert_eq!(roles("SELECT id FROM orders LIMIT ?, ?"), ["Offset", "Limit"]);
        assert_eq!(roles("SELECT id FROM orders WHERE x = ? AND f(id, ?) = 1"), ["Unknown", "Unknown"]);
        assert_eq!(roles("?"), ["Unknown"]);
    }

    proptest! {
        #[test]
        fn no_statement_panics(words in proptest::collection::vec("SELECT|FROM|WHERE|IN|NOT|BETWEEN|AND|orders|id|\\(|\\)|,|\\?|=|\\.|::|CAST|AS|VALUES|INTO|SET|UPDATE|LIMIT|LIKE", 0..30)) {
            let sql = words.join(" ");
            let found = roles(&sql);
            prop_assert_eq!(found.len(), sql.matches('?').count());
        }
    }
}
