//! How long one record takes to generate, in nanoseconds: `cargo bench --bench generate`.

use std::hint::black_box;
use std::time::Instant;

use loadline::record::Cells;
use loadline::trial::RecordSettings;

const ROUNDS: usize = 7;
const ROWS: u64 = 200_000;

fn main() {
    generate("qos, 61 columns", &settings("qos"));
    generate("sensor, 200 bytes", &settings("sensor"));
    generate("sensor, 1000 bytes", &RecordSettings { length: Some(1000), ..settings("sensor") });
}

fn settings(type_name: &str) -> RecordSettings {
    RecordSettings { type_name: type_name.to_owned(), per_measurement: 100, seed: 1, ..Default::default() }
}

fn generate(what: &str, settings: &RecordSettings) {
    let generator = match loadline::data::build(settings) {
        Ok(generator) => generator,
        Err(error) => panic!("{error}"),
    };
    let mut cells = Cells::new();
    let mut rows_ns = [0.0; ROUNDS];
    for row_ns in &mut rows_ns {
        let begin = Instant::now();
        for record in 0..ROWS {
            cells.clear();
            generator.identity(generator.measurement_of(record), 1, &mut cells);
            generator.values(black_box(record), &mut cells);
            black_box(&cells);
        }
        *row_ns = begin.elapsed().as_secs_f64() * 1e9 / ROWS as f64;
    }
    rows_ns.sort_by(f64::total_cmp);
    println!(
        "{what}: {:.0} ns/row (median of {ROUNDS} rounds of {ROWS} rows; least {:.0}, most {:.0})",
        rows_ns[ROUNDS / 2],
        rows_ns[0],
        rows_ns[ROUNDS - 1]
    );
}
