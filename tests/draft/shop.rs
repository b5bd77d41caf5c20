//! A shop: a server with four tables, rows in them, and statements that run.

use std::path::PathBuf;

use loadline::database::{Endpoint, Session};

use super::harness::{Directory, Target};

/// Of both accounts: `reader` may read, `writer` may change rows too.
pub const PASSWORD: &str = "s3cret-of-the-shop";
/// What only rows and logs have.
pub const TEXT_OF_A_CUSTOMER: &str = "customer-7-";

const ORDERS: u32 = 20_000;

pub struct Shop {
    target: Target,
    directory: Directory,
}

impl Shop {
    /// A server that counts and logs, with the shop's tables and rows.
    pub fn open(name: &'static str) -> Self {
        let shop = Shop::empty(name);
        let mut session = shop.target.session();
        for sql in shop.schema() {
            session.run(&sql).unwrap_or_else(|error| panic!("{name}: {sql}: {error}"));
        }
        shop
    }

    /// The same server before anything is on it.
    pub fn empty(name: &'static str) -> Self {
        let directory = Directory::new();
        // The server may be somebody else.
        let anybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(directory.path(""), anybody).unwrap();
        let (slow, general) = (directory.path("slow.log"), directory.path("general.log"));
        let config: Vec<(&str, &str)> = match name {
            "postgres" => vec![
                ("shared_preload_libraries", "pg_stat_statements"),
                ("log_line_prefix", "%m [%p] %u@%d "),
                ("log_min_duration_statement", "0"),
            ],
            _ => vec![
                ("performance_schema", "ON"),
                ("slow_query_log", "ON"),
                ("slow_query_log_file", &slow),
                ("long_query_time", "0"),
                ("general_log", "ON"),
                ("general_log_file", &general),
            ],
        };
        let shop = Shop { target: Target::server_with(name, &config), directory };
        if shop.is_postgres() {
            shop.target.session().run("CREATE EXTENSION pg_stat_statements").unwrap();
        }
        shop
    }

    /// The name of its database in studies.
    pub fn name(&self) -> &'static str {
        self.target.name
    }

    fn is_postgres(&self) -> bool {
        self.target.name == "postgres"
    }

    fn schema(&self) -> Vec<String> {
        let database = &self.target.endpoint.as_ref().unwrap().database;
        let mut sql: Vec<String> = vec![
            "CREATE TABLE customers (id BIGINT PRIMARY KEY, email VARCHAR(80) NOT NULL UNIQUE)".into(),
            "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer_id BIGINT NOT NULL, status VARCHAR(20) NOT NULL, total DECIMAL(10, 2) NOT NULL)".into(),
            "CREATE INDEX of_customer ON orders (customer_id)".into(),
            "CREATE TABLE items (order_id BIGINT, position INT, amount INT NOT NULL, PRIMARY KEY (order_id, position))".into(),
            "CREATE TABLE measured (probe INT, at TIMESTAMP, rtt DOUBLE PRECISION, PRIMARY KEY (probe, at))".into(),
        ];
        let numbers = |most: u32| match self.is_postgres() {
            true => format!("generate_series(1, {most}) AS n(i)"),
            false => format!("(SELECT seq AS i FROM seq_1_to_{most}) AS n"),
        };
        let time = if self.is_postgres() {
            "timestamp '2026-11-01' + (i / 20) * interval '10 seconds'"
        } else {
            "timestamp('2026-11-01') + INTERVAL (i DIV 20) * 10 SECOND"
        };
        let status = "CASE WHEN i % 10 < 7 THEN 'shipped' ELSE 'open' END";
        sql.extend([
            format!("INSERT INTO customers SELECT i, concat('{}', i, '@example.org') FROM {}", "customer-", numbers(ORDERS / 10)),
            format!("INSERT INTO orders SELECT i, 1 + i % {}, {status}, i % 500 + 0.5 FROM {}", ORDERS / 10, numbers(ORDERS)),
            format!("INSERT INTO items SELECT i, p, 1 + i % 5 FROM {}, (SELECT 1 AS p UNION ALL SELECT 2 UNION ALL SELECT 3) AS q", numbers(ORDERS)),
            format!("INSERT INTO measured SELECT 1 + i % 20, {time}, 20.5 FROM {}", numbers(40_000)),
        ]);
        if self.is_postgres() {
            sql.extend([
                format!(
                    "CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'; CREATE ROLE writer LOGIN PASSWORD '{PASSWORD}'"
                ),
                "GRANT pg_read_all_stats TO reader, writer; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader"
                    .into(),
                "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO writer".into(),
                "ANALYZE".into(),
                "SELECT pg_stat_statements_reset()".into(),
            ]);
        } else {
            for (user, rights) in [("reader", "SELECT"), ("writer", "SELECT, INSERT, UPDATE, DELETE")] {
                sql.push(format!("CREATE USER {user}@'%' IDENTIFIED BY '{PASSWORD}'"));
                sql.push(format!("GRANT {rights} ON {database}.* TO {user}@'%'"));
                sql.push(format!("GRANT SELECT ON performance_schema.* TO {user}@'%'"));
            }
            sql.push("ANALYZE TABLE customers, orders, items, measured".into());
            sql.push("TRUNCATE performance_schema.events_statements_summary_by_digest".into());
        }
        sql
    }

    fn endpoint(&self) -> &Endpoint {
        self.target.endpoint.as_ref().unwrap()
    }

    /// The address with the password of an account.
    pub fn url(&self, account: &str) -> String {
        let Endpoint { database, tcp: Some((host, port)), .. } = self.endpoint() else { panic!("it listens on TCP") };
        let scheme = if self.is_postgres() { "postgres" } else { "mysql" };
        format!("{scheme}://{account}:{PASSWORD}@{host}:{port}/{database}?sslmode=disable")
    }

    /// The address with the password of the server's own account, which may do everything.
    pub fn own_url(&self) -> String {
        let Endpoint { database, user, password, tcp: Some((host, port)), .. } = self.endpoint() else {
            panic!("it listens on TCP")
        };
        let scheme = if self.is_postgres() { "postgres" } else { "mysql" };
        format!("{scheme}://{user}:{password}@{host}:{port}/{database}?sslmode=disable")
    }

    /// A session of the server's own account.
    pub fn session(&self, _whose: &str) -> Box<dyn Session> {
        self.target.session()
    }

    /// What customers do, so often: seven statements each time, and one with an array where there are arrays, with values in their texts.
    pub fn trade(&self, times: u32) {
        let mut session = self.target.session();
        for number in 0..times {
            let id = 1 + number * 7919 % ORDERS;
            let (customer, probe, hour) = (1 + id % (ORDERS / 10), 1 + number % 20, number % 5);
            if self.is_postgres() {
                let ids = format!("{id},{},{}", 1 + (id + 5) % ORDERS, 1 + (id + 9) % ORDERS);
                session.query(&format!("SELECT id FROM orders WHERE id = ANY('{{{ids}}}'::bigint[])")).unwrap();
            }
            for sql in [
                format!("SELECT id, total FROM orders WHERE id = {id}"),
                format!("SELECT id, total FROM orders WHERE customer_id = {customer} ORDER BY id DESC LIMIT 5"),
                format!("SELECT i.amount FROM items i JOIN orders o ON o.id = i.order_id WHERE i.order_id = {id}"),
                format!(
                    "SELECT at, rtt FROM measured WHERE probe = {probe} AND at BETWEEN '2026-11-01 {hour:02}:00:00' AND '2026-11-01 {hour:02}:10:00'"
                ),
                format!("SELECT id FROM customers WHERE email = '{}{customer}@example.org'", "customer-"),
                format!("UPDATE orders SET status = 'paid', total = {number}.5 WHERE id = {id}"),
                format!(
                    "INSERT INTO measured (probe, at, rtt) VALUES ({probe}, '2026-11-01 {:02}:{:02}:{:02}', 2{}.5)",
                    6 + number / 360,
                    number / 6 % 60,
                    number % 6 * 10,
                    number % 9
                ),
            ] {
                session.query(&sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
            }
        }
    }

    /// What the server has counted of statements about the shop's tables: text, calls, rows.
    pub fn counted(&self) -> Vec<(String, f64, f64)> {
        let sql = if self.is_postgres() {
            "SELECT query, calls, rows FROM pg_stat_statements WHERE query ~ '(orders|items|measured|customers)' AND query ~* '^(select|update|insert)'"
        } else {
            "SELECT DIGEST_TEXT, COUNT_STAR, SUM_ROWS_SENT + SUM_ROWS_AFFECTED FROM performance_schema.events_statements_summary_by_digest \
             WHERE SCHEMA_NAME = DATABASE() AND DIGEST_TEXT REGEXP '(orders|items|measured|customers)' AND DIGEST_TEXT REGEXP '^(SELECT|UPDATE|INSERT)'"
        };
        let rows = self.target.session().query(sql).unwrap();
        let own = rows.into_iter().map(|row| {
            let mut row = row.into_iter().map(Option::unwrap);
            let mut next = || row.next().unwrap();
            (next(), next().parse().unwrap(), next().parse().unwrap())
        });
        own.filter(|(text, ..): &(String, f64, f64)| !text.contains("loadline_drawn")).collect()
    }

    /// The counters begin anew.
    pub fn forget_counted(&self) {
        let sql = if self.is_postgres() {
            "SELECT pg_stat_statements_reset()"
        } else {
            "TRUNCATE performance_schema.events_statements_summary_by_digest"
        };
        self.target.session().run(sql).unwrap();
    }

    /// All that is in the tables.
    pub fn fingerprint(&self) -> Vec<String> {
        let of_orders =
            "SELECT count(*), sum(id), sum(total), sum(length(status)), min(status), max(status) FROM orders";
        let others = [
            "SELECT count(*), sum(amount) FROM items",
            "SELECT count(*), sum(rtt) FROM measured",
            "SELECT count(*) FROM customers",
        ];
        std::iter::once(of_orders).chain(others).flat_map(|sql| self.target.query(sql)).collect()
    }

    /// The slow log and the general log; of PostgreSQL its log as it is now.
    pub fn logs(&self) -> Vec<PathBuf> {
        if self.is_postgres() {
            let log = PathBuf::from(self.directory.path("shop.log"));
            std::fs::write(&log, self.target.log()).unwrap();
            return vec![log];
        }
        let names = ["slow.log", "general.log"];
        names.iter().map(|name| PathBuf::from(self.directory.path(name))).collect()
    }
}

/// Whether two texts are one statement but for how values and names are written.
pub fn same(one: &str, other: &str) -> bool {
    let plain = |text: &str| {
        let mut letters = String::new();
        let mut rest = text.chars().peekable();
        while let Some(letter) = rest.next() {
            match letter {
                '$' => {
                    while rest.next_if(char::is_ascii_digit).is_some() {}
                    letters.push('?');
                }
                letter if letter.is_alphanumeric() || "?*=.,()".contains(letter) => {
                    letters.push(letter.to_ascii_lowercase())
                }
                _ => {}
            }
        }
        letters
    };
    plain(one) == plain(other)
}
