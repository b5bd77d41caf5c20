//! DuckDB's errors as [`DatabaseError`]s. Main function: [`of`].

use crate::database::DatabaseError;

/// The code of a transaction that lost against another one. DuckDB has no code of its own for it: it is an error of the transaction that says so in words.
pub const CONFLICT: &str = "transaction conflict";

/// The kind of errors of transactions, as messages begin.
const TRANSACTION: &str = "TransactionContext Error";

/// Returns the error of a message. The kind of error, with which each message begins, is its code; `sql` is the text of the statement that was refused.
pub fn of(message: &str, sql: Option<&str>) -> DatabaseError {
    let (code, says) = match message.split_once(": ") {
        Some((kind, says)) if kind.ends_with("Error") && !kind.contains('\n') => (kind, says),
        _ => ("Error", message),
    };
    // A part of the statement, with a mark under it, follows an empty line.
    let says = says.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    if code == "FATAL Error" {
        return DatabaseError::Lost(format!("{says} ({code})"));
    }
    let is_conflict = code == TRANSACTION && says.to_lowercase().contains("conflict");
    let code = if is_conflict { CONFLICT } else { code };
    match sql {
        Some(sql) => DatabaseError::refused(code, format!("{says} in: {sql}")),
        None => DatabaseError::refused(code, says),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_the_kind_as_their_code_and_conflicts_one_of_their_own() {
        let told = |message: &str| of(message, None).to_string();
        assert_eq!(
            told("Parser Error: syntax error at or near \"SELEC\"\n\nLINE 1: SELEC 1\n        ^"),
            "syntax error at or near \"SELEC\" (Parser Error)"
        );
        assert!(of("TransactionContext Error: Conflict on update!", None).is_conflict());
        assert!(!of("TransactionContext Error: Current transaction is aborted (please ROLLBACK)", None).is_conflict());
        assert!(!of("Constraint Error: Duplicate key \"id: 1\" violates primary key constraint.", None).is_conflict());
        assert_eq!(told("out of memory"), "out of memory (Error)");
        assert!(of("FATAL Error: the database has been invalidated", None).is_lost());
    }
}
