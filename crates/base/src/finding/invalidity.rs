//! Reasons why trials of some rounds are not used. Main type: [`Invalidity`].

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::reason::Reason;

/// The reason why trials of some rounds are not used. As JSON it is the reason with `rounds` and a sentence that names them.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(into = "SaidInvalidity")]
pub struct Invalidity {
    /// The rounds of the trials.
    pub rounds: Vec<u32>,
    /// The reason against each of them.
    pub reason: Reason,
}

impl std::fmt::Display for Invalidity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = self.rounds.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        write!(f, "round{} {list}: {}", if self.rounds.len() == 1 { "" } else { "s" }, self.reason)
    }
}

/// The form of [`Invalidity`] in JSON.
#[derive(Serialize, JsonSchema)]
struct SaidInvalidity {
    #[serde(flatten, serialize_with = "figures_of")]
    #[schemars(with = "Reason")]
    reason: Reason,
    rounds: Vec<u32>,
    says: String,
}

fn figures_of<S: Serializer>(reason: &Reason, serializer: S) -> Result<S::Ok, S::Error> {
    Reason::figures(&reason, serializer)
}

impl From<Invalidity> for SaidInvalidity {
    fn from(found: Invalidity) -> Self {
        SaidInvalidity { says: found.to_string(), rounds: found.rounds, reason: found.reason }
    }
}
