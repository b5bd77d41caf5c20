//! Capabilities of databases, so that a study which needs more is refused before it begins. Main type: [`Capabilities`].
//!
//! Invariant: a study's needs follow from its program and its settings; a database's capabilities are stated only in its entry of the registry.

use super::{Entry, REGISTRY, simulated};
use crate::record::ColumnKind;
use crate::statement::{Comparison, Condition, Program, Select, Statement, Table};

/// An ability that not every database has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Takes statements in SQL.
    Sql,
    /// Reads rows of several tables together.
    Joins,
    /// Undoes all of several statements when one of them is refused, and isolates what one of them has read from others.
    Transactions,
    /// Stores all of several rows or none.
    Batches,
    /// Takes several rows in one request, of which those in front of one that is refused may stay; [`Capability::Batches`] include it.
    BrokenBatches,
    /// Refuses a second row with the same values in columns beside the key.
    UniqueKeys,
    /// Finds rows by columns that are not part of their key.
    Indexes,
    /// Finds rows by a part of their key or from a key on, in its order.
    Ranges,
    /// Numbers the rows of a table by itself, and reads those behind a number or the latest ones.
    NumberedRows,
    /// Reads and changes members of documents, and records that consist of several rows.
    Documents,
    /// Changes rows.
    Updates,
    /// Removes rows.
    Deletes,
    /// Changes tables that are in use.
    SchemaChanges,
    /// Shows how it executes a query.
    Plans,
    /// Joins tables in the order in which they are named.
    StraightJoin,
    /// Uses or bypasses a cache of answers on request.
    QueryCache,
    /// Takes statements as text with their values in it, rather than prepared.
    Text,
    /// Takes all statements of a transaction in one round trip, and stores nothing when one of them fails.
    Pipeline,
    /// Passes notifications from other sessions to a connection.
    Notifications,
    /// Has transactions that go on after a statement that was refused.
    DryRuns,
    /// Is opened by several processes at once.
    Processes,
    /// Tells of a write whether its row was there: a key keeps a second row out, or shows that there was one, and a change of a missing row is noticed.
    Counts,
    /// Computes figures over rows, and groups and orders rows by any column.
    Figures,
    /// Stores every whole number of a type in a column that may be null. Where it does not, the least one means null, and is refused.
    LeastNumbers,
    /// Keeps a table in partitions by time, which are made and dropped while it is in use.
    Partitions,
    /// Stores texts and bytes, and every number of a type as it is. Where it does not, a number that would come back as another one is refused.
    Values,
    /// Shows every reader at once what it has acknowledged. Where it does not, it does so when rows are counted.
    AtOnce,
}

impl Capability {
    /// Returns the name of the missing capability, as used after "has no": `notifications`.
    pub fn name(self) -> &'static str {
        match self {
            Capability::Sql => "SQL",
            Capability::Joins => "joins",
            Capability::Transactions => "transactions of several statements",
            Capability::Batches => "batches that are stored whole or not at all",
            Capability::BrokenBatches => "batches",
            Capability::UniqueKeys => "unique columns beside the key",
            Capability::Indexes => "indexes beside the key",
            Capability::Ranges => "ranges of keys",
            Capability::NumberedRows => "rows that it numbers itself",
            Capability::Documents => "members of documents",
            Capability::Updates => "updates",
            Capability::Deletes => "deletes",
            Capability::SchemaChanges => "changes of a table in use",
            Capability::Plans => "plans of queries",
            Capability::StraightJoin => "straight joins",
            Capability::QueryCache => "query cache",
            Capability::Text => "statements as text",
            Capability::Pipeline => "pipelines",
            Capability::Notifications => "notifications",
            Capability::DryRuns => "transactions that go on after a statement that was refused",
            Capability::Processes => "access for several processes at once",
            Capability::Figures => "figures over rows, such as means",
            Capability::Counts => "count of the rows that a write finds",
            Capability::Partitions => "partitions by time",
            Capability::LeastNumbers => "least number of each type beside null",
            Capability::Values => "texts and bytes",
            Capability::AtOnce => "rows that are seen as soon as they are acknowledged",
        }
    }
}

/// The set of a database's capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities(u32);

impl Capabilities {
    /// No capability beyond taking in records and finding them by their keys.
    pub const NONE: Capabilities = Capabilities(0);
    /// The capabilities that databases with SQL usually have.
    pub const SQL: Capabilities = Capabilities::NONE
        .with(Capability::Sql)
        .with(Capability::Joins)
        .with(Capability::Transactions)
        .with(Capability::Batches)
        .with(Capability::UniqueKeys)
        .with(Capability::Indexes)
        .with(Capability::Ranges)
        .with(Capability::NumberedRows)
        .with(Capability::Documents)
        .with(Capability::Updates)
        .with(Capability::Deletes)
        .with(Capability::SchemaChanges)
        .with(Capability::Plans)
        .with(Capability::DryRuns)
        .with(Capability::Processes)
        .with(Capability::Counts)
        .with(Capability::Figures)
        .with(Capability::LeastNumbers)
        .with(Capability::Values)
        .with(Capability::AtOnce);

    /// Returns the set with one capability added.
    pub const fn with(self, capability: Capability) -> Self {
        Capabilities(self.0 | 1 << capability as u32)
    }

    /// Returns the set without one capability.
    pub const fn without(self, capability: Capability) -> Self {
        Capabilities(self.0 & !(1 << capability as u32))
    }

    /// Returns whether the set contains a capability.
    pub const fn has(self, capability: Capability) -> bool {
        let whole = matches!(capability, Capability::BrokenBatches) && self.has(Capability::Batches);
        whole || self.0 & 1 << capability as u32 != 0
    }
}

/// Returns the capabilities that the tables and statements of a program need.
pub fn needs_of(program: &Program) -> Vec<Capability> {
    let mut needs = Vec::new();
    let mut need = |capability: Capability| {
        if !needs.contains(&capability) {
            needs.push(capability);
        }
    };
    for statement in &program.statements {
        of_statement(statement, &program.tables, &mut need);
    }
    for table in &program.tables {
        let is_number =
            |kind| matches!(kind, ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64 | ColumnKind::Float64);
        let has = [
            (table.columns.iter().any(|column| !is_number(column.kind)), Capability::Values),
            (table.numbered, Capability::NumberedRows),
            (!table.unique.is_empty(), Capability::UniqueKeys),
            (!table.indexes.is_empty(), Capability::Indexes),
            (table.time.as_ref().is_some_and(|time| time.partitions.is_some()), Capability::Partitions),
        ];
        has.into_iter().filter(|(has, _)| *has).for_each(|(_, capability)| need(capability));
    }
    needs
}

fn of_statement(statement: &Statement, tables: &[Table], need: &mut impl FnMut(Capability)) {
    match statement {
        Statement::Insert { .. } => {}
        Statement::Update { table, key, .. } => {
            need(Capability::Updates);
            of_key(table, key.iter().map(|column| (column.name.as_str(), true)), tables, need);
        }
        Statement::Delete { table, key } => {
            need(Capability::Deletes);
            of_key(table, key.iter().map(|column| (column.name.as_str(), true)), tables, need);
        }
        Statement::UpdateCases { .. } => {
            need(Capability::Updates);
            need(Capability::Documents);
        }
        Statement::UpdateDocument { .. } | Statement::ReduceDocument { .. } => {
            need(Capability::Updates);
            need(Capability::Documents);
        }
        Statement::SelectMember { .. } | Statement::SelectRecords(_) => need(Capability::Documents),
        Statement::SelectGroups { .. } => need(Capability::Ranges),
        Statement::Select(select) => of_select(select, tables, need),
        Statement::Ask(asking) => {
            need(Capability::Figures);
            if !asking.joins.is_empty() {
                need(Capability::Joins);
            }
        }
        Statement::Sql { .. } => need(Capability::Sql),
    }
}

fn of_select(select: &Select, tables: &[Table], need: &mut impl FnMut(Capability)) {
    if select.for_update {
        need(Capability::Transactions);
    }
    if !select.joins.is_empty() {
        need(Capability::Joins);
        return;
    }
    let is_equal = |condition: &Condition| condition.comparison == Comparison::Equal;
    let named = select.conditions.iter().map(|condition| (condition.column.column.as_str(), is_equal(condition)));
    if tables.iter().any(|table| table.name == select.from && is_followed(select, table)) {
        need(Capability::NumberedRows);
        return;
    }
    of_key(&select.from, named, tables, need);
    if select.window.is_some() {
        need(Capability::Ranges);
    }
}

/// Returns whether a query reads the rows that the database has numbered behind a number in their order, or the latest ones.
fn is_followed(select: &Select, table: &Table) -> bool {
    let is_key = |name: &str| table.numbered && table.primary_key.iter().all(|key| key == name);
    let behind =
        |condition: &Condition| condition.comparison == Comparison::Greater && is_key(&condition.column.column);
    let has_order =
        matches!(&select.order[..], [(by, falls)] if is_key(&by.column) && *falls == select.conditions.is_empty());
    let is_plain = select.window.is_none() && select.limit.is_some() && select.conditions.len() <= 1;
    has_order && is_plain && select.conditions.iter().all(behind)
}

/// Returns the capabilities that finding rows by columns needs; each is compared for equality or not. Nothing where they are the whole key.
fn of_key<'a>(
    table: &str,
    columns: impl Iterator<Item = (&'a str, bool)>,
    tables: &[Table],
    need: &mut impl FnMut(Capability),
) {
    // The layout of tables that loadline does not make is unknown.
    let Some(table) = tables.iter().find(|known| known.name == table) else { return };
    let columns: Vec<_> = columns.collect();
    if columns.iter().any(|(name, _)| !table.primary_key.iter().any(|key| key == name)) {
        need(Capability::Indexes);
        return;
    }
    let is_given = |key: &String| columns.iter().any(|(name, is_equal)| name == key && *is_equal);
    if !table.primary_key.iter().all(is_given) {
        need(Capability::Ranges);
    }
}

/// Returns the names of the databases with a capability, as alternatives: `"postgres"`, or `"mariadb" or "mysql"`; `None` where no database has it.
pub fn with(capability: Capability) -> Option<String> {
    // The simulated servers have many capabilities but keep nothing: a hint never means them.
    let is_meant = |entry: &&&Entry| !std::ptr::eq(**entry, &simulated::SIMULATED);
    let able = REGISTRY.iter().filter(is_meant).filter(|entry| entry.capabilities.has(capability));
    let names: Vec<String> = able.map(|entry| format!("\"{}\"", entry.name)).collect();
    let (last, others) = names.split_last()?;
    Some(if others.is_empty() { last.clone() } else { format!("{} or {last}", others.join(", ")) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::{ColumnRef, Limit, TableColumn};

    #[test]
    fn capabilities_are_added_and_taken_away_one_by_one() {
        let some = Capabilities::NONE.with(Capability::Joins).with(Capability::Notifications);
        assert!(some.has(Capability::Joins) && some.has(Capability::Notifications) && !some.has(Capability::Plans));
        assert_eq!(some.without(Capability::Joins).without(Capability::Notifications), Capabilities::NONE);
        assert!(Capabilities::SQL.has(Capability::BrokenBatches), "whole batches are batches");
        assert!(!Capabilities::NONE.with(Capability::BrokenBatches).has(Capability::Batches));
        assert!(Capabilities::SQL.has(Capability::Deletes) && !Capabilities::SQL.has(Capability::Pipeline));
    }

    #[test]
    fn rows_found_by_their_whole_key_need_nothing() {
        let column = |name: &str| TableColumn { name: name.to_owned(), kind: ColumnKind::Int64, nullable: false };
        let table = Table {
            name: "t".to_owned(),
            columns: ["a", "b", "c"].map(column).into(),
            primary_key: vec!["a".to_owned(), "b".to_owned()],
            numbered: false,
            unique: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            time: None,
        };
        let select = |conditions: &[(&str, Comparison)]| {
            let at = |name: &str| ColumnRef { table: "t".to_owned(), column: name.to_owned() };
            let condition = |(name, comparison): &(&str, Comparison)| Condition {
                column: at(name),
                kind: ColumnKind::Int64,
                comparison: *comparison,
            };
            let conditions = conditions.iter().map(condition).collect();
            Select { columns: vec![at("c")], from: "t".to_owned(), conditions, ..Select::default() }
        };
        let needs = |statement: Statement| {
            let program = Program { tables: vec![table.clone()], statements: vec![statement], ..Program::default() };
            needs_of(&program)
        };
        let (equal, least) = (Comparison::Equal, Comparison::GreaterOrEqual);
        let of_select = |conditions: &[(&str, Comparison)]| needs(Statement::Select(select(conditions)));
        assert_eq!(of_select(&[("b", equal), ("a", equal)]), []);
        assert_eq!(of_select(&[("a", equal)]), [Capability::Ranges], "a part of the key");
        assert_eq!(of_select(&[("a", equal), ("b", least)]), [Capability::Ranges]);
        assert_eq!(of_select(&[]), [Capability::Ranges], "all rows");
        assert_eq!(of_select(&[("c", equal)]), [Capability::Indexes]);
        let reading = Select { for_update: true, ..select(&[("a", equal), ("b", equal)]) };
        assert_eq!(needs(Statement::Select(reading)), [Capability::Transactions]);
        let numbered = Table { primary_key: vec!["n".to_owned()], numbered: true, ..table.clone() };
        let at = |name: &str| ColumnRef { table: "t".to_owned(), column: name.to_owned() };
        let follow = |limit| {
            let select = Select {
                order: vec![(at("n"), true)],
                limit,
                columns: vec![at("n")],
                from: "t".to_owned(),
                ..Select::default()
            };
            let statements = vec![Statement::Select(select)];
            needs_of(&Program { tables: vec![numbered.clone()], statements, ..Program::default() })
        };
        assert_eq!(follow(Some(Limit::Fixed(9))), [Capability::NumberedRows], "the latest rows");
        assert_eq!(follow(None), [Capability::Ranges, Capability::NumberedRows], "all rows");
        let delete = |key: &[&str]| Statement::Delete {
            table: "t".to_owned(),
            key: key.iter().map(|name| column(name)).collect(),
        };
        assert_eq!(needs(delete(&["a", "b"])), [Capability::Deletes]);
        assert_eq!(needs(delete(&["b"])), [Capability::Deletes, Capability::Ranges]);
    }
}
