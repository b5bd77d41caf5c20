//! A private server of another target, and its address for the target `odbc`. Main type: [`Behind`].

use loadline::database::{self, Database};
use loadline::server::Server;
use loadline::trial::DatabaseSettings;

/// A server that is reached through its ODBC driver.
pub struct Behind {
    pub server: Server,
    /// The connection string, without the password.
    pub string: String,
    pub password: String,
}

impl Behind {
    /// Starts a server of this target; `None`, with a message, where there is no driver manager.
    pub fn start(name: &str, config: &[(&str, &str)]) -> Option<Self> {
        if let Err(missing) = database::odbc::library::find() {
            eprintln!("{missing}: nothing was checked");
            return None;
        }
        let driver = match name {
            "postgres" => "PostgreSQL Unicode",
            "mariadb" => "MariaDB Unicode",
            other => panic!("{other} has no driver here"),
        };
        let config = config.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let settings = DatabaseSettings { name: name.to_owned(), config, ..DatabaseSettings::default() };
        let recipe = database::find(name).unwrap().recipe.unwrap();
        let server = Server::start(recipe, &settings, None)
            .unwrap_or_else(|error| panic!("this test needs an installed server: {error}"));
        let there = server.endpoint();
        let (host, port) = there.tcp.clone().unwrap();
        let string =
            format!("Driver={driver};Server={host};Port={port};Database={};UID={}", there.database, there.user);
        let password = there.password.clone();
        Some(Behind { server, string, password })
    }

    /// Returns the address with the password.
    pub fn url(&self) -> String {
        format!("odbc://{};PWD={{{}}}", self.string, self.password)
    }

    /// Opens the database through the driver.
    pub fn open(&self) -> Box<dyn Database> {
        let entry = database::find("odbc").unwrap();
        let endpoint = entry.read_url.unwrap()(&self.url()).unwrap();
        let settings =
            DatabaseSettings { name: "odbc".to_owned(), url: Some(self.url()), ..DatabaseSettings::default() };
        entry.open_sql(&settings, Some(&endpoint)).unwrap()
    }
}
