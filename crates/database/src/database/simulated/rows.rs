//! Rows of numbered tables, which the simulated database keeps so that they can be read while others are written.
//!
//! Main type: [`Rows`]. Invariant: keys rise in the order in which inserts arrive; rows may become readable in another order,
//! as in real databases.

use std::collections::BTreeMap;

use crate::record::Cells;
use crate::statement::{Limit, Program, Request, Statement};

/// What each statement of a connection does with numbered tables; `None` for statements that do nothing with them.
#[derive(Debug, Clone, Default)]
pub(super) struct Statements(Vec<Option<Use>>);

#[derive(Debug, Clone)]
enum Use {
    /// Inserts rows of `width` values.
    Insert { table: String, width: usize },
    /// Reads the latest rows, or those behind a key.
    Read { table: String, by_key: bool, most: usize },
}

/// All numbered tables.
#[derive(Debug, Default)]
pub(super) struct Rows {
    tables: BTreeMap<String, Vec<Row>>,
}

#[derive(Debug)]
struct Row {
    key: u64,
    visible_ns: u64,
    values: Cells,
}

impl Statements {
    /// Returns the statements of a program.
    pub(super) fn of(program: &Program) -> Self {
        let is_numbered = |name: &str| program.tables.iter().any(|table| table.numbered && table.name == name);
        let of = |statement: &Statement| match statement {
            Statement::Insert { table, columns } if is_numbered(table) => {
                Some(Use::Insert { table: table.clone(), width: columns.len() })
            }
            Statement::Select(select) if is_numbered(&select.from) => Some(Use::Read {
                table: select.from.clone(),
                by_key: !select.conditions.is_empty(),
                most: if let Some(Limit::Fixed(most)) = select.limit { most as usize } else { usize::MAX },
            }),
            _ => None,
        };
        Statements(program.statements.iter().map(of).collect())
    }
}

impl Rows {
    /// Keeps the rows that a request inserts; they can be read from `visible_ns` on.
    pub(super) fn insert(&mut self, statements: &Statements, request: &Request, visible_ns: u64) {
        for step in &request.steps {
            let Some(Some(Use::Insert { table, width })) = statements.0.get(usize::from(step.statement)) else {
                continue;
            };
            let rows = self.tables.entry(table.clone()).or_default();
            for row in 0..step.rows as usize {
                let mut values = Cells::new();
                let first = step.first_cell as usize + row * width;
                (first..first + width).for_each(|place| values.copy_from(&request.cells, request.cells.get(place)));
                let key = rows.last().map_or(1, |last| last.key + 1);
                rows.push(Row { key, visible_ns, values });
            }
        }
    }

    /// Appends the rows that a request reads among those readable at `now_ns`. Returns their number.
    pub(super) fn read(&self, statements: &Statements, request: &Request, now_ns: u64, out: &mut Cells) -> u64 {
        let mut found = 0;
        for step in &request.steps {
            let Some(Some(Use::Read { table, by_key, most })) = statements.0.get(usize::from(step.statement)) else {
                continue;
            };
            let Some(rows) = self.tables.get(table) else { continue };
            let can_be_read = |row: &&Row| row.visible_ns <= now_ns;
            let mut append = |row: &Row| {
                out.int(row.key as i64);
                out.append(&row.values);
                found += 1;
            };
            if *by_key {
                let behind = match request.cells.get(step.first_cell as usize) {
                    crate::record::Cell::Int(key) => key.max(0) as u64,
                    _ => 0,
                };
                let first = rows.partition_point(|row| row.key <= behind);
                rows[first..].iter().filter(can_be_read).take(*most).for_each(&mut append);
            } else {
                rows.iter().rev().filter(can_be_read).take(*most).for_each(&mut append);
            }
        }
        found
    }

    /// Removes a table.
    pub(super) fn drop_table(&mut self, table: &str) {
        self.tables.remove(table);
    }
}
