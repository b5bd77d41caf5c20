//! How fast one core processes blocks: from the inbox into the file store with records in SQLite (or MariaDB), beside
//! `age -d | zstd -d | tar x` on the same blocks, which verifies no signature, checks nothing and syncs nothing.
//!
//! `cargo bench --bench blocks`; both sides are pinned to one CPU and alternate. `BLOCKS` (64), `WIDTH` (4000: blocks of about 1 MB), `ROUNDS` (7) and
//! `DATABASE` (`sqlite`, or `mariadb` with a private server) change it. It needs age, zstd, tar, taskset.

#[expect(dead_code, reason = "not every benchmark uses all of it")]
#[path = "../shared/mod.rs"]
mod shared;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use loadline::block::age::Identity;
use loadline::block::image::{Scene, draw};
use loadline::block::ssh::SigningKey;
use loadline::block::{Sealer, split};
use loadline::data::violation::generate;
use loadline::database;
use loadline::recorder::inbox::{Bounds, Inbox, Receiving};
use loadline::server::Server;
use loadline::trial::DatabaseSettings;
use shared::process::{Usage, run};
use shared::ratio::{from_environment, median_of, ratios, show};

/// The processing's side of a round: a process of its own, which ends when the inbox is empty.
const CHILD: &str = "LOADLINE_BENCH_BLOCKS_CONFIG";

fn main() {
    if let Ok(config) = std::env::var(CHILD) {
        return process(&config);
    }
    let directory = std::env::temp_dir().join(format!("loadline-bench-blocks-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("the temporary directory can be written to");
    let made = make(&directory);
    let (blocks, bytes) = (made.len(), made.iter().map(Vec::len).sum::<usize>());
    println!("{blocks} blocks, {:.2} MB each on average", bytes as f64 / blocks as f64 / 1e6);
    let name = std::env::var("DATABASE").unwrap_or_else(|_| "sqlite".to_owned());
    let settings = DatabaseSettings { name: name.clone(), ..DatabaseSettings::default() };
    let recipe = database::find(&name).and_then(|entry| entry.recipe);
    let server = recipe.map(|recipe| Server::start(recipe, &settings, None).expect("the private server starts"));
    let url = server.as_ref().map(|server| shared::ours::url(&name, server.endpoint()));
    let rounds = from_environment("ROUNDS", 7.0) as usize;
    let (mut ours, mut others) = (Vec::new(), Vec::new());
    // The first round of both is discarded.
    for round in 0..=rounds {
        let (a, b) = (ours_once(&directory, &made, &name, url.as_deref(), round), theirs_once(&directory, bytes));
        if round > 0 {
            ours.push(a);
            others.push(b);
        }
    }
    let rate = |usage: &Usage| usage.operations_per_s();
    let per_cpu = |usage: &Usage| 1e6 / usage.cpu_us_per_operation();
    println!(
        "processing into files and {name}: {:.0} MB/s, {:.0} MB per second of CPU",
        median_of(&ours, rate),
        median_of(&ours, per_cpu)
    );
    println!(
        "age -d | zstd -d | tar x:          {:.0} MB/s, {:.0} MB per second of CPU",
        median_of(&others, rate),
        median_of(&others, per_cpu)
    );
    println!(
        "ratio: {} of MB/s, {} of MB per second of CPU, n = {rounds}",
        show(&ratios(&ours, &others, rate)),
        show(&ratios(&ours, &others, per_cpu))
    );
    drop(server);
    let _ = std::fs::remove_dir_all(&directory);
}

/// Keys, blocks in memory, and for the other side the ciphertexts as files.
fn make(directory: &Path) -> Vec<Vec<u8>> {
    let (identity, key) =
        (Identity::generate().expect("random numbers"), SigningKey::generate().expect("random numbers"));
    let camera = generate(1, 1, 0).camera;
    let write = |name: &str, text: String| std::fs::write(directory.join(name), text).expect("it can be written");
    write("centre.key", identity.secret_text());
    write("signers", format!("{camera} {}\n", key.public().to_line()));
    let sealer = Sealer::new(identity.recipient(), key);
    let scene = Scene { width: from_environment("WIDTH", 4000.0) as u16, ..Scene::default() };
    let blocks = (0..from_environment("BLOCKS", 64.0) as u64).map(|sequence| {
        let violation = generate(1, 1, sequence);
        let image = draw(&violation, &scene, 1).expect("it can be drawn");
        let block = sealer.seal(&violation, &image).expect("it can be sealed");
        std::fs::write(directory.join(format!("{sequence}.age")), split(&block).expect("it was made just now").1)
            .expect("it can be written");
        block
    });
    blocks.collect()
}

fn ours_once(directory: &Path, blocks: &[Vec<u8>], name: &str, url: Option<&str>, round: usize) -> Usage {
    let own = directory.join(format!("round-{round}"));
    std::fs::create_dir_all(&own).expect("it can be made");
    let path = |name: &str| own.join(name).display().to_string();
    let inbox = Inbox::open(Path::new(&path("inbox")), Bounds { all: 1 << 40, camera: 1 << 40, block: 1 << 24 })
        .expect("an inbox");
    let receiving = Receiving::start(&inbox).expect("an intake");
    let camera = generate(1, 1, 0).camera;
    for (number, block) in blocks.iter().enumerate() {
        let mut upload = receiving.begin(&camera, &format!("{number}")).expect("there is room");
        upload.write(block).and_then(|()| upload.finish()).expect("it is acknowledged");
    }
    let target = match url {
        Some(url) => {
            let settings =
                DatabaseSettings { name: name.to_owned(), url: Some(url.to_owned()), ..DatabaseSettings::default() };
            clear(&settings);
            format!("url = \"{url}\"")
        }
        None => format!("path = \"{}\"", path("violations.db")),
    };
    let config = path("c.toml");
    let key = |name: &str| directory.join(name).display().to_string();
    let text = format!(
        "[database]\nname = \"{name}\"\n{target}\n[inbox]\npath = \"{}\"\nbound = \"900GiB\"\nblock = \"16MiB\"\n[processing]\nidentity = \"{}\"\nsigners = \"{}\"\nimages = \"{}\"\nage = \"10000d\"\n",
        path("inbox"),
        key("centre.key"),
        key("signers"),
        path("images"),
    );
    std::fs::write(&config, text).expect("it can be written");
    let this = std::env::current_exe().expect("this program has a path");
    let mut command = Command::new("taskset");
    let begun = Instant::now();
    let (output, usage) = run(command.args(["-c", "1"]).arg(this).env(CHILD, &config));
    let elapsed_s = begun.elapsed().as_secs_f64();
    assert_eq!(output.trim(), format!("{} committed", blocks.len()));
    let _ = std::fs::remove_dir_all(&own);
    let megabytes = blocks.iter().map(Vec::len).sum::<usize>() as f64 / 1e6;
    usage.with(megabytes, elapsed_s)
}

/// Removes the tables of the round before.
fn clear(settings: &DatabaseSettings) {
    let entry = database::find(&settings.name).expect("it is in the registry");
    let read_url = entry.read_url.expect("it is a server");
    let endpoint = read_url(settings.url.as_deref().unwrap_or_default()).expect("the URL is good");
    let database = entry.open_sql(settings, Some(&endpoint)).expect("it opens");
    let mut session = database.connect().expect("it connects");
    for table in ["violation_values", "violation_identity", "loadline_block", "loadline_replay", "violation_image"] {
        session.run(&format!("DROP TABLE IF EXISTS {table}")).expect("it can be dropped");
    }
}

fn theirs_once(directory: &Path, bytes: usize) -> Usage {
    let script = "for f in *.age; do mkdir -p out/$f; age -d -i centre.key $f | zstd -q -d | tar -xf - -C out/$f; done";
    let mut command = Command::new("taskset");
    let begun = Instant::now();
    let (_, usage) = run(command.args(["-c", "1", "bash", "-c", script]).current_dir(directory));
    let elapsed_s = begun.elapsed().as_secs_f64();
    let _ = std::fs::remove_dir_all(directory.join("out"));
    usage.with(bytes as f64 / 1e6, elapsed_s)
}

/// Processes what waits, and says how many records were committed.
fn process(config: &str) {
    let text = std::fs::read_to_string(PathBuf::from(config)).expect("the configuration is there");
    let config = loadline::recorder::config::read(&text, config).expect("the configuration is good");
    let entry = database::find(&config.database.name).expect("it is in the registry");
    let endpoint =
        entry.read_url.zip(config.database.url.as_deref()).map(|(read, url)| read(url).expect("the URL is good"));
    let database = entry.open_sql(&config.database, endpoint.as_ref()).expect("it opens");
    let settings = config.processing.as_ref().expect("it is there");
    let processing =
        loadline::recorder::processing::Processing::start(&config, settings, database.into()).expect("it starts");
    while processing.counts().waiting > 0 {
        assert_eq!(processing.failure(), None);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    println!("{} committed", processing.stop().committed);
}
