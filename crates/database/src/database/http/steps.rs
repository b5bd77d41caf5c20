//! Requests of several steps over HTTP: each step is a request of HTTP of its own, and the next one is sent when the one before it has been answered.
//!
//! Main type: [`Run`], the progress of a request. What a step sends, and what its answer says, a store states as [`Steps`].
//!
//! Invariant: an outcome is given only when the answer to the last request sent has ended, or when the connection is lost; bytes of the next answer are never among those
//! consumed.

use super::{Part, Reading};
use crate::database::{Answer, DatabaseError, Progress};
use crate::statement::{Expect, Miscount, Request};

/// The progress of a request.
#[derive(Debug, Default)]
pub struct Run {
    /// The index of the step that is being answered; `None` for a request that asks for nothing.
    pub step: Option<usize>,
    /// The status of its answer.
    pub status: u16,
    /// Whether the server closes the connection behind the answer.
    pub closes: bool,
    /// The number of steps that are stored already.
    stored: usize,
    answer: Answer,
    failure: Option<DatabaseError>,
}

impl Run {
    /// Remembers the first error of the request, and what it leaves behind.
    #[cold]
    pub fn fail(&mut self, error: DatabaseError) {
        let has_stored = self.stored > 0;
        let error = match error {
            DatabaseError::Refused { code, message } if has_stored => DatabaseError::Refused {
                code,
                message: format!("{message}; what the statements before it stored stays"),
            },
            error => error,
        };
        self.failure.get_or_insert(error);
    }

    /// Ends the request with the server's error. Returns that it has ended.
    ///
    /// # Errors
    /// The error, if the connection is lost with it.
    pub fn refuse(&mut self, error: DatabaseError) -> Result<bool, DatabaseError> {
        if error.is_lost() {
            return Err(error);
        }
        self.fail(error);
        Ok(true)
    }

    /// Adds what the step that has ended read and changed. Returns the next step; `None` if the request has ended.
    pub fn complete(&mut self, request: &Request, rows: u64, changed: u64, is_insert: bool) -> Option<usize> {
        let number = self.step?;
        let step = request.steps.get(number)?;
        self.answer.rows += rows;
        self.answer.changed += changed;
        self.answer.empty += u32::from(step.expect == Expect::Rows && rows == 0);
        self.stored += usize::from(is_insert);
        if let Some(miscount) = step.expect.miscount(rows, changed) {
            let stays = self.stored > 0;
            self.fail(DatabaseError::Miscounted(Box::new(Miscount { stays, ..miscount })));
        }
        let is_last = self.failure.is_some() || number + 1 == request.steps.len();
        (!is_last).then_some(number + 1)
    }

    fn outcome(&mut self) -> Result<Answer, DatabaseError> {
        self.failure.take().map_or(Ok(self.answer), Err)
    }
}

/// A connection whose requests are such steps.
pub trait Steps {
    /// Returns the progress of the request, and within the answer that is read.
    fn run(&mut self) -> (&mut Run, &mut Reading);

    /// Returns whether the status is that of an answer without an error.
    fn is_right(&self, request: &Request) -> bool;

    /// Takes in bytes of a body.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`]: they are no answer to what was asked.
    fn take(&mut self, request: &Request, bytes: &[u8]) -> Result<(), DatabaseError>;

    /// Completes the answer to a step. Returns whether it was the last of the request; otherwise the next one has been appended.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`]: what has arrived is no whole answer.
    fn end(&mut self, request: &Request, out: &mut Vec<u8>) -> Result<bool, DatabaseError>;
}

/// Takes in what the server has sent, and appends the next step's request when a step has been answered.
pub fn advance(steps: &mut impl Steps, request: &Request, input: &[u8], out: &mut Vec<u8>) -> Progress {
    let mut consumed = 0;
    loop {
        let (part, length) = match steps.run().1.take(&input[consumed..]) {
            Ok(Some(taken)) => taken,
            Ok(None) => return Progress { consumed, outcome: None },
            Err(why) => return Progress { consumed, outcome: Some(Err(DatabaseError::Lost(why))) },
        };
        consumed += length;
        let taken = match part {
            Part::Head(head) => {
                let (run, _) = steps.run();
                (run.status, run.closes) = (head.status, head.closes);
                Ok(false)
            }
            Part::Body(bytes) => steps.take(request, bytes).map(|()| false),
            Part::Framing => Ok(false),
            Part::End if closes_too_early(steps, request) => Err(DatabaseError::Lost(
                "the server closes the connection between two statements of a request".to_owned(),
            )),
            Part::End => match steps.end(request, out) {
                // What follows is the answer to a request that has not been sent.
                Ok(false) => return Progress { consumed, outcome: None },
                ended => ended,
            },
        };
        match taken {
            Ok(false) => {}
            Ok(true) => return Progress { consumed, outcome: Some(steps.run().0.outcome()) },
            Err(error) => return Progress { consumed, outcome: Some(Err(error)) },
        }
    }
}

/// Returns whether the server closes the connection behind an answer that is not the last of the request.
fn closes_too_early(steps: &mut impl Steps, request: &Request) -> bool {
    let (run, _) = steps.run();
    let is_last = run.step.is_none_or(|number| number + 1 >= request.steps.len());
    run.closes && !is_last && steps.is_right(request)
}
