//! A failing database, as a recorder sees it. Main type: [`FailingDatabase`].

use std::sync::Arc;
use std::time::Duration;

use super::failing::{Blow, FORGETS_WITHIN, Failing};
use super::session::FailingSession;
use crate::database::durability::Lasts;
use crate::database::{
    Database, DatabaseError, Dialect, LogPosition, Session, SessionLimits, Target, TargetSession, Weakness,
};

/// The database as a recorder sees it.
pub struct FailingDatabase {
    /// Only its SQL dialect is used; it is never written to.
    plain: Arc<dyn Database>,
    failing: Failing,
    is_embedded: bool,
}

impl FailingDatabase {
    /// Returns the recorder's view of a failing database. `is_embedded` says whether it counts as part of the recorder's process, so that its commits acknowledge.
    pub fn new(failing: &Failing, is_embedded: bool) -> Self {
        FailingDatabase { plain: failing.inner().0, failing: failing.clone(), is_embedded }
    }
}

impl Target for FailingDatabase {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn is_embedded(&self) -> bool {
        self.is_embedded
    }

    fn open(&self) -> Result<Box<dyn TargetSession>, DatabaseError> {
        Ok(self.connect()?)
    }

    fn sql(&self) -> Option<&dyn Database> {
        Some(self)
    }
}

impl Database for FailingDatabase {
    fn dialect(&self) -> &dyn Dialect {
        self.plain.dialect()
    }

    fn connect(&self) -> Result<Box<dyn Session>, DatabaseError> {
        self.connect_writer(&Arc::new(SessionLimits::new("", Duration::from_secs(5), Box::new(|| None))))
    }

    fn connect_writer(&self, limits: &Arc<SessionLimits>) -> Result<Box<dyn Session>, DatabaseError> {
        match self.failing.call(self.failing.inner().1)? {
            Blow::None => {}
            Blow::Refused(_) => return Err(DatabaseError::Unavailable("it lets nobody in".to_owned())),
            blow => {
                self.failing.strike(blow);
                return Err(DatabaseError::Unavailable("nobody answers".to_owned()));
            }
        }
        let (inner, generation) = self.failing.inner();
        let session = inner.connect_writer(limits)?;
        Ok(Box::new(FailingSession::new(session, inner, self.failing.clone(), generation)))
    }

    fn weaknesses(&self, _: &mut dyn Session, _: &dyn Fn(&str) -> bool) -> Result<Vec<Weakness>, DatabaseError> {
        let weakness = Weakness {
            setting: "memory".to_owned(),
            value: "short".to_owned(),
            loses: "what was committed just before its process ends",
            remedy: "none".to_owned(),
            lasts: Lasts::Until(FORGETS_WITHIN),
        };
        Ok(if self.failing.forgets() { vec![weakness] } else { Vec::new() })
    }

    fn log_position(&self, session: &mut dyn Session) -> Result<Option<LogPosition>, DatabaseError> {
        // A statement is sent, so that this may fail as well.
        session.query("SELECT 1")?;
        Ok(self.failing.position())
    }
}
