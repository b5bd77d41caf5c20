//! Statements on views, and on tables in schemas of their own.

use loadline::database::Session;
use serde_json::Value;

use super::program::Scratch;
use super::shop::{PASSWORD, Shop};
use super::{program, run, statement, trial_of};

/// Views of tables, of a view, and with a text of its own.
const VIEWS: [&str; 3] = [
    "CREATE VIEW spent AS SELECT o.customer_id AS buyer, sum(o.total) AS total, count(*) AS n FROM orders o \
     JOIN customers c ON c.id = o.customer_id GROUP BY o.customer_id",
    "CREATE VIEW buyers AS SELECT buyer, n FROM spent",
    "CREATE VIEW open_orders AS SELECT * FROM orders WHERE status = 'open'",
];

/// What an application asks, without a value.
fn statements(parameter: &str, has_schemas: bool) -> String {
    let mut sql = [
        "SELECT total FROM spent WHERE buyer = ?;",
        "SELECT n FROM buyers WHERE buyer = ?;",
        "SELECT id FROM open_orders WHERE customer_id = ?;",
        "SELECT total FROM spent WHERE n = ?;",
    ]
    .join("\n");
    if has_schemas {
        sql += "\nSELECT name FROM \"Lab\".probes WHERE id = ?;\n";
    }
    sql.replace('?', parameter)
}

fn because(drafted: &Value, part: &str) -> String {
    let left_out = drafted["left_out"].as_array().unwrap();
    let one = left_out.iter().find(|one| one["sql"].as_str().unwrap().contains(part));
    one.unwrap_or_else(|| panic!("{part}: {drafted:#}"))["because"].as_str().unwrap().to_owned()
}

fn short(study: &str) -> String {
    trial_of(study).replace("operations = 4000", "operations = 200")
}

/// Drafts and runs what stands in `app.sql`: on the database itself, and on one of loadline's own. Views and schemas come with it.
fn draft_and_run(scratch: &Scratch, name: &str, address: &str, has_schemas: bool) {
    let open = run(scratch, &["draft", address, "--statements", "app.sql", "--out", "open.toml", "--json"]).expect(0);
    let drafted = open.json();
    for one in ["select spent by buyer", "select buyers by buyer", "select open_orders by customer_id"] {
        assert_eq!(statement(&drafted, one)["writes"], false, "{name}");
    }
    assert!(
        because(&drafted, "WHERE n").contains("spent is a view, and n of it is no column of a table"),
        "{drafted:#}"
    );
    let study = std::fs::read_to_string(scratch.path("open.toml")).unwrap();
    // A customer that is drawn has orders: the values are those of the table below the views.
    let strict = |one: &str| match one.contains("open_orders") {
        true => one.to_owned(),
        false => one.replace("allow_empty = true", "rows = 1"),
    };
    let strict: Vec<String> = short(&study).split("[[workload.statements]]").map(strict).collect();
    scratch.write("trial.toml", &strict.join("[[workload.statements]]"));
    let mut trial = scratch.command(&["run", "trial.toml", "--out", "open"]);
    program::outcome(trial.env("LOADLINE_PASSWORD", PASSWORD).env("LOADLINE_STOLEN", "1")).expect(0);
    let stored = &scratch.stored("open")[0];
    assert_eq!((stored.failed(), stored.invalid_because.as_slice()), (0, &[][..]), "{name}: {:?}", stored.errors);

    let private = ["draft", address, "--statements", "app.sql", "--private", "--out", "private.toml", "--json"];
    let drafted = run(scratch, &private).expect(0).json();
    assert!(because(&drafted, "open_orders").contains("leave the database with --values alone"), "{drafted:#}");
    let study = std::fs::read_to_string(scratch.path("private.toml")).unwrap();
    assert!(study.contains("CREATE VIEW") && !study.contains("'open'"), "{name}: {study}");
    assert_eq!(study.contains("CREATE SCHEMA IF NOT EXISTS \"Lab\""), has_schemas, "{name}: {study}");
    let with_values = [&private[..5], &["--values", "--out", "values.toml"]].concat();
    run(scratch, &with_values).expect(0);
    for file in ["private.toml", "values.toml"] {
        let study = std::fs::read_to_string(scratch.path(file)).unwrap();
        assert_eq!(
            study.contains("CREATE VIEW \"open_orders\"") || study.contains("CREATE VIEW `open_orders`"),
            file == "values.toml"
        );
        scratch.write("again.toml", &short(&study));
        run(scratch, &["run", "again.toml", "--out", &format!("{file}-run")]).expect(0);
        let stored = &scratch.stored(&format!("{file}-run"))[0];
        assert_eq!((stored.failed(), stored.invalid_because.as_slice()), (0, &[][..]), "{name}: {:?}", stored.errors);
    }
}

fn make(session: &mut dyn Session, sql: &[&str]) {
    for one in sql {
        session.run(one).unwrap_or_else(|error| panic!("{one}: {error}"));
    }
}

#[test]
fn statements_on_views_have_the_values_of_the_tables_below_them() {
    for name in ["postgres", "mariadb"] {
        let (shop, scratch, is_postgres) = (Shop::open(name), Scratch::new(), name == "postgres");
        let mut session = shop.session("owner");
        make(&mut *session, &VIEWS);
        if is_postgres {
            make(
                &mut *session,
                &[
                    "CREATE SCHEMA \"Lab\"",
                    "CREATE TABLE \"Lab\".probes (id INT PRIMARY KEY, name TEXT)",
                    "INSERT INTO \"Lab\".probes SELECT i, 'probe ' || i FROM generate_series(1, 50) AS n(i)",
                    "ANALYZE",
                    "GRANT USAGE ON SCHEMA \"Lab\" TO writer",
                    "GRANT SELECT ON ALL TABLES IN SCHEMA public, \"Lab\" TO writer",
                ],
            );
        } else {
            scratch.write("app.sql", &statements("?", false));
            let hidden = ["draft", &shop.url("writer"), "--statements", "app.sql"];
            scratch.run(&hidden).refused(&["a view whose SQL this user may not see", "GRANT SHOW VIEW"]);
            make(&mut *session, &["GRANT SHOW VIEW ON *.* TO writer@'%'"]);
        }
        scratch.write("app.sql", &statements(if is_postgres { "$1" } else { "?" }, is_postgres));
        draft_and_run(&scratch, name, &shop.url("writer"), is_postgres);
    }
}

#[test]
fn views_of_a_file_are_drafted_too() {
    let scratch = Scratch::new();
    let file = rusqlite::Connection::open(scratch.path("shop.db")).unwrap();
    file.execute_batch(
        "CREATE TABLE customers (id INTEGER PRIMARY KEY, email TEXT NOT NULL);
         CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL, status TEXT NOT NULL, total REAL NOT NULL);
         CREATE INDEX of_customer ON orders (customer_id);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
         INSERT INTO customers SELECT i, 'customer-' || i FROM n;
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
         INSERT INTO orders SELECT i, 1 + i % 2000, CASE WHEN i % 10 < 7 THEN 'shipped' ELSE 'open' END, i % 500 + 0.5 FROM n;",
    )
    .unwrap();
    VIEWS.iter().for_each(|sql| file.execute_batch(sql).unwrap());
    drop(file);
    scratch.write("app.sql", &statements("?", false));
    draft_and_run(&scratch, "sqlite", "shop.db", false);
}
