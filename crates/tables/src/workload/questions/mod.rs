//! The workload `questions`: a study's questions about sources and times, each execution about a source and a span of its own.
//!
//! Main type: [`Asked`], what clients of a trial share: where questions lie, and the right answers. Invariant: source and span are pure functions of the settings and of
//! [`Operation::Ask`]'s draw, so that whoever knows the operation knows the right answer.

mod answer;
mod figures;
mod oracle;
mod spot;
mod unpacked;

use std::sync::OnceLock;

use super::{Client, Entry, Workload, only_reads};
use crate::data;
use crate::fault::{Fault, fault};
use crate::layout::Access;
use crate::layout::gorilla::Packing;
use crate::operation::Operation;
use crate::query::Place;
use crate::question::{Ask, Question};
use crate::random::Stream;
use crate::record::{Cells, ColumnKind, Generator};
use crate::statement::{Expect, Request, Step};
use crate::trial::{RetireBy, Settings};

use oracle::Oracle;
use spot::Spots;

/// Registry entry.
pub(super) static QUESTIONS: Entry = Entry {
    name: "questions",
    summary: "your questions about sources and times, whatever the layout (workload.questions); every value of every answer is checked",
    needs_tables: true,
    keeps_records: true,
    access: |_, _| Ok(Access::default()),
    build: |settings, client| Ok(Box::new(Asker::new(settings, client)?)),
};

/// The largest number of records whose right answers are known: they take 16 bytes of memory for each record, and 8 more for each number that is aggregated.
const RECORDS_MOST: u64 = 50_000_000;

/// The step from question to question, the fractional part of the golden ratio: of any number of executions each question has its share but for one or two, so
/// that trials do not differ by what they asked.
const TURN: f64 = 0.618_033_988_749_894_9;

/// A client that asks.
struct Asker {
    /// Cumulated weights of the questions.
    weights: Vec<f64>,
    /// Where the next question lies in the sum of the weights, 0..1.
    turn: f64,
    stream: Stream,
}

impl Asker {
    fn new(settings: &Settings, client: Client) -> Result<Self, String> {
        let questions = &settings.workload.questions;
        if questions.is_empty() || questions.len() > usize::from(u16::MAX) {
            let count = questions.len();
            return Err(format!("workload.questions has {count} questions; name 1 to {} of them", u16::MAX));
        }
        let generator = data::build(&settings.record)?;
        questions.iter().try_for_each(|question| question.check(generator.record_type()))?;
        let rows = settings.record.rows;
        if rows == 0 || rows > RECORDS_MOST {
            return Err(format!(
                "record.rows is {rows} and workload.name is \"questions\"; write 1 to {RECORDS_MOST}, because every answer is checked"
            ));
        }
        if let (false, Some(question)) = (only_reads(settings), questions.iter().find(|question| is_open(question))) {
            let name = &question.name;
            return Err(format!(
                "workload.questions, question \"{name}\": asks for all times while records are added, and no answer could be checked; give it a span"
            ));
        }
        let mut weights = Vec::with_capacity(questions.len());
        let mut sum = 0.0;
        for question in questions {
            sum += question.weight;
            weights.push(sum);
        }
        let mut stream = Stream::new(client.seed, u64::from(client.number), 0x61_736b);
        Ok(Asker { weights, turn: stream.unit(), stream })
    }
}

/// Returns whether a question looks at all times there are.
fn is_open(question: &Question) -> bool {
    question.ask != Ask::Newest && question.span_ns.is_none()
}

impl Workload for Asker {
    fn next(&mut self, _: &mut Cells) -> Operation {
        self.turn = (self.turn + TURN).fract();
        let at = self.turn * self.weights.last().copied().unwrap_or(0.0);
        let question = self.weights.partition_point(|weight| *weight <= at).min(self.weights.len() - 1);
        Operation::Ask { question: question as u16, draw: self.stream.word() }
    }

    fn works_long(&self) -> bool {
        true
    }
}

/// The questions of a trial, with their statements and right answers.
pub(super) struct Asked {
    questions: Vec<Question>,
    /// The layout's statement for each question.
    statements: Vec<u16>,
    /// The columns that each question reads or aggregates.
    columns: Vec<Vec<Place>>,
    /// How rows of several readings are unpacked; `None` where each is one.
    packing: Option<Packing>,
    /// The kind of the column that each question compares with its bound.
    bounds: Vec<ColumnKind>,
    spots: Spots,
    /// Number of records that are there from the start.
    records: u64,
    /// Whether records are added during the trial.
    grows: bool,
    /// The right answers; unset until they have been computed.
    oracle: OnceLock<Oracle>,
}

impl Asked {
    /// Takes the questions of a trial with the numbers of their statements; `None` where there are none.
    pub(super) fn new(
        settings: &Settings,
        statements: Vec<u16>,
        packing: Option<&Packing>,
        generator: &dyn Generator,
    ) -> Option<Self> {
        let questions = settings.workload.questions.clone();
        if questions.is_empty() {
            return None;
        }
        let grows = !only_reads(settings);
        let kept = settings.retention.as_ref().filter(|retention| retention.by != RetireBy::None);
        let spots = Spots::new(&settings.record, grows, kept.map(|retention| retention.keep_ns))?;
        let bound = |question: &Question| {
            let place = question.columns(generator.record_type()).first().copied();
            place.map_or(ColumnKind::Float64, |place| place.column(generator.record_type()).kind)
        };
        let bounds = questions.iter().map(bound).collect();
        let columns = questions.iter().map(|question| question.columns(generator.record_type())).collect();
        Some(Asked {
            questions,
            statements,
            columns,
            packing: packing.cloned(),
            bounds,
            spots,
            records: settings.record.rows,
            grows,
            oracle: OnceLock::new(),
        })
    }

    /// Computes the right answers: from now on every answer is checked.
    ///
    /// # Errors
    /// When the memory for them cannot be had.
    pub(super) fn prepare(&self, generator: &dyn Generator) -> Result<(), Fault> {
        if self.oracle.get().is_some() {
            return Ok(());
        }
        let oracle = Oracle::new(&self.questions, generator, (self.spots.timeline().clone(), self.records), self.grows)
            .map_err(|error| fault!("record.rows is {}, whose answers need more memory than there is: {error}", self.records; "write fewer"))?;
        // No other thread can have set it: nobody else has the work yet.
        let _ = self.oracle.set(oracle);
        Ok(())
    }

    /// Appends the execution of a question to a request.
    pub(super) fn bind(&self, question: u16, draw: u64, request: &mut Request) {
        let place = usize::from(question);
        let (Some(asked), Some(statement)) = (self.questions.get(place), self.statements.get(place)) else { return };
        let spot = self.spots.of(asked, draw);
        let first_cell = request.cells.len() as u32;
        if !asked.all_sources {
            request.cells.int(spot.source as i64 + 1);
        }
        if asked.ask != Ask::Newest && asked.span_ns.is_some() {
            request.cells.int(spot.from_ns);
            request.cells.int(spot.to_ns);
        }
        if asked.ask == Ask::Above && self.packing.is_none() {
            match self.bounds.get(place) {
                Some(ColumnKind::Float64) | None => request.cells.float(asked.above),
                // Whole numbers above a bound are those above its floor.
                Some(_) => request.cells.int(asked.above.floor() as i64),
            }
        }
        request.steps.push(Step { statement: *statement, rows: 1, first_cell, expect: Expect::Anything });
    }

    /// Makes the answer from rows of several readings, and returns its number of rows; `None` where each row is a reading, so that the database has answered.
    ///
    /// # Errors
    /// As a sentence, that a row cannot be unpacked.
    pub(super) fn unpack(&self, question: u16, draw: u64, rows: &mut Cells) -> Result<Option<u64>, String> {
        let place = usize::from(question);
        let (Some(packing), Some(asked), Some(columns)) =
            (&self.packing, self.questions.get(place), self.columns.get(place))
        else {
            return Ok(None);
        };
        let spot = self.spots.of(asked, draw);
        let (answer, count) =
            unpacked::unpack(packing, (asked, columns), &spot, rows).map_err(|why| spot.said(asked, &why))?;
        *rows = answer;
        Ok(Some(count))
    }

    /// Checks an answer, value by value. Nothing is checked before the right answers have been computed.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence.
    pub(super) fn check(
        &self,
        question: u16,
        draw: u64,
        rows: &Cells,
        generator: &dyn Generator,
    ) -> Result<(), String> {
        let (Some(oracle), Some(asked)) = (self.oracle.get(), self.questions.get(usize::from(question))) else {
            return Ok(());
        };
        let spot = self.spots.of(asked, draw);
        answer::check(oracle, (usize::from(question), asked), &spot, rows, generator)
            .map_err(|why| spot.said(asked, &why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::{Figure, Places};
    use crate::trial::{RecordSettings, SeriesSettings};

    fn settings(weights: &[f64]) -> Settings {
        let record = RecordSettings {
            type_name: "qos".to_owned(),
            rows: 100,
            per_measurement: 1,
            series: Some(SeriesSettings { sources: 3, interval_ns: 1_000_000_000, ..SeriesSettings::default() }),
            ..RecordSettings::default()
        };
        let mut settings = Settings { record, ..Settings::default() };
        settings.workload.name = "questions".to_owned();
        let question = |weight: &f64| Question {
            name: format!("{weight}"),
            ask: Ask::Newest,
            of: vec!["ul_delay".to_owned()],
            all_sources: false,
            span_ns: None,
            bucket_ns: 0,
            above: 0.0,
            most: 0,
            by: Figure::Mean,
            figures: Vec::new(),
            places: Places::Newest,
            weight: *weight,
        };
        settings.workload.questions = weights.iter().map(question).collect();
        settings
    }

    #[test]
    fn each_question_has_its_share_of_every_few_executions() {
        let settings = settings(&[1.0, 2.0, 5.0]);
        for seed in 0..20 {
            let mut asker = Asker::new(&settings, Client { number: 0, of: 1, seed }).unwrap();
            let mut counts = [0.0_f64; 3];
            for executions in 1..=400 {
                let Operation::Ask { question, .. } = asker.next(&mut Cells::new()) else { panic!() };
                counts[usize::from(question)] += 1.0;
                for (count, share) in counts.iter().zip([0.125, 0.25, 0.625]) {
                    let right = share * f64::from(executions);
                    assert!((count - right).abs() < 3.0, "{counts:?} of {executions}");
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_asked_is_refused_with_the_reason() {
        let refusal = |change: fn(&mut Settings)| {
            let mut settings = settings(&[1.0]);
            change(&mut settings);
            Asker::new(&settings, Client { number: 0, of: 1, seed: 1 }).err().unwrap()
        };
        assert!(refusal(|settings| settings.workload.questions.clear()).contains("workload.questions has 0 questions"));
        assert!(refusal(|settings| settings.record.rows = 0).contains("record.rows is 0"));
        assert!(refusal(|settings| settings.record.series = None).contains("set record.sources"));
        let unknown = refusal(|settings| settings.workload.questions[0].of = vec!["ul_dealy".to_owned()]);
        assert!(unknown.contains("has no column \"ul_dealy\""), "{unknown}");
        let no_number = refusal(|settings| {
            settings.workload.questions[0].ask = Ask::Top;
            settings.workload.questions[0].of = vec!["customerId".to_owned()];
        });
        assert!(no_number.contains("customerId is no number that is measured each time"), "{no_number}");
        let open = refusal(|settings| {
            settings.workload.questions[0].ask = Ask::Range;
            settings.background = Some(crate::trial::BackgroundSettings {
                workload: "write".to_owned(),
                clients: 1,
                arrivals: crate::trial::Arrivals::Constant,
                rate_per_s: 1.0,
                batch: 1,
            });
        });
        assert!(open.contains("give it a span"), "{open}");
    }
}
