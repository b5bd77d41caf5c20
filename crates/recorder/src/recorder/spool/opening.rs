//! Which opening of a spool this is: what the ledger tells a spool from its copies by. Main type: [`LaneOpening`].
//!
//! A directory can be restored from a copy, a damaged log can cost a file its newest entries, and a machine can be cloned while it runs. So
//! each opening has a random token, and the spool knows which entry was its newest then. Both are durable before the first entry
//! is taken in, because the database may not answer before thousands of entries have come.
//!
//! Invariant: no two copies of a spool ever show the ledger the same token for the first time.

/// An opening of a lane.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Opening {
    /// Its place among those of its lane, from 1.
    pub number: i64,
    /// Its token.
    pub token: String,
    /// The newest entry of the spool when it began.
    pub newest: i64,
}

/// What a lane shows to the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneOpening {
    /// The name that the ledger knows this lane's entries by.
    pub recorder: String,
    /// The openings of this lane, the oldest first and the present one last.
    pub openings: Vec<Opening>,
    /// Whether the ledger was compared with the present one, and has registered it.
    pub is_checked: bool,
}

impl LaneOpening {
    /// The token of the present opening.
    pub fn token(&self) -> &str {
        self.openings.last().map_or("", |present| &present.token)
    }
}

/// What a lane has found out about its opening, and the spool must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaneNews {
    /// The ledger has registered this opening: from here on only this one moves the lane's row.
    Checked,
    /// Another opening has taken the row since, or the database has forgotten this one: a new one begins.
    Superseded,
    /// The ledger's row has passed entries that this spool does not have, or has others for. Those up to `through` are the same and were
    /// dealt with there; all others go by another name from here on.
    Parted {
        /// The last entry that was dealt with.
        through: i64,
        /// The other name.
        recorder: String,
    },
}
