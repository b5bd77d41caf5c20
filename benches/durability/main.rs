//! What damage costs a queue on a disk: the recorder's spool, a file store of NATS JetStream, and Telegraf's disk buffer take the same messages, are killed, and then have a bit flipped,
//! a file cut or a file removed, or are put back as they were when half was written. What can be read afterwards is held against what was acknowledged.
//!
//! `cargo bench --bench durability`; `TRIALS` (40) of each kind and `MESSAGES` (40000) in the environment. The others are programs of a few lines beside this one, which are built by
//! `go build` in `benches/durability/nats` and `benches/durability/telegraf`; `NATS` and `TELEGRAF` say where they are, and who is not there is left out.

#[expect(dead_code, reason = "this benchmark uses a part of what is shared")]
#[path = "../shared/mod.rs"]
mod shared;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use loadline::recorder::line::Precision;
use loadline::recorder::spool::{Offer, SpoolFile};

use shared::ratio::from_environment;

/// The spool's bound.
const BOUND: u64 = 256 << 20;
/// Messages that are made durable together.
const GROUP: u64 = 8;
/// How long reading may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a store stands still before it is killed.
const AFTERWARDS: Duration = Duration::from_millis(1_500);
/// Messages that are added to a store that was put back.
const LATER: u64 = 1_000;

/// What is done to a store.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    Flip,
    Cut,
    Remove,
    Restore,
}

const FAULTS: [(Fault, &str); 4] = [
    (Fault::Flip, "one bit flipped"),
    (Fault::Cut, "the newest file cut"),
    (Fault::Remove, "one file removed"),
    (Fault::Restore, "an older copy put back, 1,000 more written"),
];

/// A store, and what speaks to it.
struct Store {
    name: &'static str,
    program: PathBuf,
}

/// What became of the messages of a trial.
#[derive(Default)]
struct Outcome {
    lost: u64,
    wrong: u64,
    doubled: u64,
    is_opened: bool,
    /// Messages that it says to be lost or damaged, where it gives a number.
    told: Option<u64>,
    /// Whether it says anything at all.
    is_said: bool,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("write") => return write_spool(&arguments),
        Some("read") => return read_spool(Path::new(&arguments[2])),
        _ => {}
    }
    let (trials, messages) = (from_environment("TRIALS", 40.0) as u64, from_environment("MESSAGES", 40_000.0) as u64);
    let own = std::env::current_exe().expect("the system says what runs");
    let other = |name: &'static str, key: &str| std::env::var_os(key).map(|path| Store { name, program: path.into() });
    let stores = [
        Some(Store { name: "loadline's spool", program: own }),
        other("NATS JetStream", "NATS"),
        other("Telegraf", "TELEGRAF"),
    ];
    println!("{trials} trials of each kind, {messages} messages; lost is the median and the most of a trial");
    println!(
        "| damage | store | does not open | lost | wrong or doubled | number told is right | says something | says nothing of a loss |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (fault, what) in FAULTS {
        for store in stores.iter().flatten() {
            let outcomes = store.suffer(fault, trials, messages);
            show(what, store.name, &outcomes);
        }
    }
}

fn show(what: &str, name: &str, outcomes: &[Outcome]) {
    let opened: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.is_opened).collect();
    let count = |is_counted: &dyn Fn(&Outcome) -> bool| opened.iter().filter(|outcome| is_counted(outcome)).count();
    let mut lost: Vec<u64> = opened.iter().map(|outcome| outcome.lost).collect();
    lost.sort_unstable();
    let shown = lost.get(lost.len() / 2).map_or("-".to_owned(), |median| format!("{median}, {}", lost[lost.len() - 1]));
    let spoilt: u64 = opened.iter().map(|outcome| outcome.wrong + outcome.doubled).sum();
    println!(
        "| {what} | {name} | {} of {} | {shown} | {spoilt} | {} | {} | {} |",
        outcomes.len() - opened.len(),
        outcomes.len(),
        count(&|one| one.told == Some(one.lost)),
        count(&|one| one.is_said || one.told.is_some_and(|told| told > 0)),
        count(&|one| one.lost > 0 && !one.is_said && one.told.is_none_or(|told| told == 0)),
    );
}

impl Store {
    /// The same damage in so many places.
    fn suffer(&self, fault: Fault, trials: u64, messages: u64) -> Vec<Outcome> {
        let place = PathBuf::from(format!("durability-{}", std::process::id()));
        let (whole, half, trial) = (place.join("whole"), place.join("half"), place.join("trial"));
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(&whole).expect("a directory can be made here");
        self.write(&whole, 1, messages / 2);
        copy(&whole, &half);
        self.write(&whole, 1 + messages / 2, messages - messages / 2);
        let mut dice = Dice(1);
        let outcomes = (0..trials).map(|_| {
            copy(if fault == Fault::Restore { &half } else { &whole }, &trial);
            match fault {
                Fault::Flip => flip(&trial, &mut dice),
                Fault::Cut => cut(&trial, &mut dice),
                Fault::Remove => remove(&trial, &mut dice),
                Fault::Restore => self.write(&trial, messages + 1, LATER),
            }
            let wanted: BTreeSet<u64> = match fault {
                Fault::Restore => (1..=messages / 2).chain(messages + 1..=messages + LATER).collect(),
                _ => (1..=messages).collect(),
            };
            self.read(&trial, &wanted)
        });
        let outcomes = outcomes.collect();
        std::fs::remove_dir_all(&place).expect("the benchmark's own directory can be removed");
        outcomes
    }

    /// Has messages written, and kills the program when all are acknowledged.
    fn write(&self, directory: &Path, first: u64, count: u64) {
        let mut child = self
            .command("write", directory)
            .args([first.to_string(), count.to_string()])
            .spawn()
            .expect("it can be started");
        let mut said = String::new();
        let out = child.stdout.take().expect("it is piped");
        BufReader::new(out).read_line(&mut said).expect("it can be read");
        std::thread::sleep(AFTERWARDS);
        end(&mut child);
        let mut errors = String::new();
        let mut from = child.stderr.take().expect("it is piped");
        let _ = from.read_to_string(&mut errors);
        assert_eq!(said.trim(), "written", "{} writes what it is given: {errors}", self.name);
    }

    fn read(&self, directory: &Path, wanted: &BTreeSet<u64>) -> Outcome {
        let mut child = self.command("read", directory).spawn().expect("it can be started");
        let (mut out, mut errors) =
            (child.stdout.take().expect("it is piped"), child.stderr.take().expect("it is piped"));
        let lines = std::thread::spawn(move || {
            let mut text = String::new();
            out.read_to_string(&mut text).map(|_| text)
        });
        let said = std::thread::spawn(move || {
            let mut text = Vec::new();
            errors.read_to_end(&mut text).map(|_| text)
        });
        let given_up = Instant::now() + PATIENCE;
        let status = loop {
            match child.try_wait().expect("it is a child") {
                Some(status) => break Some(status),
                None if Instant::now() > given_up => break None,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        end(&mut child);
        let lines = lines.join().expect("it reads").expect("it is text");
        let said = said.join().expect("it reads").expect("it can be read");
        let (mut found, mut outcome) = (BTreeSet::new(), Outcome::default());
        for line in lines.lines() {
            match line.split_once(' ') {
                Some(("n", number)) => {
                    let number = number.parse().expect("it is a number");
                    outcome.doubled += u64::from(!found.insert(number));
                }
                Some(("told", number)) => outcome.told = number.parse().ok(),
                _ => outcome.wrong += 1,
            }
        }
        outcome.lost = wanted.difference(&found).count() as u64;
        outcome.is_opened = status.is_some_and(|status| status.success());
        outcome.is_said = !said.is_empty();
        outcome
    }

    fn command(&self, what: &str, directory: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(what).arg(directory).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

fn end(child: &mut Child) {
    // One that has ended already cannot be killed, which is as well.
    let _ = child.kill();
    let _ = child.wait();
}

/// Files of a store in the order in which they were written last, with how many of their bytes are not 0.
fn files(directory: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).expect("it can be read") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).expect("it can be read");
            let written = std::fs::metadata(&path).and_then(|about| about.modified()).expect("it has a time");
            found.push((written, path, used(&bytes)));
        }
    }
    found.sort();
    found.into_iter().filter(|(.., used)| *used > 0).map(|(_, path, used)| (path, used)).collect()
}

fn used(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte != 0).count() as u64
}

/// A bit of a byte that is not 0, any as likely as any other: much of a preallocated file is nothing.
fn flip(directory: &Path, dice: &mut Dice) {
    let files = files(directory);
    let mut left = dice.below(files.iter().map(|(_, used)| used).sum());
    for (path, used) in files {
        if left < used {
            let mut bytes = std::fs::read(&path).expect("it can be read");
            let mut places = bytes.iter().enumerate().filter(|(_, byte)| **byte != 0).map(|(at, _)| at);
            let at = places.nth(left as usize).expect("there are so many");
            bytes[at] ^= 1 << dice.below(8);
            return std::fs::write(&path, bytes).expect("it can be written");
        }
        left -= used;
    }
}

fn cut(directory: &Path, dice: &mut Dice) {
    let data = data_files(directory);
    let (path, _) = data.last().expect("there is one");
    let bytes = std::fs::read(path).expect("it can be read");
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
    let file = std::fs::File::options().write(true).open(path).expect("it can be opened");
    file.set_len(dice.below(end)).expect("it can be cut");
}

fn remove(directory: &Path, dice: &mut Dice) {
    let data = data_files(directory);
    std::fs::remove_file(&data[dice.below(data.len() as u64) as usize].0).expect("it can be removed");
}

/// The files that messages are in: those that have a good part of all bytes, the newest last.
fn data_files(directory: &Path) -> Vec<(PathBuf, u64)> {
    let mut files = files(directory);
    let all: u64 = files.iter().map(|(_, used)| used).sum();
    files.retain(|(_, used)| used * 50 > all);
    files
}

fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    let copied =
        Command::new("cp").args(["-r", "-p", "--sparse=always"]).args([from, to]).status().expect("cp can be started");
    assert!(copied.success(), "it can be copied");
}

/// Numbers that are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = step(self.0);
        (self.0 >> 16) % below
    }
}

fn step(number: u64) -> u64 {
    number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}

/// What message n says: the same in every program here.
fn content(number: u64) -> String {
    let (mut text, mut x) = (format!("{number}:"), step(number));
    for _ in 0..8 + number % 16 {
        x = step(x);
        text.push_str(&format!("{x:016x}"));
    }
    text
}

fn open(directory: &Path) -> SpoolFile {
    SpoolFile::open(&directory.join("spool"), BOUND, Duration::from_secs(60)).unwrap_or_else(|error| {
        eprintln!("{error}");
        std::process::exit(3)
    })
}

fn write_spool(arguments: &[String]) {
    let number = |at: usize| arguments[at].parse::<u64>().expect("it is a number");
    let (first, count) = (number(3), number(4));
    let mut file = open(Path::new(&arguments[2]));
    file.set_lanes(1).expect("one lane is what it has");
    for begin in (first..first + count).step_by(GROUP as usize) {
        let mut group = file.begin().expect("the spool can be written");
        for number in begin..(begin + GROUP).min(first + count) {
            let offer = Offer {
                lane: 0,
                source: "durability".into(),
                sender: "".into(),
                message_id: String::new(),
                received_ns: 1,
                precision: Precision::Nanoseconds,
                rows: 1,
                body: content(number).into_bytes(),
                is_packed: false,
            };
            group.append(&offer).expect("there is room");
        }
        group.commit().expect("the spool can be written");
        file.tidy().expect("the spool can be written");
    }
    println!("written");
    // The recorder goes on looking after it as well.
    loop {
        std::thread::sleep(Duration::from_millis(100));
        file.tidy().expect("the spool can be written");
    }
}

fn read_spool(directory: &Path) {
    let file = open(directory);
    let (reader, mut after, mut told) = (file.reader(), 0, file.damage().rows);
    loop {
        let found = reader.read(0, (after, i64::MAX), 1 << 20, u64::MAX).expect("it can be read");
        let Some(last) = found.last() else { break };
        after = last.as_ref().map_or_else(|(entry, _)| entry.sequence, |entry| entry.sequence);
        for one in found {
            match one {
                Ok(entry) => {
                    let text = String::from_utf8_lossy(&entry.offer.body).into_owned();
                    let number = text.split(':').next().and_then(|number| number.parse().ok());
                    match number.filter(|number| content(*number) == text) {
                        Some(number) => println!("n {number}"),
                        None => println!("wrong"),
                    }
                }
                Err((_, refusal)) => told += u64::from(refusal.rows),
            }
        }
    }
    // As the recorder's log says it.
    if file.damage().files > 0 {
        eprintln!("{} files are damaged or gone", file.damage().files);
    }
    if file.damage().uncertain_rows > 0 {
        eprintln!("{} may be missing that were just being written", file.damage().uncertain_rows);
    }
    println!("told {told}");
}
