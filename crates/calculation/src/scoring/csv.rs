//! Evidence from two tables: throughputs of writing, and execution times of reading.
//!
//! Main function: [`evidence_from_csv`]. Invariant: rows with the same alternative, query and case are repeats of one value. For
//! writing, rows of an alternative are repeats unless a column `case` tells them apart.

use super::{Evidence, Measured};
use crate::csv::cells;
use crate::quote::quoted;

/// A table after reading: its columns and its rows with their line numbers.
struct Table<'a> {
    name: &'a str,
    rows: Vec<(usize, Vec<String>)>,
    columns: Vec<String>,
}

/// Reads both tables. Columns: `alternative,throughput[,case]` and `alternative,query,case,time_s`, in any order.
///
/// # Errors
/// A sentence that names file, line, value and remedy.
pub fn evidence_from_csv(writes: (&str, &str), reads: (&str, &str)) -> Result<Evidence, String> {
    let writes = Table::read(writes, &["alternative", "throughput"])?;
    let reads = Table::read(reads, &["alternative", "query", "case", "time_s"])?;
    let mut evidence = Evidence::default();
    for table in [&writes, &reads] {
        for (_, row) in &table.rows {
            let alternative = table.field(row, "alternative");
            if !evidence.alternatives.iter().any(|known| known == alternative) {
                evidence.alternatives.push(alternative.to_owned());
            }
        }
    }
    let alternatives = evidence.alternatives.clone();
    for (table, value, cases) in
        [(&writes, "throughput", &mut evidence.writing), (&reads, "time_s", &mut evidence.reading)]
    {
        for (line, row) in &table.rows {
            let text = table.field(row, value);
            let Some(number) = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0) else {
                return Err(format!(
                    "{}:{line}: {value} is \"{}\"; it must be a number above 0",
                    table.name,
                    quoted(text)
                ));
            };
            let (query, case) = (table.field(row, "query"), table.field(row, "case"));
            let place =
                cases.iter().position(|known| known.query == query && known.case == case).unwrap_or(cases.len());
            if place == cases.len() {
                let values = vec![Vec::new(); alternatives.len()];
                cases.push(Measured { query: query.to_owned(), case: case.to_owned(), values });
            }
            let alternative = table.field(row, "alternative");
            let which = alternatives.iter().position(|known| known == alternative).unwrap_or(0);
            cases[place].values[which].push(number);
        }
    }
    evidence.check().map_err(|error| format!("{}, {}: {error}", writes.name, reads.name))?;
    Ok(evidence)
}

impl<'a> Table<'a> {
    fn read((name, text): (&'a str, &str), needed: &[&str]) -> Result<Self, String> {
        let mut lines = text
            .trim_start_matches('\u{feff}')
            .lines()
            .enumerate()
            .map(|(place, line)| (place + 1, line))
            .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let Some((first, heading)) = lines.next() else {
            return Err(format!("{name}:1: the file is empty; its first line is {}", needed.join(",")));
        };
        let columns = cells(heading).map_err(|why| format!("{name}:{first}: {why}"))?;
        if let Some(missing) = needed.iter().find(|column| !columns.iter().any(|known| known == *column)) {
            let found = columns.join(",");
            return Err(format!(
                "{name}:{first}: the column {missing} is missing in \"{}\"; write {}",
                quoted(&found),
                needed.join(",")
            ));
        }
        let known = |column: &&String| needed.contains(&column.as_str()) || *column == "case";
        if let Some(other) = columns.iter().find(|column| !known(column)) {
            return Err(format!(
                "{name}:{first}: unknown column \"{}\"; known: {}, case",
                quoted(other),
                needed.join(", ")
            ));
        }
        let mut rows = Vec::new();
        for (line, text) in lines {
            let row = cells(text).map_err(|why| format!("{name}:{line}: {why}"))?;
            if row.len() != columns.len() {
                let (found, wanted) = (row.len(), columns.len());
                return Err(format!("{name}:{line}: {found} fields instead of {wanted}; write {}", columns.join(",")));
            }
            rows.push((line, row));
        }
        let table = Table { name, rows, columns };
        match table.rows.iter().find(|(_, row)| table.field(row, "alternative").is_empty()) {
            Some((line, _)) => Err(format!("{name}:{line}: the alternative has no name; give it one")),
            None => Ok(table),
        }
    }

    /// Returns a field of a row; empty where the table has no such column.
    fn field<'r>(&self, row: &'r [String], column: &str) -> &'r str {
        self.columns.iter().position(|known| known == column).map_or("", |place| row[place].as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READS: &str = "alternative,query,case,time_s\na,1,x,1\nb,1,x,2\n";

    #[test]
    fn rows_of_the_same_case_are_repeats() {
        let writes = "alternative,throughput,case\na,10,1\na,11,1\nb,8,1\na,5,2\n\"b\",4,2\n";
        let evidence = evidence_from_csv(("w.csv", writes), ("r.csv", READS)).unwrap();
        assert_eq!(evidence.alternatives, ["a", "b"]);
        assert_eq!(evidence.writing[0].values, [vec![10.0, 11.0], vec![8.0]]);
        assert_eq!((evidence.writing.len(), evidence.reading.len()), (2, 1));
    }

    #[test]
    fn errors_name_file_line_and_remedy() {
        for (writes, says) in [
            ("", "w.csv:1: the file is empty"),
            ("alternative,speed\na,1\n", "w.csv:1: the column throughput is missing"),
            ("alternative,throughput,unit\na,1,x\n", "w.csv:1: unknown column \"unit\""),
            ("alternative,throughput\na,fast\n", "w.csv:2: throughput is \"fast\"; it must be"),
            ("alternative,throughput\na,-1\n", "w.csv:2: throughput is \"-1\""),
            ("alternative,throughput\na\n", "w.csv:2: 1 fields instead of 2"),
            ("alternative,throughput\n,1\n", "w.csv:2: the alternative has no name"),
            ("alternative,throughput\n\"a,1\n", "w.csv:2: a quote is not closed"),
            ("alternative,throughput\na,1\n", "w.csv, r.csv: b has no value of writing"),
        ] {
            let error = evidence_from_csv(("w.csv", writes), ("r.csv", READS)).unwrap_err();
            assert!(error.starts_with(says), "{error}");
        }
    }
}
