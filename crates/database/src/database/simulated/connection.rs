//! A connection to the simulated database: a kernel timer that becomes readable when the answer is complete.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::rows::Statements;
use super::{Fate, Queue, lock};
use crate::database::{Answer, DatabaseError, Progress, TargetSession, Wire};
use crate::record::Cells;
use crate::statement::{Expect, Program, Request, SchemaChange, Table};

pub(super) struct Connection {
    queue: Arc<Mutex<Queue>>,
    timer: OwnedFd,
    fate: Option<Fate>,
    statements: Statements,
}

impl Connection {
    pub(super) fn open(queue: Arc<Mutex<Queue>>) -> std::io::Result<Self> {
        // SAFETY: timerfd_create takes no pointer.
        let timer = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
        if timer < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: the descriptor was made above and is owned by nobody else.
        let timer = unsafe { OwnedFd::from_raw_fd(timer) };
        Ok(Connection { queue, timer, fate: None, statements: Statements::default() })
    }

    fn answer(&self, request: &Request, fate: Fate) -> Result<Answer, DatabaseError> {
        if fate.is_refused {
            return Err(DatabaseError::refused("simulated", "refused, as database.config.fail_share asks"));
        }
        let mut answer = Answer::default();
        for step in &request.steps {
            match step.expect {
                Expect::Rows if fate.is_empty => answer.empty += 1,
                Expect::Rows => answer.rows += 1,
                Expect::RowCount(rows) | Expect::RowsAtLeast(rows) => answer.rows += rows,
                Expect::Changed(changed) => answer.changed += changed,
                Expect::ChangedSome => answer.changed += 1,
                Expect::Anything => answer.changed += u64::from(step.rows),
            }
        }
        Ok(answer)
    }

    /// Makes the timer readable at a time, or at once if it has passed.
    fn arm(&self, at: Instant) {
        let wait = at.saturating_duration_since(Instant::now()).max(std::time::Duration::from_nanos(1));
        let value = libc::timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        let once = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        // SAFETY: the pointer is to a value of ours that outlives the call; a null old value is allowed.
        unsafe {
            libc::timerfd_settime(self.timer.as_raw_fd(), 0, &once, std::ptr::null_mut());
        }
    }
}

impl Wire for Connection {
    fn fd(&self) -> RawFd {
        self.timer.as_raw_fd()
    }

    fn start(&mut self, request: &Request, _: &mut Vec<u8>) {
        let (fate, _) = lock(&self.queue).execute(&self.statements, request, None);
        self.fate = Some(fate);
        self.arm(fate.done);
    }

    fn advance(&mut self, request: &Request, input: &[u8], _: &mut Vec<u8>) -> Progress {
        let outcome = self.fate.take().map(|fate| self.answer(request, fate));
        Progress { consumed: input.len(), outcome }
    }

    fn keep_rows(&mut self, _: Option<Cells>) -> Option<Cells> {
        None
    }
}

impl TargetSession for Connection {
    fn prepare(&mut self, program: &Program) -> Result<(), DatabaseError> {
        self.statements = Statements::of(program);
        Ok(())
    }

    fn execute(&mut self, request: &Request, rows: Option<&mut Cells>) -> Result<Answer, DatabaseError> {
        let (fate, read) = lock(&self.queue).execute(&self.statements, request, rows);
        std::thread::sleep(fate.done.saturating_duration_since(Instant::now()));
        let answer = self.answer(request, fate)?;
        Ok(Answer { rows: answer.rows.max(read), ..answer })
    }

    fn version(&mut self) -> Result<String, DatabaseError> {
        Ok(format!("simulated {}", env!("CARGO_PKG_VERSION")))
    }

    fn create_table(&mut self, _: &Table) -> Result<(), DatabaseError> {
        Ok(())
    }

    fn drop_table(&mut self, table: &str) -> Result<(), DatabaseError> {
        lock(&self.queue).rows.drop_table(table);
        Ok(())
    }

    fn change_schema(&mut self, _: &SchemaChange, _: Option<&str>) -> Result<Option<String>, DatabaseError> {
        Ok(None)
    }

    fn count_rows(&mut self, _: &str) -> Result<Option<u64>, DatabaseError> {
        Ok(None)
    }

    fn sum_column(&mut self, _: &str, _: &str) -> Result<Option<u64>, DatabaseError> {
        Ok(None)
    }

    fn into_wire(self: Box<Self>) -> Result<Box<dyn Wire>, Box<dyn TargetSession>> {
        Ok(self)
    }
}
