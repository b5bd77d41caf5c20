//! `[retention]` and `layout.partition`: which readings are old, and the partitions of the table that holds them.
//!
//! Main type: [`Retirement`]. Invariant: what is retired follows from the settings and from the number of readings that have come, so that it is known without the database how many of the
//! acknowledged readings must be left.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{questions, write};
use crate::data::{TIME_NS, Timeline};
use crate::statement::{Partitions, Program, SchemaChange, Table};
use crate::trial::{RetentionSettings, RetireBy, Settings};
use crate::units::show_seconds;

/// Most partitions that a table is made with: databases lock and plan each of them.
const PARTITIONS_MOST: i64 = 1000;

/// Partitions that are kept ready for readings to come.
const PARTITIONS_AHEAD: i64 = 16;

/// What a trial throws away of the readings in its table.
pub struct Retirement {
    settings: RetentionSettings,
    timeline: Timeline,
    table: String,
    /// The partitions that the table was made with.
    partitions: Option<Partitions>,
    /// Readings from this time on stay whatever their age, in nanoseconds since 1970: questions are about them.
    asked_from_ns: i64,
    /// Number of records that are there from the start.
    rows: u64,
    /// Number of records, from the first one on, that each writer has come to; 0 for one that has sent nothing.
    sent: Vec<AtomicU64>,
}

/// Returns the first time that questions may be about while readings are retired, in nanoseconds since 1970: the newer half of what is kept when the load begins.
pub(super) fn asked_from_ns(keep_ns: i64, end_ns: i64) -> i64 {
    end_ns.saturating_sub(keep_ns / 2)
}

/// Divides the table with the readings of a program into partitions by time.
///
/// # Errors
/// A sentence that names the setting, its value and the remedy.
pub(super) fn divide(program: &mut Program, settings: &Settings, span_ns: i64) -> Result<(), String> {
    let span = show_seconds(span_ns as f64 / 1e9);
    let at = |why: &str| format!("layout.partition is {span} and {why}");
    let series = settings.record.series.as_ref().ok_or_else(|| at("records have no time; write record.sources"))?;
    let timeline = Timeline::new(series, settings.record.seed);
    let layout = &settings.layout.name;
    let place = program.tables.iter().position(|table| table.time.is_some());
    let Some(place) = place else {
        return Err(at(&format!(
            "layout \"{layout}\" has no table with a row for each reading; take layout.name = \"wide\""
        )));
    };
    let name = &program.tables[place].name;
    let refers = |table: &Table| table.foreign_keys.iter().any(|key| key.table == *name);
    if !program.tables[place].foreign_keys.is_empty() || program.tables.iter().any(refers) {
        return Err(at(&format!("tables of layout \"{layout}\" refer to each other; take layout.name = \"wide\"")));
    }
    let (ahead_ns, _) = timeline.reach_ns();
    let spans = Partitions { span_ns, first: 0, end: 0 };
    let first = spans.of(timeline.settled_ns(0));
    let end = spans.of(timeline.clock_ns(settings.record.rows).saturating_add(ahead_ns)) + 1 + PARTITIONS_AHEAD;
    if end - first > PARTITIONS_MOST {
        return Err(at(&format!(
            "record.rows needs {} of them; write at least {}",
            end - first,
            show_seconds((end - first) as f64 / PARTITIONS_MOST as f64 * span_ns as f64 / 1e9)
        )));
    }
    let table = &mut program.tables[place];
    // Databases check a key within each partition, so that it must have the column that tells the partition.
    if !table.primary_key.iter().any(|column| column == TIME_NS) {
        table.primary_key.push(TIME_NS.to_owned());
    }
    if let Some(time) = &mut table.time {
        time.partitions = Some(Partitions { span_ns, first, end });
    }
    Ok(())
}

impl Retirement {
    /// Returns what the settings retire, and which partitions they need for readings to come; `None` where all readings stay in a table that is one piece.
    ///
    /// # Errors
    /// A sentence that names the setting, its value and the remedy.
    pub(super) fn new(settings: &Settings, program: &Program) -> Result<Option<Self>, String> {
        let Some(series) = settings.record.series.as_ref() else {
            return match settings.retention {
                Some(_) => {
                    Err("[retention] is for readings with a time, and record.sources is missing; write it".to_owned())
                }
                None => Ok(None),
            };
        };
        let timeline = Timeline::new(series, settings.record.seed);
        let has_time = |table: &&Table| table.columns.iter().any(|column| column.name == TIME_NS);
        let table = program.tables.iter().find(has_time);
        let partitions = table.and_then(|table| table.time.as_ref()?.partitions);
        let retention = match settings.retention.as_ref().filter(|retention| retention.by != RetireBy::None) {
            Some(retention) => {
                check(settings)?;
                check_keep(retention.keep_ns, &timeline)?;
                retention.clone()
            }
            None if partitions.is_some() => RetentionSettings { by: RetireBy::None, ..RetentionSettings::default() },
            None => return Ok(None),
        };
        let table = table.ok_or_else(|| {
            let layout = &settings.layout.name;
            format!("[retention] needs a table with a row for each reading, and layout.name is \"{layout}\"; take \"wide\" or \"star\"")
        })?;
        let bucket_ns = settings.workload.questions.iter().map(|question| question.bucket_ns).max();
        let end_ns = timeline.settled_ns(settings.record.rows);
        // Spans of buckets begin with a whole one.
        let asked_from_ns =
            bucket_ns.map_or(i64::MAX, |bucket_ns| asked_from_ns(retention.keep_ns, end_ns).saturating_sub(bucket_ns));
        Ok(Some(Retirement {
            settings: retention,
            timeline,
            table: table.name.clone(),
            partitions,
            asked_from_ns,
            rows: settings.record.rows,
            sent: (0..writers(settings)).map(|_| AtomicU64::new(0)).collect(),
        }))
    }

    /// Returns the settings.
    pub fn settings(&self) -> &RetentionSettings {
        &self.settings
    }

    /// Returns the table whose rows are retired, and the name of its column with the time.
    pub fn table(&self) -> (&str, &'static str) {
        (&self.table, TIME_NS)
    }

    /// Notes that a writer has come to the record with this number.
    #[inline]
    pub(super) fn note(&self, client: u32, records: u64) {
        if let Some(sent) = self.sent.get(client as usize) {
            sent.store(records, Ordering::Relaxed);
        }
    }

    /// Returns the number of records that the slowest writer has come to, and the fastest; writers that have sent nothing do not count.
    fn sent(&self) -> (u64, u64) {
        let begun = self.sent.iter().map(|sent| sent.load(Ordering::Relaxed)).filter(|sent| *sent > 0);
        begun
            .fold(None, |span, sent| {
                let (least, most) = span.unwrap_or((sent, sent));
                Some((sent.min(least), sent.max(most)))
            })
            .unwrap_or((self.rows, self.rows))
    }

    /// Returns the time before which readings are old by now, in nanoseconds since 1970: whole steps. The slowest writer decides, so that no reading is old when it comes.
    pub fn due_ns(&self) -> i64 {
        if self.settings.by == RetireBy::None {
            return i64::MIN;
        }
        self.whole(self.clock_ns().saturating_sub(self.settings.keep_ns))
    }

    /// Returns the beginning of the step that a time lies in.
    fn whole(&self, time_ns: i64) -> i64 {
        let step_ns = self.settings.step_ns.max(1);
        time_ns.div_euclid(step_ns).saturating_mul(step_ns)
    }

    /// Returns the time at which the data's own clock stands, in nanoseconds since 1970.
    pub fn clock_ns(&self) -> i64 {
        self.timeline.clock_ns(self.sent().0)
    }

    /// Returns the beginning of the first step with a reading, in nanoseconds since 1970.
    pub fn first_ns(&self) -> i64 {
        self.whole(self.timeline.settled_ns(0))
    }

    /// Returns the time from which on readings stay because questions are about them, in nanoseconds since 1970.
    pub fn asked_from_ns(&self) -> i64 {
        self.asked_from_ns
    }

    /// Returns the change that drops the partition which begins at this time.
    pub fn drop_at(&self, time_ns: i64) -> SchemaChange {
        let partition = time_ns.div_euclid(self.settings.step_ns.max(1));
        SchemaChange::DropPartition { table: self.table.clone(), partition }
    }

    /// Returns how many partitions are missing of those that are kept ready for readings to come, where those before `made` are there, as a share of them: above 1 where readings come for which none is
    /// there.
    pub fn missing(&self, made: i64) -> f64 {
        let Some(partitions) = self.partitions else { return 0.0 };
        let reach_ns = self.timeline.clock_ns(self.sent().1).saturating_add(self.timeline.reach_ns().0);
        (partitions.of(reach_ns) + 1 + PARTITIONS_AHEAD).saturating_sub(made) as f64 / PARTITIONS_AHEAD as f64
    }

    /// Returns the number behind that of the last partition that the table was made with; `None` where it is one piece.
    pub fn partitions_made(&self) -> Option<i64> {
        self.partitions.map(|partitions| partitions.end)
    }

    /// Returns the change that makes a partition.
    pub fn add(&self, partition: i64) -> Option<SchemaChange> {
        let span_ns = self.partitions?.span_ns;
        Some(SchemaChange::AddPartition { table: self.table.clone(), partition, span_ns })
    }

    /// Returns the number of these records whose readings lie before a time: so many were retired when it is said that all before it were.
    pub fn count_before(&self, records: impl Iterator<Item = Range<u64>>, time_ns: i64) -> u64 {
        records.flatten().filter(|record| self.timeline.time_ns(*record) < time_ns).count() as u64
    }
}

/// Checks that no reading is old when it comes.
fn check_keep(keep_ns: i64, timeline: &Timeline) -> Result<(), String> {
    let (ahead_ns, behind_ns) = timeline.reach_ns();
    let least_ns = behind_ns.saturating_add(ahead_ns).saturating_mul(2);
    if keep_ns >= least_ns {
        return Ok(());
    }
    let [keep, least] = [keep_ns, least_ns].map(|span_ns| show_seconds(span_ns as f64 / 1e9));
    Err(format!(
        "retention.keep is {keep}, and by record.interval, record.late and record.missing readings lie so far apart that some would be older than that when they come; write at least {least}"
    ))
}

/// Returns the number of clients that write.
fn writers(settings: &Settings) -> u32 {
    settings.background.as_ref().map_or(settings.load.clients, |background| background.clients)
}

/// Returns whether the settings have somebody who writes readings, and nobody who needs those that are thrown away.
///
/// # Errors
/// A sentence that names the setting, its value and the remedy.
fn check(settings: &Settings) -> Result<(), String> {
    let writes_beside = settings.background.as_ref().is_some_and(|beside| beside.workload == write::WRITE.name);
    let name = settings.workload.name.as_str();
    let is_alone = name == write::WRITE.name && settings.background.is_none();
    if is_alone || (name == questions::QUESTIONS.name && writes_beside) {
        return Ok(());
    }
    let beside = settings
        .background
        .as_ref()
        .map_or(String::new(), |beside| format!(" beside [background] workload = \"{}\"", beside.workload));
    Err(format!(
        "[retention] throws readings away by their age, and workload.name is \"{name}\"{beside}; take \"write\", or \"questions\" beside a [background] that writes"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::SeriesSettings;
    use crate::workload::Work;

    const SECOND_NS: i64 = 1_000_000_000;

    fn settings() -> Settings {
        let series = SeriesSettings {
            sources: 10,
            interval_ns: SECOND_NS,
            jitter: 0.1,
            missing: 0.01,
            late_share: 0.02,
            late_up_to_ns: 20 * SECOND_NS,
            repeated: 0.01,
        };
        let mut settings = Settings::default();
        settings.record.type_name = "qos".to_owned();
        settings.record.table = "qos".to_owned();
        (settings.record.rows, settings.record.per_measurement, settings.workload.batch) = (5000, 10, 10);
        settings.record.series = Some(series);
        (settings.layout.name, settings.workload.name) = ("wide".to_owned(), "write".to_owned());
        settings.layout.partition_ns = Some(30 * SECOND_NS);
        settings.load.clients = 2;
        let (keep_ns, step_ns) = (300 * SECOND_NS, 30 * SECOND_NS);
        settings.retention = Some(RetentionSettings { by: RetireBy::Drop, keep_ns, step_ns, transaction_ns: step_ns });
        settings
    }

    fn refusal(change: impl FnOnce(&mut Settings)) -> String {
        let mut settings = settings();
        change(&mut settings);
        Work::new(&settings).err().unwrap()
    }

    #[test]
    fn each_reading_has_a_partition_when_it_comes_and_the_key_tells_it() {
        let work = Work::new(&settings()).unwrap();
        let [table] = &work.program().tables[..] else { panic!("one table") };
        assert_eq!(table.primary_key, ["record_id", "time_ns"]);
        let spans = table.time.as_ref().unwrap().partitions.unwrap();
        let retirement = work.retirement().unwrap();
        // The first records behind those that are there, too.
        let times = (0..5100).map(|record| spans.of(retirement.timeline.time_ns(record)));
        assert!(times.clone().all(|partition| (spans.first..spans.end).contains(&partition)));
        let unused = times.clone().min().unwrap() - spans.first;
        assert!((0..=2).contains(&unused), "{unused} partitions before the first reading");
        let ready = spans.end - times.max().unwrap();
        assert!((PARTITIONS_AHEAD..=PARTITIONS_AHEAD + 2).contains(&ready), "{ready} partitions are ready");
        assert!(retirement.missing(spans.end) <= 0.0 && retirement.missing(spans.end - PARTITIONS_AHEAD) >= 1.0);
    }

    #[test]
    fn the_slowest_writer_decides_what_is_old_and_no_reading_is_old_when_it_comes() {
        let work = Work::new(&settings()).unwrap();
        let retirement = work.retirement().unwrap();
        let begins = retirement.due_ns();
        assert_eq!(begins % (30 * SECOND_NS), 0);
        retirement.note(0, 9000);
        retirement.note(1, 6000);
        let (slow, due) = (retirement.timeline.clock_ns(6000), retirement.due_ns());
        assert!(due <= slow - 300 * SECOND_NS && due > slow - 330 * SECOND_NS && due > begins, "{due} {slow}");
        let oldest = (6000..9000).map(|record| retirement.timeline.time_ns(record)).min().unwrap();
        assert!(oldest >= due, "a reading of {oldest} comes in, and all before {due} is old");
        // A writer that has sent nothing holds nobody up.
        let work = Work::new(&settings()).unwrap();
        work.retirement().unwrap().note(1, 9000);
        assert!(work.retirement().unwrap().due_ns() > due);
    }

    #[test]
    fn what_is_gone_is_counted_one_by_one() {
        let work = Work::new(&settings()).unwrap();
        let retirement = work.retirement().unwrap();
        let before_ns = retirement.due_ns();
        let gone = (0..5000).filter(|record| retirement.timeline.time_ns(*record) < before_ns).count() as u64;
        assert!(gone > 1000, "{gone}");
        assert_eq!(retirement.count_before([0..2500, 2500..5000].into_iter(), before_ns), gone);
        assert_eq!(retirement.count_before(std::iter::once(4990..5000), before_ns), 0);
    }

    #[test]
    fn without_retention_nothing_is_old_and_partitions_are_made_all_the_same() {
        let mut settings = settings();
        settings.retention = None;
        let work = Work::new(&settings).unwrap();
        let retirement = work.retirement().unwrap();
        assert_eq!((retirement.due_ns(), retirement.settings().by), (i64::MIN, RetireBy::None));
        settings.layout.partition_ns = None;
        assert!(Work::new(&settings).unwrap().retirement().is_none());
    }

    #[test]
    fn what_does_not_go_together_is_refused_with_the_remedy() {
        let no_sources = refusal(|settings| settings.record.series = None);
        assert!(no_sources.contains("write record.sources"), "{no_sources}");
        let star = refusal(|settings| settings.layout.name = "star".to_owned());
        assert!(star.contains("layout.partition is 30 s") && star.contains("layout.name = \"wide\""), "{star}");
        let many = refusal(|settings| settings.layout.partition_ns = Some(SECOND_NS / 10));
        assert!(many.contains("write at least "), "{many}");
        let short = refusal(|settings| settings.retention.as_mut().unwrap().keep_ns = SECOND_NS);
        assert!(short.contains("retention.keep is 1 s") && short.contains("write at least "), "{short}");
        let reads = refusal(|settings| settings.workload.name = "read".to_owned());
        assert!(reads.contains("workload.name is \"read\"; take \"write\""), "{reads}");
    }
}
