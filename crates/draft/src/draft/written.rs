//! Writes the study as a TOML file with comments.
//!
//! Main functions: [`study_text`] and [`fill_text`]. Invariant: any given text appears in the file only as a string or within a comment.

use std::fmt::Write;

use super::fit::Fitted;
use super::private::Described;
use super::{Drafted, LeftOut, Origin};
use crate::draft::catalogue::{Catalogue, Table};
use crate::trial::{ColumnFill, Fill, TableSettings, TimeBlocks};
use crate::units::times::write_time;
use crate::units::{show_bytes, show_number, show_seconds};

/// The most letters of an omitted statement that are written.
const LEFT_OUT_LETTERS: usize = 400;
/// The most tables that are described.
const DESCRIBED_MOST: usize = 40;

/// Returns a text as a TOML string.
fn text(value: &str) -> String {
    toml::Value::String(value.to_owned()).to_string()
}

/// Returns a fill in the notation of a study.
pub fn fill_text(fill: &Fill) -> String {
    let list = |numbers: &[f64]| numbers.iter().map(|number| number_text(*number)).collect::<Vec<_>>().join(", ");
    match fill {
        Fill::Number(number) => number_text(*number),
        Fill::Text(value) => text(value),
        Fill::Uniform(low, high) => format!("{{ uniform = [{}] }}", list(&[*low, *high])),
        Fill::Zipf(low, high, exponent) => format!("{{ zipf = [{low}, {high}, {exponent:?}] }}"),
        Fill::Normal(mean, deviation) => format!("{{ normal = [{}] }}", list(&[*mean, *deviation])),
        Fill::Drift(low, high, step) => format!("{{ drift = [{}] }}", list(&[*low, *high, *step])),
        Fill::Sequence(first, step) => format!("{{ sequence = [{first}, {step}] }}"),
        Fill::RandomText(length) => format!("{{ random_text = {length} }}"),
        Fill::RandomBytes(length) => format!("{{ random_bytes = {length} }}"),
        Fill::OneOf(values) => {
            format!("{{ one_of = [{}] }}", values.iter().map(|value| text(value)).collect::<Vec<_>>().join(", "))
        }
        Fill::Quantiles(bounds) => format!("{{ quantiles = [{}] }}", list(bounds)),
        Fill::Times(times) => {
            let written = times.bounds_us.iter().map(|us| {
                let mut bytes = Vec::new();
                write_time(*us, false, &times.zone, &mut bytes);
                text(&String::from_utf8_lossy(&bytes))
            });
            format!("{{ times = [{}] }}", written.collect::<Vec<_>>().join(", "))
        }
        Fill::Now(from_s, to_s, zone) => {
            let duration = |seconds: f64| text(&format!("{}{}s", if seconds < 0.0 { "-" } else { "" }, seconds.abs()));
            let zone = if zone.is_empty() { String::new() } else { format!(", {}", text(zone)) };
            format!("{{ now = [{}, {}{zone}] }}", duration(*from_s), duration(*to_s))
        }
        Fill::Weighted(choices) => {
            let one = |(fill, weight): &(Fill, f64)| format!("[{}, {}]", fill_text(fill), number_text(*weight));
            format!("{{ weighted = [{}] }}", choices.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        Fill::Array(count, element) => format!("{{ array = [{count}, {}] }}", fill_text(element)),
        Fill::Null => "{ null = true }".to_owned(),
        Fill::Same(number) => format!("{{ same = {number} }}"),
        Fill::Plus(number, more) => format!("{{ plus = [{number}, {}] }}", fill_text(more)),
        Fill::From(sql) => format!("{{ from = {} }}", text(sql)),
        Fill::RowOf(number, column) => format!("{{ row_of = [{number}, {column}] }}"),
        Fill::SequenceFrom(sql, step) => format!("{{ sequence = [{}, {step}] }}", text(sql)),
        Fill::Blocks(first, step, times) => format!("{{ blocks = [{first}, {step}, {times}] }}"),
        Fill::TimeBlocks(TimeBlocks { first_us, step_us, times, zone }) => {
            let mut bytes = Vec::new();
            write_time(*first_us, false, zone, &mut bytes);
            let first = text(&String::from_utf8_lossy(&bytes));
            format!("{{ blocks = [{first}, {}, {times}] }}", text(&format!("{}s", *step_us as f64 / 1e6)))
        }
        Fill::Cycle(first, step, count) => format!("{{ cycle = [{first}, {step}, {count}] }}"),
        Fill::TextOf(letters, number) => format!("{{ text_of = [{letters}, {}] }}", fill_text(number)),
        Fill::AnswerOf(statement, value) => format!("{{ answer_of = [{statement}, {value}] }}"),
        Fill::FromCsv(path) => format!("{{ from_csv = {} }}", text(path)),
    }
}

/// Returns a number in TOML notation; whole numbers have no decimal point.
fn number_text(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 9e15 { format!("{number:.0}") } else { format!("{number:?}") }
}

/// Writes lines behind `# `, without any character that could end the comment.
fn comment(out: &mut String, line: &str) {
    let plain: String = line.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let _ = writeln!(out, "# {}", plain.trim_end());
}

/// Returns the whole file. If tables are described, the study is for a private server and does not say where it comes from.
pub fn study_text(
    origin: &Origin<'_>,
    catalogue: &Catalogue,
    drafted: &Drafted,
    described: Option<&[Described]>,
) -> String {
    let mut out = String::new();
    match described {
        None => comment(&mut out, &format!("Drawn from {} by loadline draft, {}.", origin.address, origin.time)),
        Some(_) => comment(&mut out, &format!("Drawn by loadline draft --private, {}.", origin.time)),
    }
    drafted.origin.iter().for_each(|line| comment(&mut out, line));
    let goal = "It finds the highest rate at which 99 % of these statements are answered within 20 ms.";
    comment(&mut out, &format!("Run it with: loadline run {}. {goal}", origin.file));
    out.push('\n');
    let _ = writeln!(out, "name     = {}", text(origin.name));
    let _ = writeln!(
        out,
        "question = \"How many of these statements a second does it carry, with 99 % answered within 20 ms?\""
    );
    let _ = writeln!(out, "\n[database]\nname = {}", text(origin.database));
    match (described, origin.is_file) {
        (Some(_), true) => {
            if let Some(journal) = origin.journal {
                let _ = writeln!(out, "config = {{ journal_mode = {} }}", text(journal));
            }
        }
        (Some(described), false) => {
            let path = search_path(described);
            if let Some(path) = &path {
                let _ = writeln!(out, "config = {{ search_path = {} }}", text(path));
            }
            let path = path.map(|path| ("search_path".to_owned(), path));
            settings(&mut out, &path.into_iter().chain(origin.settings.iter().cloned()).collect::<Vec<_>>());
        }
        (None, true) => {
            let _ = writeln!(out, "path = {}", text(origin.address));
        }
        (None, false) => {
            let _ = writeln!(out, "url  = {}     # the password comes from LOADLINE_PASSWORD", text(origin.address));
        }
    }
    out.push('\n');
    match described {
        None => tables(&mut out, catalogue),
        Some(described) => described.iter().for_each(|one| described_table(&mut out, one)),
    }
    workload(&mut out, drafted, described.is_some());
    load(&mut out, drafted);
    out
}

/// Returns the search path by which a private server finds tables by name, if some are in schemas of their own.
fn search_path(described: &[Described]) -> Option<String> {
    let mut schemas: Vec<&str> = described.iter().filter_map(|one| one.schema.as_deref()).collect();
    schemas.sort_unstable();
    schemas.dedup();
    (!schemas.is_empty()).then(|| format!("public, {}", schemas.join(", ")))
}

/// Writes the settings of the original as a comment, for readers who have a machine to apply them to.
fn settings(out: &mut String, settings: &[(String, String)]) {
    comment(out, "A private server with its own defaults. What the original is set to:");
    let of = |(name, value): &(String, String)| format!("{name} = {}", text(value));
    comment(out, &format!("config = {{ {} }}", settings.iter().map(of).collect::<Vec<_>>().join(", ")));
}

/// Writes a table that is created for the study.
fn described_table(out: &mut String, Described { table, remarks, .. }: &Described) {
    remarks.iter().for_each(|remark| comment(out, remark));
    let TableSettings { name, create, rows, columns, then, drop } = table;
    let _ = writeln!(out, "[[tables]]\nname = {}", text(name));
    let list = |texts: &[String]| texts.iter().map(|one| format!("  {},\n", text(one))).collect::<String>();
    let _ = writeln!(out, "create = [\n{}]", list(create));
    if *rows > 0 {
        let of = |column: &ColumnFill| {
            format!("  {{ name = {}, fill = {} }},\n", text(&column.name), fill_text(&column.fill))
        };
        let _ = writeln!(out, "rows = {rows}\ncolumns = [\n{}]", columns.iter().map(of).collect::<String>());
    }
    if !then.is_empty() {
        let _ = writeln!(out, "then = [\n{}]", list(then));
    }
    if !drop.is_empty() {
        let _ = writeln!(out, "drop = [\n{}]", list(drop));
    }
    out.push('\n');
}

fn tables(out: &mut String, catalogue: &Catalogue) {
    comment(out, "What there is:");
    let mut tables: Vec<&Table> = catalogue.tables.iter().filter(|table| !table.is_view).collect();
    tables.sort_by(|a, b| b.rows.total_cmp(&a.rows));
    for table in tables.iter().take(DESCRIBED_MOST) {
        let bytes = table.bytes.map_or(String::new(), |bytes| format!(", {}", show_bytes(bytes)));
        let key = table.keys.first().map_or("no key".to_owned(), |key| {
            let names: Vec<&str> = key.iter().map(|column| table.columns[*column].name.as_str()).collect();
            format!("key {}", names.join(", "))
        });
        comment(
            out,
            &format!(
                "  {}: about {} rows{bytes}, {} columns, {key}",
                table.name,
                show_number(table.rows.max(0.0)),
                table.columns.len()
            ),
        );
    }
    if tables.len() > DESCRIBED_MOST {
        comment(out, &format!("  and {} further tables", tables.len() - DESCRIBED_MOST));
    }
    catalogue.notes.iter().for_each(|note| comment(out, &format!("  {note}")));
}

fn workload(out: &mut String, drafted: &Drafted, is_private: bool) {
    let writing: Vec<f64> = drafted.statements.iter().filter(|one| one.fitted.writes).map(|one| one.share).collect();
    out.push_str("\n[workload]\nname = \"sql\"\n");
    if is_private && !writing.is_empty() {
        out.push_str("writes = true\n");
    } else if !writing.is_empty() {
        let percent = show_number(100.0 * writing.iter().sum::<f64>());
        comment(
            out,
            &format!(
                "{} of the statements below change something: {percent} % of what ran. They are left out until this says true:",
                writing.len()
            ),
        );
        out.push_str("writes = false\n");
    }
    for statement in &drafted.statements {
        let Fitted { name, sql, fills, writes, remarks, .. } = &statement.fitted;
        out.push('\n');
        let mut told = vec![format!("{} % of what ran", show_number(100.0 * statement.share))];
        told.extend(statement.rows.map(rows_text));
        told.extend(statement.seconds.map(|seconds| format!("{} a call", show_seconds(seconds))));
        comment(out, &told.join(", "));
        remarks.iter().for_each(|remark| comment(out, remark));
        let _ = writeln!(
            out,
            "[[workload.statements]]\nname = {}\nsql = {}\nweight = {}",
            text(name),
            text(sql),
            number_text(weight(statement.share))
        );
        match fills.as_slice() {
            [] => {}
            fills if fills.iter().map(|fill| fill_text(fill).len()).sum::<usize>() < 90 => {
                let _ = writeln!(out, "params = [ {} ]", fills.iter().map(fill_text).collect::<Vec<_>>().join(", "));
            }
            fills => {
                let lines: Vec<String> = fills.iter().map(|fill| format!("  {},\n", fill_text(fill))).collect();
                let _ = writeln!(out, "params = [\n{}]", lines.concat());
            }
        }
        if *writes {
            out.push_str("with_writes = true\n");
        }
        if sql.trim_start_matches('(').to_ascii_lowercase().starts_with(['s', 'w', 'v', 't']) {
            out.push_str("allow_empty = true\n");
        }
    }
    left_out(out, &drafted.left_out);
}

/// Returns the number of rows per call as text.
pub fn rows_text(rows: f64) -> String {
    let shown = show_number(rows);
    format!("{shown} {} a call", if shown == "1" { "row" } else { "rows" })
}

/// Converts a share of 1 into a weight in percent with six digits.
fn weight(share: f64) -> f64 {
    let percent = 100.0 * share;
    let scale = 10_f64.powf(5.0 - percent.max(1e-7).log10().floor());
    ((percent * scale).round() / scale).max(1e-9)
}

fn left_out(out: &mut String, left_out: &[LeftOut]) {
    if left_out.is_empty() {
        return;
    }
    out.push('\n');
    comment(out, "Left out, and why:");
    for one in left_out {
        let sql: String = one.sql.chars().take(LEFT_OUT_LETTERS).collect();
        let end = if one.sql.chars().count() > LEFT_OUT_LETTERS { " ..." } else { "" };
        comment(out, "");
        comment(out, &format!("  {sql}{end}"));
        comment(out, &format!("  ({} % of what ran): {}", show_number(100.0 * one.share), one.because));
    }
}

fn load(out: &mut String, drafted: &Drafted) {
    out.push_str("\n[load]\nclients  = 16\nduration = \"5s\"\n");
    if let Some(rate) = drafted.rate_per_s.filter(|rate| *rate >= 1.0) {
        let _ = writeln!(
            out,
            "rate     = {}      # statements a second, as they ran; the search begins here",
            number_text(rate.round())
        );
    }
    out.push_str("\n[goal]\nquantile = 0.99\nbelow    = \"20ms\"\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Times;

    #[test]
    fn fills_are_written_as_studies_have_them() {
        let times = Times { bounds_us: vec![0, 1_500_000], zone: "+00".to_owned() };
        for (fill, written) in [
            (Fill::Uniform(1.0, 100_000.0), "{ uniform = [1, 100000] }"),
            (Fill::Zipf(1, 9, 1.0), "{ zipf = [1, 9, 1.0] }"),
            (Fill::Quantiles(vec![-0.5, 1e20]), "{ quantiles = [-0.5, 1e20] }"),
            (Fill::Times(times), "{ times = [\"1970-01-01 00:00:00+00\", \"1970-01-01 00:00:01.500000+00\"] }"),
            (Fill::Now(-3600.0, 0.5, "+00:00".to_owned()), "{ now = [\"-3600s\", \"0.5s\", \"+00:00\"] }"),
            (
                Fill::Weighted(vec![(Fill::Number(1.0), 90.5), (Fill::Null, 9.5)]),
                "{ weighted = [[1, 90.5], [{ null = true }, 9.5]] }",
            ),
            (Fill::Plus(1, Box::new(Fill::Number(99.0))), "{ plus = [1, 99] }"),
            (Fill::From("SELECT \"a\" FROM t".to_owned()), "{ from = 'SELECT \"a\" FROM t' }"),
        ] {
            assert_eq!(fill_text(&fill), written);
        }
    }

    #[test]
    fn no_text_ends_a_comment() {
        let mut out = String::new();
        comment(&mut out, "a\nwrites = true\r\u{85}b");
        assert_eq!(out, "# a writes = true  b\n");
    }

    #[test]
    fn weights_keep_six_digits() {
        assert_eq!(weight(0.123_456_789), 12.3457);
        assert_eq!(weight(1.0), 100.0);
        assert!(weight(0.0) > 0.0);
    }
}
