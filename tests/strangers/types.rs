//! Columns whose types somebody changes while the recorder writes.

use super::harness::{Directory, Started, Target, write};

fn store(started: &Started, values: std::ops::Range<i64>) {
    // Many rows of one request are one transaction.
    let lines: String = values.map(|value| format!("altered a={value}i,b={value}i,c={value}i {value}\n")).collect();
    assert_eq!(write(started.http, &lines).status, 204);
    started.wait_until_committed();
}

/// A value is stored as the number that it is, or refused, whatever its column has become since its statement was prepared.
pub fn a_column_whose_type_is_changed_holds_what_was_sent(target: &Target) {
    let directory = Directory::new();
    if target.name != "postgres" {
        target.session().run("SET GLOBAL sql_mode = ''").unwrap();
    }
    let started = target.start(&directory, "name = \"star\"", "");
    store(&started, 1..21);
    let mut session = target.session();
    let changes = match target.name {
        "postgres" => [
            "ALTER COLUMN a TYPE DOUBLE PRECISION",
            "ALTER COLUMN b TYPE NUMERIC(20, 5)",
            "ALTER COLUMN c TYPE TEXT USING c::TEXT",
        ],
        _ => ["MODIFY a DOUBLE", "MODIFY b DECIMAL(20, 5)", "MODIFY c TEXT"],
    };
    for change in changes {
        session.run(&format!("ALTER TABLE altered_values {change}")).unwrap();
    }
    store(&started, 21..41);
    // A table that gets narrower refuses what does not fit; it is not cut.
    let narrower = if target.name == "postgres" { "ALTER COLUMN a TYPE SMALLINT" } else { "MODIFY a SMALLINT" };
    session.run(&format!("ALTER TABLE altered_values {narrower}")).unwrap();
    store(&started, 41..51);
    assert_eq!(
        write(started.http, "altered a=1099511627776i,b=1i,c=1i 60\naltered a=51i,b=51i,c=51i 61\n").status,
        204
    );
    started.wait_until_committed();
    assert_eq!(started.stop().counts.quarantined, 1, "{}", target.name);
    let found = target.query("SELECT COUNT(*), SUM(a), SUM(b + 0), MIN(a), MAX(a) FROM altered_values");
    let sum: i64 = (1..52).sum();
    let numbers: Vec<f64> = found[0].split('|').map(|number| number.parse().unwrap()).collect();
    assert_eq!(numbers, [51.0, sum as f64, sum as f64, 1.0, 51.0], "{}", target.name);
    let different = if target.name == "postgres" { "c <> a::TEXT" } else { "c <> CAST(a AS CHAR)" };
    assert_eq!(target.query(&format!("SELECT COUNT(*) FROM altered_values WHERE {different}")), ["0"]);
}
