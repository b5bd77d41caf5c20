//! Answers to commands that write. Main type: [`Written`].

use super::bson::{Document, Value, broken};
use super::message::Said;
use crate::database::DatabaseError;

/// The codes of errors after which nobody knows whether a write is stored: the server's own failures, its shutting down, a primary that stepped down, and a wait that was given up.
const UNKNOWN_OUTCOMES: [i64; 12] = [1, 6, 7, 64, 89, 91, 189, 10107, 11600, 11602, 13435, 13436];

/// What a write has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    /// The number of documents that were stored, found for a change, or removed.
    pub rows: u64,
    /// Why the others were not.
    pub failure: Option<DatabaseError>,
}

impl Written {
    /// Takes in the answer to a command that was carried out, perhaps in part.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`] where it is none, and where nobody knows whether what was written is stored.
    pub(super) fn of(answer: Document<'_>) -> Result<Self, DatabaseError> {
        let (mut rows, mut failure) = (None, None);
        for member in answer.members() {
            let member = member?;
            match (member.name, member.value) {
                (b"n", found) => rows = found.whole(),
                (b"writeErrors", Value::Array(errors)) => {
                    let first = errors.members().next().transpose()?;
                    let Some(Value::Document(first)) = first.map(|member| member.value) else {
                        return Err(broken("does not say which error it has had"));
                    };
                    failure = Some(Said::of(first)?);
                }
                (b"writeConcernError", Value::Document(error)) => return Err(unknown(&Said::of(error)?)),
                _ => {}
            }
        }
        let rows = rows.and_then(|rows| u64::try_from(rows).ok());
        let rows = rows.ok_or_else(|| broken("does not say how many documents it has written"))?;
        let failure = failure.map(|said| match (UNKNOWN_OUTCOMES.contains(&said.code), rows) {
            (true, _) => unknown(&said),
            (false, 0) => said.error(),
            (false, stored) => {
                let Said { code, message } = said;
                let message = format!("{message}; what the same command wrote in front of it stays: {stored}");
                DatabaseError::refused(code.to_string(), message)
            }
        });
        match failure {
            Some(failure) if failure.is_lost() => Err(failure),
            failure => Ok(Written { rows, failure }),
        }
    }
}

/// Returns the error of a command that was not carried out.
pub(super) fn refused(said: Said, writes: bool) -> DatabaseError {
    if writes && UNKNOWN_OUTCOMES.contains(&said.code) { unknown(&said) } else { said.error() }
}

fn unknown(said: &Said) -> DatabaseError {
    let Said { code, message } = said;
    DatabaseError::Lost(format!(
        "closed by the client, because nobody knows whether its write is stored: {message} ({code})"
    ))
}

#[cfg(test)]
mod tests {
    use super::super::bson;
    use super::*;

    fn answer(fill: impl FnOnce(&mut Vec<u8>)) -> Result<Written, DatabaseError> {
        let mut out = Vec::new();
        let from = bson::begin(&mut out);
        fill(&mut out);
        bson::end(from, &mut out);
        Written::of(Document::whole(&out).unwrap())
    }

    fn with_error(rows: i32, code: i32) -> Result<Written, DatabaseError> {
        answer(|out| {
            bson::int32("n", rows, out);
            bson::array("writeErrors", out, |out| {
                bson::document("0", out, |out| {
                    bson::int32("index", rows, out);
                    bson::int32("code", code, out);
                    bson::text("errmsg", b"no", out);
                });
            });
        })
    }

    #[test]
    fn what_a_write_has_done_is_told_and_what_stays_is_named() {
        assert_eq!(answer(|out| bson::int32("n", 3, out)), Ok(Written { rows: 3, failure: None }));
        let whole = Written { rows: 0, failure: Some(DatabaseError::refused("11000", "no")) };
        assert_eq!(with_error(0, 11000), Ok(whole));
        let told = with_error(2, 11000).unwrap().failure.unwrap().to_string();
        assert!(told.contains("stays: 2"), "{told}");
        assert!(answer(|out| bson::int32("n", -1, out)).is_err());
        assert!(answer(|_| ()).is_err());
    }

    #[test]
    fn an_unknown_outcome_of_a_write_ends_the_connection() {
        assert!(with_error(0, 91).unwrap_err().is_lost());
        let concern = answer(|out| {
            bson::int32("n", 1, out);
            bson::document("writeConcernError", out, |out| bson::int32("code", 64, out));
        });
        assert!(concern.unwrap_err().is_lost());
        let said = || Said { code: 11600, message: "it ends".to_owned() };
        assert!(refused(said(), true).is_lost() && !refused(said(), false).is_lost());
    }
}
