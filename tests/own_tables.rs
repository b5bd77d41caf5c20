//! Tables of a study's own, as users write them: made, filled, asked and dropped on real databases.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "recorder/harness.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod harness;
#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;

use harness::Target;
use program::Scratch;

const CUSTOMERS: &str = r#"
[[tables]]
name = "customers"
rows = 100
create = ["CREATE TABLE customers (id BIGINT PRIMARY KEY, name VARCHAR(20) NOT NULL, since TIMESTAMP NULL, share DECIMAL(6, 3))"]
columns = [
  { name = "id", fill = { sequence = [1, 1] } },
  { name = "name", fill = { random_text = 12 } },
  { name = "since", fill = { blocks = ["2026-01-01 00:00:00", "1h", 1] } },
  { name = "share", fill = { weighted = [[{ uniform = [0.5, 99.5] }, 9], [{ null = true }, 1]] } },
]
"#;

const ORDERS: &str = r#"
[[tables]]
name = "orders"
rows = 1000
create = ["CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT NOT NULL, drawn BIGINT NOT NULL, line INT NOT NULL, paid INT)"]
columns = [
  { name = "id", fill = { sequence = [1, 1] } },
  { name = "customer", fill = { blocks = [1, 1, 10] } },
  { name = "drawn", fill = { from = "SELECT id FROM customers" } },
  { name = "line", fill = { cycle = [1, 1, 10] } },
  { name = "paid", fill = { plus = [1, 5] } },
]
"#;

/// Two tables in two designs: customers, with ten orders each, that are found by an index or without one.
fn tables() -> String {
    let indexed = "design = \"indexed\"\nthen = [\"CREATE UNIQUE INDEX orders_of ON orders (customer, line)\"]\n";
    format!("{CUSTOMERS}{ORDERS}design = \"plain\"\n{ORDERS}{indexed}")
}

/// Statements that fail where a row is not as it was described.
const CHECKS: &str = r#"statements = [
  { name = "of a customer", sql = "SELECT id FROM orders WHERE customer = ?", params = [ { uniform = [1, 100] } ], rows = 10 },
  { name = "one", sql = "SELECT id FROM orders WHERE customer = ? AND line = ?", params = [ { uniform = [1, 100] }, { uniform = [1, 10] } ], rows = 1 },
  { name = "drawn of nobody", sql = "SELECT orders.id FROM orders LEFT JOIN customers ON customers.id = orders.drawn WHERE customers.id IS NULL", rows = 0 },
  { name = "otherwise paid", sql = "SELECT id FROM orders WHERE paid <> id + 5", rows = 0 },
  { name = "late", sql = "SELECT id FROM customers WHERE since >= '2026-01-05 00:00:00'", rows = 4 },
  { name = "short", sql = "SELECT id FROM customers WHERE LENGTH(name) <> 12 OR share < 0.5 OR share > 99.5", rows = 0 },
]
"#;

const LOAD: &str =
    "[load]\noperations = 300\nclients = 2\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 2\nmost = 2\n";

fn study(database: &str, workload: &str, more: &str) -> String {
    format!(
        "name = \"own\"\n[database]\n{database}\n[workload]\nname = \"sql\"\n{workload}\n{LOAD}\n{more}\n{}",
        tables()
    )
}

/// The address of a server that tests started.
fn url(target: &Target) -> String {
    let endpoint = target.endpoint.as_ref().unwrap();
    let (host, port) = endpoint.tcp.clone().unwrap();
    let scheme = if target.name == "postgres" { "postgres" } else { "mysql" };
    let (user, password, database) = (&endpoint.user, &endpoint.password, &endpoint.database);
    format!("{scheme}://{user}:{password}@{host}:{port}/{database}?sslmode=disable")
}

#[test]
fn each_design_has_its_tables_with_the_rows_that_were_described() {
    let scratch = Scratch::new();
    for name in ["sqlite", "postgres", "mariadb"] {
        let factors = "[factors]\n\"workload.design\" = [\"plain\", \"indexed\"]\n";
        scratch.write("s.toml", &study(&format!("name = \"{name}\""), CHECKS, factors));
        let plan = scratch.run(&["plan", "s.toml"]).expect(0).stdout;
        assert!(plan.contains("indexed: customers (100 rows), orders (1,000 rows)"), "{plan}");
        scratch.run_study("s.toml", name).expect(0);
        let stored = scratch.stored(name);
        assert_eq!(stored.len(), 4, "{name}");
        for trial in &stored {
            assert_eq!((trial.invalid_because.as_slice(), trial.failed()), (&[][..], 0), "{name}: {:?}", trial.errors);
        }
        let page = std::fs::read_to_string(scratch.path(name).join("report.html")).unwrap();
        assert!(page.contains("CREATE UNIQUE INDEX orders_of") && page.contains("id=\"tables\""), "{name}");
        // The file of the run is the study again, with its tables.
        let again = format!("{name}-again");
        scratch.run_study(&format!("{name}/run.toml"), &again).expect(0);
        assert!(scratch.stored(&again).iter().all(|trial| trial.invalid_because.is_empty() && trial.failed() == 0));
    }
}

#[test]
fn what_a_trial_changed_is_filled_anew_for_the_next() {
    let scratch = Scratch::new();
    let deletes = "design = \"plain\"\nstatements = [ { sql = \"DELETE FROM orders WHERE id = ?\", params = [ { sequence = [1, 1] } ], rows = 1 } ]\n";
    for name in ["sqlite", "postgres"] {
        scratch.write("s.toml", &study(&format!("name = \"{name}\""), deletes, ""));
        scratch.run_study("s.toml", name).expect(0);
        let stored = scratch.stored(name);
        assert!(stored.len() == 2 && stored.iter().all(|trial| trial.failed() == 0), "{name}: {stored:?}");
    }
}

#[test]
fn on_a_server_of_somebody_else_what_was_made_goes_and_what_was_there_stays() {
    for name in ["postgres", "mariadb"] {
        let (target, scratch) = (Target::server(name), Scratch::new());
        let database = format!("name = \"{name}\"\nurl = \"{}\"", url(&target));
        let design = "design = \"plain\"\n";
        scratch.write("reads.toml", &study(&database, &format!("{design}{CHECKS}"), ""));
        scratch.run(&["plan", "reads.toml"]).refused(&["[[tables]] change a database", "writes = true in [workload]"]);

        scratch.write("s.toml", &study(&database, &format!("writes = true\n{design}{CHECKS}"), ""));
        scratch.run_study("s.toml", "run").expect(0);
        assert!(scratch.stored("run").iter().all(|trial| trial.invalid_because.is_empty() && trial.failed() == 0));
        let mut session = target.session();
        for table in ["orders", "customers"] {
            assert!(session.query(&format!("SELECT 1 FROM {table}")).is_err(), "{name}: {table} is still there");
        }

        session.run("CREATE TABLE orders (mine INT)").unwrap();
        session.run("INSERT INTO orders VALUES (7)").unwrap();
        let refused = scratch.run_study("s.toml", "refused");
        assert!(refused.status != Some(0), "{refused:?}");
        let told = format!("{}{}", refused.stdout, refused.stderr);
        assert!(told.contains("table \"orders\"") && told.contains("left alone"), "{name}: {told}");
        assert_eq!(target.query("SELECT mine FROM orders"), ["7"], "{name}");
        assert!(session.query("SELECT 1 FROM customers").is_err(), "{name}: what was made before goes too");
    }
}

#[test]
fn parameters_come_from_the_rows_of_a_file() {
    let scratch = Scratch::new();
    scratch.write("pairs.csv", "customer,line\n7,3\n\"8\",10\n");
    let statements = "design = \"plain\"\nstatements = [ { sql = \"SELECT id FROM orders WHERE customer = ? AND line = ? AND id IN (63, 80)\", params = [ { from_csv = \"pairs.csv\" }, { row_of = [1, 2] } ], rows = 1 } ]\n";
    scratch.write("s.toml", &study("name = \"sqlite\"", statements, ""));
    scratch.run_study("s.toml", "run").expect(0);
    assert!(scratch.stored("run").iter().all(|trial| trial.failed() == 0 && trial.completed() == 300));
    for (file, says) in [
        ("customer,line\n1\n", "line 2: it has 1 values and the first line names 2 columns"),
        ("customer,line\n\"1,2\n", "line 2: a quote is not closed"),
        ("customer,line\n", "gives no row to take a value from"),
        ("", "its first line names its columns"),
    ] {
        scratch.write("pairs.csv", file);
        scratch.run_study("s.toml", "refused").refused(&["pairs.csv", says]);
    }
    std::fs::remove_file(scratch.path("pairs.csv")).unwrap();
    scratch.run_study("s.toml", "refused").refused(&["pairs.csv", "No such file"]);
}

#[test]
fn what_is_wrong_with_tables_is_said_with_its_line_before_anything_is_made() {
    let scratch = Scratch::new();
    let sqlite = "name = \"sqlite\"";
    for (change, says) in [
        (("rows = 100\n", ""), "tables.columns are given and tables.rows is missing"),
        (("design = \"plain\"\n[load]", "design = \"plian\"\n[load]"), "did you mean \"plain\"?"),
        (("{ sequence = [1, 1] }", "{ same = 4 }"), "tables.columns, number 1: it is made of parameter 4"),
        (("name = \"customers\"", "name = \"cus-tomers\""), "tables.name is \"cus-tomers\""),
        (("name = \"customers\"", "name = \"orders\""), "two of [[tables]] are called \"orders\""),
        (("name = \"sql\"", "name = \"write\""), "[[tables]] are for statements of your own"),
        (("design = \"plain\"\n[load]", "[load]"), "there are designs (plain, indexed) and no workload.design"),
        (("design = \"indexed\"", "databases = [\"postgers\"]"), "did you mean \"postgres\"?"),
    ] {
        let text = study(sqlite, &format!("{CHECKS}design = \"plain\""), "");
        let changed = text.replacen(change.0, change.1, 1);
        assert_ne!(text, changed, "{change:?}");
        scratch.write("s.toml", &changed);
        scratch.run(&["plan", "s.toml"]).refused(&["s.toml:", says]);
    }
}
