//! Operations: requests of the application to the database, before a layout turns them into statements.

use serde::{Deserialize, Serialize};

/// The value columns that an operation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fields {
    /// All value columns.
    All,
    /// The column with this index among the record type's values.
    One(u16),
}

/// One operation of a workload. It names records by number; the layout asks the generator for their values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Write `records` consecutive records, starting with number `first`, in one transaction. Measurements that begin
    /// or end within this range are begun and ended by it.
    Insert {
        /// Number of the first record.
        first: u64,
        /// Number of records; at least 1.
        records: u32,
    },
    /// Read the whole of one record by its key.
    Read {
        /// Number of the record.
        record: u64,
    },
    /// Read one record by its key: all of it, as [`Operation::Read`] does, or one value.
    Select {
        /// Number of the record.
        record: u64,
        /// The columns that are read.
        fields: Fields,
    },
    /// Set value columns of a record to the values of another record. The distribution of the column's values remains the same,
    /// so that the records stay as good for the trials that follow.
    Update {
        /// Number of the record that is changed.
        record: u64,
        /// Number of the record whose generated values are taken.
        like: u64,
        /// The columns that are set.
        fields: Fields,
    },
    /// Read whole records in the order of their keys.
    Scan {
        /// Number of the record at whose key the scan begins, whether it is there or not.
        first: u64,
        /// Largest number of records read; at least 1.
        records: u32,
    },
    /// Remove one record.
    Delete {
        /// Number of the record.
        record: u64,
    },
    /// Execute one of the study's queries over records.
    Query {
        /// Index in the list of the study's queries.
        query: u16,
    },
    /// Ask one of the study's questions about sources and times.
    Ask {
        /// Index in the list of the study's questions.
        question: u16,
        /// The number that decides which source and which span of time it concerns.
        draw: u64,
    },
    /// Execute one of the study's own SQL statements; its parameters are already in the request's cells.
    Statement {
        /// Index in the list of the study's statements.
        statement: u16,
    },
    /// Execute a statement of a trace; its parameters are already in the request's cells.
    Replayed {
        /// Index in the list of the trace's statements.
        statement: u16,
        /// The kind that it is reported under, which several statements may share.
        kind: u16,
    },
}

impl Operation {
    /// Returns the kind under which the operation is reported.
    pub fn kind(&self) -> OperationKind {
        match self {
            Operation::Insert { .. } => OperationKind::Insert,
            Operation::Read { .. } => OperationKind::Read,
            Operation::Select { .. } => OperationKind::Select,
            Operation::Update { .. } => OperationKind::Update,
            Operation::Scan { .. } => OperationKind::Scan,
            Operation::Delete { .. } => OperationKind::Delete,
            Operation::Query { query } => OperationKind::Query(*query),
            Operation::Ask { question, .. } => OperationKind::Statement(*question),
            Operation::Statement { statement } => OperationKind::Statement(*statement),
            Operation::Replayed { kind, .. } => OperationKind::Statement(*kind),
        }
    }

    /// Returns the number of records that the operation writes or asks for; 1 for queries, which ask for any number.
    pub fn records(&self) -> u64 {
        match self {
            Operation::Insert { records, .. } | Operation::Scan { records, .. } => u64::from(*records),
            Operation::Read { .. }
            | Operation::Select { .. }
            | Operation::Update { .. }
            | Operation::Delete { .. }
            | Operation::Query { .. }
            | Operation::Ask { .. }
            | Operation::Statement { .. }
            | Operation::Replayed { .. } => 1,
        }
    }
}

/// The kind of an operation, by which operations are measured and reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum OperationKind {
    /// [`Operation::Insert`].
    Insert,
    /// [`Operation::Read`].
    Read,
    /// [`Operation::Select`]; separate from reads, which always read all columns.
    Select,
    /// [`Operation::Update`].
    Update,
    /// [`Operation::Scan`].
    Scan,
    /// [`Operation::Delete`].
    Delete,
    /// [`Operation::Query`]; each query of a study is a kind.
    Query(u16),
    /// A read and the update of the same record that follows it at once: one operation of two parts.
    ReadModifyWrite,
    /// [`Operation::Statement`] and [`Operation::Ask`]; each statement and each question of a study is a kind.
    Statement(u16),
    /// The opening of a connection, where each operation has its own connection: a part of that operation.
    Connect,
}

/// The names of kinds of operation in results: a study may name its statements.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KindNames {
    statements: Vec<Option<String>>,
}

impl KindNames {
    /// Takes the names of a study's statements, in their order; `None` for a statement without a name.
    pub fn of<'a>(statements: impl Iterator<Item = Option<&'a str>>) -> Self {
        KindNames { statements: statements.map(|name| name.map(str::to_owned)).collect() }
    }

    /// Returns the name of a kind: the name of its statement, or a word of loadline's own.
    pub fn name(&self, kind: OperationKind) -> String {
        let own = match kind {
            OperationKind::Statement(index) => self.statements.get(usize::from(index)).cloned().flatten(),
            _ => None,
        };
        own.unwrap_or_else(|| kind.to_string())
    }

    /// Returns whether a word is loadline's name for some kind, so that no statement can have it.
    pub fn is_taken(word: &str) -> bool {
        let fixed = [
            OperationKind::Insert,
            OperationKind::Read,
            OperationKind::Select,
            OperationKind::Update,
            OperationKind::Scan,
            OperationKind::Delete,
            OperationKind::ReadModifyWrite,
            OperationKind::Connect,
        ];
        fixed.iter().any(|kind| kind.to_string() == word)
            || word.starts_with("query-")
            || word.starts_with("statement-")
    }
}

impl std::fmt::Display for OperationKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OperationKind::Insert => f.write_str("insert"),
            OperationKind::Read => f.write_str("read"),
            OperationKind::Select => f.write_str("select"),
            OperationKind::Update => f.write_str("update"),
            OperationKind::Scan => f.write_str("scan"),
            OperationKind::Delete => f.write_str("delete"),
            OperationKind::Query(index) => write!(f, "query-{}", index + 1),
            OperationKind::ReadModifyWrite => f.write_str("read-modify-write"),
            OperationKind::Connect => f.write_str("connect"),
            OperationKind::Statement(index) => write!(f, "statement-{}", index + 1),
        }
    }
}
