//! What a target's wire can do besides executing requests: [`Prepare`], and [`Speak`] where it speaks SQL.

#[cfg(doc)]
use super::Before;
use super::{Attempt, Channel, WireSession};
#[cfg(doc)]
use crate::database::TargetSession;
use crate::database::{DatabaseError, Dialect, PassingOver, Session, Wire};
use crate::statement::{Program, Request, SchemaChange, Statement, Table};

/// The operations of a wire besides executing requests. The channel is the wire's own socket, used in a blocking way; between two
/// calls nothing in it is left unread.
pub trait Prepare: Wire {
    /// See [`TargetSession::prepare`].
    ///
    /// # Errors
    /// The database's error, with the statement's text; [`DatabaseError::Lost`] when the connection breaks.
    fn prepare(&mut self, channel: &mut Channel, program: &Program) -> Result<(), DatabaseError>;

    /// See [`TargetSession::version`].
    ///
    /// # Errors
    /// The database's error; [`DatabaseError::Lost`] when the connection breaks.
    fn version(&mut self, channel: &mut Channel) -> Result<String, DatabaseError>;

    /// See [`TargetSession::sql`].
    fn as_sql(_session: &mut WireSession<Self>) -> Option<&mut dyn Session>
    where
        Self: Sized,
    {
        None
    }

    /// See [`TargetSession::create_table`]; for targets that speak no SQL.
    ///
    /// # Errors
    /// The target's error; by default, that the target has no tables.
    fn create_table(&mut self, _channel: &mut Channel, _table: &Table) -> Result<(), DatabaseError> {
        Err(crate::database::no_tables())
    }

    /// See [`TargetSession::drop_table`]; for targets that speak no SQL.
    ///
    /// # Errors
    /// The target's error; by default, that the target has no tables.
    fn drop_table(&mut self, _channel: &mut Channel, _table: &str) -> Result<(), DatabaseError> {
        Err(crate::database::no_tables())
    }

    /// See [`TargetSession::count_rows`]; for targets that speak no SQL.
    ///
    /// # Errors
    /// The target's error; by default, that the target has no tables.
    fn count_rows(&mut self, _channel: &mut Channel, _table: &str) -> Result<Option<u64>, DatabaseError> {
        Err(crate::database::no_tables())
    }

    /// See [`TargetSession::sum_column`]; for targets that speak no SQL.
    ///
    /// # Errors
    /// The target's error; by default, that the target has no tables.
    fn sum_column(
        &mut self,
        _channel: &mut Channel,
        _table: &str,
        _column: &str,
    ) -> Result<Option<u64>, DatabaseError> {
        Err(crate::database::no_tables())
    }

    /// See [`TargetSession::change_schema`]; for targets that speak no SQL.
    ///
    /// # Errors
    /// The target's error; by default, that the target has no tables.
    fn change_schema(
        &mut self,
        _channel: &mut Channel,
        _change: &SchemaChange,
    ) -> Result<Option<String>, DatabaseError> {
        Err(crate::database::no_tables())
    }

    /// See [`TargetSession::table_bytes`]; for targets that speak no SQL.
    fn table_bytes(&mut self, _channel: &mut Channel, _tables: &[&str]) -> Option<u64> {
        None
    }

    /// See [`TargetSession::ask`]; for targets that speak no SQL.
    ///
    /// # Errors
    /// The target's error; [`DatabaseError::Lost`] when the connection breaks.
    fn ask(&mut self, _channel: &mut Channel, _question: &str) -> Result<Option<String>, DatabaseError> {
        Ok(None)
    }
}

/// The further operations of a wire whose target speaks SQL.
pub trait Speak: Prepare {
    /// See [`Session::dialect`].
    fn dialect(&self) -> &dyn Dialect;

    /// See [`Session::run`].
    ///
    /// # Errors
    /// The database's error; [`DatabaseError::Lost`] when the connection breaks.
    fn run(&mut self, channel: &mut Channel, sql: &str) -> Result<(), DatabaseError>;

    /// See [`Session::query`].
    ///
    /// # Errors
    /// The database's error; [`DatabaseError::Lost`] when the connection breaks.
    fn query(&mut self, channel: &mut Channel, sql: &str) -> Result<Vec<Vec<Option<String>>>, DatabaseError>;

    /// See [`Session::prepare_passing_over`].
    ///
    /// # Errors
    /// The database's error; callers treat a refusal like `None`. [`DatabaseError::Lost`] when the connection breaks.
    fn prepare_passing_over(
        &mut self,
        _channel: &mut Channel,
        _insert: &Statement,
        _rows_max: usize,
    ) -> Result<Option<PassingOver>, DatabaseError> {
        Ok(None)
    }

    /// Returns the SQL texts that begin, undo and commit a dry run, in this order; see [`Session::begin_dry_run`]. Empty where the database has no dry runs.
    fn dry_run_texts(&self) -> [&'static [&'static str]; 3] {
        [&[], &[], &[]]
    }

    /// Returns whether a request of a dry run may be sent before the request in front of it is answered ([`Before::AsAnswered`]).
    fn can_follow(&self, _request: &Request) -> bool {
        false
    }

    /// Returns whether a refused statement undoes itself and nothing else; otherwise the whole transaction is refused until it is rolled back to a savepoint.
    fn undoes_statements(&self) -> bool {
        false
    }

    /// Makes the requests from now on parts of a dry run; with `None`, ordinary requests again.
    fn set_dry_run(&mut self, _part: Option<Attempt>) {}

    /// See [`Session::listen`].
    ///
    /// # Errors
    /// When the database has no notifications or refuses.
    fn listen(&mut self, _channel: &mut Channel, name: &str) -> Result<(), DatabaseError> {
        Err(DatabaseError::Unavailable(format!("the database has no notifications that \"{name}\" could bring")))
    }

    /// Takes in messages that came unasked and resets their count. Returns whether there was a notification.
    ///
    /// # Errors
    /// When the database has no notifications.
    fn take_notices(&mut self, _channel: &mut Channel) -> Result<bool, DatabaseError> {
        Err(DatabaseError::Unavailable("the database has no notifications".to_owned()))
    }
}
