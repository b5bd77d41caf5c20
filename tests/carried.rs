//! Transactions whose later statements need what earlier ones answered, as users write them, on real databases.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;

use program::Scratch;

/// Numbers are assigned by the database, far from those of the stock, so that nothing agrees by chance.
const TABLES: &str = r#"
[[tables]]
name = "stock"
rows = 100
create = ["CREATE TABLE stock (id INT PRIMARY KEY, item BIGINT NOT NULL, price DECIMAL(8, 2) NOT NULL, name VARCHAR(20) NOT NULL, since TIMESTAMP NULL, hint VARCHAR(9))"]
columns = [
  { name = "id", fill = { sequence = [1, 1] } },
  { name = "item", fill = { sequence = [5000000007, 13] } },
  { name = "price", fill = { uniform = [0.25, 900.5] } },
  { name = "name", fill = { random_text = 12 } },
  { name = "since", fill = { blocks = ["2026-01-01 00:00:00", "1h", 1] } },
  { name = "hint", fill = { weighted = [["ä'\\", 1], [{ null = true }, 1]] } },
]

[[tables]]
name = "orders"
create = ["CREATE TABLE orders (id SERIAL, item BIGINT NOT NULL, price DECIMAL(8, 2) NOT NULL, name VARCHAR(20) NOT NULL, since TIMESTAMP NULL, hint VARCHAR(9), done INT)"]
"#;

/// An order of what the stock has. Two statements fail as soon as anything of an order is not as in the stock.
const STATEMENTS: &str = r#"
statements = [
  { name = "order", weight = 4, transaction = [
    { sql = "SELECT name, item, price, since, hint FROM stock WHERE id = ?", params = [ { uniform = [1, 100] } ] },
    { sql = "INSERT INTO orders (item, price, name, since, hint) VALUES (?, ?, ?, ?, ?) RETURNING name, id", params = [ { answer_of = [1, 2] }, { answer_of = [1, 3] }, { answer_of = [1, 1] }, { answer_of = [1, 4] }, { answer_of = [1, 5] } ] },
    { sql = "UPDATE orders SET done = 1 WHERE id = ? AND item = ? AND name = ?", params = [ { answer_of = [2, 2] }, { same = 2 }, { answer_of = [2, 1] } ], rows = 1 },
  ] },
  { name = "orders that are otherwise", sql = "SELECT orders.id FROM orders LEFT JOIN stock ON stock.item = orders.item WHERE stock.id IS NULL OR orders.price <> stock.price OR orders.name <> stock.name OR orders.since <> stock.since OR COALESCE(orders.hint, '-') <> COALESCE(stock.hint, '-')", rows = 0 },
  { name = "half orders", sql = "SELECT id FROM orders WHERE done IS NULL", rows = 0 },
]
"#;

const LOAD: &str =
    "[load]\noperations = 200\nclients = 2\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n";

fn study(database: &str, statements: &str) -> String {
    let tables = match database {
        "sqlite" => TABLES.replace("id SERIAL", "id INTEGER PRIMARY KEY AUTOINCREMENT"),
        "mariadb" => TABLES.replace("id SERIAL", "id BIGINT AUTO_INCREMENT PRIMARY KEY"),
        _ => TABLES.replace("id SERIAL", "id SERIAL PRIMARY KEY"),
    };
    format!(
        "name = \"carried\"\n[database]\nname = \"{database}\"\n[workload]\nname = \"sql\"\n{statements}\n{LOAD}\
         [factors]\n\"load.statements\" = [\"prepared\", \"text\"]\n{tables}"
    )
}

#[test]
fn later_statements_of_a_transaction_have_what_earlier_ones_answered() {
    let scratch = Scratch::new();
    for name in ["sqlite", "postgres", "mariadb"] {
        scratch.write("s.toml", &study(name, STATEMENTS));
        scratch.run_study("s.toml", name).expect(0);
        let stored = scratch.stored(name);
        assert_eq!(stored.len(), 2, "{name}");
        for trial in &stored {
            assert_eq!((trial.invalid_because.as_slice(), trial.failed()), (&[][..], 0), "{name}: {:?}", trial.errors);
        }
        // The file of the run says the same study.
        scratch.run(&["plan", &format!("{name}/run.toml")]).expect(0);
    }
}

#[test]
fn what_is_needed_and_not_there_fails_the_transaction_and_is_null_where_it_may_be_missing() {
    let scratch = Scratch::new();
    let beyond = STATEMENTS.replace("{ uniform = [1, 100] }", "{ uniform = [101, 200] }");
    for name in ["sqlite", "postgres", "mariadb"] {
        scratch.write("s.toml", &study(name, &beyond));
        let told = scratch.run_study("s.toml", name);
        assert_eq!(told.status, Some(1), "{name}: {told:?}");
        let told = format!("{}{}", told.stdout, told.stderr);
        assert!(told.contains("found 0 rows instead of at least 1"), "{name}: {told}");
        for trial in scratch.stored(name) {
            assert!(trial.failed() > 100 && !trial.invalid_because.is_empty(), "{name}: {:?}", trial.errors);
        }
    }
    let missing = r#"
statements = [
  { transaction = [
    { sql = "SELECT item FROM stock WHERE id = ?", params = [ { uniform = [101, 200] } ], allow_empty = true },
    { sql = "INSERT INTO orders (item, price, name, hint) VALUES (1, 1, 'x', ?)", params = [ { answer_of = [1, 1] } ], rows = 1 },
  ] },
  { sql = "SELECT id FROM orders WHERE hint IS NOT NULL", rows = 0 },
]
"#;
    for name in ["sqlite", "postgres", "mariadb"] {
        scratch.write("s.toml", &study(name, missing));
        let out = format!("{name}-null");
        scratch.run_study("s.toml", &out).expect(0);
        assert!(scratch.stored(&out).iter().all(|trial| trial.failed() == 0 && trial.invalid_because.is_empty()));
    }
}

#[test]
fn an_answer_that_comes_too_late_is_refused_with_its_place() {
    let scratch = Scratch::new();
    let late = STATEMENTS.replace("{ answer_of = [1, 5] }", "{ answer_of = [2, 1] }");
    let late = study("sqlite", &late);
    let line = 1 + late.lines().position(|line| line.starts_with("statements")).unwrap();
    scratch.write("s.toml", &late);
    let place = format!("s.toml:{line}:");
    scratch.run(&["plan", "s.toml"]).refused(&[&place, "answer_of names statement 2", "name an earlier one"]);
    scratch.write("s.toml", &study("sqlite", STATEMENTS));
    let pipelined = ["plan", "s.toml", "--set", "load.pipeline=true"];
    scratch.run(&pipelined).refused(&["load.pipeline = true", "leave load.pipeline out"]);
    let column = TABLES.replace("{ uniform = [0.25, 900.5] }", "{ answer_of = [1, 1] }");
    scratch.write(
        "s.toml",
        &study("sqlite", STATEMENTS)
            .replace(TABLES.split("[[tables]]").nth(1).unwrap(), column.split("[[tables]]").nth(1).unwrap()),
    );
    scratch.run(&["plan", "s.toml"]).refused(&["tables.columns.fill.answer_of is for statements of a transaction"]);
}
