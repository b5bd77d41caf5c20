//! How many rows MariaDB reads for a question, by its own counters: no more than the question needs, whatever its statistics say and while rows come in.

use loadline::operation::Operation;
use loadline::question::{Ask, Question};
use loadline::trial::{RecordSettings, SeriesSettings, Settings, TimeIndex};

use super::written::writer;
use super::{Filled, on_server, question, series, settings};

const SOURCES: u64 = 20;
const READINGS: u64 = 6000;

/// The newest readings of all sources, then ranks by a column that no index has.
fn asked(index: TimeIndex) -> Settings {
    let newest = Question { all_sources: true, ..question(Ask::Newest, &["value_1"], None) };
    let of = settings("wide", vec![newest, question(Ask::Top, &["value_1"], Some(20))]);
    let series = SeriesSettings { sources: SOURCES as u32, ..series() };
    let mut settings =
        Settings { record: RecordSettings { rows: READINGS, series: Some(series), ..of.record.clone() }, ..of };
    settings.layout.time_index = Some(index);
    settings
}

impl Filled<'_> {
    /// Asks a question, checks the answer, and returns how many rows the server has read for it: those it found by stepping along an index, and all.
    fn reads_for(&mut self, question: u16) -> (u64, u64) {
        self.session.query("FLUSH STATUS").unwrap();
        let operation = Operation::Ask { question, draw: 0 };
        let rows = self.execute(&operation).unwrap();
        let counters = self.session.query("SHOW SESSION STATUS LIKE 'Handler_read%'").unwrap();
        self.work.check(&operation, &rows).unwrap();
        let count = |row: &Vec<Option<String>>| row[1].as_ref().unwrap().parse::<u64>().unwrap();
        let stepping = counters.iter().find(|row| row[0].as_deref() == Some("Handler_read_next")).map(count);
        (stepping.unwrap(), counters.iter().map(count).sum())
    }

    /// Makes the server's statistics say that so many readings were made of each source.
    fn pretend(&mut self, readings_per_source: u64) {
        let sources = READINGS / readings_per_source;
        for sql in [
            "ALTER TABLE sensor STATS_AUTO_RECALC = 0".to_owned(),
            format!(
                "UPDATE mysql.innodb_index_stats SET stat_value = {sources} WHERE database_name = DATABASE() AND table_name = 'sensor' AND \
                 stat_name = 'n_diff_pfx01' AND stat_description = 'source_id'"
            ),
            // A new name makes the server read its statistics again.
            "RENAME TABLE sensor TO sensor_read_again".to_owned(),
            "RENAME TABLE sensor_read_again TO sensor".to_owned(),
        ] {
            self.session.run(&sql).unwrap();
        }
    }
}

#[test]
fn mariadb_skips_to_the_newest_of_each_before_and_after_rows_came_in() {
    on_server("mariadb", &[], |database| {
        let mut settings = asked(TimeIndex::SourceTime);
        // Newest readings may be newer ones than those from the start.
        settings.background = Some(writer());
        let mut filled = Filled::new(database, &settings);
        filled.session.query("ANALYZE TABLE sensor").unwrap();
        for first in (READINGS..READINGS + 1000).step_by(200) {
            let (_, all) = filled.reads_for(0);
            assert!(all < 20 * SOURCES, "{all} rows were read for {SOURCES} sources, after {first} records");
            filled.execute(&Operation::Insert { first, records: 200 }).unwrap();
        }
    });
}

#[test]
fn mariadb_computes_the_newest_times_once_even_where_its_statistics_say_that_a_source_has_two_readings() {
    on_server("mariadb", &[], |database| {
        for index in [TimeIndex::SourceTime, TimeIndex::SourceTimeKey, TimeIndex::TimeSource] {
            let mut filled = Filled::new(database, &asked(index));
            filled.pretend(2);
            let (_, all) = filled.reads_for(0);
            assert!(all < 3 * READINGS, "{all} rows were read for {READINGS} readings, with {index:?}");
        }
    });
}

#[test]
fn mariadb_ranks_sources_without_stepping_along_an_index_beside_the_table() {
    on_server("mariadb", &[], |database| {
        let mut filled = Filled::new(database, &asked(TimeIndex::SourceTime));
        filled.session.query("ANALYZE TABLE sensor").unwrap();
        let (stepping, all) = filled.reads_for(1);
        assert!(stepping == 0 && all >= READINGS, "{stepping} of {all} rows were read by stepping along an index");
    });
}
