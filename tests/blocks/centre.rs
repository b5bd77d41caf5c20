//! A data centre for tests: keys, cameras, an inbox and a database in a directory.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use loadline::block::Sealer;
use loadline::block::age::Identity;
use loadline::block::image::{Scene, draw};
use loadline::block::ssh::SigningKey;
use loadline::data::violation::{Violation, generate};
use loadline::database::{self, Database};
use loadline::recorder::config::{self, Config};
use loadline::recorder::inbox::{Acknowledged, Inbox, Receiving};
use loadline::recorder::processing::{BlockCounts, Processing};
use loadline::server::Server;
use loadline::trial::DatabaseSettings;

/// A directory with everything in it, removed at the end.
pub struct Centre {
    pub directory: PathBuf,
    pub identity: Identity,
    pub database: String,
}

/// A camera with its key.
pub struct Camera {
    pub number: u64,
    pub name: String,
    pub sealer: Sealer,
}

impl Centre {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("loadline-blocks-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let identity = Identity::generate().unwrap();
        std::fs::write(directory.join("centre.key"), identity.secret_text()).unwrap();
        std::fs::write(directory.join("signers"), "").unwrap();
        let database = format!("name = \"sqlite\"\npath = \"{}\"", directory.join("violations.db").display());
        Centre { directory, identity, database }
    }

    pub fn path(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    /// A camera that is let in.
    pub fn camera(&self, number: u64) -> Camera {
        let key = SigningKey::generate().unwrap();
        let name = generate(1, number, 0).camera;
        let line = format!("{name} {}\n", key.public().to_line());
        let path = self.directory.join("signers");
        std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + &line).unwrap();
        Camera { number, name, sealer: Sealer::new(self.identity.recipient(), key) }
    }

    /// Text of a configuration for processing; `more` is appended.
    pub fn text(&self, layout: &str, processing: &str, more: &str) -> String {
        // The cameras' violations are of 2026, whenever the tests are run.
        let age = if processing.contains("age = ") { "" } else { "age = \"10000d\"\n" };
        format!(
            "[database]\n{}\n[layout]\nname = \"{layout}\"\n[inbox]\npath = \"{}\"\n[spool]\npath = \"{}\"\n[processing]\n\
             identity = \"{}\"\nsigners = \"{}\"\n{age}{processing}\n{more}\n",
            self.database,
            self.path("inbox"),
            self.path("spool"),
            self.path("centre.key"),
            self.path("signers"),
        )
    }

    /// Images in the folder `images`.
    pub fn config(&self, layout: &str) -> Config {
        let images = format!("images = \"{}\"", self.path("images"));
        config::read(&self.text(layout, &images, ""), "test.toml").unwrap()
    }

    pub fn inbox(&self) -> Inbox {
        let config = self.config("star");
        Inbox::open(&config.inbox.path, config.inbox.bounds).unwrap()
    }

    /// Puts a block into the inbox, acknowledged.
    pub fn upload(&self, camera: &str, name: &str, block: &[u8]) {
        let receiving = Receiving::start(&self.inbox()).unwrap();
        assert_eq!(upload(&receiving, camera, name, block), Acknowledged::New);
    }

    pub fn query(&self, sql: &str) -> Vec<String> {
        rows(&*open_database(&self.config("star")), sql)
    }
}

pub fn upload(receiving: &Receiving, camera: &str, name: &str, block: &[u8]) -> Acknowledged {
    let mut upload = receiving.begin(camera, name).unwrap();
    upload.write(block).unwrap();
    upload.finish().unwrap()
}

/// The answer's rows, each joined with `|`.
pub fn rows(database: &dyn Database, sql: &str) -> Vec<String> {
    let rows = database.connect().unwrap().query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    rows.into_iter().map(|row| row.into_iter().map(text).collect::<Vec<_>>().join("|")).collect()
}

pub fn open_database(config: &Config) -> Arc<dyn Database> {
    let entry = database::find(&config.database.name).unwrap();
    let url = entry.read_url.zip(config.database.url.as_deref());
    let endpoint = url.map(|(read, url)| read(url).unwrap());
    Arc::from(entry.open_sql(&config.database, endpoint.as_ref()).unwrap())
}

pub fn start(config: &Config) -> Processing {
    Processing::start(config, config.processing.as_ref().unwrap(), open_database(config)).unwrap()
}

/// A private server, and what `[database]` says of it.
pub fn start_server(name: &str) -> (Server, String) {
    let settings = DatabaseSettings { name: name.to_owned(), ..DatabaseSettings::default() };
    let recipe = database::find(name).unwrap().recipe.unwrap();
    let server = Server::start(recipe, &settings, None).unwrap();
    let endpoint = server.endpoint();
    let (user, password, schema) = (&endpoint.user, &endpoint.password, &endpoint.database);
    let socket = endpoint.unix.clone().unwrap();
    let url = match name {
        "mariadb" => format!("mysql://{user}:{password}@localhost/{schema}?socket={}", socket.display()),
        _ => {
            let (host, port) = (socket.parent().unwrap(), socket.extension().unwrap().to_str().unwrap());
            format!("postgres://{user}:{password}@localhost:{port}/{schema}?host={}", host.display())
        }
    };
    (server, format!("name = \"{name}\"\nurl = \"{url}\""))
}

/// A part of an image that none of the others has.
pub fn own_part<'a>(image: &'a [u8], others: &[Vec<u8>]) -> &'a [u8] {
    let mut parts = image.chunks_exact(64);
    parts.find(|part| others.iter().all(|other| !contains(other, part))).unwrap()
}

pub fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// A hash as digits.
pub fn sha256(bytes: &[u8]) -> String {
    ring::digest::digest(&ring::digest::SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Processes until nothing waits.
pub fn process(config: &Config) -> BlockCounts {
    let processing = start(config);
    wait_until(|| processing.counts().waiting == 0);
    assert_eq!(processing.failure(), None);
    processing.stop()
}

pub fn wait_until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(240), "what was waited for did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Camera {
    /// A violation, its image and its block.
    pub fn block(&self, sequence: u64) -> (Violation, Vec<u8>, Vec<u8>) {
        let violation = generate(1, self.number, sequence);
        let image = draw(&violation, &Scene { width: 160, ..Scene::default() }, 1).unwrap();
        let block = self.sealer.seal(&violation, &image).unwrap();
        (violation, image, block)
    }
}

impl Drop for Centre {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
