//! Openings of a spool, by which the ledger tells a spool from its copies. Main type: [`LaneOpening`].
//!
//! A directory can be restored from a copy, a damaged log can cost a file its newest entries, and a machine can be cloned while it runs. So
//! each opening has a random token, and the spool records which entry was its newest then. Both are durable before the first entry
//! is taken in, because the database may not answer before thousands of entries have come.
//!
//! Invariant: no two copies of a spool ever show the ledger the same token for the first time.

/// One opening of a lane.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Opening {
    /// The opening's position among those of its lane, from 1.
    pub number: i64,
    /// The opening's random token.
    pub token: String,
    /// The newest entry of the spool when the opening began.
    pub newest: i64,
}

/// The part of a lane's state that the lane shows to the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneOpening {
    /// The name by which the ledger knows this lane's entries.
    pub recorder: String,
    /// The openings of this lane, the oldest first and the present one last.
    pub openings: Vec<Opening>,
    /// Whether the present opening was compared with the ledger and registered there.
    pub is_checked: bool,
}

impl LaneOpening {
    /// Returns that of a lane without entries of its own.
    pub fn none() -> Self {
        LaneOpening { recorder: String::new(), openings: Vec::new(), is_checked: false }
    }

    /// Returns the token of the present opening; empty if there is none.
    pub fn token(&self) -> &str {
        self.openings.last().map_or("", |present| &present.token)
    }
}

/// News about a lane's opening that the spool must remember.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaneNews {
    /// The ledger has registered this opening: from here on only this opening moves the lane's row.
    Checked,
    /// Another opening has taken the row since, or the database has forgotten this one: a new opening begins.
    Superseded,
    /// The ledger's row has passed entries that this spool does not have, or for which it has others. Entries up to `through` are the same
    /// and were dealt with there; all later ones go by another name from here on.
    Parted {
        /// The last entry that was dealt with.
        through: i64,
        /// The new name by which the ledger knows the lane.
        recorder: String,
    },
}
