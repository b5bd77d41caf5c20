//! Instruments: numbers that a server counts during its work, and the figures made of them.
//!
//! Main type: [`Instrument`]. Invariant: an instrument is a query that reads the server's own counters and returns one row of numbers.

use crate::measurement::ToldHow;

/// A query, and the figures that are made of its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instrument {
    /// A query that returns a row only where the server has the counters, so that no server logs an error because of loadline. `None` where every version has them.
    pub is_there: Option<&'static str>,
    /// The query for one row of numbers.
    pub sql: &'static str,
    /// The names of the figures, and how each is made of the numbers of the row.
    pub figures: &'static [(&'static str, ToldHow)],
}

impl Instrument {
    /// Returns the number of numbers in the row.
    pub fn numbers(&self) -> usize {
        self.figures.iter().map(|(_, how)| how.numbers()).max().unwrap_or(0)
    }
}

/// Alternative instruments, of which the first that the server answers is read: versions keep their counters in different places.
pub type Alternatives = &'static [Instrument];

/// The instruments of PostgreSQL.
pub static POSTGRES: &[Alternatives] = &[
    &[Instrument {
        is_there: None,
        sql: "SELECT blks_hit + blks_read AS loadline_drawn, blks_read, temp_bytes, deadlocks, (SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock') \
              FROM pg_stat_database WHERE datname = current_database()",
        figures: &[
            ("cache hits", ToldHow::Hits(0, 1)),
            ("temporary files", ToldHow::Bytes(2)),
            ("deadlocks", ToldHow::Events(3)),
            ("sessions that wait for a lock", ToldHow::Level(4)),
        ],
    }],
    // From version 14 on.
    &[Instrument {
        is_there: Some("SELECT 1 AS loadline_drawn WHERE to_regclass('pg_catalog.pg_stat_wal') IS NOT NULL"),
        sql: "SELECT wal_bytes AS loadline_drawn FROM pg_stat_wal",
        figures: &[("write-ahead log", ToldHow::Bytes(0))],
    }],
    &[
        // From version 17 on.
        Instrument {
            is_there: Some(
                "SELECT 1 AS loadline_drawn WHERE to_regclass('pg_catalog.pg_stat_checkpointer') IS NOT NULL",
            ),
            sql: "SELECT num_timed + num_requested AS loadline_drawn, buffers_written FROM pg_stat_checkpointer",
            figures: CHECKPOINTS,
        },
        Instrument {
            is_there: None,
            sql: "SELECT checkpoints_timed + checkpoints_req AS loadline_drawn, buffers_checkpoint FROM pg_stat_bgwriter",
            figures: CHECKPOINTS,
        },
    ],
];

const CHECKPOINTS: &[(&str, ToldHow)] =
    &[("checkpoints", ToldHow::Events(0)), ("pages written by checkpoints", ToldHow::Rate(1))];

/// The names of the figures of MySQL and MariaDB, in the order of their numbers.
const OF_STATUS: &[(&str, ToldHow)] = &[
    ("cache hits", ToldHow::Hits(0, 1)),
    ("redo log", ToldHow::Bytes(2)),
    ("pages flushed", ToldHow::Rate(3)),
    ("temporary tables on disk", ToldHow::Rate(4)),
    ("sessions that wait for a row", ToldHow::Level(5)),
];

/// An instrument for MySQL and MariaDB that reads a table with one row for each number.
macro_rules! status {
    ($table:literal) => {
        concat!(
            "SELECT MAX(CASE WHEN VARIABLE_NAME = 'INNODB_BUFFER_POOL_READ_REQUESTS' THEN VARIABLE_VALUE + 0 END) AS loadline_drawn, ",
            "MAX(CASE WHEN VARIABLE_NAME = 'INNODB_BUFFER_POOL_READS' THEN VARIABLE_VALUE + 0 END), ",
            "MAX(CASE WHEN VARIABLE_NAME = 'INNODB_OS_LOG_WRITTEN' THEN VARIABLE_VALUE + 0 END), ",
            "MAX(CASE WHEN VARIABLE_NAME = 'INNODB_BUFFER_POOL_PAGES_FLUSHED' THEN VARIABLE_VALUE + 0 END), ",
            "MAX(CASE WHEN VARIABLE_NAME = 'CREATED_TMP_DISK_TABLES' THEN VARIABLE_VALUE + 0 END), ",
            "MAX(CASE WHEN VARIABLE_NAME = 'INNODB_ROW_LOCK_CURRENT_WAITS' THEN VARIABLE_VALUE + 0 END) FROM ",
            $table,
            " WHERE VARIABLE_NAME IN ('INNODB_BUFFER_POOL_READ_REQUESTS', 'INNODB_BUFFER_POOL_READS', 'INNODB_OS_LOG_WRITTEN', ",
            "'INNODB_BUFFER_POOL_PAGES_FLUSHED', 'CREATED_TMP_DISK_TABLES', 'INNODB_ROW_LOCK_CURRENT_WAITS')"
        )
    };
}

/// The instruments of MySQL and MariaDB.
pub static MYSQL: &[Alternatives] = &[&[
    // For MariaDB, and for MySQL before version 8.
    Instrument {
        is_there: Some(
            "SELECT 1 AS loadline_drawn FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'information_schema' AND TABLE_NAME = 'GLOBAL_STATUS'",
        ),
        sql: status!("information_schema.GLOBAL_STATUS"),
        figures: OF_STATUS,
    },
    Instrument { is_there: None, sql: status!("performance_schema.global_status"), figures: OF_STATUS },
]];

#[cfg(test)]
mod tests {
    use super::*;

    /// The alias that keeps loadline's own queries apart in a server's counters.
    const ALIAS: &str = "loadline_drawn";

    #[test]
    fn instruments_only_read_and_are_told_from_what_users_ask() {
        for instrument in POSTGRES.iter().chain(MYSQL).flat_map(|alternatives| alternatives.iter()) {
            assert!(instrument.sql.starts_with("SELECT ") && instrument.sql.contains(ALIAS), "{}", instrument.sql);
            assert!(instrument.is_there.is_none_or(|sql| sql.starts_with("SELECT ") && sql.contains(ALIAS)));
            assert!(!instrument.figures.is_empty());
        }
    }
}
