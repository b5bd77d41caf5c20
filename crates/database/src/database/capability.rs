//! What a database can do, so that a study which asks for more is refused before it begins. Main type: [`Capabilities`].
//!
//! Invariant: what a study needs is found from its program and its settings, and what a database has stands in its entry of the registry alone.

use crate::statement::{Program, Statement};

/// Something that not every database can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// To read rows of several tables together.
    Joins,
    /// To store all of several statements or nothing.
    Transactions,
    /// To refuse a second row with the same key.
    UniqueKeys,
    /// To find rows by columns that are no key of theirs.
    Indexes,
    /// To change rows.
    Updates,
    /// To remove rows.
    Deletes,
    /// To change tables that are in use.
    SchemaChanges,
    /// To tell how it executes a query.
    Plans,
    /// To join tables in the order in which they are named.
    StraightJoin,
    /// To use a cache of answers, or not to.
    QueryCache,
    /// To read statements as text with their values in it, rather than prepared.
    Text,
    /// To take all statements of a transaction in one round trip, and to store nothing when one of them fails.
    Pipeline,
    /// To tell a connection what others notify.
    Notifications,
}

impl Capability {
    /// What is missing, behind "has no": `notifications`.
    pub fn name(self) -> &'static str {
        match self {
            Capability::Joins => "joins",
            Capability::Transactions => "transactions of several statements",
            Capability::UniqueKeys => "unique keys",
            Capability::Indexes => "indexes",
            Capability::Updates => "updates",
            Capability::Deletes => "deletes",
            Capability::SchemaChanges => "changes of a table in use",
            Capability::Plans => "plans of queries",
            Capability::StraightJoin => "straight joins",
            Capability::QueryCache => "query cache",
            Capability::Text => "statements as text",
            Capability::Pipeline => "pipelines",
            Capability::Notifications => "notifications",
        }
    }
}

/// What a database can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities(u32);

impl Capabilities {
    /// Nothing but to take records in and to find them by their keys.
    pub const NONE: Capabilities = Capabilities(0);
    /// What every database that speaks SQL can do which is in the registry now.
    pub const SQL: Capabilities = Capabilities::NONE
        .with(Capability::Joins)
        .with(Capability::Transactions)
        .with(Capability::UniqueKeys)
        .with(Capability::Indexes)
        .with(Capability::Updates)
        .with(Capability::Deletes)
        .with(Capability::SchemaChanges)
        .with(Capability::Plans);

    /// The same and one more.
    pub const fn with(self, capability: Capability) -> Self {
        Capabilities(self.0 | 1 << capability as u32)
    }

    /// The same without one.
    pub const fn without(self, capability: Capability) -> Self {
        Capabilities(self.0 & !(1 << capability as u32))
    }

    /// Whether one is among them.
    pub const fn has(self, capability: Capability) -> bool {
        self.0 & 1 << capability as u32 != 0
    }
}

/// What the tables and statements of a program need.
pub fn needs_of(program: &Program) -> Vec<Capability> {
    let of_statement = |statement: &Statement| match statement {
        Statement::Select(select) if !select.joins.is_empty() => Some(Capability::Joins),
        Statement::Update { .. }
        | Statement::UpdateDocument { .. }
        | Statement::UpdateCases { .. }
        | Statement::ReduceDocument { .. } => Some(Capability::Updates),
        Statement::Delete { .. } => Some(Capability::Deletes),
        _ => None,
    };
    let has_keys = program.tables.iter().any(|table| !table.primary_key.is_empty());
    let has_indexes = program.tables.iter().any(|table| !table.indexes.is_empty());
    let of_tables = [(has_keys, Capability::UniqueKeys), (has_indexes, Capability::Indexes)];
    let of_tables = of_tables.into_iter().filter_map(|(has, capability)| has.then_some(capability));
    let mut needs = Vec::new();
    for need in program.statements.iter().filter_map(of_statement).chain(of_tables) {
        if !needs.contains(&need) {
            needs.push(need);
        }
    }
    needs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_added_and_taken_away_one_by_one() {
        let some = Capabilities::NONE.with(Capability::Joins).with(Capability::Notifications);
        assert!(some.has(Capability::Joins) && some.has(Capability::Notifications) && !some.has(Capability::Plans));
        assert_eq!(some.without(Capability::Joins).without(Capability::Notifications), Capabilities::NONE);
        assert!(Capabilities::SQL.has(Capability::Deletes) && !Capabilities::SQL.has(Capability::Pipeline));
    }
}
