//! Classifies errors of a database. Main function: [`meaning`].
//!
//! A record goes to quarantine only if the error is known to be a record's fault. Everything else (a full disk, missing rights, a
//! restart, a code that is not known here) is waited out: nothing is lost by waiting.

use crate::database::DatabaseError;

/// The meaning of an error, which decides what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::recorder) enum Meaning {
    /// A record of the batch is to blame.
    Record,
    /// Another number of rows changed than expected: the ledger tells why.
    Ledger,
    /// The statement may succeed later; the connection is still good.
    Wait,
    /// The disk of a database within this process failed. Its memory is not to be trusted: only a new process, which reads
    /// what is on the disk, may go on.
    Broken,
    /// The connection is of no more use, and it is not known whether the batch was committed.
    Lost,
}

/// Returns the meaning of an error.
pub(in crate::recorder) fn meaning(error: &DatabaseError) -> Meaning {
    match error {
        DatabaseError::Miscounted(_) | DatabaseError::Wrong(_) => Meaning::Ledger,
        DatabaseError::Refused { code, .. } if is_of_record(code) => Meaning::Record,
        DatabaseError::Refused { code, .. } if BROKEN.contains(&code.as_str()) => Meaning::Broken,
        DatabaseError::Refused { .. } => Meaning::Wait,
        DatabaseError::Lost(_) | DatabaseError::Unavailable(_) | DatabaseError::NoFile => Meaning::Lost,
    }
}

/// Returns the meaning of an error, where refusals with the suspected code are put down to records.
pub(super) fn meaning_where(error: &DatabaseError, suspected: Option<&str>) -> Meaning {
    match (meaning(error), error) {
        (Meaning::Wait, DatabaseError::Refused { code, .. }) if suspected == Some(code.as_str()) => Meaning::Record,
        (meaning, _) => meaning,
    }
}

/// MySQL's errors that values cause: too long, out of range, wrong for the column, duplicate, against a constraint, too large.
const MYSQL: &[&str] = &[
    "1048", "1062", "1118", "1138", "1153", "1169", "1216", "1217", "1263", "1264", "1265", "1292", "1300", "1301",
    "1364", "1366", "1367", "1406", "1411", "1416", "1451", "1452", "1557", "1586", "1644", "1690", "1973", "3140",
    "3819", "4025", "4038",
];

/// SQLite's errors that values cause.
const SQLITE: &[&str] = &["SQLITE_MISMATCH", "SQLITE_TOOBIG", "SQLITE_RANGE"];

/// SQLite's errors of the disk and its contents.
const BROKEN: &[&str] = &["SQLITE_IOERR", "SQLITE_CORRUPT", "SQLITE_NOTADB"];

fn is_of_record(code: &str) -> bool {
    // PostgreSQL's classes: data exceptions, violated constraints, errors that triggers raise, a row too large.
    let of_postgres = code.len() == 5
        && (["22", "23", "44", "P0"].iter().any(|class| code.starts_with(class)) || ["54000", "54011"].contains(&code));
    of_postgres || MYSQL.contains(&code) || SQLITE.contains(&code) || code.starts_with("SQLITE_CONSTRAINT")
}

/// Refusals that pass in time, or when somebody repairs their cause, but never by giving up a record: conflicts, locks, rights, room,
/// a read-only server, a table or column that somebody removed.
const PASSES: &[&str] = &[
    "1021",
    "1036",
    "1040",
    "1041",
    "1044",
    "1045",
    "1053",
    "1054",
    "1099",
    "1114",
    "1142",
    "1143",
    "1146",
    "1192",
    "1194",
    "1195",
    "1203",
    "1205",
    "1206",
    "1213",
    "1223",
    "1226",
    "1227",
    "1290",
    "1317",
    "1370",
    "1412",
    "1615",
    "1637",
    "1792",
    "1836",
    "1932",
    "1969",
    "3024",
    "3572",
    "42501",
    "42P01",
    "42703",
    "3D000",
    "3F000",
    "55P03",
    "SQLITE_ERROR",
    "SQLITE_BUSY",
    "SQLITE_LOCKED",
    "SQLITE_FULL",
    "SQLITE_READONLY",
    "SQLITE_CANTOPEN",
    "SQLITE_PERM",
    "SQLITE_AUTH",
    "SQLITE_NOMEM",
    "SQLITE_SCHEMA",
    "SQLITE_PROTOCOL",
    "SQLITE_INTERRUPT",
    UNUSABLE,
];

/// The code for tables that a connection could not prepare statements for.
pub(super) const UNUSABLE: &str = "unusable";

/// Returns whether a refusal may pass without a record being given up.
pub(super) fn may_pass(error: &DatabaseError) -> bool {
    let DatabaseError::Refused { code, .. } = error else { return true };
    // PostgreSQL's classes: connections, conflicts, resources, states, operators, the system, read-only transactions, rights.
    let of_postgres = code.len() == 5
        && ["08", "0A", "25", "28", "40", "53", "55", "57", "58", "XX"].iter().any(|class| code.starts_with(class));
    of_postgres || PASSES.iter().any(|known| code.starts_with(known))
}

/// Refusals that concern the whole database, whichever table they came from: no room, read-only, shutting down, or another session
/// in the way for a moment.
const OF_DATABASE: &[&str] = &[
    "1021",
    "1040",
    "1053",
    "1099",
    "1114",
    "1206",
    "1213",
    "1223",
    "1290",
    "1792",
    "1836",
    "SQLITE_FULL",
    "SQLITE_BUSY",
    "SQLITE_LOCKED",
    "SQLITE_READONLY",
    "SQLITE_CANTOPEN",
    "SQLITE_NOMEM",
    "SQLITE_INTERRUPT",
];

/// Returns whether a refusal says nothing about a measurement.
pub(super) fn is_of_database(error: &DatabaseError) -> bool {
    let DatabaseError::Refused { code, .. } = error else { return true };
    // PostgreSQL's classes: connections, read-only transactions, conflicts, resources, operators, the system.
    let of_postgres =
        code.len() == 5 && ["08", "25", "40", "53", "57", "58"].iter().any(|class| code.starts_with(class));
    of_postgres || OF_DATABASE.iter().any(|known| code.starts_with(known))
}

/// Returns whether a record names an identity that no longer exists, as when somebody removes old ones.
pub(in crate::recorder) fn is_dangling(error: &DatabaseError) -> bool {
    let codes = ["1216", "1452", "23503", "SQLITE_CONSTRAINT_FOREIGNKEY"];
    matches!(error, DatabaseError::Refused { code, .. } if codes.contains(&code.as_str()))
}

/// Returns whether a unique key was violated, as when another recorder writes the same identity or message.
pub(in crate::recorder) fn is_duplicate(error: &DatabaseError) -> bool {
    let codes = [
        "1062",
        "1586",
        "23505",
        "SQLITE_CONSTRAINT_UNIQUE",
        "SQLITE_CONSTRAINT_PRIMARYKEY",
        "SQLITE_CONSTRAINT_ROWID",
    ];
    matches!(error, DatabaseError::Refused { code, .. } if codes.contains(&code.as_str()))
}

/// Returns whether another session's lock stood in the way for too long, or the statement was ended from outside, so that its question is not answered.
pub(super) fn is_of_lock(error: &DatabaseError) -> bool {
    let codes = ["55P03", "57014", "40P01", "40001", "1205", "1213", "1317", "1969", "3024"];
    let is_busy = |code: &str| code.starts_with("SQLITE_BUSY") || code.starts_with("SQLITE_LOCKED");
    matches!(error, DatabaseError::Refused { code, .. } if codes.contains(&code.as_str()) || is_busy(code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::Expect;

    #[test]
    fn only_what_a_record_causes_blames_a_record() {
        let of = |code: &str| meaning(&DatabaseError::refused(code, "…"));
        for code in ["1264", "1406", "22003", "23514", "SQLITE_CONSTRAINT_CHECK", "SQLITE_TOOBIG", "P0001"] {
            assert_eq!(of(code), Meaning::Record, "{code}");
        }
        for code in [
            "1213",
            "1205",
            "55P03",
            "1114",
            "1142",
            "40001",
            "53100",
            "57P01",
            "SQLITE_BUSY",
            "SQLITE_FULL",
            "SQLITE_CANTOPEN",
            "99999",
        ] {
            assert_eq!(of(code), Meaning::Wait, "{code}");
        }
        for (code, is) in [
            ("53100", true),
            ("25006", true),
            ("SQLITE_FULL", true),
            ("1290", true),
            ("42P01", false),
            ("55P03", false),
        ] {
            assert_eq!(is_of_database(&DatabaseError::refused(code, "…")), is, "{code}");
        }
        for (code, is) in [("42501", true), ("1205", true), ("SQLITE_ERROR", true), ("ZZ013", false), ("9013", false)] {
            assert_eq!(may_pass(&DatabaseError::refused(code, "…")), is, "{code}");
        }
        let miscount = Expect::Changed(1).miscount(0, 0).unwrap();
        assert_eq!(meaning(&DatabaseError::Miscounted(Box::new(miscount))), Meaning::Ledger);
        assert_eq!(of("SQLITE_IOERR"), Meaning::Broken);
        assert_eq!(meaning(&DatabaseError::Lost(String::new())), Meaning::Lost);
    }
}
