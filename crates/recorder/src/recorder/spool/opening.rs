//! Which opening of a spool this is: what the ledger tells a spool from its copies by. Main type: [`LaneOpening`].
//!
//! A directory can be restored from a copy, a damaged log can cost a file its newest entries, and a machine can be cloned while it runs. So
//! each opening has a random token, and the spool knows which entry was its newest then. Both are durable before the first entry
//! is taken in, because the database may not answer before thousands of entries have come.
//!
//! Invariant: no two copies of a spool ever show the ledger the same token for the first time.

use rusqlite::{Connection, Transaction, params};

use super::schema::RANDOM_NAME;

/// Openings of a lane that are remembered.
const OPENINGS_MAX: i64 = 1_000;

/// An opening of a lane.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// What a lane shows to the ledger.
pub(super) fn of_lane(file: &Connection, lane: u32) -> rusqlite::Result<LaneOpening> {
    let make = "INSERT OR IGNORE INTO lane SELECT ?, value, 0 FROM fact WHERE name = 'recorder'";
    if file.execute(make, [lane])? > 0 {
        open(file, lane)?;
    }
    read(file, lane)
}

/// Notes what a lane has found out; what it shows to the ledger from here on.
pub(super) fn note(file: &Transaction<'_>, lane: u32, news: &LaneNews) -> rusqlite::Result<LaneOpening> {
    let noted = read(file, lane)?;
    match news {
        LaneNews::Checked => {
            file.execute("UPDATE lane SET is_checked = 1 WHERE number = ?", [lane])?;
        }
        LaneNews::Superseded => open(file, lane)?,
        LaneNews::Parted { recorder, .. } => {
            file.execute("UPDATE lane SET recorder = ? WHERE number = ?", params![recorder, lane])?;
            if noted.is_checked {
                open(file, lane)?;
            }
        }
    }
    read(file, lane)
}

/// Begins an opening of the file.
pub(super) fn begin(file: &mut Connection) -> rusqlite::Result<()> {
    let transaction = file.transaction()?;
    let lanes: Vec<u32> = transaction
        .prepare("SELECT number FROM lane")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    lanes.into_iter().try_for_each(|lane| open(&transaction, lane))?;
    transaction.commit()
}

/// Begins an opening of a lane.
fn open(file: &Connection, lane: u32) -> rusqlite::Result<()> {
    let last = "SELECT ifnull(max(number), 0) FROM opening WHERE lane = ?";
    let number = 1 + file.query_row(last, [lane], |row| row.get::<_, i64>(0))?;
    let begin = format!("INSERT INTO opening VALUES (?, ?, {RANDOM_NAME}, ?)");
    file.execute(&begin, params![lane, number, newest(file)?])?;
    file.execute("DELETE FROM opening WHERE lane = ? AND number <= ?", params![lane, number - OPENINGS_MAX])?;
    file.execute("UPDATE lane SET is_checked = 0 WHERE number = ?", [lane]).map(drop)
}

/// Copies what is readable of a damaged file's openings.
pub(super) fn salvage(source: &Connection, target: &Connection) -> rusqlite::Result<()> {
    if let Ok(mut lanes) = source.prepare("SELECT number, recorder FROM lane") {
        let lanes = lanes.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for (number, recorder) in lanes.map_while(Result::<(u32, String), _>::ok) {
            target.execute("INSERT OR REPLACE INTO lane VALUES (?, ?, 0)", params![number, recorder])?;
        }
    }
    if let Ok(mut openings) = source.prepare("SELECT lane, number, token, newest FROM opening ORDER BY lane, number") {
        let openings = openings.query_map([], |row| Ok((row.get(0)?, opening(row)?)))?;
        for (lane, Opening { number, token, newest }) in openings.map_while(Result::<(u32, Opening), _>::ok) {
            let opening = params![lane, number, token, newest];
            target.execute("INSERT OR REPLACE INTO opening VALUES (?, ?, ?, ?)", opening)?;
        }
    }
    Ok(())
}

fn read(file: &Connection, lane: u32) -> rusqlite::Result<LaneOpening> {
    let openings = "SELECT lane, number, token, newest FROM opening WHERE lane = ? ORDER BY number";
    let openings = file.prepare(openings)?.query_map([lane], opening)?.collect::<rusqlite::Result<_>>()?;
    file.query_row("SELECT recorder, is_checked FROM lane WHERE number = ?", [lane], |row| {
        Ok(LaneOpening { recorder: row.get(0)?, openings, is_checked: row.get(1)? })
    })
}

fn opening(row: &rusqlite::Row<'_>) -> rusqlite::Result<Opening> {
    Ok(Opening { number: row.get(1)?, token: row.get(2)?, newest: row.get(3)? })
}

/// The number of the newest entry that was ever taken in.
fn newest(file: &Connection) -> rusqlite::Result<i64> {
    let newest = "SELECT max(ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'entry'), 0), \
                  ifnull((SELECT max(sequence) FROM entry), 0))";
    file.query_row(newest, [], |row| row.get(0))
}
