//! Why a question is not answered. Main type: [`Refusal`].

/// The reason, in the kinds of Prometheus's API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The question is wrong, or more than this recorder answers.
    Bad(String),
    /// The question cannot be answered from what is stored.
    Execution(String),
    /// It took too long.
    Timeout(String),
    /// The database does not answer.
    Unavailable(String),
    /// There is no such path.
    NotFound(String),
}

impl Refusal {
    /// Returns the status, the kind of the error in Prometheus's API, and the sentence.
    pub(super) fn parts(&self) -> (u16, &'static str, &str) {
        match self {
            Refusal::Bad(says) => (400, "bad_data", says),
            Refusal::Execution(says) => (422, "execution", says),
            Refusal::Timeout(says) => (503, "timeout", says),
            Refusal::Unavailable(says) => (503, "unavailable", says),
            Refusal::NotFound(says) => (404, "not_found", says),
        }
    }
}
