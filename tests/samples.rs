//! Raw samples: what the load engine writes while a trial runs, and what is read back, of whole and of torn files.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

use std::path::{Path, PathBuf};

use loadline::database::{self, DatabaseError, Target, TargetSession};
use loadline::load::{Connections, Observed, Observer, Recording, Source, Times, drive};
use loadline::operation::{Operation, OperationKind};
use loadline::queueing::Timer;
use loadline::report::samples::batches;
use loadline::statement::{Expect, Request, Step};
use loadline::store::{Sample, SampleBlock, SampleHeader, SampleOutcome, SampleReader, SampleWriter};
use loadline::trial::{Arrivals, Case, DatabaseSettings, Length, Levels, LoadSettings, Settings, Trial};
use proptest::prelude::*;

struct Reads;

impl Source for Reads {
    fn next(&mut self, request: &mut Request) -> Operation {
        request.steps.push(Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Rows });
        Operation::Read { record: 0 }
    }
}

struct Recorded(Recording);

impl Observer for Recorded {
    fn measure(&mut self) {}
    fn drained(&mut self) {}
    fn is_interrupted(&mut self) -> bool {
        false
    }
    fn recording(&self) -> Option<&Recording> {
        Some(&self.0)
    }
}

/// A file of a test's own.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Scratch(std::env::temp_dir().join(format!("loadline-{name}-{}.samples", std::process::id())))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn trial(load: &LoadSettings) -> Trial {
    Trial::new(Case::new(Levels::new(), Settings { load: load.clone(), ..Settings::default() }), 0, 7)
}

fn read(path: &Path) -> (SampleReader, Vec<Sample>, Vec<String>) {
    let mut reader = SampleReader::open(path).unwrap();
    let (mut block, mut all, mut kinds) = (SampleBlock::default(), Vec::new(), Vec::new());
    while reader.next_block(&mut block).unwrap() {
        all.extend_from_slice(&block.samples);
        kinds.extend(block.kinds.clone());
    }
    kinds.dedup();
    (reader, all, kinds)
}

/// Drives a load on a simulated database, and reads what was recorded of it.
fn recorded(config: &[(&str, &str)], load: &LoadSettings, on_threads: bool) -> (Observed, Vec<Sample>) {
    let config = config.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let settings = DatabaseSettings { name: "simulated".to_owned(), config, ..Default::default() };
    let target: Box<dyn Target> = database::find("simulated").unwrap().open(&settings, None).unwrap();
    let sessions = (0..load.clients).map(|_| target.open().unwrap());
    let connections = if on_threads {
        Connections::Sessions(sessions.collect())
    } else {
        Connections::Wires(sessions.map(|session| session.into_wire().ok().unwrap()).collect())
    };
    let sources = (0..load.clients).map(|_| Box::new(Reads) as Box<dyn Source>).collect();
    let session = |_| target.open();
    let lost = |_: Box<dyn TargetSession>| DatabaseError::Unavailable("no wire".to_owned());
    let wire = |_| target.open()?.into_wire().map_err(lost);
    let name = format!("engine-{on_threads}-{:?}-{:?}", load.arrivals, load.length).replace(['(', ')', '.'], "-");
    let file = Scratch::new(&name);
    let header = SampleHeader::new(&trial(load), "2026-01-01T00:00:00Z");
    let mut observer =
        Recorded(Recording::start(SampleWriter::create(&file.0, &header).unwrap(), Default::default()).unwrap());
    let observed = drive(load, 1, connections, sources, (&wire, &session), &mut observer).unwrap();
    let written = observer.0.finish().unwrap();
    let (reader, samples, kinds) = read(&file.0);
    assert_eq!((reader.note(), written.samples), (None, samples.len() as u64));
    assert_eq!(reader.header, header);
    assert_eq!(kinds, ["read"]);
    assert_eq!(written.bytes, std::fs::metadata(&file.0).unwrap().len());
    (observed, samples)
}

#[test]
fn every_operation_of_a_closed_loop_is_kept_with_its_times_by_both_drivers() {
    let load = LoadSettings { clients: 3, length: Length::Operations(5_000), drain_s: 5.0, ..Default::default() };
    for on_threads in [false, true] {
        let (observed, samples) = recorded(&[("service", "10us")], &load, on_threads);
        let reads = &observed.tally.operations(&loadline::operation::KindNames::default())["read"];
        assert_eq!(samples.len(), 5_000);
        assert!(samples.iter().all(|sample| sample.is_measured && sample.outcome == SampleOutcome::Completed));
        let sum_ns: u128 = samples.iter().map(|sample| u128::from(sample.done_ns - sample.intended_ns)).sum();
        assert_eq!(sum_ns, reads.response_time.sum_ns(), "the same times that the histograms have");
        for (number, client) in (0..).zip(&observed.clients) {
            let own: Vec<&Sample> = samples.iter().filter(|sample| sample.client == number).collect();
            assert_eq!(own.len() as u64, client.completed);
            let most_ns = own.iter().map(|sample| sample.done_ns - sample.intended_ns).max().unwrap();
            assert_eq!(client.response_time.unwrap().max_s, most_ns as f64 / 1e9, "histograms per client agree");
        }
    }
}

#[test]
fn operations_of_the_warm_up_are_kept_and_marked() {
    let load =
        LoadSettings { clients: 2, length: Length::Seconds(0.3), warmup_s: 0.2, drain_s: 5.0, ..Default::default() };
    let (observed, samples) = recorded(&[("service", "1ms")], &load, false);
    let (measured, warm): (Vec<&Sample>, Vec<&Sample>) = samples.iter().partition(|sample| sample.is_measured);
    assert_eq!(
        measured.len() as u64,
        observed.tally.operations(&loadline::operation::KindNames::default())["read"].scheduled
    );
    assert!(!warm.is_empty() && warm.iter().all(|sample| sample.intended_ns < 200_000_000));
    assert!(measured.iter().all(|sample| (200_000_000..500_000_000).contains(&sample.intended_ns)));
}

#[test]
fn abandoned_and_unsent_operations_of_an_overload_are_kept_as_such() {
    let load = LoadSettings {
        arrivals: Arrivals::Poisson,
        rate_per_s: Some(2_000.0),
        clients: 2,
        length: Length::Seconds(0.4),
        drain_s: 0.05,
        ..Default::default()
    };
    for on_threads in [false, true] {
        let (observed, samples) = recorded(&[("service", "20ms"), ("distribution", "constant")], &load, on_threads);
        let reads = &observed.tally.operations(&loadline::operation::KindNames::default())["read"];
        let count = |outcome| samples.iter().filter(|sample| sample.outcome == outcome).count() as u64;
        assert_eq!(samples.len() as u64, reads.scheduled);
        assert_eq!(count(SampleOutcome::Abandoned) + count(SampleOutcome::Unsent), reads.abandoned);
        assert!(count(SampleOutcome::Unsent) > 100 && count(SampleOutcome::Completed) == reads.completed);
        let censored_ns = samples.iter().filter(|sample| sample.is_censored());
        let sum_ns: u128 = censored_ns.map(|sample| u128::from(sample.done_ns - sample.intended_ns)).sum();
        assert_eq!(sum_ns, reads.censored_time.sum_ns());
    }
}

/// Operations of an open loop at a rate with response times around a mean, as no trial made them.
fn synthetic(count: u64, rate_per_s: f64, mean_ns: f64) -> Vec<Sample> {
    let mut random = loadline::statistics::random::Random::new(3);
    let mut draw = |mean: f64| -mean * (1.0 - random.unit()).ln();
    let mut intended = 0.0;
    let mut next = |number: u64| {
        intended += draw(1e9 / rate_per_s);
        let (lag_ns, residence_ns) = (draw(mean_ns / 10.0) as u64, draw(mean_ns) as u64);
        let intended_ns = intended as u64;
        let sent_ns = intended_ns + lag_ns;
        let (client, kind) = ((number % 64) as u32, u16::from(number.is_multiple_of(5)));
        let outcome = if number % 1_000 == 7 { SampleOutcome::Failed } else { SampleOutcome::Completed };
        Sample {
            intended_ns,
            sent_ns,
            done_ns: sent_ns + residence_ns,
            client,
            kind,
            outcome,
            is_measured: number > 50,
        }
    };
    (0..count).map(&mut next).collect()
}

fn write(path: &Path, samples: &[Sample]) -> u64 {
    let header = SampleHeader::new(&trial(&LoadSettings::default()), "2026-01-01T00:00:00Z");
    let mut writer = SampleWriter::create(path, &header).unwrap();
    for chunk in samples.chunks(2_048) {
        let kinds = ["select", "update"].map(str::to_owned).to_vec();
        writer.write(&SampleBlock { kinds, samples: chunk.to_vec() }).unwrap();
    }
    writer.finish().unwrap();
    assert_eq!(writer.samples, samples.len() as u64);
    writer.bytes
}

#[test]
fn an_operation_takes_at_most_16_bytes_from_slow_to_fast() {
    for (rate_per_s, mean_ns) in [(10.0, 5e8), (1_000.0, 2e6), (100_000.0, 100_000.0), (1_000.0, 5e9)] {
        let file = Scratch::new(&format!("size-{rate_per_s}-{mean_ns}"));
        let samples = synthetic(50_000, rate_per_s, mean_ns);
        let each = write(&file.0, &samples) as f64 / 50_000.0;
        assert!(each <= 16.0, "{each} bytes at {rate_per_s}/s");
        assert_eq!(read(&file.0).1, samples);
    }
}

#[test]
fn batches_have_the_times_of_the_measured_phase_from_either_timer() {
    let file = Scratch::new("batches");
    let samples = synthetic(20_000, 1_000.0, 2e6);
    write(&file.0, &samples);
    let counts: Vec<&Sample> = samples.iter().filter(|sample| sample.is_measured && sample.is_completed()).collect();
    for timer in [Timer::Intended, Timer::Sent] {
        let begin = |sample: &Sample| if timer == Timer::Intended { sample.intended_ns } else { sample.sent_ns };
        let found = batches(&mut SampleReader::open(&file.0).unwrap(), timer).unwrap();
        let sum_ns: u128 = counts.iter().map(|sample| u128::from(sample.done_ns - begin(sample))).sum();
        assert_eq!((found.count(), found.all().sum_ns()), (counts.len() as u64, sum_ns));
        assert!(found.mean_error_ns().is_some());
    }
}

#[test]
fn what_is_no_file_of_samples_is_refused() {
    let file = Scratch::new("other");
    for (text, says) in
        [("sequence,started\n1,2,3,4,5,6,7\n", "does not begin with"), ("loadline", "ends within its header")]
    {
        std::fs::write(&file.0, text).unwrap();
        let error = SampleReader::open(&file.0).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

/// Five blocks in a file, and where the header ends.
fn five_blocks(file: &Scratch) -> (Vec<Sample>, Vec<u8>, usize) {
    let samples = synthetic(10_000, 1_000.0, 1e6);
    write(&file.0, &samples);
    let bytes = std::fs::read(&file.0).unwrap();
    let header = bytes.windows(4).position(|four| four == b"LLSB").unwrap();
    (samples, bytes, header)
}

#[test]
fn when_the_file_cannot_be_written_any_more_no_thread_waits_and_the_end_says_so() {
    let pipe = Scratch::new("pipe");
    let name = std::ffi::CString::new(pipe.0.to_str().unwrap()).unwrap();
    // SAFETY: the pointer is to a string of ours that ends with a zero byte and outlives the call.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let path = pipe.0.clone();
    // A reader that goes away behind the header: writing fails from then on.
    let reader = std::thread::spawn(move || {
        let mut file = std::fs::File::open(path).unwrap();
        let mut first = [0; 19];
        std::io::Read::read_exact(&mut file, &mut first).unwrap();
    });
    let header = SampleHeader::new(&trial(&LoadSettings::default()), "2026-01-01T00:00:00Z");
    let recording = Recording::start(SampleWriter::create(&pipe.0, &header).unwrap(), Default::default()).unwrap();
    reader.join().unwrap();
    let mut recorder = recording.recorder(0);
    for number in 0..400_000 {
        let times = Times { intended_ns: number, sent_ns: number, done_ns: number };
        recorder.record(0, OperationKind::Read, times, true, SampleOutcome::Completed);
    }
    drop(recorder);
    let error = recording.finish().unwrap_err().to_string();
    assert!(error.contains("pipe"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_torn_file_gives_its_longest_prefix_of_whole_blocks_and_says_so(share in 0.0f64..1.0) {
        let file = Scratch::new("torn");
        let (samples, bytes, header) = five_blocks(&file);
        let length = header + ((bytes.len() - header) as f64 * share) as usize;
        std::fs::write(&file.0, &bytes[..length]).unwrap();
        let (reader, found, _) = read(&file.0);
        prop_assert!(found.len() % 2_048 == 0 || found.len() == samples.len());
        prop_assert_eq!(&found[..], &samples[..found.len()]);
        prop_assert!(reader.note().unwrap().contains("torn"));
    }

    #[test]
    fn a_changed_byte_ends_the_samples_before_its_block_and_is_told(share in 0.0f64..1.0, flip in 1u8..=255) {
        let file = Scratch::new("changed");
        let (samples, mut bytes, header) = five_blocks(&file);
        let place = header + ((bytes.len() - header - 1) as f64 * share) as usize;
        bytes[place] ^= flip;
        std::fs::write(&file.0, &bytes).unwrap();
        let (reader, found, _) = read(&file.0);
        prop_assert_eq!(&found[..], &samples[..found.len()]);
        prop_assert!(reader.note().is_some(), "{} samples of {}", found.len(), samples.len());
    }
}
