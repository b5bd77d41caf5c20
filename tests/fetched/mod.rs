//! What `loadline fetch` brings, as users see it: what is said without it, and what is taken.

use loadline::database::package::Package;
use loadline::database::recipe::Recipe;
use loadline::trial::DatabaseSettings;

use crate::program::{Scratch, outcome};

/// Returns whether the server of a recipe is not here, and says so.
pub fn is_missing(recipe: &dyn Recipe) -> bool {
    let missing = recipe.find_binary(&DatabaseSettings::default()).err();
    missing.iter().for_each(|missing| eprintln!("{missing}: nothing was checked"));
    missing.is_some()
}

/// How a study runs that only has to run.
pub const SHORT: &str =
    "operations = 300\nclients = 2\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n";

/// A study of 300 records.
pub fn study(database: &str, layout: &str, workload: &str) -> String {
    format!(
        "name = \"fetched\"\n[database]\n{database}\n[record]\nrows = 300\n[layout]\nname = \"{layout}\"\n[workload]\n{workload}\n[load]\n{SHORT}"
    )
}

/// Without its server, which runs in Java, a database is refused while a study is planned; an address needs neither, and a list of databases goes on without it.
pub fn is_refused_without_its_server(package: &Package, url: &str) {
    let Package { name, title, variable, .. } = package;
    let scratch = Scratch::new();
    scratch.write("s.toml", &study(&format!("name = \"{name}\""), "wide", "name = \"write\""));
    let elsewhere = outcome(scratch.command(&["plan", "s.toml"]).env(variable, "/nonexistent"));
    elsewhere.refused(&[variable, &format!("where {title} is not")]);
    let absent = outcome(scratch.command(&["plan", "s.toml"]).env_remove(variable));
    absent.refused(&[&format!("{title} is not here"), &format!("loadline fetch {name}"), variable]);
    let binary = "database.binary=/nonexistent/java";
    let without_java = outcome(scratch.command(&["plan", "s.toml", "--set", binary]).env_remove(variable));
    without_java.refused(&["database.binary", "Java"]);
    let database = format!("name = \"{name}\"\nurl = \"{url}\"");
    scratch.write("s.toml", &study(&database, "wide", "name = \"write\""));
    scratch.run(&["plan", "s.toml"]).expect(0);
    let both = "where_possible = true\nname = \"list\"\n[record]\nrows = 100\n[layout]\nname = \"wide\"\n[workload]\nname = \"write\"\n[load]\n";
    let factors = format!("[factors]\n\"database.name\" = [\"sqlite\", \"{name}\"]\n");
    scratch.write("s.toml", &format!("{both}{SHORT}{factors}"));
    let told = outcome(scratch.command(&["plan", "s.toml"]).env_remove(variable)).expect(0).stdout;
    assert!(told.contains(&format!("left out: database.name = {name}")), "{told}");
}

/// Only the published files are taken, and only where they can be kept.
pub fn is_taken_only_as_published(package: &Package) {
    let scratch = Scratch::new();
    let fetch = || {
        let mut command = scratch.command(&["fetch", package.name, "--from", "."]);
        command.env("LOADLINE_CACHE", scratch.path("cache"));
        command
    };
    scratch.run(&["fetch", package.name]).refused(&["no place to keep it", "LOADLINE_CACHE", package.variable]);
    outcome(&mut fetch()).refused(&["there is no such file", &package.files[0].url]);
    for file in &package.files {
        scratch.write(file.name(), "something else");
    }
    let told = outcome(&mut fetch()).expect(1);
    assert!(told.stderr.contains(&format!("has 14 bytes instead of {}", package.files[0].bytes)), "{told:?}");
    let left: Vec<_> = std::fs::read_dir(scratch.path("cache/libraries")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}
