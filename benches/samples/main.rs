//! What raw samples cost: nanoseconds and bytes of each operation while a trial runs, and seconds and memory of a fit over all.
//!
//! `cargo bench --bench samples`; `SAMPLES` in the environment changes how many operations there are (10 million). The run
//! that is fitted is a real one of the simulated database at eight rates, whose samples are then replaced by as many of a
//! simulated M/M/1 queue at the same rates, because it would take hours to measure them. Its arrivals are constant, so that the
//! rates of both agree exactly.

#[expect(dead_code, reason = "this benchmark uses a part of what is shared")]
#[path = "../shared/mod.rs"]
mod shared;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use loadline::histogram::{CompactHistogram, Histogram};
use loadline::load::{Recording, Times};
use loadline::operation::OperationKind;
use loadline::statistics::random::Random;
use loadline::store::{Sample, SampleBlock, SampleHeader, SampleOutcome, SampleReader, SampleWriter};

use shared::process::run;
use shared::ratio::{from_environment, show};

/// Arrival rates per second of the run, of which the server carries 1,000.
const RATES: [f64; 8] = [100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0];

/// The operations of an M/M/1 queue with a service of 1 ms, first come, first served.
struct Queue {
    random: Random,
    gap_ns: f64,
    intended_ns: f64,
    free_ns: f64,
}

impl Queue {
    fn new(rate_per_s: f64) -> Self {
        Queue { random: Random::new(rate_per_s as u64), gap_ns: 1e9 / rate_per_s, intended_ns: 0.0, free_ns: 0.0 }
    }

    fn next(&mut self) -> Times {
        let mut draw = |mean: f64| -mean * (1.0 - self.random.unit()).ln();
        self.intended_ns += draw(self.gap_ns);
        self.free_ns = self.free_ns.max(self.intended_ns) + draw(1e6);
        let intended_ns = self.intended_ns as u64;
        Times { intended_ns, sent_ns: intended_ns + 2_000, done_ns: self.free_ns as u64 + 2_000 }
    }
}

fn main() {
    let samples = from_environment("SAMPLES", 10e6) as u64;
    let directory = std::env::temp_dir().join(format!("loadline-samples-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("the temporary directory can be written to");
    let path = real_run(&directory);
    let files = files_of(&path);
    histograms(samples);
    recording(&files[0], samples);
    for (file, rate) in files.iter().zip(RATES) {
        replace(file, rate, samples / RATES.len() as u64);
    }
    fit(&path, samples);
    // It holds nothing that is needed.
    let _ = std::fs::remove_dir_all(directory);
}

/// A short run with raw samples.
fn real_run(directory: &Path) -> PathBuf {
    let study = format!(
        "name = \"samples\"\n[database]\nname = \"simulated\"\nconfig = {{ delay = \"50ms\" }}\n[load]\narrivals = \"constant\"\nclients = 64\nduration = \"1s\"\n\
         samples = true\n[factors]\n\"load.rate\" = {RATES:?}\n[repeat]\nrule = \"fixed\"\nleast = 1\n"
    );
    let (file, out) = (directory.join("study.toml"), directory.join("run"));
    std::fs::write(&file, study).expect("the temporary directory can be written to");
    run(Command::new(env!("CARGO_BIN_EXE_loadline")).args(["run", "--json"]).arg(file).arg("--out").arg(&out));
    out
}

/// The files of samples in the order of their rates.
fn files_of(run: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(run.join("samples")).expect("the run has samples");
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let rate = |path: &PathBuf| header_of(path).trial.case.settings.load.rate_per_s.unwrap_or(0.0);
    files.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
    files
}

fn header_of(path: &Path) -> SampleHeader {
    SampleReader::open(path).expect("it was written just now").header
}

/// What a load thread and the disk have to bear: as many operations as fast as they can be recorded.
fn recording(template: &Path, samples: u64) {
    let path = template.with_extension("bench");
    let recording =
        Recording::start(SampleWriter::create(&path, &header_of(template)).expect("there is room"), Default::default())
            .expect("there is a thread");
    let mut queue = Queue::new(800.0);
    let some: Vec<Times> = (0..1 << 16).map(|_| queue.next()).collect();
    let begun = Instant::now();
    let mut recorder = recording.recorder(0);
    for number in 0..samples {
        let times = some[number as usize % some.len()];
        recorder.record((number % 16) as u32, OperationKind::Select, times, true, SampleOutcome::Completed);
    }
    drop(recorder);
    let loop_s = begun.elapsed().as_secs_f64();
    let written = recording.finish().expect("there is room");
    let each_ns = |seconds: f64| seconds * 1e9 / samples as f64;
    println!(
        "recording {samples} operations: {:.1} ns each in the load thread, {:.1} ns until they are on disk, {:.2} bytes each",
        each_ns(loop_s - written.waited_s),
        each_ns(begun.elapsed().as_secs_f64()),
        written.bytes as f64 / samples as f64
    );
    let _ = std::fs::remove_file(path);
}

/// What the histograms cost: the four of a loop for each operation, and those of 64 clients besides.
fn histograms(samples: u64) {
    let mut queue = Queue::new(800.0);
    let some: Vec<Times> = (0..1 << 16).map(|_| queue.next()).collect();
    let mut of_loop: Vec<Histogram> = (0..4).map(|_| Histogram::new()).collect();
    let mut of_clients: Vec<CompactHistogram> = (0..64).map(|_| CompactHistogram::new()).collect();
    let mut each_ns = |is_per_client: bool| {
        let begun = Instant::now();
        for number in 0..samples {
            let times = some[number as usize % some.len()];
            of_loop[0].record(times.done_ns - times.intended_ns);
            of_loop[1].record(times.done_ns - times.sent_ns);
            of_loop[2].record(times.sent_ns - times.intended_ns);
            of_loop[3].record(times.sent_ns - times.intended_ns);
            if is_per_client {
                of_clients[number as usize % 64].record(times.done_ns - times.intended_ns);
            }
        }
        begun.elapsed().as_secs_f64() * 1e9 / samples as f64
    };
    let (mut without, mut with): (Vec<f64>, Vec<f64>) = Default::default();
    for _ in 0..7 {
        without.push(each_ns(false));
        with.push(each_ns(true));
    }
    println!("histograms: {} ns an operation per loop alone, {} ns per client too", show(&without), show(&with));
    black_box((&of_loop, &of_clients));
}

/// Replaces the samples of a trial.
fn replace(path: &Path, rate_per_s: f64, samples: u64) {
    let header = header_of(path);
    let mut file = SampleWriter::create(path, &header).expect("there is room");
    let mut queue = Queue::new(rate_per_s);
    let mut block = SampleBlock { kinds: vec!["insert".to_owned()], samples: Vec::new() };
    for number in 0..samples {
        let Times { intended_ns, sent_ns, done_ns } = queue.next();
        let (client, outcome) = ((number % 4) as u32, SampleOutcome::Completed);
        block.samples.push(Sample { intended_ns, sent_ns, done_ns, client, kind: 0, outcome, is_measured: true });
        if block.samples.len() == 2_048 {
            file.write(&block).expect("there is room");
            block.samples.clear();
        }
    }
    file.write(&block).and_then(|()| file.finish()).expect("there is room");
}

fn fit(path: &Path, samples: u64) {
    for model in ["mm1", "auto"] {
        let begun = Instant::now();
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
        let (text, usage) = run(command.arg("fit").arg(path).args(["--json", "--workers", "4", "--model", model]));
        let elapsed_s = begun.elapsed().as_secs_f64();
        let report: serde_json::Value = serde_json::from_str(&text).expect("loadline prints one JSON document");
        let mu = &report["fits"][0]["parameters"]["mu_per_s"];
        println!(
            "fit --model {model} over {samples} samples: {elapsed_s:.2} s, {:.1} MiB resident; best {}, mu = {} {}",
            usage.memory_mib(),
            report["best"],
            mu["value"],
            mu["ci95"]
        );
    }
}
